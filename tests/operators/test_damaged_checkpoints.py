"""Damaged checkpoints of streaming queries over `siddhi()`: told by file, and never taken for whole where Spark would
give wrong rows."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparkstream_nb import cli, siddhi
from sparkstream_nb.app.stored.verify_folder import verify_checkpoint
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.runners.operator.operator_node import OperatorNode
from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, OperatorSpec, plan_operator
from sparkstream_nb.runners.operator.output_rows import OutputRows
from sparkstream_nb.runners.operator.piece_bundles import PieceBundles

from .in_process import MemoryState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "at bigint, card string, amount double"
TEXT = """
partition with (card of Payments) begin
    from Payments#window.length(5) select card, sum(amount) as total, count() as n insert into Found;
end;
"""
FILES, ROWS = 3, 6


def add(home: Path, first: int, number: int) -> None:
    """Files of rows, each one micro-batch. A source of Spark's takes a file by its path and the times of its change."""
    (home / "in").mkdir(parents=True, exist_ok=True)
    for i in range(first, first + number):
        values = [(1000 * (10 * i + j), "ab"[j % 2], float((7 * i + 3 * j) % 10)) for j in range(ROWS)]
        rows = [dict(zip(("at", "card", "amount"), row, strict=True)) for row in values]
        file = home / "in" / f"{i}.json"
        file.write_text("\n".join(json.dumps(row) for row in rows))
        os.utime(file, (1_700_000_000 + i,) * 2)


