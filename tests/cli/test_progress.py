"""The progress bar: on a terminal, once the work lasts."""

from __future__ import annotations

import io

import pytest

from breakscan.cli.output import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, patience: float) -> str:
    with ProgressBar("Checking", stream, patience) as progress:
        for done in range(1, 4):
            progress(done, 3)
    return stream.getvalue()


def test_a_terminal_gets_one_and_is_clean_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = shown(Terminal(), patience=0)
    assert "Checking" in text
    assert "3/3" in text
    assert text.endswith("\x1b[2K"), "the line is erased at the end"


@pytest.mark.parametrize(("stream", "patience"), [(Terminal(), 60), (io.StringIO(), 0)])
def test_short_work_and_a_log_get_none(stream: io.StringIO, patience: float) -> None:
    assert shown(stream, patience) == ""
