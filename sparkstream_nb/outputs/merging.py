"""Keeps an app's outputs small: many small files become one, and the oldest go if they are too much or too old.

A file that takes the place of others is on the disk before these go; files that a crash leaves are not read
(`OutputFiles.files`), and go the next time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from ..checksums import seal
from ..journal.kept import DAY
from ..journal.private import private_file
from ..retention import Retention
from ..system import put_in_place, to_disk
from .output_files import OutputFile, OutputFiles, in_order, rows_of, sizes_of, table_of, with_sizes

TOGETHER = 64
"""Micro-batches whose small files are merged at once, at least."""
SMALL = 1_000_000
"""Bytes of a micro-batch's output of a stream, below which it is merged with others."""
MANY = 1_000_000
"""Rows after which the kept files are checked again, even after few micro-batches."""


class Merging:
    """Tidies the `outputs` of a running app."""

    def __init__(self, outputs: OutputFiles, retention: Retention) -> None:
        self.outputs, self.retention = outputs, retention
        self._files_by_stream: dict[str, int] = {}
        self._since = self._rows = 0

    def note_commit(self, batch: int, rows: Mapping[str, int]) -> None:
        """Note that micro-batch `batch` is committed, with `rows` rows of output by stream.

        Its own files stay as they are: until the next one, Spark may repeat it.
        """
        with self.outputs.tidying:
            self._tidy(batch, rows)

    def _tidy(self, batch: int, rows: Mapping[str, int]) -> None:
        for stream in rows:
            self._files_by_stream[stream] = self._files_by_stream.get(stream, 0) + 1
            if self._files_by_stream[stream] >= TOGETHER:
                self._files_by_stream[stream] = 0
                self._merge(stream, batch)
        self._since, self._rows = self._since + 1, self._rows + sum(rows.values())
        if self._since >= TOGETHER or self._rows >= MANY:
            self._since = self._rows = 0
            self._drop(batch)

    def _merge(self, stream: str, batch: int) -> None:
        files = self.outputs.files(stream)
        paths = {f.path for f in files}
        for path in self.outputs.stream_folder(stream).glob("*.arrows"):
            if path not in paths:
                path.unlink(missing_ok=True)
        committed_files = [f for f in files if f.last < batch]
        for run in _runs([list(group) for _, group in groupby(committed_files, key=lambda f: f.first)]):
            _merge_run(self.outputs.stream_folder(stream), run)

    def _drop(self, batch: int) -> None:
        """Drops the oldest files, and counts the events that go."""
        files_by_age = [(s, f, f.path.stat()) for s in self._streams() for f in self.outputs.files(s)]
        files_by_age.sort(key=lambda x: (x[1].last, x[1].path))
        total = sum(stat.st_size for _, _, stat in files_by_age)
        oldest = None if self.retention.days is None else time.time() - self.retention.days * DAY
        going: list[tuple[str, Path]] = []
        for stream, file, stat in files_by_age:
            too_much = self.retention.outputs is not None and total > self.retention.outputs
            if file.last >= batch or (not too_much and (oldest is None or stat.st_mtime >= oldest)):
                break
            total -= stat.st_size
            going.append((stream, file.path))
        if not going:
            return
        counts: dict[str, int] = {}
        for stream, path in going:
            counts[stream] = counts.get(stream, 0) + rows_of(path)
        for follower in self.outputs.followers:
            last_batches = [OutputFile.of(path).last for stream, path in going if stream == follower.stream]
            if last_batches:
                follower.lose(max(last_batches))
        self.outputs.drop(counts, [path for _, path in going])

    def _streams(self) -> Iterator[str]:
        for folder in self.outputs.folder.glob("*/"):
            if not folder.name.startswith("."):
                yield unquote(folder.name)


def _runs(batches: Sequence[list[OutputFile]]) -> Iterator[list[list[OutputFile]]]:
    """Consecutive micro-batches, or files of several, that are small: as many as are worth being merged."""
    small = groupby(batches, key=lambda files: sum(f.path.stat().st_size for f in files) < SMALL)
    for merge, run in small:
        run_batches = list(run)
        if merge and len(run_batches) >= TOGETHER // 2:
            yield run_batches


def _merge_run(folder: Path, run: Sequence[Sequence[OutputFile]]) -> None:
    """Merge the files of a run of micro-batches into one."""
    table = pa.concat_tables([in_order([table_of(f) for f in files]) for files in run])
    sizes = [size for files in run for size in sizes_of(files)]
    write_merged(folder / f"{run[0][0].first:012d}-{run[-1][0].last:012d}.arrows", table, sizes)
    for files in run:
        for file in files:
            file.path.unlink()


def write_merged(path: Path, table: pa.Table, sizes: Sequence[tuple[int, int]]) -> None:
    """Write the file of several micro-batches, with the number of rows of each, whole or not at all. The columns of
    `table` are node, step, timestamp and the attributes."""
    table = table.combine_chunks()
    for i, field in enumerate(table.schema):
        if field.type == pa.string():
            encoded_column = table.column(i).dictionary_encode()
            table = table.set_column(i, field.with_type(encoded_column.type), encoded_column)
    table = with_sizes(table, sizes)
    new = private_file(path.parent / ".merged")
    with pa.OSFile(str(new), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    seal(new)
    to_disk(new)
    put_in_place(new, path)
    to_disk(path.parent)
