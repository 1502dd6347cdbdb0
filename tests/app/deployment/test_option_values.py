"""Values of options as the table of options declares them, and what is said of those that are wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkstream_nb.app.connectors.typed_options import OptionValues
from sparkstream_nb.errors import Misuse


def source(type_: str, **given: str) -> OptionValues:
    return OptionValues.of("source", type_, {k.replace("_", "."): v for k, v in given.items()}, "the source")


def sink(type_: str, **given: str) -> OptionValues:
    return OptionValues.of("sink", type_, {k.replace("_", "."): v for k, v in given.items()}, "the sink")


def test_an_option_that_is_left_out_has_its_default() -> None:
    tcp, files = source("tcp"), source("file")
    assert (tcp.number("port"), tcp.text("context"), tcp.has("port"), tcp.optional("port")) == (9892, "", False, None)
    assert (files.flag("header.present"), files.choice("mode")) == (False, "text.full")
    assert sink("file").flag("append") is True
    assert [files.flag("tailing", default) for default in (True, False)] == [True, False]


def test_a_given_value_counts() -> None:
    files = source("file", mode=" Line ", tailing="FALSE", file_polling_interval=" 20 ")
    assert (files.choice("mode"), files.flag("tailing", True)) == ("line", False)
    assert files.number("file.polling.interval") == 20
    assert (files.raw("mode"), files.trim("mode"), files.has("mode"), files.optional("mode")) == (
        " Line ", "Line", True, " Line ",
    )  # fmt: skip


def test_another_name_of_an_option() -> None:
    def servers(**given: str) -> str:
        return sink("nats", **given).first("server.urls", "bootstrap.servers")

    assert servers() == "nats://localhost:4222"
    assert servers(bootstrap_servers="b:1") == "b:1"
    assert servers(bootstrap_servers="b:1", server_urls="a:1") == "a:1"


def test_a_sink_that_takes_values_without_blanks() -> None:
    tcp = OptionValues.of_trimmed("tcp", {"sync": " True ", "keep.alive": "No "}, "the sink")
    assert tcp.flag("sync") is True
    with pytest.raises(Misuse, match=r"^the sink: keep\.alive is 'true' or 'false', not 'no'$"):
        tcp.flag("keep.alive")


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (
            lambda: source("file", tailing="Yes").flag("tailing"),
            "the source: 'tailing' is 'true' or 'false', not 'yes'",
        ),
        (lambda: sink("file", append="Yes").flag("append"), "the sink: append is 'true' or 'false', not 'Yes'"),
        (
            lambda: source("file", action_after_process="x").choice("action.after.process"),
            "the source: 'action.after.process' is one of keep, delete, move, not 'x'",
        ),
        (lambda: source("tcp", port="0").number("port"), "'port' is a whole number from 1 to 65,535, not '0'"),
        (lambda: source("tcp", port="65536").number("port"), "'port' is a whole number from 1 to 65,535, not '65536'"),
        (lambda: source("tcp", port="x").number("port"), "'port' is a whole number from 1 to 65,535, not 'x'"),
        (
            lambda: source("tcp", context="${sec:A}").text("context"),
            "'context' cannot have a reference such as ${sec:...} in it: it is shown",
        ),
        (
            lambda: sink("kafka", key="${V}").check_shown("topic", "key"),
            "the sink: key cannot have a reference such as ${sec:...} in it: it is shown",
        ),
    ],
)
def test_what_is_said_of_a_wrong_value(read: Callable[[], object], message: str) -> None:
    with pytest.raises(Misuse) as caught:
        read()
    assert message in str(caught.value)


def test_a_secret_may_be_a_reference() -> None:
    assert sink("email", password="${sec:A}").text("password") == "${sec:A}"


@pytest.mark.parametrize("method", ["has", "optional", "raw", "trim", "first", "text", "check_shown", "flag", "choice"])
def test_no_option_is_read_that_the_table_does_not_have(method: str) -> None:
    with pytest.raises(KeyError, match="poort"):
        getattr(source("tcp"), method)("poort")


def test_values_are_not_in_the_representation() -> None:
    assert "geheim" not in repr(sink("email", password="geheim"))
