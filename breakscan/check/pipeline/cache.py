"""Results of earlier runs, kept in a folder: one file for each checked file and set of settings. Nothing is locked: an
entry is moved into place once it is written. One whose checksum or types are wrong is not used, and nothing that
happens to the folder can end a run."""

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from hashlib import blake2b
from pathlib import Path

import breakscan
from breakscan.check.pipeline.results import FileResult
from breakscan.model.dataclass_json import decoder, encode
from breakscan.rulebook.config import Settings, Target
from breakscan.rulebook.library import shipped_rules
from breakscan.source.regular_files import Digests, read_regular_file

DAY = 24 * 60 * 60.0
MONTH = 30 * DAY

TAG = "CACHEDIR.TAG"
TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder holds results of breakscan.  It can be deleted at any time.\n"
    "# See https://bford.info/cachedir/ for what this file is for.\n"
)
MARKS = {TAG: TAG_TEXT, ".gitignore": "*\n"}
_ENTRY = re.compile(r"[0-9a-f]{32}(\.[0-9a-f]{16}\.tmp)?")
_CHECKSUM = 32


class ResultCache:
    """The results that a folder holds for one fingerprint (see :func:`cache_fingerprint`)."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.digests = Digests()
        self._base = os.path.join(folder, "")
        self._seed = blake2b(fingerprint.encode()).digest()
        self._claimed: bool | None = None

    @property
    def writable(self) -> bool:
        """True if results can be kept here; True also where the folder has yet to be made."""
        above = next(f for f in (self.folder, *self.folder.parents) if os.path.lexists(f))
        if not os.path.isdir(above) or not os.access(above, os.W_OK | os.X_OK):
            return False
        return above != self.folder or self._is_ours()

    def get(self, path: Path) -> FileResult | None:
        """The result for a file, given by its absolute path; None unless all that it rests on is as it was."""
        name, key = self._place(path)
        try:
            data, status = read_regular_file(name)
            payload = data[_CHECKSUM:]
            if data[:_CHECKSUM] != _checksum(payload, key):
                return None
            result: FileResult = decoder(FileResult)(json.loads(payload))
            if str(path) not in result.depends or not self.digests.agree(result.depends):
                return None
        except (OSError, ValueError, RecursionError):
            return None
        if time.time() - status.st_mtime > DAY:
            with contextlib.suppress(OSError):
                os.utime(name)  # it is in use: spare it
        return result

    def put(self, path: Path, result: FileResult) -> None:
        """Keeps the result for a file, where that can be done and the file is among those that it depends on."""
        if self._claimed is None:
            self._claimed = self._claim()
        if not self._claimed or str(path) not in result.depends:
            return
        name, key = self._place(path)
        payload = json.dumps(encode(result), separators=(",", ":")).encode()
        with contextlib.suppress(OSError):
            _write(name, _checksum(payload, key) + payload)

    def _place(self, path: Path) -> tuple[str, bytes]:
        """The name of the file's entry, and a key that makes its checksum worthless for any other entry."""
        key = blake2b(os.fsencode(path), key=self._seed, digest_size=32).digest()
        return self._base + key[:16].hex(), key

    def _claim(self) -> bool:
        """Makes the folder a cache and removes entries that were not used for a month; False where it cannot be one."""
        try:
            os.makedirs(self.folder, exist_ok=True)
            if not self._is_ours():
                return False
            for name, text in MARKS.items():
                if not os.path.exists(self._base + name):
                    _write(self._base + name, text.encode())
            oldest = time.time() - MONTH
            with os.scandir(self.folder) as files:
                for file in files:
                    if _ENTRY.fullmatch(file.name) and file.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(file.path)
        except OSError:
            return False
        return True

    def _is_ours(self) -> bool:
        """False for a folder that holds other things: a .gitignore that hides all would do harm there."""
        try:
            return os.path.exists(self._base + TAG) or not os.listdir(self.folder)
        except OSError:
            return False


def _checksum(payload: bytes, key: bytes) -> bytes:
    return blake2b(payload, key=key, digest_size=_CHECKSUM // 2).hexdigest().encode()


def _write(path: str, data: bytes) -> None:
    """Puts a file into place as a whole.  Raises OSError."""
    temporary = f"{path}.{os.urandom(8).hex()}.tmp"
    try:
        with open(temporary, "xb") as stream:
            stream.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


WITHOUT_EFFECT = frozenset(
    {
        *("config_file", "options", "target_torch", "exclude", "no_cache", "cache_dir"),
        *("select", "ignore", "per_file_ignores", "confidence", "baseline"),
    }
)
"""The settings that change no entry.  ``target_torch`` is in the target, with what is installed where it is unset;
``exclude`` only says which files are checked.  An entry holds all findings, those that settings hide too: a file can
hold findings of an entry that is another file's, under other settings.
"""
PARTS = (
    "*.py",
    "model/*.py",
    "check/**/*.py",
    "rulebook/**/*.py",
    "rulebook/torch_facts/data/**/*.json",
    "source/**/*.py",
)
"""The files of the package that a result comes from: not those of the other commands, nor how it is shown."""


def cache_fingerprint(settings: Settings, target: Target, cwd: str) -> str:
    """A digest that changes with whatever could change the result for an unchanged file.  Contents count and not times:
    where breakscan is installed again, as in continuous integration, what was kept still holds."""
    digest = blake2b(digest_size=16)
    kept = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name not in WITHOUT_EFFECT}
    python = sys.implementation.name, sys.version_info[:3]
    digest.update(repr((breakscan.__version__, python, cwd, target.torch, target.ledger, kept)).encode())
    digest.update(installation_digest(Path(breakscan.__file__).parent, shipped_rules(), target.ledger))
    digest.update(_digest(path for folder in settings.rule_folders for path in sorted(folder.glob("BRK*.md"))))
    return digest.hexdigest()


@cache
def installation_digest(package: Path, rules: Path, ledger: str) -> bytes:
    """A digest of breakscan itself, which does not change while a process runs."""
    parts = [path for pattern in PARTS for path in sorted(package.glob(pattern))]
    return _digest([*parts, rules / "ledger" / f"{ledger}.json", *sorted(rules.glob("BRK*.md"))])


def _digest(paths: Iterable[Path]) -> bytes:
    digest = blake2b(digest_size=16)
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        digest.update(repr((path.name, len(content))).encode() + content)
    return digest.digest()
