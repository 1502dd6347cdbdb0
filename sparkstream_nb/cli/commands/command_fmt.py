"""`sparkstream fmt`."""

from __future__ import annotations

import sys
from typing import Any

from ...errors import SparkStreamError
from ...lang.format import format_text
from ...options import write_text
from ..app_texts import describe_error, text_of
from ..printing import print_exactly


def run(options: Any) -> int:
    """`sparkstream fmt`. A file that is wrong is left as it is, and the others are formatted."""
    any_failed = False
    for path in options.files:
        try:
            any_failed |= _format_file(path, check=options.check)
        except SparkStreamError as e:
            print(describe_error(e) if path in str(e) else f"sparkstream: {path}: {e}", file=sys.stderr)
            any_failed = True
    return 1 if any_failed else 0


def _format_file(path: str, *, check: bool) -> bool:
    """Format a file, or standard input; with `check`, returns whether that would change it."""
    with text_of(path) as text:
        formatted_text = format_text(text)
    if check:
        if formatted_text != text:
            print(f"{path}: would change")
        return formatted_text != text
    if path == "-":
        print_exactly(formatted_text)
    elif formatted_text != text:
        write_text(path, formatted_text)
        print(f"{path}: formatted")
    return False
