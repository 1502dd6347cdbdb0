"""Avro schemas of a schema registry, by the HTTP interface of Confluent's: they are asked for when an app starts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlsplit

from ...errors import Misuse, SiddhiBindError, SparkStreamError, shown
from ...plan.connectors.incoming import IncomingSource
from ...plan.connectors.mapping import Avro
from ...plan.connectors.outside import OutsideSink
from ...plan.nodes import Plan
from ...sinks.http_client import HttpClient, HttpServer
from ...sinks.target import TargetUnavailable
from ..config.grants import Grants

MOST_BYTES = 1 << 22
"""Bytes of a registry's answer, at most."""
_SECONDS = 10.0
_Connector = TypeVar("_Connector", IncomingSource, OutsideSink)


@dataclass(frozen=True)
class SchemaRegistries:
    """Asks registries for schemas, within `grants`, for each of them once."""

    grants: Grants
    _schemas: dict[tuple[str, str], str] = field(default_factory=dict)

    def resolve(self, connectors: Sequence[_Connector], plan: Plan) -> tuple[_Connector, ...]:
        """Sources or sinks with the schemas of their mappings. Raises SiddhiBindError, at the annotation, for a
        registry that is not granted, cannot be reached, or does not have a schema."""
        return tuple(self._resolve(connector, plan) for connector in connectors)

    def _resolve(self, connector: _Connector, plan: Plan) -> _Connector:
        format_ = connector.mapping.format
        if not isinstance(format_, Avro) or not format_.registry:
            return connector
        end = "source" if isinstance(connector, IncomingSource) else "sink"
        try:
            schema = self._schema(format_.registry, format_.schema_id, f"the {end} of stream '{connector.stream}'")
        except SparkStreamError as error:
            wrong = SiddhiBindError(str(error), connector.span)
            raise (wrong.with_source(plan.text) if plan.text else wrong) from None
        resolved_format = replace(format_, schema=schema, registry="", schema_id="")
        return replace(connector, mapping=replace(connector.mapping, format=resolved_format))

    def _schema(self, registry: str, schema_id: str, what: str) -> str:
        if (registry, schema_id) not in self._schemas:
            self._schemas[registry, schema_id] = self._request_schema(registry, schema_id, what)
        return self._schemas[registry, schema_id]

    def _request_schema(self, registry: str, schema_id: str, what: str) -> str:
        url = self.grants.check_url(f"{registry.rstrip('/')}/schemas/ids/{schema_id}", f"{what} asks for a schema at")
        client = HttpClient(HttpServer(url.scheme, url.host, url.port, _SECONDS, MOST_BYTES))
        try:
            answer = client.ask("GET", urlsplit(url.text).path, b"", {"Accept": "application/json"})
        except TargetUnavailable as error:
            raise Misuse(f"{what}: the schema registry {error}") from None
        finally:
            client.close()
        where = f"{what}: the schema registry {url.base}"
        if answer.status != HTTPStatus.OK:
            raise Misuse(f"{where} has no schema with schema.id='{schema_id}': it answered {answer}")
        try:
            schema = json.loads(answer.body)["schema"]
        except (ValueError, KeyError, TypeError, RecursionError):
            schema = None
        if not answer.is_complete or not isinstance(schema, str):
            raise Misuse(f"{where} did not answer with a schema: {shown(answer.body[:100].decode(errors='replace'))}")
        return schema
