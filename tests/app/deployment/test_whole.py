"""An app's folder that lacks what it had is refused, with what is missing; nothing goes on as if nothing had been."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.deployment.whole import Found, check_whole
from sparkstream_nb.app.stored.verify_folder import verify_folder
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.journal.checkpoints import CheckpointProgress
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import entries_from, segment
from sparkstream_nb.journal.kept import list_missing

OLDER = "older"
APP = """
define stream S (k string, v int);
define aggregation A from S select k, sum(v) as s group by k aggregate every sec;
@info(name='q') from S#window.length(2) select sum(v) as s insert into O;
"""


def cut_journal(life: Path) -> None:
    journal = segment(life / "inbox", 0)
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])


def older_checkpoint(life: Path) -> None:
    """The checkpoint that was copied before the last event."""
    shutil.rmtree(life / "checkpoint")
    shutil.copytree(life.parent / OLDER, life / "checkpoint")


def lost_state(life: Path) -> None:
    database = life / "checkpoint" / "nodes.sqlite"
    if database.exists():
        with contextlib.closing(sqlite3.connect(database)) as opened, opened:
            opened.execute("DELETE FROM nodes")
    else:
        shutil.rmtree(life / "checkpoint" / "state")


def lost_file(life: Path) -> None:
    """A batch that came in and was not taken up yet, and whose file is gone."""
    inbox = Inbox(life / "inbox")
    at = np.arange(5000, dtype=np.int64)
    columns = [pa.array(["a"] * len(at)), pa.array(at, pa.int32())]
    entry = inbox.batch(InputBatch(at[:1] + 9000, {"S": StreamRows(at * 0, at * 0 + 9000, columns)}), "round_robin")
    inbox.append([entry])
    inbox.close()
    (life / "inbox" / str(entry.file)).unlink()


def doubled_line(life: Path) -> None:
    journal = segment(life / "inbox", 0)
    with journal.open("ab") as f:
        f.write(journal.read_bytes().splitlines(keepends=True)[-1])


def inbox_as_file(life: Path) -> None:
    shutil.rmtree(life / "inbox")
    (life / "inbox").write_text("")


def outputs_as_file(life: Path) -> None:
    shutil.rmtree(life / "outputs")
    (life / "outputs").write_text("")


def flipped_bit(life: Path) -> None:
    journal = segment(life / "inbox", 0)
    found = bytearray(journal.read_bytes())
    found[-40] ^= 1
    journal.write_bytes(bytes(found))


def lost_output(life: Path) -> None:
    sorted((life / "outputs" / "O").glob("*.arrows"))[0].unlink()


def cut_output(life: Path) -> None:
    file = sorted((life / "outputs" / "O").glob("*.arrows"))[-1]
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


GONE: dict[str, tuple[Callable[[Path], None], str]] = {
    "journal": (cut_journal, r"its journal has 1 entries, and its checkpoint has begun with [23]"),
    "no journal": (lambda life: shutil.rmtree(life / "inbox"), "its journal has 0 entries"),
    "checkpoint": (lambda life: shutil.rmtree(life / "checkpoint"), "its checkpoint is gone, and with it the state"),
    "older checkpoint": (older_checkpoint, "its checkpoint is older than its store"),
    "state": (lost_state, "the state of its nodes, in its checkpoint"),
    "store": (lambda life: (life.parent / "store.duckdb").unlink(), "its store is gone or empty: [0-9]+ micro-batches"),
    "file": (lost_file, "its inbox lacks the file batch-[0-9a-f]+, with events that are not committed"),
    "an output": (lost_output, "1 of the 3 outputs of O are gone"),
    "a part of an output": (cut_output, "of its outputs, the file .*arrows is damaged: "),
    "an inbox": (inbox_as_file, "its inbox is a file, and was a folder"),
    "outputs as a file": (outputs_as_file, "its outputs are gone"),
    "outputs": (lambda life: shutil.rmtree(life / "outputs"), "its outputs are gone"),
}


@pytest.mark.contract(thorough=True)
@pytest.mark.parametrize("what", GONE)
def test_what_is_missing_is_named_and_a_copy_goes_on(what: str, run: Callable[..., App], tmp_path: Path) -> None:
    app = run(APP)
    home, copy = tmp_path / "home", tmp_path / "copy"
    (life,) = home.glob("life-*")
    for i in range(3):
        app.stop()
        app.runtime.stream.wait_for_end()
        shutil.rmtree(home / OLDER, ignore_errors=True)
        shutil.copytree(life / "checkpoint", home / OLDER)
        app.send("S", ["a", i], at=1000 * i)
        app.flush()
    app.stop()
    app.close()
    never_in = life / "inbox" / "batch-0123456789abcdef"
    never_in.write_bytes(b"of a process that was killed before it entered this")
    shutil.copytree(home, copy)
    remove, said = GONE[what]
    remove(life)
    before = {p: p.stat().st_size for p in home.rglob("*") if p.is_file() and "store.duckdb" not in p.name}
    with pytest.raises(Misuse, match=f"is not whole: {said}.*[Pp]ut it back from a copy; fresh=True"):
        run(APP)
    assert {p: s for p, s in before.items() if p.stat().st_size != s and p.name != "lock"} == {}
    shutil.rmtree(home)
    shutil.copytree(copy, home)
    again = run(APP)
    assert not never_in.exists()
    again.send("S", ["a", 3], at=3000)
    again.flush()
    assert again.output("O").frame["s"].tolist() == [0, 1, 3, 5]
    assert again.query("from A within 0L, 10000L per 'seconds' select sum(s) as s").frame["s"].tolist() == [6]
    again.stop()
    again.close()
    remove(next(home.glob("life-*")))
    assert "fresh was asked for" in str(run(APP, fresh=True).redeployed)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (doubled_line, "the line at byte [0-9,]+ has entry [0-9]+, where entry [0-9]+ is due"),
        (flipped_bit, "the line at byte [0-9,]+ is damaged"),
    ],
)
def test_a_damaged_journal_is_refused(
    damage: Callable[[Path], None], said: str, run: Callable[..., App], tmp_path: Path
) -> None:
    app = run(APP)
    app.send("S", ["a", 1], at=1000)
    app.flush()
    app.stop()
    app.close()
    (life,) = (tmp_path / "home").glob("life-*")
    damage(life)
    with pytest.raises(SparkStreamError, match=f"/0+ cannot be read: {said}. Put it back from a copy; fresh=True"):
        run(APP)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_store(life: Path) -> None:
    cut_short(life.parent / "store.duckdb")


def spoilt_store(life: Path) -> None:
    """A block in the middle of the store is not what was written."""
    spoil(life.parent / "store.duckdb", 12_288)


def spoil(file: Path, at: int) -> None:
    found = bytearray(file.read_bytes())
    found[at : at + 64] = b"\xa5" * 64
    file.write_bytes(bytes(found))


def cut_state(life: Path) -> None:
    state = life / "checkpoint" / "state"
    for file in [*state.rglob("*.zip"), *state.rglob("*.changelog")]:
        cut_short(file)


def no_offsets(life: Path) -> None:
    max((life / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda file: int(file.name)).unlink()


def cut_database(life: Path) -> None:
    cut_short(life / "checkpoint" / "nodes.sqlite")


def empty_metadata(life: Path) -> None:
    (life / "checkpoint" / "metadata").write_bytes(b"")


def damaged(run: Callable[..., App], tmp_path: Path, damage: Callable[[Path], None]) -> str:
    """What a person is told who goes on with an app after its folder was damaged."""
    app = run(APP)
    for i in range(3):
        app.send("S", ["a", i], at=1000 * i)
        app.flush()
    app.stop()
    app.close()
    (life,) = (tmp_path / "home").glob("life-*")
    damage(life)
    with pytest.raises(SparkStreamError) as told:
        run_on(run)
    return str(told.value)


def run_on(run: Callable[..., App]) -> None:
    app = run(APP)
    app.send("S", ["a", 3], at=3000)
    app.flush()


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (cut_store, r"The store .*store\.duckdb cannot be used: "),
        (spoilt_store, r"The store .*store\.duckdb cannot be used: "),
        (cut_database, r"nodes\.sqlite cannot be read: "),
    ],
)
def test_a_damaged_file_is_named_with_the_ways_out(
    damage: Callable[[Path], None], what: str, run: Callable[..., App], tmp_path: Path
) -> None:
    said = damaged(run, tmp_path, damage)
    assert re.search(what, said)
    assert "back from a copy; fresh=True (--fresh) starts from scratch" in said


@pytest.mark.thorough
@pytest.mark.parametrize("damage", [cut_state, no_offsets, empty_metadata])
def test_a_damaged_checkpoint_of_spark_is_named_with_the_ways_out(
    damage: Callable[[Path], None], run: Callable[..., App], spark: Any, tmp_path: Path
) -> None:
    said = damaged(run, tmp_path, damage)
    assert re.search("/checkpoint(/offsets/[0-9]+ is gone|/metadata cannot be read: |/state/[^ ]+ is damaged: )", said)
    assert "back from a copy; fresh=True (--fresh) starts from scratch" in said


def without_sums(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Changes a file, and removes the checksum that Hadoop has beside it: Spark reads it as it is."""
    file.write_bytes(change(file.read_bytes()))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


