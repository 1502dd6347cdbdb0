"""The built site: nothing comes from another one, every link leads somewhere, and the search finds what is asked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .search import SiteSearch

ROOT = Path(__file__).parents[2]
QUESTIONS = tomllib.loads((ROOT / "tests" / "cases" / "questions.toml").read_text(encoding="utf-8"))["question"]
FIRST = 5
"""Hits of a search that a reader looks at."""

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "docs.generator", "--into", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_is_ready_for_a_host_of_files(site: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No address is written into it. With one, the pages are listed, and the page of errors works below its path."""
    assert (site / ".nojekyll").is_file()
    assert (site / "404.html").is_file()
    assert not list(site.glob("sitemap*"))
    hosted, address = tmp_path_factory.mktemp("hosted") / "site", "https://example.org/stream/"
    command = [sys.executable, "-m", "docs.generator", "--into", str(hosted), "--url", address]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    listed = re.findall(r"<loc>(.+?)</loc>", (hosted / "sitemap.xml").read_text(encoding="utf-8"))
    assert len(listed) > 100
    assert all((hosted / link.removeprefix(address) if link != address else hosted).exists() for link in listed)
    lost = _Page((hosted / "404.html").read_text(encoding="utf-8"))
    assert lost.loads
    assert all(link.startswith("/stream/") for link in lost.loads)
    page = _Page((hosted / "guides" / "install.html").read_text(encoding="utf-8"))
    assert all(link.startswith(".") for link in page.loads)


def test_language_models_find_every_page(site: Path) -> None:
    """`llms.txt` by llmstxt.org: a title, a summary, and the pages of the navigation with a sentence each."""
    lines = (site / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# SparkStream")
    assert lines[2].startswith("> ")
    links = re.findall(r"(?m)^- \[[^\]]+\]\(([^)]+)\)(.*)$", "\n".join(lines))
    assert {"guides/agents.html", "reference/windows.html", "cookbook/sessions.html"} <= {link for link, _ in links}
    assert all((site / link).is_file() for link, _ in links)
    assert sum(text.startswith(": ") for _, text in links) > 0.9 * len(links)
    assert "## Guides" in lines


LOADS = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
    "object": "data", "link": "href", "form": "action",
}  # fmt: skip
"""The attribute of each element that names what a browser loads."""


class _Page(HTMLParser):
    """The anchors of a page, what its links lead to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        self.ids |= {given[k] for k in ("id", "name") if k in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        loaded = given.get(LOADS.get(tag, ""), "")
        if loaded and not (tag == "link" and given.get("rel") in ("canonical", "next", "prev")):
            self.loads.append(loaded)
        self.loads += [part.split()[0] for part in given.get("srcset", "").split(",") if part.split()]
        self.loads += re.findall(r"url\(['\"]?([^'\")]+)", given.get("style", ""))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, _Page]:
    """The pages by their place."""
    return {
        p.relative_to(site).as_posix(): _Page(p.read_text(encoding="utf-8"))
        for p in sorted(site.rglob("*.html"))
    }  # fmt: skip


def test_nothing_comes_from_another_site(site: Path, pages: dict[str, _Page]) -> None:
    elsewhere = re.compile(r"(?:https?:)?//")
    assert len(pages) > 100
    found = [(place, x) for place, page in pages.items() for x in page.loads if elsewhere.match(x)]
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        loaded = re.findall(r"@import\s+['\"]([^'\"]+)|url\(['\"]?([^'\")]+)", text)
        found += [(sheet.name, x) for pair in loaded for x in pair if elsewhere.match(x)]
    assert found == []
    assert not list(site.rglob("*social*.png"))
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "fonts.googleapis" not in text
        assert 'class="mermaid"' not in text  # the theme would load its script from a CDN


def test_every_link_leads_somewhere(site: Path, pages: dict[str, _Page]) -> None:
    def leads(place: str, link: str) -> bool:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return True
        beside = os.path.join(os.path.dirname(place), unquote(parts.path))
        target = os.path.normpath(beside) if parts.path else place
        target = f"{target}/index.html" if (site / target).is_dir() else target
        if not (site / target).is_file():
            return False
        anchor = unquote(parts.fragment)
        return not anchor or target not in pages or anchor in pages[target].ids | {"__skip"}

    broken = [
        f"{place}: {link}"
        for place, page in pages.items()
        if place != "404.html"  # its links begin with the site's address
        for link in [*page.links, *page.loads]
        if not leads(place, link)
    ]
    assert broken == []


@pytest.fixture(scope="module")
def search(site: Path) -> SiteSearch:
    """The site's search."""
    return SiteSearch(site)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q["words"])
@pytest.mark.parametrize("how", ["asks", "words"])
def test_the_search_finds_the_page_that_answers(search: SiteSearch, question: dict[str, str], how: str) -> None:
    hits = [hit.page for hit in search.find(question[how])][:FIRST]
    assert [h for h in hits if h.startswith(question["page"])], hits


def test_the_search_finds_every_window_function_and_command_by_name(search: SiteSearch) -> None:
    for name, page in (
        ("externalTimeBatch", "reference/windows.html"),
        ("lossyFrequent", "reference/windows.html"),
        ("distinctCount", "reference/aggregators.html"),
        ("math:percentile", "reference/aggregators.html"),
        ("str:groupConcat", "reference/aggregators.html"),
        ("regex:lookingAt", "reference/functions/regex.html"),
        ("time:timezoneConvert", "reference/functions/time.html"),
        ("reorder:kslack", "reference/stream-functions.html"),
        ("magics", "reference/magics.html"),
        ("command line", "reference/command-line.html"),
        ("NotInThisBuild", "reference/errors.html"),
        ("socket.idle.timeout", "reference/sources.html"),
    ):
        hits = [hit.page for hit in search.find(name)][:FIRST]
        assert page in hits, (name, hits)


def test_a_search_for_what_is_nowhere_finds_nothing(search: SiteSearch) -> None:
    assert search.find("zzyzxqwv") == []


def test_light_and_dark(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert 'data-md-color-scheme="default"' in text
    assert 'data-md-color-scheme="slate"' in text
