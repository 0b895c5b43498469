"""Folders of files that a checker could choke on, each built by a function."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from robustness_programs import BLOCKS, EXPRESSIONS, HEAD, blocks, chains

DEPTHS = (90, 900, 5_000)
MANY = 3_000
MODEL = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x, mask=None):
        x = self.linear(x)
        for row in x:
            if row.isnan().any():
                print(row.sum().item())
        return x if mask is None else x[mask]
"""


@dataclass(frozen=True)
class CapturedCall:
    """A folder to check, from inside it.

    ``during`` changes it while the check runs.  ``as_module`` runs ``python -m breakscan``, for which Python looks
    for modules in the working directory first.
    """

    name: str
    build: Callable[[Path], None]
    during: Callable[[Path], None] | None = None
    targets: tuple[str, ...] = (".",)
    formats: tuple[str, ...] = ("json", "full")
    without_privileges: bool = False
    as_module: bool = False


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        _write_at(folder / f"{name}.py", text)


def _write_at(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)


def _nesting(folder: Path) -> None:
    for depth in DEPTHS:
        for name, expression in EXPRESSIONS.items():
            keyword = "async def" if name == "await" else "def"
            body = f"{keyword} f(x: torch.Tensor, *a, **k):\n    y = {expression(depth)}\n    return y\n"
            _write_at(folder / "expressions" / f"{name}_{depth}.py", f"{HEAD}{body}")
            _write_at(folder / "top" / f"{name}_{depth}.py", f"{HEAD}f = x = torch.ones(3)\n{expression(depth)}\n")
        for name, (opener, tail) in BLOCKS.items():
            _write_at(folder / "blocks" / f"{name}_{depth}.py", blocks(opener, depth, tail))
    for name, (opener, tail) in BLOCKS.items():
        _write_at(folder / "blocks" / f"{name}_18.py", blocks(opener, 18, tail))


def _deep_analysis(folder: Path) -> None:
    for name, text in chains():
        _write_at(folder / f"{name}.py", HEAD + text)


