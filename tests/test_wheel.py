"""The package as people install it: an sdist, the wheel made of it, and an environment with only the wheel and what it
asks for. Nothing comes from the network: the dependencies are those of the environment that runs the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sparkstream_nb._version import __version__
from sparkstream_nb.runners.choice import INLINE
from test_environment import ROOT, closure, required

PACKAGE = ROOT / "sparkstream_nb"
FILES = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "THIRD_PARTY_LICENSES.md")
"""The files of the checkout's top that something is built of."""

pytestmark = pytest.mark.timeout(400)

FIRST_RESULT = """
import sys

import sparkstream_nb

app = sparkstream_nb.deploy(
    '''define stream Trades (symbol string, quantity long);
    define aggregation Totals from Trades
    select symbol, sum(quantity) as total group by symbol aggregate every sec ... year;
    ''',
    name="Wheel", nodes=2, fresh=True, master=sys.argv[1],
)
app.send("Trades", ["wso2", 30])
app.send("Trades", ["wso2", 40])
found = app.query("from Totals within '2000-01-01 00:00:00', '2100-01-01 00:00:00' per 'years' select symbol, total")
print(found.frame.values.tolist())
app.stop()
"""
NOTICES = ["Compiling the engine's loops, once", "Starting Spark once"]

# Loads what each command needs, and prints the refusals.
EACH_COMMAND = """
from importlib import import_module
from pkgutil import iter_modules
from sparkstream_nb.cli import commands
from sparkstream_nb.errors import Misuse

for module in iter_modules(commands.__path__):
    try:
        import_module(f"{commands.__name__}.{module.name}")
    except Misuse as error:
        print(f"{module.name.removeprefix('command_')}: {error}")
"""

# In the environment's site-packages: what its wheel does not ask for is not found.
HIDE = """
import sys
from importlib.machinery import PathFinder

HIDDEN = frozenset({hidden!r})


class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""


def run(
    *command: str | Path, cwd: Path, env: dict[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR", "SOURCE_DATE_EPOCH")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**clean, **(env or {})}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


def source_in(source: Path) -> Path:
    """A copy of this checkout, as far as something is built of it; returns `source`."""
    no_caches = shutil.ignore_patterns("__pycache__")
    for name in (PACKAGE.name, "conf", "docs", "tests/lab"):
        shutil.copytree(ROOT / name, source / name, ignore=no_caches)
    for name in FILES:
        shutil.copy(ROOT / name, source)
    return source


def built(what: str, source: Path, into: Path, umask: int = 0o022) -> Path:
    """An sdist or a wheel of a checkout."""
    program = f"import os; os.umask({umask}); from build_backend import build_{what} as b; print(b({str(into)!r}))"
    env = {"PYTHONPATH": "conf", "PYTHONDONTWRITEBYTECODE": "1"}
    return into / run(sys.executable, "-c", program, cwd=source, env=env).stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel made of an sdist made of this checkout."""
    tmp = tmp_path_factory.mktemp("wheel")
    sdist = built("sdist", source_in(tmp / "source"), tmp)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    unpacked = tmp / "unpacked"
    shutil.unpack_archive(sdist, unpacked)
    (checkout,) = unpacked.iterdir()
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir=.", checkout, cwd=tmp)
    return next(tmp.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; gives its `bin`."""
    return environment_of(wheel, tmp_path_factory.mktemp("environment"), required("notebooks").values())


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with what the wheel asks for without extras; gives its `bin`."""
    return environment_of(wheel, tmp_path_factory.mktemp("core"), required().values())


def environment_of(wheel: Path, env: Path, asked_for: Iterable[Requirement]) -> Path:
    """A virtual environment in the folder `env`, with the wheel and these requirements; gives its `bin`."""
    venv.create(env, symlinks=True)
    python = env / "bin" / "python"
    run(
        sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--no-deps",
        "--no-index", "--no-compile", wheel, cwd=env,
    )  # fmt: skip
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=env).stdout.strip())
    there = {*closure(asked_for), "sparkstream-nb"}
    modules = metadata.packages_distributions().items()
    hidden = [module for module, names in modules if not {canonicalize_name(n) for n in names} & there]
    assert "grpc" in hidden
    (site / "hide.py").write_text(HIDE.format(hidden=sorted(hidden)), encoding="utf-8")
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\nimport hide\n", encoding="utf-8")
    return env / "bin"


def packed_files() -> set[str]:
    """The files of the package, with the index of the documentation, which only what is built has."""
    files = {str(f.relative_to(ROOT)) for f in PACKAGE.rglob("*") if f.is_file() and "__pycache__" not in f.parts}
    return files | {f"{PACKAGE.name}/cli/agents/documentation.json"}


