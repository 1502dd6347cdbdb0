"""The options of `http-service-response` sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...connections.service_requests import Services
from ...errors import Misuse, shown
from ...plan.query_parts import template_attributes
from ...sinks.header_texts import forbidden
from ...sinks.service_response_sink import MESSAGE_ID, RESERVED_HEADERS, ServicePlace, ServiceResponseTarget
from ...sinks.target import Target
from ..config.secrets import References
from .header_options import headers_of
from .typed_options import OptionValues


@dataclass(frozen=True)
class ServiceGate:
    """Makes targets of the options of `what`, a sink in words, that answer the requests of `services`."""

    services: Services
    references: References
    what: str

    def target(self, options: Mapping[str, str], content_type: str) -> tuple[str, Target]:
        """(whose requests are answered, the target for messages of this MIME type). Raises `Misuse` for options that
        are wrong, or have a secret that is no reference."""
        o = OptionValues.of("sink", "http-service-response", options, self.what)
        source_id, message_id = o.text("source.id"), o.text(MESSAGE_ID)
        if not template_attributes(message_id):
            raise Misuse(f"{self.what}: message.id names an attribute, as '{{{{messageId}}}}', not {shown(message_id)}")
        header_list = list(headers_of(o.raw("headers"), RESERVED_HEADERS, self.references, self.what))
        for header in header_list:
            wrong = forbidden(header.fixed_value)
            if wrong is not None:
                raise Misuse(f"{self.what}: the header {header.name} {wrong}")
        headers = {h.name: h.value for h in header_list if not h.dynamic}
        if not any(h.name.lower() == "content-type" for h in header_list):
            headers["Content-Type"] = content_type
        templates = tuple((h.name, h.value) for h in header_list if h.dynamic)
        place = ServicePlace(source_id, message_id, tuple(headers.items()), templates)
        return f"requests to {source_id}", ServiceResponseTarget(place, self.services.of(source_id))
