"""The arguments of the tools: their JSON schemas, their values, and the folder that their paths lie below."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from breakscan.report.printable import visible
from breakscan.rulebook.document import nearest
from breakscan.source.files import SKIPPED_FOLDERS
from breakscan.source.paths import relative_to


class ToolFailure(Exception):
    """A call that cannot be answered, with the reason and the remedy."""


M = TypeVar("M", bound="ToolArguments")

ENTRIES = 20
"""Entries of an answer, where the call does not say how many."""
MOST_PROBLEMS = 5


def _listed(value: Any) -> Any:
    """Accept a list as its JSON, or a single word for a list of one, as some clients send them."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
        return parsed if isinstance(parsed, list) else [value]
    return value


Text = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Texts = Annotated[list[Text], BeforeValidator(_listed), Field(max_length=1000)]


class ToolArguments(BaseModel):
    """The arguments of a tool.  Another name is an error: a misspelt ``path`` would check everything."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Paged(ToolArguments):
    limit: int = Field(ENTRIES, ge=1, le=200)
    offset: int = Field(0, ge=0, le=10**9)


class CheckArguments(Paged):
    paths: Texts = ["."]
    select: Texts = []
    diff: Annotated[str, StringConstraints(pattern=r"^[^-\s\x00][^\s\x00]*$", max_length=200)] | None = None


class FixArguments(Paged):
    paths: Texts = ["."]
    select: Texts = []
    rewrites: Texts = []
    unsafe: bool = False
    write: bool = False


class RunArguments(Paged):
    program: Text | None = None
    arguments: Texts = []
    as_module: bool = False
    compile: Texts = []
    seconds: float | None = Field(None, gt=0, le=86400)
    last: bool = False

    @model_validator(mode="after")
    def _has_a_program(self: M) -> M:
        if bool(getattr(self, "last", False)) == (getattr(self, "program", None) is not None):
            raise ValueError("name a program, or go on with the last run (last)")
        return self


class ExplainArguments(RunArguments):
    pass


class VerifyArguments(RunArguments):
    select: Texts = []
    rewrites: Texts = []
    patch: Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)] | None = None
    write: bool = False


class TuneArguments(RunArguments):
    goal: Literal["step", "compile", "memory"] = "step"
    write: bool = False


class RuleArguments(ToolArguments):
    rule: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]*$", max_length=100)]


_DESCRIPTIONS = {
    "paths": "Files or folders below the root; the root without any.",
    "select": "Only these rules: ids, or starts of ids (BRK1).",
    "diff": "Only what is new since the branch left this commit of git, such as main.",
    "limit": "Entries in the answer.",
    "offset": "Entries to skip.",
    "rewrites": "Only these rewrites, by id.",
    "unsafe": "With write: also write what changes more than speed; each says what.",
    "write": "Change the files.",
    "program": "The Python file to run, below the root; with as_module, the name of a module.",
    "arguments": "Arguments of the program.",
    "as_module": "Run program as python -m does.",
    "compile": "Compile these first, if the program compiles nothing: MODULE:NAME, or :NAME of the program's own.",
    "seconds": "The time limit. What was found until then is reported.",
    "last": "Run nothing: go on with the answer of the last run.",
    "patch": "A unified diff to verify instead of the rewrites.",
    "goal": "What to make small: the time of a step, the time spent compiling, or memory.",
    "rule": "An id such as BRK101, or a name such as branch-on-tensor.",
}
"""An argument means the same in each tool."""


def input_schema(model: type[ToolArguments]) -> dict[str, Any]:
    """Return the JSON schema of the arguments, without what a model that reads it does not need."""
    schema = _plain(model.model_json_schema())
    for name, one in schema["properties"].items():
        one["description"] = _DESCRIPTIONS[name]
    return dict(schema)


def _plain(schema: Any) -> Any:
    """Return a schema without titles and defaults of null, and with the type itself for one that may be null."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _plain(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    if "anyOf" in made:
        (kept,) = [one for one in made.pop("anyOf") if one != {"type": "null"}]
        made = {**kept, **made}
    if "default" in made and made["default"] in (None, [], False):
        del made["default"]
    return made


def read_arguments(model: type[M], values: Mapping[str, Any]) -> M:
    """Return the arguments of a call.  Raises ToolFailure, which names each wrong one."""
    known = list(model.model_fields)
    unknown = [name for name in values if name not in known]
    if unknown:
        name = unknown[0]
        hint = nearest(name, known)
        raise ToolFailure(f"there is no argument {visible(name)}{hint}; there are {', '.join(known)}")
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        found = [
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}" if one["loc"] else one["msg"] for one in error.errors()
        ]
        raise ToolFailure(f"wrong arguments: {visible('; '.join(found[:MOST_PROBLEMS]))}") from error


_PLAIN = re.compile(r"[\w./\x20-]*\w")
"""Names without special characters of .gitignore patterns and of lists with commas."""


class RootFolder:
    """A folder that no path of a call may leave, also by links."""

    def __init__(self, folder: Path) -> None:
        self.folder = os.path.realpath(folder)

    def existing(self, path: str) -> str:
        """Return the path of a file or folder relative to the root, with links resolved.  Raises ToolFailure if it is
        elsewhere, or neither a file nor a folder."""
        if "\0" in path:
            raise ToolFailure("a path has no NUL character: name a file or folder below the root")
        try:
            real = os.path.realpath(os.path.join(self.folder, path))
            relative = "." if real == self.folder else relative_to(real, self.folder)
            if relative is None:
                raise ToolFailure(
                    f"{visible(path)} is outside the root, {self.folder}: name what is below it, or start the server "
                    "with another --root"
                )
            kind = os.stat(real).st_mode
        except OSError as error:
            raise ToolFailure(
                f"cannot read {visible(path)}: {error.strerror}; paths are relative to {self.folder}"
            ) from error
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise ToolFailure(f"{visible(path)} is neither a file nor a folder: name one that is")
        return relative

    def program(self, path: str) -> str:
        """Return the path of a file for Python to run; see :meth:`existing`."""
        relative = self.existing(path)
        if os.path.isdir(os.path.join(self.folder, relative)):
            raise ToolFailure(f"{visible(path)} is a folder: name a Python file, or a module with as_module")
        return relative

    def links_out(self, paths: Sequence[str]) -> list[str]:
        """Return patterns that exclude the links below some paths that lead out of the root.  Raises ToolFailure for a
        link that no pattern can name."""
        found = [link for path in paths for link in self._links(os.path.join(self.folder, path))]
        for link in found:
            if not _PLAIN.fullmatch(link):
                raise ToolFailure(f"{visible(link)} leads out of the root: name paths that do not have it")
        return [f"/{link}" for link in dict.fromkeys(found)]

    def _links(self, top: str) -> Iterator[str]:
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
            for name in files:
                path = os.path.join(folder, name)
                if os.path.islink(path) and relative_to(os.path.realpath(path), self.folder) is None:
                    yield os.path.relpath(path, self.folder).replace(os.sep, "/")
