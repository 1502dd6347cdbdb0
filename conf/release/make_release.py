"""Make the files of a release: `make release VERSION=0.3.0` (`python conf/release/make_release.py 0.3.0`).

Checks that the checkout is this version, clean and described in CHANGELOG.md; builds wheel and sdist twice, in two
clones, and the wheel from the sdist too, and compares their bytes; has twine check them; writes the bill of materials,
the licences of third parties and the sums of all; tags the commit where git has a key to sign with. It sends nothing
anywhere: what remains to be done is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from third_party import PAGE, ROOT, bill_of_materials, page

_BUILD = """
import os, sys
import build_backend
os.umask(int(sys.argv[3], 8))
getattr(build_backend, sys.argv[1])(sys.argv[2])
"""


class Refused(Exception):
    """Something is not as a release needs it; the text says what to do."""


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """What a command prints. Raises Refused with its error where it fails. A build has the time of its commit."""
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**environment, **variables}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Refused(f"{Path(command[0]).name} {command[1]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def digest(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_checkout(version: str) -> None:
    """Raises Refused unless the checkout is `version`, clean, described and not released yet."""
    said = re.search(r'__version__ = "(.+)"', (ROOT / "sparkstream_nb" / "_version.py").read_text(encoding="utf-8"))
    if said is None or said[1] != version:
        raise Refused(f"sparkstream_nb/_version.py has {said and said[1]}: write {version} there")
    extension = json.loads((ROOT / "sparkstream_nb/lab/labextension/package.json").read_text(encoding="utf-8"))
    if extension["version"] != version:
        raise Refused(f"sparkstream_nb/lab/labextension/package.json has {extension['version']}: write {version} there")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"(?m)^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changes):
        raise Refused(f"CHANGELOG.md has no heading '## {version} - {time.strftime('%Y-%m-%d')}': name its changes so")
    if page() != PAGE.read_text(encoding="utf-8"):
        raise Refused(f"{PAGE.name} is of other packages: run python conf/release/third_party.py, and commit it")
    changed = run("git", "status", "--porcelain")
    if changed:
        raise Refused(f"The checkout has changes that are not committed:\n{changed}")
    if run("git", "tag", "--list", f"v{version}"):
        raise Refused(f"v{version} is tagged already: a release is not made twice. Write the next version")


def build(what: str, source: Path, into: Path, umask: str = "022") -> Path:
    """Builds an `sdist` or a `wheel` of a folder."""
    into.mkdir(parents=True, exist_ok=True)
    before = {*into.iterdir()}
    variables = {"PYTHONPATH": str(source / "conf"), "PYTHONDONTWRITEBYTECODE": "1"}
    run(sys.executable, "-c", _BUILD, f"build_{what}", into, umask, cwd=source, **variables)
    (file,) = {*into.iterdir()} - before
    return file


def build_twice(work: Path) -> tuple[Path, Path]:
    """The wheel and the sdist. Raises Refused where a second build, or the wheel of the sdist, has other bytes."""
    builds = []
    for name, umask in (("first", "022"), ("second", "077")):
        run("git", "clone", "--quiet", ROOT, work / name)
        run("git", "checkout", "--quiet", run("git", "rev-parse", "HEAD"), cwd=work / name)
        builds.append([build(what, work / name, work / f"{name}-dist", umask) for what in ("wheel", "sdist")])
    (wheel, sdist), again = builds
    shutil.unpack_archive(sdist, work / "unpacked", filter="data")
    (unpacked,) = (work / "unpacked").iterdir()
    for file, other in [*zip((wheel, sdist), again, strict=True), (wheel, build("wheel", unpacked, work / "of-sdist"))]:
        if file.name != other.name or digest(file) != digest(other):
            raise Refused(f"Two builds differ: {file} and {other}. They are left there")
    return wheel, sdist


def tag(version: str) -> str:
    """Tags the commit with a signature where git has a key for one; what was done, or is to be done."""
    command = ["git", "tag", "--sign", f"v{version}", "--message", f"SparkStream Notebook {version}"]
    key = subprocess.run(["git", "config", "user.signingkey"], cwd=ROOT, capture_output=True, text=True, check=False)
    if key.stdout.strip():
        run(*command)
        return f"v{version} is tagged and signed"
    words = f"git tag --sign v{version} --message '{command[-1]}'"
    return f"git has no key to sign with (git config user.signingkey). With one: {words}"


def release(version: str, into: Path) -> None:
    """Writes the files of a release into a folder, and prints what remains to be done. Raises Refused."""
    check_checkout(version)
    work = Path(tempfile.mkdtemp(prefix="release-"))
    print("Building twice ...", flush=True)
    wheel, sdist = build_twice(work)
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, NO_COLOR="1")
    into.mkdir(parents=True, exist_ok=True)
    files = [into / wheel.name, into / sdist.name, into / f"sparkstream_nb-{version}.cdx.json", into / PAGE.name]
    for source, target in zip((wheel, sdist, PAGE), (files[0], files[1], files[3]), strict=True):
        shutil.copyfile(source, target)
    seconds = int(run("git", "log", "-1", "--format=%ct"))
    files[2].write_text(bill_of_materials(wheel, digest(wheel), version, seconds), encoding="utf-8")
    sums = "".join(f"{digest(file)}  {file.name}\n" for file in files)
    (into / "SHA256SUMS").write_text(sums, encoding="utf-8")
    shutil.rmtree(work)
    print(sums, end="")
    print(f"{into} has them all: both builds and the sdist's wheel are equal to the byte, and twine takes them.")
    print(tag(version))
    print(f"Nothing was sent. To publish: git push origin v{version}; twine upload {into}/*.whl {into}/*.tar.gz")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version", help="the version, as _version.py and CHANGELOG.md have it")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="folder of the files (default: dist/)")
    options = parser.parse_args()
    try:
        release(options.version, options.into)
    except Refused as refusal:
        print(f"No release: {refusal}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
