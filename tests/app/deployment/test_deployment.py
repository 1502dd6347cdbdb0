"""What `deploy` makes of its arguments, before Spark."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from sparkstream_nb.app import deploy, get
from sparkstream_nb.app.planning import plan_deployment
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.request import DeployRequest

APP = "define stream S (v int); from S select v insert into O;"


@pytest.mark.parametrize(
    ("mode", "nodes", "found"),
    [
        (None, None, ("single", 1)),
        (None, 1, ("single", 1)),
        (None, 3, ("active-active", 3)),
        ("active-active", None, ("active-active", 1)),
        ("ha", None, ("ha", 2)),
    ],
)
def test_mode_and_number_of_nodes_follow_from_each_other(
    mode: str | None, nodes: int | None, found: tuple[str, int]
) -> None:
    planned = plan_deployment(DeployRequest(text=APP, mode=mode, nodes=nodes, master="inline"))
    assert (planned.deployment.mode, planned.deployment.nodes) == found


def test_a_wrong_mode_names_what_there_is() -> None:
    with pytest.raises(SparkStreamError) as wrong:
        plan_deployment(DeployRequest(text=APP, mode="activ-active", nodes=2, master="inline"))
    assert str(wrong.value) == ("'activ-active' is not a deployment mode. Did you mean 'active-active'?")


def test_variables_are_no_part_of_the_text_form() -> None:
    """They may be secrets, as the token of a master may be."""
    request = DeployRequest(text=APP, variables={"PW": "s3cret"}, master="inline")
    assert "s3cret" not in repr(plan_deployment(request))


def test_every_argument_of_deploy_is_explained() -> None:
    words = inspect.getdoc(deploy) or ""
    arguments = set(inspect.signature(deploy).parameters) - {"text"}
    assert [a for a in arguments if f"`{a}`" not in words] == []
    assert {f.name for f in dataclasses.fields(DeployRequest)} == arguments | {"text"}


def test_an_app_that_there_is_not() -> None:
    with pytest.raises(Misuse, match="no app is called 'none'"):
        get("none")
