"""Missing entries: left out of the likelihood, exactly; filled in and scored."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from kplus import MEIBP
from kplus.data.reading import ColumnsWarning
from kplus.datasets import make_nonnegative_features

PRIORS = {
    "nonnegative": {"negative": "noise"},
    "gaussian": {"prior": "gaussian"},
}
every_prior = pytest.mark.parametrize("prior", PRIORS)
X, Z, A = make_nonnegative_features(150, 30, 4, noise=0.4, random_state=0)


def a_model(prior="nonnegative", **how):
    return MEIBP(**PRIORS[prior] | {"random_state": 0} | how)


def hidden(kind):
    rng = np.random.default_rng(1)
    mask = np.zeros(X.shape, bool)
    if kind == "random":
        mask = rng.random(X.shape) < 0.3
    elif kind == "columns":
        mask[75:, :15] = True
    elif kind == "crossed":  # no column is complete
        mask[75:, :15] = True
        mask[:75, 15:] = True
    elif kind == "most":
        mask = rng.random(X.shape) < 0.7
    elif kind == "one":
        mask[3, 4] = True
    elif kind == "rare_column":  # known in three rows only
        mask[3:, 2] = True
    return mask


KINDS = ["random", "columns", "crossed", "most", "one", "rare_column"]


@every_prior
@pytest.mark.parametrize("kind", KINDS)
def test_gaps(prior, kind):
    mask = hidden(kind)
    gaps = np.where(mask, np.nan, X)
    model = a_model(prior).fit(gaps)
    assert np.all(np.isfinite(model.components_))
    history = model.lower_bound_history_
    assert np.all(np.diff(history) >= -1e-9 * np.abs(history[-1]))
    filled = model.impute(gaps)
    np.testing.assert_array_equal(filled[~mask], X[~mask])
    assert np.all(np.isfinite(filled))
    if kind == "most":  # nine values a row do not tell the number of features for sure
        assert 2 <= model.n_components_ <= 4
        means = np.broadcast_to(np.nanmean(gaps, axis=0), X.shape)
        assert np.mean((filled - X)[mask] ** 2) < 0.9 * np.mean((means - X)[mask] ** 2)
    elif kind != "crossed":
        assert model.n_components_ == 4
        assert model.noise_scale_ == pytest.approx(0.4, rel=0.05)
    if kind in ("random", "columns", "one"):
        assert np.sqrt(np.mean((filled - Z @ A)[mask] ** 2)) < 0.2
        assert model.score(gaps, X) > -0.5 * np.log(2 * np.pi * np.e * 0.16) - 0.15


@every_prior
def test_score_is_the_mean_log_likelihood(prior):
    mask = hidden("random")
    gaps = np.where(mask, np.nan, X)
    model = a_model(prior).fit(gaps)
    fitted = model.transform(gaps) @ model.components_
    variance = model.noise_scale_**2
    each = -0.5 * (np.log(2 * np.pi * variance) + (X - fitted) ** 2 / variance)
    assert model.score(gaps, X) == pytest.approx(each[mask].mean(), rel=1e-10)
    assert model.score(gaps) == pytest.approx(each[~mask].mean(), rel=1e-10)
    some = np.where(np.random.default_rng(0).random(X.shape) < 0.5, np.nan, X)
    both = mask & ~np.isnan(some)
    assert model.score(gaps, some) == pytest.approx(each[both].mean(), rel=1e-10)
    assert model.score(gaps, pd.DataFrame(X)) == model.score(gaps, X)
    assert model.score(gaps, sp.csr_array(X)) == model.score(gaps, X)


def test_wrong_scores():
    gaps = np.where(hidden("random"), np.nan, X)
    model = a_model().fit(gaps)
    with pytest.raises(ValueError, match=r"\(3, 30\).*\(150, 30\)"):
        model.score(gaps, X[:3])
    with pytest.raises(ValueError, match=r"shape"):
        model.score(gaps, X[:, :3])
    with pytest.raises(ValueError, match="nothing to score"):
        model.score(X, X)
    with pytest.raises(ValueError, match="nothing to score"):
        model.score(gaps, gaps)
    with pytest.raises(ValueError, match="infinity"):
        model.score(gaps, np.full_like(X, np.inf))
    with pytest.raises(ValueError, match=r"(?i)nothing|no entry|missing|NaN"):
        model.score(np.full((2, 30), np.nan))


def test_gaps_are_left_out_exactly():
    """What stands in an entry that is hidden cannot matter; nor complete copies."""
    mask = hidden("random")
    one = a_model().fit(np.where(mask, np.nan, X))
    other = a_model().fit(np.where(mask, np.nan, X + 100.0 * mask))
    np.testing.assert_array_equal(one.components_, other.components_)


def test_the_bound_counts_observed_entries_only():
    """A column known in one row, which no feature explains, adds little."""
    mask = hidden("random")
    gaps = np.where(mask, np.nan, X)
    scales = {"noise_scale": 0.4, "factor_scale": 0.6, "alpha": 1.0}
    model = a_model(**scales).fit(gaps)
    wide = np.column_stack([gaps, np.full(150, np.nan)])
    wide[0, -1] = 0.0
    more = a_model(**scales).fit(wide)
    assert more.n_components_ == model.n_components_
    step = more.lower_bound_ - model.lower_bound_
    alone = -0.5 * np.log(2 * np.pi * 0.16)
    assert alone - 3.0 < step < alone + 2.0


def test_rows_without_values():
    gaps = X.copy()
    gaps[[3, 77]] = np.nan
    for how in ({}, {"batch_size": 20}):
        with pytest.raises(ValueError, match=r"rows 3, 77"):
            a_model(**how).fit(gaps)
    with pytest.raises(ValueError, match=r"row 3\b"):
        a_model().fit(gaps[:50])
    model = a_model().fit(X)
    found = model.transform(gaps)
    np.testing.assert_array_equal(found[[3, 77]][0], found[[3, 77]][1])
    np.testing.assert_array_equal(
        np.delete(found, [3, 77], axis=0),
        np.delete(model.transform(X), [3, 77], axis=0),
    )
    assert np.all(np.isfinite(model.impute(gaps)))
    assert np.isfinite(model.score(gaps))
    assert np.isfinite(model.score(gaps, X))


def test_columns_without_values():
    gaps = X.copy()
    gaps[:, 7] = np.nan
    with pytest.raises(ValueError, match="column 7"):
        a_model().fit(gaps)
    frame = pd.DataFrame(gaps).add_prefix("c")
    with pytest.warns(ColumnsWarning, match="empty: c7"):
        model = a_model().fit(frame)
    assert model.components_.shape[1] == gaps.shape[1] - 1
    with pytest.raises(ValueError, match=r"column|row"):
        a_model().fit(np.full((5, 3), np.nan))
    model = a_model().fit(X)  # later it may be missing
    assert np.mean(model.transform(gaps) == model.transform(X)) > 0.98


def test_missing_values_of_frames_and_sparse_tables():
    gaps = np.where(hidden("random"), np.nan, X)
    model = a_model().fit(gaps)
    names = [f"c{i}" for i in range(30)]
    nulls = [[None if v != v else v for v in column] for column in gaps.T]
    frames = [
        pd.DataFrame(gaps, columns=names),
        pd.DataFrame(gaps, columns=names).convert_dtypes(),
        pl.DataFrame(dict(zip(names, nulls, strict=True))),
    ]
    for frame in frames:
        again = a_model().fit(frame)
        np.testing.assert_array_equal(again.components_, model.components_)
        np.testing.assert_array_equal(again.transform(frame), model.transform(gaps))
        np.testing.assert_array_equal(again.impute(frame), model.impute(gaps))
    sparse = a_model().fit(sp.csr_array(gaps))
    np.testing.assert_array_equal(sparse.components_, model.components_)


@pytest.mark.parametrize("kind", ["random", "columns"])
def test_shift_with_gaps(kind):
    """Minima are those of what was observed; all answers come in the user's units."""
    mask = hidden(kind)
    gaps = np.where(mask, np.nan, X - 50.0)
    model = MEIBP(negative="shift", random_state=0).fit(gaps)
    np.testing.assert_array_equal(model.offset_, np.nanmin(gaps, axis=0))
    filled = model.impute(gaps)
    np.testing.assert_array_equal(filled[~mask], gaps[~mask])
    assert np.sqrt(np.mean((filled - (Z @ A - 50.0))[mask] ** 2)) < 0.5
    assert model.score(gaps, X - 50.0) > -2.0
    plain = MEIBP(negative="shift", random_state=0).fit(gaps + 50.0)
    assert model.score(gaps, X - 50.0) == pytest.approx(
        plain.score(gaps + 50.0, X), rel=1e-6
    )


def test_a_column_missing_at_first_far_from_zero():
    """Not one value in the first block, and a level of 1e8."""
    table = X[:120] + 1e8
    table[:40, 3] = np.nan
    model = MEIBP(negative="shift", batch_size=20, random_state=0).fit(table)
    whole = MEIBP(negative="shift", random_state=0).fit(table)
    assert model.n_components_ == whole.n_components_
    assert model.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-6)
