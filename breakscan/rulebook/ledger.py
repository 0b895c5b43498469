"""The verdict ledger: what Dynamo did with every example of every rule, per torch version.

One JSON file a version next to the rule documents (``ledger/2.13.json``), written by
``breakscan rules replay`` and never by hand."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from breakscan.model.findings import Mode, Place, Verdict
from breakscan.model.torch_versions import NESTED, minor_version, version_key
from breakscan.rulebook.document import Example, RuleError
from breakscan.rulebook.library import shipped_rules

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Ruling:
    """The verdict on one example in one mode and place, with the ids of the breaks that were recorded."""

    verdict: Verdict
    gb: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExampleRulings:
    """All rulings on one example.  ``digest`` shows whether the document still has the same example.  ``nested`` has
    those of the default mode that are others with ``nested_graph_breaks``."""

    digest: str
    form: str | None
    rulings: Mapping[tuple[Mode, Place], Ruling]
    nested: Mapping[Place, Ruling] = field(default_factory=dict)

    @property
    def main(self) -> Ruling:
        """The ruling that the document promises: on the example as it stands, compiled by default, or else exported."""
        return self.rulings.get((Mode.DEFAULT, Place.PLAIN)) or self.rulings[Mode.EXPORT, Place.PLAIN]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The rulings of one torch version, by rule id and example label."""

    torch: str
    python: str
    examples: Mapping[str, Mapping[str, ExampleRulings]] = field(default_factory=dict)

    def ruling(
        self, rule_id: str, mode: Mode, place: Place, form: str | None = None, labels: Collection[str] = ()
    ) -> Ruling | None:
        """The verdict of this version at a place that the rule matches; None where the rule has no example here.  Of
        the examples under *Breaks*, those of ``labels`` if there are any, the first with that form decides, else the
        first without one, else the first."""
        return next(iter(self.rulings(rule_id, mode, place, form, labels)), None)

    def rulings(
        self, rule_id: str, mode: Mode, place: Place, form: str | None = None, labels: Collection[str] = ()
    ) -> list[Ruling]:
        """As :meth:`ruling`, of all examples that could decide."""
        known = {label: e for label, e in self.examples.get(rule_id, {}).items() if label.startswith("breaks/")}
        broken = [e for label, e in known.items() if label in labels] or list(known.values())
        exact = [e for e in broken if e.form == form] or [e for e in broken if e.form is None] or broken
        found = (e.rulings.get((mode, place)) or e.rulings.get((mode, Place.PLAIN)) for e in exact)
        return [ruling for ruling in found if ruling is not None]


def digest(example: Example) -> str:
    """Twelve hex digits that change with the example's code or inputs."""
    text = f"{example.inputs}\n{example.form}\n{example.source}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def ledger_folder() -> Path:
    return shipped_rules() / "ledger"


def measured_versions() -> list[str]:
    """The versions that have a ledger, oldest first, as ``2.13``."""
    return sorted((path.stem for path in ledger_folder().glob("*.json")), key=version_key)


@cache
def ledger_version_for(target: str) -> str:
    """The version whose ledger is used for a target: its own, or the nearest one outside the measured range."""
    measured = measured_versions()
    nearest = max(measured[0], min(minor_version(target), measured[-1], key=version_key), key=version_key)
    return nearest + (NESTED if target.endswith(NESTED) else "")


@cache
def load_ledger(version: str) -> Ledger:
    """The ledger of a measured version, of ``2.13+nested`` with what the setting changes.  Raises RuleError if the file
    is damaged or has another schema."""
    ledger = read_ledger(ledger_folder() / f"{version.removesuffix(NESTED)}.json")
    if not version.endswith(NESTED):
        return ledger
    examples = {rule: {label: _nested(e) for label, e in labels.items()} for rule, labels in ledger.examples.items()}
    return Ledger(version, ledger.python, examples)


def _nested(example: ExampleRulings) -> ExampleRulings:
    changed = {(Mode.DEFAULT, place): ruling for place, ruling in example.nested.items()}
    return replace(example, rulings={**example.rulings, **changed}) if changed else example


def read_ledger(path: Path) -> Ledger:
    """As :func:`load_ledger`, for a file elsewhere."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise RuleError(path, 1, f"schema {data['schema']}, not {SCHEMA}", "schema")
        rules = data["rules"].items()
        examples = {rule: {label: _read_example(one) for label, one in labels.items()} for rule, labels in rules}
        return Ledger(data["torch"], data["python"], examples)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RuleError(path, 1, f"the ledger is damaged ({error!r}): run 'breakscan rules replay'") from error


def _read_example(entry: Mapping[str, object]) -> ExampleRulings:
    modes = entry["modes"]
    assert isinstance(modes, dict)
    nested = {Place(place): _ruling(*cell) for place, cell in modes.pop("nested", {}).items()}
    rulings = {_key(mode, place): _ruling(*cell) for mode, places in modes.items() for place, cell in places.items()}
    form = entry.get("form")
    return ExampleRulings(str(entry["digest"]), str(form) if form else None, rulings, nested)


@cache
def _key(mode: str, place: str) -> tuple[Mode, Place]:
    return Mode(mode), Place(place)


@cache
def _ruling(verdict: str, *gb: str) -> Ruling:
    return Ruling(Verdict(verdict), gb)


def write_ledger(ledger: Ledger, path: Path) -> None:
    """Writes a ledger with one line for each example and mode, so that a diff shows what changed."""
    blocks = []
    for rule, labels in sorted(ledger.examples.items()):
        entries = []
        for label, example in labels.items():
            modes: dict[str, dict[str, list[str]]] = {}
            for (mode, place), ruling in example.rulings.items():
                modes.setdefault(mode.value, {})[place.value] = [ruling.verdict.value, *ruling.gb]
            for place, ruling in example.nested.items():
                modes.setdefault("nested", {})[place.value] = [ruling.verdict.value, *ruling.gb]
            lines = ",\n".join(f"    {json.dumps(mode)}: {json.dumps(cells)}" for mode, cells in modes.items())
            form = f' "form": {json.dumps(example.form)},' if example.form else ""
            entries.append(f'   {json.dumps(label)}: {{"digest": "{example.digest}",{form} "modes": {{\n{lines}}}}}')
        blocks.append(f"  {json.dumps(rule)}: {{\n" + ",\n".join(entries) + "}")
    versions = f' "torch": {json.dumps(ledger.torch)},\n "python": {json.dumps(ledger.python)},\n'
    text = f'{{\n "schema": {SCHEMA},\n{versions} "rules": {{\n' + ",\n".join(blocks) + "\n }\n}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