def zeros(data: bytes) -> bytes:
    return bytes(len(data))


def newest(life: Path, log: str) -> Path:
    return max((life / "checkpoint" / log).glob("[0-9]*"), key=lambda file: int(file.name))


def of_state(life: Path, pattern: str) -> list[Path]:
    files = [f for f in (life / "checkpoint" / "state").rglob(pattern) if f.is_file() and not f.name.endswith(".crc")]
    assert files
    return files


def change_state(life: Path, pattern: str, change: Callable[[bytes], bytes]) -> None:
    for file in of_state(life, pattern):
        without_sums(file, change)


def remove_state(life: Path, pattern: str) -> None:
    for file in of_state(life, pattern):
        file.unlink()


def older_offsets_last(life: Path) -> None:
    first = (life / "checkpoint" / "offsets" / "0").read_bytes()
    without_sums(newest(life, "offsets"), lambda _: first)


SPARK_DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "no metadata": (lambda life: (life / "checkpoint" / "metadata").unlink(), "/metadata is gone"),
    "metadata cut": (lambda life: without_sums(life / "checkpoint" / "metadata", half), "/metadata cannot be read"),
    "commits": (lambda life: without_sums(newest(life, "commits"), half), "/commits/[0-9]+ cannot be read"),
    "offsets": (lambda life: without_sums(newest(life, "offsets"), zeros), "/offsets/[0-9]+ cannot be read"),
    "older offsets": (older_offsets_last, "/offsets/[0-9]+ ends at entry [0-9]+, before its predecessor"),
    "state with sums": (
        lambda life: [f.write_bytes(flipped(f.read_bytes())) for f in of_state(life, "*.changelog")] and None,
        "changelog is damaged: not what was written, between byte 0 and byte ",
    ),
    "state": (lambda life: change_state(life, "*.changelog", zeros), " cannot be read"),
    "operator": (lambda life: change_state(life, "_metadata/v2/0", half), " cannot be read"),
    "no operator": (lambda life: remove_state(life, "_metadata/v2/0"), " cannot be read"),
    "schema": (lambda life: change_state(life, "_stateSchema/default/*", zeros), " cannot be read"),
    "no schema": (lambda life: remove_state(life, "_stateSchema/default/*"), " cannot be read"),
}


