"""Deployment files: what is read, what is refused, and that no secret is ever shown."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.app.config.conf import HA, DataSource, NodeFile, node_files, read_node
from sparkstream_nb.app.config.conf_pair import pair_of, pairs_of
from sparkstream_nb.app.config.grants import Grants
from sparkstream_nb.app.config.secrets import References
from sparkstream_nb.app.connectors.stores import address, databases_of
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.simulation.topology import Coordination, Pair
from sparkstream_nb.stores.address import Database, Secret, from_jdbc

CONF = Path(__file__).parents[3] / "conf"
PASSWORD = "tr0ub4dor&3"
STREAM = "define stream S (k string, v long);\n"
AGGREGATION = "define aggregation A from S select k, sum(v) as total group by k aggregate every sec ... year;"


def node(folder: Path, text: str, name: str = "node-1.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_examples_are_read_as_they_are() -> None:
    one, two = node_files(CONF / "active-active")
    assert (one.id, one.shard_id, two.shard_id) == ("wso2-sp-1", "wso2-sp-1", "wso2-sp-2")
    assert one.properties["partitionById"] == "true"
    source = one.sources["TEST_DB"]
    assert (source.url, source.user, source.pool) == ("jdbc:postgresql://localhost:5432/siddhi", "siddhi", 50)


def test_the_shard_id_is_the_nodes_id_where_none_is_given(tmp_path: Path) -> None:
    path = node(tmp_path, "wso2.carbon: {id: n7}\nsiddhi: {properties: {partitionById: true}}\n")
    assert read_node(path).shard_id == "n7"


def test_what_means_nothing_here_is_kept_and_named(tmp_path: Path) -> None:
    path = node(tmp_path, "wso2.carbon: {id: a, ports: {offset: 1}}\nwso2.metrics: {enabled: true}\n")
    assert read_node(path).unknown == ("wso2.carbon: ports", "wso2.metrics")


def test_refs_are_properties(tmp_path: Path) -> None:
    text = (
        "wso2.carbon: {id: a}\nsiddhi:\n  refs:\n"
        "  - ref: {name: store1, type: rdbms, properties: {jdbc.url: 'jdbc:sqlite:x'}}\n"
    )
    assert read_node(node(tmp_path, text)).properties == {"store1.type": "rdbms", "store1.jdbc.url": "jdbc:sqlite:x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a deployment file"),
        ("- a\n", "is not a deployment file"),
        ("a: [1,\nb: 2\n", r"node-1\.yaml, line 3 is not YAML"),
        ("siddhi: {properties: {shardId: x}}\n", "wso2.carbon: id is missing"),
        ("wso2.carbon: 3\n", "wso2.carbon has no keys"),
        ("wso2.carbon: {id: a}\nsiddhi: {properties: {partitionById: perhaps}}\n", "partitionById is true or false"),
        ("wso2.carbon: {id: a}\nsiddhi: {refs: [{ref: {type: rdbms}}]}\n", "entry 1 of siddhi: refs has no name"),
        ("wso2.carbon: {id: a}\nwso2.datasources: {dataSources: [{}]}\n", "entry 1 of wso2.datasources"),
        (
            "wso2.carbon: {id: a}\nwso2.datasources: {dataSources: [{name: D, definition: {configuration: "
            "{jdbcUrl: 'jdbc:sqlite:x', maxPoolSize: -1}}}]}\n",
            "maxPoolSize of D",
        ),
        ("wso2.carbon: {id: a}\ndeployment.config: {type: ha}\n", "minimum HA"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SparkStreamError, match=message) as raised:
        node_files(node(tmp_path, text))
    assert "\n" not in str(raised.value)


CARBON = "wso2.carbon: {id: a}\n"
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(9)
)
HOSTILE = [
    (BOMB, "more than 20,000 values, aliases counted in full"),
    ("a: " + "[" * 5_000, "line 1: values are nested more than 40 deep"),
    ("\n".join("  " * i + "a:" for i in range(100)), "nested more than 40 deep"),
    ("a: &a [*a]\n", r"line 1: '\*a' stands for what it is in"),
    (f"wso2.carbon: {{id: {'7' * 5_000}}}\n", "line 1: a value begins as a number does and is none"),
    ("wso2.carbon: {id: 2024-99-99}\n", "line 1: a value begins as a date does and is none"),
    ("wso2.carbon: {id: [1]}\n", "wso2.carbon: id is a text or a number, not a list"),
    (CARBON + "wso2.datasources: {dataSources: [{name: D, definition: {configuration: [1]}}]}\n",
     "configuration of D has no keys: it is a list"),
    (CARBON + "wso2.datasources: {dataSources: [{name: D, definition: 7}]}\n", "definition of D has no keys"),
    (CARBON + "wso2.datasources: {dataSources: 7}\n", "wso2.datasources: dataSources is a list, not a number"),
    (CARBON + "wso2.datasources: {dataSources: [{name: [1]}]}\n", "name of entry 1 of wso2.datasources"),
    (CARBON + "wso2.datasources: {dataSources: [{name: D, definition: {configuration: {jdbcUrl: [1]}}}]}\n",
     "jdbcUrl of D is a text or a number, not a list"),
    (CARBON + "siddhi: {refs: [{ref: {name: r, properties: [1]}}]}\n", "properties of 'r' in siddhi: refs has no keys"),
    (CARBON + "siddhi: {refs: 7}\n", "siddhi: refs is a list"),
    (CARBON + "siddhi: {properties: [1]}\n", "siddhi: properties has no keys"),
    (CARBON + "siddhi: {properties: {shardId: {a: 1}}}\n", "siddhi: properties: shardId is a text"),
    (CARBON + "deployment.config: {type: [ha]}\n", "deployment.config: type is a text"),
    (CARBON + "? [a]\n: b\n", "unhashable key"),
    (CARBON + "a: \x07\n", "is not YAML"),
    (CARBON + "x: " + "y" * 300_000, "more than 256 kB"),
    (CARBON + "a: !!python/object:os.system {}\n", "could not determine a constructor"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), HOSTILE, ids=[str(i) for i in range(len(HOSTILE))])
def test_a_hostile_file_is_one_line_at_once(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=message) as raised:
        node_files(node(tmp_path, text), ("", HA, "distributed"))
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300 + len(str(tmp_path))


@given(text=st.text(alphabet="ab:-[]{}&*!?|>'\"#%@,0123 \n\t<.~", max_size=60), carbon=st.booleans())
def test_any_text_is_a_file_or_one_message(text: str, carbon: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = node(tmp_path_factory.mktemp("any"), CARBON * carbon + text)
    said = ""
    try:
        read_node(path)
    except Misuse as e:
        said = str(e)
    assert "\n" not in said


def test_ids_are_references_in_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [node(tmp_path, f"wso2.carbon: {{id: '${{NODE_{i}}}'}}\n", f"{i}.yaml") for i in "12"]
    monkeypatch.setenv("NODE_2", "n-two")
    with pytest.raises(Misuse, match=r"1\.yaml: wso2.carbon: id: \$\{NODE_1\} has no value"):
        node_files(paths)
    with pytest.raises(Misuse, match=r"2\.yaml: wso2.carbon: id: \$\{NODE_2\} has no value.*allow_env=\['NODE_2'\]"):
        node_files(paths, references=References({"NODE_1": "n-one"}))
    found = node_files(paths, references=References({"NODE_1": "n-one"}, ("NODE_2",)))
    assert [f.shard_id for f in found] == ["n-one", "n-two"]


RUNNER = """
dataSources:
  - name: SHOP
    definition: {type: RDBMS, configuration: {jdbcUrl: 'jdbc:sqlite:shop.db', username: u, maxPoolSize: 3}}
