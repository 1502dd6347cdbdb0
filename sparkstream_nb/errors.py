"""The errors that a user can cause, each one short message with place, cause and way out.

Every intended error derives from `SparkStreamError`; any other exception is a bug in this package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .edit_distance import edit_distance
from .masking import mask_passwords


@dataclass(frozen=True, order=True)
class Span:
    """A range of an app's text: character offsets `start` ≤ i < `end`; `line` from 1, `column` from 0."""

    start: int
    end: int
    line: int
    column: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.start, max(self.end, other.end), self.line, self.column)


NOWHERE = Span(0, 0, 1, 0)


_LONG_WORD = re.compile(r"\S{400,}")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, those that turn the direction of what follows, and halves of surrogate pairs."""


def escape_controls(text: str) -> str:
    """`text` as it may be printed or be part of a page or a picture: characters that change a terminal, turn the
    direction of what follows, or are none, are spelt out (`\\u001b`). A JSON document means the same after it.
    """
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def log_line(text: str) -> str:
    """A text as one line of a log, without passwords and control characters."""
    return mask_passwords(printable(" ".join(text.split())))


def printable(text: str) -> str:
    """`text` for a message: characters that may not be printed or would change a terminal are spelt out; words of 400
    characters or more are cut."""
    text = _UNPRINTABLE.sub(lambda m: repr(m[0])[1:-1], text)
    return _LONG_WORD.sub(lambda m: m[0][:100] + "…", text)


def has_surrogate(text: str) -> bool:
    """True if a text has half of a surrogate pair: no encoding has it."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def without_surrogates(text: str) -> str:
    """`text` with halves of surrogate pairs spelt out (`\\ud800`), as it can be encoded."""
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text) if has_surrogate(text) else text


_SURROGATE = re.compile("[\ud800-\udfff]")


class SparkStreamError(Exception):
    """Base of every error that a user can fix. `str()` is a complete message to show. Secrets are masked as the error
    is made: nothing that it keeps shows them."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(mask_passwords(message)))

    def _render_traceback_(self) -> list[str]:
        """The text that a notebook shows instead of a traceback (an IPython hook): the message alone."""
        return f"{type(self).__name__}: {self}".splitlines()


class Misuse(SparkStreamError):
    """A function or a magic was called with an unknown value; the message names the known ones."""


@contextmanager
def lines_below(lines_before: int) -> Iterator[None]:
    """Numbers the lines of errors in a text that begins below other lines."""
    try:
        yield
    except SiddhiError as error:
        raise error.below(lines_before) from None


class SiddhiError(SparkStreamError):
    """An app, or a part of one, is wrong. Shows line and column, the text with a caret, and the way out.

    `source` is the app's whole text, if known. `with_source` attaches it later, so that the code that raises does not
    need the text. `lines_before` counts the lines above the text where the person sees it: a notebook numbers the line
    `%%siddhi` too. The displayed line numbers include them; the lines of `span` do not. `file` is where the text is
    from, if that is a file: then the message begins `FILE:LINE:COLUMN:`, as editors read it.
    """

    file: str | None = None

    def __init__(
        self, message: str, span: Span = NOWHERE, *, hint: str | None = None, source: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = mask_passwords(message)
        self.span = span
        self.hint = None if hint is None else mask_passwords(hint)
        self.source = None if source is None else mask_passwords(source)
        self.lines_before = 0

    def with_source(self, source: str) -> SiddhiError:
        """Attaches the app's text, for the caret."""
        if self.source is None:
            self.source = mask_passwords(source)
        return self

    def below(self, lines: int) -> SiddhiError:
        """The error, for a text that begins below this many lines."""
        self.lines_before = lines
        return self

    def __str__(self) -> str:
        line, column = self.span.line + self.lines_before, self.span.column + 1
        place = f"line {line}, column {column}" if self.file is None else f"{self.file}:{line}:{column}"
        out = [f"{place}: {self.message}"]
        if self.source is not None:
            out.append(excerpt(self.source, self.span, self.lines_before))
        if self.hint:
            out.append(self.hint)
        return printable("\n".join(out))


class SiddhiSyntaxError(SiddhiError):
    """The text is not SiddhiQL. Siddhi's `SiddhiParserException`."""


TOO_DEEP = "an expression of this statement is nested too deeply, or has too many operators in a row"
SHALLOWER = "Compute parts of it in the select of a query before this one."


class SiddhiBindError(SiddhiError):
    """The text parses, but a name, a type or a rule of the language is wrong.

    `kind` names Siddhi's exception class for the same mistake, such as `SiddhiAppCreationException`.
    """

    def __init__(
        self, message: str, span: Span = NOWHERE, *, hint: str | None = None, kind: str = "SiddhiAppCreationException"
    ) -> None:
        super().__init__(message, span, hint=hint)
        self.kind = kind


