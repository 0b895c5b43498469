"""The cases of the rewrites: Markdown files in ``cases/``, one a rewrite, named by its id.

A case is a section::

    ## two arms
    ```python before
    def f(x: torch.Tensor): ...
    ```
    ```python after unsafe
    ...
    ```

with the text after the rewrite (``safe`` or ``unsafe``).  Texts that begin with a definition get ``import torch`` on
top.  Where the rewrite declines, a comment has what it says::

    ```python declines
    # one side returns no tensor
    def f(x: torch.Tensor): ...
    ```

A case that is applied is run on both sides too, with the arguments that a third block lists, ``python inputs``: an
expression of a list of tuples.  By default ``f`` gets one vector of four numbers, several times.  The words behind
``before`` may be ``not-run`` (what it needs is not there), ``raises`` (the old side, or its backward pass, may raise
where the new one does not), ``still-breaks`` (Dynamo breaks elsewhere in it as well), ``not-compiled`` (Dynamo compiles
neither side, because of a mode for example), ``not-on-2.11`` (the Dynamo of this version breaks on something else) and
``differs`` (an unsafe rewrite, and at least one of the inputs tells the two sides apart).

The block ``text states`` has words of a difference that the rewrite must state.

A case that declines may show what the rewrite would do wrong: then the text is in ``python before``, what it says in
``text declines``, and what it would write in ``python wrong``.  Both sides are run, and must differ on an input.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(?:python|text) (\w+)(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
INPUTS = "[(torch.tensor([-2.0, -0.5, 0.5, 2.0]),), (torch.ones(4),), (-torch.ones(4),), (torch.zeros(4),)]"


@dataclass(frozen=True)
class Case:
    """One case.  ``after`` is None where the rewrite declines, with ``reason``."""

    rewrite: str
    name: str
    words: frozenset[str]
    before: str
    after: str | None
    safe: bool
    reason: str | None
    inputs: str
    wrong: str | None = None
    """The text that the rewrite would write if it did not decline."""
    states: str = ""
    """Words of a difference that the rewrite must state."""

    def __str__(self) -> str:
        return f"{self.rewrite}-{self.name.replace(' ', '-')}"


def with_import(text: str) -> str:
    """A text that begins with a definition, below the import of torch."""
    return f"import torch\n\n\n{text}" if text.startswith(("@", "class ", "def ")) else text


def cases() -> Iterator[Case]:
    """All cases, in the order of their files."""
    for path in sorted(FOLDER.glob("*.md")):
        parts = _SECTION.split(path.read_text(encoding="utf-8"))[1:]
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            blocks = {kind: (words.split(), text) for kind, words, text in _BLOCK.findall(body)}
            if "before" not in blocks:
                reason, _, text = blocks["declines"][1].removeprefix("# ").partition("\n")
                blocks |= {"before": ([], text), "declines": ([], reason)}
            assert {"after", "declines"} & blocks.keys(), f"{path}: {name}"
            words, before = blocks["before"]
            safety, after = blocks.get("after", ([], None))
            assert after is None or safety in (["safe"], ["unsafe"]), f"{path.name}: {name}"
            reason = blocks["declines"][1].strip() if "declines" in blocks else None
            inputs = blocks.get("inputs", ([], INPUTS))[1]
            wrong = with_import(blocks["wrong"][1]) if "wrong" in blocks else None
            assert wrong is None or reason is not None, f"{path.name}: {name}"
            yield Case(
                path.stem,
                name,
                frozenset(words),
                with_import(before),
                None if after is None else with_import(after),
                safety == ["safe"],
                reason,
                inputs,
                wrong,
                states=blocks["states"][1].strip() if "states" in blocks else "",
            )
