"""The files of a project: loads them on demand, and resolves dotted names."""

import ast
import os
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from breakscan.check.project.index import (
    BUILTINS,
    ClassInfo,
    Definition,
    FunctionInfo,
    GlobalName,
    ModuleIndex,
    build_index,
)
from breakscan.model.findings import SourceError
from breakscan.model.observations import FunctionSeen, Observations
from breakscan.source.module import SourceProblem, read_source
from breakscan.source.paths import display_path
from breakscan.source.python_text import parse_text, python_text
from breakscan.source.regular_files import UNKNOWN, Digests

MOST_LINES_KEPT = 250_000
"""Of trees that are kept for the next file, in lines: about a kilobyte each."""
FILES_BETWEEN_COUNTS = 16
MOST_NEIGHBOURS = 8
"""The number of following files after which one that nobody imported is dropped."""
MOST_FILES_A_FILE = 400
"""The number of other files that one file may load.  Beyond it names stay unknown."""
MOST_STARS = 30
"""A module with more star imports is a lazy index of a whole library: finding a name in it would read all of it."""
MOST_ROOTS = 6
MOST_HOPS = 20

_OURS_NEVER = frozenset({"torch", "numpy", *sys.stdlib_module_names})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
Answer = TypeVar("Answer")


@dataclass(slots=True)
class KeptAnswer(Generic[Answer]):
    """An answer, and the files that finding it loaded: digests by path, as in ``Project.depends``, and the files
    themselves.  ``counted`` is the last ``Project.depends`` that has them."""

    answer: Answer
    depends: dict[str, str] = field(default_factory=dict)
    indices: list[ModuleIndex] = field(default_factory=list)
    counted: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Way:
    """The files on the way from a folder to the definition of a dotted name, each with the number of parts of the name
    that lead to it, and the files that do not exist."""

    files: list[tuple[str, int]]
    missing: list[str]


