"""Who may post to a source with `basic.auth.enabled='true'`: by its options, else by the users of deployment files."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import Misuse
from ...logins import Logins
from .conf import NodeFile
from .conf_lines import wrong_key
from .secrets import KEPT_ELSEWHERE, References, check_password

SECTION = "auth.configs"
_USERS = (SECTION, "userManager", "userStore", "users")
_OPTIONS = ("basic.auth.username", "basic.auth.password")


def logins_of(options: Mapping[str, str], files: Sequence[NodeFile], references: References, what: str) -> Logins:
    """The logins of `what`, a source in words: the user of its options, whose password is a reference, else the
    users of WSO2's `auth.configs` in deployment files, whose passwords are in base64 there, or references.

    Raises `Misuse` if there is no user, and for a password in the app's text.
    """
    user, password = (options.get(key, "").strip() for key in _OPTIONS)
    if user or password:
        if not user or not password:
            raise Misuse(f"{what}: {' and '.join(_OPTIONS)} go together: give both")
        check_password(password, what, f"basic.auth.{KEPT_ELSEWHERE}")
        logins = [(references.resolve(user, what), references.resolve(password, what))]
    else:
        logins = [pair for file in files for pair in _users(file, references)]
    if not logins:
        raise Misuse(
            f"{what}: basic.auth.enabled='true' needs users: write basic.auth.username='me', "
            f"basic.auth.{KEPT_ELSEWHERE}; or deploy with a file that has them: {': '.join(_USERS)}"
        )
    if any(":" in name for name, _ in logins):
        raise Misuse(f"{what}: the name of a user has a colon, which basic authentication has not")
    return Logins(logins)


def _users(file: NodeFile, references: References) -> Iterator[tuple[str, str]]:
    """(name, password) of the users of a deployment file."""
    section: Any = file.sections
    for key in _USERS:
        section = section.get(key) if isinstance(section, Mapping) else None
    for item in section if isinstance(section, list) else []:
        user = item.get("user", item) if isinstance(item, Mapping) else None
        if not isinstance(user, Mapping) or not user.get("username") or user.get("password") is None:
            raise wrong_key(file, _USERS, "has a user without username or password")
        yield str(user["username"]), _password(file, str(user["password"]), references)


def _password(file: NodeFile, password_text: str, references: References) -> str:
    if "${" in password_text:
        return references.resolve(password_text, str(file.path))
    try:
        return base64.b64decode(password_text, validate=True).decode()
    except (binascii.Error, ValueError):
        raise wrong_key(file, _USERS, "has a password that is neither base64 nor a reference (${sec:NAME})") from None
