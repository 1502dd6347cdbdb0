"""An S3 server on loopback: moto's, with one bucket. A program for tests.

objects_server.py PORT BUCKET
"""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

_WRONG, _RIGHT = b"CompleteMultipartUploadResponse", b"CompleteMultipartUploadResult"


def as_amazon(app: Any) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    """`app` with the name that S3's reference gives to the answer which ends an upload of parts: Arrow's client takes
    that of moto for an error."""

    def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        begun: list[Any] = []
        body = b"".join(app(environ, lambda *head: begun.append(head)))
        status, headers, *rest = begun[-1]
        if environ["REQUEST_METHOD"] == "POST" and _WRONG in body:
            body = body.replace(_WRONG, _RIGHT)
            headers = [(k, str(len(body)) if k.lower() == "content-length" else v) for k, v in headers]
        start(status, headers, *rest)
        return [body]

    return answer


def main(port: str, bucket: str) -> None:
    WSGIRequestHandler.protocol_version = "HTTP/1.1"  # else each request has a connection of its own
    app = as_amazon(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", int(port), app, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{bucket}", method="PUT")
    urllib.request.urlopen(request).close()
    print("ready", flush=True)
    thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