refs:
  - ref: {name: store1, type: rdbms, properties: {datasource: SHOP}}
statePersistence: {enabled: true, intervalInMin: 2, persistenceStore: x}
extensions: []
"""


def test_files_of_siddhi_runner(tmp_path: Path) -> None:
    found = read_node(node(tmp_path, RUNNER, "east.yaml"))
    assert (found.id, found.shard_id) == ("east", "east")
    assert found.properties == {"store1.type": "rdbms", "store1.datasource": "SHOP"}
    assert (found.sources["SHOP"].url, found.sources["SHOP"].pool) == ("jdbc:sqlite:shop.db", 3)
    assert found.unknown == ("statePersistence: persistenceStore", "extensions")
    assert found.sections["state.persistence"]["intervalInMin"] == 2
    shard = read_node(node(tmp_path, RUNNER + "properties: {shardId: s1, partitionById: true}\n"))
    assert (shard.id, shard.properties["partitionById"]) == ("s1", "true")
    named = read_node(node(tmp_path, CARBON + RUNNER))
    assert named.id == "a"


def test_keys_of_another_kind_of_deployment_are_named(tmp_path: Path) -> None:
    text = "deployment.config: {type: ha, liveSync: {enabled: true}, outputSyncInterval: 60, heartbeatMaxRetry: 2}\n"
    text = CARBON + text
    unused = tuple(f"deployment.config: {key}" for key in ("liveSync", "outputSyncInterval", "heartbeatMaxRetry"))
    assert read_node(node(tmp_path, text)).unknown == unused


def test_files_that_are_missing_or_share_a_shard(tmp_path: Path) -> None:
    with pytest.raises(SparkStreamError, match=r"no \.yaml file"):
        node_files(tmp_path)
    with pytest.raises(SparkStreamError, match="there is no deployment file"):
        node_files(tmp_path / "none.yaml")
    paths = [node(tmp_path, "wso2.carbon: {id: a}\n", f"{i}.yaml") for i in range(2)]
    with pytest.raises(SparkStreamError, match=r"0\.yaml and .*1\.yaml have one shard id, 'a'"):
        node_files(paths)


# ----------------------------------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("jdbc:postgresql://db.example:6000/trades", Database("postgresql", "trades", "db.example", 6000)),
        ("jdbc:postgresql://db.example/trades", Database("postgresql", "trades", "db.example", 5432)),
        ("jdbc:postgresql://[::1]:5432/t", Database("postgresql", "t", "::1", 5432)),
        ("jdbc:mysql://h:3306/T?useSSL=false", Database("mysql", "T", "h", 3306, options=(("useSSL", "false"),))),
        (
            f"jdbc:mariadb://h/T?user=u&password={PASSWORD.replace('&', '%26')}",
            Database("mariadb", "T", "h", 3306, "u", Secret(PASSWORD)),
        ),
        ("jdbc:sqlite:/data/x.db", Database("sqlite", "/data/x.db")),
        ("jdbc:duckdb:x.duckdb", Database("duckdb", "x.duckdb")),
    ],
)
def test_jdbc_addresses(url: str, wanted: Database) -> None:
    assert from_jdbc(url) == wanted


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("jdbc:h2:mem:x", "cannot be in a database of type 'h2'.*sqlite"),
        ("jdbc:oracle:thin:@h:1521:x", "type 'oracle'.*PostgreSQL"),
        ("postgresql://h/x", "is not a JDBC address"),
        ("jdbc:postgresql:x", "is not a complete address"),
        ("jdbc:postgresql://h:5432/", "is not a complete address"),
        ("jdbc:sqlite:", "names no file"),
        (f"jdbc:postgresql://h?user=x&password={PASSWORD}", "is not a complete address"),
    ],
)
def test_addresses_that_are_no_store(url: str, message: str) -> None:
    with pytest.raises(SparkStreamError, match=message) as raised:
        from_jdbc(url)
    assert PASSWORD.split("&")[0] not in str(raised.value)


# ------------------------------------------------------------------------------------------------------------- secrets


def test_only_allowed_variables_of_the_environment_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    monkeypatch.setenv("HOST", "example")
    monkeypatch.setitem(sys.modules, "keyring", None)  # as where it is not installed
    allowed = References({}, ["DB_PASSWORD"])
    assert allowed.resolve("${sec:db.password}", "x") == PASSWORD
    assert allowed.resolve("${env:DB_PASSWORD}", "x") == PASSWORD
    for text in ("${sec:db.password}", "${env:DB_PASSWORD}", "${DB_PASSWORD}"):
        with pytest.raises(SparkStreamError, match="has no value") as raised:
            References({}, ["HOST"]).resolve(text, "node-1.yaml")
        assert "DB_PASSWORD" in str(raised.value)
        assert PASSWORD not in str(raised.value)
    assert References({"HOST": "given"}).resolve("jdbc:postgresql://${HOST}/x", "x") == "jdbc:postgresql://given/x"
    with pytest.raises(SparkStreamError, match="not a known reference"):
        allowed.resolve("${vault:x}", "x")


def test_a_keyring_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring
    from keyring.backend import KeyringBackend

    class InMemory(KeyringBackend):
        priority = 1  # type: ignore[assignment]

        def get_password(self, service: str, username: str) -> str | None:
            return PASSWORD if (service, username) == ("sparkstream", "db.password") else None

        def set_password(self, service: str, username: str, password: str) -> None: ...

        def delete_password(self, service: str, username: str) -> None: ...

    before = keyring.get_keyring()
    keyring.set_keyring(InMemory())
    try:
        assert References().resolve("${sec:db.password}", "x") == PASSWORD
    finally:
        keyring.set_keyring(before)


def test_a_secret_does_not_show() -> None:
    import pickle

    database = Database("postgresql", "d", "h", 5432, "u", Secret(PASSWORD))
    for shown in (repr(database), str(database), f"{database.password}", repr(replace(database, name="e"))):
        assert PASSWORD not in shown
    with pytest.raises(TypeError, match="does not leave its process"):
        pickle.dumps(database)


# ------------------------------------------------------------------------------------------------------------- @store


def stored(
    store: str,
    files: list[NodeFile] | None = None,
    properties: dict[str, str] | None = None,
    allow: Sequence[str] = (),
    references: References | None = None,
) -> Any:
    given = {"partitionById": "true", "shardId": "a", **(properties or {})}
    plan = compile_app(STREAM + store + AGGREGATION, properties=given)
    plans, references = [plan] * max(1, len(files or [])), references or References()
    return databases_of(plans, files or [], references, Grants.of(allow))


def test_the_manuals_store_in_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "@store(type='rdbms', jdbc.url='jdbc:mysql://localhost:3306/TestDB', username='root', password='{}', "
        "jdbc.driver.name='com.mysql.jdbc.Driver')\n"
    )
    monkeypatch.setenv("PW", "root")
    written, allow = text.format("${env:PW}"), ["jdbc=mysql://localhost:3306/TestDB"]
    found = {"A": Database("mysql", "TestDB", "localhost", 3306, "root", Secret("root"))}
    assert stored(written, allow=allow, references=References(allowed=["PW"])) == found
    with pytest.raises(SparkStreamError, match=r"is not allowed\. Add --allow jdbc=mysql://localhost:3306/TestDB"):
        stored(written)  # before the password is looked up
    with pytest.raises(SparkStreamError, match=r"write password='\$\{sec:NAME\}'"):
        stored(text.format("root"), allow=allow)


PAY = Database("postgresql", "pay", "10.0.0.5", 5432)


@pytest.mark.parametrize(
    ("url", "database", "option"),
    [
        ("jdbc:postgresql://10.0.0.5:5432/pay", PAY, "jdbc=postgresql://10.0.0.5:5432/pay"),
        ("jdbc:mysql://db/pay", Database("mysql", "pay", "db", 3306), "jdbc=mysql://db:3306/pay"),
        ("jdbc:mariadb://db:3307/pay", Database("mariadb", "pay", "db", 3307), "jdbc=mariadb://db:3307/pay"),
        ("jdbc:sqlite:/any/../any/file.db", Database("sqlite", "/any/../any/file.db"), "file=/any"),
        ("jdbc:duckdb:/any/file.db", Database("duckdb", "/any/file.db"), "file=/any"),
    ],
)
def test_an_address_in_the_text_needs_a_grant(url: str, database: Database, option: str) -> None:
    store = f"@store(type='rdbms', jdbc.url='{url}')\n"
    for granted in ([], ["file=/other", "jdbc=postgresql://10.0.0.5:5432/other"]):
        with pytest.raises(
            SparkStreamError, match=re.escape(f"is not allowed. Add --allow {option}, or allow=")
        ) as raised:
            stored(store, allow=granted)
        assert str(raised.value).startswith("line 2, column 1: @store of aggregation 'A' opens ")
    assert stored(store, allow=[option]) == {"A": database}


@pytest.mark.parametrize(
    ("url", "option"),
    [
        ("jdbc:postgresql://${env:DB_HOST}:5432/pay", "jdbc=postgresql://HOST:PORT/DATABASE"),
        ("jdbc:postgresql://${sec:db.host}:5432/pay", "jdbc=postgresql://HOST:PORT/DATABASE"),
        ("${env:DB_URL}", "jdbc=postgresql://HOST:PORT/DATABASE"),
        ("jdbc:sqlite:/any/${env:DB_HOST}", "file=DIR"),
        ("jdbc:sqlite:/any/${sec:db?host}", "file=DIR"),
    ],
)
def test_an_address_by_references_needs_a_grant(url: str, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reference stands for may be a secret: it is compared, and not shown."""
    monkeypatch.setenv("DB_HOST", "10.0.0.5")
    monkeypatch.setenv("DB_URL", "jdbc:postgresql://10.0.0.5/pay?user=u&password=x")
    references = References(allowed=["DB_HOST", "DB_URL"])
    store = f"@store(type='rdbms', jdbc.url='{url}')\n"
    with pytest.raises(SparkStreamError, match=f"is not allowed. Add --allow {option}, or") as raised:
        stored(store, references=references)
    assert url in str(raised.value)
    assert "10.0.0.5" not in str(raised.value)
    allow = ["jdbc=postgresql://10.0.0.5:5432/pay", "file=/any"]
    assert stored(store, references=references, allow=allow)["A"].name in ("pay", "/any/10.0.0.5")


