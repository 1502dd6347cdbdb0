"""`make release`: two builds with one hash, what goes with them, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparkstream_nb._version import __version__
from test_environment import ROOT, canonicalize_name, constraints, required
from test_wheel import run, source_in

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not all(map(shutil.which, ("git", "ssh-keygen"))), reason="there is no git or no ssh-keygen"),
]

WHEEL, SDIST = f"sparkstream_nb-{__version__}-py3-none-any.whl", f"sparkstream_nb-{__version__}.tar.gz"
BILL, LICENCES = f"sparkstream_nb-{__version__}.cdx.json", "THIRD_PARTY_LICENSES.md"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed copy of this checkout, whose git signs with a key of its own."""
    tmp = tmp_path_factory.mktemp("release")
    source = source_in(tmp / "source")
    for name in ("CHANGELOG.md", "constraints.txt", ".gitignore"):
        shutil.copy(ROOT / name, source)
    key = tmp / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key, cwd=tmp)
    (tmp / "signers").write_text(f"me@example.org {key.with_suffix('.pub').read_text()}", encoding="utf-8")
    run("git", "init", "--quiet", cwd=source)
    for name, value in {
        "user.name": "me", "user.email": "me@example.org", "gpg.format": "ssh", "user.signingkey": key,
        "gpg.ssh.allowedSignersFile": tmp / "signers",
    }.items():  # fmt: skip
        run("git", "config", name, value, cwd=source)
    run("git", "add", "--all", cwd=source)
    run("git", "commit", "--quiet", "--message=all", cwd=source)
    return source


def release(checkout: Path, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    script = checkout / "conf" / "release" / "make_release.py"
    clean = {"PYTHONDONTWRITEBYTECODE": "1"}
    return run(sys.executable, script, *arguments, cwd=checkout, env=clean, code=code)


@pytest.fixture(scope="module")
def made(checkout: Path) -> Path:
    """The folder of a release."""
    printed = release(checkout, __version__).stdout
    assert f"v{__version__} is tagged and signed" in printed
    assert "Nothing was sent." in printed
    return checkout / "dist"


def test_a_release_has_its_files_with_their_sums(made: Path) -> None:
    sums = dict(line.split("  ")[::-1] for line in (made / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    assert sums.keys() == {WHEEL, SDIST, BILL, LICENCES}
    assert {f.name for f in made.iterdir()} == sums.keys() | {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() == digest


def test_a_release_that_is_made_again_has_the_same_sums(made: Path, checkout: Path, tmp_path: Path) -> None:
    again = tmp_path / "other"
    run("git", "clone", "--quiet", "--no-tags", checkout, again, cwd=tmp_path)
    printed = release(again, __version__, "--into", tmp_path / "dist").stdout
    assert "git has no key to sign with" in printed
    assert f"git tag --sign v{__version__}" in printed
    assert (tmp_path / "dist" / "SHA256SUMS").read_bytes() == (made / "SHA256SUMS").read_bytes()


def test_the_tag_is_signed(made: Path, checkout: Path) -> None:
    verified = run("git", "tag", "--verify", f"v{__version__}", cwd=checkout)
    assert 'Good "git" signature for me@example.org' in verified.stderr + verified.stdout


def test_the_bill_of_materials_names_the_wheel_and_each_package(made: Path) -> None:
    bill = json.loads((made / BILL).read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    root = bill["metadata"]["component"]
    assert (root["name"], root["version"]) == ("sparkstream-nb", __version__)
    assert root["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256((made / WHEEL).read_bytes()).hexdigest()}]
    versions = {component["name"]: component["version"] for component in bill["components"]}
    pinned = constraints()
    assert versions == {name: pinned[name] for name in versions}
    assert all(component["licenses"] for component in bill["components"])
    needs = {entry["ref"]: entry.get("dependsOn", []) for entry in bill["dependencies"]}
    direct = {ref.removeprefix("pkg:pypi/").partition("@")[0] for ref in needs[root["bom-ref"]]}
    assert direct == {canonicalize_name(name) for name in required("all")} <= versions.keys()
    assert f"pkg:pypi/llvmlite@{pinned['llvmlite']}" in needs[f"pkg:pypi/numba@{pinned['numba']}"]


@pytest.mark.parametrize("at", ["the commit", "no time"])
def test_the_container_builds_the_same_wheel(at: str, made: Path, checkout: Path, tmp_path: Path) -> None:
    """By the first command of the Dockerfile, of the files that `.dockerignore` leaves."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (seconds,) = re.findall(r"(?m)^ARG SOURCE_DATE_EPOCH=(.*)$", text)
    command = re.findall(r"(?m)^RUN (.+)$", text)[0]
    context = tmp_path / "context"
    for name in re.findall(r"(?m)^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8")):
        copy = shutil.copytree if (checkout / name).is_dir() else shutil.copy
        context.mkdir(exist_ok=True)
        copy(checkout / name, context / name)
    if at == "the commit":
        seconds = run("git", "log", "-1", "--format=%ct", cwd=checkout).stdout.strip()
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PIP_NO_BUILD_ISOLATION": "0"}
    script = f"export SOURCE_DATE_EPOCH={seconds}; {command.replace('/wheels', str(tmp_path / 'wheels'))}"
    run("sh", "-c", script, cwd=context, env={**here, "PIP_NO_INDEX": "1", "PYTHONDONTWRITEBYTECODE": "1"})
    wheel = (tmp_path / "wheels" / WHEEL).read_bytes()
    assert (wheel == (made / WHEEL).read_bytes()) == (at == "the commit")


def test_what_is_no_release_is_refused(made: Path, checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    run("git", "clone", "--quiet", checkout, other, cwd=tmp_path)
    assert "_version.py has" in release(other, "9.9.9", code=1).stderr
    assert f"v{__version__} is tagged already" in release(other, __version__, code=1).stderr
    run("git", "tag", "--delete", f"v{__version__}", cwd=other)
    (other / "sparkstream_nb" / "more.py").touch()
    assert "changes that are not committed:\n?? sparkstream_nb/more.py" in release(other, __version__, code=1).stderr
    changelog = other / "CHANGELOG.md"
    changelog.write_text(re.sub(r"(?m)^## \d.*$", "", changelog.read_text(encoding="utf-8")), encoding="utf-8")
    assert f"CHANGELOG.md has no heading '## {__version__} - " in release(other, __version__, code=1).stderr
    assert not (other / "dist").exists()
