"""Rows of `make matrix`: platforms within the bounds of the package, what pip would replace, and the page's tables."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.matrix.__main__ import choose_one
from tests.matrix.pair_environment import (
    Replacement,
    core_requirements,
    installed_versions,
    list_constraints,
    list_replacements,
    pins_of,
    takes_connect,
)
from tests.matrix.pairs import Pair
from tests.matrix.platforms import PLATFORMS, Platform
from tests.matrix.version_tables import MANAGED, PAGE, VERSIONS, PairResult, passed_platforms, read_rows, replace_rows


def platform_named(name: str) -> Platform:
    return next(platform for platform in PLATFORMS if platform.name == name)


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.key)
def test_the_packages_of_a_platform_are_within_the_bounds_of_the_core(platform: Platform) -> None:
    """A bound above them would have pip replace a package that the platform's own programs run with."""
    versions = {canonicalize_name(name): version for name, version in platform.packages.items()}
    bounds = {canonicalize_name(r.name): r.specifier for r in core_requirements()}
    assert {"pandas", "pyarrow", "numpy", "tornado"} <= bounds.keys()
    refused = {name: version for name, version in versions.items() if name in bounds and version not in bounds[name]}
    assert not refused


def write_wheel(folder: Path, name: str, version: str, requires: str = "") -> Path:
    """A wheel without a module."""
    info = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{info}/METADATA", metadata + (f"Requires-Dist: {requires}\n" if requires else ""))
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def test_packages_that_pip_would_replace_are_named(tmp_path: Path) -> None:
    """Pip itself, without an index: a package of the environment is replaced where another asks for a newer one."""
    platform_package = write_wheel(tmp_path, "its_package", "1.0")
    write_wheel(tmp_path, "its_package", "2.0")
    beside, above = (write_wheel(tmp_path, f"needs{n}", "1.0", f"its-package>={n}") for n in (1, 2))
    venv.create(tmp_path / "environment", with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "environment"), "--disable-pip-version-check"]
    install = [*pip, "install", "-q", "--no-index", "--find-links", str(tmp_path)]
    subprocess.run([*install, str(platform_package)], check=True)

    def replacements(wheel: Path) -> list[Replacement]:
        dry_run = [*install, "--dry-run", "--report", "-", str(wheel)]
        report = subprocess.run(dry_run, check=True, capture_output=True, text=True).stdout
        return list_replacements(report, {"its-package": "1.0"})

    assert replacements(beside) == []
    assert replacements(above) == [Replacement("its-package", "1.0", "2.0")]


def test_versions_of_an_environment_have_canonical_names() -> None:
    versions = installed_versions(Path(sys.executable))
    assert {"pyyaml", "sqlalchemy", "pyspark"} <= versions.keys()


def test_the_tests_of_a_platform_run_with_its_packages() -> None:
    """And with the protobuf of Apache's pyspark where the platform's is older than that asks for."""
    platform = platform_named("Fabric 2.0")
    assert platform.packages["protobuf"] == "5.29.6"
    lines = list_constraints(platform)
    assert {"pandas==2.3.3", "numpy==2.4.1", "pyarrow==24.0.0", "protobuf==6.33.0"} <= set(lines)
    assert len({line.split("==")[0].lower() for line in lines}) == len(lines)
    assert not [line for line in lines if line.startswith("pyspark==")]


def test_a_package_below_an_extra_s_bound_is_no_constraint() -> None:
    """The extra `connect` needs a newer gRPC than that; the core needs none."""
    platform = platform_named("Databricks 17.3 LTS")
    assert platform.packages["grpcio"] == "1.67.0"
    assert "grpcio" not in pins_of(platform)
    assert "grpcio==1.67.0" not in list_constraints(platform)
    assert pins_of(platform)["tornado"] == "6.4.2"


@pytest.mark.parametrize(
    ("name", "takes"),
    [("Databricks 17.3 LTS", False), ("Databricks 18 LTS", True), ("EMR 8", True), ("Fabric 2.0", True)],
)
def test_the_tests_of_a_platform_have_connect_unless_its_grpc_is_older(name: str, takes: bool) -> None:
    assert takes_connect(platform_named(name)) is takes


PAGE_TEXT = f"""Before.
{VERSIONS.begin}
| Spark | Python | beside it |
| --- | --- | --- |
| 4.0.0 | 3.11 | old |
| 4.3.0 | 3.14 | not tried |
<!-- end -->
Between.
{MANAGED.begin}
<!-- end -->
After.
"""


def test_a_result_replaces_its_row_alone() -> None:
    platform = Platform("Cloud 1", spark="4.0.0", python="3.12", java=21)
    plain, managed = Pair("python3", "3.11", "4.0.0"), Pair("python3", "3.12", "4.0.0", platform)
    results = [PairResult(plain, {"pyspark": "new"}), PairResult(managed, {"pyspark": "stays", "kills": "passed"})]
    page = replace_rows(PAGE_TEXT, results)
    assert "| 4.0.0 | 3.11 | new | – | – | – | – |\n| 4.3.0 | 3.14 | not tried |\n<!-- end -->\nBetween.\n" in page
    (row,) = read_rows(page, MANAGED)
    assert row[:5] == ["Cloud 1", "4.0.0", "3.12", "21", "–"]
    assert row[5:10] == ["stays", "–", "passed", "–", "–"]
    assert page.endswith("<!-- end -->\nAfter.\n")
    assert replace_rows(page, results) == page


def test_each_platform_has_its_row_on_the_page() -> None:
    rows = {row[0]: row[1:4] for row in read_rows(PAGE.read_text(encoding="utf-8"), MANAGED)}
    assert rows == {p.name: [p.spark, p.python, str(p.java)] for p in PLATFORMS}


def test_each_pair_is_chosen_by_some_commit() -> None:
    """Of platforms those that passed: one that was not tried yet, or failed, is no reason to refuse a commit."""
    plain = [Pair("python3", "3.11", spark) for spark in ("4.0.0", "4.3.0")]
    managed = [Pair("python3", p.python, p.spark, p) for p in PLATFORMS]
    results = [PairResult(managed[0]), PairResult(managed[1], failures=["contract: 1 failed"])]
    passed = passed_platforms(replace_rows(PAGE_TEXT, results))
    chosen = {choose_one([*plain, *managed], f"{number:040x}", passed).title for number in range(200)}
    assert chosen == {pair.title for pair in (*plain, managed[0])}


def test_a_pair_is_named_by_a_version_or_its_platform() -> None:
    pairs = [Pair("python3", "3.11", "4.0.2"), *(Pair("python3", p.python, p.spark, p) for p in PLATFORMS)]
    assert [pair.title for pair in pairs if pair.has_one_of(["emr-8"])] == ["EMR 8 (Python 3.13, Spark 4.0.2)"]
    assert len([pair for pair in pairs if pair.has_one_of(["4.0.2"])]) == 2
    assert len({pair.folder for pair in pairs}) == len(pairs)
