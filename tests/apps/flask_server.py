"""A Flask app that answers on loopback, for the length of a test."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import flask
from werkzeug.serving import make_server


@contextlib.contextmanager
def served(app: flask.Flask) -> Iterator[str]:
    """The address of a server that runs `app` in a thread of its own."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
