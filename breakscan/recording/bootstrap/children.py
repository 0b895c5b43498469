"""Hands the recording on to the Python processes that the program starts.  Only the environment of the child carries
it, and the child puts that back before its program starts: parent and child see what they see without breakscan.
Loaded by ``sitecustomize``, and as careful: it imports nothing new."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

_RECORDING = b"BREAKSCAN_RECORDING"
_KEPT_PATH = b"BREAKSCAN_PYTHONPATH"
_PATH = b"PYTHONPATH"
_KEEP_US_OUT = b"EIS"  # options of Python: without the environment, isolated, without site
_TAKE_A_VALUE = (b"-W", b"-X", b"--check-hash-based-pycs")
_STARTERS = (b"env", b"ionice", b"nice", b"nohup", b"numactl", b"setsid", b"stdbuf", b"taskset", b"time", b"timeout")
"""Programs that run another one in the environment that they have."""
_OVERRULE = (b"PYTHONPATH=", b"-i", b"--ignore-environment")  # of ``env`` or a shell: replace our environment
_SHELLS = (b"sh", b"bash", b"dash", b"zsh")
_COMPILER_WORKERS = (b"/torch/_inductor/", b"torch._inductor.")


class Children:
    """Knows which of the processes that are about to start are to be recorded, and marks their environment."""

    def __init__(self, folder: str, injected: str) -> None:
        self._folder = os.fsencode(folder)
        self._injected = os.fsencode(injected)
        self._python = os.path.realpath(os.fsencode(sys.executable))

    def hook_os(self) -> None:
        """The ways of ``os`` to start a program, of which its other ways are made."""

        def execv(path: "Any", argv: "Any", /) -> "Any":
            env = self._marked([path], argv, None)
            return original["execv"](path, argv) if env is None else original["execve"](path, argv, _mapping(env))

        def execve(path: "Any", argv: "Any", env: "Any") -> "Any":
            marked = self._marked([path], argv, env)
            return original["execve"](path, argv, env if marked is None else _mapping(marked))

        def spawning(name: str) -> "Callable[..., int]":
            def posix_spawn(path: "Any", argv: "Any", env: "Any", /, **options: "Any") -> int:
                marked = self._marked([path], argv, env)
                pid: int = original[name](path, argv, env if marked is None else _mapping(marked), **options)
                return pid

            return posix_spawn

        spawns = {name: spawning(name) for name in ("posix_spawn", "posix_spawnp") if hasattr(os, name)}
        ours = {"execv": execv, "execve": execve, **spawns}
        original = {name: getattr(os, name) for name in ours}
        for name, replacement in ours.items():
            setattr(os, name, _dressed(replacement, original[name], "os"))

    def hook_subprocess(self, module: "ModuleType") -> None:
        """``_posixsubprocess``, through which ``subprocess`` and ``multiprocessing`` start programs."""
        original = module.fork_exec

        def fork_exec(
            args: "Any", executables: "Any", close: "Any", kept: "Any", cwd: "Any", env: "Any", /, *rest: "Any"
        ) -> int:
            marked = self._marked(executables, args, env, cwd)
            pid: int = original(args, executables, close, kept, cwd, env if marked is None else marked, *rest)
            return pid

        module.fork_exec = _dressed(fork_exec, original, module.__name__)  # type: ignore[attr-defined]
        known = sys.modules.get("subprocess")
        if getattr(known, "_fork_exec", None) is original:
            known._fork_exec = module.fork_exec  # type: ignore[union-attr]

    def _marked(
        self, executables: "Iterable[Any]", arguments: "Any", env: "Any", folder: "Any" = None
    ) -> "list[bytes] | None":
        """The environment in which the process records; None where it is to be left alone."""
        try:
            words = [os.fsencode(word) for word in arguments]
            paths = [os.path.join(os.fsencode(folder or b""), os.fsencode(path)) for path in executables]
            found = next((path for path in paths for path in _found(path)), None)
            if found is None or not self._is_recorded(found, words):
                return None
            return self._mark(_block(env))
        except Exception:
            # What is wrong with the arguments, the original function says.
            return None

    def _mark(self, env: "list[bytes]") -> "list[bytes] | None":
        names = [entry.partition(b"=")[0] for entry in env]
        if _RECORDING in names:
            # A breakscan that the program runs: its own recording.
            return None
        if _PATH in names:
            place = names.index(_PATH)
            path = env[place].partition(b"=")[2]
            env[place] = b"=".join([_PATH, os.pathsep.encode().join([self._injected, *([path] if path else [])])])
            env.append(_KEPT_PATH + b"=" + path)
        else:
            env.append(_PATH + b"=" + self._injected)
        env.append(_RECORDING + b"=" + self._folder)
        return env

    def _is_recorded(self, executable: bytes, words: "list[bytes]") -> bool:
        """Return whether this is the Python of this process, for a program that may be recorded."""
        if self._is_python(executable):
            return _lets_us_in(words[1:])
        if self._is_script(executable):
            return True
        name = os.path.basename(executable)
        if name in _SHELLS and len(words) == 3 and words[1] == b"-c":
            words = _simple_command(words[2])
        elif name in _STARTERS:
            words = words[1:]
        else:
            return False
        for number, word in enumerate(words):
            if word.startswith(_OVERRULE):
                return False
            for path in _found(word):
                if self._is_python(path):
                    return _lets_us_in(words[number + 1 :])
                if self._is_script(path) or os.path.basename(path) not in _STARTERS:
                    return self._is_script(path)
        return False

    def _is_python(self, path: bytes) -> bool:
        return os.path.realpath(path) == self._python

    def _is_script(self, path: bytes) -> bool:
        """Return whether the file is one like ``torchrun``, that names its Python in its first line."""
        with open(path, "rb") as file:
            first = file.readline(4096)
            if not first.startswith(b"#!"):
                return False
            words = first[2:].split()
            if words[:1] == [b"/bin/sh"]:
                # What installers write where the path of Python is too long for a first line.
                words = file.readline(4096).replace(b"'''exec'", b"").replace(b'"', b"").split()
        if words and os.path.basename(words[0]) == b"env":
            words = words[1:]
        return any(self._is_python(path) for word in words[:1] for path in _found(word)) and _lets_us_in(words[1:])


def _lets_us_in(words: "list[bytes]") -> bool:
    """Return whether Python's options do, and the program is not one that torch's compiler runs for itself."""
    rest = iter(words)
    for word in rest:
        if not word.startswith(b"-") or word == b"-":
            return not any(name in word for name in _COMPILER_WORKERS)
        if word.startswith(b"--"):
            flags = b""
        else:
            ends = [place for place in map(word.find, (b"m", b"c", b"W", b"X")) if place > 0]
            flags = word[: min(ends, default=len(word))]
        if any(flag in flags for flag in _KEEP_US_OUT):
            return False
        if not word.startswith(b"--") and word[len(flags) : len(flags) + 1] in (b"m", b"c"):
            module = word[len(flags) + 1 :] or next(rest, b"")
            return not module.startswith(_COMPILER_WORKERS)
        if word in _TAKE_A_VALUE:
            next(rest, b"")
    return True


def _simple_command(text: bytes) -> "list[bytes]":
    """The words of a shell command that runs one program; empty for more, which would see what is meant for Python."""
    quote = ""
    # ``2>&1`` runs nothing.
    text = text.replace(b">&", b">").replace(b"&>", b">")
    for character in text.decode("latin-1"):
        if character in "`$\n" or (not quote and character in ";&|("):
            return []
        if character in "'\"":
            quote = "" if character == quote else quote or character
    words = text.split()
    while words and words[0] == b"exec":
        words = words[1:]
    return words


def _found(program: "Any") -> "list[bytes]":
    """The file that runs under that name, or nothing."""
    name = os.fsencode(program)
    folders = [b""] if b"/" in name else os.fsencode(os.environ.get("PATH", os.defpath)).split(b":")
    paths = (os.path.join(folder, name) for folder in folders)
    return [path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)][:1]


def _inherited() -> "list[bytes]":
    """The environment that a child inherits.  C code can have changed it without Python noticing."""
    ctypes: Any = sys.modules.get("ctypes")
    if ctypes is None or sys.platform != "linux":
        return [name + b"=" + value for name, value in os.environb.items()]
    block = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.pythonapi, "environ")
    found: list[bytes] = []
    while (entry := block[len(found)]) is not None:
        found.append(entry)
    return found


def _block(env: "Any") -> "list[bytes]":
    """An environment in the form in which a process gets it; None means the inherited one."""
    if env is None:
        return _inherited()
    if isinstance(env, list):
        return list(env)
    return [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in env.items()]


def _mapping(block: "list[bytes]") -> "dict[bytes, bytes]":
    return {name: value for name, _, value in (entry.partition(b"=") for entry in block)}


def _dressed(ours: "Any", original: "Callable[..., Any]", module: str) -> "Any":
    """Our function, with the looks of the original, and found by pickle under its name."""
    ours.__qualname__ = ours.__name__ = original.__name__
    ours.__module__, ours.__doc__ = module, original.__doc__
    return ours