def test_an_address_by_a_reference_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", PASSWORD)
    with pytest.raises(SparkStreamError, match=r"'\$\{env:PW\}' does not name an address such as jdbc:") as raised:
        stored("@store(type='rdbms', jdbc.url='${env:PW}')\n", references=References(allowed=["PW"]))
    assert PASSWORD not in str(raised.value)


def test_a_database_in_memory_needs_no_grant() -> None:
    assert stored("@store(type='rdbms', jdbc.url='jdbc:sqlite::memory:')\n") == {"A": Database("sqlite", ":memory:")}


def test_a_store_that_a_ref_defines() -> None:
    properties = {"s.type": "rdbms", "s.jdbc.url": "jdbc:postgresql://h/x", "s.username": "u", "s.password": "pw"}
    found = {"A": Database("postgresql", "x", "h", 5432, "u", Secret("pw"))}
    assert stored("@store(ref='s')\n", properties=properties) == found
    with pytest.raises(SparkStreamError, match="Add --allow jdbc=postgresql://other:5432/x"):
        stored("@store(ref='s', JDBC.url='jdbc:postgresql://other/x')\n", properties=properties)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("@store(type='rdbms')\n", "names no database"),
        ("@store(type='rdbms', datasource='NONE')\n", "no deployment file defines one"),
        ("@store(type='mongodb', x='y')\n", "type 'mongodb'"),
        (f"@store(type='rdbms', jdbc.url='jdbc:h2:x', password='{PASSWORD}')\n", "type 'h2'"),
        (f"@store(type='rdbms', jdbc.url='jdbc:postgresql://u:{PASSWORD}@h')\n", "not a complete address"),
        (
            f"@store(type='rdbms', jdbc.url='jdbc:mysql://h/x?user=u&password={PASSWORD}')\n",
            "the password does not belong",
        ),
    ],
)
def test_stores_that_cannot_be(store: str, message: str) -> None:
    with pytest.raises(SparkStreamError, match=message) as raised:
        stored(store)
    assert str(raised.value).startswith("line 2, column 1: ")
    assert PASSWORD not in str(raised.value)


