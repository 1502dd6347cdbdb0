"""Committed outputs of a stream, read from the app's folder by another process than the app's.

The app's process may write, merge and drop files meanwhile, and its lock (`OutputFiles.tidying`) is not seen here. So
files are listed until two listings are the same, and files that are gone when they are opened are listed again. The
last micro-batch whose outputs were dropped is on the disk before its files go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from ..errors import SparkStreamError
from .output_files import OutputFile, OutputFiles, in_order, sizes_of, table_of

_RANGE_BYTES = 32_000_000
"""Bytes of files that one range has, about."""
_TRIES = 100


@dataclass(frozen=True)
class BatchRange:
    """The micro-batches after `after`, up to and including `last`; of the rows of a large one only share number `share`
    of `shares`."""

    after: int
    last: int
    share: int = 0
    shares: int = 1


class CommittedOutputs:
    """Outputs of `stream` in `folder`, the outputs of one run of an app. `title` names the stream in messages; `first`
    is the first micro-batch in which it has its present attributes."""

    def __init__(self, folder: Path, stream: str, title: str, first: int = 0) -> None:
        self.stream, self.title, self.first = stream, title, first
        self._files = OutputFiles(folder, ())

    def last_committed(self) -> int:
        """The last committed micro-batch with outputs of any stream, `find_start` at least. Raises SparkStreamError as
        `find_start` does."""
        return max(self._files.accounted_batch, self.find_start())

    def find_start(self) -> int:
        """The last micro-batch before the outputs that are kept; -1 if all are. Raises SparkStreamError if the folder
        is not there."""
        self._check_folder()
        return max(self._files.last_dropped(self.stream), self.first - 1)

    def check_kept(self, after: int) -> None:
        """Raises SparkStreamError if outputs of a micro-batch after `after` are no longer kept."""
        begins = self.find_start()
        if after >= begins:
            return
        missing = f"{self.title}: the outputs of micro-batches {after + 1} to {begins}, which were not read yet, "
        if begins == self.first - 1:
            raise SparkStreamError(
                f"{missing}have other attributes than now, and are in the trash of the app's folder. Begin again with "
                "a new checkpoint"
            )
        raise SparkStreamError(
            f"{missing}are no longer kept. Begin again with a new checkpoint, and deploy the app with a larger "
            "retention"
        )

    def last_within(self, batch_range: BatchRange, rows: int) -> int:
        """The last micro-batch of a range up to which it has at most `rows` outputs; the first with outputs where that
        alone has more, and the end of the range where it has fewer. Raises SparkStreamError as `check_kept` does."""
        total = 0
        last = batch_range.after
        for _ in range(_TRIES):
            try:
                sizes = [size for files in self._groups(batch_range) for size in sizes_of(files)]
                break
            except FileNotFoundError:  # merged or dropped meanwhile
                continue
        else:
            raise SparkStreamError(f"{self.title}: its outputs change while they are counted")
        for number, count in sizes:
            if not batch_range.after < number <= batch_range.last:
                continue
            if total and total + count > rows:
                return last
            total, last = total + count, number
        return batch_range.last

    def _groups(self, batch_range: BatchRange) -> Iterator[list[OutputFile]]:
        """The files of a range that begin with one micro-batch, in order."""
        for _, group in groupby(self._list(batch_range), key=lambda f: f.first):
            yield list(group)

    def divide(self, batch_range: BatchRange) -> list[BatchRange]:
        """Ranges of about the same size that have all outputs of a range, in order; none if it has none. Raises
        SparkStreamError as `check_kept` does."""
        out: list[BatchRange] = []
        after = last = batch_range.after
        size = 0
        for files in self._groups(batch_range):
            group_bytes = sum(_size_of(f.path) for f in files)
            if size and size + group_bytes > _RANGE_BYTES:
                out.append(BatchRange(after, last))
                after, size = last, 0
            size, last = size + group_bytes, min(max(f.last for f in files), batch_range.last)
            if size >= 2 * _RANGE_BYTES:  # one large micro-batch: files of several are smaller
                shares = size // _RANGE_BYTES
                out += [BatchRange(after, last, share, shares) for share in range(shares)]
                after, size = last, 0
        return [*out, BatchRange(after, last)] if size else out

    def read(self, batch_range: BatchRange) -> Iterator[pa.Table]:
        """The outputs of a range: the number of the node from 0, `step`, `ts`, then the attributes, in order of
        micro-batch, step and node. Raises SparkStreamError as `check_kept` does, and if a file is damaged."""
        at, tries = batch_range.after, 0
        while at < batch_range.last:
            for files in self._groups(replace(batch_range, after=at)):
                try:
                    sizes, tables = sizes_of(files), [table_of(f) for f in files]
                except FileNotFoundError:  # merged or dropped meanwhile
                    tries += 1
                    if tries > _TRIES:
                        raise SparkStreamError(f"{self.title}: its outputs change while they are read") from None
                    break
                yield from _chosen(in_order(tables), sizes, replace(batch_range, after=at))
                at = max(at, max(number for number, _ in sizes))
            else:
                return

    def _list(self, batch_range: BatchRange) -> list[OutputFile]:
        """The files with outputs of a range."""
        before: list[OutputFile] | None = None
        for _ in range(_TRIES):
            files = self._files.files(self.stream)
            if files == before:
                self.check_kept(batch_range.after)  # later: what was dropped before it was listed is known by now
                return [f for f in files if f.last > batch_range.after and f.first <= batch_range.last]
            before = files
        raise SparkStreamError(f"{self.title}: its outputs change while they are listed")

    def _check_folder(self) -> None:
        folder = self._files.folder
        if folder.is_dir():
            return
        home = folder.parents[1]
        if (home / "app.json").exists():
            raise SparkStreamError(
                f"{self.title}: the app was deployed again from the beginning, and these outputs are in the trash of "
                f"its folder {home}. Begin again with app.stream(...) of the new app, and a new checkpoint"
            )
        raise SparkStreamError(
            f"{self.title}: there is no app in {home}. It was removed, or Spark's machines do not see the folder: "
            "deploy the app into a folder that they share (home=...)"
        )


def _size_of(path: Path) -> int:
    try:
        return max(path.stat().st_size, 1)
    except FileNotFoundError:
        return 1


def _chosen(table: pa.Table, sizes: Sequence[tuple[int, int]], batch_range: BatchRange) -> Iterator[pa.Table]:
    """The rows of the micro-batches of a range, of a table whose micro-batches have these `sizes`."""
    at = begin = rows = 0
    for number, size in sizes:
        if batch_range.after < number <= batch_range.last:
            begin, rows = (begin if rows else at), rows + size
        at += size
    first, end = rows * batch_range.share // batch_range.shares, rows * (batch_range.share + 1) // batch_range.shares
    if end > first:
        yield table.slice(begin + first, end - first)
