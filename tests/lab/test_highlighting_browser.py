"""SiddhiQL in JupyterLab and Notebook 7: the colours of cells, files and fences, and which cells have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from .browser import Lab, Markdown

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]

TOKENS = {
    # A line of SiddhiQL → its tokens, each with the part of the theme that colours it (`highlighted`).
    "from S#window.length(3) select symbol": "from/keyword S #window/keyword ./punctuation length/builtin (/bracket "
    "3/number )/bracket select/keyword symbol",
    "FROM S#window.misspelt() Select *": "FROM/keyword S #window/keyword ./punctuation misspelt ()/bracket "
    "Select/keyword */operator",
    "@app:name('Trades') -- a comment": "@app:name/meta (/bracket 'Trades'/string )/bracket -- a comment/comment",
    '@sink(type="log", on.error = \'store\')': '@sink/meta (/bracket type/attribute =/operator "log"/string '
    ",/punctuation on.error/attribute =/operator 'store'/string )/bracket",
    "define stream S (symbol string, order long);": "define/keyword stream/keyword S/def (/bracket symbol "
    "string/builtin ,/punctuation order long/builtin )/bracket ;/punctuation",
    "/* over": "/* over/comment",
    "two lines */ from S#log('x')": "two lines *//comment from/keyword S #log/builtin (/bracket 'x'/string )/bracket",
    "select 1, 2L, 1.5, .5f, 3e-2D, true, null": "select/keyword 1/number ,/punctuation 2L/number ,/punctuation "
    "1.5/number ,/punctuation .5f/number ,/punctuation 3e-2D/number ,/punctuation true/keyword ,/punctuation "
    "null/keyword",
    "select min(price) as low, str:concat(a, b) as c": "select/keyword min/builtin (/bracket price )/bracket "
    "as/keyword low/def ,/punctuation str:concat/builtin (/bracket a ,/punctuation b )/bracket as/keyword c/def",
    "from every e1=S<2:5> -> e2=S[price > e1[0].price] within 5 sec": "from/keyword every/keyword e1 =/operator S "
    "</operator 2/number :/punctuation 5/number >/operator ->/operator e2 =/operator S [/bracket price >/operator e1 "
    "[/bracket 0/number ]/bracket ./punctuation price/property ]/bracket within/keyword 5/number sec/keyword",
    "from #Inner[not(sec >= 2 min 3 sec)] insert into !Fault;": "from/keyword #Inner/variable-2 [/bracket not/keyword "
    "(/bracket sec >=/operator 2/number min/keyword 3/number sec/keyword )]/bracket insert/keyword into/keyword "
    "!Fault/variable-2 ;/punctuation",
    "aggregate by day every sec ... year;": "aggregate/keyword by/keyword day every/keyword sec/keyword .../operator "
    "year/keyword ;/punctuation",
    'select """one "two"': 'select/keyword """one "two"/string',
    "three\"\"\" as text, ${NAME}": 'three"""/string as/keyword text/def ,/punctuation ${NAME}/variable-2',
    "define function f[javascript] return int { var s = '}'; // }": "define/keyword function/keyword f/def [/bracket "
    "javascript ]/bracket return/keyword int/builtin {/bracket var/keyword s = '}'/string ; // }/comment",
    "if (s) { return 2; } };": "if/keyword (/bracket s )/bracket {/bracket return/keyword 2/number ; }/bracket "
    "}/bracket ;/punctuation",
    "from S select `order` insert into T": "from/keyword S select/keyword `order` insert/keyword into/keyword T",
}  # fmt: skip
QUERY = "from S#window.length(3) select symbol"
CELL = f"%%siddhi Trades --nodes 2 --routing hash:symbol\n{QUERY}"
CELL_TOKENS = (
    "%%siddhi/meta Trades/def --nodes/attribute 2/number --routing/attribute hash:symbol/string\n" + TOKENS[QUERY]
)
SENT = """%siddhi send T.S '["a", 1.5]' --node 2
# a comment
  %siddhi stop T"""
