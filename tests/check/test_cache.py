"""Results of earlier runs: given back only where all that they rest on is as it was, whatever happens to the folder."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import breakscan
from breakscan.check.pipeline import cache as cache_module
from breakscan.check.pipeline.cache import (
    DAY,
    MONTH,
    WITHOUT_EFFECT,
    ResultCache,
    cache_fingerprint,
    installation_digest,
)
from breakscan.check.pipeline.results import FileResult
from breakscan.model.findings import (
    Assumption,
    Condition,
    ConditionKind,
    Confidence,
    Finding,
    Kind,
    Place,
    Region,
    Severity,
    Site,
    SourceError,
    Verdict,
)
from breakscan.model.observations import Observations
from breakscan.rulebook.config import Settings, Target
from breakscan.source.regular_files import ABSENT, UNKNOWN, Digests

GIVEN = Condition(ConditionKind.GIVEN, "mask"), Condition(ConditionKind.INSTANCE, "x", True, ("Number", "int"))
FINDING = Finding(
    "BRK101", "branch-on-tensor", Kind.GRAPH_BREAK, Severity.ERROR, Confidence.CONDITIONAL, "a tensor’s value",
    Site("model.py", 6, 12, 6, 19), "Block.forward", Region("model.py", 5, "", None, Assumption.FORWARD),
    ("GB0170", "GB0171"), "2.13", Verdict.EAGER, Place.LOOP, conditions=GIVEN,
)  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "model.py").write_text("import helpers\n", encoding="utf-8")
    (folder / "helpers.py").write_text("def helper(): ...\n", encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def result_of(project: Path) -> FileResult:
    """A result for ``model.py`` that also rests on ``helpers.py``, and on there being no ``helpers/``."""
    digests = Digests()
    looked_at = [project / "model.py", project / "helpers.py", project / "helpers" / "__init__.py"]
    return FileResult(
        findings=[FINDING],
        suppressed=[replace(FINDING, region=None, verdict=None)],
        errors=[SourceError("model.py", 1, 1, "cannot be parsed")],
        warnings=[SourceError("model.py", 2, 1, "no rule is called 'x'")],
        depends={str(path): digests.of(str(path)) for path in looked_at},
    )


def kept(project: Path, folder: Path, fingerprint: str = "now") -> FileResult | None:
    """The result that the next run gets for ``model.py``."""
    return ResultCache(folder, fingerprint).get(project / "model.py")


def keep(project: Path, folder: Path) -> FileResult:
    result = result_of(project)
    ResultCache(folder, "now").put(project / "model.py", result)
    return result


def entry_in(folder: Path) -> Path:
    (entry,) = (path for path in folder.iterdir() if path.name not in cache_module.MARKS)
    return entry


def test_a_result_comes_back_as_it_was(project: Path, folder: Path) -> None:
    assert kept(project, folder) is None
    result = keep(project, folder)
    assert kept(project, folder) == result
    assert ResultCache(folder, "now").get(project / "helpers.py") is None


ANY_TEXT = st.text(st.characters(exclude_categories=()))
"""With lone surrogates, as names of files hold them."""
FINDINGS = st.one_of(st.from_type(Finding), st.builds(Finding, message=ANY_TEXT, function=ANY_TEXT))
ERRORS = st.builds(SourceError, path=ANY_TEXT)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_found_comes_back_as_it_was(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.mktemp("any")
    model = base / "model.py"
    model.write_text("x = 1\n", encoding="utf-8")
    lists = [data.draw(st.lists(kind, max_size=3)) for kind in (FINDINGS, FINDINGS, ERRORS, ERRORS)]
    result = FileResult(str(model), *lists, {str(model): Digests().of(str(model))})
    ResultCache(base / "cache", "now").put(model, result)
    assert ResultCache(base / "cache", "now").get(model) == result


class TestWhatItRestsOn:
    @pytest.mark.parametrize("name", ["model.py", "helpers.py"])
    def test_changed_vanished_and_restored(self, project: Path, folder: Path, name: str) -> None:
        result = keep(project, folder)
        path = project / name
        content, before = path.read_bytes(), path.stat()
        path.write_bytes(content.replace(b"helper", b"helmet"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # size and time are as they were
        assert kept(project, folder) is None
        path.unlink()
        assert kept(project, folder) is None
        path.write_bytes(content)
        assert kept(project, folder) == result

    def test_appeared(self, project: Path, folder: Path) -> None:
        keep(project, folder)
        (project / "helpers").mkdir()
        assert kept(project, folder) is not None
        (project / "helpers" / "__init__.py").touch()
        assert kept(project, folder) is None

    @pytest.mark.parametrize("name", ["strange.py", "\0"])
    def test_never_known(self, project: Path, folder: Path, name: str) -> None:
        """A folder in the place of a file cannot be read, and no file can have such a name."""
        (project / "strange.py").mkdir()
        result = result_of(project)
        result.depends[str(project / name)] = Digests().of(str(project / "strange.py"))
        ResultCache(folder, "now").put(project / "model.py", result)
        assert kept(project, folder) is None

    def test_not_even_on_the_file_itself(self, project: Path, folder: Path) -> None:
        ResultCache(folder, "now").put(project / "model.py", FileResult(depends={}))
        assert kept(project, folder) is None

    def test_another_fingerprint(self, project: Path, folder: Path) -> None:
        result = keep(project, folder)
        assert kept(project, folder, "then") is None
        ResultCache(folder, "then").put(project / "model.py", FileResult(depends=result.depends))
        assert kept(project, folder) == result  # both stay


class TestDigests:
    def test_of_files(self, project: Path) -> None:
        digests, model = Digests(), project / "model.py"
        content = model.read_bytes()
        assert digests.of(str(model)) == blake2b(content, digest_size=16).hexdigest()
        model.write_bytes(b"")
        assert digests.of(str(model)) == blake2b(content, digest_size=16).hexdigest(), "a file is read once a run"
        assert digests.of(str(project / "none.py")) == ABSENT
        assert digests.of(str(project / "model.py" / "__init__.py")) == ABSENT
        assert digests.of(str(project)) == UNKNOWN

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_a_pipe_is_not_waited_for(self, project: Path) -> None:
        os.mkfifo(project / "pipe.py")
        assert Digests().of(str(project / "pipe.py")) == UNKNOWN

    def test_what_was_read_elsewhere_counts(self, project: Path) -> None:
        path = str(project / "model.py")
        digests = Digests()
        on_disk = digests.of(path)
        learned = digests.learn(path, b"as it was when it was analyzed")
        assert learned == digests.of(path) != on_disk
        assert digests.agree({path: learned})
        assert not digests.agree({path: on_disk})


class TestDamage:
    @pytest.mark.parametrize("part", range(20))
    def test_bits_flip_or_the_end_is_missing(self, project: Path, folder: Path, part: int) -> None:
        result = keep(project, folder)
        entry = entry_in(folder)
        data = entry.read_bytes()
        at = len(data) * part // 20
        for bit in range(8):
            entry.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            assert kept(project, folder) is None
        entry.write_bytes(data[:at])
        assert kept(project, folder) is None
        entry.write_bytes(data)
        assert kept(project, folder) == result

    def test_an_entry_under_the_name_of_another(self, project: Path, folder: Path) -> None:
        keep(project, folder)
        first = entry_in(folder)
        data = first.read_bytes()
        first.unlink()
        other = ResultCache(folder, "then")
        other.put(project / "model.py", FileResult(depends=result_of(project).depends))
        entry_in(folder).write_bytes(data)
        assert other.get(project / "model.py") is None

    @pytest.mark.parametrize(
        "field",
        [
            {"rule": None},
            {"kind": "graph-broken"},
            {"kind": []},
            {"severity": Confidence.CERTAIN},
            {"message": 3},
            {"site": None},
            {"site": SourceError("model.py", 6, 12, "")},
            {"site": Site("model.py", "6", 12, 6, 19)},  # type: ignore[arg-type]
            {"site": Site("model.py", 6.0, 12, 6, 19)},  # type: ignore[arg-type]
            {"site": Site("model.py", True, 12, 6, 19)},
            {"gb": "GB0170"},
            {"gb": (170,)},
            {"place": None},
        ],
        ids=str,
    )
    def test_values_of_another_type_are_not_taken(self, project: Path, folder: Path, field: dict[str, Any]) -> None:
        """The checksum is right, as an attacker's would be."""
        result = result_of(project)
        result.findings = [replace(FINDING, **field)]
        ResultCache(folder, "now").put(project / "model.py", result)
        assert entry_in(folder)
        assert kept(project, folder) is None

    @pytest.mark.parametrize(
        "payload",
        [
            b"",
            b"[]",
            b"{}",
            b"null",
            b"[" * 200_000,
            b"\xff\xfe",
            b"[[],[],[],[],[]]",
            b"[[],[],[],[],{}]",
            b"9" * 10_000,
            b'[[],[],[],[],{"":1}]',
        ],
        ids=lambda payload: str(payload[:20]),
    )
    def test_other_json_is_not_taken(self, project: Path, folder: Path, payload: bytes) -> None:
        keep(project, folder)
        cache = ResultCache(folder, "now")
        name, key = cache._place(project / "model.py")
        Path(name).write_bytes(cache_module._checksum(payload, key) + payload)
        assert cache.get(project / "model.py") is None

    @pytest.mark.parametrize("kind", ["folder", "pipe", "loop"])
    def test_something_else_in_the_place_of_an_entry(self, project: Path, folder: Path, kind: str) -> None:
        result = keep(project, folder)
        entry = entry_in(folder)
        entry.unlink()
        if kind == "folder":
            entry.mkdir()
        elif kind == "pipe":
            if not hasattr(os, "mkfifo"):
                pytest.skip("no named pipes here")
            os.mkfifo(entry)
        else:
            entry.symlink_to(entry)
        assert kept(project, folder) is None
        keep(project, folder)
        assert kept(project, folder) == (None if kind == "folder" else result)
        assert [path for path in folder.iterdir() if path.suffix == ".tmp"] == []