def test_the_wheel_has_the_whole_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"sparkstream_nb-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    package = packed_files()
    assert {n for n in names if n.startswith(f"{PACKAGE.name}/")} == package
    metadata_folder = f"sparkstream_nb-{__version__}.dist-info/"
    assert {f"{metadata_folder}licenses/{name}" for name in ("LICENSE", "THIRD_PARTY_LICENSES.md")} <= names
    data = f"sparkstream_nb-{__version__}.data/data/share/jupyter/labextensions/sparkstream-nb/"
    folder = PACKAGE / "lab" / "labextension"
    extension = {str(f.relative_to(folder)) for f in folder.rglob("*.js*")}
    assert {n.removeprefix(data) for n in names if n.startswith(data)} == extension
    assert not {n for n in names - package if not n.startswith((metadata_folder, data))}


def test_the_sdist_has_what_a_wheel_is_made_of_and_nothing_else(wheel: Path) -> None:
    (sdist,) = wheel.parent.glob("*.tar.gz")
    assert sdist.name == f"sparkstream_nb-{__version__}.tar.gz"
    with tarfile.open(sdist) as packed:
        names = {m.name.partition("/")[2] for m in packed.getmembers() if m.isfile()}
    package = packed_files()
    assert {n for n in names if n.startswith(f"{PACKAGE.name}/")} == package
    assert {n for n in names - package if not n.startswith("sparkstream_nb.egg-info/")} == {
        "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "THIRD_PARTY_LICENSES.md", "pyproject.toml", "setup.cfg",
        "conf/build_backend.py", "conf/source-date-epoch",
    }  # fmt: skip


