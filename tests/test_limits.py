"""Limits as a person writes them."""

from __future__ import annotations

import pytest

from sparkstream_nb.errors import Misuse
from sparkstream_nb.limits import Limits


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", Limits()),
        ("characters=1MB,nesting=100,firings=1e6", Limits(1_000_000, 100, 1_000_000)),
        (" characters = 1.5 k , ", Limits(characters=1_500)),
        ("firings=2.5e3", Limits(firings=2_500)),
        ("characters=16.1MB", Limits(characters=16_100_000)),
        ("characters=20000", Limits(characters=20_000)),
    ],
)
def test_a_text(text: str, found: Limits) -> None:
    assert Limits.of(text) == found
    assert Limits.of(str(found)) == Limits.of(found) == found


def test_the_default() -> None:
    assert Limits.of(None) == Limits() == Limits(characters=16_000_000, nesting=200, firings=1_000_000)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("chars=3", "limits: 'chars=3' is not one of characters=..., nesting=..., firings=..."),
        ("nestin=3", "Did you mean 'nesting'?"),
        ("characters", "limits: 'characters' is not one of"),
        ("characters=much", "limits: characters cannot be 'much'. Write a whole number, such as 1000, 1e6 or 1MB"),
        ("characters=off", "limits: characters cannot be 'off'"),
        ("firings=2.5", "limits: firings cannot be '2.5'"),
        ("firings=1e-3", "limits: firings cannot be '1e-3'"),
        ("nesting=0", "limits: nesting is a whole number from 1 to 200, not 0"),
        ("nesting=201", "limits: nesting is a whole number from 1 to 200, not 201"),
        ("firings=1e19", "limits: firings is a whole number from 1 to 1,000,000,000, not 10000000000000000000"),
        (Limits(characters=True), "limits: characters is a whole number from 1 to 500,000,000, not True"),
        (Limits(nesting="3"), "limits: nesting is a whole number from 1 to 200, not '3'"),  # type: ignore[arg-type]
        (3, "limits is a Limits, or a text such as 'characters=1MB,nesting=100', not 3"),
    ],
)
def test_what_is_wrong_is_a_short_line(wanted: object, message: str) -> None:
    with pytest.raises(Misuse) as error:
        Limits.of(wanted)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200
