"""Changes by calls outside of the program's objects: files, the environment, and the text that they print.

``OUTSIDE`` is that of this process.  An audit hook sees which files are opened for writing, removed or renamed; files
that C++ code writes (``torch.save``) are seen in the working directory and its folders, and stay: another program may
have made them."""

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

MOST_BYTES = 16 << 20
"""Of a file that is put back.  Of a larger one, only the end is compared."""
MOST_FILES = 1000
"""In the folders of the working directory that are looked at."""
LONGEST_TEXT = 2000
"""Characters of a file that are compared, and shown, as text."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_STDOUT = "/proc/self/fd/1"
_EXCLUSIVE = os.O_CREAT | os.O_EXCL
_CHANGES = ("os.remove", "os.rename", "os.truncate", "os.mkdir", "os.rmdir")


class Outside:
    """``put_back`` restores what it was when ``put_back`` was called first; ``changes`` are those since then."""

    def __init__(self) -> None:
        self._own: tuple[str, ...] = ()
        """The starts of the paths that are not the program's: the folder of the processes that run it, and caches."""
        self._made = Path()
        self._busy = False
        self._environment: dict[str, str] | None = None
        self._files: dict[str, bytes | None] = {}
        """The former content of the files that were written; None for folders, and for what was not there."""
        self._made_folders: set[str] = set()
        """Those that were to be made since, also where they are there."""
        self._folders: list[str] = []
        self._seen: dict[str, tuple[int, int]] = {}
        """The time and the size of the files in these folders."""
        self._printed = 0

    def install(self, own: Path) -> None:
        """Watches from now on.  ``own`` is the folder of the processes that run the same program."""
        # Inductor keeps its headers in the default folder of its caches, wherever the others are.
        inductor = os.path.join(os.path.realpath(tempfile.gettempdir()), "torchinductor_")
        bytecode = [os.path.realpath(sys.pycache_prefix) + os.sep] if sys.pycache_prefix else []
        self._own = (os.path.realpath(own) + os.sep, inductor, "/dev/", "/proc/", *bytecode)
        self._made = own / "made"
        self._made.mkdir(exist_ok=True)

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if (event == "open" or event in _CHANGES) and not self._busy and not isinstance(args[0], int):
                self._audited(event, args)

        # Dynamo does not trace the files of the import system.
        hook.__code__ = hook.__code__.replace(co_filename="<frozen importlib._bootstrap>")
        sys.addaudithook(hook)

    def put_back(self, open_files: Iterable[IO[Any]] = ()) -> None:
        """Puts back what was changed; ``open_files`` may hold text that is not written yet."""
        with self._not_watched():
            _flush(open_files)
            if self._environment is None:
                self._environment = dict(os.environ)
                self._files = {path: _read(path) for path in self._files}
                self._folders = _folders()
            elif dict(os.environ) != self._environment:
                os.environ.clear()
                os.environ.update(self._environment)
            for path, content in reversed(self._files.items()):
                if _read(path) != content or (content is None and os.path.isdir(path)):
                    _write(path, content)
            for file in open_files:
                with contextlib.suppress(OSError, ValueError):
                    if file.writable():
                        file.seek(0, os.SEEK_END)
            self._printed = _size(_STDOUT)
            self._seen = _stats(self._folders)
            self._made_folders.clear()

    def changes(self, open_files: Iterable[IO[Any]] = ()) -> tuple[str, dict[str, str]]:
        """The text printed since, and what files and variables of the environment hold now, or have in addition."""
        with self._not_watched():
            _flush(open_files)
            now = _stats(self._folders)
            found = {f"folder {os.path.relpath(path)}": "made" for path in self._made_folders}
            for path in {**self._files, **now}:
                after, before = _read(path), self._files.get(path)
                if path.startswith(self._own):
                    continue
                if after != before if path in self._files else now[path] != self._seen.get(path):
                    found[f"file {os.path.relpath(path)}"] = _text(after and after.removeprefix(before or b""))
            was = self._environment or {}
            changed = {name for name in {**was, **os.environ} if os.environ.get(name) != was.get(name)}
            found |= {f"os.environ[{name!r}]": os.environ.get(name, "gone") for name in changed}
            printed = _read(_STDOUT, self._printed) if os.path.isfile(_STDOUT) else None
            return (printed or b"").decode(errors="replace"), found

    def _audited(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and not (isinstance(args[2], int) and args[2] & _WRITES):
            return
        exclusive = event == "os.mkdir" or (event == "open" and args[2] & _EXCLUSIVE == _EXCLUSIVE)
        with self._not_watched():
            for given in args[: 2 if event == "os.rename" else 1]:
                path = os.path.realpath(os.fsdecode(given))
                if f"{path}/".startswith(self._own) or "__pycache__" in path:
                    continue
                mark = self._made / hashlib.sha256(path.encode(errors="replace")).hexdigest()
                if exclusive and mark.exists():
                    # Another process of the same program, or an earlier call, has made it.
                    with contextlib.suppress(OSError):
                        (os.rmdir if os.path.isdir(path) else os.unlink)(path)
                if event == "os.mkdir":
                    self._made_folders.add(path)
                if not os.path.lexists(path):
                    mark.touch()
                if path not in self._files:
                    self._files[path] = _read(path)

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


def _folders() -> list[str]:
    """The working directory, and the folders in it as long as they hold few files."""
    found: list[str] = []
    count = 0
    for folder, inner, names in os.walk("."):
        inner[:] = [name for name in inner if not name.startswith((".", "__"))]
        count += len(names) if found else 0
        if count > MOST_FILES:
            break
        found.append(folder)
    return found


def _stats(folders: Iterable[str]) -> dict[str, tuple[int, int]]:
    found = {}
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    about = entry.stat()
                    found[os.path.realpath(entry.path)] = (about.st_mtime_ns, about.st_size)
    return found


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.isfile(path) else 0


def _read(path: str, start: int = 0) -> bytes | None:
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        file.seek(max(start, _size(path) - MOST_BYTES))
        return file.read()


def _write(path: str, content: bytes | None) -> None:
    with contextlib.suppress(OSError):
        if content is not None:
            # An open descriptor keeps its file.
            with open(path, "r+b" if os.path.exists(path) else "wb") as file:
                file.truncate(0)
                file.write(content)
        elif os.path.lexists(path):
            (os.rmdir if os.path.isdir(path) else os.unlink)(path)


def _text(content: bytes | None) -> str:
    if content is None:
        return "gone"
    if len(content) <= LONGEST_TEXT and content.isascii():
        return content.decode("ascii")
    return f"{len(content)} bytes ({hashlib.sha256(content).hexdigest()[:8]})"
