"""One Python file in memory: its text, its ast, and a conversion of ast positions to columns in characters."""

import ast
import io
import linecache
import tokenize
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from breakscan.model.findings import Site, SourceError


class SourceProblem(Exception):
    """A file cannot be read or parsed; ``error`` says where and why."""

    def __init__(self, error: SourceError) -> None:
        self.error = error
        super().__init__(f"{error.path}:{error.line}:{error.column}: {error.message}")

    @classmethod
    def at(cls, path: str, message: str, line: int = 1, column: int = 1, *, syntax: bool = False) -> "SourceProblem":
        return cls(SourceError(path, line, column, message, syntax))


@dataclass(eq=False)
class SourceModule:
    """A parsed file.  ``display`` is its path in reports; line ends in ``text`` are all ``\\n``."""

    path: Path
    display: str
    text: str
    tree: ast.Module

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends; line 1 is the first."""
        return self.text.split("\n")

    def column(self, line: int, byte_offset: int) -> int:
        """The column, in characters from 1, of an ast position: a line from 1 and a UTF-8 offset from 0."""
        if self.text.isascii() or (text := self.lines[line - 1]).isascii():
            return byte_offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:byte_offset].decode("utf-8", "surrogatepass")) + 1

    def segment(self, site: Site) -> str:
        """The text of a site."""
        lines = self.lines[site.line - 1 : site.end_line]
        lines[-1] = lines[-1][: site.end_column - 1]
        lines[0] = lines[0][site.column - 1 :]
        return "\n".join(lines)


def read_source(path: Path, display: str) -> bytes:
    """The content of a file.  Raises SourceProblem if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceProblem.at(display, f"cannot be read: {error.strerror}") from error


def decode_source(data: bytes, display: str) -> str:
    """The text of a Python file, by its BOM or coding comment, else UTF-8; line ends become ``\\n``.

    Raises SourceProblem if the bytes cannot be decoded."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except LookupError as error:  # a codec that is not for text, since Python 3.14
        raise SourceProblem.at(display, f"cannot be decoded: {error}") from error
    except SyntaxError as error:
        if (at := _first_undecodable(data)) is not None:
            raise SourceProblem.at(display, "cannot be decoded: not valid UTF-8", *at) from error
        raise SourceProblem.at(display, f"cannot be decoded: {error.msg}") from error
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        reason = f"cannot be decoded: not valid {error.encoding.upper().removesuffix('-SIG')} ({error.reason})"
        raise SourceProblem.at(display, reason, *_position(data[: error.start])) from error
    except (LookupError, UnicodeError) as error:
        raise SourceProblem.at(display, f"cannot be decoded: {error}") from error
    return with_plain_line_ends(text)


def parse_module(text: str, path: Path, display: str) -> SourceModule:
    """The module of a text.  Raises SourceProblem if it cannot be parsed."""
    text = with_plain_line_ends(text)
    if "\0" in text:
        at = _position(text[: text.index("\0")].encode("utf-8", "surrogatepass"))
        raise SourceProblem.at(display, "cannot be parsed: a NUL byte in the source", *at, syntax=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escape sequences are not reported
            tree = ast.parse(text)
    except SyntaxError as error:
        at = max(error.lineno or 1, 1), max(error.offset or 1, 1)
        raise SourceProblem.at(display, f"cannot be parsed: {error.msg}", *at, syntax=True) from error
    except (RecursionError, MemoryError) as error:
        raise SourceProblem.at(display, "cannot be parsed: nested too deeply") from error
    except ValueError as error:
        raise SourceProblem.at(display, f"cannot be parsed: {error}", syntax=True) from error
    return SourceModule(path, display, text, tree)


def _first_undecodable(data: bytes) -> tuple[int, int] | None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _position(data[: error.start])
    return None


def _position(before: bytes) -> tuple[int, int]:
    """The line and column, both from 1, of the byte after ``before``."""
    text = with_plain_line_ends(before.decode("utf-8", "replace"))
    return text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1


def with_plain_line_ends(text: str) -> str:
    """The text with ``\\n`` for every line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def remember_source(path: str, text: str) -> None:
    """Stores the text of a path that names no file, such as ``<string>``, where tracebacks also find it."""
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
