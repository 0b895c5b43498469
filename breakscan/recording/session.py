"""The folder of a run: what a recording needs to be read again later, even where breakscan itself was killed.  A folder
holds a manifest, ``run.json``, and the records of each process.  That of a distributed job holds such a folder for each
rank, ``rank-0``, and in ``restart-1`` those of the job's second start."""

import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from platformdirs import user_cache_path

from breakscan import __version__
from breakscan.model.dataclass_json import decoder
from breakscan.model.words import InputError
from breakscan.recording.launch import ProgramExit, Rank, is_running, own_rank, shared_folder
from breakscan.recording.recording import SUFFIX, TORCH_IMPORTED, cut_by, read_recording
from breakscan.recording.records import Record
from breakscan.source.regular_files import read_regular_file

FORMAT = 9  # grows when records or manifest change so that another breakscan cannot read them
MANIFEST = "run.json"
SOURCES = "sources.json"  # the file with the sources that the report showed, by path: they may change or move
_RANK = "rank-"
_RESTART = "restart-"


class SessionError(InputError):
    """A folder cannot be recorded into, or holds no recording that can be read.  Says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The facts about a run besides its records.  Times are seconds since the epoch.  ``pid`` is breakscan's own on
    ``host``.  ``ended``, ``seconds`` and ``status`` are those of the program, and None until it has ended."""

    format: int
    breakscan: str
    argv: tuple[str, ...]
    cwd: str
    python: str
    host: str
    pid: int
    rank: Rank | None
    started: float
    ended: float | None = None
    seconds: float | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A run that is about to be recorded into ``folder``.  ``root`` is that of the job; if ``kept``, it stays."""

    root: Path
    folder: Path
    manifest: Manifest
    kept: bool

    @property
    def rank(self) -> Rank | None:
        return self.manifest.rank

    @property
    def reports(self) -> bool:
        """Return whether this process reports: of the ranks of a machine, the first."""
        return self.rank is None or self.rank.local_rank == 0

    def end(self, outcome: ProgramExit) -> None:
        """Notes how the program ended.  Raises OSError where the disk does not take it."""
        ended = replace(self.manifest, ended=time.time(), seconds=outcome.seconds, status=outcome.status)
        # Where the rank that reports has waited long enough, the folder is gone.
        with contextlib.suppress(FileNotFoundError):
            _write_manifest(self.folder, ended)

    def keep_sources(self, texts: Mapping[str, str]) -> None:
        """Keeps the sources of the run with its recording.  Raises OSError where the disk does not take them."""
        _replace(self.folder / SOURCES, json.dumps(dict(texts)))

    def discard(self) -> None:
        """Deletes the recording, unless it is to be kept: the process that reports, that of all ranks."""
        if not self.kept:
            shutil.rmtree(self.root if self.reports else self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class RecordingPart:
    """The recording of one rank, or of a program that has no ranks: its processes, those that were started first in
    front.  ``cut_by`` is what kept records from being written, where something did.  ``sources`` are texts by path."""

    folder: Path
    manifest: Manifest
    processes: Sequence[Sequence[Record]]
    torch_imported: bool
    cut_by: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """Return whether breakscan still waits for the program's end."""
        on_this_host = self.manifest.host == socket.gethostname()
        return self.manifest.ended is None and on_this_host and is_running(self.manifest.pid)

    @property
    def seconds(self) -> float:
        """The program's wall time; where its end is not known, until the last record."""
        if self.manifest.seconds is not None:
            return self.manifest.seconds
        written = [path.stat().st_mtime for path in self.folder.glob(f"*{SUFFIX}")]
        return max(0.0, max(written, default=self.manifest.started) - self.manifest.started)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A recording that was read: one part, or one a rank.  ``earlier`` are the folders of the job's earlier starts."""

    folder: Path
    parts: Sequence[RecordingPart]
    earlier: Sequence[Path] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        return self.parts[0].manifest.argv

    @property
    def cwd(self) -> str:
        """The working directory of the program when it started."""
        return self.parts[0].manifest.cwd

    @property
    def sources(self) -> Mapping[str, str]:
        return {path: text for part in self.parts for path, text in part.sources.items()}


