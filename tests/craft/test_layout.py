"""How columns become numbers and codes, against NumPy on the columns themselves."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import yeojohnson

from kplus.craft.layout import Layout

LEVELS = (None, 3, None, 2, None)
KINDS = ["gaussian", "quantile", "yeo-johnson"]


def gappy(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(5.0, 2.0, n),
            rng.integers(0, 3, n),
            np.exp(rng.normal(size=n)),
            rng.integers(0, 2, n),
            np.round(rng.normal(size=n), 1) * 1e6,
        ]
    ).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, rng.uniform(0.0, 3.0, n)


def summed(layout, X, weights):
    """The sums of all rows, by their definition."""
    rows = layout.encode(X, weights)
    places = np.zeros(layout.n_sums - rows.numbers.shape[1])
    for q in range(rows.codes.shape[1]):
        np.add.at(places, rows.codes[:, q], weights)
    return np.concatenate([weights @ rows.numbers, places])


@pytest.mark.parametrize("numeric", KINDS)
def test_missing_weight_of_every_column(numeric):
    X, weights = gappy()
    layout = Layout.of(X, weights, LEVELS, numeric)
    missing = layout.missing(summed(layout, X, weights), weights.sum())
    np.testing.assert_allclose(missing, weights @ np.isnan(X))


@pytest.mark.parametrize("numeric", KINDS)
def test_nothing_missing_is_no_rounding_error(numeric):
    """0.1 added up a hundred times is not 10."""
    X, weights = np.nan_to_num(gappy(100)[0]), np.full(100, 0.1)
    layout = Layout.of(X, weights, LEVELS, numeric)
    sums = summed(layout, X, weights)
    np.testing.assert_array_equal(layout.missing(sums, 100 * 0.1), np.zeros(5))


@pytest.mark.parametrize("numeric", KINDS)
def test_moments_are_those_of_the_column(numeric):
    X, weights = gappy()
    layout = Layout.of(X, weights, LEVELS, numeric)
    sums = summed(layout, X, weights)
    for d in (0, 2, 4):
        x, w = X[:, d], weights * ~np.isnan(X[:, d])
        mean = np.average(np.nan_to_num(x), weights=w)
        spread = np.average((np.nan_to_num(x) - mean) ** 2, weights=w)
        expected = (w.sum(), mean, np.sqrt(spread))
        assert layout.moments(sums, d) == pytest.approx(expected)
        assert layout.moments(np.zeros_like(sums), d) == (0.0, 0.0, 0.0)


def test_scored_numbers_have_mean_0_and_variance_1():
    X, weights = gappy()
    for numeric in ("gaussian", "yeo-johnson"):
        layout = Layout.of(X, weights, LEVELS, numeric)
        sums, P = summed(layout, X, weights), layout.P
        assert layout.scored == 3
        np.testing.assert_allclose(sums[P : 2 * P] / sums[:P], 0.0, atol=1e-9)
        np.testing.assert_allclose(sums[2 * P : 3 * P] / sums[:P], 1.0)


@pytest.mark.parametrize("numeric", KINDS)
def test_columns_without_variation_or_values_have_plain_units(numeric):
    X = np.column_stack(
        [np.full(9, 4e3), np.full(9, np.nan), np.arange(9.0), np.full(9, 0.0)]
    )
    layout = Layout.of(X, np.ones(9), (None,) * 4, numeric)
    plain = np.isnan(layout.powers)  # one for each column, the last for yeo-johnson
    origins, scales = layout.origins[plain][-4:], layout.scales[plain][-4:]
    np.testing.assert_allclose(origins[[0, 1, 3]], [4e3, 0.0, 0.0])
    np.testing.assert_array_equal(scales[[0, 1, 3]], 1.0)
    assert scales[2] == pytest.approx(np.arange(9).std())
    z = layout.encode(X).numbers
    assert np.all(np.isfinite(z))


def test_units_leave_out_rows_of_weight_0():
    X = np.array([[0.0], [2.0], [1e6]])
    layout = Layout.of(X, np.array([1.0, 3.0, 0.0]), (None,), "gaussian")
    assert layout.origins[0] == pytest.approx(1.5)
    assert layout.scales[0] == pytest.approx(np.sqrt(0.75))
    none = Layout.of(X, np.zeros(3), (None,), "gaussian")
    assert (none.origins[0], none.scales[0]) == (0.0, 1.0)


def test_transformed_units_are_those_of_yeo_and_johnson():
    rng = np.random.default_rng(3)
    X = np.column_stack([np.exp(rng.normal(size=300)), -np.exp(rng.normal(size=300))])
    layout = Layout.of(X, np.ones(300), (None, None), "yeo-johnson")
    for d in range(2):
        changed = yeojohnson(X[:, d], layout.powers[d])
        assert layout.origins[d] == pytest.approx(changed.mean())
        assert layout.scales[d] == pytest.approx(changed.std())


@pytest.mark.parametrize("x", [[1.0, 2.0], [5.0] * 8, [np.nan] * 8])
def test_too_little_to_transform(x):
    """Two values, or one, say nothing of a shape."""
    X = np.array(x)[:, None]
    layout = Layout.of(X, np.ones(len(X)), (None,), "yeo-johnson")
    assert np.isnan(layout.powers).all()
    three = np.array([[0.0], [1.0], [9.0]])
    power = Layout.of(three, np.ones(3), (None,), "yeo-johnson").powers[0]
    assert power == pytest.approx(yeojohnson(three[:, 0])[1], abs=1e-3)


def test_powers_that_make_all_values_the_same_are_passed_over():
    """Of values around 1e12 some powers leave no digits to tell them apart."""
    x = 1e12 * (1.0 + np.random.default_rng(2).random(9))
    assert np.var((1.0 - (1.0 + x) ** -1.644) / 1.644) == 0.0  # is one of those tried
    layout = Layout.of(x[:, None], np.ones(9), (None,), "yeo-johnson")
    assert np.var(yeojohnson(x, layout.powers[0])) > 0.0


def test_cuts_halve_the_way_between_values_of_equal_weight():
    x = np.arange(12.0) ** 2
    layout = Layout.of(x[:, None], np.ones(12), (None,), "quantile")
    expected = 0.5 * (x[1:-1:2] + x[2::2])
    np.testing.assert_allclose(layout.edges[0], expected)
    heavy = np.array([5.0, 0.0, 0.0, 1.0, 0.0, 5.0, 1.0])  # only values that count
    some = Layout.of(np.arange(7.0)[:, None], heavy, (None,), "quantile")
    np.testing.assert_array_equal(some.edges[0][:2], [1.5, 4.0])
    last = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 7.0])  # more than all others together
    late = Layout.of(np.arange(6.0)[:, None], last, (None,), "quantile")
    np.testing.assert_array_equal(late.edges[0], [1.5, 3.5, 4.5, np.nan, np.nan])


# ------------------------------------------------------------------------- damage


def damaged(layout):
    """One part of a good layout changed at a time."""
    P, Q = layout.P, len(layout.widths)
    yield replace(layout, levels=layout.levels[:-1])
    yield replace(layout, scored=-1)
    yield replace(layout, scored=P + 1)
    for name in ("powers", "origins", "scales"):
        yield replace(layout, **{name: getattr(layout, name)[:-1]})
    yield replace(layout, widths=layout.widths[:-1])
    yield replace(layout, edges=layout.edges[:, :-1])
    yield replace(layout, edges=layout.edges[:-1])
    for q in range(Q):
        for width in (0, layout.widths[q] + 1, 2**31 + 1):
            widths = layout.widths.copy()
            widths[q] = width
            yield replace(layout, widths=widths)
        categories = layout.categories.copy()
        categories[q] = 5
        yield replace(layout, categories=categories)
        edges = layout.edges.copy()
        edges[q, 0] = 0.5 if np.isnan(edges[q, 0]) else np.nan
        yield replace(layout, edges=edges)
    for p in range(P):
        for column in (-1, 5):
            numbers = layout.numbers.copy()
            numbers[p] = column
            yield replace(layout, numbers=numbers)
    yield replace(layout, levels=(None, 3, None, None, None))


@pytest.mark.parametrize("numeric", KINDS)
def test_parts_that_do_not_fit_are_refused(numeric):
    X, weights = gappy()
    good = Layout.of(X, weights, LEVELS, numeric)
    good.check(5)
    with pytest.raises(ValueError, match="do not fit"):
        good.check(4)
    for layout in damaged(good):
        with pytest.raises(ValueError, match="do not fit"):
            layout.check(5)


@pytest.mark.parametrize("numeric", KINDS)
def test_one_entry_per_feature_becomes_one_per_column(numeric):
    X, weights = gappy()
    layout = Layout.of(X, weights, LEVELS, numeric)
    assert sorted(layout.columns) == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(layout.by_column(layout.columns), np.arange(5))
    pairs = np.stack([layout.columns, -layout.columns])
    np.testing.assert_array_equal(layout.by_column(pairs)[1], -np.arange(5))
