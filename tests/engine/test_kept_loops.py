"""What inlining made of a loop is read from disk in later processes, and made again where it does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.engine.notation import kernels
from sparkstream_nb.engine.notation.kernels import inlined as inlined_helper
from sparkstream_nb.engine.notation.kernels import kernel

STEP = 3


@inlined_helper
def _twice(x: int) -> int:
    return 2 * x


def _loop(n: int, more: bool) -> int:
    total = 0
    for i in range(n):
        doubled = _twice(i)
        total += doubled * STEP if more else doubled
    return total


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(kernels, "_kept_folder", lambda: tmp_path)
    monkeypatch.setattr(kernels, "_is_ours", lambda function, structs: True)
    return tmp_path


@pytest.fixture
def inlined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The loops that are inlined."""
    found: list[str] = []
    made = kernels._inline_loop

    def noting(function: Any, structs: Any, fixed: Any) -> Any:
        found.append(function.__name__)
        return made(function, structs, fixed)

    monkeypatch.setattr(kernels, "_inline_loop", noting)
    return found


def test_a_loop_is_inlined_once(kept: Path, inlined: list[str]) -> None:
    first, again, other = kernel(_loop, more=True), kernel(_loop, more=True), kernel(_loop, more=False)
    assert inlined == ["_loop", "_loop"]
    assert (first(4), again(4), other(4)) == (36, 36, 12)
    assert first.py_func.__qualname__ == again.py_func.__qualname__ != other.py_func.__qualname__


def test_another_constant_or_a_damaged_file_is_not_read(
    kept: Path, inlined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = kernel(_loop, more=True).py_func.__qualname__
    monkeypatch.setitem(globals(), "STEP", 5)
    assert kernel(_loop, more=True)(4) == 60
    (file,) = kept.iterdir()
    for damaged in (b"", file.read_bytes()[:40], b"\xff" * 100):
        file.write_bytes(damaged)
        assert kernel(_loop, more=True).py_func.__qualname__ != name
    assert inlined == ["_loop"] * 5


def test_where_nothing_can_be_written_it_is_made_each_time(
    inlined: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernels, "_kept_folder", lambda: tmp_path / "missing")
    monkeypatch.setattr(kernels, "_is_ours", lambda function, structs: True)
    assert [kernel(_loop, more=False)(4) for _ in range(2)] == [12, 12]
    assert inlined == ["_loop", "_loop"]
