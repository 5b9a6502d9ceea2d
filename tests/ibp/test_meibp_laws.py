"""The laws of all models, for MEIBP: fixed and inferred scales, both priors, gaps."""

from dataclasses import replace

import numpy as np
from hypothesis import given

import meibp_reference as obvious
from core.test_laws import Laws, Table, law, tables
from kplus.core import loop
from kplus.ibp.factors import GaussianFactors, TruncatedFactors
from kplus.ibp.meibp_model import (
    DropEmpty,
    DropFeature,
    IBPParams,
    MEIBPModel,
    renumbered,
)
from kplus.linear.bits import regroup_columns


class MEIBPLaws(Laws):
    """A label is the number of z. There are no weights; every row counts."""

    kind = TruncatedFactors
    infer = (False, False, False)
    greedy = None
    gaps = False

    def rows(self, table):
        X = table.X.astype(np.float64)
        if self.gaps:
            # By value, so that it does not matter which other rows there are.
            hidden = np.sin(1e5 * np.frexp(X)[0]) > 0.5
            hidden[:, 0] = False
            X = np.where(hidden, np.nan, X)
        return X

    def engine(self, table, block_rows=7, threads=1):
        plain = replace(table, X=self.rows(table), weights=None)
        return super().engine(plain, block_rows, threads)

    def model(self, table):
        return MEIBPModel(*self.infer, self.greedy)

    def start(self, model, table):
        """Features from extremes and means of columns; a quarter of them is noise."""
        X = self.rows(table)
        X = np.where(np.isnan(X).all(axis=0), 0.0, X)
        low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        middle = low + np.nanmean(X - low, axis=0)
        A = np.stack([low, middle - low, high - middle, 0.5 * (high - low)])
        size = max(float(np.mean((high - low) ** 2)), 1e-20 * float(np.mean(low**2)))
        size = size if size > 0.0 else 1.0
        noise, spread = size / 16.0, size + float(np.mean(low**2))
        return IBPParams(self.kind.near(A, noise), noise, spread, 1.5, np.zeros(4))

    def fit(self, table, block_rows=7, threads=1, max_iter=200):
        """Bounds of which only rounding differs count as equal."""
        model = self.model(table)
        with self.engine(table, block_rows, threads) as engine:
            result = loop.run(
                model, engine, self.start(model, table), moves=self.moves(),
                max_iter=max_iter, tol=1e-12,
            )  # fmt: skip
            return model, result, self.labels_of(engine)

    def moves(self):
        return [DropEmpty(), DropFeature()]

    def statistics(self, total):
        S = total.S[total.group]
        return [S, total.T, np.array(total.error), total.counts]

    def close(self, some, others, scale):
        """T are sums of data, the error is one of squares."""
        size = float(np.max(np.abs(some.A), initial=1e-300))
        units = [1.0, size, size * min(size, 10.0), 1.0]
        found = self.statistics(some)
        for one, other, unit in zip(found, others, units, strict=True):
            np.testing.assert_allclose(
                one, other, rtol=1e-9, atol=1e-12 * scale * unit + 1e-300
            )

    def labels(self, local):
        return self.numbers(local.unpack())

    def numbers(self, Z):
        return Z.astype(np.int64) @ (1 << np.arange(Z.shape[1]))

    def bits(self, labels, K):
        return ((labels[:, None] >> np.arange(K)) & 1).astype(np.uint8)

    def brute_objective(self, model, params, table, labels):
        X, Z = self.rows(table), self.bits(labels, params.K)
        used = np.flatnonzero(Z.any(axis=0))
        factors, Z = params.factors, Z[:, used]
        D, K = X.shape[1], len(used)
        mean = factors.mean[used]
        if self.kind is TruncatedFactors:
            covariance = np.zeros((D, K, K))
            for k in range(K):
                covariance[:, k, k] = factors._moments[1][used[k]]
        else:
            covariance = factors.covariance[factors.group][:, used[:, None], used]
        total = obvious.log_prior(Z, params.alpha)
        total += obvious.expected_likelihood(X, Z, mean, covariance, params.noise)
        if K:
            gains = factors.own_gains(params.spread)
            total += gains[used].sum() if self.kind is TruncatedFactors else (
                renumbered(params, _kept(used, params.K), K, mean[:0])
                .factors.gain(params.spread)
            )  # fmt: skip
        return -total

    def brute_statistics(self, params, table, labels):
        X, Z = self.rows(table), self.bits(labels, params.K).astype(float)
        seen = ~np.isnan(X)
        R = np.where(seen, X - Z @ params.factors.mean, 0.0)
        S = np.einsum("nk,nj,nd->dkj", Z, Z, seen.astype(float))
        return [S, Z.T @ R, np.array(np.sum(R**2)), Z.sum(axis=0)]

    def renumbered(self, params, old_to_new):
        K = int(old_to_new.max()) + 1
        return renumbered(params, old_to_new, K, params.factors.mean[:0])

    def scale(self, params, table):
        """Residuals are as exact as the data; the bound has them by the noise."""
        X = np.nan_to_num(self.rows(table))
        size = np.sum(X**2)
        spread = np.sum((X - X.mean(axis=0)) ** 2)
        digits = np.sqrt(size * (spread + params.noise * X.size)) + 1e-15 * size
        return float(digits / params.noise)

    # Rows have no weights here, and any number of features; bits come from what was.
    test_weight_two_equals_a_row_twice = None
    test_counts_sum_to_n_and_no_row_is_dropped = None

    @law
    @given(tables())
    def test_regroup_equals_recomputation(self, table):
        """Rows lose the features that go; sums and bits are those of what is left."""
        model, params = self.some_params(table)
        if params.K == 0:
            return
        old_to_new = self.some_renumbering(params.K, table.rng)
        K = int(old_to_new.max()) + 1
        total, labels = self.summary(model, params, table)
        Z = regroup_columns(self.bits(labels, params.K), old_to_new, K)
        after = self.renumbered(params, old_to_new)
        expected = self.brute_statistics(after, table, self.numbers(Z))
        self.close(total.regroup(old_to_new, K), expected, table.n)
        with self.engine(table) as engine:
            engine.sweep(model, params, range(engine.n_blocks))
            moved = [
                model.regroup_local(local, old_to_new, K) for local in engine.locals()
            ]
        found = np.concatenate([local.unpack() for local in moved])
        np.testing.assert_array_equal(found, Z)

    @law
    @given(tables())
    def test_blocks_catch_up_with_renumbering(self, table):
        """After two renumberings that it missed, a block goes on from what is left."""
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
        changed = np.any(self.bits(labels, params.K) != Z, axis=1)
        assert total.changed == np.count_nonzero(changed)

    @law
    @given(tables())
    def test_ME_17_rows_converge(self, table):
        """ME-17: at some point no row changes any more."""
        model, result, _ = self.fit(table)
        with self.engine(table) as engine:
            blocks = range(engine.n_blocks)
            params = result.params
            changed = []
            for _ in range(60):
                total = engine.sweep(model, params, blocks)
                changed.append(total.changed)
                params = model.update(params, total)
        assert changed[-1] == 0
        assert total.weight == table.n


def _kept(kept, K):
    old_to_new = np.full(K, -1)
    old_to_new[kept] = np.arange(len(kept))
    return old_to_new


class TestNonnegative(MEIBPLaws):
    """Scales are given."""


class TestNonnegativeGaps(MEIBPLaws):
    gaps = True
    infer = (True, True, True)


class TestGaussian(MEIBPLaws):
    kind = GaussianFactors


class TestGaussianGapsInferred(MEIBPLaws):
    kind = GaussianFactors
    gaps = True
    infer = (True, True, True)


class TestDoubleGreedy(MEIBPLaws):
    greedy = 5

    # What is drawn for a row depends on its number.
    test_order_of_rows_does_not_matter = None
    test_summaries_add = None


def test_the_laws_draw_gaps():
    table = Table(np.random.default_rng(0).normal(size=(30, 3)), None, 0)
    found = np.isnan(TestNonnegativeGaps().rows(table))
    assert 0.05 < found.mean() < 0.6
    assert not found.all(axis=1).any()
    order = np.random.default_rng(1).permutation(30)
    again = np.isnan(TestNonnegativeGaps().rows(table.at(order)))
    np.testing.assert_array_equal(again, found[order])
