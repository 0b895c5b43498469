"""Notebooks that are open in an editor."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.serve.editor.client_session import actions, applied, codes, told, with_client

pytestmark = pytest.mark.process

DEFINED = """%%time
class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = x.sin()
        if x.any():
            y = torch.nan_to_num(y)
        return y"""
USED = "%pip list\ncompiled = torch.compile(helped)\nprint(compiled)"
HELPED = "def helped(x: torch.Tensor):\n    return Net()(x) * x.sum().item()"
CELLS = ("import torch", DEFINED, HELPED, "%%bash\nls", USED)


def uri_of(number: int, notebook: str) -> str:
    return f"{notebook.replace('file:', 'vscode-notebook-cell:')}#{number}"


def document(number: int, text: str, notebook: str) -> types.TextDocumentItem:
    return types.TextDocumentItem(uri_of(number, notebook), "python", 1, text)


def cell_of(item: types.TextDocumentItem) -> types.NotebookCell:
    return types.NotebookCell(types.NotebookCellKind.Code, item.uri)


async def opened_notebook(client: Any, *cells: str) -> str:
    notebook = Path(client.folder, "train.ipynb").as_uri()
    items = [document(number, text, notebook) for number, text in enumerate(cells)]
    text = types.NotebookCell(types.NotebookCellKind.Markup, f"{notebook}#words")
    client.notebook_document_did_open(
        types.DidOpenNotebookDocumentParams(
            types.NotebookDocument(notebook, "jupyter-notebook", 1, [text, *map(cell_of, items)]), items
        )
    )
    return notebook


async def edited(client: Any, notebook: str, number: int, text: str) -> None:
    change = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, uri_of(number, notebook)),
        [types.TextDocumentContentChangeWholeDocument(text)],
    )
    client.notebook_document_did_change(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, notebook),
            types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(text_content=[change])),
        )
    )


@with_client
async def test_findings_are_in_cells(client: Any) -> None:
    notebook = await opened_notebook(client, *CELLS)
    (branch,) = await told(client, uri_of(1, notebook), ["BRK101"])
    assert branch.range.start == types.Position(4, 11)
    (item,) = await told(client, uri_of(2, notebook), ["BRK201"])
    assert (item.range.start, item.range.end) == (types.Position(1, 22), types.Position(1, 36))
    assert item.related_information[0].location.uri == uri_of(4, notebook)
    assert item.related_information[0].location.range.start.line == 1
    assert not client.diagnostics[uri_of(0, notebook)]
    shown = await client.text_document_hover_async(
        types.HoverParams(types.TextDocumentIdentifier(uri_of(2, notebook)), types.Position(1, 25))
    )
    assert shown.contents.value.startswith("**BRK201 tensor-item**")


@with_client
async def test_another_cell_decides(client: Any) -> None:
    notebook = await opened_notebook(client, *CELLS)
    await told(client, uri_of(2, notebook), ["BRK201"])
    await edited(client, notebook, 4, "compiled = helped")
    await told(client, uri_of(2, notebook), [])
    await told(client, uri_of(1, notebook), ["BRK101"])  # a forward counts without it
    await edited(client, notebook, 4, "def f(:")
    (error,) = await told(client, uri_of(4, notebook), [None])
    assert error.range.start == types.Position(0, 6)


@with_client
async def test_fixes_are_within_cells(client: Any) -> None:
    notebook = await opened_notebook(client, *CELLS)
    uri = uri_of(1, notebook)
    (branch,) = await told(client, uri, ["BRK101"])
    (fix, ignore) = await actions(client, uri, branch)
    fixed = applied(DEFINED, fix, uri)
    assert fixed.startswith("%%time\nclass Net")
    assert "torch.where(" in fixed
    assert list(fix.edit.changes) == list(ignore.edit.changes) == [uri]
    assert applied(DEFINED, ignore, uri) == DEFINED.replace("any():", "any():  # breakscan: ignore[BRK101]")
    await edited(client, notebook, 1, fixed)
    await told(client, uri, [])


@with_client
async def test_a_cell_is_removed(client: Any) -> None:
    notebook = await opened_notebook(client, *CELLS)
    await told(client, uri_of(2, notebook), ["BRK201"])
    structure = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(3, 1), did_close=[types.TextDocumentIdentifier(uri_of(2, notebook))]
    )
    client.notebook_document_did_change(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, notebook),
            types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(structure)),
        )
    )
    await told(client, uri_of(2, notebook), [])
    client.notebook_document_did_close(
        types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(notebook), [])
    )
    await told(client, uri_of(1, notebook), [])
    assert not any(map(codes, client.diagnostics.values()))
    await asyncio.sleep(0)
