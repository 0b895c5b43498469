"""The language server, from the other side of the protocol."""

import asyncio
from typing import Any

import pytest
from lsprotocol import types

from tests.serve.editor.client_session import (
    CALLER,
    HELPER,
    actions,
    applied,
    changed,
    codes,
    opened,
    told,
    with_client,
)

pytestmark = pytest.mark.process

NET = """import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: int):
        "ünï 𝒳"; y = x.sum().item()
        if n > 2:
            print(y)
        return x
"""


@with_client
async def test_findings_of_what_is_typed(client: Any) -> None:
    uri = await opened(client, NET)
    item, printed = client.diagnostics[uri]
    assert (item.code, item.severity, item.source) == ("BRK201", types.DiagnosticSeverity.Warning, "breakscan")
    # 𝒳 is two units of UTF-16.
    assert (item.range.start, item.range.end) == (types.Position(5, 22), types.Position(5, 36))
    assert item.message.startswith("A tensor's value is read into a Python number")
    assert printed.code == "BRK401"
    assert codes(await changed(client, uri, NET.replace(".item()", ""))) == ["BRK401"]
    (error,) = await changed(client, uri, "def f(:\n", 3)
    assert error.message.startswith("cannot be parsed")
    assert (error.range.start, error.severity) == (types.Position(0, 6), types.DiagnosticSeverity.Error)


@with_client
async def test_what_other_files_compile(client: Any) -> None:
    """The helper alone is compiled by nobody; the scan of the folder finds its caller."""
    uri = await opened(client, HELPER, "helper.py")
    (found,) = await told(client, uri, ["BRK201"])
    (related,) = found.related_information
    assert related.location.uri == (client.folder / "caller.py").as_uri()
    assert related.message == "@torch.compile"
    assert [one.range.start.line for one in await changed(client, uri, "\n" + HELPER)] == [5]


@with_client
async def test_hover_shows_the_rule(client: Any) -> None:
    uri = await opened(client, NET)
    document = types.TextDocumentIdentifier(uri)
    shown = await client.text_document_hover_async(types.HoverParams(document, types.Position(5, 25)))
    assert shown.contents.value.startswith("**BRK201 tensor-item**\n\nA tensor's value is read")
    assert "## Why" in shown.contents.value
    assert await client.text_document_hover_async(types.HoverParams(document, types.Position(0, 0))) is None


@with_client
async def test_fixes_and_comments(client: Any) -> None:
    uri = await opened(client, NET)
    printed = client.diagnostics[uri][1]
    found = await actions(client, uri, printed)
    assert found[-1].title == "Ignore BRK401 here"
    assert found[-1].diagnostics == (printed,)
    suppressed = applied(NET, found[-1], uri)
    assert suppressed == NET.replace("print(y)", "print(y)  # breakscan: ignore[BRK401]")
    assert codes(await changed(client, uri, suppressed)) == ["BRK201"]
    branch = NET.replace('"ünï 𝒳"; y = x.sum().item()', "y = 1").replace("n > 2", "x.sum() > 2")
    branch = branch.replace("print(y)", "x = x + 1\n        else:\n            x = x - 1")
    (diagnostic,) = await changed(client, uri, branch, 3)
    (fix, _) = await actions(client, uri, diagnostic)
    assert fix.title.startswith("Fix BRK101 with where (")
    assert fix.kind == types.CodeActionKind.QuickFix
    fixed = applied(branch, fix, uri)
    assert "torch.where(" in fixed
    assert codes(await changed(client, uri, fixed, 4)) == []


@with_client
async def test_the_last_line_may_have_no_end(client: Any) -> None:
    text = "import torch\n@torch.compile\ndef f(x): print(x)"
    uri = await opened(client, text)
    (diagnostic,) = client.diagnostics[uri]
    ignore = (await actions(client, uri, diagnostic))[-1]
    assert applied(text, ignore, uri) == text + "  # breakscan: ignore[BRK401]"


@with_client
async def test_what_else_str_splitlines_takes_for_a_line_end(client: Any) -> None:
    """A form feed, and the line separator of Unicode, end no line of Python, nor of the protocol."""
    text = NET.replace('"ünï 𝒳"; y', '"\u2028"; y').replace("class Net", "\f\nclass Net")
    uri = await opened(client, text)
    item, printed = client.diagnostics[uri]
    assert (item.range.start, item.range.end) == (types.Position(6, 17), types.Position(6, 31))
    ignore = (await actions(client, uri, printed))[-1]
    assert applied(text, ignore, uri) == text.replace("print(y)", "print(y)  # breakscan: ignore[BRK401]")


@with_client
async def test_a_saved_file_counts_for_the_others(client: Any) -> None:
    uri = await opened(client, CALLER, "caller.py")
    assert not client.diagnostics[uri]
    other = client.folder / "helper.py"
    other.write_text(HELPER.replace("def scaled(x):", "def scaled(x):\n    print(x)"), encoding="utf-8")
    text = CALLER.replace("return scaled(x)", "return scaled(x)  # changed")
    client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(other.as_uri())))
    assert await changed(client, uri, text) == []
    helper = await opened(client, other.read_text(encoding="utf-8"), "helper.py")
    await told(client, helper, ["BRK401", "BRK201"])


@with_client
async def test_a_closed_file_has_no_findings(client: Any) -> None:
    uri = await opened(client, NET)
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert not client.diagnostics[uri]


@with_client
async def test_a_wrong_configuration_is_told(client: Any) -> None:
    (client.folder / "breakscan.toml").write_text('select = ["BRK9999"]\n', encoding="utf-8")
    uri = (client.folder / "net.py").as_uri()
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, NET)))
    await asyncio.wait_for(client.wait_for_notification(types.WINDOW_SHOW_MESSAGE), 60)
    assert "breakscan.toml:1: select" in client.messages[0].message
