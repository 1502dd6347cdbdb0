"""A report of apps as one HTML page that needs nothing else: to be sent to somebody."""

from __future__ import annotations

import base64
import html as markup
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path

from .. import argument_checks
from ..app import App, Divergence
from ..app.config.record_options import options_of
from ..app.pictures.buckets_picture import buckets_picture
from ..app.pictures.study_picture import study_picture
from ..app.pictures.timeline_picture import full_timeline, timeline_picture, worst
from ..app.results.rescheduling import DistributedFailover
from ..app.running.app_script import record_of, write_file
from ..charts.picture import Picture
from ..errors import Misuse, SparkStreamError
from ..masking import mask_passwords
from ..plan.output_labels import output_streams
from . import display as looks
from .drawings.text_tables import Grid, paragraph
from .plans_shown import page_of
from .widgets.aggregation import AggregationView
from .widgets.view_scripts import read_script

MOST_BYTES = 5_000_000
"""The size of a report at most."""
_WIDTH = 1000
_MOST_OUTPUTS = 5_000
"""Outputs of a divergence whose picture can be explored: the causes of more take too long to find."""
_STYLE = """<style>
:root { --jp-ui-font-color1: #222; --jp-layout-color0: #fff; --jp-border-color2: #ddd; }
section { margin: 1.5em 0 2.5em; } pre { overflow-x: auto; } nav a { margin-right: 1em; } h3 { font-size: 1em; }
@media screen and (prefers-color-scheme: dark) {
  :root { --jp-ui-font-color1: #ddd; --jp-layout-color0: #121212; --jp-border-color2: #444; } }
</style>"""


@dataclass(frozen=True)
class ReportSection:
    """A part of a report: its title, its HTML, and the pictures that the HTML has as images, in their order."""

    title: str
    html: str
    pictures: Sequence[Picture] = ()


def write_report(apps: Sequence[App], path: str | Path, tell: Callable[[str], None] = lambda sentence: None) -> Path:
    """Writes a report of apps: their texts and deployments, the picture of each, figures, results by shard and merged,
    outputs, divergence and study of their nodes or their failover, errors. `tell` gets a line before what takes long.

    The page is at most 5 MB and loads nothing; its pictures can be explored where Plotly is installed here. Values that
    may be secrets are not in it. Raises `Misuse` without an app, SparkStreamError if the file cannot be written.
    """
    argument_checks.check_path("path", path)
    if not apps:
        raise Misuse("a report is of one app at least")
    sections = [(app.name, section) for app in apps for section in _sections(app, tell)]
    write_file(Path(path), _page([app.name for app in apps], sections))
    return Path(path)


def _sections(app: App, tell: Callable[[str], None]) -> Iterator[ReportSection]:
    app.flush()
    yield ReportSection("App", _deployment_html(app))
    yield ReportSection("Topology", looks.html(app.graph()))
    yield ReportSection("Figures", looks.html(replace(app.stats(), live=None)))
    if app.deployment.groups is None:
        for name in app.plan.aggregations:
            yield _attempt(f"{name}, by shard and merged", partial(_aggregation, app, name))
    for stream in output_streams(app.plan):
        yield ReportSection(f"Outputs: {stream}", looks.html(app.output(stream)))
    if app.deployment.groups is not None:
        yield ReportSection("Nodes", looks.html(app.cluster))
        tell(f"{app.name}: the nodes' failures are replayed")
        yield _attempt("Failover", lambda: _failover(app))
    elif app.mode == "active-active":
        tell(f"{app.name}: the nodes are compared with one node")
        yield _attempt("Divergence", lambda: _divergence(app.divergence()))
        tell(f"{app.name}: other numbers of nodes and routings are tried")
        yield _attempt("Study", lambda: _study(app))
    yield ReportSection("Plan", f"<pre>{markup.escape(str(app.explain().summary()))}</pre>")
    yield ReportSection("Errors", looks.html(app.errors))


def _attempt(title: str, section: Callable[[], ReportSection]) -> ReportSection:
    """A section, or the reason for which it cannot be."""
    try:
        return section()
    except SparkStreamError as error:
        return ReportSection(title, paragraph(f"Not possible: {markup.escape(str(error))}"))