def test_nodes_must_share_their_database(tmp_path: Path) -> None:
    def file(name: str, url: str) -> NodeFile:
        text = (
            f"wso2.carbon: {{id: {name}}}\nwso2.datasources: {{dataSources: [{{name: D, definition: "
            f"{{configuration: {{jdbcUrl: '{url}'}}}}}}]}}\n"
        )
        return read_node(node(tmp_path, text, f"{name}.yaml"))

    store = "@store(type='rdbms', datasource='D')\n"
    same = [file("a", "jdbc:sqlite:/x"), file("b", "jdbc:sqlite:/x")]
    assert stored(store, same) == {"A": Database("sqlite", "/x")}
    with pytest.raises(SparkStreamError, match="differ: sqlite:/x and sqlite:/y"):
        stored(store, [same[0], file("c", "jdbc:sqlite:/y")])
    with pytest.raises(SparkStreamError, match=r"a\.yaml has no data source 'E'\. Known: D"):
        stored("@store(type='rdbms', datasource='E')\n", same)
    with pytest.raises(SparkStreamError, match="partitioned by id and has no @store"):
        stored("", same)


def test_a_file_is_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert address(DataSource("", "jdbc:sqlite:x.db"), References(), place="x").name == str(tmp_path / "x.db")


# ------------------------------------------------------------------------------------------------------- minimum HA


