"""`%siddhi save` and `%siddhi export`: an app as a file, a job, a test or a notebook."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import app as api
from ..errors import Misuse
from ..testing.app_as_test import MOST_STEPS, export_test
from .notebook_of_app import export_notebook
from .progress_bar import StatusLine
from .report_page import write_report

SUFFIXES = {"job": ".sh", "test": ".siddhitest", "notebook": ".ipynb"}
"""The suffix of the file by what an app is exported as."""


def save_line(o: Namespace) -> str:
    """Writes the text of an app; the line that says so."""
    return f"{api.get(o.app).save(o.file)}: the text of {o.app}"


def export_line(o: Namespace) -> Any:
    """Exports an app; prints the files that it wrote, and gives the report of a test. Raises `Misuse` for a file that
    exists and was not named."""
    app = api.get(o.app)
    path = Path(f"{app.name}{SUFFIXES[o.kind]}" if o.file is None else o.file)
    if o.file is None and path.exists():
        raise Misuse(f"{path} exists: give the file another name, %siddhi export {o.app} FILE --as {o.kind}")
    if o.limit is not None and o.kind != "test":
        raise Misuse("--limit is for --as test")
    if o.kind == "test":
        exported_test = export_test(app, path, limit=o.limit or MOST_STEPS)
        print(f"{path}: sparkstream test {path}")
        return exported_test.report
    paths = app.export_job(path) if o.kind == "job" else export_notebook(app, path)
    print(_describe(paths, o.kind))
    return None


def report_line(o: Namespace) -> str:
    """Writes a report of apps; the line that says so. Raises `Misuse` without a file."""
    *names, file = o.words
    if not names or file in api.apps():
        raise Misuse(f"%siddhi report {' '.join(o.words)} FILE: the file is missing")
    with contextlib.closing(StatusLine()) as status:
        path = write_report([api.get(name) for name in names], file, status)
    return f"{path}: {path.stat().st_size:,} bytes"


def _describe(paths: Sequence[Path], kind: str) -> str:
    first, *others = map(str, paths)
    beside = f", with {', '.join(others)}" if others else ""
    return f"{first}{beside}: " + (f"sh {first} runs it" if kind == "job" else "open it in JupyterLab")
