"""Avro schemas of a registry: asked for when an app starts, and what is refused."""

from __future__ import annotations

import io
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import fastavro
import flask
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import SparkStreamError
from tests.apps.flask_server import served
from tests.apps.receiver import receiver
from tests.servers import free_port

SCHEMA = '{"type": "record", "name": "Sweet", "fields": [{"name": "name", "type": "string"}]}'


@pytest.fixture
def registry() -> Iterator[tuple[str, list[str]]]:
    """A registry's address, and the paths that it was asked for."""
    paths: list[str] = []
    app = flask.Flask(__name__)

    @app.get("/<path:path>")
    def schemas(path: str) -> object:
        paths.append(path)
        if path == "schemas/ids/1":
            return {"schema": SCHEMA}
        if path == "schemas/ids/2":
            return {"schema": '{"type": "what"}'}
        if path == "schemas/ids/3":
            return "<html>"
        return {"error_code": 40403, "message": "Schema not found"}, 404

    with served(app) as url:
        yield url, paths


def avro_app(registry: str, sink: str, schema_id: str = "1") -> str:
    return f"""
    define stream S (name string, amount double);
    @sink(type='http', publisher.url='{sink}',
          @map(type='avro', schema.registry='{registry}/', schema.id='{schema_id}',
               @payload(\"\"\"{{"name": "{{{{name}}}}"}}\"\"\")))
    define stream Low (name string, amount double);
    from S[amount < 10.0] select * insert into Low;
    """


def test_records_have_the_schema_of_the_registry(
    run: Callable[..., App], registry: tuple[str, list[str]]
) -> None:
    url, paths = registry
    with receiver() as server:
        app = run(avro_app(url, server.url), allow=[f"http={server.url}", f"http={url}"])
        app.send("S", [["toffee", 2.5], ["cake", 20.0]])
        app.flush()
        assert app.drain() == 0
        (body,) = server.taken
        parsed_schema = fastavro.parse_schema(json.loads(SCHEMA))
        assert fastavro.schemaless_reader(io.BytesIO(body), parsed_schema, None) == {"name": "toffee"}
    assert set(paths) == {"schemas/ids/1"}


def test_messages_are_read_by_it_and_a_start_asks_again(
    run: Callable[..., App], registry: tuple[str, list[str]], tmp_path: Path
) -> None:
    url, paths = registry
    place = f"http://localhost:{free_port()}/in"
    text = f"""
    @source(type='http', receiver.url='{place}', @map(type='avro', schema.registry='{url}', schema.id='1'))
    define stream S (name string);
    from S select * insert into O;
    """
    run(text, allow=[f"http={place}", f"http={url}"]).stop()
    before = len(paths)
    app = run(text, allow=[f"http={place}", f"http={url}"])
    assert len(paths) > before
    (token,) = (tmp_path / "home" / "sources").glob("*.token")
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(SCHEMA)), {"name": "toffee"})
    headers = {"Authorization": f"Bearer {token.read_text().strip()}"}
    with urllib.request.urlopen(urllib.request.Request(place, body.getvalue(), headers)) as answer:
        assert answer.status == 200
    app.flush()
    assert app.output("O").frame["name"].tolist() == ["toffee"]


@pytest.mark.parametrize(
    ("schema_id", "message"),
    [
        ("9", "has no schema with schema.id='9': it answered 404 NOT FOUND"),
        ("2", "the schema of an avro mapping is no Avro schema"),
        ("3", "did not answer with a schema: '<html>'"),
    ],
)
def test_what_a_registry_does_not_have(
    run: Callable[..., App], registry: tuple[str, list[str]], schema_id: str, message: str
) -> None:
    url, _ = registry
    with pytest.raises(SparkStreamError) as raised:
        run(avro_app(url, "http://127.0.0.1:9/in", schema_id), allow=["http=http://127.0.0.1:9/in", f"http={url}"])
    assert message in str(raised.value)


def test_a_registry_that_is_not_granted_or_not_there(run: Callable[..., App]) -> None:
    place, registry = "http://127.0.0.1:9/in", f"http://127.0.0.1:{free_port()}"
    with pytest.raises(SparkStreamError, match=r"asks for a schema at .*, which is not allowed\. Add --allow http="):
        run(avro_app(registry, place), allow=[f"http={place}"])
    with pytest.raises(SparkStreamError, match=r"the schema registry .* cannot be reached: Connection refused"):
        run(avro_app(registry, place), allow=[f"http={place}", f"http={registry}"])