def _encodings(folder: Path) -> None:
    text = MODEL
    codecs = (
        "ascii latin-1 utf-8 utf-8-sig utf-7 utf-16 utf-32 cp037 cp1252 rot13 hex base64 zlib bz2 idna punycode "
        "mbcs oem "
        "unicode_escape raw_unicode_escape undefined shift_jis iso2022_jp hz gb18030 utf8 UTF8 nonsense uu quopri"
    )
    for codec in codecs.split():
        _write_at(folder / f"says_{codec}.py", f"# -*- coding: {codec} -*-\n{text}# é\n")
        _write_at(folder / f"says_{codec}_plain.py", f"# coding: {codec}\n{text}")
    for codec in ("utf-16", "utf-16-le", "utf-32", "utf-7", "utf-8-sig", "cp037", "shift_jis"):
        _write_at(folder / f"is_{codec}.py", text.encode(codec))
    for name, data in {
        "latin1": text.encode() + b"# \xe9\n",
        "nul_first": b"\0" + text.encode(),
        "nul_last": text.encode() + b"\0",
        "nul_in_comment": text.encode() + b"# \0\n",
        "nul_in_string": text.encode() + b"s = '\0'\n",
        "only_nul": b"\0" * 100_000,
        "surrogate": text.encode() + b"s = '\xed\xa0\x80'\n",
        "cut_character": text.encode() + b"s = '\xf0\x9f",
        "bom_twice": b"\xef\xbb\xbf" * 2 + text.encode(),
        "bom_inside": text.encode() + b"\xef\xbb\xbfx = 1\n",
        "bom_and_latin1": b"\xef\xbb\xbf# coding: latin-1\n" + text.encode(),
        "only_bom": b"\xef\xbb\xbf",
        "two_codings": b"# coding: latin-1\n# coding: utf-8\n" + text.encode(),
        "cr": text.replace("\n", "\r").encode(),
        "crlf": text.replace("\n", "\r\n").encode(),
        "mixed_ends": text.replace("\n", "\r\n", 7).replace("x)\n", "x)\r").encode() + b"\n\r\r\n",
        "form_feeds": text.replace("\n", "\n\x0c").encode(),
        "odd_spaces": text.replace("\n", "\n\x0b\x1c\x1d\x1e\u2028\u2029\x85").encode(),
        "odd_spaces_in_strings": text.encode()
        + "s = '\x0b\x0c\x1c\x1d\x1e\u2028\u2029\x85'\n".encode()
        + text.encode(),
        "wide_names": text.replace("x", "𝐱").replace("row", "ｒｏｗ").encode(),
        "wide_strings": text.replace("row.sum()", "'😀é' + row.sum()").encode(),
        "tabs": text.replace("    ", "\t").encode(),
        "no_last_end": text.encode().rstrip(),
        "backslash_last": text.encode() + b"x = 1 \\",
        "backslashes": text.replace(" = ", " \\\n = ").encode(),
        "empty": b"",
        "newlines": b"\n" * 100_000,
        "comment": b"# torch",
        "random": random.Random(1).randbytes(100_000),
        "odd_suppressions": text.encode()
        + b"# breakscan: ignore[\n# breakscan: ignore-file[,,]\n# breakscan:\n#breakscan:ignore[BRK\xc3\xa9]\n",
        "zip": b"PK\x03\x04" + random.Random(2).randbytes(1_000),
        "pyc": b"\xa7\r\r\n" + random.Random(3).randbytes(1_000),
        "digits": HEAD.encode()
        + b"def f(x: torch.Tensor):\n    return x["
        + b"9" * 5_000
        + b"], x ** "
        + b"7" * 4_000
        + b"\n",
    }.items():
        _write_at(folder / f"{name}.py", data)