class TestFolder:
    def test_is_kept_out_of_git_and_of_backups(self, project: Path, folder: Path) -> None:
        keep(project, folder)
        assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"
        tag = (folder / "CACHEDIR.TAG").read_bytes()
        assert tag.startswith(b"Signature: 8a477f597d28d172789f06886806bc55\n")

    def test_is_made_only_when_there_is_something_to_keep(self, project: Path, folder: Path) -> None:
        cache = ResultCache(folder / "deep", "now")
        assert cache.get(project / "model.py") is None
        assert cache.writable
        assert not folder.exists()

    @pytest.mark.parametrize("below", ["", "model.py/cache"])
    def test_that_holds_other_things_or_is_below_a_file_is_left_alone(self, project: Path, below: str) -> None:
        """As where somebody names the folder of the project itself."""
        before, folder = sorted(project.iterdir()), project / below
        assert not ResultCache(folder, "now").writable
        keep(project, folder)
        assert kept(project, folder) is None
        assert sorted(project.iterdir()) == before

    @pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="everything is writable here")
    def test_that_cannot_be_written_is_still_read(self, project: Path, folder: Path) -> None:
        result = keep(project, folder)
        folder.chmod(0o555)
        try:
            assert not ResultCache(folder, "now").writable
            keep(project, folder)
            assert kept(project, folder) == result
        finally:
            folder.chmod(0o755)


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


