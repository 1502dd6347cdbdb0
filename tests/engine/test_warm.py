"""What `make setup` compiles ahead runs, and is what the tutorials run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

PROGRAM = """
import json, sys
from numba.core.dispatcher import Dispatcher
from sparkstream_nb.engine.warm import APPS, run

def signatures():
    loaded = [m for n, m in sys.modules.items() if n.startswith("sparkstream_nb.engine")]
    loops = {f"{v.__module__}.{k}": v for m in loaded for k, v in vars(m).items() if isinstance(v, Dispatcher)}
    return {(name, str(s)) for name, loop in loops.items() for s in loop.signatures}

silent = [app for app in APPS if not run(app)]
warmed = signatures()
for app in json.loads(sys.argv[1]):
    run(app)
print(json.dumps({"silent": silent, "compiled": sorted(signatures() - warmed)}))
"""


def tutorials() -> list[str]:
    """The apps that the notebooks deploy."""
    out = []
    for name in ("01_first_query", "02_flights", "04_alerts"):
        notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text())
        for cell in notebook["cells"]:
            source = "".join(cell["source"])
            if source.startswith("%%siddhi") and not source.startswith("%%siddhi --"):
                out.append(source.split("\n", 1)[1])
            elif source.startswith('alert = """'):
                out.append(source.split('"""')[1])
    return out


@pytest.mark.thorough
def test_every_app_puts_something_out_and_the_tutorials_compile_nothing_more() -> None:
    apps = tutorials()
    assert len(apps) == 5
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(apps)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"silent": [], "compiled": []}


def test_what_other_versions_compiled_goes(tmp_path: Path) -> None:
    """Only of this version of Python, and of loops that are not there any more."""
    own = f"py{sys.version_info.major}{sys.version_info.minor}"
    stale = [f"machine.run_{'a' * 16}-7.{own}.nbi", f"machine.run_{'a' * 16}-7.{own}.1.nbc"]
    left = [f"machine.run_{'a' * 16}-7.py39.nbi", f"machine.plain-7.{own}.nbi", "machine.cpython-311.pyc"]
    program = f"""
from pathlib import Path
from sparkstream_nb.engine.notation import kernels
from sparkstream_nb.engine.columnar.arrays import *
import sparkstream_nb.engine.columnar.bucket_hash
folder = next(iter(Path(loop.stats.cache_path) for loop in kernels._DIGESTS))
folder.mkdir(parents=True, exist_ok=True)
live = sorted(kernels.digests())[0]
names = {[*stale, *left]!r} + [f"a.b_{{live}}-3.{own}.nbi"]
for name in names:
    (folder / name).touch()
kernels.forget_others(kernels.digests())
print([name for name in names if not (folder / name).exists()])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == f"{stale}\n", done.stderr
