"""An engine's state in the state of its node, as pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..engine.columnar.blocks import Buffer, Tracked, digest_of
from ..engine.state.content_chunking import pieces
from ..errors import SparkStreamError
from .node_spec import PieceStore

ITS_CHECKPOINT = "its checkpoint"


def save_pieces(
    state: PieceStore, parts: Iterable[Buffer | Tracked], previous_digests: Sequence[str]
) -> tuple[list[str], int]:
    """Write the parts of an engine's state: (digests of its pieces, bytes in all). Pieces among
    `previous_digests` are there already; those that are no longer used are removed."""
    stored_digests, digests, size = set(previous_digests), [], 0
    unused_digests = set(stored_digests)
    for piece in pieces(parts):
        digest = piece.digest
        if digest not in stored_digests:
            state.put_piece(digest, bytes(piece.data()))
            stored_digests.add(digest)
        unused_digests.discard(digest)
        digests.append(digest)
        size += piece.size
    for digest in unused_digests:
        state.remove_piece(digest)
    return digests, size


def read_piece(state: PieceStore, digest: str, place: str = ITS_CHECKPOINT) -> bytes:
    """A piece that has to be there. Raises SparkStreamError, with the `place` of the state in words, if it is missing
    or not what was written.
    """
    data = state.piece(digest)
    if not isinstance(data, bytes | bytearray | memoryview) or digest_of(data) != digest:
        what = "is missing" if data is None else "is not what was written"
        raise damaged_state(f"piece {digest} {what}", place)
    return data


def damaged_state(what: str, place: str = ITS_CHECKPOINT) -> SparkStreamError:
    """The error for a node's stored state of which `what` is true."""
    return SparkStreamError(
        f"The state of a node in {place} is damaged: {what}. Put the checkpoint back from a copy, or begin with a new "
        "one (an app: fresh=True)."
    )


@dataclass
class MemoryState:
    """The state of a node in the memory of a trial. A `NodeState`."""

    current: tuple[str, str] | None
    pieces: dict[str, bytes] = field(default_factory=dict)

    def version(self) -> tuple[str, str] | None:
        return self.current

    def set_version(self, version: str, digests: str) -> None:
        self.current = version, digests

    def piece(self, digest: str) -> bytes | None:
        return self.pieces.get(digest)

    def put_piece(self, digest: str, piece: bytes) -> None:
        self.pieces[digest] = piece

    def remove_piece(self, digest: str) -> None:
        self.pieces.pop(digest, None)
