"""Latent features as a model: the laws, and sums against sums computed directly."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import feature_reference as obvious
from core.test_laws import Laws, law, tables
from kplus.core import loop
from kplus.core.errors import NotFiniteError
from kplus.data.blocks import ArrayBlocks
from kplus.engine import SerialEngine
from kplus.features.model import (
    MOST_CANDIDATES,
    Candidates,
    FeatureModel,
    Features,
    FeatureSums,
)
from kplus.features.moves import OpenFeatures, RemoveFeature, TidyFeatures
from kplus.linear.bits import Allocation, regroup_columns
from kplus.linear.sums import as_groups, regroup_features


def _each_column(one, other):
    """S of complete rows holds for every column where others have gaps."""
    shape = one.shape if one.ndim > other.ndim else other.shape
    return np.atleast_1d(np.broadcast_to(one, shape), np.broadcast_to(other, shape))


class FeatureLaws(Laws):
    """What the ways to use the model have in common. A label is the number of z."""

    exact = False
    most = 10**6

    def rows(self, table):
        return table.X.astype(np.float64)

    def engine(self, table, block_rows=7, threads=1):
        return super().engine(replace(table, X=self.rows(table)), block_rows, threads)

    def model(self, table):
        X, w = self.rows(table), table.weight()
        spread = w @ np.nansum((X - self.mean(table)) ** 2, axis=1) / w.sum()
        return FeatureModel(0.3 * spread if spread > 1e-28 else 1.0, self.most)

    def mean(self, table):
        """Of each column's observed values; 0 where there are none."""
        X, used = self.rows(table), table.weight() > 0.0
        means = np.zeros(X.shape[1])
        for d, column in enumerate(X.T):
            seen = used & ~np.isnan(column)
            if seen.any():
                first = column[seen][0]
                shares = table.weight()[seen]
                means[d] = first + np.average(column[seen] - first, weights=shares)
        return means

    def start(self, model, table):
        return Features(self.mean(table)[None], self.exact)

    def moves(self):
        return [TidyFeatures(), RemoveFeature(), OpenFeatures(self.most)]

    def statistics(self, total):
        return [total.by_column(), total.T, np.array(total.error), total.counts]

    def close(self, some, others, scale):
        """In the units of the features: T are sums of data, the error of squares."""
        size = float(np.max(np.abs(some.A), initial=1e-300))
        units = [1.0, size, size * min(size, 10.0), 1.0]
        for one, other, unit in zip(self.statistics(some), others, units, strict=True):
            slack = 1e-13 * scale * unit
            for a, b in zip(*_each_column(one, other), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=slack)

    def labels(self, local):
        return self.numbers(local.unpack())

    def numbers(self, Z):
        assert Z.shape[1] < 62
        return Z.astype(np.int64) @ (1 << np.arange(Z.shape[1]))

    def bits(self, labels, K):
        return ((labels[:, None] >> np.arange(K)) & 1).astype(np.uint8)

    def brute_objective(self, model, params, table, labels):
        Z = self.bits(labels, params.K)
        return obvious.objective(
            self.rows(table), Z, params.A, model.penalty, table.weights
        )

    def brute_statistics(self, params, table, labels):
        X, Z = self.rows(table), self.bits(labels, params.K)
        S, T, error, counts = obvious.sums(X, Z, params.A, table.weights)
        return [S, T, np.array(error), counts]

    def renumbered(self, params, old_to_new):
        K = int(old_to_new.max()) + 1
        return replace(params, A=regroup_features(params.A, old_to_new, K))

    def scale(self, params, table):
        """Residuals are as exact as the data: their squares are more so."""
        X, w = self.rows(table), table.weight()
        size = w @ np.nansum(X**2, axis=1)
        spread = w @ np.nansum((X - self.mean(table)) ** 2, axis=1)
        return float(np.sqrt(size * spread) + 1e-15 * size)

    @law
    @given(tables())
    def test_counts_sum_to_n_and_no_row_is_dropped(self, table):
        """A row may have any number of features: each is counted by its own rows."""
        _, result, labels = self.fit(table)
        assert labels.shape == (table.n,)
        assert result.total.weight == pytest.approx(table.weight().sum(), rel=1e-12)
        expected = table.weight() @ self.bits(labels, result.params.K)
        np.testing.assert_allclose(result.total.counts, expected, rtol=1e-12)
        assert np.all(expected > 0.0)

    @law
    @given(tables())
    def test_regroup_equals_recomputation(self, table):
        """Rows lose the features that go; Z and sums are those of what is left."""
        model, params = self.some_params(table)
        if params.K == 0:
            return
        old_to_new = self.some_renumbering(params.K, table.rng)
        K = int(old_to_new.max()) + 1
        total, labels = self.summary(model, params, table)
        Z = regroup_columns(self.bits(labels, params.K), old_to_new, K)
        after = self.renumbered(params, old_to_new)
        expected = self.brute_statistics(after, table, self.numbers(Z))
        found = total.regroup(old_to_new, K)
        np.testing.assert_array_equal(found.A, after.A)
        self.close(found, expected, table.n)
        local = Allocation.of(self.bits(labels, params.K))
        np.testing.assert_array_equal(
            model.regroup_local(local, old_to_new, K).unpack(), Z
        )

    @law
    @given(tables())
    def test_blocks_catch_up_with_renumbering(self, table):
        """After two renumberings that it missed, a block goes on from what is left.

        An exact search begins from nothing, so that it ends as if seen afresh.
        """
        model, params = self.some_params(table)
        if params.K == 0:
            return
        with self.engine(table) as engine:
            blocks = range(engine.n_blocks)
            engine.sweep(model, params, blocks)
            Z = self.bits(self.labels_of(engine), params.K)
            for seed in (1, 2):
                old_to_new = self.some_renumbering(
                    params.K, np.random.default_rng(seed)
                )
                params = self.renumbered(params, old_to_new)
                engine.regroup(old_to_new, params.K)
                Z = regroup_columns(Z, old_to_new, params.K)
            total = engine.sweep(model, params, blocks)
            labels = self.labels_of(engine)
            self.close(total, self.brute_statistics(params, table, labels), table.n)
            X, after = self.rows(table), self.bits(labels, params.K)
            before = obvious.row_errors(X, Z, params.A)
            slack = 1e-12 * np.max(np.abs(params.A)) * np.sqrt(before)
            assert np.all(obvious.row_errors(X, after, params.A) <= before + slack)
            assert total.changed == np.sum(np.any(after != Z, axis=1))
            if self.exact:
                _, fresh = self.summary(model, params, table)
                np.testing.assert_array_equal(labels, fresh)

    @law
    @given(tables())
    def test_a_fit_converges_where_no_flip_and_no_new_feature_helps(self, table):
        """Proposition 1: finitely many passes, and local in the sense of Alg. 1."""
        model, result, labels = self.fit(table)
        assert result.converged
        X, A = self.rows(table), result.params.A
        Z = self.bits(labels, len(A))
        errors, w = obvious.row_errors(X, Z, A), table.weight()
        slack = 1e-13 * self.scale(result.params, table)
        gains = w[:, None] * (errors[:, None] - obvious.flip_errors(X, Z, A))
        assert np.all(gains <= 1e-9 * errors.max() + slack)
        if len(A) < self.most:
            assert np.all(w * errors <= model.penalty * (1 + 1e-12) + slack)
        best = obvious.error(X, Z, obvious.features(X, Z, w), w)
        assert w @ errors <= best * (1 + 1e-9) + slack

    # A row of weight two pays for a feature of its own where each of two copies does
    # not: Algorithm 1 tries features of single rows only. `TestClosing` has the law.
    test_weight_two_equals_a_row_twice = None