def test_the_files_of_a_pair_are_read_as_they_are() -> None:
    files = node_files(CONF / "minimum-ha", ("", HA))
    coordination = Coordination(5_000, 5, 5_000)
    assert pair_of(files) == Pair(("wso2-si-1", "wso2-si-2"), "group-1", coordination, 60_000, 2, 20_000)
    assert "cluster.config: coordinationStrategyClass" in files[0].unknown
    assert "deployment.config: eventSyncServer" in files[0].unknown
    assert "cluster.config: strategyConfig: datasource" in files[0].unknown


PAIR = """wso2.carbon:
  id: {id}
cluster.config:
  enabled: {enabled}
  groupId: {group}
  heartbeatInterval: {beat}
deployment.config:
  type: {type}
  eventByteBufferQueueCapacity: {queue}
state.persistence:
  enabled: {persists}
  intervalInMin: {every}
"""
FIGURES = {
    "id": "a", "enabled": "true", "group": "g", "beat": 1000, "type": "ha", "queue": 10, "persists": "true", "every": 2
}  # fmt: skip


def pair_files(folder: Path, **second: object) -> list[NodeFile]:
    one = node(folder, PAIR.format(**FIGURES))
    two = node(folder, PAIR.format(**{**FIGURES, "id": "b", **second}), "node-2.yaml")
    return node_files([one, two], ("", HA))


