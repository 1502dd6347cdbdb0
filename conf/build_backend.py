"""The build backend: setuptools, which leaves its own folders in a checkout, without them.

pip builds in the checkout itself. What was there before stays.
"""

from __future__ import annotations

import contextlib
import shutil
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


def prepare_metadata_for_build_wheel(*given: Any, **more: Any) -> str:
    """As PEP 517 has it."""
    with _tidy():
        return build_meta.prepare_metadata_for_build_wheel(*given, **more)


def prepare_metadata_for_build_editable(*given: Any, **more: Any) -> str:
    """As PEP 660 has it."""
    with _tidy():
        return build_meta.prepare_metadata_for_build_editable(*given, **more)


def build_wheel(*given: Any, **more: Any) -> str:
    """As PEP 517 has it."""
    with _tidy():
        return build_meta.build_wheel(*given, **more)


def build_editable(*given: Any, **more: Any) -> str:
    """As PEP 660 has it."""
    with _tidy():
        return build_meta.build_editable(*given, **more)


def build_sdist(*given: Any, **more: Any) -> str:
    """As PEP 517 has it."""
    with _tidy():
        return build_meta.build_sdist(*given, **more)
