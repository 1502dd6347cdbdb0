"""Recordings of an app's input: saved, fed again, studied, sampled and masked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import Misuse, SparkStreamError

Run = Callable[..., App]
TEXT = """define stream Payments (card string, amount double, shop int);
define stream Blocks (card string);
from every a=Payments[amount > 100] -> b=Payments[card == a.card and amount > a.amount] within 1 min
select a.card as card, a.amount as first, b.amount as second insert into Sprees;
from Payments#window.lengthBatch(3) select sum(amount) as total, count() as n insert into Threes;
from Blocks select card insert into Blocked;
"""
OUTPUTS = ("Sprees", "Threes", "Blocked")


def payments(n: int) -> pd.DataFrame:
    r = np.random.default_rng(5)
    cards = np.array(["c1", "c2", "c3", "c4", None], object)[r.integers(0, 5, n)]
    return pd.DataFrame(
        {"card": cards, "amount": np.round(r.uniform(1, 400, n), 2), "shop": r.integers(0, 9, n),
         "at": 1_700_000_000_000 + 500 * np.arange(n)}
    )  # fmt: skip


def recorded(run: Run, **how: Any) -> App:
    """An app that was fed, sent a list at once, and sent an event that is late."""
    app = run(TEXT, name="recorded", **how)
    app.feed("Payments", payments(300), time="at")
    clock = 1_700_000_000_000 + 500 * 300
    app.send("Payments", [["c1", 150.0, 1], ["c1", 160.0, 1], ["c2", 170.0, 2], ["c1", 180.0, 1]], at=clock + 10)
    app.send("Blocks", ["c1"], at=clock + 20)
    app.send("Payments", ["c9", 1.0, 3], at=clock - 40_000)
    app.send("Payments", ["c1", 390.0, 3], at=clock + 30)
    app.flush()
    return app


def rows(app: App) -> dict[str, list[Any]]:
    app.flush()
    return {s: app.output(s).frame.drop(columns="node").to_numpy().tolist() for s in OUTPUTS}


@pytest.mark.contract
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_recording_gives_the_same_outputs(run: Run, tmp_path: Path, nodes: int) -> None:
    app = recorded(run, nodes=nodes, routing="hash:card")
    file = tmp_path / "week.parquet"
    assert app.recording.save(file) == 307 == app.recording.events
    again = run(TEXT, name="again", nodes=nodes, routing="hash:card", home=tmp_path / "again")
    report = again.feed(file)
    assert (report.stream, report.events, report.notes) == ("Payments, Blocks", 307, [])
    assert rows(again) == rows(app)


def test_the_file_has_streams_times_nodes_and_order(run: Run, tmp_path: Path) -> None:
    app = recorded(run, nodes=2, routing="round_robin")
    app.recording.save(tmp_path / "r.parquet")
    frame = pq.read_table(tmp_path / "r.parquet").to_pandas()
    assert [*frame.columns] == [
        "stream", "timestamp", "clock", "step", "node", "Payments.card", "Payments.amount", "Payments.shop",
        "Blocks.card",
    ]  # fmt: skip
    assert frame["step"].is_monotonic_increasing
    assert frame["clock"].is_monotonic_increasing
    assert frame["timestamp"].iloc[-2] < frame["clock"].iloc[-2]
    assert frame["step"].iloc[300:304].nunique() == 1
    assert set(frame["node"]) == {"node-1", "node-2"}
    assert frame["Blocks.card"].notna().sum() == 1


def test_studies_divergences_and_audits_take_a_recording(run: Run, tmp_path: Path) -> None:
    app = recorded(run)
    file = tmp_path / "r.parquet"
    app.recording.save(file)
    own = app.study([1, 2, 3], ["round_robin", "hash:card"]).frame
    other = run(TEXT, name="other", nodes=2, home=tmp_path / "other")
    assert other.study([1, 2, 3], ["round_robin", "hash:card"], feed=file).frame.equals(own)
    assert other.divergence(feed=str(file)).frame.shape[0] > 0
    assert other.divergence(nodes=1, feed=file).frame.query("verdict != 'same'").empty
    assert other.stats().events == 0
    (tmp_path / "app.siddhi").write_text(TEXT)
    command = [sys.executable, "-m", "sparkstream_nb", "audit", str(tmp_path / "app.siddhi"), "--feed", str(file)]
    assert "differ from one node's" in subprocess.run(command, capture_output=True, text=True).stdout


def test_failovers_take_a_recording(run: Run, tmp_path: Path) -> None:
    app = recorded(run)
    app.recording.save(tmp_path / "r.parquet")
    pair = run(TEXT, name="pair", mode="ha", home=tmp_path / "pair")
    assert pair.failover(feed=tmp_path / "r.parquet").frame is not None


def test_masked_events_give_the_same_counts(run: Run, tmp_path: Path) -> None:
    app = recorded(run)
    app.recording.save(tmp_path / "masked.parquet", mask=["card", "shop"], key="secret")
    app.recording.save(tmp_path / "twice.parquet", mask="card", key="secret")
    app.recording.save(tmp_path / "other.parquet", mask="card")
    frame = pq.read_table(tmp_path / "masked.parquet").to_pandas()
    same, other = (pq.read_table(tmp_path / f"{n}.parquet").to_pandas() for n in ("twice", "other"))
    assert not {"c1", "c2"} & set(frame["Payments.card"].dropna())
    assert frame["Payments.card"].equals(same["Payments.card"])
    assert not frame["Payments.card"].equals(other["Payments.card"])
    assert frame["Payments.card"].isna().sum() == app.output("Payments", last=400).frame["card"].isna().sum() + 1
    assert (frame["Payments.shop"].dropna() > 9).any()
    masked = run(TEXT, name="masked", home=tmp_path / "masked-home")
    counts = ["nodes", "routing", "same", "lost", "spurious", "duplicated"]
    found = [x.study([1, 2, 3], ["round_robin", "node:1"], feed=f).frame[counts]
             for x, f in ((app, None), (masked, tmp_path / "masked.parquet"))]  # fmt: skip
    assert found[0].equals(found[1])


def test_a_sample_has_all_events_of_some_keys(run: Run, tmp_path: Path) -> None:
    app = run("define stream S (k int, v int); from S select k insert into O;")
    frame = pd.DataFrame({"k": np.arange(4000) % 400, "v": 0, "at": np.arange(4000)})
    app.feed("S", frame, time="at")
    app.recording.save(tmp_path / "s.parquet", sample={"k": 0.1}, key="x")
    found = pq.read_table(tmp_path / "s.parquet").to_pandas()["S.k"].value_counts()
    assert set(found) == {10}
    assert 20 <= len(found) <= 65


def test_other_streams_are_named(run: Run, tmp_path: Path) -> None:
    recorded(run).recording.save(tmp_path / "r.parquet")
    text = "define stream Blocks (card string); define stream More (a int); from Blocks select card insert into B;"
    app = run(text, name="less", home=tmp_path / "less")
    assert app.feed(tmp_path / "r.parquet").notes == [
        "The recording's Payments was left out: the app has no such stream.",
        "The recording has no events for More.",
    ]
    assert len(app.output("B")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define stream X (a int); from X select a insert into O;", "the app has none of these: X"),
        ("define stream Blocks (card string, why string); from Blocks select card insert into O;", "without attribute"),
        ("define stream Blocks (card int); from Blocks select card insert into O;", "recorded as string, and is a int"),
    ],
)
def test_a_recording_of_another_app_is_refused(run: Run, tmp_path: Path, text: str, message: str) -> None:
    recorded(run).recording.save(tmp_path / "r.parquet")
    with pytest.raises(SparkStreamError, match=message):
        run(text, name="other", home=tmp_path / "other").feed(tmp_path / "r.parquet")


def test_wrong_arguments(run: Run, tmp_path: Path) -> None:
    app = recorded(run)
    payments(3).to_parquet(tmp_path / "plain.parquet")
    with pytest.raises(SparkStreamError, match=r"is no recording: .* STREAM=plain\.parquet"):
        app.feed(tmp_path / "plain.parquet")
    with pytest.raises(SparkStreamError, match="does not exist"):
        app.feed("none.parquet")
    for how, message in (
        ({"mask": "cart"}, "mask: no stream has an attribute 'cart'. Did you mean 'card'"),
        ({"mask": "amount"}, "'amount' is a double; texts, ints and longs"),
        ({"sample": {"card": 2}}, "card is a share above 0, up to 1"),
        ({"sample": 0.5}, "sample is a dict of shares"),
    ):
        with pytest.raises(Misuse) as raised:
            app.recording.save(tmp_path / "x.parquet", **how)  # type: ignore[arg-type]
        assert message in str(raised.value)
    assert not (tmp_path / "x.parquet").exists()
    app.recording.save(tmp_path / "r.parquet")
    for how, message in (({"limit": 3}, "limit"), ({"together": True}, "together")):
        with pytest.raises(Misuse, match=message):
            app.feed(tmp_path / "r.parquet", **how)  # type: ignore[call-overload]


@pytest.mark.thorough
def test_on_the_command_line(tmp_path: Path) -> None:
    """`record` follows a source for some seconds; `run` takes its file."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("".join(f"k{i % 3},{i}\n" for i in range(30)))
    (tmp_path / "app.siddhi").write_text(
        f"@source(type='file', dir.uri='{tmp_path}/in', mode='line', tailing='false', action.after.process='keep', "
        "@map(type='csv')) define stream S (k string, v int);\n"
        "@sink(type='log') define stream T (k string, v int);\nfrom S[v > 20] select k, v insert into T;"
    )

    def sparkstream(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sparkstream_nb", *words], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    out = sparkstream("record", "app.siddhi", "--into", "kept", "--seconds", "2", "--allow", f"file={tmp_path}/in")
    (file,) = (tmp_path / "kept").iterdir()
    assert f"kept/{file.name}: 30 events" in out
    out = sparkstream("run", "app.siddhi", "--feed", str(file), "--master", "inline", "--seconds", "1", "--allow",
                      f"file={tmp_path}/in")  # fmt: skip
    assert "S: 30 events" in out
