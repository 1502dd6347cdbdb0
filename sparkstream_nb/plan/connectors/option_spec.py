"""The declaration of an option of a source, sink or mapping: the row type of the tables of options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

End = Literal["source", "sink", "source-mapping", "sink-mapping"]
Kind = Literal[
    "text", "bool", "choice", "int", "ms", "seconds", "size", "port", "url", "servers", "path", "regex", "list",
    "attribute", "headers", "settings", "json", "xpath", "json-path",
]  # fmt: skip
"""The form of a value. `bool` is true or false; `int`, `ms`, `seconds` and `port` are whole numbers above 0; `list`,
`servers` and `settings` have commas; `headers` are `'NAME:VALUE','NAME:VALUE'`."""


@dataclass(frozen=True)
class OptionSpec:
    """An option of a type of sources, sinks or mappings.

    `meaning` is a sentence for the reference page, without the default where `default` gives it. `default` is the value
    that counts where the option is left out, as it would be written; "" for none. `required`: what to write where a
    needed option is missing; empty for one that may be left out. `alternative`: the option that does instead of this
    needed one.

    `values` are the values of a `choice`. `refusal` is None where other values are mistakes; where they are valid, and
    this build does not have them, it is the reason, in a few words, which may be empty. `most` bounds a number.

    `dynamic`: the value may have `{{attribute}}`. `secret`: the value is a reference such as `${sec:NAME}`. `is_shown`:
    the value is displayed, and may have no reference. `is_extra`: an option of this build, not of WSO2's extension.
    `effect`: False for an option that is accepted and changes nothing. `prefix`: every name that begins with it
    is this option.

    `off` is None for an option that runs here. Of one of WSO2's that this build refuses by name it has the values, in
    small letters, at which leaving the option out changes nothing, which are accepted; `instead` says what to write.
    """

    name: str
    meaning: str = ""
    kind: Kind = "text"
    default: str = ""
    required: str = ""
    alternative: str = ""
    values: tuple[str, ...] = ()
    refusal: str | None = None
    most: int = 0
    dynamic: bool = False
    secret: bool = False
    is_shown: bool = False
    is_extra: bool = False
    effect: bool = True
    prefix: str = ""
    off: tuple[str, ...] | None = None
    instead: str = ""

    @property
    def runs(self) -> bool:
        """True for an option of this build, False for one that is refused by name."""
        return self.off is None

    @property
    def help_line(self) -> str:
        """The meaning, with the default and whose option it is."""
        line = self.meaning
        if self.default and self.effect and "default" not in line:
            short = ". " not in line
            line = f"{line[:-1]} (default: {self._default})." if short else f"{line} Default: {self._default}."
        return f"{line} An option of this build." if self.is_extra else line

    @property
    def _default(self) -> str:
        """The default as the reference page writes it."""
        if self.kind in ("int", "ms", "seconds"):
            return f"{int(self.default):,}"
        return self.default if self.kind == "port" else f"`{self.default}`"


Options = Mapping[str, OptionSpec]
"""The options of one type, by name."""


def by_name(*specs: OptionSpec) -> Options:
    """The options as a table, in this order."""
    return {spec.name: spec for spec in specs}
