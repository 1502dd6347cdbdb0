"""Names of persons, companies, places and the like, by Faker, which the extra `generate` brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import Misuse, SparkStreamError, nearest, shown
from ..types import Type
from .column import Draw, GeneratedColumn
from .drawn import Drawn
from .ieee_arithmetic import scale_words

KINDS = {
    "person": "name",
    "first name": "first_name",
    "last name": "last_name",
    "user name": "user_name",
    "company": "company",
    "job": "job",
    "city": "city",
    "country": "country",
    "street": "street_name",
    "address": "street_address",
    "postcode": "postcode",
    "phone": "phone_number",
    "email": "safe_email",
    "domain": "domain_name",
    "url": "url",
    "ip": "ipv4",
    "iban": "iban",
    "licence plate": "license_plate",
    "colour": "color_name",
    "word": "word",
    "sentence": "sentence",
}
"""The kinds of names, with the method of Faker that makes them."""
MOST_NAMES = 100_000


@dataclass(frozen=True)
class Names(GeneratedColumn):
    """Names of a kind of `KINDS`, of which there are at most `distinct` different ones."""

    kind: str
    locale: str = "en_US"
    distinct: int = 1000

    label = "names"
    types = frozenset({Type.STRING})

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise Misuse(nearest(f"names: there is no kind of name {shown(self.kind)}", str(self.kind), KINDS))
        if not isinstance(self.locale, str):
            raise Misuse(f"names: locale is a text such as de_DE, not {shown(self.locale)}")
        if not isinstance(self.distinct, int) or isinstance(self.distinct, bool):
            raise Misuse(f"names: distinct is a whole number, not {shown(self.distinct)}")
        if not 1 <= self.distinct <= MOST_NAMES:
            raise Misuse(f"names: distinct is from 1 to {MOST_NAMES:,}, not {self.distinct:,}")

    def draw(self, draw: Draw) -> Drawn:
        faker = _open_faker(self.locale)
        faker.seed_instance(int(draw.draw_words("names", 1)[0]))
        make = getattr(faker, KINDS[self.kind])
        pool = np.array(list(dict.fromkeys(str(make()) for _ in range(self.distinct))), object)
        return Drawn(scale_words(draw.draw_words(), len(pool)).astype(np.int64), pool)


def _open_faker(locale: str) -> Any:
    try:
        from faker import Faker
    except ImportError:
        raise SparkStreamError(
            "names of persons, companies and places need Faker, which is not installed: "
            "python -m pip install 'sparkstream-nb[generate]'"
        ) from None
    try:
        return Faker(locale)
    except AttributeError:
        raise Misuse(f"names: Faker has no locale {shown(locale)}: write one such as en_US, de_DE or ja_JP") from None
