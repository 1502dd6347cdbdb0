"""The parser's tables are made once and kept in the user's cache; without it, or where it is spoilt, they are made."""

from __future__ import annotations

from pathlib import Path

import pytest
from lark import Lark

from sparkstream_nb.lang import parser

APP = "define stream S (v int); from S[v > 1]#window.length(2) select sum(v) as s insert into O;"
MACHINERY = parser.machinery


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sparkstream_nb"


def parsed(monkeypatch: pytest.MonkeyPatch) -> object:
    """The app's tree, by a parser as a new process has it."""
    made = MACHINERY.__wrapped__()
    monkeypatch.setattr(parser, "machinery", lambda: made)
    return parser.parse(APP)


def test_a_parser_of_kept_tables_reads_the_same(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = parsed(monkeypatch)
    (kept,) = cache.iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    monkeypatch.setattr(Lark, "__init__", lambda *_, **__: pytest.fail("the tables are made again"))
    assert parsed(monkeypatch) == made


@pytest.mark.parametrize("spoilt", [b"", b"not a pickle", None])
def test_tables_that_are_spoilt_are_made_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch, spoilt: bytes | None
) -> None:
    made = parsed(monkeypatch)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2] if spoilt is None else spoilt)
    assert parsed(monkeypatch) == made
    with kept.open("rb") as file:
        assert Lark.load(file).options.start == list(parser._STARTS)


def test_without_a_place_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert parsed(monkeypatch) == parser.parse(APP)