class TestCleaning:
    @pytest.fixture
    def old(self, project: Path, folder: Path) -> Path:
        """An entry that was not used for more than a month, and a part of one that a killed run left."""
        keep(project, folder)
        entry = entry_in(folder)
        age(entry, MONTH + DAY)
        left = folder / f"{entry.name}.{'0' * 16}.tmp"
        left.write_bytes(b"half")
        age(left, MONTH + DAY)
        (folder / "notes.txt").touch()
        age(folder / "notes.txt", 2 * MONTH)
        age(folder / ".gitignore", 2 * MONTH)
        return entry

    def write_something(self, project: Path, folder: Path) -> None:
        ResultCache(folder, "then").put(project / "model.py", result_of(project))

    def test_removes_what_was_not_used_for_a_month(self, project: Path, folder: Path, old: Path) -> None:
        self.write_something(project, folder)
        assert not old.exists()
        assert not list(folder.glob("*.tmp"))
        assert {"notes.txt", ".gitignore", "CACHEDIR.TAG"} <= {path.name for path in folder.iterdir()}
        assert ResultCache(folder, "then").get(project / "model.py") is not None

    def test_spares_what_is_used(self, project: Path, folder: Path, old: Path) -> None:
        assert kept(project, folder) is not None
        self.write_something(project, folder)
        assert old.exists()


