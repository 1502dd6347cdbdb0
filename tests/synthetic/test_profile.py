"""Profiles of frames: what they keep, and events like those of the frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb import columns as c
from sparkstream_nb import generate
from sparkstream_nb.errors import Misuse, SparkStreamError

STREAM = "define stream Payments (card string, amount double, country string, note string, approved bool, at long);"


@pytest.fixture(scope="module")
def payments() -> pd.DataFrame:
    """Ten payments a second; a card in ten pays for half of them, a fifth of the countries are null."""
    amounts = (np.arange(5000) ** 2 % 9973) / 100
    return pd.DataFrame(
        {
            "card": [f"secret-{i % 10 if i % 2 else i % 100}" for i in range(5000)],
            "amount": amounts,
            "country": [None if i % 5 == 0 else "DE" if i % 5 < 4 else "FR" for i in range(5000)],
            "note": ["rare word" if i == 7 else f"text {i % 30}" for i in range(5000)],
            "approved": [i % 10 > 0 for i in range(5000)],
            "at": 1_700_000_000_000 + 100 * np.arange(5000),
        }
    )


def test_events_are_like_those_of_the_frame(payments: pd.DataFrame) -> None:
    found = generate(STREAM, n=20_000, seed=1, like=payments)
    assert found["amount"].quantile([0.1, 0.5, 0.9]).to_list() == pytest.approx(
        payments["amount"].quantile([0.1, 0.5, 0.9]).to_list(), rel=0.05
    )
    assert (found["amount"] * 100).round(6).mod(1).eq(0).all(), "as many decimal places"
    assert found["country"].isna().mean() == pytest.approx(0.2, abs=0.01)
    assert (found["country"] == "DE").mean() == pytest.approx(0.6, abs=0.01)
    assert found["approved"].mean() == pytest.approx(0.9, abs=0.01)
    assert found["card"].nunique() == payments["card"].nunique()
    shares = [frame["card"].value_counts(normalize=True).to_numpy()[:10] for frame in (found, payments)]
    assert shares[0] == pytest.approx(shares[1], abs=0.01)
    assert 19_999_000 / (found["at"].iloc[-1] - found["at"].iloc[0]) == pytest.approx(10, rel=0.05)
    assert generate(STREAM, n=5, like=payments, columns={"country": ["LK"]})["country"].eq("LK").all()


def test_a_profile_is_saved_and_loaded_without_keys_and_rare_texts(payments: pd.DataFrame, tmp_path: Path) -> None:
    profile = c.Profile.of(payments)
    profile.save(tmp_path / "payments.json")
    text = (tmp_path / "payments.json").read_text(encoding="utf-8")
    assert "secret" not in text
    assert "rare word" not in text
    assert "text 29" in text
    assert c.Profile.load(tmp_path / "payments.json") == profile
    expected = generate(STREAM, n=100, like=payments)
    pd.testing.assert_frame_equal(generate(STREAM, n=100, like=tmp_path / "payments.json"), expected)
    assert set(expected["card"]) <= {f"card-{i}" for i in range(1, 101)}


def test_texts_that_differ_and_columns_that_are_named_are_keys(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"free": [f"comment {i}" for i in range(100)], "shop": ["north", "south"] * 50, "nr": range(100)}
    )
    c.Profile.of(frame, keys=["shop", "nr"]).save(tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text(encoding="utf-8")
    assert "comment" not in text
    assert "north" not in text
    found = generate(
        "define stream S (free string, shop string, nr int)", n=500, like=c.Profile.load(tmp_path / "p.json")
    )
    assert set(found["shop"]) == {"shop-1", "shop-2"}
    assert found["nr"].between(1, 100).all()


def test_no_text_of_few_rows_is_kept() -> None:
    few = c.Profile.of(pd.DataFrame({"remark": ["Ann", "Bob", "Ann", "Ann"]}))
    assert "Ann" not in str(few)
    many = c.Profile.of(pd.DataFrame({"remark": ["ok"] * 20 + ["Ann"] * 4}))
    assert "ok" in str(many)
    assert "Ann" not in str(many)


def test_a_column_like_an_example() -> None:
    columns = {"a": c.like(np.linspace(0, 10, 1000)), "b": c.like(["x", "x", "x", "y"]), "d": c.like([1, 2, None, 2])}
    frame = generate("define stream S (a double, b string, d int)", n=5000, seed=2, columns=columns)
    assert frame["a"].quantile(0.3) == pytest.approx(3, abs=0.2)
    assert (frame["b"] == "x").mean() == pytest.approx(0.75, abs=0.02)
    assert frame["d"].isna().mean() == pytest.approx(0.25, abs=0.02)


def test_mistakes(payments: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"the frame has no column 'crad'. Did you mean 'card'"):
        c.Profile.of(payments, keys=["crad"])
    with pytest.raises(Misuse, match="column 'x' has values that are neither numbers, texts nor booleans"):
        c.Profile.of(pd.DataFrame({"x": [[1], [2]]}))
    with pytest.raises(Misuse, match=r"columns\['note'\]: like gives numbers, and note is a string"):
        generate(STREAM, n=1, like=pd.DataFrame({"note": np.arange(50) / 7}))
    (tmp_path / "no.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SparkStreamError, match=r"no.json is no profile that Profile.save wrote"):
        generate(STREAM, n=1, like=tmp_path / "no.json")
    c.Profile.of(payments).save(tmp_path / "payments.json")
    text = (tmp_path / "payments.json").read_text(encoding="utf-8")
    (tmp_path / "no.json").write_text(text.replace('"counts": [', '"counts": [1, '), encoding="utf-8")
    with pytest.raises(SparkStreamError, match="is no profile that"):
        c.Profile.load(tmp_path / "no.json")
    with pytest.raises(SparkStreamError, match="cannot be read: No such file"):
        c.Profile.load(tmp_path / "none.json")
