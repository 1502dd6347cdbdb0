"""The generated pages of the site: complete, with examples that run, in Markdown as the site's parser reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.generator import api, commands, connectors, examples, generated, language, lists, notebooks, recipes
from docs.generator.markdown import for_site, name_anchor, relink
from docs.generator.pages import GENERATED, SECTIONS, sources
from sparkstream_nb import columns
from sparkstream_nb.lab.arguments import line_options
from sparkstream_nb.plan.connectors.connector_options import FORMER_TYPES, TABLES
from sparkstream_nb.plan.connectors.option_spec import End
from sparkstream_nb.plan.signatures import aggregators, scalars, streams
from sparkstream_nb.plan.window_declarations import DECLARATIONS

ROOT = Path(__file__).parents[2]


def test_the_navigation_has_every_page_once() -> None:
    navigation = re.findall(r"^ +- (?:[^:\n]*: )?(\S+\.md)$", (ROOT / "conf/mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(navigation) == sorted({*GENERATED, *sources().values()})


@pytest.mark.parametrize("page", [connectors.sources, connectors.sinks])
def test_links_within_a_page_of_connectors_lead_to_its_headings(page: Callable[[], str]) -> None:
    text = page()
    headings = {name_anchor(heading) for heading in re.findall(r"^## (.*)$", text, re.MULTILINE)}
    links = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert links == headings


def test_every_function_aggregator_and_stream_function_has_an_example_and_no_other() -> None:
    written = examples._written()
    assert written["functions"].keys() == scalars.TABLE.keys()
    assert written["aggregators"].keys() == aggregators.TABLE.keys()
    assert written["stream_functions"].keys() == streams.TABLE.keys()


@pytest.mark.parametrize("namespace", language.NAMESPACES)
def test_every_function_is_on_its_page_with_the_value_of_its_example(namespace: str) -> None:
    page = language.functions()[namespace]()
    names = [n for n in scalars.TABLE if (n.partition(":")[0] if ":" in n else "built-in") == namespace]
    assert names
    for name in names:
        call = examples.call_of("functions", name)
        assert f"\n## {name}\n" in page
        assert re.search(rf"^Example: `+ ?{re.escape(call)} ?`+( is `|, a )", page, re.MULTILINE), name


def test_values_of_examples() -> None:
    """A few of them, by hand: a page shows what the engine says, so that says nothing of whether it is right."""
    calls = ["str:substr('stream', 2, 3)", "time:dayOfWeek('2024-06-01', 'yyyy-MM-dd')", "math:power(2.0, 10.0)"]
    assert examples.values(calls) == ["rea", "Saturday", 1024.0]
    assert examples.aggregates(["sum(price)", "count()", "distinctCount(symbol)"]) == [80.0, 4, 2]


def test_every_aggregator_and_stream_function_is_on_its_page() -> None:
    found = language.aggregators(), language.stream_functions()
    for page, names in zip(found, (aggregators.TABLE, streams.TABLE), strict=True):
        assert [n for n in names if f"\n## {n}\n" not in page] == []
    assert "Nothing." not in found[1]


def test_every_window_has_an_output() -> None:
    page = language.windows()
    for name in DECLARATIONS:
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "| CURRENT |" in section, name


def test_a_window_puts_out_what_it_lets_go() -> None:
    kinds = [(t, kind, values[1]) for t, kind, values in examples.window_rows("length")][:6]
    assert kinds == [
        (1000, "CURRENT", 10.0), (1500, "CURRENT", 20.0), (2000, "CURRENT", 30.0),
        (4000, "EXPIRED", 10.0), (4000, "CURRENT", 40.0), (4500, "EXPIRED", 20.0),
    ]  # fmt: skip


@pytest.mark.parametrize("end", TABLES)
def test_every_option_has_a_line_of_help(end: End) -> None:
    for type_, options in TABLES[end].items():
        for spec in connectors.options_that_run(options).values():
            assert spec.help_line.endswith((".", ")")), (type_, spec.name)


def test_pages_of_connectors_name_every_type_and_option() -> None:
    for end, page in (("source", connectors.sources()), ("sink", connectors.sinks())):
        for type_, options in TABLES[end].items():
            section = page.partition(f"\n## {type_}\n")[2].partition("\n## ")[0]
            assert section
            if type_ not in FORMER_TYPES[end]:
                assert [n for n, spec in options.items() if spec.runs != (f"| `{n}` |" in section)] == []
                needed = [spec for spec in options.values() if spec.required and not spec.alternative]
                assert section.count("| yes |") >= len(needed)
    assert "| `dir.uri` | one of both |" in connectors.sources()
    assert "| `header.present` |  | Whether the first line of a file names the columns (default: `false`). |" in (
        connectors.sources()
    )


def test_commands_are_on_their_pages_with_all_options() -> None:
    page = commands.magics()
    for name, parser in line_options().items():
        section = page.partition(f"{{ #siddhi-{name} }}")[2].partition("\n## ")[0]
        wanted = {o for a in parser._actions for o in a.option_strings} - {"-h", "--help"}
        assert [o for o in wanted if o not in section] == []
    assert "`--rows-per-micro-batch N`" in commands.command_line()
    assert "%%Y" not in page


def test_the_api_has_the_public_names_and_methods() -> None:
    page = api.python()
    for heading in ("## deploy {", "## App {", "### App.feed {", "### App.replay {", "## Divergence {"):
        assert heading in page
    assert "<object" not in page


def test_generators_of_columns_are_on_their_page() -> None:
    page = generated.generated_events()
    assert [n for n in columns.__all__ if n not in ("GeneratedColumn", "Profile") and f"### {n} {{" not in page] == []
    assert "| currency | string | EUR, USD, GBP, JPY and CHF, the first ones often |" in page
    assert "### Profile.save {" in page


def test_errors_and_metrics() -> None:
    assert "`SiddhiBindError`" in lists.errors()
    assert "`sparkstream_lag_events`" in lists.metrics()
    assert "wso2event" in lists.not_included()
    assert "`str:upper`" not in lists.not_included()


@pytest.mark.parametrize("page", recipes.pages(), ids=lambda p: p.stem)
def test_a_recipe_has_the_output_that_its_page_says(page: Path) -> None:
    found = recipes.recipe(page.read_text(encoding="utf-8"))
    assert found.output
    got = [(t, stream, values) for stream, events in recipes.run(found).items() for t, values in events]
    assert sorted(got, key=str) == sorted(found.output, key=str)


def test_a_notebook_is_shown_with_its_outputs() -> None:
    for book in notebooks.books():
        page = notebooks.page(book)
        cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
        shown = sum(bool(notebooks._output(o)) for c in cells if c["cell_type"] == "code" for o in c["outputs"])
        assert shown
        assert page.count('<div class="nb-output') == shown
        assert "\x1b[" not in page
        assert not re.search(r"<(script|link)\b", page)


def test_headings_of_the_reference_lead_to_generated_pages() -> None:
    text = (ROOT / "docs" / "reference" / "README.md").read_text(encoding="utf-8")
    headings = {h.lower().replace(" ", "-") for h in re.findall(r"^## (.*)$", text, re.MULTILINE)}
    assert headings == SECTIONS.keys()
    assert {p for p in SECTIONS.values() if p not in GENERATED} == set()


def test_places_of_pages_differ() -> None:
    places = [*sources().values(), *GENERATED]
    assert len(places) == len(set(places))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A list:\n- one\n- two\n", "A list:\n\n- one\n- two\n"),
        ("- one\n  1. first\n  2. second\n", "- one\n    1. first\n    2. second\n"),
        ("- one\n  goes on\n- two\n", "- one\n    goes on\n- two\n"),
        ("Text\n| a |\n| --- |\n", "Text\n\n| a |\n| --- |\n"),
        ("Text:\n```\n- no list\n  here\n```\nmore\n", "Text:\n\n```\n- no list\n  here\n```\n\nmore\n"),
        ("1. one:\n\n    ```x\n    a\n    ```\n2. two\n", "1. one:\n\n    ```x\n    a\n    ```\n\n2. two\n"),
        ("```\n%%siddhi A\n```\n@me\n", "```siddhi\n%%siddhi A\n```\n\n@me\n"),
        ("    code\n    more\n", "    code\n    more\n"),
    ],
)
def test_lists_and_tables_as_the_site_reads_them(text: str, expected: str) -> None:
    assert for_site(text) == expected


def test_links_are_changed_and_code_is_not() -> None:
    text = "[a](x.md) `[b](y.md)` [`c`](z.md)\n```\n[d](w.md)\n```\n[e](https://example.org)\n"
    changed = relink(text, lambda target: None if target == "z.md" else f"new/{target}")
    assert changed == "[a](new/x.md) `[b](y.md)` `c`\n```\n[d](w.md)\n```\n[e](https://example.org)\n"