def start_session(argv: Sequence[str], save: Path | None = None) -> Session:
    """Makes the folder of a run of ``argv`` by this process: a temporary one, or ``save``.  Raises SessionError where
    ``save`` holds something already or cannot be made, and JobError where the ranks of a job cannot share one."""
    rank = own_rank(os.environ)
    if save is not None:
        root, folder = _saved(save.absolute(), rank)
    elif rank is not None and rank.local_size > 1:
        root = shared_folder(os.environ)
        folder = rank_folder(root, rank.rank)
        folder.mkdir(mode=0o700, exist_ok=True)
    else:
        root = folder = Path(tempfile.mkdtemp(prefix="breakscan-"))
    manifest = Manifest(
        format=FORMAT,
        breakscan=__version__,
        argv=tuple(argv),
        cwd=os.getcwd(),
        python=sys.executable,
        host=socket.gethostname(),
        pid=os.getpid(),
        rank=rank,
        started=time.time(),
    )
    try:
        _write_manifest(folder, manifest)
    except OSError as error:
        raise SessionError(f"cannot write {folder}: {error.strerror}") from error
    return Session(root, folder, manifest, kept=save is not None)


def rank_folder(root: Path, rank: int) -> Path:
    return root / f"{_RANK}{rank}"


def read_run(folder: Path, ranks: Collection[int] | None = None) -> RecordedRun:
    """Reads the recording in a folder; of a job, its last start, and of that only ``ranks`` where they are given.
    Raises SessionError where there is none, or one that this breakscan cannot read."""
    if not folder.is_dir():
        raise SessionError(f"there is no folder {folder}")
    restarts = _numbered(folder, _RESTART)
    latest = restarts[max(restarts)] if restarts else folder
    by_rank = {rank: path for rank, path in _numbered(latest, _RANK).items() if ranks is None or rank in ranks}
    folders = [by_rank[rank] for rank in sorted(by_rank)] or [latest]
    parts = [_read_part(path) for path in folders if (path / MANIFEST).exists()]
    if not parts:
        raise SessionError(f"{folder} holds no recording: breakscan explain --save makes one")
    earlier = [restarts[number] for number in sorted(restarts)[:-1]]
    return RecordedRun(folder, parts, [folder, *earlier] if restarts else [])


