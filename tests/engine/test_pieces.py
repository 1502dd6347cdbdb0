"""Pieces of a state follow its content."""

from __future__ import annotations

import numpy as np
import pytest

from sparkstream_nb.engine.pieces import LEAST, MOST, pieces

BYTES = np.random.default_rng(1).integers(0, 256, 8_000_000, dtype=np.uint8).tobytes()


@pytest.mark.parametrize("blob", [b"", b"x", bytes(5_000_000), BYTES, BYTES[:LEAST], BYTES[: LEAST + 1]], ids=len)
def test_pieces_are_the_whole(blob: bytes) -> None:
    found = pieces(blob)
    assert b"".join(found) == blob
    assert all(LEAST <= len(p) <= MOST for p in found[:-1])


def test_what_moves_stays_the_same_pieces() -> None:
    before = {bytes(p) for p in pieces(BYTES)}
    after = [bytes(p) for p in pieces(b"one more" + BYTES[100:])]
    assert len(after) > 10
    assert sum(p in before for p in after) >= len(after) - 2
