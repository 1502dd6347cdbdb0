"""The values of `${...}` in configurations: variables, allowed environment variables, a keyring."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import Misuse

_REFERENCE = re.compile(r"\$\{(?:(?P<kind>[A-Za-z]+):)?(?P<name>[^}]*)\}")
_SECRET = re.compile(r"\$\{(sec|env):[^}]+\}")
KEYRING_SERVICE = "sparkstream"


KEPT_ELSEWHERE = "password='${sec:NAME}', and store NAME in the keyring or allow the environment variable"


def is_secret_reference(text: str) -> bool:
    """True if a text is one reference to a secret, and nothing else, as a password in an app's text has to be."""
    return _SECRET.fullmatch(text) is not None


def check_password(text: str, what: str, example: str = KEPT_ELSEWHERE) -> None:
    """Raises `Misuse` for a password in an app's text, in `what`, that is no reference. `example`: the form to write
    instead.
    """
    if not is_secret_reference(text):
        raise Misuse(f"{what}: the password does not belong into the app's text: write {example}")


@dataclass(frozen=True)
class References:
    """Sources of the values of `${...}`.

    `${NAME}` is a variable of the deployment, else the environment variable NAME. `${env:NAME}` is the environment
    variable. `${sec:alias}` is the password that the keyring holds for the service "sparkstream" under the alias, or
    the environment variable of the alias's name in capitals, with `_` for each character that is neither letter nor
    digit: `${sec:db.password}` is DB_PASSWORD. Of the environment, only the variables in `allowed` are read.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    allowed: Sequence[str] = ()

    def resolve(self, text: str, place: str) -> str:
        """`text` with its references replaced. Raises `Misuse`, with `place`, for one that has no value."""
        return _REFERENCE.sub(lambda m: self._value(m["kind"], m["name"], place), text)

    def _value(self, kind: str | None, name: str, place: str) -> str:
        if kind is None and name in self.variables:
            return self.variables[name]
        variable = re.sub(r"[^A-Za-z0-9]", "_", name).upper() if kind == "sec" else name
        if variable in self.allowed and variable in os.environ:
            return os.environ[variable]
        if kind == "sec":
            secret = _from_keyring(name)
            if secret is not None:
                return secret
        if kind not in (None, "env", "sec"):
            raise Misuse(f"{place}: ${{{kind}:{name}}} is not a known reference; use ${{sec:...}} or ${{env:...}}")
        allow = f"allow_env=['{variable}'], or --allow-env {variable}"
        ways = [f"set the environment variable {variable} and allow it ({allow})"]
        if kind == "sec":
            ways.append(f"store it in the keyring: keyring set {KEYRING_SERVICE} {name}")
        if kind is None:
            ways.append(f"give it (variables={{'{name}': ...}})")
        reference = f"{kind}:{name}" if kind else name
        raise Misuse(f"{place}: ${{{reference}}} has no value. Either {'; or '.join(ways)}")


def _from_keyring(alias: str) -> str | None:
    """The password of the user's keyring; None if there is no keyring, or it does not have the alias."""
    try:
        import keyring  # it asks the desktop, and takes its time to load
    except ImportError:
        return None
    try:
        return keyring.get_password(KEYRING_SERVICE, alias)
    except keyring.errors.KeyringError:
        return None
