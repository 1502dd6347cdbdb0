"""pyproject.toml, constraints.txt and environment.yml name the same packages and versions."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+]*")


def pins(lines: list[str]) -> dict[str, str]:
    """Canonical name → version of `name==version` lines; anything else fails."""
    out = {}
    for line in lines:
        assert PIN.fullmatch(line), f"not a plain name==version: {line!r}"
        name, version = line.split("==")
        assert canonicalize_name(name) not in out, f"{name} is named twice"
        out[canonicalize_name(name)] = version
    return out


def constraints() -> dict[str, str]:
    return pins((ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())


def required(*extras: str) -> dict[str, Requirement]:
    """Canonical name → requirement of the core and these extras, with those that an extra names."""
    requirements, todo = [*map(Requirement, PROJECT["dependencies"])], list(extras)
    while todo:
        for requirement in map(Requirement, PROJECT["optional-dependencies"][todo.pop()]):
            if requirement.name == PROJECT["name"]:
                todo += requirement.extras
            else:
                requirements.append(requirement)
    return {canonicalize_name(r.name): r for r in requirements}


def direct() -> dict[str, Requirement]:
    """Canonical name → requirement of everything that pyproject.toml names, extras included."""
    return required(*PROJECT["optional-dependencies"])


def conda() -> tuple[dict[str, str], dict[str, str]]:
    """What environment.yml asks of conda, and of pip inside it."""
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    from_pip = next(item["pip"] for item in listed if isinstance(item, dict))
    return pins([item.replace("=", "==") for item in listed if isinstance(item, str)]), pins(from_pip)


def test_every_direct_dependency_is_pinned_within_its_bounds() -> None:
    pinned = constraints()
    for name, requirement in direct().items():
        assert name in pinned, f"{name} is in pyproject.toml and not in constraints.txt"
        assert requirement.specifier.contains(pinned[name]), f"{requirement} does not allow {name}=={pinned[name]}"


def test_the_lowest_versions_are_those_of_the_bounds() -> None:
    lowest = pins((ROOT / "conf" / "lowest.txt").read_text(encoding="utf-8").splitlines())
    bounds = {name: requirement.specifier for name, requirement in required("spark", "magics").items()}
    assert lowest.keys() == bounds.keys()
    for name, specifier in bounds.items():
        (bound,) = specifier
        assert bound.operator == ">=", f"{name} has another bound than a lowest version"
        assert specifier.contains(lowest[name])
        said = Version(bound.version).release
        assert Version(lowest[name]).release[: len(said)] == said


def imported(tree: ast.AST) -> set[str]:
    """The libraries that a program imports."""
    nodes = list(ast.walk(tree))
    modules = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    modules |= {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom) and n.level == 0}
    return {m.partition(".")[0] for m in modules} - sys.stdlib_module_names - {"sparkstream_nb"}


def distributions_of(module: str) -> set[str]:
    """Canonical names of the distributions that have this module."""
    return {canonicalize_name(d) for d in distributions()[module]}


distributions = functools.cache(metadata.packages_distributions)


def test_every_library_that_is_imported_is_a_direct_dependency() -> None:
    libraries = {m for f in (ROOT / "sparkstream_nb").rglob("*.py") for m in imported(ast.parse(f.read_text("utf-8")))}
    missing = {m for m in libraries if not distributions_of(m) & direct().keys()}
    assert libraries
    assert not missing


def test_the_extra_for_notebooks_brings_all_that_they_import() -> None:
    cells = [
        "".join(cell["source"])
        for book in (ROOT / "notebooks").glob("*.ipynb")
        for cell in json.loads(book.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    python = [re.sub(r"(?m)^[%!].*", "", text) for text in cells if not text.startswith("%%")]
    modules = imported(ast.parse("\n".join(python)))
    assert {"pandas", "kafka"} <= modules
    missing = {m for m in modules if not distributions_of(m) & required("notebooks").keys()}
    assert not missing


def test_one_extra_has_all_that_an_app_can_use() -> None:
    every = PROJECT["optional-dependencies"].keys() - {"docs", "release", "test"}
    assert required("all") == required(*every)


def test_conda_users_get_the_same_packages_and_versions() -> None:
    pinned = constraints()
    from_conda, from_pip = conda()
    assert PROJECT["requires-python"] == ">=3.11"
    assert from_conda["python"] == "3.11"
    assert from_conda["pip"] == pinned["pip"]
    assert from_pip == {name: pinned[name] for name in direct()}


def closure(requirements: Iterable[Requirement]) -> set[str]:
    """Canonical names of these distributions and of all that they bring along on this platform."""
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(canonicalize_name(r.name), frozenset(r.extras)) for r in requirements]
    while todo:
        name, extras = todo.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for needed in map(Requirement, metadata.requires(name) or []):
            environments = [{**default_environment(), "extra": extra} for extra in (extras or {""})]
            if needed.marker is None or any(needed.marker.evaluate(e) for e in environments):
                todo.append((canonicalize_name(needed.name), frozenset(needed.extras)))
    return {name for name, _ in seen}


def test_constraints_are_the_whole_closure() -> None:
    """Whatever a direct dependency brings along on this platform is pinned too, so that an install repeats."""
    assert closure(direct().values()) <= constraints().keys()


def test_what_is_installed_is_what_is_pinned() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "list", "--format=freeze", "--exclude-editable", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    ).stdout.splitlines()
    installed = {canonicalize_name(n): v for n, v in (line.split("==") for line in listed)}
    pinned = constraints()
    wrong = {n: (installed[n], v) for n, v in pinned.items() if n in installed and installed[n] != v}
    assert not wrong, f"installed and pinned versions differ: {wrong}"


def test_every_pinned_package_takes_the_oldest_python_that_the_project_takes() -> None:
    """Debian 12 has 3.11.2, for one: a package that asks for a later 3.11 cannot be installed there."""
    oldest = "3.11.0"
    pinned = constraints()
    asks = {
        d.name: d.metadata.get("Requires-Python")  # a package that keyring loads makes a missing one a KeyError
        for d in metadata.distributions()
        if canonicalize_name(d.name) in pinned and d.metadata.get("Requires-Python")
    }
    assert asks
    refused = {name: wanted for name, wanted in asks.items() if not SpecifierSet(wanted).contains(oldest)}
    assert not refused