def _deployment_html(app: App) -> str:
    record = record_of(app.runtime)
    try:
        options = options_of(record)
    except Misuse as reason:
        options = [(str(reason), None)]
    rows = [[option, "" if value is None else mask_passwords(value)] for option, value in options]
    rows += [["--param", f"{name}=***"] for name in record.withheld]
    table = Grid(["option", "value"], rows, what="option").html(footer=False) if rows else paragraph("no options")
    text = markup.escape(mask_passwords(record.text.strip("\n")))
    return f"{looks.html(app)}<h3>deployed with</h3>{table}<h3>text</h3><pre>{text}</pre>"


def _aggregation(app: App, name: str) -> ReportSection:
    view = AggregationView(app.queries.reader_of(name))
    series = view.series()
    pictures = [buckets_picture(series)] if len(series.buckets) else []
    return ReportSection(f"{name}, by shard and merged", view.html(), pictures)


def _divergence(divergence: Divergence) -> ReportSection:
    outputs = sum(map(len, divergence.matches.values()))
    pictures = []
    if divergence.matches and outputs <= _MOST_OUTPUTS:
        pictures = [timeline_picture(full_timeline(divergence, worst(divergence), _WIDTH))]
    return ReportSection("Divergence", looks.html(divergence), pictures)


def _study(app: App) -> ReportSection:
    study = app.study()
    return ReportSection("Study: nodes and routings", looks.html(study), [study_picture(study)])


def _failover(app: App) -> ReportSection:
    failover = app.failover()
    title = "Rescheduling" if isinstance(failover, DistributedFailover) else "Failover"
    return ReportSection(title, looks.html(failover), [failover.picture()])


# ------------------------------------------------------------------------------------------------------------ the page


def _page(names: Sequence[str], sections: Sequence[tuple[str, ReportSection]]) -> str:
    """The page; figures are left out, the largest first, until it is small enough."""
    figures = [_figures(section) for _, section in sections]
    while True:
        page = _assemble(names, sections, figures)
        size = len(page.encode())
        largest = max(range(len(figures)), key=lambda i: len(figures[i]), default=None)
        if size <= MOST_BYTES or largest is None or not figures[largest]:
            break
        figures[largest] = ""
    if size > MOST_BYTES:
        raise SparkStreamError(f"the report has {size:,} bytes, and at most {MOST_BYTES:,} can be: report fewer apps")
    return page


def _figures(section: ReportSection) -> str:
    """The figures of a section as JSON; empty without any, and without Plotly."""
    try:
        plots = import_module(".widgets.plots", __package__)
    except ModuleNotFoundError:
        return ""
    texts = [plots.figure_json(picture, _WIDTH) for picture in section.pictures]
    return json.dumps(texts) if texts else ""


def _assemble(names: Sequence[str], sections: Sequence[tuple[str, ReportSection]], figures: Sequence[str]) -> str:
    parts: list[str] = []
    links: list[str] = []
    app = ""
    for number, ((name, section), figure) in enumerate(zip(sections, figures, strict=True)):
        if name != app:
            parts.append(f"<h2>{markup.escape(name)}</h2>")
            links.append(f"<br><b>{markup.escape(name)}</b> ")
            app = name
        links.append(f'<a href="#s{number}">{markup.escape(section.title)}</a>')
        data = f' data-figures="f{number}"' if figure else ""
        parts.append(f'<section id="s{number}"{data}><h3>{markup.escape(section.title)}</h3>{section.html}')
        if figure:
            parts.append(f'<script type="application/json" id="f{number}">{_in_script(figure)}</script>')
        parts.append("</section>")
    if any(figures):
        plotly = base64.b64encode(import_module(".widgets.plots", __package__).read_plotly()).decode()
        script = read_script("report.js", "plot.js")
        parts.append(f'<script type="application/octet-stream" id="plotly">{plotly}</script>')
        parts.append(f'<script type="module">{script}\nexplore();\n</script>')
    return page_of(", ".join(names), "".join([_STYLE, f"<nav>{''.join(links)}</nav>", *parts]))


def _in_script(text: str) -> str:
    """JSON that cannot end its element."""
    return text.replace("<", "\\u003c")
