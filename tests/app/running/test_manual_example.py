"""The example of WSO2's manual for an active-active deployment, from the files in `conf/active-active`: 30, 40, 70."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest

import sparkstream_nb
from sparkstream_nb.app import App
from tests.apps.programs import ROOT, killed
from tests.run_servers import ServerOf

APP = """
define stream TradeStream (symbol string, price double, quantity long, timestamp long);
@store(type='rdbms', datasource='TEST_DB')
define aggregation TradeAggregation
from TradeStream
select symbol, avg(price) as avgPrice, sum(quantity) as total
group by symbol
aggregate by timestamp every sec ... year;
"""
HOUR = "2024-06-01 10:**:**"
KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from tests.app.running.test_manual_example import deployed
    app = deployed(sys.argv[1], sys.argv[2], fresh=True)
    at = 1717236000000
    for node, quantities in ((1, (10, 20)), (2, (25, 15))):
        for i, quantity in enumerate(quantities):
            app.send("TradeStream", ["wso2", 100.0, quantity, at + i], node=node)
    app.flush()
    app.send("TradeStream", ["wso2", 100.0, 0, at], node=1)
    os.killpg(os.getpgid(0), signal.SIGKILL)
    """
)


def deployed(conf: str | Path, home: str | Path, fresh: bool = False) -> App:
    allowed = ["SIDDHI_DB_PASSWORD"]
    return sparkstream_nb.deploy(APP, name="Trades", conf=conf, home=home, allow_env=allowed, fresh=fresh)


def totals(app: App) -> tuple[int, dict[str, int]]:
    """The hour's total merged, and of each shard."""
    found = app.query(f"from TradeAggregation on symbol == 'wso2' within '{HOUR}' per 'hours' select symbol, total")
    assert found.by_shard is not None
    ((symbol, total),) = found.rows
    assert symbol == "wso2"
    return total, found.by_shard.set_index("SHARD_ID")["total"].to_dict()


@pytest.mark.server
@pytest.mark.timeout(300)
def test_the_manuals_example(
    spark: object, server_of: ServerOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_of("postgresql")
    assert server.database.password is not None
    monkeypatch.setenv("SIDDHI_DB_PASSWORD", server.database.password.reveal())
    server.made("siddhi")
    conf, home = tmp_path / "conf", tmp_path / "home"
    shutil.copytree(ROOT / "conf/active-active", conf)
    for file in conf.iterdir():
        file.write_text(file.read_text().replace("localhost:5432", f"127.0.0.1:{server.database.port}"))
    killed(home, KILLED, conf, home, PYTHONPATH=f"{ROOT}:{ROOT / 'tests'}")
    app = deployed(conf, home)
    try:
        assert app.warnings == []
        assert totals(app) == (70, {"wso2-sp-1": 30, "wso2-sp-2": 40})
        third = (conf / "node-2.yaml").read_text().replace("wso2-sp-2", "wso2-sp-3")
        (conf / "node-3.yaml").write_text(third)
        app.scale(conf=conf)
        app.send("TradeStream", ["wso2", 100.0, 5, 1717236000000], node=3)
        assert totals(app) == (75, {"wso2-sp-1": 30, "wso2-sp-2": 40, "wso2-sp-3": 5})
    finally:
        app.stop()
        app.close()
