"""Families of counts on sparse tables: the same as on dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from kplus import DPMixture
from kplus.core.errors import DataError
from kplus.data.blocks import SparseBlocks
from kplus.data.sparse_rows import SparseRows
from kplus.dp_mixture.axes import PairAxes
from kplus.dp_mixture.drawn_rows import drawn_rows
from kplus.dp_mixture.families import by_name
from kplus.dp_mixture.families.family import ByComponent, Columns

FAMILIES = ["poisson", "negative_binomial", "multinomial", "bernoulli"]


def counts(name, n=150, D=8, seed=1):
    """Rows of three groups, mostly zeros."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    rates = rng.gamma(0.4, 1.0, (3, D)) * 3
    X = rng.poisson(rates[z] * rng.gamma(2.0, 0.5, (n, D)))
    return (np.minimum(X, 1) if name == "bernoulli" else X).astype(float)


def columns_of(D):
    return Columns(tuple(f"column {j}" for j in range(D)), (None,) * D)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("missing", [False, True])
def test_pieces_are_those_of_dense_rows(name, missing):
    X = counts(name, 40)
    if missing:
        if name == "multinomial":
            return
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    rows, columns = SparseRows.of(sp.csr_array(X)), columns_of(8)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, 40)
    family = by_name(name).resolve(X, weights, columns)
    again = by_name(name).resolve(rows, weights, columns)
    for field in family.shapes:
        np.testing.assert_allclose(getattr(again, field), getattr(family, field))
    family.check(rows)
    starts = np.array([0, 15, 15, 40])
    members = ByComponent(starts, np.arange(40), weights)
    S = family.sums(X, members)
    N = np.array([weights[:15].sum(), 0.0, weights[15:].sum()])
    np.testing.assert_allclose(family.sums(rows, members), S, rtol=1e-11, atol=1e-11)
    near = {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(family.log_base(rows), family.log_base(X), **near)
    expected = family.expect(N, S)
    dense = family.scores(expected, X)
    np.testing.assert_allclose(family.scores(expected, rows), dense, **near)
    chosen = np.random.default_rng(2).integers(-1, 3, (40, 2)).astype(np.int32)
    found = family.scores(expected, rows, chosen)
    np.testing.assert_allclose(found, family.scores(expected, X, chosen), **near)
    np.testing.assert_allclose(
        family.log_predictive(N, S, rows), family.log_predictive(N, S, X), **near
    )
    seed = np.nan_to_num(X[3])
    np.testing.assert_allclose(
        family.dissimilarity(rows, seed, N[:1], S[:1]),
        family.dissimilarity(X, seed, N[:1], S[:1]),
        **near,
    )


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("noise", [False, 0.05])
def test_fits_are_those_of_dense_tables(name, noise):
    X = counts(name)
    dense = DPMixture(name, noise=noise, random_state=0).fit(X)
    sparse = DPMixture(name, noise=noise, random_state=0).fit(sp.csr_matrix(X))
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    assert sparse.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-9)
    np.testing.assert_array_equal(sparse.predict(sp.csc_array(X)), dense.labels_)
    np.testing.assert_allclose(
        sparse.predict_proba(sp.coo_matrix(X)), dense.predict_proba(X), atol=1e-9
    )
    np.testing.assert_allclose(
        sparse.score_samples(sp.csr_array(X, dtype=np.float32)), dense.score_samples(X)
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_batches_of_a_stream(name):
    X = counts(name, 200)
    dense, sparse = (DPMixture(name, random_state=0) for _ in range(2))
    for part in (X[:100], X[100:]):
        dense.partial_fit(part)
        sparse.partial_fit(sp.csr_array(part, dtype=np.int64))
    # Rounding may decide on which component a birth is tried, and so the last digits.
    assert sparse.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)


def test_gaps_are_filled_as_in_a_dense_table():
    X = counts("poisson", 60)
    X[3, 2] = X[40, 0] = np.nan
    model = DPMixture("poisson", random_state=0).fit(sp.csr_array(X))
    filled = model.impute(sp.csr_array(X))
    np.testing.assert_allclose(filled.toarray(), model.impute(X))


def test_what_is_no_count_is_named():
    X = sp.csr_array(np.array([[0.0, 1.5], [2.0, 0.0]]))
    with pytest.raises(DataError, match=r"Column 1 holds 1\.5"):
        DPMixture("poisson").fit(X)
    X.data[0] = np.nan
    with pytest.raises(DataError, match="Column 1 holds nan"):
        DPMixture("multinomial").fit(X)


def wide(n=120, D=1500, seed=0):
    """Two groups that differ in 5 % of many columns."""
    rng = np.random.default_rng(seed)
    base = rng.lognormal(-2.0, 1.0, D)
    z = np.arange(n) % 2
    rates = np.stack([base, base * np.where(rng.random(D) < 0.05, 8.0, 1.0)])
    return sp.csr_array(rng.poisson(rates[z])), z


def test_draws_of_many_columns_are_sparse():
    X, _ = wide()
    rows = SparseRows.of(X)
    family = by_name("poisson").resolve(rows, None, columns_of(1500))
    members = ByComponent(np.array([0, 120]), np.arange(120), np.ones(120))
    N, S = np.array([120.0]), family.sums(rows, members)
    drawn = drawn_rows(family, N, S, np.array([3000]), np.random.default_rng(0))
    assert isinstance(drawn, SparseRows)
    assert len(drawn) == 3000
    means = drawn.by_column(np.full(3000, 1 / 3000), drawn.values)
    np.testing.assert_allclose(means.sum(), X.sum() / 120, rtol=0.02)
    model = DPMixture("poisson", n_components=2, moves=(), random_state=0).fit(X)
    along = PairAxes.of(model._params, np.array([[0, 1]]))
    assert along.coefficients.shape == (1, 2)


def test_kinds_that_differ_in_few_of_many_columns_are_found():
    """Cells of three kinds: nearly all columns are those of all of them."""
    rng = np.random.default_rng(4)
    kinds = np.tile(rng.lognormal(0.0, 1.5, 2000), (3, 1))
    kinds[rng.random(kinds.shape) < 0.03] *= 4.0
    z = rng.integers(0, 3, 240)
    depth = 800.0 * rng.lognormal(0.0, 0.4, (240, 1))
    X = rng.poisson(depth * kinds[z] / kinds[z].sum(axis=1, keepdims=True))
    model = DPMixture("multinomial", random_state=0).fit(sp.csr_array(X))
    assert adjusted_rand_score(z, model.labels_) > 0.95


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_sparse_counts_are_not_made_dense_by_auto(kind, monkeypatch):
    X = sp.csr_array(counts("poisson", 80), dtype=kind)

    def refuse(*_):
        pytest.fail("rows were made dense")

    monkeypatch.setattr(SparseBlocks, "read", refuse)
    monkeypatch.setattr(SparseBlocks, "take", refuse)
    model = DPMixture(n_components=2, moves=(), random_state=0).fit(X)
    assert "multinomial" in model.choice_
    assert "80 rows" in model.choice_
    assert len(model.predict(X[:5])) == 5
    model.partial_fit(X)


def test_what_auto_chose_for_numbers_takes_whole_ones_later():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = DPMixture(n_components=2, moves=(), random_state=0).fit(sp.csr_array(X))
    whole = sp.csr_array(np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(model.predict(whole), model.predict(whole.toarray()))