def run(session: SparkSession, home: Path) -> None:
    """Runs the query over all that is there. Its sink is one that does not know the numbers of micro-batches."""
    stream = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(home / "in"))
    found = siddhi(stream, TEXT, name="Payments", time="at", key="card", nodes=2, delay="0 seconds")

    def put(frame: DataFrame, number: int) -> None:
        rows = [[number, r.card, r.total, r.n] for r in frame.collect()]
        with (home / "out.jsonl").open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    writer = found.writeStream.foreachBatch(put).option("checkpointLocation", str(home / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def outputs(home: Path) -> Counter[tuple[object, ...]]:
    """The outputs that a sink got, without the numbers of their micro-batches."""
    return Counter(tuple(json.loads(line)[1:]) for line in (home / "out.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark
    spark.conf.set("spark.sql.shuffle.partitions", before or "200")


@pytest.fixture(scope="module")
def home(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a query that has read three files, and of which there is a copy in `whole`."""
    folder = tmp_path_factory.mktemp("query") / "home"
    add(folder, 0, FILES)
    run(session, folder)
    shutil.copytree(folder, folder.with_name("whole"))
    return folder


@pytest.fixture
def checkpoint(home: Path) -> Iterator[Path]:
    """The checkpoint of that query, as it was at its end."""
    yield home / "checkpoint"
    shutil.rmtree(home)
    shutil.copytree(home.with_name("whole"), home)


# -------------------------------------------------------------------------------------------------------- damage


def all_of(checkpoint: Path, pattern: str) -> list[Path]:
    files = [f for f in checkpoint.glob(pattern) if f.is_file() and not f.name.startswith(".")]
    assert files, pattern
    return files


def newest(checkpoint: Path, pattern: str) -> Path:
    return max(all_of(checkpoint, pattern), key=lambda f: int(f.stem))


def sums(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def remove(*files: Path) -> None:
    for file in files:
        file.unlink()
        sums(file).unlink(missing_ok=True)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def cut(file: Path) -> None:
    """Cuts a file, and removes its checksum: Spark reads what is left."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    sums(file).unlink()


def overwrite(file: Path, other: Path) -> None:
    """Gives a file the content of another one, with its checksum."""
    file.write_bytes(other.read_bytes())
    sums(file).write_bytes(sums(other).read_bytes())


def swap_state(checkpoint: Path) -> None:
    for partition in ("0", "1"):
        last = newest(checkpoint, f"state/0/{partition}/*.changelog")
        overwrite(last, last.with_name(f"{int(last.stem) - 1}.changelog"))
        sums(last).unlink()


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "offsets gone": (lambda c: remove(newest(c, "offsets/*")), "/offsets/3 is gone"),
    "all offsets gone": (lambda c: remove(*all_of(c, "offsets/*")), "/offsets/0 to 3 are gone"),
    "offsets in between gone": (lambda c: remove(c / "offsets" / "1"), "/offsets/1 is gone"),
    "offsets changed": (lambda c: flip(newest(c, "offsets/*")), "/offsets/3 is damaged: not what was written, between"),
    "offsets cut": (lambda c: cut(newest(c, "offsets/*")), "/offsets/3 cannot be read: it was cut off or changed"),
    "offsets swapped": (
        lambda c: overwrite(c / "offsets" / "3", c / "offsets" / "1"), "/offsets/3 is a copy of micro-batch 1",
    ),
    "commits cut": (lambda c: cut(newest(c, "commits/*")), "/commits/3 cannot be read: it was cut off or changed"),
    "all commits gone": (lambda c: remove(*all_of(c, "commits/*")), "/commits/0 to 2 are gone"),
    "a micro-batch gone": (
        lambda c: remove(c / "offsets" / "3", c / "commits" / "3"),
        "has version 4 of the state, and the logs end with micro-batch 2",
    ),
    "metadata gone": (lambda c: remove(c / "metadata"), "/metadata is gone"),
    "metadata cut": (lambda c: cut(c / "metadata"), "/metadata cannot be read: it was cut off or changed"),
    "state changed": (lambda c: flip(newest(c, "state/0/1/*.changelog")), "4.changelog is damaged: not what was"),
    "state swapped": (swap_state, "the checksum beside "),
    "a version of the state gone": (
        lambda c: remove(newest(c, "state/0/1/*.changelog")), "of the versions of the state, ",
    ),
    "a file of the state gone": (lambda c: remove(*all_of(c, "state/0/1/SSTs/*")), "a part of the state, is gone"),
    "a partition gone": (lambda c: shutil.rmtree(c / "state" / "0" / "1"), "/state/0/1 is gone"),
    "operator gone": (lambda c: remove(*all_of(c, "state/0/_metadata/v2/*")), "/state/0/_metadata is gone"),
    "schema gone": (lambda c: remove(*all_of(c, "state/0/_stateSchema/default/*")), "/state/0/_stateSchema is gone"),
    "sources gone": (lambda c: shutil.rmtree(c / "sources"), "/sources/0/0 to 2 are gone"),
    "the last of sources gone": (lambda c: remove(newest(c, "sources/0/*")), "/sources/0/2 is gone: the source would"),
    "sources cut": (lambda c: cut(newest(c, "sources/0/*")), "/sources/0/2 cannot be read: it was cut off or changed"),
}  # fmt: skip


def test_a_whole_checkpoint(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["store", "verify", str(home / "checkpoint")]) == 0
    assert capsys.readouterr().out.startswith("all is as it was written: ")


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_told_by_file(name: str, checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage, sentence = DAMAGE[name]
    damage(checkpoint)
    assert cli.main(["store", "verify", str(checkpoint)]) == 1
    text = capsys.readouterr().out
    assert sentence in text
    assert str(checkpoint) in text
    assert "Put the checkpoint back from a copy, or start the query with a new checkpointLocation." in text


@pytest.mark.thorough
def test_what_spark_does_not_notice(session: SparkSession, home: Path, checkpoint: Path) -> None:
    """Why the command looks at more than Spark: a file of `sources` that is gone loses rows without an error."""
    remove(newest(checkpoint, "sources/0/*"))
    before = outputs(home)
    add(home, FILES, 2)
    run(session, home)
    assert len(list((outputs(home) - before).elements())) != 2 * ROWS


@pytest.mark.thorough
def test_a_micro_batch_without_a_commit(session: SparkSession, home: Path, checkpoint: Path) -> None:
    """It is done again with its number, rows and state: the outputs of a sink that goes by the number are right."""
    remove(newest(checkpoint, "commits/*"))
    result = verify_checkpoint(checkpoint)
    assert not result.damage
    assert result.notes == (
        "Micro-batch 3 has no commit: the next start does it, with the same rows. If it was done before, a sink that "
        "does not know its number gets its outputs twice.",
    )
    add(home, FILES, 2)
    run(session, home)
    lines = [tuple(json.loads(line)) for line in (home / "out.jsonl").read_text().splitlines()]
    assert len(lines) > len(set(lines)), "the sink got the outputs of micro-batch 3 twice"

    whole = home.with_name("undisturbed")
    add(whole, 0, FILES + 2)
    run(session, whole)
    assert Counter(row[1:] for row in set(lines)) == outputs(whole)


# ------------------------------------------------------------------------------------- damage that the node meets


@pytest.fixture
def spec() -> OperatorSpec:
    frame = InputFrame("Payments", {"at": "bigint", "card": "string", "amount": "double"}, "at", "card")
    return plan_operator("damage", TEXT, [frame], OperatorRequest(outputs=("Found",), nodes=1))


@pytest.fixture
def state(spec: OperatorSpec) -> MemoryState:
    stored = MemoryState()
    node = OperatorNode.open(spec, 0, stored)
    node.advance(None, OutputRows(spec, 1))
    node.save(stored, in_memory=False)
    return stored


@pytest.mark.parametrize("cause", ["cut", "changed", "another document"])
def test_a_damaged_note_is_one_sentence(spec: OperatorSpec, state: MemoryState, cause: str) -> None:
    assert state.note is not None
    version, note = state.note
    match cause:
        case "cut":
            note = note[: len(note) // 2]
        case "changed":
            note = note.replace('"complete": ', '"complete": 1')
        case _:
            note = "[1, 2]"
    state.set_version(version, note)
    with pytest.raises(SparkStreamError, match=r"The state of a node in its checkpoint is damaged: the list of its"):
        OperatorNode.open(spec, 0, state)


def test_a_missing_bundle_is_one_sentence() -> None:
    with pytest.raises(SparkStreamError, match=r"is damaged: bundle b is missing\. Put the checkpoint back from a"):
        PieceBundles(MemoryState(), {"b": [("x", 3)]}).piece("x")