def read_manifest(folder: Path) -> Manifest:
    """The manifest in a folder.  Raises SessionError where there is none that can be read."""
    path = folder / MANIFEST
    with _readable(path):
        values = json.loads(read_regular_file(path)[0])
        if values["format"] != FORMAT:
            remedy = "upgrade breakscan" if values["format"] > FORMAT else "record the program again"
            by = values["breakscan"]
            # The format can change between two releases, too.
            other = f" by breakscan {by}" if by != __version__ else ""
            raise SessionError(
                f"{folder} was recorded{other} in format {values['format']}, and this is breakscan {__version__}, "
                f"which reads format {FORMAT}: {remedy}"
            )
        rank = values.pop("rank")
        known = [None if field.name == "rank" else values[field.name] for field in fields(Manifest)]
        manifest: Manifest = decoder(Manifest)(known)
        return replace(manifest, rank=None if rank is None else Rank(**rank))


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raises SessionError where a file cannot be read."""
    try:
        yield
    except SessionError:
        raise
    except OSError as error:
        raise SessionError(f"cannot read {error.filename or path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SessionError(f"{path} is damaged, so the recording cannot be read") from error


def _saved(root: Path, rank: Rank | None) -> tuple[Path, Path]:
    """The folders of a run that is to be kept in ``root``: of the job, and of this process."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in root.iterdir()}
        if rank is None:
            if names:
                raise SessionError(f"{root} is not empty: name a new folder to save the recording in")
            return root, root
        foreign = sorted(name for name in names if not name.startswith((_RANK, _RESTART)))
        job = root / f"{_RESTART}{rank.restart}" if rank.restart else root
        folder = rank_folder(job, rank.rank)
        if foreign or folder.exists():
            held = f"{folder} holds a recording already" if folder.exists() else f"{root} holds {foreign[0]}"
            raise SessionError(f"{held}: name a new folder to save the recording in")
        folder.mkdir(parents=True)
    except OSError as error:
        raise SessionError(f"cannot save the recording in {root}: {error.strerror}") from error
    return job, folder


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest at once or not at all: others read it at any time. On a full disk it replaces the old one."""
    text = json.dumps(asdict(manifest), indent=1) + "\n"
    path = folder / MANIFEST
    try:
        _replace(path, text)
    except OSError:
        if not path.exists():
            raise
        with path.open("r+", encoding="utf-8") as file:
            file.write(text)
            file.truncate()


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def _read_part(folder: Path) -> RecordingPart:
    imported = (folder / TORCH_IMPORTED).exists()
    manifest = read_manifest(folder)
    sources, path = {}, folder / SOURCES
    with _readable(folder):
        records = read_recording(folder)
    # None were kept where breakscan was killed, or the report could not be made.
    with _readable(path), contextlib.suppress(FileNotFoundError):
        sources = decoder(dict[str, str])(json.loads(read_regular_file(path)[0]))
    return RecordingPart(folder, manifest, records, imported, cut_by(folder), sources)


def _numbered(folder: Path, prefix: str) -> dict[int, Path]:
    paths = ((path.name.removeprefix(prefix), path) for path in folder.glob(f"{prefix}*") if path.is_dir())
    return {int(number): path for number, path in paths if number.isdecimal()}


MOST_SECONDS = 30.0
_SECONDS_IN_SILENCE = 2.0
_SECONDS_WHEN_ASKED_TO_END = 3.0  # torchrun asks all ranks at once to end, and gives them half a minute
_PAUSE = 0.05


def wait_for_ranks(session: Session, say: Callable[[list[int]], None], asked_to_end: Callable[[], bool]) -> None:
    """Waits until the other ranks of this machine have ended, at most ``MOST_SECONDS``.  ``say`` is called once with
    what it waits for, if that takes more than a moment."""
    started = time.monotonic()
    deadline = started + MOST_SECONDS
    hurried = said = False
    while (running := unfinished_ranks(session)) and (now := time.monotonic()) < deadline:
        if not said and now > started + _SECONDS_IN_SILENCE:
            say(running)
            said = True
        if not hurried and asked_to_end():
            deadline = min(deadline, now + _SECONDS_WHEN_ASKED_TO_END)
            hurried = True
        time.sleep(_PAUSE)


def unfinished_ranks(session: Session) -> list[int]:
    """The other ranks of this machine that have not ended, or not begun."""

    def has_ended(rank: int) -> bool:
        try:
            manifest = read_manifest(rank_folder(session.root, rank))
        except SessionError:
            return False
        return manifest.ended is not None or not is_running(manifest.pid)

    own = session.rank
    return [] if own is None else [r for r in own.local_ranks if r != own.rank and not has_ended(r)]


VARIABLE = "BREAKSCAN_RUNS"  # the name of an environment variable
MOST_BYTES = 200_000_000  # the most bytes of all recordings that are kept
MOST_DAYS = 7


def recent_folder() -> Path | None:
    """The folder of the recordings that are kept, each in a folder of its own: :data:`VARIABLE` names it, and
    switches this off where it is empty.  Nobody else may read it: recordings hold source text."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named).absolute() if named else None
    return user_cache_path("breakscan", appauthor=False) / "runs"


def can_keep() -> bool:
    folder = recent_folder()
    if folder is None:
        return False
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.access(folder, os.W_OK | os.X_OK)


def keep_recent(recording: Path) -> None:
    """Moves a recording to those that are kept, and deletes the oldest.  One that cannot be, or is too large, goes."""
    try:
        folder = recent_folder()
        if folder is not None and can_keep() and _size(recording) <= MOST_BYTES:
            # By name, the newest is the last.
            shutil.move(recording, folder / f"{time.time_ns():020}-{os.getpid()}")
            room, oldest = MOST_BYTES, time.time() - MOST_DAYS * 86_400
            for run in _newest_first():
                room -= _size(run)
                if room < 0 or run.stat().st_mtime < oldest:
                    shutil.rmtree(run, ignore_errors=True)
    except OSError:
        # A full disk: what was reported is more important than what may be asked for again.
        pass
    finally:
        shutil.rmtree(recording, ignore_errors=True)


def last_run() -> Path:
    """The folder of the newest recording.  Raises SessionError where there is none."""
    runs = _newest_first()
    if not runs:
        raise SessionError(
            f"no recording is kept: breakscan explain leaves one for {MOST_DAYS} days, unless {VARIABLE} is empty"
        )
    return runs[0]


def _newest_first() -> list[Path]:
    folder = recent_folder()
    if folder is None or not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if path.is_dir()), reverse=True)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
