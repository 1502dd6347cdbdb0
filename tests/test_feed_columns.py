"""Columns of a feed: times for attributes, columns that are named otherwise, columns that are missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb import cli
from sparkstream_nb.app.results.reasons import group_reasons
from sparkstream_nb.app.running.source_reading import Reading, readings_of
from sparkstream_nb.app.running.source_shapes import shape_of
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.ingest.column_matching import match_columns
from sparkstream_nb.ingest.row_typing import type_rows
from sparkstream_nb.ingest.time_formats import guess_format
from sparkstream_nb.sources.feed_check import check_source
from sparkstream_nb.types import Schema, Type
from sparkstream_nb.wording import speak_of_options

OPERATOR = Path(__file__).parent / "cases" / "operator"
LOCAL = {"time_format": "%d.%m.%Y %H:%M:%S", "time_zone": "Europe/Berlin"}
MS = 1795842001000
"""28.11.2026 06:00:01 in Berlin."""


def read(frame: pd.DataFrame, schema: Schema, **reading: Any) -> list[list[Any]]:
    """The values of the rows of a frame, column by column; all must fit."""
    shape = check_source(frame, shape_of(Reading(**reading), "S", schema))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    typed = type_rows(table, schema, shape.row_reading)
    assert not typed.rejected
    return [column.to_pylist() for column in typed.columns]


@pytest.mark.parametrize(
    ("values", "reading", "ms"),
    [
        (["28.11.2026 06:00:01"], LOCAL, MS),
        (["2026-11-28 05:00:01"], {}, MS),
        (["2026-11-28T06:00:01+01:00"], {}, MS),
        ([str(MS)], {}, MS),
        ([MS], {}, MS),
        ([MS // 1000], {"time_format": "s"}, MS),
        ([pd.Timestamp("2026-11-28 06:00:01")], {"time_zone": "Europe/Berlin"}, MS),
    ],
)
@pytest.mark.parametrize("name", ["ts", "Booked At"])
def test_a_column_of_event_times_fills_a_long_with_ms_and_a_string_with_its_text(
    values: list[Any], reading: Mapping[str, Any], ms: int, name: str
) -> None:
    schema = Schema.of(("ts", Type.LONG), ("text", Type.STRING))
    longs, texts = read(pd.DataFrame({name: values}), schema, time=name, columns={"ts": name, "text": name}, **reading)
    assert longs == [ms]
    if isinstance(values[0], str):
        assert texts == values


@pytest.mark.parametrize(
    ("columns", "guesses"),
    [
        (["Card Id", "AMOUNT", "ts"], {"cardId": "Card Id", "amount": "AMOUNT"}),
        (["card_id", "a-mount", "TS"], {"cardId": "card_id", "amount": "a-mount", "ts": "TS"}),
        (["cardId", "Card Id", "amount", "ts"], {}),
        (["Card Id", "card_id", "amount", "ts"], {}),
        (["cards", "amounts"], {}),
    ],
)
def test_columns_match_without_case_and_separators_where_one_does(columns: list[str], guesses: dict[str, str]) -> None:
    assert match_columns(["cardId", "amount", "ts"], {}, columns) == guesses


NAMES = st.lists(st.text("aB _-", min_size=1, max_size=4), max_size=5, unique=True)


@given(NAMES, NAMES)
def test_no_column_is_guessed_twice(attributes: list[str], columns: list[str]) -> None:
    guesses = match_columns(attributes, {}, columns)
    assert len(set(guesses.values())) == len(guesses)
    assert set(guesses.values()) <= set(columns) - set(attributes)
    assert not set(guesses) & set(columns)


def test_a_column_that_was_mapped_is_not_guessed() -> None:
    assert match_columns(["a", "b"], {"b": "A"}, ["A"]) == {}


def test_a_guess_is_said_in_the_words_of_the_reader() -> None:
    shape = shape_of(Reading(time="booked at"), "S", Schema.of(("cardId", Type.STRING)))
    fitted = check_source(pd.DataFrame({"Card Id": ["a"], "Booked At": [1]}), shape)
    assert (fitted.time, fitted.columns) == ("Booked At", {"cardId": "Card Id"})
    (note,) = fitted.describe_guesses()
    assert "cardId from 'Card Id', event times from 'Booked At'; columns={" in note
    with speak_of_options():
        assert "; --map ATTRIBUTE=COLUMN" in fitted.describe_guesses()[0]


PAY, OK = (Schema.of(("card", Type.STRING), (own, Type.STRING), ("ts", Type.LONG)) for own in ("amount", "code"))


def test_a_column_of_one_of_several_streams() -> None:
    """Two streams have an attribute `ts`, and their files other columns for it: one `--map` was of both."""
    streams = {"Pay": PAY, "Ok": OK}
    columns = {"Ok.ts": "when", "ts": "at", "code": None}
    found = readings_of(streams, columns=columns)
    assert {s: r.columns for s, r in found.items()} == {"Pay": {"ts": "at"}, "Ok": {"ts": "when", "code": None}}
    assert readings_of({"Pay": PAY}, columns={"Pay.ts": "at"})["Pay"].columns == {"ts": "at"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("O.ts", "columns: no stream 'O' is fed. Did you mean 'Ok'?"),
        ("Pay.code", "columns: stream Pay has no attribute 'code'. Known: amount, card, ts"),
        ("tss", "columns: no stream that is fed has an attribute 'tss'. Did you mean 'ts'?"),
    ],
)
def test_a_column_of_an_attribute_that_no_stream_has(name: str, message: str) -> None:
    with pytest.raises(Misuse) as error:
        readings_of({"Pay": PAY, "Ok": OK}, columns={name: "at"})
    assert str(error.value) == message


def test_a_column_that_is_of_another_stream_is_told() -> None:
    shape = shape_of(Reading(columns={"ts": "when"}), "Pay", PAY)
    frame = pd.DataFrame({"card": ["a"], "amount": ["1"], "ts": [1]})
    with pytest.raises(SparkStreamError, match=r"'when' for stream Pay\. .*write columns=\{'STREAM\.ts': 'when'\}"):
        check_source(frame, shape)
    with speak_of_options(), pytest.raises(SparkStreamError, match=r'write --map STREAM\.ts="when"\.'):
        check_source(frame, shape)


def test_an_attribute_without_a_column_is_null() -> None:
    schema = Schema.of(("a", Type.INT), ("b", Type.STRING), ("c", Type.OBJECT))
    frame = pd.DataFrame({"a": [1]})
    assert read(frame, schema, columns={"b": None, "c": None}) == [[1], [None], [None]]
    with pytest.raises(SparkStreamError, match=r"no column 'b' .* To feed null: columns=\{'b': None\}"):
        check_source(frame, shape_of(Reading(), "S", Schema.of(("a", Type.INT), ("b", Type.STRING))))


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("26.11.2026 10:00:00", "%d.%m.%Y %H:%M:%S"),
        ("2026-11-26 10:00:00", ""),
        ("2026-11-26T10:00:00Z", ""),
        ("11/26/2026 10:00", "%m/%d/%Y %H:%M"),
        ("26.11.2026", "%d.%m.%Y"),
        ("1.234,5", None),
        ("n/a", None),
    ],
)
def test_the_format_of_a_time_is_named(text: str, format: str | None) -> None:
    assert guess_format(text) == format
    with speak_of_options():
        (group,) = group_reasons({f"ts: '{text}' is not a long": 1}, columns={"ts": "Booked At"})
    hint = f", and looks like a time: --time 'Booked At'{f' --time-format {format!r}' if format else ''}"
    assert group.words.endswith(hint) == (format is not None)


def test_an_operators_log_goes_in_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = OPERATOR / "payments.csv"
    words = ["run", str(OPERATOR / "Fraud.siddhi"), "--offline", "--master", "inline", "--home", str(tmp_path / "home")]
    words += ["--feed", f"PaymentStream={log}", "--map", "amount=Amount (EUR)", "--map", "ts=Booked At"]
    assert cli.main(words) == 1
    hint = "looks like a time: --time 'Booked At' --time-format '%d.%m.%Y %H:%M:%S'"
    assert hint in capsys.readouterr().err
    assert not (tmp_path / "home").exists()  # nothing was deployed
    words += ["--time", "Booked At", "--time-format", LOCAL["time_format"], "--time-zone", LOCAL["time_zone"]]
    assert cli.main([*words, "--decimal", ","]) == 0
    printed = capsys.readouterr()
    assert ["05:00:01", "c1", "large", "1000.5", str(MS)] in [line.split()[2:] for line in printed.out.splitlines()]
    assert printed.err.count("cardId from 'Card Id', country from 'Country'; --map") == 1


def test_an_audit_says_why_rows_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["audit", str(OPERATOR / "Fraud.siddhi"), "--feed", f"PaymentStream={OPERATOR / 'payments.csv'}"]
    cli.main([*words, "--map", "amount=Amount (EUR)", "--map", "ts=Booked At"])
    out = capsys.readouterr().out
    assert "measured: not possible: no row of the feeds fits its stream" in out
    assert "measured: PaymentStream: amount is not a double" in out
    assert "looks like a time: --time 'Booked At'" in out
