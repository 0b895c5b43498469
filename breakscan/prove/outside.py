"""What calls change outside of the program's objects: files, the environment, and the text that they print.

``OUTSIDE`` is that of this process.  An audit hook sees which files are opened for writing, removed or renamed; files
that C++ code writes (``torch.save``) are seen in the working directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

MOST_BYTES = 16 << 20
"""Of a file that is put back.  Of a larger one, only the end is compared."""
LONGEST_TEXT = 2000
"""Characters of a file that are compared, and shown, as text."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = ("os.remove", "os.rename", "os.truncate", "os.mkdir", "os.rmdir")


class Outside:
    """``put_back`` restores what it was when ``put_back`` was called first; ``changes`` are those since then."""

    def __init__(self) -> None:
        self._own = ""
        """The folder of the files that the process itself writes."""
        self._made: Path | None = None
        self._busy = False
        self._environment: dict[str, str] | None = None
        self._before: dict[str, bytes | None] = {}
        """The files that were changed: what they held, None for a file that was not there or is a folder."""
        self._sizes: dict[int, int] = {}
        """Of the files that are open for writing, by descriptor."""
        self._seen: dict[str, tuple[int, int]] = {}
        """The time and the size of the files in the working directory."""

    def install(self, own: Path) -> None:
        """Watches from now on.  ``own`` is the folder of this process; those of the processes that run the same program
        are next to it."""
        self._own = os.path.realpath(own)
        self._made = own.parent / "made"
        self._made.mkdir(exist_ok=True)

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event == "open" or event in _CHANGES:
                self._audited(event, args)

        # Dynamo does not trace the files of the import system.
        hook.__code__ = hook.__code__.replace(co_filename="<frozen importlib._bootstrap>")
        sys.addaudithook(hook)

    def put_back(self, files: Iterable[IO[Any]] = ()) -> None:
        """Puts back what was changed; ``files`` are open ones, which may hold text that is not written yet."""
        with self._not_watched():
            _flush(files)
            if self._environment is None:
                self._environment = dict(os.environ)
                self._sizes = dict(self._open_files())
            elif dict(os.environ) != self._environment:
                os.environ.clear()
                os.environ.update(self._environment)
            for number, size in self._sizes.items():
                with contextlib.suppress(OSError):
                    if number not in (1, 2) and os.fstat(number).st_size > size:
                        os.ftruncate(number, size)
                        os.lseek(number, size, os.SEEK_SET)
            for path, content in reversed(list(self._before.items())):
                _write(path, content)
            self._sizes = dict(self._open_files())
            self._before.clear()
            self._seen = _stats()

    def changes(self, files: Iterable[IO[Any]] = ()) -> tuple[str, dict[str, str]]:
        """What was printed since it was put back, and what files and variables of the environment hold now, or have in
        addition."""
        with self._not_watched():
            _flush(files)
            found: dict[str, str] = {}
            printed = ""
            for number, size in self._sizes.items():
                with contextlib.suppress(OSError):
                    path = os.readlink(f"/proc/self/fd/{number}")
                    added = _read_from(path, size)
                    if number == 1:
                        printed = added.decode(errors="replace")
                    elif added and number != 2:
                        found[_name(path)] = _text(added)
            now = _stats()
            for path in now:
                if path not in self._seen:
                    self._before.setdefault(path, None)
                elif self._seen[path] != now[path] and path not in self._before:
                    found.setdefault(_name(path), _text(_read(path)))
            for path, content in self._before.items():
                if (after := _read(path)) != content:
                    found[_name(path)] = _text(after.removeprefix(content or b"") if after is not None else None)
            before = self._environment or {}
            for name in {**before, **os.environ}:
                if os.environ.get(name) != before.get(name):
                    found[f"os.environ[{name!r}]"] = os.environ.get(name, "gone")
            return printed, found

    def _audited(self, event: str, args: tuple[Any, ...]) -> None:
        if self._busy or not args or isinstance(args[0], int):
            return
        if event == "open" and not (isinstance(args[2], int) and args[2] & _WRITES):
            return
        with self._not_watched():
            for given in args[: 2 if event == "os.rename" else 1]:
                path = os.path.realpath(os.fsdecode(given))
                if not self._is_own(path):
                    self._changing(path, exclusive=event == "os.mkdir" or (event == "open" and args[2] & os.O_EXCL))

    def _changing(self, path: str, exclusive: bool) -> None:
        assert self._made is not None
        mark = self._made / hashlib.sha256(path.encode(errors="replace")).hexdigest()
        if exclusive and mark.exists():
            # Another process of the same program, or an earlier call, has made it.
            with contextlib.suppress(OSError):
                (os.rmdir if os.path.isdir(path) else os.unlink)(path)
        if not os.path.lexists(path):
            mark.touch()
        if self._environment is not None and path not in self._before:
            self._before[path] = _read(path)

    def _is_own(self, path: str) -> bool:
        return path.startswith((self._own, "/dev/", "/proc/")) or "__pycache__" in path

    def _open_files(self) -> Iterator[tuple[int, int]]:
        """The descriptors and sizes of the files that are open for writing."""
        with contextlib.suppress(OSError):
            for name in os.listdir("/proc/self/fd"):
                with contextlib.suppress(OSError, ValueError):
                    path = os.readlink(f"/proc/self/fd/{name}")
                    lines = Path(f"/proc/self/fdinfo/{name}").read_text().splitlines()
                    flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))
                    is_output = name in ("1", "2") or not self._is_own(path)
                    if flags & (os.O_WRONLY | os.O_RDWR) and is_output and os.path.isfile(path):
                        yield int(name), os.path.getsize(path)

    @contextlib.contextmanager
    def _not_watched(self) -> Iterator[None]:
        before, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = before


OUTSIDE = Outside()


def _flush(files: Iterable[IO[Any]]) -> None:
    for file in (sys.stdout, sys.stderr, *files):
        with contextlib.suppress(OSError, ValueError):
            file.flush()


def _stats() -> dict[str, tuple[int, int]]:
    found = {}
    with contextlib.suppress(OSError), os.scandir() as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                about = entry.stat()
                found[os.path.realpath(entry.path)] = (about.st_mtime_ns, about.st_size)
    return found


def _read(path: str) -> bytes | None:
    return _read_from(path, 0) if os.path.isfile(path) else None


def _read_from(path: str, start: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(max(start, os.path.getsize(path) - MOST_BYTES))
        return file.read()


def _write(path: str, content: bytes | None) -> None:
    with contextlib.suppress(OSError):
        if content is not None:
            # An open descriptor keeps its file.
            with open(path, "r+b" if os.path.exists(path) else "wb") as file:
                file.truncate(0)
                file.write(content)
        elif os.path.isdir(path):
            os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)


def _name(path: str) -> str:
    return f"file {os.path.relpath(path)}"


def _text(content: bytes | None) -> str:
    if content is None:
        return "gone"
    if len(content) <= LONGEST_TEXT and content.isascii():
        return content.decode("ascii")
    return f"{len(content)} bytes ({hashlib.sha256(content).hexdigest()[:8]})"
