"""The report of ``verify`` as one HTML page that needs nothing else: verdicts, measurements, diffs, and the generated
code before and after side by side.

It has no scripts at all.  Text of the program reaches it escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TextIO

from breakscan.prove.proof import KernelCode, Proof, ProofVerdict, Verification
from breakscan.report.html_page import escaped, escaped_lines, page_style, plain_page
from breakscan.report.measurements import observation_words
from breakscan.report.printable import printable, visible
from breakscan.report.verify import (
    REFUSED,
    closing_words,
    declined_words,
    facts,
    headline,
    remarks,
    table_rows,
    unproved,
)

MOST_CODE = 200_000
"""Characters of generated code, on each side of a proof."""
_CLASSES = {ProofVerdict.ACCEPTED: "traced", **dict.fromkeys(REFUSED, "raises")}
_STYLE = """
main.verify { padding-top: 14px; }
.verify p { max-width: 110ch; }
.verify .list td { vertical-align: top; }
.verify details { margin: 10px 0; border: 1px solid var(--line); border-radius: 6px; padding: 8px 12px; }
.verify summary { cursor: pointer; }
.verify pre { margin: 8px 0; overflow-x: auto; font: 12px/1.5 var(--mono); background: var(--panel); padding: 8px; }
.verify .gone { background: var(--raises-soft); }
.verify .new { background: color-mix(in srgb, var(--traced) 18%, transparent); }
.verify table.sides { width: 100%; table-layout: fixed; border-collapse: collapse; font: 12px/1.5 var(--mono); }
.verify table.sides td { white-space: pre-wrap; overflow-wrap: anywhere; vertical-align: top; padding: 0 8px; }
.verify table.sides td + td { border-left: 1px solid var(--line); }
.verify table.sides th { text-align: left; padding: 4px 8px; color: var(--muted); font: 500 12px var(--sans); }
"""


def write_verify_html(verification: Verification, stream: TextIO) -> None:
    """Writes the page, ASCII only."""
    environment = " · ".join(f"{name} {value}" for name, value in verification.environment.items())
    program = " ".join(map(visible, verification.argv))
    header = f"""<header id="head"><div id="run"><p id="outcome">{escaped(f"{program} · {environment}")}</p></div>
<h1 id="headline">{escaped(headline(verification))}</h1></header>
<main class="verify">
"""
    parts = (part + "\n" for part in _parts(verification))
    title = f"breakscan verify: {headline(verification)}"
    stream.write(plain_page(title, page_style() + _STYLE, [header, *parts, "</main>\n"]))


def _parts(verification: Verification) -> Iterator[str]:
    shown = printable(verification)
    if shown.proofs:
        yield _table(shown)
    for proof, original in zip(shown.proofs, verification.proofs, strict=True):
        yield _details(proof, original)
    for words in closing_words(shown):
        yield f"<p>{escaped(words)}</p>"
    declined = list(map(declined_words, shown.declined))
    for title, names in (*unproved(shown), *([("No rewrite for", declined)] if declined else [])):
        yield f"<h2>{title}</h2>{_list(names)}"


def _table(shown: Verification) -> str:
    titles, *changes = table_rows(shown)
    rows = []
    for proof, change in zip(shown.proofs, changes, strict=True):
        *measured, verdict = map(escaped, change)
        marked = f'<span class="verdict {_CLASSES.get(proof.verdict, "splits")}">{verdict}</span>'
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in (*measured, marked))}</tr>")
    head = "".join(f"<th>{name}</th>" for name in titles)
    return f'<table class="list"><tr>{head}</tr>{"".join(rows)}</table>'


def _details(proof: Proof, original: Proof) -> str:
    """The details of a change; its diff and its code, which have lines, are those of the original."""
    listed = [*map(observation_words, proof.reasons), *remarks(proof)]
    listed += [f"{name}: {text}" for name, text in facts(proof)]
    parts = [f"<details><summary>{escaped(str(proof.label))}</summary>{_list(listed)}"]
    if original.diff:
        parts.append(f"<pre>{''.join(map(_diff_line, original.diff.rstrip().split(chr(10))))}</pre>")
    before, after = original.before, original.after
    if after is not None and (before.code or after.code):
        parts.append(_sides(before.code, after.code))
    return "".join([*parts, "</details>"])


def _list(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escaped(item)}</li>' for item in items)}</ul>"


def _diff_line(line: str) -> str:
    kind = {"-": "gone", "+": "new"}.get(line[:1], "")
    text = escaped_lines(line)
    return f'<span class="{kind}">{text}</span>\n' if kind and line[:3] not in ("---", "+++") else f"{text}\n"


def _sides(before: Sequence[KernelCode], after: Sequence[KernelCode]) -> str:
    """The generated code of all graphs, before and after, line by line, side by side."""
    left, right = _lines(before), _lines(after)
    rows = []
    for tag, first, last, first_new, last_new in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for one, other in zip_longest(left[first:last], right[first_new:last_new], fillvalue=""):
            gone, new = (' class="gone"', ' class="new"') if tag != "equal" else ("", "")
            rows.append(f"<tr><td{gone}>{escaped_lines(one)}</td><td{new}>{escaped_lines(other)}</td></tr>")
    return (
        "<details><summary>generated code, before and after</summary>"
        f'<table class="sides"><tr><th>before</th><th>after</th></tr>{"".join(rows)}</table></details>'
    )


def _lines(made: Sequence[KernelCode]) -> list[str]:
    lines: list[str] = []
    room = MOST_CODE
    for one in made:
        room -= len(one.code)
        if room < 0:
            lines.append("# the rest is left out: it is too long")
            break
        lines += [f"# {visible(one.function)}, {one.phase}", *one.code.rstrip().split("\n"), ""]
    return lines
