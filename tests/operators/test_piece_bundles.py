"""Pieces of a node's state in bundles: the same pieces come back, and what is stored is bounded."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.runners.operator import piece_bundles
from sparkstream_nb.runners.operator.piece_bundles import Bundles, PieceBundles

from .in_process import MemoryState

PIECES = st.lists(st.binary(min_size=1, max_size=40), max_size=8)
CHANGES = st.lists(st.tuples(PIECES, st.sets(st.integers(0, 20))), max_size=12)
"""What each micro-batch adds, and the places, of the pieces there, of those that it removes."""


@given(changes=CHANGES)
def test_pieces_are_those_that_were_put_and_not_removed(changes: list[tuple[list[bytes], set[int]]]) -> None:
    state, expected = MemoryState(), dict[str, bytes]()
    held: Bundles = {}
    numbers = itertools.count()
    for put, removed in changes:
        bundles = PieceBundles(state, held)
        for digest in [digest for place, digest in enumerate(expected) if place in removed]:
            bundles.remove_piece(digest)
            del expected[digest]
        for piece in put:
            digest = str(next(numbers))
            bundles.put_piece(digest, piece)
            expected[digest] = piece
        assert {digest: bundles.piece(digest) for digest in expected} == expected
        held = json.loads(json.dumps(bundles.write()))
        again = PieceBundles(state, held)
        assert {digest: again.piece(digest) for digest in expected} == expected
        assert state.pieces.keys() == held.keys()
        assert sum(map(len, state.pieces.values())) <= 2 * sum(map(len, expected.values()))


def test_a_micro_batch_writes_one_value_and_reads_none_while_most_of_the_bytes_are_used() -> None:
    state = CountedState()
    bundles = PieceBundles(state, {})
    for i in range(10):
        bundles.put_piece(f"a{i}", bytes(100))
    held = bundles.write()
    assert state.calls == ["put"]
    bundles = PieceBundles(state, held)
    for i in range(4):
        bundles.remove_piece(f"a{i}")
        bundles.put_piece(f"b{i}", bytes(100))
    held = bundles.write()
    assert state.calls == ["put", "put"]
    bundles = PieceBundles(state, held)
    bundles.remove_piece("a4")
    bundles.remove_piece("a5")
    bundles.write()
    assert state.calls == ["put", "put", "get", "remove", "put"]


def test_a_bundle_that_is_full_is_followed_by_another() -> None:
    state = MemoryState()
    bundles = PieceBundles(state, {})
    size = piece_bundles.BUNDLE_BYTES // 2
    for i in range(5):
        bundles.put_piece(str(i), bytes([i]) * size)
    held = bundles.write()
    assert [len(sizes) for sizes in held.values()] == [2, 2, 1]
    assert [PieceBundles(state, held).piece(str(i)) for i in range(5)] == [bytes([i]) * size for i in range(5)]


class CountedState(MemoryState):
    """A state that records what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def piece(self, digest: str) -> bytes | None:
        self.calls.append("get")
        return super().piece(digest)

    def put_piece(self, digest: str, piece: bytes) -> None:
        self.calls.append("put")
        super().put_piece(digest, piece)

    def remove_piece(self, digest: str) -> None:
        self.calls.append("remove")
        super().remove_piece(digest)