def _large(folder: Path) -> None:
    size = 10_000_000
    many = "".join(MODEL[len(HEAD) :].replace("Block", f"Block{i}") for i in range(size // (len(MODEL) - len(HEAD))))
    _write_at(folder / "ordinary.py", HEAD + many)
    _write_at(folder / "string.py", f"{HEAD}S = '{'a' * size}'\n{MODEL}")
    _write_at(folder / "comment.py", f"# {'torch ' * (size // 6)}\n{MODEL}")
    _write_at(folder / "bytes.py", HEAD + "S = b'" + "\\x00" * (size // 4) + "'\n")
    _write_at(folder / "name.py", f"{HEAD}def f({'x' * size}: torch.Tensor):\n    return {'x' * size}.item()\n")
    _write_at(folder / "list.py", f"{HEAD}L = [{'1, ' * (size // 3 // 10)}]\n{MODEL}")
    _write_at(
        folder / "one_function.py",
        f"{HEAD}def f(x: torch.Tensor):\n" + "    x = x + x.sum().item()\n" * (size // 28 // 10),
    )
    _write_at(folder / "one_line.py", HEAD + "x = torch.ones(1); " + "print(x.item()); " * (size // 17 // 10) + "\n")
    _write_at(folder / "spaces.py", MODEL + " " * size + "\n")
    _write_at(folder / "unclosed.py", MODEL + "x = (" + "1,\n" * (size // 3 // 10))
    _write_at(folder / "suppressions.py", MODEL + "x = 1  # breakscan: ignore[BRK101]\n" * (size // 35 // 10))


def _symlinks(folder: Path) -> None:
    _write_at(folder / "a" / "model.py", MODEL)
    (folder / "a" / "up").symlink_to("..", target_is_directory=True)
    (folder / "a" / "self").symlink_to("self")
    (folder / "a" / "self.py").symlink_to("self.py")
    (folder / "a" / "one.py").symlink_to("two.py")
    (folder / "a" / "two.py").symlink_to("one.py")
    (folder / "a" / "dangling.py").symlink_to("nowhere.py")
    (folder / "a" / "same.py").symlink_to("model.py")
    (folder / "a" / "folder.py").symlink_to("..", target_is_directory=True)
    (folder / "b").symlink_to("a", target_is_directory=True)
    os.link(folder / "a" / "model.py", folder / "a" / "hard.py")


def _unreadable(folder: Path) -> None:
    _write(folder, dict.fromkeys(("good", "secret", "closed/model", "listed/model", "ignored/model"), MODEL))
    (folder / "secret.py").chmod(0)
    (folder / "closed").chmod(0)
    (folder / "listed").chmod(0o444)
    (folder / "ignored" / ".gitignore").write_text("*.txt\n", encoding="utf-8")
    (folder / "ignored" / ".gitignore").chmod(0)
    if Path("/proc/self/mem").exists():
        (folder / "memory.py").symlink_to("/proc/self/mem")


def _special_files(folder: Path) -> None:
    _write(folder, {"good": MODEL})
    os.mkfifo(folder / "pipe.py")
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(folder)  # the path of a socket may have 107 bytes
        made.bind("socket.py")
        os.chdir(here)
    (folder / "null.py").symlink_to(os.devnull)


def _names(folder: Path) -> None:
    for name in (
        "with space", "new\n"
        "line", "tab\t", "-dash", "--help", "é", "e\u0301", "😀", "%s{x}", "[bold]", "a.b.c", "1",
        "class",
        "None", "$(x)", "\x1b[31mred", "quote'\"", "back\\slash", "n" * 240, "*", "?", "!", "#", ".hidden", "__init__",
        "__main__", "conftest",
    ):  # fmt: skip
        _write_at(folder / f"{name}.py", MODEL)
        _write_at(folder / f"{name} folder" / f"{name}.py", MODEL)
    with open(os.path.join(os.fsencode(folder), b"bytes\xff.py"), "wb") as file:
        file.write(MODEL.encode())
    (folder / ".py").write_text(MODEL, encoding="utf-8")
    deep = folder
    while len(str(deep)) < 3_900:
        deep = deep / ("d" * 50)
    _write_at(deep / "model.py", MODEL)
    (folder / "empty").mkdir()


def _ignore_files(folder: Path) -> None:
    for i, data in enumerate(
        (b"[\n", b"\\\n", b"!\n", b"**/**/**/\n" * 100, b"\xff\xfe\n", b"/\n", b"[z-a]\n", b"(" * 1000)
    ):
        _write_at(folder / str(i) / "model.py", MODEL)
        (folder / str(i) / ".gitignore").write_bytes(data)
    _write_at(folder / "folder" / "model.py", MODEL)
    (folder / "folder" / ".gitignore").mkdir()
    _write_at(folder / "loop" / "model.py", MODEL)
    (folder / "loop" / ".gitignore").symlink_to(".gitignore")


def _many(folder: Path) -> None:
    for i in range(MANY):
        _write_at(folder / f"p{i % 10}" / f"m{i}.py", MODEL * (1 + i % 3))


def _vanish(folder: Path) -> None:
    files = sorted(folder.rglob("*.py"))
    random.Random(4).shuffle(files)
    time.sleep(0.2)
    for number, path in enumerate(files[: len(files) * 2 // 3]):
        path.unlink()
        if number % 100 == 0:
            time.sleep(0.02)
    for inner in sorted(folder.iterdir())[:3]:
        for path in inner.iterdir():
            path.unlink()
        inner.rmdir()


def _change(folder: Path) -> None:
    rng = random.Random(5)
    files = sorted(folder.rglob("*.py"))
    end = time.monotonic() + 4
    while time.monotonic() < end:
        path = rng.choice(files)
        what = rng.randrange(6)
        if what == 0:
            path.write_text("", encoding="utf-8")
        elif what == 1:
            path.write_bytes(path.read_bytes()[: rng.randrange(500)])
        elif what == 2:
            path.write_text(f"{MODEL}def f(x):\n    return Block(x)\n", encoding="utf-8")
        elif what == 3:
            path.write_bytes(b"\xff\0" * 100)
        elif what == 4:
            other = path.with_suffix(".new")
            other.write_text(MODEL.replace("row", "line"), encoding="utf-8")
            other.replace(path)
        else:
            path.write_text(f"from .m{rng.randrange(MANY)} import *\nclass Block(Block): pass\n", encoding="utf-8")


def _import_cycles(folder: Path) -> None:
    for n in (1, 2, 3, 50):
        for i in range(n):
            after = (i + 1) % n
            _write_at(
                folder / f"ring{n}" / f"m{i}.py",
                f"{HEAD}from m{after} import f{after}\nimport m{after}\nimport ring{n}.m{after} as other\n"
                f"from . import m{after} as near\n\n"
                f"def f{i}(x: torch.Tensor):\n    x.item()\n"
                f"    return f{after}(x) + m{after}.f{after}((x, x)) + other.f{after}(x[None]) + near.f{after}([x])\n",
            )
        _write_at(folder / f"ring{n}" / "__init__.py", f"from .m0 import *\nfrom . import m0\nimport ring{n}\n")


def _star_ring(folder: Path) -> None:
    n = 60
    for i in range(n):
        _write_at(
            folder / "ring" / f"m{i}.py",
            f"{HEAD}from .m{(i + 1) % n} import *\nfrom .m{(i * 7) % n} import *\nfrom . import *\n\n"
            f"class C{i}(C{(i + 1) % n}):\n    def forward(self, x):\n"
            f"        return f{(i + 5) % n}(super().forward(x))\n\n"
            f"def f{i}(x):\n    return f{(i + 1) % n}(x).item() + missing(x)\n"
            f"__all__ = __all__ + m{(i + 1) % n}.__all__ + [f'f{{1}}', 1, None, 'f{i}', *__all__]\n__all__ += x\n",
        )
    _write_at(folder / "ring" / "__init__.py", "from .m0 import *\nfrom ring import *\nfrom . import *\n")


def _inheritance_cycles(folder: Path) -> None:
    forward = "    def forward(self, x):\n        x.item()\n        return super().forward(self.go(x))\n"
    _write_at(
        folder / "a.py", f"{HEAD}from b import B\n\nclass A(B):\n{forward}    def go(self, x): return B.go(self, x)\n"
    )
    _write_at(folder / "b.py", f"{HEAD}from a import A\n\nclass B(A, nn.Module):\n{forward}")
    _write_at(
        folder / "own.py",
        f"{HEAD}from own import C as D\nclass C(D):\n{forward}\nclass E(E, C, E): pass\nclass F(C, C): pass\n",
    )
    for i in range(30):
        after = (i + 1) % 30
        bases = f"C{after}, D{after}, C{after}.Inner"
        _write_at(
            folder / "pack" / f"m{i}.py",
            f"{HEAD}from .m{after} import C{after}, D{after}\n\nclass D{i}(D{after}): pass\n\nclass C{i}({bases}):\n"
            f"    class Inner(C{after}.Inner): pass\n    def __init__(self):\n        super().__init__()\n"
            f"        self.child = C{after}()\n\n    def forward(self, x):\n"
            f"        return self.child(super().forward(x))\n",
        )


def _reexport_cycles(folder: Path) -> None:
    files = {
        "a": "from b import f, g as h\nfrom a import a\nimport torch\ndef run(x: torch.Tensor):\n"
            "    return f(h(x)).item()\n",
        "b": "from c import f\nfrom a import h as g\n",
        "c": "from a import f\nf = f\n",
        "pack/__init__": "from .pack import pack\nfrom .x import x\nfrom pack import pack as pack\n"
            "from . import pack\nimport pack.pack.pack\n",
        "pack/pack": "from . import pack\nfrom .pack import pack\nimport torch\npack = torch.compile(pack)\n",
        "pack/x": "from .x import x\nimport torch\ndef x(x):\n    return x.x(x).item()\n",
        "up": "from ..... import up\nfrom ...up.up import *\nfrom .. import torch\nimport torch.nn.up\n"
            "from . import up as torch\nimport torch\n",
        "missing": "import torch, nowhere\nfrom nowhere.at.all import *\nfrom torch.nowhere import f\n"
            "from .nowhere import g\ndef h(x): return f(g(x)).item()\n",
        "lazy": "import torch\ndef __getattr__(name):\n    import lazy\n    return getattr(lazy, name)\n"
            "from lazy import anything\n@anything\ndef f(x): return anything(x).item()\n",
    }  # fmt: skip
    _write(folder, files)


def _shadows_of_what_runs(folder: Path) -> None:
    """Names that Python itself does not import before it starts a module: whose they are is breakscan's to say."""
    for name in "random json tempfile tomllib pathspec click rich numpy torch".split():
        _write_at(folder / f"{name}.py", f"{MODEL}\nraise SystemExit('a file that was to be checked has been run')\n")


def _shadows(folder: Path) -> None:
    for name in "os sys typing ast json logging functools math numpy torch nn builtins print".split():
        _write_at(
            folder / f"{name}.py",
            f"{MODEL}\nimport {name}\nfrom {name} import *\ndef compile(f): return f\ndef relu(x): return x.item()\n",
        )
    for path in (
        "torch/__init__",
        "torch/nn/__init__",
        "torch/nn/functional",
        "torch/compiler",
        "torch/_dynamo/__init__",
    ):
        _write_at(
            folder / "pack" / f"{path}.py",
            "from torch import *\nimport torch\nclass Module(torch.nn.Module): pass\nclass Tensor: pass\n"
            "def compile(f=None): return compile\ndef is_compiling(): return is_compiling()\n@torch.compile\n"
            "def f(x): return x.item()\n",
        )
    _write_at(
        folder / "pack" / "user.py",
        f"{MODEL}\nimport torch.nn.functional as F\n@torch.compile\ndef f(x): return F.relu(x).item()\n",
    )


def _odd_packages(folder: Path) -> None:
    _write(
        folder,
        {
            "pack/model": MODEL,
            "user": "from pack import Block\nfrom pack.model import Block as B\nimport pack.__init__\n" + MODEL,
        },
    )
    _write_at(folder / "pack" / "__init__.py" / "inner.py", MODEL)
    _write_at(folder / "folder.py" / "model.py", f"{MODEL}from folder.py.model import Block\n")
    _write_at(folder / "both.py", f"{MODEL}from both import Block\nfrom both.inner import Block as B\n")
    _write_at(folder / "both" / "__init__.py", "from both import Block\nfrom .both import *\n")
    _write_at(folder / "both" / "inner.py", f"{MODEL}from . import Block\n")
    for root in ("one", "two", "src", "src/src"):
        _write_at(folder / root / "same" / "__init__.py", "from same.model import *\n")
        _write_at(
            folder / root / "same" / "model.py", f"{MODEL}from same import Block as Other\nclass More(Other): pass\n"
        )
    deep = "/".join(f"d{i}" for i in range(150))
    dotted = deep.replace("/", ".")
    _write_at(folder / deep / "model.py", f"{MODEL}from {dotted}.model import Block as B\nfrom {'.' * 149} import x\n")


def _all_import_all(folder: Path) -> None:
    rng = random.Random(6)
    for i in range(MANY):
        others = sorted({rng.randrange(MANY) for _ in range(8)} | {(i + 1) % MANY, 0})
        imports = "".join(f"from big.m{j} import f{j}, C{j}\n" if j % 3 else f"from . import m{j}\n" for j in others)
        calls = " + ".join(f"f{j}(x, y)" if j % 3 else f"m{j}.f{j}(y, x)" for j in others)
        base = next(f"C{j}" if j % 3 else f"m{j}.C{j}" for j in others)
        parts = "".join(f"        self.c{j} = {'' if j % 3 else f'm{j}.'}C{j}()\n" for j in others[:3])
        _write_at(
            folder / "big" / f"m{i}.py",
            f"{HEAD}{imports}\nclass C{i}({base}):\n    def __init__(self):\n        super().__init__()\n{parts}\n"
            f"    def forward(self, x, y=None):\n        return self.c{others[0]}(x) + f{i}(x, super().forward(x))\n\n"
            f"def f{i}(x, y=None):\n    if x.sum() > {i}:\n        x = ({i}, x)\n    return {calls}\n",
        )
    _write_at(folder / "big" / "__init__.py", "".join(f"from .m{i} import *\n" for i in range(MANY)))


def _long_chains(folder: Path) -> None:
    n = MANY // 2
    for i in range(n):
        _write_at(
            folder / "chain" / f"m{i}.py",
            f"{HEAD}from .m{i + 1} import C{i + 1}, f{i + 1}, last\n\nclass C{i}(C{i + 1}):\n"
            f"    def forward(self, x):\n"
            f"        return super().forward(f{i + 1}(x))\n\n"
            f"def f{i}(x, k=0):\n    return f{i + 1}(x, k + 1) + f{i + 1}((x, k))\n",
        )
    end = f"class C{n}(nn.Module):\n    def forward(self, x): return x.item()\n\ndef f{n}(x, k=0): return x.item()\n"
    _write_at(folder / "chain" / f"m{n}.py", f"{HEAD}{end}last = torch.compile(f{n})\n")
    _write_at(folder / "chain" / "__init__.py", "from .m0 import *\n")


CASES = (
    CapturedCall("invalid encodings, NUL bytes, odd line ends", _encodings),
    CapturedCall("10 MB files", _large, formats=("json",)),
    CapturedCall("nesting, up to 5,000 deep", _nesting),
    CapturedCall("deep and wide to analyse", _deep_analysis),
    CapturedCall("symlink loops", _symlinks, targets=(".", "a/up/a", "b")),
    CapturedCall(
        "a symlink loop, named", _symlinks, targets=("a/self.py", "a/one.py", "a/self", "a/dangling.py", "a/same.py")
    ),
    CapturedCall("unreadable files and folders", _unreadable, without_privileges=True),
    CapturedCall("a pipe and a socket named *.py", _special_files),
    CapturedCall("strange names", _names),
    CapturedCall("broken .gitignore files", _ignore_files),
    CapturedCall("files that vanish", _many, during=_vanish),
    CapturedCall("files that change", _many, during=_change),
    CapturedCall(
        "one file in many ways", _symlinks, targets=("a/model.py", "./a/../a/model.py", "a", "a/hard.py", "b/model.py")
    ),
    CapturedCall("import cycles", _import_cycles),
    CapturedCall("a ring of star imports", _star_ring),
    CapturedCall("inheritance cycles over files", _inheritance_cycles),
    CapturedCall("re-export cycles, missing modules", _reexport_cycles),
    CapturedCall("modules named like torch and the standard library", _shadows),
    CapturedCall("python -m breakscan, next to files named like modules", _shadows_of_what_runs, as_module=True),
    CapturedCall("odd packages", _odd_packages),
    CapturedCall("chains over 1,500 files", _long_chains),
    CapturedCall("3,000 files that import each other", _all_import_all),
)
TIMED = {
    "nesting, up to 5,000 deep",
    "deep and wide to analyse",
    "10 MB files",
    "invalid encodings, NUL bytes, odd line ends",
}
"""The cases whose files are also timed one by one."""