SENT_TOKENS = """%siddhi/meta send/def T.S/def '["a", 1.5]'/string --node/attribute 2/number
# a comment/comment
%siddhi/meta stop/def T/def"""
CELLS = [
    CELL,
    f"%%siddhi --query Trades\n{QUERY}",
    "x = 'a'  # a comment",
    Markdown(f"A fence:\n\n```siddhi\n{QUERY}\n```\n"),
    "",
    SENT,
    f"y = 5\n{SENT.splitlines()[0]}\ntext = '''\n{SENT.splitlines()[0]}'''",
]
PYTHON_TOKENS = "x =/operator 'a'/string # a comment/comment"

# Styled pieces of an element's lines. A class of CodeMirror's is one rule, whose colour is a variable of the theme.
TOKENS_OF = """element => {
  const roles = new Map();
  for (const sheet of [...document.styleSheets, ...document.adoptedStyleSheets])
    for (const rule of sheet.cssRules) {
      const role = rule.style?.color.match(/--jp-mirror-editor-(.*)-color/);
      if (role && /^\\.\\S+$/.test(rule.selectorText)) roles.set(rule.selectorText.slice(1), role[1]);
    }
  const pieces = node => [...node.childNodes].flatMap(n => {
    if (n.nodeType === Node.TEXT_NODE) return n.data.trim() ? [n.data.trim()] : [];
    const role = [...n.classList].map(c => roles.get(c)).find(r => r);
    return role ? [`${n.textContent.trim()}/${role}`] : pieces(n);
  });
  const lines = element.querySelectorAll('.cm-line');
  return [...(lines.length ? lines : [element])].map(l => pieces(l).join(' ')).join('\\n').trim();
}"""
# What a token looks like, and what the theme says of its role.
LOOKS = """(token, role) => {
  const probe = token.appendChild(document.createElement('i'));
  probe.style.color = `var(--jp-mirror-editor-${role}-color)`;
  const theme = getComputedStyle(probe).color;
  probe.remove();
  const { color, fontStyle, fontWeight } = getComputedStyle(token);
  return { color, theme, fontStyle, fontWeight };
}"""


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    """A notebook whose cells the tests below change one after the other."""
    with lab.notebook("trades.ipynb", CELLS, height=900, run=False) as page:
        yield page


def cell(page: Any, number: int) -> Any:
    return page.locator(".jp-Notebook .jp-Cell").nth(number)


def highlighted(page: Any, place: Any, expected: str) -> None:
    """Waits until the text at `place` has these tokens: a loaded language is shown with the next update."""
    for _ in range(100):
        if place.evaluate(TOKENS_OF) == expected:
            return
        page.wait_for_timeout(50)
    assert place.evaluate(TOKENS_OF) == expected


def check_notebook(page: Any) -> None:
    """Every cell of the notebook has its own language's tokens."""
    highlighted(page, cell(page, 0), CELL_TOKENS)
    highlighted(page, cell(page, 1), f"%%siddhi/meta --query/attribute Trades/string\n{TOKENS[QUERY]}")
    highlighted(page, cell(page, 2), PYTHON_TOKENS)
    highlighted(page, cell(page, 3).locator("code.language-siddhi"), TOKENS[QUERY])
    highlighted(page, cell(page, 5), SENT_TOKENS)


# Characters of a line with their colours and weights.
COLOURS_OF = """line => {
  const pieces = [];
  const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  for (let n = texts.nextNode(); n; n = texts.nextNode()) {
    const { color, fontWeight } = getComputedStyle(n.parentElement);
    for (const c of n.data) if (c.trim()) pieces.push([c, `${color} ${fontWeight}`]);
  }
  return pieces;
}"""


def colours(page: Any, number: int, line: int) -> list[list[str]]:
    """The colour and weight of each character of a line of a cell."""
    return cast(list[list[str]], cell(page, number).locator(".cm-line").nth(line).evaluate(COLOURS_OF))


def test_a_line_between_python_has_the_colours_of_one_alone(lab: Lab, page: Any) -> None:
    highlighted(page, cell(page, 5), SENT_TOKENS)
    alone = colours(page, 5, 0)
    assert len({colour for _, colour in alone}) >= 4
    for _ in range(100):
        if colours(page, 6, 1) == alone:
            break
        page.wait_for_timeout(50)
    assert colours(page, 6, 1) == alone
    assert colours(page, 6, 3)[: len(alone)] != alone
    assert len({colour for _, colour in colours(page, 6, 3)}) == 1  # a text of Python
    lab.picture(page, "highlighting-mixed")


