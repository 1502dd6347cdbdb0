"""The pages that the site is built from: Markdown of the repository, with its links mended, and what is generated."""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from pymdownx.slugs import slugify

from . import api, commands, connectors, generated, language, lists, notebooks, pattern_pages
from .markdown import for_site, relative, relink

ROOT = Path(__file__).parents[2]
MOVED = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "development/architecture.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "CHANGELOG.md": "development/changes.md",
    "SECURITY.md": "development/reports.md",
    "THIRD_PARTY_LICENSES.md": "development/third-party.md",
    "docs/reference/README.md": "reference/index.md",
    "docs/cookbook/README.md": "cookbook/index.md",
    "docs/explanations/README.md": "explanations/index.md",
    "docs/wso2/README.md": "wso2/index.md",
    "docs/notes/README.md": "development/notes/index.md",
    "docs/notes/mutation.md": "development/notes/mutation.md",
    "docs/notes/performance-experiments.md": "development/notes/performance-experiments.md",
    "docs/stability.md": "development/stability.md",
    "notebooks": "learn/index.md",
}
"""Where pages of the repository are on the site; other documents keep their place below `docs`."""
GENERATED: Mapping[str, Callable[[], str]] = {
    "learn/index.md": notebooks.overview,
    "reference/windows.md": language.windows,
    "reference/patterns.md": pattern_pages.patterns,
    "reference/aggregators.md": language.aggregators,
    "reference/stream-functions.md": language.stream_functions,
    **{f"reference/functions/{name}.md": page for name, page in language.functions().items()},
    "reference/sources.md": connectors.sources,
    "reference/sinks.md": connectors.sinks,
    "reference/message-formats.md": connectors.mappings_page,
    "reference/not-included.md": lists.not_included,
    "reference/magics.md": commands.magics,
    "reference/command-line.md": commands.command_line,
    "reference/python.md": api.python,
    "reference/generated-events.md": generated.generated_events,
    "reference/errors.md": lists.errors,
}
"""The text of each page that is generated, by its place."""
SECTIONS = {
    "windows": "reference/windows.md",
    "patterns-and-sequences": "reference/patterns.md",
    "functions": "reference/functions/built-in.md",
    "aggregators": "reference/aggregators.md",
    "stream-functions": "reference/stream-functions.md",
    "sources": "reference/sources.md",
    "sinks": "reference/sinks.md",
    "message-formats": "reference/message-formats.md",
    "not-included": "reference/not-included.md",
    "magics": "reference/magics.md",
    "command-line": "reference/command-line.md",
    "python": "reference/python.md",
    "generated-events": "reference/generated-events.md",
    "errors": "reference/errors.md",
}
"""The generated page behind each heading of `docs/reference/README.md`: links to a heading lead to the page."""
INSERTED: Mapping[str, Callable[[], str]] = {"metrics": lists.metrics}
"""What stands for `<!-- generated: NAME -->` in a page."""


BOOSTS = {
    "development/": 0.3,
    "reference/not-included.md": 0.4,
    "reference/public-apps.md": 0.1,
    "reference/index.md": 0.5,
    "wso2/index.md": 0.5,
    "wso2/annotations.md": 0.7,
    "cookbook/index.md": 0.5,
    "reference/windows.md": 1.5,
}
"""The weight in searches of pages, by how their place begins; of others 1. Pages that name much without saying more
about it come after those that do."""


def sources() -> dict[str, str]:
    """The place on the site of each Markdown page and notebook of the repository, by its path."""
    found = {name: MOVED[name] for name in MOVED if "/" not in name and name.endswith(".md")}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        path = page.relative_to(ROOT).as_posix()
        found[path] = MOVED.get(path, path.removeprefix("docs/"))
    for book in notebooks.books():
        found[f"notebooks/{book.name}"] = f"learn/{book.stem}.md"
    return found


def write_pages(folder: Path) -> None:
    """Writes all pages and pictures into `folder`, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    places = sources()
    for path, place in places.items():
        source = ROOT / path
        if source.suffix == ".ipynb":
            text = notebooks.page(source)
        else:
            text = for_site(_inserted(source.read_text(encoding="utf-8")))
        text = _with_boost(place, text)
        _write(folder / place, relink(text, lambda target, p=path: _link(p, target, places)))  # type: ignore[misc]
    for place, page in GENERATED.items():
        _write(folder / place, _with_boost(place, page()))
    for file in [*(ROOT / "docs" / "images").iterdir(), *(ROOT / "docs").glob("*.csv")]:
        target = folder / file.relative_to(ROOT / "docs")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    assets = folder / "assets"
    assets.mkdir()
    for file in (ROOT / "docs" / "generator" / "assets").iterdir():
        shutil.copyfile(file, assets / file.name)


def _with_boost(place: str, text: str) -> str:
    """A page whose weight in searches is told, where it is in `BOOSTS`."""
    found = next((boost for start, boost in BOOSTS.items() if place.startswith(start)), None)
    return text if found is None else f"---\nsearch:\n  boost: {found}\n---\n\n{text}"


def _inserted(text: str) -> str:
    return re.sub(r"<!-- generated: ([\w-]+) -->", lambda m: INSERTED[m[1]](), text)


def _link(path: str, target: str, places: Mapping[str, str]) -> str | None:
    """A link of the page `path` of the repository as its page on the site has it; None where it leads to a file that
    the site does not have, such as a program. Anchors of notebooks are JupyterLab's, which keep case and signs."""
    file, _, anchor = target.partition("#")
    here = places[path]
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
    place = places.get(found) or MOVED.get(found)
    if found.endswith(".ipynb"):
        anchor = slugify(case="lower")(anchor, "-")
    if place == "reference/index.md" and anchor in SECTIONS:
        return relative(here, SECTIONS[anchor])
    if place is not None:
        return relative(here, place + (f"#{anchor}" if anchor else ""))
    if found.startswith("docs/") and (ROOT / found).is_file() and not found.endswith(".py"):
        return relative(here, found.removeprefix("docs/"))
    return None


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