class NotInThisBuild(SiddhiError):
    """Valid SiddhiQL that this engine cannot run yet: `gap` is its name in `plan.gaps`."""

    def __init__(self, gap: str, message: str, span: Span = NOWHERE, *, hint: str | None = None) -> None:
        super().__init__(message, span, hint=" ".join(filter(None, (hint, f"Declared gap '{gap}'."))))
        self.gap = gap


class SiddhiRuntimeError(SparkStreamError):
    """A retrieval or an event failed while running; the app continues."""


class DamagedFile(SparkStreamError):
    """A file of an app does not have the contents that were written (`checksums`)."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"the file {path} is damaged: {what}")


class StoreError(SparkStreamError):
    """A store cannot be used because of its tables, shards or database. The message names the ways out."""


class SparkUnavailable(SparkStreamError):
    """There is no usable Java, Spark did not start, or it did not start on the requested master."""


_SHOWN = 110
"""Characters of a line that an error shows at most."""


def excerpt(source: str, span: Span, lines_before: int = 0) -> str:
    """The line of `source` that `span` starts on, with carets under the span. A long line is cut around the span.

    The line's number counts the `lines_before` the source.
    """
    lines = source.splitlines() or [""]
    row = min(max(span.line, 1), len(lines))
    text, column = mask_passwords(lines[row - 1]), span.column
    width = max(1, min(span.end - span.start, len(text) - column))
    if len(text) > _SHOWN:
        first = max(0, min(column - 20, len(text) - _SHOWN))
        text, column = text[first:], column - first
        if first:
            text, column = "… " + text, column + 2
        if len(text) > _SHOWN:
            text = text[: _SHOWN - 2] + " …"
        width = max(1, min(width, len(text) - column))
    lead = "".join("\t" if c == "\t" else " " for c in text[:column])
    return f"{row + lines_before:>4} | {text}\n     | {lead}{'^' * width}"


_VALUE_SHOWN = 60


def shown(value: Any) -> str:
    """A value as messages show it: shortened to a few words."""
    try:
        text = repr(value) if isinstance(value, str | bytes) else "null" if value is None else str(value)
    except Exception:  # it is somebody's class
        text = f"an object of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= _VALUE_SHOWN else text[: _VALUE_SHOWN - 1] + "…"


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """ "Did you mean 'x'?" for the nearest of `candidates`, or None when nothing is near."""
    near = near_to(name, candidates)
    return f"Did you mean '{near[0]}'?" if near else None


def near_to(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates close to `name`, the closest first: equal except for case and separators, within a small edit
    distance, an expansion of the prefix or abbreviation `name`, or the part of `name` before a dot. A wrong suggestion
    is worse than none.
    """
    bare_name, near_names = _bare(name), []
    for candidate in sorted(set(candidates)):
        bare = _bare(candidate)
        longer = min(max(len(bare_name), len(bare)), len(_MAX_DISTANCE) - 1)
        far: float | None = edit_distance(bare_name, bare, _MAX_DISTANCE[longer])
        if far != 0 and len(bare_name) >= 3 and bare.startswith(bare_name):
            far = 0.5  # --node is --nodes, and not --mode
        elif far is None and (_abbreviates(bare_name, bare) or name.casefold().startswith(f"{candidate.casefold()}.")):
            far = 1.5
        if far is not None:
            near_names.append((far, len(bare), candidate))
    return [candidate for *_, candidate in sorted(near_names)]


_MAX_DISTANCE = (0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3)
"""The maximum edit distance, by the length of the longer word."""


def _bare(name: str) -> str:
    return re.sub(r"[\s_.:-]+", "", name).casefold() or name.casefold()


def _abbreviates(short: str, long: str) -> bool:
    """True if `short` is a prefix of `long`, or has its first and last letter and the others in order."""
    rest = iter(long)
    if not 3 <= len(short) <= len(long):
        return False
    return long.startswith(short) or (
        (short[0], short[-1]) == (long[0], long[-1]) and 2 * len(short) > len(long) and all(c in rest for c in short)
    )


def nearest(message: str, name: str, candidates: Iterable[str]) -> str:
    """`message`, then "Did you mean ...?" or, where nothing is near, the names that are known."""
    names = sorted(set(candidates))
    near = did_you_mean(name, names)
    if near:
        return f"{message}. {near}"
    return f"{message}. Known: {', '.join(names)}" if names else f"{message}. There are none"
