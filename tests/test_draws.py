"""The draw of a commit: three commits in a row with other remainders try all that `--third` leaves out of each."""

from __future__ import annotations

import pytest

import profiles


def drawn(items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    found = []
    for third in range(profiles.THIRDS):
        monkeypatch.setattr(profiles, "third", lambda third=third: third)
        found.append({item.nodeid for item in items if profiles.is_of_this_third(item)})
    return found


def test_three_thirds_have_each_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    items = request.session.items
    thirds = drawn(items, monkeypatch)
    assert set.union(*thirds) == {item.nodeid for item in items}
    assert request.node.nodeid in set.intersection(*thirds)  # it shows nothing by a further way


@pytest.mark.parametrize(
    "marks", [["thorough"], ["hypothesis"], ["spark", "rotates"], ["spark", "contract", "thorough"]]
)
def test_what_shows_by_a_further_way_is_in_one_third(
    marks: list[str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = request.node
    before = list(item.own_markers)
    item.own_markers += [getattr(pytest.mark, name).mark for name in marks]
    thirds = drawn([item], monkeypatch)
    item.own_markers[:] = before
    assert sorted(map(len, thirds)) == [0, 0, 1]


@pytest.mark.parametrize("marks", [["spark"], ["thorough", "browser"], ["thorough", "server"], ["spark", "thorough"]])
def test_what_starts_spark_a_browser_or_a_server_is_in_all(
    marks: list[str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = request.node
    before = list(item.own_markers)
    item.own_markers += [getattr(pytest.mark, name).mark for name in marks]
    thirds = drawn([item], monkeypatch)
    item.own_markers[:] = before
    assert list(map(len, thirds)) == [1, 1, 1]
