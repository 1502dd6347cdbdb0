"""Texts of apps for the commands: read, and the errors in them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ..errors import SiddhiError, SparkStreamError
from ..options import CannotRead
from ..siddhi_process import read_app


def describe_error(error: SparkStreamError) -> str:
    """The printed text of an error. A SiddhiQL error of a file begins with FILE:LINE:COLUMN."""
    return str(error) if isinstance(error, SiddhiError) and error.file is not None else f"sparkstream: {error}"


_OF_EVENTS = {".csv": "CSV", ".parquet": "parquet"}
"""Files of events, which are no texts of apps."""


@contextlib.contextmanager
def text_of(path: str) -> Iterator[str]:
    """Read an app's text, and add the file name to SiddhiQL errors raised in the block. `-` is standard input. Raises
    `CannotRead`, for a file of events too."""
    if Path(path).suffix.lower() in _OF_EVENTS:
        what = f"{path} is a {_OF_EVENTS[Path(path).suffix.lower()]} file, and no app's text: feed a stream with it"
        raise CannotRead(f"{what}, sparkstream run APP.siddhi --feed STREAM={path}")
    text = read_app(path)
    try:
        yield text
    except SiddhiError as error:
        error.file = None if path == "-" else path
        raise