def check_colours(page: Any) -> dict[str, str]:
    """The colours of tokens in the first cell, by role. They are those of the theme."""
    colours = {}
    for text, role, weight in (("#window", "keyword", "700"), ("hash:symbol", "string", "400"), ("3", "number", "400")):
        looks = cell(page, 0).locator(".cm-line span", has_text=text).last.evaluate(LOOKS, role)
        assert looks == {"color": looks["theme"], "theme": looks["theme"], "fontStyle": "normal", "fontWeight": weight}
        colours[role] = looks["color"]
    return colours


def test_a_notebook_in_both_themes(lab: Lab, page: Any) -> None:
    check_notebook(page)
    lab.picture(page, "highlighting-light")
    in_light = check_colours(page)
    with lab.dark(page):
        check_notebook(page)
        lab.picture(page, "highlighting-dark")
        in_dark = check_colours(page)
    assert all(in_light[role] != in_dark[role] for role in in_light)


def test_a_cell_stays_siddhiql_when_the_kernel_restarts(lab: Lab, page: Any) -> None:
    lab.restart(page)
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=restarting]", state="attached")
    lab.idle(page)
    check_notebook(page)


def test_a_fence_while_it_is_edited(page: Any) -> None:
    cell(page, 3).locator("code.language-siddhi").dblclick()
    highlighted(page, cell(page, 3).locator(".cm-line").nth(3), TOKENS[QUERY])


def test_typing_the_magic_switches_a_cell_to_siddhiql_and_back(page: Any) -> None:
    cell(page, 4).locator(".cm-content").click()
    page.keyboard.type("from S#window.length")
    highlighted(page, cell(page, 4), "from/keyword S #window.length/comment")
    page.keyboard.press("Home")
    page.keyboard.type("%%siddhi\n")
    highlighted(page, cell(page, 4), "%%siddhi/meta\nfrom/keyword S #window/keyword ./punctuation length/builtin")
    for _ in "%%siddhi\n":
        page.keyboard.press("Backspace")
    highlighted(page, cell(page, 4), "from/keyword S #window.length/comment")


def test_a_new_cell_indents_and_comments_as_siddhiql_does(lab: Lab, page: Any) -> None:
    cell(page, 4).locator(".jp-InputPrompt").click()
    page.keyboard.press("b")  # a new cell below
    page.keyboard.press("Enter")
    page.keyboard.type("%%siddhi\n")
    highlighted(page, cell(page, 5), "%%siddhi/meta")
    typed = ["define stream S (", "a int", ");", "partition with (a of S) begin", "from S select a", "end;", "from S"]
    page.keyboard.type("\n".join(typed))
    lines = cell(page, 5).locator(".cm-line")
    indented = ["define stream S (", "    a int", ");", "partition with (a of S) begin", "    from S select a", "end;"]
    assert lines.all_text_contents() == ["%%siddhi", *indented, "from S"]
    page.keyboard.press("Control+/")
    assert lines.last.text_content() == "-- from S"
    lab.picture(page, "highlighting-typed")


def test_a_file(lab: Lab, page: Any) -> None:
    (lab.folder / "trades.siddhi").write_text("\n".join(TOKENS), encoding="utf-8")
    lab.do(page, "docmanager:open", path="trades.siddhi")
    highlighted(page, page.locator(".jp-FileEditor .cm-content"), "\n".join(TOKENS.values()))
    row = page.locator(".jp-DirListing-item", has_text="trades.siddhi")
    row.locator("svg[data-icon='sparkstream-nb:siddhi']").wait_for()  # the list is drawn late at times
    lab.picture(page, "highlighting-file")


def test_a_notebook_in_notebook_7(lab: Lab, page: Any) -> None:
    other = lab.new_page(height=900)
    other.goto(lab.server.notebook("trades.ipynb"))
    lab.idle(other)
    check_notebook(other)
    check_colours(other)
    lab.picture(other, "notebook-7")
    other.close()
    assert lab.elsewhere() == []
