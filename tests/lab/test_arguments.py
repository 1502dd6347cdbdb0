"""Words of a magic's line: splitting, mistakes with the nearest name, help."""

from __future__ import annotations

import pytest

from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.arguments import deploy_options, line_options, split, split_query
from sparkstream_nb.options import WIDTH, HelpAsked


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("a  b", ["a", "b"]),
        ("""T.S '["x y", 1]' --node 2""", ["T.S", '["x y", 1]', "--node", "2"]),
        ("""T.S ["x y", 1] --node 2""", ["T.S", '["x y", 1]', "--node", "2"]),
        ("""T.S {"a": [1, 2]}""", ["T.S", '{"a": [1, 2]}']),
        ("""T.S ["]"]""", ["T.S", '["]"]']),
        ("--at '2013-01-01 06:00'", ["--at", "2013-01-01 06:00"]),
    ],
)
def test_split(line: str, words: list[str]) -> None:
    assert split(line) == words


@pytest.mark.parametrize("line", ["send 'abc", 'send ["a"', "send {"])
def test_what_is_not_closed_is_said(line: str) -> None:
    with pytest.raises(Misuse, match=r"closed|missing"):
        split(line)


@pytest.mark.parametrize(
    ("line", "words", "text"),
    [
        ('T "from A select *"', ["T"], "from A select *"),
        (
            """-o df T "from A per "days" select 'x'" --limit 5""",
            ["-o", "df", "T", "--limit", "5"],
            """from A per "days" select 'x'""",
        ),
        (
            "T from A within '2013' per 'days' select * -o df",
            ["T", "-o", "df"],
            "from A within '2013' per 'days' select *",
        ),
        ("T FROM A SELECT a - o", ["T"], "FROM A SELECT a - o"),
        ("T", ["T"], ""),
    ],
)
def test_split_query(line: str, words: list[str], text: str) -> None:
    assert split_query(line) == (words, text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["T", "--noodes", "3"], "unknown option --noodes. Did you mean '--nodes'?"),
        (["T", "--mode", "activ-active"], "--mode cannot be 'activ-active'. Did you mean 'active-active'?"),
        (["T", "--nodes", "three"], "--nodes: 'three' is not a whole number above 0. See %%siddhi --help"),
        (["T", "--param", "k"], "'k' is not NAME=VALUE"),
        (["T", "-o", "1x"], "'1x' is not a variable's name"),
        (["T", "U"], "unexpected argument 'U'"),
    ],
)
def test_a_mistake_names_what_was_meant(words: list[str], message: str) -> None:
    with pytest.raises(Misuse) as e:
        deploy_options().parse(words)
    assert message in str(e.value)


def test_each_help_has_an_example_that_is_right() -> None:
    commands = line_options()
    for name, options in commands.items():
        assert options.example.startswith(f"%siddhi {name}")
        rest = options.example.removeprefix(f"%siddhi {name}")
        assert f"\nexample:\n  {options.example}\n" in options.format_help()
        assert len(options.example) + 2 <= WIDTH
        options.parse(split_query(rest)[0] if name == "query" else split(rest))
    cell = deploy_options()
    assert "\nexample:\n  %%siddhi" in cell.format_help()
    cell.parse(split(cell.example.removeprefix("%%siddhi")))


def test_help_is_text_and_not_an_exit() -> None:
    for options in (deploy_options(), *line_options().values()):
        with pytest.raises(HelpAsked) as e:
            options.parse(["--help"])
        assert options.prog in str(e.value)
        assert max(len(line) for line in str(e.value).splitlines()) <= 112
