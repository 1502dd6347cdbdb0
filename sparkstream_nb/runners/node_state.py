"""An engine's state in the state of its node, as pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..engine.columnar.blocks import Buffer, Tracked
from ..engine.state.content_chunking import pieces
from .node_spec import PieceStore


def save_pieces(state: PieceStore, parts: Iterable[Buffer | Tracked], former: Sequence[str]) -> tuple[list[str], int]:
    """Write the parts of an engine's state: (digests of its pieces, bytes in all). Pieces among `former`, the last
    ones, are there already; those that are no longer used are removed."""
    there, now, size = set(former), [], 0
    gone = set(there)
    for piece in pieces(parts):
        digest = piece.digest
        if digest not in there:
            state.put_piece(digest, bytes(piece.data()))
            there.add(digest)
        gone.discard(digest)
        now.append(digest)
        size += piece.size
    for digest in gone:
        state.remove_piece(digest)
    return now, size


def read_piece(state: PieceStore, digest: str) -> bytes:
    """A piece that has to be there."""
    found = state.piece(digest)
    assert found is not None, f"piece {digest} of a node's state is missing"
    return found
