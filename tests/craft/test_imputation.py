"""Filled tables of CRAFT, against the clusters written out by hand."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kplus import CRAFT


@pytest.fixture(scope="module")
def frame():
    """Two groups; only `size` and `pet` tell them apart."""
    rng = np.random.default_rng(0)
    n = 300
    z = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "size": rng.normal(5 * z, 1),
            "age": rng.normal(40, 10, n),
            "pet": np.array(["cat", "dog"], dtype=object)[z],
            "town": np.array(["A", "B", "C"], dtype=object)[rng.integers(0, 3, n)],
        }
    )
    for name in frame:
        frame.loc[rng.random(n) < 0.1, name] = None
    frame.loc[7] = [None] * 4
    return frame


def fitted(frame, **params):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Rows without any value")
        return CRAFT(random_state=0, **params).fit(frame)


@pytest.fixture(scope="module")
def craft(frame):
    return fitted(frame)


def by_hand(craft, frame, smoothing=1.0):
    """Means of numbers, and probabilities of categories, of each cluster."""
    said = {}
    whole = frame[craft.labels_ >= 0]
    for j, name in enumerate(frame.columns):
        chosen = craft._model.layout.by_column(craft._clusters.chosen)[:, j]
        of = [whole[craft.labels_ == k][name] for k in range(craft.n_clusters_)]
        if name in ("size", "age"):
            said[name] = np.array(
                [
                    part.mean() if is_own else whole[name].mean()
                    for part, is_own in zip(of, chosen, strict=True)
                ]
            )
            continue
        base = whole[name].value_counts(normalize=True).sort_index()
        p = [
            (part.value_counts().reindex(base.index, fill_value=0) + smoothing * base)
            / (part.notna().sum() + smoothing)
            if is_own
            else base
            for part, is_own in zip(of, chosen, strict=True)
        ]
        said[name] = pd.DataFrame(p)
    return said


def test_by_hand(craft, frame):
    assert craft.n_clusters_ == 2
    filled, said = craft.impute(frame), by_hand(craft, frame)
    scores = craft.transform(frame)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    for name in frame.columns:
        gaps = frame[name].isna().to_numpy()
        assert gaps.any()
        expected = shares[gaps] @ np.asarray(said[name])
        if name in ("pet", "town"):
            expected = said[name].columns[np.argmax(expected, axis=1)]
            assert filled[name][gaps].tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(filled[name][gaps], expected, rtol=1e-9)
        assert filled[name][~gaps].equals(frame[name][~gaps])
    assert filled.dtypes.equals(frame.dtypes)


def test_draws(craft, frame):
    one = pd.DataFrame(
        {"size": [np.nan], "age": [50.0], "pet": ["dog"], "town": [None]}
    )
    n = 4000
    many = pd.concat([one] * n, ignore_index=True)
    drawn = craft.impute(many, n_draws=1, random_state=0)[0]
    size = drawn["size"]
    mean = craft.impute(one)["size"][0]
    assert abs(size.mean() - mean) < 5 * size.std() / np.sqrt(n)
    towns = drawn["town"].value_counts(normalize=True).sort_index()
    base = frame["town"].value_counts(normalize=True).sort_index()
    np.testing.assert_allclose(towns, base, atol=0.04)
    tables = craft.impute(frame, n_draws=3)
    assert len(tables) == 3
    assert all(not table.isna().any().any() for table in tables)


@pytest.mark.parametrize(
    "params",
    [
        {"numeric": "quantile"},
        {"numeric": "yeo-johnson"},
        {"sharing": 0.5},
        {"variant": "paper", "n_clusters": 2},
    ],
    ids=str,
)
def test_other_settings(frame, params):
    craft = fitted(frame, **params)
    gaps = pd.DataFrame(
        {
            "size": [np.nan, 5.0],
            "age": [40.0, np.nan],
            "pet": ["dog", None],
            "town": "A",
        }
    )
    filled = craft.impute(gaps)
    dogs = frame["size"][frame["pet"] == "dog"].mean()
    assert filled["size"][0] == pytest.approx(dogs, abs=1.5)
    assert filled["pet"][1] == "dog"
    assert 30 < filled["age"][1] < 50
    for table in craft.impute(gaps, n_draws=2):
        assert not table.isna().any().any()
        assert np.isfinite(table[["size", "age"]].to_numpy()).all()


def test_numbers_only():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (90, 3)), rng.normal(8, 1, (90, 3))])
    X[::11, 1] = np.nan
    craft = CRAFT(random_state=0).fit(X.astype(np.float32))
    filled = craft.impute(X.astype(np.float32))
    assert filled.dtype == np.float32
    assert np.abs(filled[:90, 1]).max() < 5
    np.testing.assert_array_equal(craft.impute(np.ones((2, 3))), np.ones((2, 3)))


def test_unseen_categories_stay(frame):
    craft = fitted(frame, handle_unknown="missing")
    later = pl.DataFrame(
        {
            "size": [None, 0.1],
            "age": [1.0, 2.0],
            "pet": ["cow", None],
            "town": ["A", "A"],
        }
    )
    out = craft.impute(later)
    assert out["pet"].to_list() == ["cow", "cat"]
    assert out["size"].null_count() == 0


def test_mistakes(craft, frame):
    with pytest.raises(ValueError, match="infinity"):
        craft.impute(frame.assign(size=np.inf))
    with pytest.raises(ValueError, match="'cow'"):
        craft.impute(frame.assign(pet="cow"))
    with pytest.raises(ValueError, match="n_draws"):
        craft.impute(frame, n_draws=0)
    with pytest.raises(ValueError, match="should match"):
        craft.impute(frame[["age", "size", "pet", "town"]])
