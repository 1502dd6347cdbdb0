"""The usual values of an attribute, by the words of its name and by its type. The reference has the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..types import Attribute, Schema, Type
from .attribute_names import KEY_WORDS, TIME_NAMES, split_name
from .column import NUMBERS, GeneratedColumn
from .distributions import AlwaysNull, Chance, Choice, EventTimes, Exponential, Normal, Numbering, Uniform, Walk, Zipf
from .regular import Regex

_TEXT = frozenset({Type.STRING})
_BOOL = frozenset({Type.BOOL})
_LONG = frozenset({Type.LONG})
_SYMBOLS = ("ACME", "WSO2", "IBM", "GOOG", "MSFT", "AAPL", "ORCL", "SAP", "INTC", "AMZN")
_CITIES = ("Berlin", "Paris", "London", "New York", "Tokyo", "Mumbai", "São Paulo", "Lagos", "Colombo", "Sydney")
_COUNTRIES = ("US", "IN", "DE", "BR", "GB", "FR", "JP", "NG", "LK", "AU")
_PAGES = ("/", "/login", "/search", "/cart", "/checkout", "/help", "/account", "/orders", "/terms", "/logout")
_NO_PREFIX = frozenset({"id", "key", "uuid", "name", "number", "no", "code"})
"""Words of a name that its keys do not begin with."""
_WHOLE = frozenset({Type.INT, Type.LONG})


@dataclass(frozen=True)
class UsualValues:
    """A row of the table: attributes of these types whose name has one of these words, the values that they get as
    `meaning` says, and the generator. `make` gets the attribute and the stream's key column, if there is one."""

    words: frozenset[str]
    types: frozenset[Type]
    meaning: str
    make: Callable[[Attribute, str | None], GeneratedColumn]


def _row(
    words: str, types: frozenset[Type], meaning: str, make: Callable[[Attribute, str | None], GeneratedColumn]
) -> UsualValues:
    return UsualValues(frozenset(words.split()), types, meaning, make)


def _give(words: str, types: frozenset[Type], meaning: str, column: GeneratedColumn) -> UsualValues:
    return _row(words, types, meaning, lambda attribute, key: column)


def _rank_values(*values: str) -> Choice:
    """Values of which the k-th is chosen in proportion to 1 / k."""
    return Choice(values, tuple(1.0 / k for k in range(1, len(values) + 1)))


def _number_keys(distinct: int) -> Callable[[Attribute, str | None], GeneratedColumn]:
    """Keys with the words of the attribute's name before their number."""

    def make(attribute: Attribute, key: str | None) -> GeneratedColumn:
        return Zipf(distinct, 1.1, _prefix(attribute))

    return make


def _prefix(attribute: Attribute) -> str:
    if attribute.type is not Type.STRING:
        return ""
    words = split_name(attribute.name)
    return "-".join([*([w for w in words if w not in _NO_PREFIX] or words or ("value",)), ""])


def _walk_prices(attribute: Attribute, key: str | None) -> GeneratedColumn:
    if attribute.type in _WHOLE:
        return Walk(100, 1, low=1, key=key, spread=0.5 if key else 0.0)
    return Walk(100.0, 0.1, low=0.01, key=key, spread=0.5 if key else 0.0, decimals=2)