TARGET = Target("2.13", "config", "2.13")
OTHERWISE: dict[str, object] = {
    "root": Path("/elsewhere"),
    "config_file": Path("/project/ci.toml"),
    "target_torch": "2.13.0",
    "target": "export",
    "fullgraph": True,
    "regions": "all",
    "select": ("BRK1",),
    "ignore": ("BRK101",),
    "per_file_ignores": (("tests/*", ("BRK101",)),),
    "exclude": ("vendored/",),
    "rule_folders": (Path("/project/lint"),),
    "confidence": Confidence.POSSIBLE,
    "no_cache": True,
    "baseline": Path("/project/baseline.toml"),
    "cache_dir": Path("/cache"),
    "observations": Observations({}, {}, "key"),
    "options": frozenset({"select"}),
}


class TestFingerprint:
    BASE = Settings(root=Path("/project"))

    @pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
    def test_of_each_setting(self, name: str) -> None:
        changed = replace(self.BASE, **{name: OTHERWISE[name]})  # type: ignore[arg-type]
        same = cache_fingerprint(changed, TARGET, "/project") == cache_fingerprint(self.BASE, TARGET, "/project")
        assert same == (name in WITHOUT_EFFECT)

    def test_of_the_working_directory_and_the_target(self) -> None:
        targets = [TARGET, replace(TARGET, torch="2.14"), replace(TARGET, ledger="2.11")]
        found = [
            cache_fingerprint(self.BASE, one, "/project") for one in (*targets, replace(TARGET, source="installed"))
        ]
        assert len({*found, cache_fingerprint(self.BASE, TARGET, "/project/src")}) == 4
        assert found[0] == found[-1]

    def test_of_rules_of_the_users_own(self, tmp_path: Path) -> None:
        rule = tmp_path / "BRK001-ours.md"
        rule.write_text("one", encoding="utf-8")
        own = replace(self.BASE, rule_folders=(tmp_path,))
        before = cache_fingerprint(own, TARGET, "/project")
        age(rule, DAY)
        assert cache_fingerprint(own, TARGET, "/project") == before
        rule.write_text("two", encoding="utf-8")
        assert cache_fingerprint(own, TARGET, "/project") != before

    def test_of_breakscan_itself(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from breakscan.rulebook.library import shipped_rules

        package = tmp_path / "breakscan"
        shutil.copytree(Path(breakscan.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(shipped_rules(), package / "rules", dirs_exist_ok=True)
        monkeypatch.setattr(breakscan, "__file__", str(package / "__init__.py"))
        monkeypatch.setattr("breakscan.check.pipeline.cache.shipped_rules", lambda: package / "rules")

        def fingerprint() -> str:
            installation_digest.cache_clear()
            return cache_fingerprint(self.BASE, TARGET, "/project")

        count = ["rulebook/config.py", "check/pipeline/check_file.py", "rulebook/torch_facts/data/2.13.json"]
        count += ["rules/BRK101-branch-on-tensor.md", "rules/ledger/2.13.json"]
        for name in (*count, "rules/ledger/2.11.json", "recording/launch.py", "report/check_terminal.py"):
            before = fingerprint()
            with open(package / name, "a", encoding="utf-8") as stream:
                stream.write(" ")
            assert (fingerprint() != before) is (name in count), name

    @pytest.mark.process
    def test_is_the_same_in_another_process(self) -> None:
        code = (
            "from pathlib import Path; from breakscan.rulebook.config import Settings, Target;"
            "from breakscan.check.pipeline.cache import cache_fingerprint;"
            "target = Target('2.13', 'config', '2.13');"
            "print(cache_fingerprint(Settings(root=Path('/project')), target, '/project'))"
        )
        environment = {**os.environ, "PYTHONPATH": str(Path(breakscan.__file__).parents[1])}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == cache_fingerprint(self.BASE, TARGET, "/project")
