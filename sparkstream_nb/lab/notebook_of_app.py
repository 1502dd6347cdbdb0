"""A notebook made of an app: its cell with its options, its recorded input, and what it gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat

from ..app import App
from ..app.config.record_options import options_of
from ..app.running.app_script import record_of, write_file
from ..errors import Misuse
from ..plan.output_labels import output_streams


def export_notebook(app: App, path: Path) -> list[Path]:
    """Writes a notebook that deploys an app as it is deployed here, and, if it has input, a recording of that beside
    it, which the notebook feeds; returns the paths. Raises `Misuse` for arguments of `deploy` that only Python has, and
    for another suffix than `.ipynb`."""
    if path.suffix != ".ipynb":
        raise Misuse(f"a notebook ends in .ipynb: call it {path.with_suffix('.ipynb')}")
    recording = path.with_suffix(".parquet")
    has_input = app.recording.events > 0
    cells = list(_cells(app, recording.name if has_input else None))
    if has_input:
        app.flush()
        app.recording.save(recording)
    notebook = nbformat.v4.new_notebook(cells=cells)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    write_file(path, nbformat.writes(notebook) + "\n")
    return [path, recording] if has_input else [path]


def _cells(app: App, recording: str | None) -> Iterator[nbformat.NotebookNode]:
    record = record_of(app.runtime)
    title = f"# {app.name}\n\nAs it was deployed on {app.nodes} node{'' if app.nodes == 1 else 's'}."
    if record.withheld:
        names = ", ".join(f"`{name}`" for name in record.withheld)
        title += f" Values that may be secrets are not here: add `--param NAME=VALUE` for {names} to the cell."
    yield nbformat.v4.new_markdown_cell(title)
    yield nbformat.v4.new_code_cell("%load_ext sparkstream_nb\nimport sparkstream_nb as ss")
    options = [word if value is None else f"{word} {_word(value)}" for word, value in options_of(record)]
    line = " ".join(["%%siddhi", _word(app.name), *options, "--fresh"])
    yield nbformat.v4.new_code_cell(f"{line}\n\n{record.text.strip(chr(10))}")
    if recording is not None:
        yield nbformat.v4.new_code_cell(f"ss.get({app.name!r}).feed({recording!r})")
    for stream in output_streams(app.plan):
        yield nbformat.v4.new_code_cell(f"%siddhi output {_word(f'{app.name}.{stream}')}")
    if app.deployment.groups is None:
        for aggregation in app.plan.aggregations:
            yield nbformat.v4.new_code_cell(f"%siddhi view {_word(f'{app.name}.{aggregation}')}")
    if app.mode == "active-active":
        yield nbformat.v4.new_code_cell(f"%siddhi divergence {_word(app.name)}")


def _word(text: str) -> str:
    """A word of a line of a magic, in quotes where it needs them. Raises `Misuse` for one that has both kinds, or spans
    lines."""
    if text and not any(c.isspace() or c in "'\"()[]{}" for c in text):
        return text
    mark = "'" if "'" not in text else '"'
    if mark in text or "\n" in text:
        raise Misuse(f"a line of a cell cannot have {text!r}: export the app as a job")
    return f"{mark}{text}{mark}"