class Project:
    """Loads and resolves for one file after the other; ``depends`` lists what the current one loaded.  ``observations``
    are those that are taken for true.  Absolute imports are looked for in the folder of the outermost package, and in
    those between it and ``root``, the folder of the configuration."""

    def __init__(self, root: Path, observations: Observations | None = None) -> None:
        self.root = str(root)
        self._observations = observations
        self._texts: dict[Path, str] = {}
        """The texts that files have for now, see :meth:`changed`."""
        self.depends: dict[str, str] = {}
        """The digest of every file that was read, by absolute path; empty where a file was looked for in vain."""
        self.faults: list[SourceError] = []
        """The parts of files that could not be analyzed."""
        self._kept: OrderedDict[str, tuple[ModuleIndex, str]] = OrderedDict()
        self._held: dict[str, ModuleIndex | None] = {}
        self._answers: dict[object, KeptAnswer[Any]] = {}
        self._finding: set[tuple[str, str]] = set()
        self._searches = 0
        """The number of searches under way, one inside the other."""
        self._there: dict[str, bool] = {}
        self._ways: dict[tuple[str, str], _Way] = {}
        self._digests = Digests()
        self._roots: deque[str] = deque()
        self._counted = FILES_BETWEEN_COUNTS
        self._drawn_in: set[str] = set()

    # -- files ------------------------------------------------------------------------------------------------

    def start(self, path: Path) -> None:
        """Begins with another file: forgets what only concerned the one before."""
        while len(self._roots) > MOST_NEIGHBOURS:
            known = self._kept.pop(self._roots[0], None) if self._roots[0] not in self._drawn_in else None
            if known is not None:
                known[0].release()  # its neighbours are through, and did not import it
            self._roots.popleft()
        self.depends = {}
        self.faults = []
        self._held = {}
        self._answers = {}
        self._roots.append(str(path))
        if len(self._kept) > self._counted:
            # Frees the trees that were not used for longest, where there are too many.
            lines = sum(index.module.text.count("\n") for index, _ in self._kept.values())
            while lines > MOST_LINES_KEPT:
                _, (index, _) = self._kept.popitem(last=False)
                lines -= index.module.text.count("\n")
                index.release()
            self._counted = len(self._kept) + FILES_BETWEEN_COUNTS

    @contextmanager
    def sparing(self, index: ModuleIndex, node: ast.AST) -> Iterator[None]:
        """Notes a fault of ours in what is done inside: it must not cost the user more than the code of one node."""
        try:
            yield
        except (SourceProblem, RecursionError):
            raise
        except Exception as error:
            import traceback  # slow to import

            at = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{error!r} in {Path(at.filename).name}:{at.lineno}"
            name = f"{node.name} " if hasattr(node, "name") else ""
            reason = f"{name}cannot be analyzed: {where}, a bug in breakscan: please report it"
            self.faults.append(SourceError(index.module.display, getattr(node, "lineno", 1), 1, reason))

    def forget(self) -> None:
        """Drops the results of interpretation: from now on, more of them are needed."""
        for index, _ in self._kept.values():
            index.forget()

    def refresh(self, paths: Iterable[str]) -> None:
        """Reads files at absolute paths again, which have changed, come or gone, and looks for all imports again."""
        for path in paths:
            self._digests.forget(path)
            known = self._kept.pop(path, None)
            if known is not None:
                known[0].release()
        for index, _ in self._kept.values():
            index.forget()
            index.answers.clear()
        self._there.clear()
        self._ways.clear()

    def release(self) -> None:
        """Frees all trees: nothing is checked any more."""
        for index, _ in self._kept.values():
            index.release()
        self._kept.clear()
        self._held, self._answers = {}, {}

    @contextmanager
    def changed(self, path: Path, text: str) -> Iterator[None]:
        """Reads another text in place of a file, for all files that import it, too."""
        key = str(path)
        own = self._kept.pop(key, None)
        remembered = [(index, index.remembered, index.answers) for index, _ in self._kept.values()]
        for index, _, _ in remembered:
            index.remembered, index.answers = {}, {}
        self._texts[path] = text
        try:
            yield
        finally:
            del self._texts[path]
            other = self._kept.pop(key, None)
            if other is not None:
                other[0].release()
            for index, _ in self._kept.values():
                index.remembered, index.answers = {}, {}
            for index, known, answers in remembered:
                index.remembered, index.answers = known, answers
            if own is not None:
                self._kept[key] = own

    def seen_in(self, index: ModuleIndex) -> Mapping[str, FunctionSeen]:
        """The observations of the functions of a file, by their qualified names.  They hold for a text that stands in
        place of the file, too: that of an edit, which keeps what functions are called with."""
        if self._observations is None:
            return {}
        return self._observations.files.get(self._digests.of(str(index.module.path)), {})

    def load(self, path: Path | str, text: str | None = None) -> ModuleIndex:
        """The index of a file, or of a text that goes by its path. Raises SourceProblem where it cannot be read or
        parsed."""
        key = str(path)
        kept = self._kept.get(key)
        if kept is None or text is not None:
            kept = self._read(Path(key), text)
            if text is None:
                self._kept[key] = kept
        else:
            self._kept.move_to_end(key)
        index, digest = kept
        self.depends[key] = digest
        init = os.path.join(os.path.dirname(key), "__init__.py")
        self.depends.setdefault(init, self._digests.of(init))  # it decides by which name others import the file
        self._held[key] = index
        return index

    def _read(self, path: Path, text: str | None) -> tuple[ModuleIndex, str]:
        display = display_path(path, Path.cwd())
        digest = ""
        text = self._texts.get(path) if text is None else text
        if text is None:
            data = read_source(path, display)
            digest = self._digests.learn(str(path), data)
            self.depends[str(path)] = digest
            text = python_text(data, path, display)
        module = parse_text(text, path, display)
        name, roots = self._place(path)
        if "__main__" in text and str(path.parent) not in roots:
            roots += (str(path.parent),)  # as Python does for a script, also in a package
        is_package = path.name == "__init__.py"
        return build_index(module, name, is_package, roots, self), digest

    def _place(self, path: Path) -> tuple[str, tuple[str, ...]]:
        """The dotted name of a file's module, and the folders that its absolute imports are looked for in."""
        parts = [] if path.name == "__init__.py" else [path.stem]
        folder = path.parent
        bare: list[str] = []
        while folder != folder.parent and (_is_package(folder) or _is_package(folder.parent)):
            # A folder in a package needs no __init__.py to be a part of it, and may as well hold scripts.
            bare += [] if _is_package(folder) else [str(folder)]
            parts.insert(0, folder.name)
            folder = folder.parent
        top = str(folder)
        roots = [top]
        below_root = (top + os.sep).startswith(self.root.rstrip(os.sep) + os.sep)
        own = below_root and _INSTALLED.isdisjoint(top.split(os.sep))
        while own and roots[-1] != self.root and len(roots) < MOST_ROOTS:
            roots.append(os.path.dirname(roots[-1]))
        if folder == path.parent and roots[-1] == self.root:
            # No package: Python would name it by the folder that it is run from.
            parts = list(path.relative_to(self.root).with_suffix("").parts)
        return ".".join(parts), (*roots, *bare)

    def recorded(self, find: Callable[[], Answer]) -> KeptAnswer[Answer]:
        """An answer and the files that finding it loads; they count for the current file, too."""
        outer = self.depends
        self.depends = depends = dict[str, str]()
        try:
            answer = find()
        finally:
            self.depends = outer
            outer |= depends
        return KeptAnswer(answer, depends, [self._kept[path][0] for path in depends if path in self._kept])

    def draw_again(self, found: KeptAnswer[Any]) -> bool:
        """Adds the files that were loaded for another file; False if some of them were dropped since."""
        for index in found.indices:
            kept = self._kept.get(str(index.module.path))
            if kept is None or kept[0] is not index:
                return False
        for index in found.indices:
            path = str(index.module.path)
            self._kept.move_to_end(path)
            self._held[path] = index
        self.depends |= found.depends
        return True

    def _other(self, path: str) -> ModuleIndex | None:
        """The index of a file that another one imports; None where it cannot be had."""
        if path in self._held:
            if self._held[path] is None:
                self.depends.setdefault(path, UNKNOWN)
                return None
            return self.load(path)
        if self.is_full:
            return None
        self._held[path] = None
        self._drawn_in.add(path)
        try:
            return self.load(path)
        except (SourceProblem, RecursionError):
            self.depends.setdefault(path, UNKNOWN)
            return None

    @property
    def is_full(self) -> bool:
        """True if the current file may load no more files: results from now on may not hold for others."""
        return len(self._held) >= MOST_FILES_A_FILE

    # -- names ------------------------------------------------------------------------------------------------

    def find(self, dotted: str, index: ModuleIndex) -> Definition | None:
        """The definition that a dotted name in a file refers to, if a file of the project has it."""
        key = "find", index.roots, dotted
        return self._once(key, lambda: self._find(dotted.split("."), index), None, None)

    def once(self, key: object, index: ModuleIndex, find: Callable[[], Answer]) -> Answer:
        """The answer to any question about a file, under a key of its own; it is looked for once."""
        return self._once(key, find, None, index)

    def _once(self, key: object, find: Callable[[], Answer], unfinished: Any, keeper: ModuleIndex | None) -> Answer:
        """An answer that is looked for once for each root, or once as long as the file ``keeper`` and all that it drew
        in are kept; ``unfinished`` if the search comes round to itself."""
        found = self._answers.get(key)
        if found is None:
            # Inside another search, the answer depends on where that one began.
            lasts = keeper if not self._searches else None
            found = lasts.answers.get(key) if lasts is not None else None
            if found is None or not self.draw_again(found):
                self._answers[key] = KeptAnswer(unfinished)
                self._searches += 1
                try:
                    found = self.recorded(find)
                finally:
                    self._searches -= 1
                if lasts is not None and not self.is_full:
                    lasts.answers[key] = found
            self._answers[key] = found
        if found.depends and found.counted is not self.depends:
            self.depends |= found.depends
            found.counted = self.depends
        answer: Answer = found.answer
        return answer

    def _find(self, parts: list[str], index: ModuleIndex) -> Definition | None:
        own_package = index.name.split(".")[0]
        if not all(parts) or (parts[0] in _OURS_NEVER and (parts[0] != own_package or parts[0] == "torch")):
            return None
        for root in index.roots:
            if _INSTALLED & {os.path.basename(root)} and parts[0] != own_package:
                continue
            key = root, ".".join(parts)
            way = self._ways.get(key)
            if way is None:
                way = self._ways[key] = self._way_down(root, parts)
            for path in way.missing:
                self.depends.setdefault(path, "")
            if way.files:
                return self._in_chain(way.files, parts)
        return None

    def _way_down(self, root: str, parts: list[str]) -> _Way:
        way = _Way([], [])

        def exists(path: str) -> bool:
            there = self._there.get(path)
            if there is None:
                there = self._there[path] = os.path.isfile(path)
            if not there:
                way.missing.append(path)
            return there

        folder = root
        for i, part in enumerate(parts, 1):
            inner = os.path.join(folder, part)
            package = os.path.join(inner, "__init__.py")
            if exists(package):
                way.files.append((package, i))
            elif exists(inner + ".py"):
                way.files.append((inner + ".py", i))
                break
            elif not os.path.isdir(inner):
                exists(os.path.join(inner, *parts[i:]) + ".py")
                break
            folder = inner
        return way

    def _in_chain(self, chain: Sequence[tuple[str, int]], parts: list[str]) -> Definition | None:
        path, depth = chain[-1]
        if depth < len(parts):
            module = self._other(path)
            return self.member(module, parts[depth:]) if module is not None else None
        # `from .relu import relu` in a package hides its module of that name.
        if len(chain) > 1 and chain[-2][1] == depth - 1:
            package = self._other(chain[-2][0])
            if package is not None and package.imports.get(parts[-1], "") not in ("", ".".join(parts)):
                hiding = self.member(package, parts[-1:])
                if hiding is not None:
                    return hiding
        return self._other(path)

    def member(self, index: ModuleIndex, names: list[str]) -> Definition | None:
        """The definition that ``a.b`` refers to inside a file, given as its parts."""
        name = names[0]
        step = str(index.module.path), ".".join(names)
        if step in self._finding or len(self._finding) > MOST_HOPS:
            return None
        self._finding.add(step)
        try:
            imported = index.imports.get(name)
            if imported is not None:
                return self.find(".".join([imported, *names[1:]]), index)
            if name in index.functions:
                return index.functions[name] if len(names) == 1 else None
            if name in index.classes:
                info = index.classes[name]
                return info if len(names) == 1 else self.method(info, names[1]) if len(names) == 2 else None
            if name in index.assigned:
                return GlobalName(index, name) if len(names) == 1 else None
            through = self.star(index, name)
            return self.find(".".join([through, *names[1:]]), index) if through else None
        finally:
            self._finding.discard(step)

    def star(self, index: ModuleIndex, name: str) -> str | None:
        """The dotted name under which a star import brings ``name`` into a file."""
        if name in BUILTINS or len(index.stars) > MOST_STARS:
            return None
        for module in reversed(index.stars):
            dotted = f"{module}.{name}"
            if module.startswith("torch") or self.find(dotted, index) is not None:
                return dotted
        return None

    # -- classes ----------------------------------------------------------------------------------------------

    def bases_of(self, info: ClassInfo) -> list[ClassInfo]:
        """The class and those of its bases that the project holds, in the order in which methods are looked up."""

        def find() -> list[ClassInfo]:
            found: dict[ClassInfo, None] = {}
            queue = deque([info])
            while queue:
                current = queue.popleft()
                if current not in found:
                    found[current] = None
                    queue += [base for name in current.bases if (base := current.index.class_named(name)) is not None]
            return list(found)

        return self._once(("bases", info), find, [info], info.index)

    def method(self, info: ClassInfo, name: str) -> FunctionInfo | None:
        """The method that an instance of the class has under a name."""
        for owner in self.bases_of(info):
            if name in owner.methods:
                return owner.methods[name]
        return None

    def outside_bases(self, info: ClassInfo) -> list[str]:
        """The names of those bases, near or far, that the project does not hold."""

        def find() -> list[str]:
            named = ((base, c.index) for c in self.bases_of(info) for base in c.bases if base not in BUILTINS)
            return [base for base, index in named if index.class_named(base) is None]

        return self._once(("outside", info), find, [], info.index)

    def is_module(self, info: ClassInfo) -> bool:
        """True if the class is, or very likely is, an ``nn.Module``. A class with a ``forward`` and a base that cannot
        be found counts: nearly all such bases are modules."""

        def find() -> bool:
            outside = self.outside_bases(info)
            if any(base.startswith("torch.nn.") for base in outside):
                return True
            is_other = not outside or any(base.startswith(_NOT_MODULES) for base in outside)
            return not is_other and self.method(info, "forward") is not None

        return self._once(("module", info), find, False, info.index)


def _is_package(folder: Path) -> bool:
    return os.path.isfile(folder / "__init__.py")


_NOT_MODULES = ("torch.autograd.", "typing.", "abc.", "enum.", "dataclasses.", "collections.")