USUAL = (
    _give("symbol ticker stock", _TEXT, "ten symbols, the first ones often", _rank_values(*_SYMBOLS)),
    _row("price bid ask rate quote", NUMBERS, "a random walk from 100, one for each key", _walk_prices),
    _give("temperature temp celsius", NUMBERS, "normal, 20 ± 4", Normal(20.0, 4.0, decimals=1)),
    _give("humidity", NUMBERS, "normal, 50 ± 12, from 0 to 100", Normal(50.0, 12.0, 0.0, 100.0, 1)),
    _give("pressure", NUMBERS, "normal, 1013 ± 8", Normal(1013.0, 8.0, decimals=1)),
    _give("speed velocity rpm", NUMBERS, "normal, 60 ± 20, from 0", Normal(60.0, 20.0, low=0.0, decimals=1)),
    _give("voltage volt", NUMBERS, "normal, 230 ± 3", Normal(230.0, 3.0, decimals=1)),
    _give("lat latitude", NUMBERS, "uniform, from -60 to 70", Uniform(-60, 70, 5)),
    _give("lon lng long longitude", NUMBERS, "uniform, from -180 to 180", Uniform(-180, 180, 5)),
    _give("percent percentage pct battery load", NUMBERS, "uniform, from 0 to 100", Uniform(0, 100, 1)),
    _give("score probability ratio share", frozenset({Type.FLOAT, Type.DOUBLE}), "uniform, from 0 to 1",
           Uniform(0, 1, 3)),
    _give("amount total cost balance power", frozenset({Type.FLOAT, Type.DOUBLE}),
           "exponential with the mean 50, from 0.01", Exponential(50.0, 0.01, 2)),
    _give("amount total cost balance power", _WHOLE, "exponential with the mean 50, from 1",
           Exponential(50.0, 1.0)),
    _give("quantity qty volume count units items pieces", NUMBERS, "1 to 100, small ones often", Zipf(100)),
    _give("duration latency delay elapsed millis ms size bytes length", NUMBERS,
           "exponential with the mean 100, from 1", Exponential(100.0, 1.0, 1)),
    _give("age", NUMBERS, "uniform, from 18 to 90", Uniform(18, 90, 0)),
    _give("status code", _WHOLE, "200, 404 and 500: 90, 7 and 3 in a hundred", Choice((200, 404, 500), (90, 7, 3))),
    _give("status state result outcome", _TEXT, "ok, pending and failed: 90, 7 and 3 in a hundred",
           Choice(("ok", "pending", "failed"), (90, 7, 3))),
    _give("level severity priority", _TEXT, "info, warning and error: 90, 8 and 2 in a hundred",
           Choice(("info", "warning", "error"), (90, 8, 2))),
    _give("side", _TEXT, "buy or sell", Choice(("buy", "sell"))),
    _give("method verb", _TEXT, "GET, POST, PUT and DELETE", Choice(("GET", "POST", "PUT", "DELETE"), (70, 20, 6, 4))),
    _give("currency", _TEXT, "EUR, USD, GBP, JPY and CHF, the first ones often",
                 _rank_values("EUR", "USD", "GBP", "JPY", "CHF")),
    _give("country nation", _TEXT, "ten codes of countries, the first ones often", _rank_values(*_COUNTRIES)),
    _give("city town", _TEXT, "ten cities, the first ones often", _rank_values(*_CITIES)),
    _give("url uri path page", _TEXT, "ten paths, the first ones often", _rank_values(*_PAGES)),
    _give("ip", _TEXT, "addresses in 10.0.0.0/16", Regex(r"10\.0\.[1-9]\d?\.[1-9]\d?")),
    _give("email mail", _TEXT, "addresses at example.com", Regex(r"user-[1-9]\d?\d?@example\.com")),
    _give("phone", _TEXT, "reserved numbers", Regex(r"\+1-555-01\d\d")),
    _give("uuid guid", _TEXT, "32 random hexadecimal digits", Regex("[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")),
    _give("message text comment description note", _TEXT, "three to six random words",
           Regex(r"[a-z]{3,8}( [a-z]{2,8}){2,5}")),
    _row("order transaction event trace request seq sequence", _TEXT | _WHOLE,
         "1, 2, 3, ...; texts with the name before them", lambda a, key: Numbering(prefix=_prefix(a))),
    _row("room zone area region section line floor building topic category type kind group", _TEXT,
         "ten keys such as `room-1`, the first ones often", _number_keys(10)),
    _row(" ".join(sorted(KEY_WORDS)), _TEXT | _WHOLE,
         "a thousand keys such as `card-1` by Zipf's law, or numbers", _number_keys(1000)),
    _give("error alarm alert fraud failed broken", _BOOL, "true for 5 in a hundred", Chance(0.05)),
    _give("active enabled valid ok online success", _BOOL, "true for 95 in a hundred", Chance(0.95)),
    _give(" ".join(sorted(TIME_NAMES)), _TEXT | _LONG, "the event time: ms, or a text in ISO 8601", EventTimes()),
)  # fmt: skip
"""Usual values by words of the name. The last word of a name counts first, though `id`, `key`, `name`, `code` and
`number` after the others; of two rows the upper one."""

OTHERS = (
    _row("", _TEXT, "ten keys with the name before them, the first ones often", _number_keys(10)),
    _give("", frozenset({Type.FLOAT, Type.DOUBLE}), "normal, 100 ± 15", Normal(100.0, 15.0, decimals=2)),
    _give("", _WHOLE, "uniform, from 1 to 100", Uniform(1, 100)),
    _give("", _BOOL, "true or false", Chance(0.5)),
    _give("", frozenset({Type.OBJECT}), "null", AlwaysNull()),
)
"""Usual values of all other attributes, by type."""


def usual_values(attribute: Attribute) -> UsualValues:
    """The row of the table that is for an attribute."""
    # The last word says most, but for those such as `id` and `name`: `orderId` is an order, `cityName` a city.
    split = split_name(attribute.name)
    words = [*(w for w in reversed(split) if w not in _NO_PREFIX), *(w for w in split if w in _NO_PREFIX)]
    rows = (r for word in words for r in USUAL if word in r.words and attribute.type in r.types)
    return next(rows, next(r for r in OTHERS if attribute.type in r.types))


def usual_column(attribute: Attribute, key: str | None) -> GeneratedColumn:
    """The generator of an attribute's usual values. `key`: the stream's key column."""
    return usual_values(attribute).make(attribute, key)


def find_key(schema: Schema) -> str | None:
    """The first attribute whose usual values are keys or symbols, for walks of their own; None without one."""
    return next(_keys(schema), None)


def _keys(schema: Schema) -> Iterator[str]:
    for attribute in schema:
        if attribute.type in _WHOLE | _TEXT and isinstance(usual_column(attribute, None), Zipf | Choice):
            if attribute.type is Type.STRING or KEY_WORDS & set(split_name(attribute.name)):
                yield attribute.name
