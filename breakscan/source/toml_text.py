"""Texts in TOML: reads files of users, quotes what is written."""

import json
import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SURROGATE = re.compile("[\ud800-\udfff]")


class TomlProblem(Exception):
    """A text is not TOML that can be read; ``line`` says where, from 1, if that is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(reason)


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a text.  Raises TomlProblem, whatever is wrong with it."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+)", str(error))
        raise TomlProblem(f"not valid TOML: {error}", int(at[1]) if at else None) from error
    except RecursionError as error:
        raise TomlProblem("cannot be read: its values are nested too deeply") from error
    except ValueError as error:  # a number with thousands of digits
        raise TomlProblem(f"cannot be read: {error}") from error


def quoted(text: str) -> str:
    """A basic string.  What is no Unicode text, as parts of file names may be, has no place in one."""
    return json.dumps(_SURROGATE.sub("\ufffd", text), ensure_ascii=False).replace("\x7f", "\\u007f")