class TestFlips(FeatureLaws):
    """BP-means by single flips, as in the paper (Algorithm 1)."""


class TestExact(FeatureLaws):
    """The best z of all 2^K in each pass."""

    exact = True


class TestGaps(FeatureLaws):
    """With missing entries; which ones depends on a row's values alone."""

    exact = True

    def rows(self, table):
        X = table.X.astype(np.float64)
        gaps = np.floor(np.abs(X) * 8.0) % 5.0 == 1.0
        gaps[:, 0] = False
        return np.where(gaps, np.nan, X)


class TestClosing(FeatureLaws):
    """Features may go but none may come: from extreme rows and the mean."""

    exact = True
    most = 0
    test_weight_two_equals_a_row_twice = Laws.test_weight_two_equals_a_row_twice

    def start(self, model, table):
        X, mean = self.rows(table), self.mean(table)
        used = X[table.weight() > 0.0]
        place = used @ np.linspace(1.0, 2.0, X.shape[1])
        ends = used[[np.argmin(place), np.argmax(place)]] - mean
        return Features(np.vstack([mean, ends]), self.exact)

    def moves(self):
        return [TidyFeatures(), RemoveFeature()]


class TestFixedNumber(TestClosing):
    """K-features (Eq. 14): what is empty or equal is filled up from costly rows."""

    most = 3
    # The order of costs decides which rows fill up; weights double them, copies do not.
    test_weight_two_equals_a_row_twice = None

    def model(self, table):
        return FeatureModel(0.0, self.most)

    def moves(self):
        return [TidyFeatures(), OpenFeatures(self.most)]


