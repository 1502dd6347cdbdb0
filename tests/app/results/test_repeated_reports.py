"""The report of two texts over a recording has the same bytes on Spark, in this process, and under each Python of
`make matrix`.

Write `repeated_report.json` with `python -m tests.app.results.test_repeated_reports`, and read the difference before
committing it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb.app import App, deploy

REPORT = Path(__file__).with_name("repeated_report.json")
TEXT = """@app:name('Repeated')
define stream Payments (card string, amount double, shop string);
define stream Blocked (card string);
define table Cards (card string, limited double);
define aggregation Sums from Payments select shop, sum(amount) as total group by shop aggregate every sec...hour;
@info(name='big') from Payments[amount > 300] select card, amount, math:sqrt(amount) as root insert into Big;
@info(name='spree') from every a=Payments[amount > 200] -> b=Payments[b.card == a.card] within 40 sec
select a.card as card, a.amount + b.amount as total insert into Sprees;
@info(name='means') from Payments#window.time(10 sec)
select shop, avg(amount) as mean, stdDev(amount) as spread, unionSet(createSet(card)) as cards group by shop
having mean > 240 insert into Means;
@info(name='kept') from Payments[amount > 400] select card, amount as limited update or insert into Cards
set Cards.limited = limited on Cards.card == card;
@info(name='known') from Payments as p join Cards as c on p.card == c.card and p.amount < c.limited
select p.card as card, c.limited as limited, map:create('shop', p.shop) as place insert into Known;
@info(name='missing') from every a=Payments[amount > 450] -> not Blocked[card == a.card] for 5 sec
select a.card as card insert into Missing;
partition with (card of Payments) begin
@info(name='runs') from Payments#window.length(3) select card, sum(amount) / 3 as mean, count() as n insert into Runs;
end;
"""
NEW_TEXT = (
    TEXT.replace("amount > 300", "amount > 310").replace("40 sec", "20 sec").replace("time(10 sec)", "time(7 sec)")
    .replace("for 5 sec", "for 6 sec").replace("length(3)", "length(2)").replace("Sprees", "Shopping")
)  # fmt: skip


def feed(app: App) -> None:
    """Feeds payments of 17 cards, and sends some events one by one."""
    numbers = range(2_000)
    payments = pd.DataFrame(
        {
            "card": [f"card-{i * 7 % 17}" for i in numbers], "amount": [(i * 7919 % 5000) / 10 for i in numbers],
            "shop": [f"<shop {i % 5}>" for i in numbers], "at": [1_717_236_000_000 + 700 * i for i in numbers],
        }
    )  # fmt: skip
    app.feed("Payments", payments, time="at")
    for i in range(5):
        app.send("Payments", [f"card-{i}", 460.25, "<shop 1>"], at=1_717_237_500_000 + 100 * i)
    app.send("Blocked", ["card-3"], at=1_717_237_501_000)
    app.tick(1_717_237_600_000)


def report_of(app: App, folder: Path, *options: str) -> bytes:
    """What `sparkstream compare --json` prints of the app's recording, in a process of its own."""
    old, new, recording = folder / "old.siddhi", folder / "new.siddhi", folder / "recording.parquet"
    old.write_text(TEXT)
    new.write_text(NEW_TEXT)
    recording.unlink(missing_ok=True)
    app.recording.save(recording)
    words = ["compare", str(old), str(new), "--feed", str(recording), "--json", "--limit", "40", *options]
    return subprocess.run([sys.executable, "-m", "sparkstream_nb.cli", *words], check=True, capture_output=True).stdout


@pytest.mark.thorough
@pytest.mark.contract
@pytest.mark.timeout(300)
def test_a_report_has_the_same_bytes(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(TEXT)
    feed(app)
    assert report_of(app, tmp_path) == REPORT.read_bytes()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        app = deploy(TEXT, home=Path(folder) / "home", master="inline")
        feed(app)
        REPORT.write_bytes(report_of(app, Path(folder)))
        app.stop()
