"""The packages of others that this one brings along, with versions and licences: `python conf/release/third_party.py`
writes THIRD_PARTY_LICENSES.md, `bill_of_materials` is the same for programs (CycloneDX).

Both are read from the metadata of what is installed, which has to be what constraints.txt pins.
"""

from __future__ import annotations

import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseAcknowledgement
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "THIRD_PARTY_LICENSES.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = "core"
EXTRAS = (
    "spark", "magics", "notebooks", "connect", "kafka", "nats", "mqtt", "rabbitmq", "databases", "avro", "generate",
    "mcp",
)  # fmt: skip
"""The extras of `all`. A package is listed for the first ones that need it: `notebooks` has `spark` and `magics`."""
_HEAD = """# Licences of third parties

Written by `python conf/release/third_party.py`: do not edit. Licences are given in the words of the packages' metadata.

## In the package itself

| part | licence |
| --- | --- |
| dagre, layout of graphs: `sparkstream_nb/lab/graph/dagre.min.js` | MIT: `dagre.LICENSE.txt` beside it |

## Installed with it

None of these is part of the wheel: pip gets each from its authors. Versions are those of `constraints.txt`, on Linux.
A container that is built from the `Dockerfile` holds copies, and with them their licences' duties.

| package | version | licence | for |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Dependency:
    """A package that is installed: its licence in its metadata's words, what it needs, and which `parts` of this
    project (`core` or extras) need it."""

    name: str
    version: str
    licence: str
    homepage: str | None
    needs: tuple[str, ...]
    parts: tuple[str, ...]


def _expanded(extra: str) -> list[Requirement]:
    """The requirements of an extra, with those of the extras that it names."""
    out = []
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
        named = requirement.name == PROJECT["name"]
        out += [r for other in sorted(requirement.extras) for r in _expanded(other)] if named else [requirement]
    return out


def _needs(name: str, extras: Iterable[str]) -> list[Requirement]:
    """The requirements of an installed package on this platform."""
    environments = [{**default_environment(), "extra": extra} for extra in (*extras, "")]
    listed = map(Requirement, metadata.requires(name) or [])
    return [r for r in listed if r.marker is None or any(r.marker.evaluate(e) for e in environments)]


def _closure(requirements: Sequence[Requirement]) -> dict[str, set[str]]:
    """Names of packages and all that they bring along, with the names of what each needs."""
    out: dict[str, set[str]] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    queue = [(canonicalize_name(r.name), frozenset(r.extras)) for r in requirements]
    while queue:
        entry = queue.pop()
        if entry in done:
            continue
        done.add(entry)
        needs = _needs(*entry)
        out.setdefault(entry[0], set()).update(canonicalize_name(r.name) for r in needs)
        queue += [(canonicalize_name(r.name), frozenset(r.extras)) for r in needs]
    return out


def _licence(distribution: metadata.Distribution) -> str:
    """The licence in the metadata's words: as an expression, in one line, by classifiers, or as its file's title."""
    about = distribution.metadata
    text = (about.get("License") or "").strip()
    classifiers = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
    titles = [
        f.read_text(encoding="utf-8").strip().splitlines()[0].strip("# ")
        for f in distribution.files or []
        if re.search(r"dist-info/.*LICEN[CS]E[^/]*$", f.as_posix())
    ]
    is_name = bool(text) and "\n" not in text and len(text) < 60 and text not in ("UNKNOWN", "Dual License")
    return next(
        filter(None, [about.get("License-Expression"), text if is_name else None, " or ".join(classifiers), *titles]),
        "not stated",
    )


def _homepage(about: metadata.PackageMetadata) -> str | None:
    links = dict(link.split(", ", 1) for link in about.get_all("Project-URL") or [] if ", " in link)
    by_label = {label.lower(): address for label, address in links.items()}
    labels = ("homepage", "source", "repository", "source code")
    candidates = (about.get("Home-page"), *(by_label.get(label) for label in labels))
    return next((address for address in candidates if address and address != "UNKNOWN"), None)


def dependencies() -> list[Dependency]:
    """All packages that the core and the extras of `all` bring along, by name. Raises SystemExit where another version
    is installed than constraints.txt pins."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    closures = {CORE: _closure([*map(Requirement, PROJECT["dependencies"])])}
    closures |= {extra: _closure(_expanded(extra)) for extra in EXTRAS}
    out = []
    for name in sorted(set().union(*closures.values())):
        distribution = metadata.distribution(name)
        if distribution.version != pins.get(name):
            raise SystemExit(f"{name} {distribution.version} is installed, and {pins.get(name)} is in constraints.txt")
        parts = [part for part, closure in closures.items() if name in closure]
        parts = [CORE] if CORE in parts else parts
        if {"spark", "magics"} & {*parts}:
            parts = [p for p in parts if p in ("spark", "magics")]
        needs = set().union(*(closure.get(name, ()) for closure in closures.values()))
        link = _homepage(distribution.metadata)
        out.append(
            Dependency(name, distribution.version, _licence(distribution), link, (*sorted(needs),), (*parts,))
        )
    return out


def page() -> str:
    """The text of THIRD_PARTY_LICENSES.md."""
    rows = (f"| {d.name} | {d.version} | {d.licence} | {', '.join(d.parts)} |\n" for d in dependencies())
    return _HEAD + "".join(rows)


def bill_of_materials(wheel: Path, sha256: str, version: str, seconds: int) -> str:
    """The CycloneDX document (JSON, 1.6) of a wheel with its extra `all`: the same for the same wheel. `seconds`: its
    time since 1970. Raises ValueError where it would not be valid."""
    licences = LicenseFactory()

    def component(name: str, number: str, licence: str, link: str | None) -> Component:
        purl = PackageURL("pypi", None, name, number)
        links = [ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(link))] if link else []
        return Component(
            name=name, version=number, type=ComponentType.LIBRARY, purl=purl, bom_ref=str(purl),
            licenses=[licences.make_from_string(licence, license_acknowledgement=LicenseAcknowledgement.DECLARED)],
            external_references=links,
        )  # fmt: skip

    root = component(PROJECT["name"], version, PROJECT["license"], None)
    root.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=sha256))
    listed = dependencies()
    components = {d.name: component(d.name, d.version, d.licence, d.homepage) for d in listed}
    bom = Bom(components=components.values(), serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{wheel.name} {sha256}"))
    bom.metadata.component, bom.metadata.timestamp = root, datetime.fromtimestamp(seconds, UTC)
    direct = [*PROJECT["dependencies"], *map(str, _expanded("all"))]
    bom.register_dependency(root, [components[canonicalize_name(Requirement(text).name)] for text in direct])
    for dependency in listed:
        bom.register_dependency(components[dependency.name], [components[name] for name in dependency.needs])
    text = JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        raise ValueError(str(error))
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name}: {len(dependencies())} packages", file=sys.stderr)
