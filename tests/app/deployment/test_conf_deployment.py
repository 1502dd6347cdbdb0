"""Active-active deployments by their files: the manual's example, data sources, what is wrong in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import sparkstream_nb
from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.runners.choice import INLINE

HOUR = 1717236000000
"""2024-06-01 10:00:00 GMT."""
APP = """
@app:name('Trades')
define stream TradeStream (symbol string, price double, quantity long, timestamp long);

@store(type='rdbms', datasource='TEST_DB')
define aggregation TradeAggregation
from TradeStream
select symbol, avg(price) as avgPrice, sum(quantity) as total
group by symbol
aggregate by timestamp every sec ... year;
"""
QUERY = "from TradeAggregation within '2024-**-** **:**:**' per 'hours' select symbol, total"

Files = Callable[..., list[Path]]


def node_file(name: str, url: str, password: str = "${sec:test.password}") -> str:
    """A deployment file as an operator has it, with parts that mean nothing here."""
    return yaml.safe_dump(
        {
            "wso2.carbon": {"id": name, "name": "WSO2 Streaming Integrator", "ports": {"offset": 1}},
            "siddhi": {"properties": {"partitionById": True, "shardId": name}},
            "wso2.metrics": {"enabled": False},
            "wso2.datasources": {
                "dataSources": [
                    {
                        "name": "TEST_DB",
                        "definition": {
                            "type": "RDBMS",
                            "configuration": {"jdbcUrl": url, "username": "siddhi", "password": password},
                        },
                    }
                ]
            },
        }
    )


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Writes the files of nodes wso2-sp-1, wso2-sp-2, ..."""

    def write(url: str, count: int = 2) -> list[Path]:
        out = []
        for i in range(1, count + 1):
            path = tmp_path / f"node-{i}.yaml"
            path.write_text(node_file(f"wso2-sp-{i}", url))
            out.append(path)
        return out

    return write


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A JDBC address, whose password is in the environment."""
    monkeypatch.setenv("TEST_PASSWORD", "none")
    if request.param != "postgresql":
        return f"jdbc:{request.param}:{tmp_path / 'shared.db'}"
    server = request.getfixturevalue("server_of")("postgresql").apart()
    monkeypatch.setenv("TEST_PASSWORD", server.database.password.reveal())
    return server.jdbc


def deploy(conf: list[Path], tmp_path: Path, *, fresh: bool = True, master: str | None = INLINE) -> App:
    return sparkstream_nb.deploy(
        APP, conf=conf, home=tmp_path / "home", allow_env=["TEST_PASSWORD"], fresh=fresh, master=master
    )


@pytest.mark.contract(thorough=True)
def test_the_manuals_example(address: str, files: Files, tmp_path: Path, master: str | None) -> None:
    conf = files(address)
    app = deploy(conf, tmp_path, master=master)
    try:
        assert (app.mode, app.shard_ids) == ("active-active", ("wso2-sp-1", "wso2-sp-2"))
        app.send("TradeStream", ["wso2", 100.0, 30, HOUR], node=1)
        app.send("TradeStream", ["wso2", 100.0, 40, HOUR + 60_000], node=2)
        found = app.query(QUERY)
        assert found.rows == [["wso2", 70]]
        assert found.by_shard is not None
        assert found.by_shard[["SHARD_ID", "total"]].values.tolist() == [["wso2-sp-1", 30], ["wso2-sp-2", 40]]
    finally:
        app.stop()
        app.close()
    again = deploy(conf, tmp_path, fresh=False, master=master)
    try:
        assert again.query(QUERY).rows == [["wso2", 70]]
        again.send("TradeStream", ["wso2", 100.0, 5, HOUR + 120_000], node=1)
        assert again.query(QUERY).rows == [["wso2", 75]]
    finally:
        again.stop()
        again.close()
    emptied = deploy(conf, tmp_path, master=master)
    try:
        assert emptied.query(QUERY).rows == []
    finally:
        emptied.stop()
        emptied.close()


BAD_INPUT: list[list[object]] = [
    ["good", 1.0, 1, HOUR],
    ["a\0b", 1.0, 1, HOUR],
    ["nan", float("nan"), 1, HOUR],
    ["late", 1.0, 1, 9 * 10**18],
    ["early", 1.0, 1, -(2**63)],
    ["before 1970", 1.0, 2**63 - 1, -1],
    ["before 1970", 1.0, 2, -1],
    ["never", 1.0, 1, None],
    ["good", 1.0, 2, HOUR + 1000],
]


def test_what_cannot_be_stored_is_an_error_and_the_rest_is_stored(address: str, files: Files, tmp_path: Path) -> None:
    kind = address.split(":")[1]
    left_out = {"postgresql": {"a\0b"}, "sqlite": {"nan"}, "duckdb": set()}[kind]
    app = deploy(files(address), tmp_path)
    try:
        for _ in range(2):
            app.send("TradeStream", BAD_INPUT, node=1)
        app.flush()
        errors = app.errors.frame
        times = errors[errors["stream"] == "TradeStream"]
        assert [v[0] for v in times["values"]] == ["late", "early", "never"] * 2
        stored = errors[errors["stream"] == "TradeAggregation"]
        assert {v[0] for v in stored["values"]} == left_out
        assert all(kind in reason for reason in stored["reason"])
        app.send("TradeStream", ["good", 1.0, 4, HOUR + 2000], node=2)
        kept = {"good": 10, "a\0b": 2, "nan": 2}
        for per in ("hours", "years"):
            rows = app.query(QUERY.replace("'hours'", f"'{per}'")).rows
            assert dict(rows) == {k: v for k, v in kept.items() if k not in left_out}
        before = "from TradeAggregation within -1000L, 0L per 'seconds' select symbol, total"
        assert app.query(before).rows == [["before 1970", 2]]  # 2 * (2**63 - 1) + 4, as a long of Java
        assert app.state == "running"
    finally:
        app.stop()
        app.close()


WINDOW = """
@app:name('Trades')
define stream TradeStream (symbol string, quantity long);
from TradeStream#window.length(10) select symbol, sum(quantity) as total insert into Totals;
"""


def test_nodes_come_and_go(address: str, files: Files, tmp_path: Path) -> None:
    app = deploy(files(address), tmp_path)
    try:
        for node, quantity in ((1, 30), (2, 40)):
            app.send("TradeStream", ["wso2", 100.0, quantity, HOUR], node=node)
        assert app.scale(nodes=3).shard_ids == ("wso2-sp-1", "wso2-sp-2", "wso2-sp-3")
        app.send("TradeStream", ["wso2", 100.0, 5, HOUR], node=3)
        found = app.query(QUERY)
        assert found.rows == [["wso2", 75]]
        assert found.by_shard is not None
        assert found.by_shard["total"].tolist() == [30, 40, 5]
        app.scale(shard_ids=["wso2-sp-3", "wso2-sp-1"])
        app.send("TradeStream", ["wso2", 100.0, 100, HOUR], node=1)
        found = app.query(QUERY)
        assert found.by_shard is not None
        assert found.by_shard.set_index("SHARD_ID")["total"].to_dict() == {
            "wso2-sp-1": 30, "wso2-sp-2": 40, "wso2-sp-3": 105,
        }  # fmt: skip
        with pytest.raises(SparkStreamError, match="nodes 1 to 2"):
            app.send("TradeStream", ["wso2", 100.0, 1, HOUR], node=3)
        assert any("wso2-sp-2" in w for w in app.warnings)
    finally:
        app.stop()
        app.close()


def test_state_of_what_stays_goes_on(tmp_path: Path) -> None:
    def totals() -> list[tuple[str, int]]:
        app.flush()
        frame = app.output("Totals").frame
        return list(zip(frame["node"], frame["total"], strict=True))

    app = sparkstream_nb.deploy(WINDOW, nodes=2, home=tmp_path / "home", master=INLINE)
    try:
        for node in (1, 2):
            app.send("TradeStream", ["a", 10 * node], at=1000, node=node)
        app.scale(nodes=4)
        for node in (1, 2, 3, 4):
            app.send("TradeStream", ["a", node], at=1001, node=node)
        before = [("node-1", 10), ("node-2", 20)]
        assert totals() == [*before, ("node-1", 11), ("node-2", 22), ("node-3", 3), ("node-4", 4)]
        app.scale(shard_ids=["node-2"])
        app.send("TradeStream", ["a", 100], at=1002)
        assert totals()[-1] == ("node-2", 122)
        app.scale(shard_ids=["node-2", "node-1"])
        app.send("TradeStream", ["a", 100], at=1003, node=2)
        assert totals()[-1] == ("node-1", 111), "node-1 goes on where it left off"
        assert set(app.stats().nodes) == {"node-1", "node-2"}
    finally:
        app.stop()
        app.close()
    again = sparkstream_nb.deploy(
        WINDOW, shard_ids=["node-4", "node-1"], nodes=2, home=tmp_path / "home", master=INLINE
    )
    try:
        assert again.redeployed is not None
        assert "A new node: node-4" in again.redeployed
        assert "Removed from the app: node-2" in again.redeployed
        again.send("TradeStream", ["a", 1], at=1004, node=1)
        app = again
        assert totals()[-1] == ("node-4", 5)
    finally:
        again.stop()
        again.close()
