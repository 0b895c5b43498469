"""Runs the programs of the gallery and keeps their recordings in ``docs/gallery/``: needs torch, takes a minute.

``python -m tools.site.record_gallery``.  The recordings name no path of the machine, and hold no source but that of the
examples.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

from tools.site.gallery import HOME, ROOT, Entry, entries


def record(entry: Entry) -> None:
    """Runs a program of the gallery, and writes its archive."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, entry.name)
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(entry.ranks)] if entry.ranks else []
        words = [sys.executable, *launcher, "-m", "breakscan", "explain", "--save", str(saved), *entry.command]
        caches = f"{folder}/torchinductor"
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": caches, "PYTHONPATH": str(ROOT)}
        subprocess.run(words, cwd=ROOT, env=environment, check=True)
        places = {str(ROOT): HOME, caches: "/tmp/torchinductor", sys.prefix: "/opt/python", sys.base_prefix: "/usr"}
        # An environment can use the packages of another one.
        packages = sysconfig.get_path("purelib").replace(sys.prefix, "/opt/python")
        places |= {name: packages for name in sys.path if Path(name).name == "site-packages"}
        for path in filter(Path.is_file, saved.rglob("*")):
            path.write_text(_elsewhere(path.read_text(encoding="utf-8"), places), encoding="utf-8")
        for path in saved.rglob("sources.json"):
            sources = json.loads(path.read_text(encoding="utf-8"))
            path.write_text(json.dumps({name: text for name, text in sources.items() if name.startswith(HOME)}))
        with tarfile.open(entry.archive, "w:xz") as archive:
            archive.add(saved, entry.name, filter=_anonymous)


def _elsewhere(text: str, places: dict[str, str]) -> str:
    for place in sorted(places, key=len, reverse=True):
        text = text.replace(place, places[place])
    return re.sub(r'"host": ?"[^"]*"', '"host": "host"', text)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    for one in entries():
        if not sys.argv[1:] or one.name in sys.argv[1:]:
            record(one)
            print(f"wrote {one.archive.relative_to(ROOT)}")
