"""User names and passwords of those who may send requests, of which only keyed hashes are kept."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Iterable


class Logins:
    """Pairs of a user name and a password, which are shown nowhere."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._key = secrets.token_bytes(32)
        self._login_digests = [self._hash(f"{user}:{password}".encode()) for user, password in pairs]

    def fit(self, header: str | None) -> bool:
        """True if an `Authorization` header of basic authentication has one of them. The time that takes does not
        reveal the wrong part.
        """
        try:
            scheme, _, words = (header or "").partition(" ")
            credentials = base64.b64decode(words.strip(), validate=True)
        except (binascii.Error, ValueError):
            scheme, credentials = "", b""
        digest = self._hash(credentials)
        right = [
            hmac.compare_digest(digest, login_digest) for login_digest in self._login_digests
        ]  # all of them, each time
        return any(right) and scheme.lower() == "basic"

    def _hash(self, words: bytes) -> bytes:
        return hmac.digest(self._key, words, "sha256")
