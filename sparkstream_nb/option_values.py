"""Values of options: functions that `argparse` calls with an option's text, and that raise for a wrong one.

Loads little but the standard library, so that `sparkstream check` starts at once.
"""

from __future__ import annotations

import argparse
import re
from decimal import Decimal
from keyword import iskeyword

from .durations import parse_duration
from .errors import Misuse, nearest, shown
from .limits import Limits
from .retention import Retention


def name_and_value(text: str) -> tuple[str, str]:
    """`NAME=VALUE` as a pair, for `--param`."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def _pair(text: str, form: str) -> tuple[str, str]:
    before, _, after = text.partition("=")
    if not before or not after:
        raise argparse.ArgumentTypeError(f"'{text}' is not {form}")
    return before, after


def attribute_and_value(text: str) -> tuple[str, str]:
    """`ATTRIBUTE=VALUE` as a pair, for `whynot`; the value may be empty."""
    attribute, equals, value = text.partition("=")
    if not attribute or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not ATTRIBUTE=VALUE")
    return attribute, value


def stream_and_file(text: str) -> tuple[str, str]:
    """`STREAM=FILE` as a pair, for `--feed`; a recording `FILE.parquet` has no stream."""
    return ("", text) if "=" not in text and text.endswith(".parquet") else _pair(text, "STREAM=FILE")


def new_name(text: str) -> tuple[str, str]:
    """`OLD=NEW` as a pair, for `--rename`."""
    return _pair(text, "OLD=NEW")


def values_to_try(text: str) -> tuple[str, list[str]]:
    """`NAME=A,B` or `NAME=FROM..TO:STEP`, both ends included, for `--vary`: the name and its values."""
    name, _, value_text = text.partition("=")
    if not name or not value_text:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUES, such as LIMIT=100..500:50 or SPAN=1 min,5 min")
    ends = re.fullmatch(r"(-?[\d.]+)\.\.(-?[\d.]+):([\d.]+)", value_text)
    if ends is None:
        return name, [value.strip() for value in value_text.split(",")]
    try:
        first, last, step = map(Decimal, ends.groups())
        count = int((last - first) / step) + 1
    except ArithmeticError:
        count = 0
    if not 0 < count <= MOST_VALUES:
        raise argparse.ArgumentTypeError(f"'{value_text}' is no range of up to {MOST_VALUES:,} numbers: 100..500:50")
    return name, [str(first + i * step) for i in range(count)]


MOST_VALUES = 10_000
OUTCOME_NAMES = ("gone", "new", "other-values", "other-time", "different")


def outcome_bound(text: str) -> tuple[str, tuple[float, bool]]:
    """`OUTCOME=N` or `OUTCOME=N%`, for `--at-most`: the outcome, the number, and whether it is of percent."""
    outcome, _, number = text.partition("=")
    if outcome not in OUTCOME_NAMES:
        raise argparse.ArgumentTypeError(nearest(f"no outcome is called '{outcome}'", outcome, OUTCOME_NAMES))
    try:
        bound = float(number.removesuffix("%"))
    except ValueError:
        bound = -1.0
    if not 0 <= bound < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not OUTCOME=N, a number or percent, such as gone=0 or new=5%")
    return outcome, (bound, number.endswith("%"))


def stream_and_count(text: str) -> tuple[str, int]:
    """`STREAM=N` as a pair, for `--random`."""
    stream, equals, count = text.partition("=")
    if not equals or not stream or not count.isdecimal() or int(count) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not STREAM=N, a stream and a number of events")
    return stream, int(count)


def stream_and_source(text: str) -> tuple[str, str]:
    """`STREAM=SOURCE` as a pair, for `--from`."""
    return _pair(text, "STREAM=SOURCE")


def attribute_and_column(text: str) -> tuple[str, str]:
    """`ATTRIBUTE=COLUMN` as a pair, for `--map`; without a column the attribute is null."""
    attribute, equals, column = text.partition("=")
    if not equals or not attribute:
        raise argparse.ArgumentTypeError(f"'{text}' is not ATTRIBUTE=COLUMN")
    return attribute, column


def decimal_separator(text: str) -> str:
    """A comma or a point, for `--decimal`."""
    if text not in (",", "."):
        raise argparse.ArgumentTypeError(f"'{text}' is neither a comma nor a point")
    return text


def ahead(text: str) -> int | None:
    """A number of ms, or `off`."""
    return None if text == "off" else positive(text)


def retention(text: str) -> Retention:
    """Limits such as `recording=500MB,outputs=5GB,days=7`."""
    return Retention.of(text)


def limits(text: str) -> Limits:
    """Limits such as `characters=1MB,nesting=100`."""
    return Limits.of(text)


def positive(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or len(text) > 18 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def number(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def duration_ms(text: str, what: str) -> int:
    """A duration such as `500`, `3 sec`, `3s` or `1.5 min`, in ms. Raises `Misuse`, which names `what`, for another."""
    ms = round(float(text)) if re.fullmatch(r"\s*\d{1,18}(\.\d{1,18})?\s*", text) else parse_duration(text)
    if ms is None:
        raise Misuse(f"{what} is a duration such as 500 ms, 3 sec or 1.5 min, not {shown(text)}")
    return ms


def share(text: str, what: str) -> float:
    """A share such as `5%` or `0.05`. Raises `Misuse`, which names `what`, for another."""
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest or not 0 <= value <= 1:
        raise Misuse(f"{what} is a share such as 5% or 0.05, not {shown(text)}")
    return value


def attribute_and_share(text: str) -> tuple[str, float]:
    """`ATTRIBUTE=SHARE` as a pair, for `--sample`."""
    attribute, equals, value = text.partition("=")
    if not equals or not attribute:
        raise argparse.ArgumentTypeError(f"'{text}' is not ATTRIBUTE=SHARE, such as card=1%")
    try:
        return attribute, share(value, attribute)
    except Misuse as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def whole(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number")
    return int(text)


def port(text: str) -> int:
    """A port's number, or 0 for a free one."""
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port: a number from 0 to 65535")
    return int(text)


def counts(text: str) -> list[int]:
    """Numbers of nodes: `4`, `1-8` or `2,4,8`."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low = positive(first)
        high = positive(last) if dash else low
        if high < low:
            raise argparse.ArgumentTypeError(f"'{part}' ends before it begins")
        numbers += range(low, high + 1)
    return numbers


def error_ids(text: str) -> list[int]:
    """Numbers of errors, as `counts`; `all` as an empty list."""
    try:
        return [] if text == "all" else counts(text.removesuffix(","))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no error's number: write NAME --replay 3 4 7-9, or all"
        ) from None


def names(text: str) -> list[str]:
    """`A,B,...` as a list."""
    return [part.strip() for part in text.split(",")]


def variable(text: str) -> str:
    """A valid Python variable name, for `-o`."""
    if not text.isidentifier() or iskeyword(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a variable's name")
    return text