@pytest.mark.thorough
@pytest.mark.timeout(240)
@pytest.mark.parametrize("what", SPARK_DAMAGE)
def test_any_damage_of_sparks_checkpoint_is_one_sentence(
    what: str, run: Callable[..., App], spark: Any, tmp_path: Path
) -> None:
    damage, message = SPARK_DAMAGE[what]
    told = damaged(run, tmp_path, damage)
    assert re.search(f"/checkpoint(/state/[^ ]*)?{message}", told), told
    assert "back from a copy; fresh=True (--fresh) starts from scratch" in told
    assert "\n" not in told
    assert not re.search(r"Exception\b|SQLSTATE|\[[A-Z_]{6,}\]", told), told


@pytest.mark.thorough
def test_verify_reads_sparks_checkpoint(run: Callable[..., App], spark: Any, tmp_path: Path) -> None:
    app = run(APP)
    app.send("S", ["a", 1], at=1000)
    app.flush()
    app.stop()
    app.close()
    home = tmp_path / "home"
    (life,) = home.glob("life-*")
    found = verify_folder(home)
    assert not found.damage
    assert found.checked["files of Spark's checkpoint"] > 3
    for file in (newest(life, "commits"), of_state(life, "*.changelog")[0], life / "checkpoint" / "metadata"):
        data = file.read_bytes()
        file.write_bytes(flipped(data))
        assert f"the file {file} is damaged: not what was written, between byte 0" in str(verify_folder(home))
        file.write_bytes(data)
    assert not verify_folder(home).damage
    without_sums(newest(life, "offsets"), half)
    assert "/offsets/0 cannot be read: it was cut off or changed" in str(verify_folder(home))