def test_an_index_takes_both(wheel: Path) -> None:
    (sdist,) = wheel.parent.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=wheel.parent, env={"NO_COLOR": "1"})


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_what_is_built_of_a_commit_repeats(tmp_path: Path) -> None:
    """In another folder, with another umask, other times of files, and caches and what a build left beside them."""
    first, second = source_in(tmp_path / "first"), tmp_path / "an other" / "second"
    when = 1_700_000_000  # 2023-11-14 22:13:20
    me = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    run("git", "init", "--quiet", cwd=first)
    run("git", "add", "--all", "--force", cwd=first)
    run("git", *me, "commit", "--quiet", "--message=all", cwd=first, env={"GIT_COMMITTER_DATE": f"{when} +0000"})
    run("git", "clone", "--quiet", first, second, cwd=tmp_path)
    for file in second.rglob("*.py"):
        os.utime(file, (when + 10_000, when + 10_000))
        file.chmod(0o600)
    for left in ("sparkstream_nb/__pycache__/cli.cpython-311.pyc", "sparkstream_nb/engine/__pycache__/a.nbi", "dist/x"):
        (second / left).parent.mkdir(parents=True, exist_ok=True)
        (second / left).touch()
    for into in ("one", "two", "three"):
        (tmp_path / into).mkdir()
    made = {what: built(what, first, tmp_path / "one") for what in ("sdist", "wheel")}
    again = {what: built(what, second, tmp_path / "two", umask=0o077) for what in made}
    for what, file in made.items():
        assert file.name == again[what].name
        assert file.read_bytes() == again[what].read_bytes(), what
    shutil.unpack_archive(made["sdist"], tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert built("wheel", unpacked, tmp_path / "three").read_bytes() == made["wheel"].read_bytes()
    with zipfile.ZipFile(made["wheel"]) as packed:
        assert {i.date_time for i in packed.infolist()} == {(2023, 11, 14, 22, 13, 20)}
        assert {i.external_attr >> 16 for i in packed.infolist()} == {0o100644}
    with tarfile.open(made["sdist"]) as packed:
        found = {(m.mtime, m.uid, m.uname, m.mode & 0o7777) for m in packed.getmembers()}
    assert found == {(when, 0, "", 0o644), (when, 0, "", 0o755)}


def test_what_is_built_leaves_nothing_in_the_checkout(wheel: Path) -> None:
    """Of the checkout, and of the sdist that was unpacked: an sdist has the metadata that setuptools writes into it."""
    (unpacked,) = (wheel.parent / "unpacked").iterdir()
    assert not [name for name in ("build", "dist", "conf/__pycache__") if (unpacked / name).exists()]
    made = {f.name for f in (wheel.parent / "source").iterdir()}
    assert made == {PACKAGE.name, "conf", "docs", "tests", *FILES}


def test_the_documentation_is_searched_in_what_is_installed(environment: Path, tmp_path: Path) -> None:
    program = "from sparkstream_nb.cli.agents.documentation import search_documentation as s; print(s('late events'))"
    assert "docs/guides/late-events.md" in run(environment / "python", "-c", program, cwd=tmp_path).stdout
    assert not (PACKAGE / "cli" / "agents" / "documentation.json").exists()


def test_the_command_has_the_version(environment: Path, tmp_path: Path) -> None:
    assert run(environment / "sparkstream", "--version", cwd=tmp_path).stdout == f"sparkstream {__version__}\n"


def test_jupyterlab_finds_the_extension(environment: Path, tmp_path: Path) -> None:
    command = "from jupyterlab.labextensions import main; main()"
    home = {"HOME": str(tmp_path), "NO_COLOR": "1"}
    listed = run(environment / "python", "-c", command, "list", cwd=tmp_path, env=home)
    lines = [line for line in (listed.stdout + listed.stderr).splitlines() if "sparkstream-nb" in line]
    assert len(lines) == 1
    assert all(word in lines[0] for word in (f"v{__version__}", "enabled", "OK"))


def test_compiled_loops_are_kept_where_the_user_may_write(environment: Path, tmp_path: Path) -> None:
    command = "from sparkstream_nb.engine.notation.kernels import cache_folder; print(cache_folder())"
    where = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    beside = Path(run(environment / "python", "-c", command, cwd=tmp_path, env=where).stdout.strip())
    assert beside.parent.name == "notation"
    shutil.rmtree(beside)
    beside.touch()  # no folder can be made there
    try:
        in_cache = Path(run(environment / "python", "-c", command, cwd=tmp_path, env=where).stdout.strip())
        assert in_cache.is_relative_to(tmp_path / "cache")
        where["NUMBA_CACHE_DIR"] = str(tmp_path / "chosen")
        chosen = Path(run(environment / "python", "-c", command, cwd=tmp_path, env=where).stdout.strip())
        assert chosen.is_relative_to(tmp_path / "chosen")
    finally:
        beside.unlink()


@pytest.mark.parametrize(
    ("master", "notices"),
    [
        (INLINE, []),
        pytest.param("local[2]", NOTICES, marks=[pytest.mark.spark, pytest.mark.thorough, pytest.mark.rotates]),
    ],
    ids=["compiled", "first"],
)
def test_the_first_result_comes_with_a_word_about_what_it_waits_for(
    environment: Path, tmp_path: Path, master: str, notices: list[str]
) -> None:
    command = "import sparkstream_nb as p; print(p.__path__[0])"
    installed = Path(run(environment / "python", "-c", command, cwd=tmp_path).stdout.strip())
    assert installed.is_relative_to(environment.parent)
    take_compiled(installed)
    if notices:
        for marker in installed.rglob("compiled-*"):
            marker.unlink()
    script, home = tmp_path / "first.py", {"SPARKSTREAM_HOME": str(tmp_path / "home")}
    script.write_text(FIRST_RESULT, encoding="utf-8")
    first = run(environment / "python", script, master, cwd=tmp_path, env=home)
    assert first.stdout == "[['wso2', 70]]\n"
    assert [n for n in NOTICES if n in first.stderr] == notices
    command = "from sparkstream_nb.engine import warm; print(warm.is_compiled())"
    assert run(environment / "python", "-c", command, cwd=tmp_path).stdout == "True\n"


@pytest.mark.thorough
def test_the_plain_wheel_needs_neither_spark_nor_notebooks(core: Path, tmp_path: Path) -> None:
    command = "import sparkstream_nb as p; print(p.__path__[0])"
    take_compiled(Path(run(core / "python", "-c", command, cwd=tmp_path).stdout.strip()))
    (tmp_path / "app.siddhi").write_text("define stream S (v int); from S select v insert into O;", encoding="utf-8")
    for command in ("check", "fmt", "explain", "graph", "audit"):
        run(core / "sparkstream", command, "app.siddhi", cwd=tmp_path)
    lacking = run(core / "python", "-c", EACH_COMMAND, cwd=tmp_path).stdout.splitlines()
    assert [line.partition(":")[0] for line in lacking] == ["mcp", "report"]
    assert all("pip install 'sparkstream-nb[" in line for line in lacking)
    begun = run(core / "python", "-c", "from sparkstream_nb.runners.spark import jvm; jvm.begin()", cwd=tmp_path)
    assert begun.stderr == ""  # as `%load_ext` does
    script, home = tmp_path / "first.py", {"SPARKSTREAM_HOME": str(tmp_path / "home")}
    script.write_text(FIRST_RESULT, encoding="utf-8")
    assert run(core / "python", script, INLINE, cwd=tmp_path, env=home).stdout == "[['wso2', 70]]\n"
    (line,) = run(core / "sparkstream", "run", "app.siddhi", cwd=tmp_path, env=home, code=1).stderr.splitlines()
    assert "pyspark is not installed: pip install 'sparkstream-nb[spark]'" in line


def take_compiled(installed: Path) -> None:
    """Gives an installed package what this checkout has compiled, which saves a minute. The sources get the times of
    this checkout's: numba compiles anew what has another one."""
    for kept in PACKAGE.rglob("*"):
        target = installed / kept.relative_to(PACKAGE)
        if kept.suffix == ".py":
            shutil.copystat(kept, target)
        elif kept.suffix in (".nbc", ".nbi") or kept.name.startswith("compiled-"):
            target.parent.mkdir(exist_ok=True)
            shutil.copy(kept, target)
