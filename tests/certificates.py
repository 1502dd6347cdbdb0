"""Certificates for servers of the tests, made without openssl."""

from __future__ import annotations

from pathlib import Path

import trustme


def self_signed(folder: Path, *names: str) -> tuple[str, str]:
    """Files in `folder` with the certificate chain of a server of these names or addresses, and with its key."""
    authority = trustme.CA()
    server = authority.issue_cert(*names)
    cert, key = folder / "cert.pem", folder / "key.pem"
    # One file is both what the server shows and what its clients trust.
    cert.write_bytes(b"".join(each.bytes() for each in server.cert_chain_pems) + authority.cert_pem.bytes())
    key.write_bytes(server.private_key_pem.bytes())
    return str(cert), str(key)
