"""The registry of formats: each writer can be imported, and a format of diagnostics serves all commands."""

import pytest

from breakscan.report import formats

COMMANDS = [value for value in vars(formats).values() if isinstance(value, formats.Formats)]


def test_every_format_of_the_registry_can_be_imported() -> None:
    assert len(COMMANDS) == 12
    for command in COMMANDS:
        for name in (*command.writers.values(), *filter(None, [command.producer])):
            assert callable(formats.load(name))
    for name in formats.DIAGNOSTIC_FORMATS.values():
        assert callable(formats.load(name))


def test_a_new_format_of_diagnostics_serves_every_command_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(formats.DIAGNOSTIC_FORMATS, "new", "some.file:write_new")
    assert all("new" in command.names for command in (formats.CHECK, formats.EXPLAIN))
    assert "new" not in formats.BENCH.names
