"""Processes on this machine, and the ranks of a distributed job: as torchrun names them in the environment, and the
folder that the ranks of one machine share without talking to each other."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from breakscan.model.words import InputError


def signal_name(number: int) -> str:
    """``SIGKILL``; ``signal 77`` where the system has no name for it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_SAME_FOR_ALL = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "GROUP_RANK")
_START_TIME = 19
"""The field of ``/proc/PID/stat`` is the start time, counted after the name of the program."""


class JobError(InputError):
    """The ranks of a job cannot share a folder.  Says why."""


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank of a job: its number of ``world_size``, its number among the ``local_size`` ranks of this machine, and
    how often the job was started again before.  ``local_size`` is 1 where the launcher does not say it."""

    rank: int
    world_size: int
    local_rank: int = 0
    local_size: int = 1
    restart: int = 0

    @property
    def local_ranks(self) -> range:
        """The ranks of this machine: a launcher numbers them without gaps."""
        first = self.rank - self.local_rank
        return range(first, first + self.local_size)


def own_rank(environment: Mapping[str, str]) -> Rank | None:
    """The rank that a process has in such an environment; None outside a job of several ranks."""
    rank, world_size = (number_in(environment, name) for name in ("RANK", "WORLD_SIZE"))
    if rank is None or world_size is None or world_size < 2:
        return None
    local_rank, local_size = (number_in(environment, name) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    restart = number_in(environment, "TORCHELASTIC_RESTART_COUNT") or 0
    if local_rank is None or local_size is None:
        return Rank(rank, world_size, restart=restart)
    return Rank(rank, world_size, local_rank, local_size, restart)


def shared_folder(environment: Mapping[str, str]) -> Path:
    """The temporary folder of this start of the job on this machine: all its ranks name it alike.  Made if need be.

    Raises JobError where something else has its name: the temporary folder is open to all users.
    """
    key = [str(os.getuid()) if hasattr(os, "getuid") else "", *(environment.get(name, "") for name in _SAME_FOR_ALL)]
    digest = hashlib.sha256("\0".join([*key, *_launcher()]).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"breakscan-job-{digest}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
            raise JobError(f"{folder} belongs to another user: set TMPDIR to a folder of your own") from None
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise JobError(f"{folder} is open to other users: delete it") from None
    except OSError as error:
        raise JobError(f"cannot make {folder}: {error.strerror}") from error
    return folder


def is_running(pid: int) -> bool:
    """Return whether there is such a process on this machine, one that has ended and was not waited for left out.
    Always so on Windows, where the signal that asks for it elsewhere is Ctrl-C."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    fields = _stat(pid)
    return not fields or fields[0] not in ("Z", "X")


def _launcher() -> tuple[str, ...]:
    """The process that started the ranks, and when it started: which distinguishes two jobs of one name.

    It is the nearest process above that was not started as a rank itself: between it and us there can be others, such
    as a shell.
    """
    pid = os.getppid()
    while (fields := _stat(pid)) and _is_rank(pid):
        pid = int(fields[1])
    return (str(pid), fields[_START_TIME] if fields else "")


def _is_rank(pid: int) -> bool:
    try:
        return any(entry.startswith(b"RANK=") for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return False


def _stat(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` after the name: its state, its parent, …  Empty where it does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def number_in(environment: Mapping[str, str], variable: str) -> int | None:
    """The number that a variable holds, if it holds one."""
    text = environment.get(variable, "")
    return int(text) if text.isdecimal() else None
