"""States of replayed nodes in a folder, so that a moment is near after a restart, and when more events have come."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from ..checksums import add_seal, check_sealed
from ..errors import DamagedFile
from ..journal.private import private_folder, write_private
from ..system import put_in_place

MOST_BYTES = 256 << 20
"""Bytes of the states of all replays of an app, at most."""
_SIZE = struct.Struct("<Q")


class StateFolder:
    """States by position of the replay `key`, below a `folder` of an app's life that other replays of it use too. A
    state that does not fit, is damaged or cannot be written is not there: the nodes are then replayed."""

    def __init__(self, folder: Path, key: str) -> None:
        self._all_states, self._folder = folder, folder / key

    def positions(self) -> list[int]:
        """The positions that have a state."""
        return [int(file.stem) for file in self._folder.glob("*.state") if file.stem.isdecimal()]

    def read(self, position: int, nodes: int) -> list[bytes] | None:
        """The states of a number of nodes; None if they are not there."""
        file = self._folder / f"{position}.state"
        try:
            check_sealed(file)
            data = file.read_bytes()
            sizes = [_SIZE.unpack_from(data, i * _SIZE.size)[0] for i in range(nodes)]
        except (DamagedFile, OSError, struct.error):
            file.unlink(missing_ok=True)
            return None
        states, at = [], nodes * _SIZE.size
        for size in sizes:
            states.append(data[at : at + size])
            at += size
        return states

    def write(self, position: int, states: Sequence[bytes]) -> None:
        """Keep the states of the nodes at a position; others go where there is no room, the oldest ones first."""
        data = b"".join([*(_SIZE.pack(len(state)) for state in states), *states])
        if len(data) > MOST_BYTES:
            return
        try:
            private_folder(self._folder)
            new = self._folder / f"{position}.new"
            write_private(new, add_seal(data))
            put_in_place(new, self._folder / f"{position}.state")
            self._make_room()
        except OSError:  # a full disk
            return

    def _make_room(self) -> None:
        files = sorted(self._all_states.glob("*/*.state"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        size = 0
        for file in files:
            size += file.stat().st_size
            if size > MOST_BYTES:
                file.unlink(missing_ok=True)
