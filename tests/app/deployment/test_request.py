"""The table of a deployment's parameters, and the plan that is made of a request."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

import pytest

from sparkstream_nb.app import changes, deploy
from sparkstream_nb.app.planning import plan_deployment
from sparkstream_nb.errors import Misuse
from sparkstream_nb.options import Options, add_deployment, deployment_of
from sparkstream_nb.plan import compile_app
from sparkstream_nb.request import DeployRequest, parameters

APP = """
define stream S (k string, v int);
define aggregation A from S select k, sum(v) as total group by k aggregate every sec ... min;
from S#window.length(3) select k, v insert into O;
"""


def test_deploy_has_the_parameters_of_the_table() -> None:
    found = inspect.signature(deploy).parameters
    assert list(found) == [p.name for p in parameters()]
    assert [p.default for p in list(found.values())[1:]] == [p.default for p in parameters()][1:]


def test_options_left_out_ask_for_what_deploy_does_by_default() -> None:
    parser = Options("deploy")
    add_deployment(parser)
    asked = deployment_of(parser.parse([]))
    given = {p.name: p.default for p in parameters() if p.option is not None}
    assert asked.keys() == given.keys()
    assert {name: value or None for name, value in asked.items()} == {n: value or None for n, value in given.items()}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("text", None, "text is a text, not None"),
        ("conf", 7, "conf is a path, or several, not 7"),
        ("shard_ids", "a", "shard_ids is a list of texts, not 'a'"),
        ("rows_per_micro_batch", 0, "rows_per_micro_batch is at least 1, not 0"),
        ("nodes", True, "nodes must be a whole number, not True"),
        ("mode", "singel", "'singel' is not a deployment mode. Did you mean 'single'?"),
    ],
)
def test_a_wrong_argument_is_named(name: str, value: Any, said: str) -> None:
    with pytest.raises(Misuse) as refused:
        plan_deployment(DeployRequest(**{"text": APP, "master": "inline", name: value}))
    assert str(refused.value) == said


def test_nodes_that_differ_in_their_shard_ids_are_compiled_once() -> None:
    compiled: Counter[str] = Counter()

    def counting(text: str, *how: Any) -> Any:
        compiled[text] += 1
        return compile_app(text, *how)

    planned = plan_deployment(DeployRequest(text=APP, name="planned", nodes=16, master="inline"), compiler=counting)
    assert compiled == {APP: 1}
    shards = planned.deployment.shard_ids
    assert len(set(shards)) == 16
    for shard, plan in zip(shards, planned.plans, strict=True):
        own = {"aggTimeZone": "UTC", "shardId": shard, "timezone": "UTC", "partitionById": "true"}
        assert plan == compile_app(APP, properties=own)


def test_planning_touches_nothing(tmp_path: Any) -> None:
    home = tmp_path / "home"
    planned = plan_deployment(DeployRequest(text=APP, name="planned", home=home, master="inline", nodes=2))
    assert (planned.deployment.home, planned.deployment.mode, planned.master) == (home, "active-active", "inline")
    assert repr(changes(APP, name="planned", home=home, nodes=2)) == "planned has no state yet: it begins."
    assert not home.exists()
