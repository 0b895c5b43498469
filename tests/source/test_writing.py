"""Files are replaced whole, and keep what is not text about them."""

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakscan.source.module import SourceProblem, decode_source
from breakscan.source.writing import encoded, rewrite_file

LINES = st.lists(st.text("abé #\f\x0b\u2028", max_size=6), min_size=1, max_size=8)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(LINES, st.lists(ENDS, min_size=8, max_size=8), st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_a_text_that_stays_gives_the_same_bytes(lines: list[str], ends: list[str], mark: bytes) -> None:
    text = "".join(line + end for line, end in zip(lines, [*ends[: len(lines) - 1], ""], strict=True))
    data = mark + text.encode()
    assert encoded(Path("a.py"), data, decode_source(data, "")) == data


@given(LINES, st.lists(ENDS, min_size=8, max_size=8), st.data())
def test_an_inserted_line_leaves_the_ends_of_the_others(lines: list[str], ends: list[str], data: st.DataObject) -> None:
    lines = [f"{number}{line}" for number, line in enumerate(lines)]
    whole = [line + end for line, end in zip(lines, ends, strict=False)]
    at = data.draw(st.integers(0, len(lines)))
    before = "".join(whole).encode()
    after = [*lines[:at], "new", *lines[at:], ""]
    got = encoded(Path("a.py"), before, "\n".join(after)).decode()
    assert got.replace("\r\n", "\n").replace("\r", "\n") == "\n".join(after)
    head, _, tail = got.partition("new")
    assert head == "".join(whole[:at])
    assert tail.lstrip("\r\n") == "".join(whole[at:])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a = 1\r\nb = 2\r\n", b"a = 3\r\nb = 2\r\n"),
        (b"\xef\xbb\xbfa = 1\n", b"\xef\xbb\xbfa = 3\n"),
        (b"# coding: latin-1\nb = '\xe9'\na = 1", b"# coding: latin-1\nb = '\xe9'\na = 3"),
        (b"a = 1\rb = 2\r", b"a = 3\rb = 2\r"),
        (b"a = 1\nb = 2\r\n\x0c\nc = 3", b"a = 3\nb = 2\r\n\x0c\nc = 3"),
    ],
)
def test_encoding_and_line_ends_stay(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(before)
    text = decode_source(before, "a.py")
    rewrite_file(path, "a.py", text, text.replace("a = 1", "a = 3"))
    assert path.read_bytes() == after


def test_mode_and_links_stay(tmp_path: Path) -> None:
    real = tmp_path / "real.py"
    real.write_text("a = 1\n")
    real.chmod(0o750)
    link = tmp_path / "link.py"
    link.symlink_to(real)
    rewrite_file(link, "link.py", "a = 1\n", "a = 2\n")
    assert link.is_symlink()
    assert real.read_text() == "a = 2\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.py", "real.py"]


@pytest.mark.parametrize(
    ("now", "mode", "said"),
    [
        ("a = 1\n", 0o444, r"a\.py:1:1: cannot be written: the file is read-only"),
        ("a = 5\n", 0o644, "has changed since it was read: run the command again"),
        (None, 0, "cannot be read: No such file"),
    ],
)
def test_a_file_that_is_not_as_it_was_read_stays(tmp_path: Path, now: str | None, mode: int, said: str) -> None:
    path = tmp_path / "a.py"
    if now is not None:
        path.write_text(now)
        path.chmod(mode)
    with pytest.raises(SourceProblem, match=said):
        rewrite_file(path, "a.py", "a = 1\n", "a = 2\n")
    assert now is None or path.read_text() == now


def child(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    begin = "import os\nfrom pathlib import Path\nfrom breakscan.source.writing import rewrite_file\n"
    return subprocess.run(
        [sys.executable, "-c", begin + textwrap.dedent(code)], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files there")
@pytest.mark.process
def test_a_full_disk_leaves_the_file(tmp_path: Path) -> None:
    text = "a = 1\n" * 5000
    (tmp_path / "a.py").write_text(text)
    done = child(
        tmp_path,
        """
        import resource, signal
        text = Path("a.py").read_text()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        rewrite_file(Path("a.py").absolute(), "a.py", text, text + "b = 2\\n")
        """,
    )
    assert "cannot be written: File too large; the file is as it was" in done.stderr
    assert (tmp_path / "a.py").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
@pytest.mark.process
def test_an_end_at_any_step_leaves_one_text_or_the_other(tmp_path: Path, step: str) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    done = child(
        tmp_path,
        f"""
        os.{step} = lambda *_: os._exit(9)
        rewrite_file(Path("a.py").absolute(), "a.py", "a = 1\\n", "a = 2\\n")
        """,
    )
    assert done.returncode == 9
    assert (tmp_path / "a.py").read_text() == "a = 1\n"


@pytest.mark.process
def test_the_new_text_is_on_disk_before_it_has_the_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    done = child(
        tmp_path,
        """
        steps = []
        def noted(name):
            real = getattr(os, name)
            setattr(os, name, lambda *given: (steps.append(name), real(*given))[1])
        noted("fsync"), noted("replace")
        rewrite_file(Path("a.py").absolute(), "a.py", "a = 1\\n", "a = 2\\n")
        print(steps)
        """,
    )
    assert done.stdout.strip() == "['fsync', 'replace', 'fsync']"
    assert os.listdir(tmp_path) == ["a.py"]
