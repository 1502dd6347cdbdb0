"""Pieces of a node's state in bundles: what one micro-batch adds is one value of Spark's state store, as each
value read or written is a call to the JVM.

A bundle is removed when none of its pieces is used any more. If less than half of its bytes are used, they move into
the next one: at most twice the used bytes are stored, and a byte moves about once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from ..node_spec import PieceStore
from ..node_state import damaged_state

BUNDLE_BYTES = 1 << 22
"""The least number of bytes with which a bundle is full."""

UNUSED = ""
"""In place of the digest of a piece that is not used any more."""

Bundles = Mapping[str, Sequence[tuple[str, int]]]
"""By the key of a bundle, the digest and the size (bytes) of each of its pieces, in order."""


class PieceBundles:
    """The pieces of a node, in the `bundles` of a runner's `state`: a `PieceStore` whose changes are made by
    `write`."""

    def __init__(self, state: PieceStore, bundles: Bundles) -> None:
        self._state, self._bundles = state, bundles
        self._places = {digest: key for key, pieces in bundles.items() for digest, _ in pieces if digest != UNUSED}
        self._new: dict[str, bytes] = {}
        self._read: tuple[str, dict[str, bytes]] = "", {}

    def piece(self, digest: str) -> bytes | None:
        """The piece of a digest; None if it is missing."""
        key = self._places.get(digest)
        return self._new.get(digest) if key is None else self._bundle(key).get(digest)

    def _bundle(self, key: str) -> dict[str, bytes]:
        """The pieces of a bundle, by their digests. The one that was read last is kept."""
        if self._read[0] != key:
            data = self._state.piece(key)
            if data is None:
                raise damaged_state(f"bundle {key} is missing")
            pieces, begin = {}, 0
            for digest, size in self._bundles[key]:
                pieces[digest] = data[begin : begin + size]
                begin += size
            self._read = key, pieces
        return self._read[1]

    def put_piece(self, digest: str, piece: bytes) -> None:
        """Adds a piece."""
        if digest not in self._places:
            self._new[digest] = piece

    def remove_piece(self, digest: str) -> None:
        """Removes a piece."""
        if self._new.pop(digest, None) is None:
            del self._places[digest]

    def write(self) -> Bundles:
        """Makes the changes; returns the bundles that are there now."""
        left: dict[str, Sequence[tuple[str, int]]] = {}
        for key, former_pieces in self._bundles.items():
            pieces = [(digest if digest in self._places else UNUSED, size) for digest, size in former_pieces]
            used_pieces = [(digest, size) for digest, size in pieces if digest != UNUSED]
            if used_pieces and 2 * _size(used_pieces) >= _size(pieces):
                left[key] = pieces
                continue
            if used_pieces:
                bundle = self._bundle(key)
                self._new.update((digest, bundle[digest]) for digest, _ in used_pieces)
            self._state.remove_piece(key)
        full: list[tuple[str, int]] = []
        for digest, piece in self._new.items():
            full.append((digest, len(piece)))
            if _size(full) >= BUNDLE_BYTES:
                left[self._put(full)] = full
                full = []
        if full:
            left[self._put(full)] = full
        return left

    def _put(self, pieces: Iterable[tuple[str, int]]) -> str:
        """Writes a bundle of new pieces; returns its key."""
        key = os.urandom(12).hex()
        self._state.put_piece(key, b"".join(self._new[digest] for digest, _ in pieces))
        return key


def digests_of(bundles: Bundles) -> list[str]:
    """The digests of all pieces of bundles, in order; their places are what a node's note has."""
    return [digest for pieces in bundles.values() for digest, _ in pieces]


def _size(pieces: Iterable[tuple[str, int]]) -> int:
    return sum(size for _, size in pieces)