# -------------------------------------------------------------------------- sums


def summarized(X, A, *, weights=None, exact=False, penalty=0.0, most=0, rows=7):
    """Sums, and Z, of a first visit."""
    model, params = FeatureModel(penalty, most), Features(A, exact)
    with SerialEngine(ArrayBlocks(X, rows), weights) as engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
        Z = np.concatenate([local.unpack() for local in engine.locals()])
    return total, Z


def check_sums(total, X, Z, weights=None, atol=1e-10):
    S, T, error, counts = obvious.sums(X, Z, total.A, weights)
    found = total.by_column()
    if S.ndim > found.ndim:
        S = S[0]
    np.testing.assert_allclose(found, np.broadcast_to(S, found.shape), atol=atol)
    np.testing.assert_allclose(total.T, T, atol=atol)
    assert total.error == pytest.approx(error, rel=1e-9, abs=atol)
    np.testing.assert_allclose(total.counts, counts, atol=atol)


def mixed(seed=0, n=30, D=4, K=3):
    """Blocks with gaps and complete ones, weights (some zero) and features."""
    X, Z, A = obvious.planted(n, D, K, seed, noise=0.5)
    X[: n // 2] = obvious.with_gaps(X[: n // 2], 0.3, seed)
    weights = np.random.default_rng(seed).uniform(0.0, 2.0, n)
    weights[::6] = 0.0
    return X, Z, A, weights


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sums_of_complete_blocks_and_blocks_with_gaps(seed, weighted):
    X, _, A, weights = mixed(seed)
    weights = weights if weighted else None
    total, Z = summarized(X, A, weights=weights)
    assert total.S.shape == (4, 3, 3)
    check_sums(total, X, Z, weights)
    for other in (A + 0.3, 0.0 * A, 2.0 * A):
        check_sums(total.about(other), X, Z, weights)


@pytest.mark.parametrize("gaps", [False, True])
def test_equal_features_are_fused(gaps):
    """Rows of A are added, the rows and the error stay (MB-3)."""
    X, _, _, weights = mixed()
    X = 8.0 + 0.1 * (X if gaps else np.nan_to_num(X))
    A = np.vstack([np.full(4, 5.0), np.full(4, 3.0)])
    total, Z = summarized(X, A, weights=weights, exact=True)
    np.testing.assert_array_equal(Z, 1)
    found = total.regroup(np.array([0, 0]), 1)
    np.testing.assert_array_equal(found.A, [[8.0] * 4])
    check_sums(found, X, Z[:, :1], weights)
    assert found.error == pytest.approx(total.error, rel=1e-12)


def test_sums_about_features_keep_their_digits():
    """The base may be 1e8 times what differs between rows."""
    X, _, A = obvious.planted(40, 3, 2, noise=0.1, offset=1e8)
    A = np.vstack([np.full(3, 1e8), A])
    total, Z = summarized(X, A)
    residuals = X - Z @ A
    assert total.error == pytest.approx(np.vdot(residuals, residuals), rel=1e-12)
    moved = total.about(A + 0.01)
    residuals = X - Z @ (A + 0.01)
    assert moved.error == pytest.approx(np.vdot(residuals, residuals), rel=1e-6)


def test_reports_add_and_are_cleared():
    X, _, A, _ = mixed()
    total, _ = summarized(X, A, penalty=0.1, most=9)
    assert total.changed == len(X)
    assert len(total.candidates.rows) > 0
    total.begin_pass()
    assert total.changed == 0
    assert len(total.candidates.rows) == 0


def test_candidates_are_the_costliest_rows_however_blocks_are_cut():
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(90, 3)), rng.normal(size=(2, 3))
    weights = rng.uniform(0.5, 2.0, 90)
    found = [
        summarized(X, A, weights=weights, penalty=0.5, most=9, rows=rows)
        for rows in (7, 90)
    ]
    total, Z = found[0]
    costs = weights * obvious.row_errors(X, Z, A)
    expected = np.argsort(-costs)[:MOST_CANDIDATES]
    for total, _ in found:
        np.testing.assert_array_equal(total.candidates.rows, expected)
        np.testing.assert_allclose(total.candidates.costs, costs[expected])
        np.testing.assert_allclose(
            total.candidates.residuals, (X - Z @ A)[expected], atol=1e-13
        )


