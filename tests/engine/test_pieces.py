"""Pieces of a state follow its content."""

from __future__ import annotations

import numpy as np
import pytest

from sparkstream_nb.engine.columnar.blocks import digest_of
from sparkstream_nb.engine.columnar.column_data import Column, StringPool
from sparkstream_nb.engine.state.content_chunking import LEAST, MOST, pieces
from sparkstream_nb.engine.state.snapshot import pack, unpack
from sparkstream_nb.types import Type

BYTES = np.random.default_rng(1).integers(0, 256, 8_000_000, dtype=np.uint8).tobytes()


def cut(*parts: bytes) -> list[bytes]:
    """The pieces of `parts`."""
    found = list(pieces(parts))
    assert [(p.digest, p.size) for p in found] == [(digest_of(p.data()), len(p.data())) for p in found]
    return [bytes(p.data()) for p in found]


@pytest.mark.parametrize("blob", [b"", b"x", bytes(5_000_000), BYTES, BYTES[:LEAST], BYTES[: LEAST + 1]], ids=len)
def test_pieces_are_the_whole(blob: bytes) -> None:
    found = cut(blob)
    assert b"".join(found) == blob
    assert all(LEAST <= len(p) <= MOST for p in found[:-1])


def test_what_moves_stays_the_same_pieces() -> None:
    before = set(cut(BYTES))
    after = cut(b"one more" + BYTES[100:])
    assert len(after) > 10
    assert sum(p in before for p in after) >= len(after) - 2


def test_a_part_that_grows_leaves_the_next_as_it_is() -> None:
    large, other = BYTES[:3_000_000], BYTES[3_000_000:6_000_000]
    before = cut(b"head", large, b"small", other)
    after = cut(b"a longer head", large + b"more", b"", other)
    assert b"".join(after) == b"a longer head" + large + b"more" + other
    assert len(set(after) - set(before)) <= 2


def test_codes_are_the_same_however_many_strings_there_are() -> None:
    few, many = StringPool(), StringPool()
    many.encode([f"other {i}" for i in range(1000)])
    texts = ["b", None, "a", "b"]
    blobs = []
    for strings in (few, many):
        blob = pack(Column(Type.STRING, strings.encode(texts), None), strings)
        again = unpack(blob, StringPool())
        assert len(again.values) == 4
        blobs.append(blob)
    assert blobs[0] == blobs[1]
