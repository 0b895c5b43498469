"""``%%breakscan`` in a real IPython, and in a real Jupyter kernel."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import environment

pytestmark = pytest.mark.torch

SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance(colors="nocolor")
told = []
for cell in json.load(open(sys.argv[1])):
    with capture_output() as captured:
        result = shell.run_cell(cell, store_history=True)
    told.append({"out": captured.stdout, "err": captured.stderr, "ok": result.success,
                 "shown": [dict(output.data) for output in captured.outputs]})
told.append({"value": shell.user_ns.get("value")})
json.dump(told, open(sys.argv[2], "w"))
"""

DEFINE = """import torch
def f(x):
    y = x.sin()
    print("breaks")
    return y + 1"""
CALL = """%%breakscan{options}
value = 7
torch.compile(f, backend="eager")(torch.ones(3))
torch.compile(lambda x: print(x), backend="eager")(torch.ones(2))"""


def run_cells(folder: Path, *cells: str) -> list[dict[str, Any]]:
    pytest.importorskip("IPython")
    (folder / "cells.json").write_text(json.dumps(["%load_ext breakscan.notebook", DEFINE, *cells]), encoding="utf-8")
    (folder / "shell.py").write_text(SHELL, encoding="utf-8")
    env = environment() | {"IPYTHONDIR": str(folder / "ipython")}
    subprocess.run(
        [sys.executable, "shell.py", "cells.json", "told.json"], cwd=folder, env=env, check=True, timeout=300
    )
    told: list[dict[str, Any]] = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    return told[2:]


def test_the_cell_runs_and_its_report_names_cells_and_lines_as_they_are_seen(tmp_path: Path) -> None:
    cell, end = run_cells(tmp_path, CALL.format(options=" --text"))
    assert cell["ok"]
    assert end["value"] == 7
    assert cell["out"].startswith("breaks\n")
    # The function is of the second cell; the lambda of the third, whose first line is the magic.
    assert "In[2]:4:5  splits the graph  BRK401 print  in f" in cell["out"]
    assert '4 │     print("breaks")' in cell["out"]
    assert "In[3]:4:25" in cell["out"]
    assert cell["err"] == ""


def test_what_goes_wrong_is_shown_where_it_did_and_below_the_report(tmp_path: Path) -> None:
    cells = [CALL.format(options=" --text") + "\n1 / 0", "%%breakscan --nothing\n1", "%%breakscan\nthis is no Python"]
    failing, unknown, wrong, _ = run_cells(tmp_path, *cells)
    assert not failing["ok"]
    above, _, below = failing["out"].partition("In[2]:4:5  splits the graph")
    assert above.count("Traceback") == above.count("ZeroDivisionError: division by zero") == 1
    assert below.endswith("ZeroDivisionError: division by zero\n")
    assert "Traceback" not in below
    assert "unrecognized arguments: --nothing" in unknown["err"]
    assert not wrong["ok"]
    assert "SyntaxError" in wrong["out"] + wrong["err"]


def test_a_kernel_shows_the_page_and_fails_where_the_cell_fails(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "%load_ext breakscan.notebook",
        DEFINE,
        CALL.format(options=""),
        CALL.format(options=" --text") + "\n1 / 0",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}})
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="division by zero"):
        client.execute(env=environment() | {"IPYTHONDIR": str(tmp_path / "ipython")})
    shown = [output for output in notebook.cells[2].outputs if output.output_type == "display_data"]
    assert shown[-1].data["text/plain"].count("In[2]:4:5  splits the graph  BRK401 print  in f") == 1
    page = shown[-1].data.get("text/html")
    assert page is None or page.startswith("<iframe srcdoc=")
    printed = "".join(output.text for output in notebook.cells[3].outputs if output.output_type == "stream")
    # What the cell before has compiled is not compiled again; this cell's own function is.
    assert "In[4]:4:25  splits the graph  BRK401 print  in <lambda>" in printed
    assert "\x1b" not in printed


def test_a_watched_notebook_says_after_each_cell_what_broke(tmp_path: Path) -> None:
    call = 'torch.compile(f, backend="eager")(torch.ones(3))'
    _, first, second, _ = run_cells(tmp_path, "import breakscan\nbreakscan.watch()", call, "f(torch.ones(3))")
    assert first["err"].startswith("breakscan: In[2]:4:5  splits the graph  BRK401 print  in f")
    assert second["err"] == ""