def test_candidates_that_tie_go_by_row_number():
    one = Candidates(np.array([5, 9]), np.array([2.0, 1.0]), np.zeros((2, 1)))
    other = Candidates(np.array([2, 3]), np.array([2.0, 1.0]), np.ones((2, 1)))
    merged = one.merge(other)
    np.testing.assert_array_equal(merged.rows, [2, 5, 3, 9])
    np.testing.assert_array_equal(merged.residuals[:, 0], [1, 0, 1, 0])


def costly_rows(X, A, penalty):
    """The rows for which a feature of their own would lower the objective."""
    total, _ = summarized(X, A, exact=True, penalty=penalty, most=len(A) + 3, rows=10)
    return total.candidates


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("penalty", [0.0, 1e-12])
def test_rows_that_features_explain_but_for_rounding_want_none(size, penalty):
    rng = np.random.default_rng(0)
    A = size * rng.normal(size=(4, 5))
    X = rng.integers(0, 2, (40, 4)) @ A
    X *= 1.0 + 1e-16 * rng.integers(-1, 2, X.shape)  # a last digit here and there
    assert len(costly_rows(X, A, penalty * size**2).rows) == 0
    X[7, 2] += 1e-3 * size
    candidates = costly_rows(X, A, penalty * size**2)
    np.testing.assert_array_equal(candidates.rows, [7])
    assert candidates.costs[0] == pytest.approx(1e-6 * size**2, rel=1e-3)


def test_without_features_rows_cost_their_squares():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 2.0]])
    candidates = costly_rows(X, np.empty((0, 2)), 1.0)
    np.testing.assert_array_equal(candidates.rows, [0, 2])
    np.testing.assert_allclose(candidates.costs, [25.0, 4.0])
    np.testing.assert_allclose(candidates.residuals, [[3.0, 4.0], [0.0, 2.0]])


# ------------------------------------------------------------------------ update


