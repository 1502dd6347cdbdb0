"""Typed values of the options of a source or sink, read by their declarations in the table of options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import Misuse, shown
from ...plan.connectors.connector_options import options_of
from ...plan.connectors.option_spec import End, Options

_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class OptionValues:
    """The options of `what`, a source or sink in words. `quote` is around their names in messages; `lower`: messages
    show a wrong flag in small letters.

    Every method raises KeyError for an option that the table does not declare, and `Misuse` for a value that is wrong.
    """

    raw_values: Mapping[str, str] = field(repr=False)
    specs: Options = field(repr=False)
    what: str
    quote: str = ""
    lower: bool = False

    @classmethod
    def of(cls, end: End, type_: str, values: Mapping[str, str], what: str) -> OptionValues:
        """The options of a source or sink of a type. Messages about sources have the names in quotes."""
        source = end == "source"
        return cls(values, options_of(end, type_), what, "'" if source else "", lower=source)

    @classmethod
    def of_trimmed(cls, type_: str, raw_values: Mapping[str, str], what: str) -> OptionValues:
        """The options of a sink of a type that takes all values without the blanks around them."""
        values = {key: value.strip() for key, value in raw_values.items()}
        return cls(values, options_of("sink", type_), what, lower=True)

    def has(self, key: str) -> bool:
        """True if the option is given."""
        return self.specs[key].name in self.raw_values

    def optional(self, key: str) -> str | None:
        """The value as it is written; None where the option is not given."""
        return self.raw_values.get(self.specs[key].name)

    def raw(self, key: str) -> str:
        """The value as it is written, or the default."""
        return self.raw_values.get(key, self.specs[key].default)

    def trim(self, key: str) -> str:
        """The value, or the default, without blanks around it."""
        return self.raw(key).strip()

    def first(self, *keys: str) -> str:
        """The value as it is written of the first of these options that is given, or the default of the first."""
        return self.raw(next((key for key in keys if self.has(key)), keys[0]))

    def text(self, key: str) -> str:
        """The value without blanks around it; one that is shown has no reference."""
        self.check_shown(key)
        return self.trim(key)

    def check_shown(self, *keys: str) -> None:
        """Raises `Misuse` for a reference in one of the options whose values are shown."""
        for key in keys:
            if self.specs[key].is_shown and "${" in self.raw(key):
                name = self._name(key)
                raise Misuse(f"{self.what}: {name} cannot have a reference such as ${{sec:...}} in it: it is shown")

    def flag(self, key: str, default: bool = False) -> bool:
        """An option that is true or false; `default` counts where the table has none."""
        value = self.raw(key) if self.has(key) else self.specs[key].default or str(default)
        if value.lower() not in _TRUTH:
            wrong = shown(value.lower() if self.lower else value)
            raise Misuse(f"{self.what}: {self._name(key)} is 'true' or 'false', not {wrong}")
        return _TRUTH[value.lower()]

    def choice(self, key: str) -> Any:
        """One of the values that the table has, in small letters."""
        value, among = self.text(key).lower(), self.specs[key].values
        if value not in among:
            raise Misuse(f"{self.what}: {self._name(key)} is one of {', '.join(among)}, not {shown(value)}")
        return value

    def number(self, key: str) -> int:
        """A whole number from 1 to the most that the table allows."""
        text, most = self.text(key), self.specs[key].most
        if not text.isdecimal() or not 0 < int(text) <= most:
            raise Misuse(f"{self.what}: {self._name(key)} is a whole number from 1 to {most:,}, not {shown(text)}")
        return int(text)

    def _name(self, key: str) -> str:
        return f"{self.quote}{key}{self.quote}"
