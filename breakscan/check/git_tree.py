"""The Python files of another commit, for a comparison with those of the working tree, and their settings."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breakscan.rulebook.config import FileSettings, Settings
from breakscan.source.paths import PathPattern
from breakscan.source.regular_files import read_regular_file

_READ = (".py", ".pyi", ".ipynb")
"""Endings of the files that ``check`` reads."""
_FILE = ("100644", "100755")
"""Modes of files in git: the others are links and submodules."""


class GitError(Exception):
    """The files of a commit cannot be had.  Says why, and what to do."""


@dataclass(frozen=True, slots=True)
class GitTree:
    """``copy`` holds the ``files`` of a commit, by their paths below ``root``, the top of the working tree.  Both are
    absolute and without links."""

    root: Path
    copy: Path
    files: frozenset[str]
    _same: dict[str, bool] = field(default_factory=dict)

    def is_unchanged(self, path: str) -> bool:
        """True if a file at an absolute path is in the commit as now, or in neither, or not in the repository."""
        if path not in self._same:
            real = Path(os.path.realpath(path))
            name = real.relative_to(self.root).as_posix() if real.is_relative_to(self.root) else None
            if name not in self.files:
                self._same[path] = name is None or not os.path.lexists(path)
            else:
                try:
                    self._same[path] = read_regular_file(str(real))[0] == (self.copy / name).read_bytes()
                except OSError:
                    self._same[path] = False
        return self._same[path]


@contextmanager
def tree_before(ref: str, inside: Path) -> Iterator[GitTree]:
    """The files of the commit at which ``HEAD`` left ``ref``, in a temporary folder, read from git's database: no hook
    and no filter runs.  ``inside`` is a folder of the repository.  Raises GitError."""
    root = Path(_git(inside, "rev-parse", "--show-toplevel").decode().rstrip("\n"))
    named = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", missing=ref)
    done = _run(root, "merge-base", named.decode().strip(), "HEAD")
    if done.returncode:
        fetch_more = "fetch more of the history (fetch-depth: 0 in GitHub Actions)"
        raise GitError(f"{ref} and HEAD have no common commit here: {fetch_more}")
    commit = done.stdout.decode().strip()
    with tempfile.TemporaryDirectory(prefix="breakscan-") as folder:
        copy = Path(os.path.realpath(folder))
        names = _write(root, commit, copy)
        yield GitTree(root, copy, frozenset(names))


def _write(root: Path, commit: str, copy: Path) -> list[str]:
    listed = _git(root, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
    wanted: list[tuple[str, str]] = []
    for line in filter(None, listed):
        about, _, name = line.partition(b"\t")
        mode, _, blob = about.decode().split()
        path = os.fsdecode(name)
        if mode in _FILE and path.endswith(_READ):
            # Git makes no other commits, but one can be made by hand.
            if os.path.isabs(path) or os.pardir in Path(path).parts:
                raise GitError(f"the commit {commit[:12]} names a file outside of its repository: {path}")
            wanted.append((blob, path))
    contents = _git(root, "cat-file", "--batch", input_="".join(f"{blob}\n" for blob, _ in wanted).encode())
    at = 0
    for _, path in wanted:
        end = contents.index(b"\n", at)
        size = int(contents[at:end].split()[2])
        target = copy / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(contents[end + 1 : end + 1 + size])
        at = end + size + 2
    return [path for _, path in wanted]


def _git(folder: Path, *arguments: str, input_: bytes = b"", missing: str | None = None) -> bytes:
    done = _run(folder, *arguments, input_=input_)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        if missing is not None:
            raise GitError(f"git knows no commit {missing!r}: fetch it, or name another one")
        raise GitError(said.removeprefix("fatal: ") or f"git {arguments[0]} failed")
    return done.stdout


def _run(folder: Path, *arguments: str, input_: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(folder), *arguments], input=input_, capture_output=True)
    except FileNotFoundError as error:
        raise GitError("git is not installed") from error


class MovedSettings:
    """The settings of a file below ``copy`` are those of the same file below ``root``, without a cache."""

    def __init__(self, settings: FileSettings, root: Path, copy: Path) -> None:
        self._settings, self._root, self._copy = settings, root, copy
        self._known: dict[int, tuple[Settings, Settings]] = {}
        """Those that were moved, by their ids, each with what it became: files of one configuration share theirs."""

    def of(self, path: Path) -> Settings:
        """See :class:`.FileSettings`."""
        if not path.is_relative_to(self._copy):
            return self._settings.of(path)
        own = self._settings.of(self._root / path.relative_to(self._copy))
        if id(own) not in self._known:
            ignores = tuple((self._pattern(pattern), words) for pattern, words in own.per_file_ignores)
            exclude = tuple(map(self._pattern, own.exclude))
            root = self._moved(own.root)
            moved = replace(own, root=root, exclude=exclude, per_file_ignores=ignores, no_cache=True)
            self._known[id(own)] = own, moved
        return self._known[id(own)][1]

    def changed(self, **values: Any) -> "MovedSettings":
        """See :class:`.FileSettings`."""
        return MovedSettings(self._settings.changed(**values), self._root, self._copy)

    def _pattern(self, pattern: PathPattern) -> PathPattern:
        return replace(pattern, folder=self._moved(pattern.folder))

    def _moved(self, folder: Path) -> Path:
        return self._copy / folder.relative_to(self._root) if folder.is_relative_to(self._root) else folder