def test_figures_may_stand_beside_the_strategy(tmp_path: Path) -> None:
    """As in the manual's example, which has lost the line `strategyConfig`."""
    assert pair_of(pair_files(tmp_path)) == Pair(("a", "b"), "g", Coordination(1_000, 5, 5_000), 120_000, 2, 10)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"beat": -1}, "node-2.yaml, line 6: .*heartbeatInterval is a whole number above 0, not -1"),
        ({"beat": "soon"}, "line 6: .*not 'soon'"),
        ({"beat": 2000}, "line 6: .*heartbeatInterval is 2000 here and 1000 in .*node-1.yaml; the two nodes have to"),
        ({"group": "h"}, "line 5: cluster.config: groupId is h here and g in"),
        ({"queue": 0}, "line 9: deployment.config: eventByteBufferQueueCapacity"),
        ({"every": 1.5}, "line 12: state.persistence: intervalInMin"),
        ({"enabled": "false"}, "line 4: cluster.config: enabled is not true; nodes find each other through it"),
        ({"persists": "false"}, "line 11: state.persistence: enabled is not true; a node takes over from it"),
        ({"id": "a"}, "have one shard id, 'a'"),
        ({"type": "distributed"}, "node-2.yaml describes another kind of deployment .fully distributed."),
        ({"id": "database"}, "a node cannot be called 'database'"),
    ],
)
def test_the_files_of_a_pair_that_are_wrong(second: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(SparkStreamError, match=message) as raised:
        pair_of(pair_files(tmp_path, **second))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("written", ["[1]", "7", "text", "true", "[{enabled: true}]"])
@pytest.mark.parametrize("section", ["cluster.config", "state.persistence"])
def test_a_section_of_a_pair_that_has_no_keys_is_not_switched_on(section: str, written: str, tmp_path: Path) -> None:
    other = "state.persistence" if section == "cluster.config" else "cluster.config"
    texts = "deployment.config: {type: ha, eventSyncServer: {host: h, port: 1}}\n"
    texts += f"{section}: {written}\n{other}: {{enabled: true, groupId: g}}\n"
    for i in (1, 2):
        node(tmp_path, f"wso2.carbon: {{id: n{i}}}\n{texts}", f"node-{i}.yaml")
    with pytest.raises(Misuse, match=f"{section}: enabled is not true"):
        pair_of(node_files(tmp_path, (HA,)))


def test_a_pair_of_one_or_of_two_kinds(tmp_path: Path) -> None:
    with pytest.raises(SparkStreamError, match=r"each with a deployment file, and the groupId 'g' is in 1 file"):
        pair_of(pair_files(tmp_path)[:1])
    plain = node(tmp_path, "wso2.carbon: {id: c}\n", "node-3.yaml")
    with pytest.raises(SparkStreamError, match="the groupId 'g' is in 1 file"):
        pairs_of(node_files([tmp_path / "node-1.yaml", plain], ("", HA)))
    with pytest.raises(SparkStreamError, match="than fully distributed"):
        node_files([plain], ("distributed",))