def test_damaged_outputs_are_one_line(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(APP)
    app.send("S", ["a", 1], at=1000)
    app.flush()
    (life,) = (tmp_path / "home").glob("life-*")
    cut_output(life)
    with pytest.raises(SparkStreamError, match=r"the file .*arrows is damaged: "):
        app.output("O")


def test_somebody_elses_file_among_the_outputs_is_left_alone(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(APP)
    app.send("S", ["a", 1], at=1000)
    app.flush()
    (folder,) = (tmp_path / "home").glob("life-*/outputs/O")
    (folder / "copy.arrows").write_bytes(b"")
    (folder / "99999999.arrows").write_bytes(b"")
    app.stop()
    app.close()
    assert run(APP).output("O").frame["s"].tolist() == [1]


def test_a_file_of_what_is_done_may_be_gone(tmp_path: Path) -> None:
    lost_file(tmp_path)
    ((entry, after),) = entries_from(tmp_path / "inbox")
    assert list_missing(tmp_path / "inbox", None) == [entry.file]
    assert list_missing(tmp_path / "inbox", after) == []
    reached = CheckpointProgress(planned=-1, done=-1, reached=0, state=False)
    with pytest.raises(Misuse, match=f"lacks the file {entry.file} and 1 more, with events that are not committed"):
        check_whole(tmp_path, Found(1, reached, -1, outputs=True, missing=[str(entry.file), "x"]))
    check_whole(tmp_path, Found(1, reached, -1, outputs=True))


def test_what_a_connect_server_handed_over_is_named(run: Callable[..., App], tmp_path: Path) -> None:
    """The app is deployed on this machine, and its former owner has not taken all: nothing is lost, and it is said."""
    app = run(APP)
    app.send("S", ["a", 1], at=1000)
    app.flush()
    app.stop()
    app.close()
    home = tmp_path / "home"
    (life,) = home.glob("life-*")
    (home / "store.duckdb").unlink()
    (life / "handed").mkdir()
    (life / "handed" / "000000000000.arrows").touch()
    with pytest.raises(Misuse, match="that a Spark Connect server handed over and that are not committed"):
        run(APP)
    assert (life / "handed" / "000000000000.arrows").exists()
