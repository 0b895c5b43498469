"""Runs `breakscan explain` on each program here, as it is and repaired (FIXED=1), and prints what table.md compares.

python benchmarks/reports/run.py [NAME ...]
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SUMMARY = ("break_events", "recompiles", "eager_calls", "graphs", "compile_seconds")


def explained(program: Path, fixed: bool) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FIXED": "1" if fixed else "", "TORCHINDUCTOR_CACHE_DIR": folder}
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "breakscan", "explain", "--format", "json", "-o", str(report), str(program)]
        subprocess.run(command, env=environment, capture_output=True, timeout=300, check=False)
        return json.loads(report.read_text())


def main() -> None:
    names = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.py") if path.stem != "run")
    for name in names:
        for fixed in (False, True):
            report = explained(HERE / f"{name}.py", fixed)
            facts = ", ".join(f"{report['summary'][key]} {key}" for key in SUMMARY)
            print(f"{name}{' FIXED=1' if fixed else ''}: exit status {report['script']['exit_status']}, {facts}")
            for problem in [] if fixed else report["problems"]:
                line = (problem["site"] or {}).get("line")
                print(f"  line {line} {problem['id'] or problem['kind']}: {problem['why']}")
                for remedy in problem["remedies"]:
                    print(f"    {remedy['kind']}: {remedy['text']}")


if __name__ == "__main__":
    main()
