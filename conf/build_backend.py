"""The build backend: setuptools, which leaves its own folders in a checkout, and the time and umask of a build in what
it builds, without them.

pip builds in the checkout itself. What was there before stays. The same commit gives the same bytes, wherever and
whenever it is built with the same setuptools, a wheel also from the sdist: files are in order, have one of two modes,
and the time of the commit (`$SOURCE_DATE_EPOCH` where that is set).
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist",
    "get_requires_for_build_wheel", "prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel",
]  # fmt: skip

_VARIABLE = "SOURCE_DATE_EPOCH"
_NOTED = Path("conf", "source-date-epoch")
"""In an sdist, where there are no commits: the time of the one that it was made of."""
_INDEX = Path("sparkstream_nb", "cli", "agents", "documentation.json")
"""The pages of `docs/` in what is built, for `sparkstream mcp`."""
_EARLIEST = 315_532_800
"""1980, which the times of zip files begin with."""


def _left_behind() -> set[Path]:
    return {Path("build"), *Path().glob("*.egg-info")}


@contextlib.contextmanager
def _tidy() -> Iterator[None]:
    before = {folder for folder in _left_behind() if folder.exists()}
    try:
        yield
    finally:
        for folder in {*(_left_behind() - before), Path(__file__).parent / "__pycache__"}:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _with_documentation() -> Iterator[None]:
    """The index is there in the block, made of `docs/`; an sdist has it already."""
    pages = sorted(Path("docs").rglob("*.md"))
    if _INDEX.exists() or not pages:
        yield
        return
    texts = {p.as_posix(): p.read_text(encoding="utf-8") for p in pages}
    _INDEX.write_text(json.dumps(texts, ensure_ascii=False, indent=0), encoding="utf-8")
    try:
        yield
    finally:
        _INDEX.unlink()


def _time() -> int:
    """The time of what is built, in seconds since 1970."""
    if os.environ.get(_VARIABLE):
        return max(_EARLIEST, int(os.environ[_VARIABLE]))
    found = ""
    if Path(".git").exists():
        with contextlib.suppress(OSError):
            command = ["git", "log", "-1", "--format=%ct"]
            found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    elif _NOTED.exists():
        found = _NOTED.read_text(encoding="ascii").strip()
    return max(_EARLIEST, int(found)) if found.isdecimal() else _EARLIEST


def _mode(executable: bool) -> int:
    return 0o755 if executable else 0o644


def _same_sdist(path: Path) -> None:
    """Writes an sdist anew, the same for the same files."""
    at = _time()
    with tarfile.open(path) as former:
        files = {m.name: (m, former.extractfile(m)) for m in former.getmembers()}
        files = {name: (m, None if file is None else file.read()) for name, (m, file) in files.items()}
    root = path.name.removesuffix(".tar.gz")
    note = tarfile.TarInfo(f"{root}/{_NOTED.as_posix()}")
    files[note.name] = (note, f"{at}\n".encode())
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, (found, data) in sorted(files.items()):
            new = tarfile.TarInfo(name)
            new.type, new.mtime = found.type, at
            new.mode = _mode(found.isdir() or bool(found.mode & 0o100 and name != note.name))
            new.size = len(data or b"")
            tar.addfile(new, None if data is None else io.BytesIO(data))
    path.write_bytes(gzip.compress(whole.getvalue(), mtime=at))


def _same_wheel(path: Path) -> None:
    """Writes a wheel anew, the same for the same files. Its list of them stays the last."""
    at = time.gmtime(_time())[:6]
    with zipfile.ZipFile(path) as former:
        files = {i.filename: (i, former.read(i)) for i in former.infolist()}
    new = path.with_suffix(".new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(files, key=lambda n: (n.endswith(".dist-info/RECORD"), n)):
            found, data = files[name]
            info = zipfile.ZipInfo(name, at)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3  # Unix
            info.external_attr = (0o100000 | _mode(bool(found.external_attr >> 16 & 0o100))) << 16
            packed.writestr(info, data)
    new.replace(path)


def prepare_metadata_for_build_wheel(*given: Any, **more: Any) -> str:
    """As PEP 517 has it."""
    with _tidy():
        return build_meta.prepare_metadata_for_build_wheel(*given, **more)


def prepare_metadata_for_build_editable(*given: Any, **more: Any) -> str:
    """As PEP 660 has it."""
    with _tidy():
        return build_meta.prepare_metadata_for_build_editable(*given, **more)


def build_wheel(wheel_directory: str, *given: Any, **more: Any) -> str:
    """As PEP 517 has it."""
    with _tidy(), _with_documentation():
        name = build_meta.build_wheel(wheel_directory, *given, **more)
    _same_wheel(Path(wheel_directory, name))
    return name


def build_editable(*given: Any, **more: Any) -> str:
    """As PEP 660 has it."""
    with _tidy():
        return build_meta.build_editable(*given, **more)


def build_sdist(sdist_directory: str, *given: Any, **more: Any) -> str:
    """As PEP 517 has it."""
    with _tidy(), _with_documentation():
        name = build_meta.build_sdist(sdist_directory, *given, **more)
    _same_sdist(Path(sdist_directory, name))
    return name
