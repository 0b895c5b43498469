"""All rules: the shipped ones, and those of a project, in the folders that its configuration names."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_type_hints

from platformdirs import user_cache_path

from breakscan.model.dataclass_json import decoder, encode
from breakscan.rulebook import document, events
from breakscan.rulebook.document import Rule, RuleError, nearest, read_rule


@cache
def shipped_rules() -> Path:
    """The folder of the shipped documents: inside the package in a wheel, next to it in a source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "rules"
    return inside if inside.is_dir() else package.parent / "rules"


class Library:
    """Rules by id, in the order of their ids."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = {rule.id: rule for rule in sorted(rules, key=lambda rule: rule.id)}

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def __contains__(self, rule_id: object) -> bool:
        return rule_id in self._rules

    def get(self, word: str) -> Rule | None:
        """The rule with that id or name, in any case."""
        return self._rules.get(word.upper()) or next((rule for rule in self if rule.name == word.lower()), None)

    def select(self, selector: str) -> list[Rule]:
        """The rules that a selector of ``select`` or ``ignore`` selects: ``ALL``, an id (``BRK101``), the start of one
        (``BRK1`` is a family), or a name.  Raises ValueError, with the nearest known word, if it selects none."""
        upper = selector.upper()
        if upper == "ALL":
            return list(self)
        found = [r for r in self if r.id.startswith(upper)] if upper.startswith("BRK") else []
        found = found or [r for r in self if r.name == selector.lower()]
        if not found:
            known = [w for rule in self for w in (rule.id, rule.name)]
            hint = nearest(upper, known) or nearest(selector.lower(), known)
            raise ValueError(f"no rule is called {selector!r}{hint}")
        return found

    def problem_with(self, selector: str) -> str | None:
        """The reason why a selector selects no rule; None if it selects one."""
        try:
            self.select(selector)
        except ValueError as error:
            return str(error)
        return None


@cache
def load_library(extra: tuple[Path, ...] = ()) -> Library:
    """The shipped rules and those of the folders in ``extra``.  Raises RuleError for a malformed document, a folder
    without any, a document under another name, which would be overlooked, and an id or name used twice."""
    rules: list[Rule] = []
    ids: dict[str, Rule] = {}
    for folder in dict.fromkeys((shipped_rules(), *extra)):
        documents = sorted(folder.glob("BRK*.md"))
        own = folder in extra
        for path in sorted(folder.glob("*.md")) if own else ():
            if path not in documents and _is_document(path):
                raise RuleError(path, 1, "is not read: the file of a rule is called ID-NAME.md, as BRK001-our-rule.md")
        if not documents:
            raise RuleError(folder, 1, "holds no rule documents, which are called ID-NAME.md, as BRK001-our-rule.md")
        found = (read_rule(path, own=True) for path in documents) if own else _shipped(folder, documents)
        for path, rule in zip(documents, found, strict=True):
            for word in (rule.id, rule.name):
                if other := ids.get(word):
                    raise RuleError(path, 1, f"{word} is taken by {other.path}")
                ids[word] = rule
            rules.append(rule)
    return Library(rules)


def _is_document(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(3) == b"+++"
    except OSError:
        return False


def _shipped(folder: Path, documents: Sequence[Path]) -> list[Rule]:
    """The rules of the shipped documents.  They are kept ready-made in the user's cache, as parsing 160 documents takes
    a seventh of a check of one file, as long as no document has another size or time, nor the code that reads them."""
    name = f"rules-{blake2b(bytes(folder), digest_size=8).hexdigest()}.json"
    kept = user_cache_path("breakscan", appauthor=False) / name
    stamp = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in (*documents, *_READERS)]
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        data = json.loads(kept.read_bytes())
        if data["stamp"] == stamp:
            return [
                Rule(*[*(part(value) for part, value in zip(_decoders(), values, strict=True)), path])
                for values, path in zip(data["rules"], documents, strict=True)
            ]
    rules = [read_rule(path, checked=False) for path in documents]
    with contextlib.suppress(OSError):
        from breakscan.source.writing import replace_content  # slow to import

        kept.parent.mkdir(parents=True, exist_ok=True)
        data = {"stamp": stamp, "rules": [encode(rule)[:-1] for rule in rules]}
        replace_content(kept, json.dumps(data).encode())
    return rules


_READERS = (Path(document.__file__), Path(events.__file__))


@cache
def _decoders() -> list[Any]:
    """Those of all fields but the last, which is the path."""
    hints = get_type_hints(Rule)
    return [decoder(hints[field.name]) for field in fields(Rule)[:-1]]