def updated(X, Z, A, weights=None):
    """A after one update from sums about A."""
    model = FeatureModel()
    S, T, error, counts = obvious.sums(X, Z, A, weights)
    total = FeatureSums(A, *as_groups(S, X.shape[1]), T, error, float(len(X)), counts)
    return model.update(Features(A), total).A, total


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_update_is_least_squares(seed, gaps):
    X, Z, A, weights = mixed(seed)
    X = X if gaps else np.nan_to_num(X)
    found, total = updated(X, Z, A + 1.0, weights)
    np.testing.assert_allclose(found, obvious.features(X, Z, weights), atol=1e-9)
    best = obvious.error(X, Z, found, weights)
    assert FeatureModel().objective(Features(found), total) == pytest.approx(best)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", ["equal", "sum", "empty"])
def test_update_survives_features_that_depend_on_each_other(kind, gaps):
    X, Z, A, weights = mixed(K=2)
    X = X if gaps else np.nan_to_num(X)
    Z[:, 1] &= 1 - Z[:, 0]
    third = {"equal": Z[:, 0], "sum": Z[:, 0] | Z[:, 1], "empty": 0 * Z[:, 0]}[kind]
    Z = np.column_stack([Z, third])
    A = np.vstack([A, A[0]])
    found, _ = updated(X, Z, A, weights)
    best = obvious.error(X, Z, obvious.features(X, Z, weights), weights)
    assert obvious.error(X, Z, found, weights) == pytest.approx(best, rel=1e-10)
    # the shortest step: what no row tells of stays as it was
    step = obvious.features(X - Z @ A, Z, weights)
    np.testing.assert_allclose(found, A + step, atol=1e-9)


# -------------------------------------------------------------------- other things


def test_no_features_at_all():
    X, _, _, weights = mixed()
    total, Z = summarized(X, np.empty((0, 4)), weights=weights)
    assert Z.shape == (30, 0)
    assert total.error == pytest.approx(weights @ np.nansum(X**2, axis=1))


@pytest.mark.parametrize("K", [0, 2])
@pytest.mark.parametrize("values", [[np.inf], [np.inf, -np.inf], [np.nan, np.inf]])
def test_infinite_values_are_refused(values, K):
    """Without a warning of numpy's, which would come first."""
    X = np.ones((5, 3))
    X[2, : len(values)] = values
    with pytest.raises(NotFiniteError):
        summarized(X, np.ones((K, 3)))


def test_squares_that_overflow_are_refused():
    with pytest.raises(NotFiniteError):
        summarized(np.full((3, 2), 1e300), np.ones((1, 2)))


@pytest.mark.parametrize("exact", [False, True])
def test_equals_the_obvious_algorithm_4(exact):
    """K-features: z by flips or enumeration, A by least squares, in turn."""
    X, _, A = obvious.planted(40, 4, 3, noise=0.4)
    A = A + 0.5
    with SerialEngine(ArrayBlocks(X, 9), None) as engine:
        result = loop.run(
            FeatureModel(), engine, Features(A, exact), max_iter=50, tol=0.0
        )
        Z = np.concatenate([local.unpack() for local in engine.locals()])
    assert result.converged
    ours, history = np.zeros((40, 3), np.uint8), []
    for _ in range(len(result.history)):
        ours = obvious.best_rows(X, A) if exact else _flipped(X, ours, A)
        history.append(obvious.error(X, ours, A))
        A = obvious.features(X, ours)
    np.testing.assert_allclose(result.history, history, rtol=1e-9)
    np.testing.assert_array_equal(Z, ours)


def _flipped(X, Z, A):
    """Each row flips the bit that helps most until none does."""
    Z = Z.copy()
    while True:
        gains = obvious.row_errors(X, Z, A)[:, None] - obvious.flip_errors(X, Z, A)
        best = np.argmax(gains, axis=1)
        rows = np.flatnonzero(gains[np.arange(len(X)), best] > 1e-12)
        if not len(rows):
            return Z
        Z[rows, best[rows]] ^= 1
