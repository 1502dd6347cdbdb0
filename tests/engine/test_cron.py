"""Times of cron texts, and the window that they let out, by the app's clock."""

from __future__ import annotations

import datetime as dt

import pytest

from reference.engine_cases import run_case
from sparkstream_nb.engine.state.cron_times import CronTimes
from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.plan import compile_app


def ms(moment: str) -> int:
    return int(dt.datetime.fromisoformat(moment).replace(tzinfo=dt.UTC).timestamp() * 1000)


def after(text: str, moment: str, zone: str = "UTC") -> str | None:
    found = CronTimes(text, zone).after(ms(moment))
    return None if found is None else dt.datetime.fromtimestamp(found / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        ("*/5 * * * * ?", "2024-01-01 00:00:00", "2024-01-01 00:00:05"),
        ("0 0/15 * * * ?", "2024-01-01 10:15:00", "2024-01-01 10:30:00"),
        ("0 30 9 ? * MON-FRI", "2024-03-01 09:30:00", "2024-03-04 09:30:00"),
        ("0 0 0 L * ?", "2024-02-10 00:00:00", "2024-02-29 00:00:00"),
        ("0 0 0 L-2 * ?", "2024-02-10 00:00:00", "2024-02-27 00:00:00"),
        ("0 0 0 LW * ?", "2024-03-01 00:00:00", "2024-03-29 00:00:00"),
        ("0 0 0 15W * ?", "2024-06-01 00:00:00", "2024-06-14 00:00:00"),
        ("0 0 0 ? * 6L", "2024-05-01 00:00:00", "2024-05-31 00:00:00"),
        ("0 0 0 ? * 2#1", "2024-05-07 00:00:00", "2024-06-03 00:00:00"),
        ("0 0 12 ? * FRI-MON", "2024-05-06 12:00:00", "2024-05-10 12:00:00"),
        ("0 0 0 29 2 ?", "2024-03-01 00:00:00", "2028-02-29 00:00:00"),
        ("0 0 0 1 JAN ? 2030", "2024-01-01 00:00:00", "2030-01-01 00:00:00"),
    ],
)
def test_next_time(text: str, moment: str, expected: str) -> None:
    assert after(text, moment) == expected


def test_no_time_left() -> None:
    assert after("0 0 0 1 JAN ? 2020", "2024-01-01 00:00:00") is None


APP = """define stream S (v int);
@info(name='q') from S#window.cron('*/5 * * * * ?') select v, sum(v) as s insert all events into Out;"""


def test_window_by_the_clock() -> None:
    """A batch comes out at the first time after its events, before the event of that instant; the one before it
    expires."""
    feed = [["S", 1000, [1]], ["S", 4000, [2]], ["S", 5000, [3]], {"tick": 9999}, {"tick": 17000}, {"tick": 30000}]
    got = run_case({"app": APP, "feed": feed})
    assert got["queries"]["q"] == {"in": [[4000, [2, 3]], [5000, [3, 3]]], "out": []}


@pytest.mark.parametrize("by_chunk", [False, True])
def test_cuts_change_nothing(by_chunk: bool) -> None:
    feed = [["S", 700 * i, [i]] for i in range(1, 40)]
    whole = run_case({"app": APP, "feed": feed})
    assert len(whole["queries"]["q"]["in"]) == 5
    for cuts in ([3], [7, 8, 9], range(40)):
        assert run_case({"app": APP, "feed": feed}, by_chunk=by_chunk, cuts=list(cuts)) == whole
    restarts = [s for i, step in enumerate(feed) for s in ([step, {"restart": True}] if i % 5 == 2 else [step])]
    assert run_case({"app": APP, "feed": restarts}, by_chunk=by_chunk) == whole


@pytest.mark.parametrize(("keys", "buckets"), [("opaq", 16), ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 64)])
def test_instances_of_a_partition_leave_in_the_order_of_their_map(keys: str, buckets: int) -> None:
    """A `HashMap` of Java's: by bucket, in a bucket the latest key first; the hash of a letter is its code."""
    app = (
        "define stream S (k string); partition with (k of S) begin "
        "from S#window.cron('*/5 * * * * ?') select k insert into O; end;"
    )
    feed = [*(["S", 1000, [k]] for k in keys), {"tick": 6000}]
    order = sorted(keys, key=lambda k: (ord(k) % buckets, -keys.index(k)))
    assert [values for _, values in run_case({"app": app, "feed": feed})["streams"]["O"]] == [[k] for k in order]


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        ("0 0 9 * * ?", "2024-01-01 00:00:00", "2024-01-01 08:00:00"),  # winter: one hour ahead of UTC
        ("0 0 9 * * ?", "2024-07-01 00:00:00", "2024-07-01 07:00:00"),  # summer: two
        ("0 30 2 * * ?", "2024-03-30 12:00:00", "2024-03-31 01:30:00"),  # 02:30 is left out: 03:30 instead
        ("0 30 2 * * ?", "2024-10-26 12:00:00", "2024-10-27 00:30:00"),  # 02:30 comes twice: the first
        ("0 30 2 * * ?", "2024-10-27 00:30:00", "2024-10-28 01:30:00"),
        ("0 0/30 * * * ?", "2024-10-27 01:10:00", "2024-10-27 01:30:00"),  # within the second one
    ],
)
def test_next_time_in_berlin(text: str, moment: str, expected: str) -> None:
    assert after(text, moment, "Europe/Berlin") == expected


def test_an_app_reads_cron_in_the_time_zone_of_its_node() -> None:
    case = {
        "app": "define stream S (v int); define trigger Nine at '0 0 9 * * ?';"
        "@info(name='q') from S#window.cron('0 0 9 * * ?') select v insert into O;",
        "properties": {"timezone": "Europe/Berlin"},
        "start": None,
        "feed": [["S", ms("2024-01-01 07:00:00"), [1]], {"tick": ms("2024-01-01 08:00:00")}],
    }
    streams = run_case(case)["streams"]
    nine = ms("2024-01-01 08:00:00")
    assert streams["Nine"] == [[nine, [nine]]]
    assert streams["O"] == [[ms("2024-01-01 07:00:00"), [1]]]


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(SiddhiError, match="'Mars/Olympus' is not a valid time zone"):
        compile_app("define stream S (v int); from S select v insert into O;", {"timezone": "Mars/Olympus"})
