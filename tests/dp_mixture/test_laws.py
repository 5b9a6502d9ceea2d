"""The laws for the mixture model: dense, sparse and memoized."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy.special import betaln

import mixture_reference as mixture
from core.test_laws import Laws, law, tables
from kplus.core import loop
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.moves import MergeComponents, MoveRecords
from kplus.dp_mixture.noise import Noise
from kplus.observations import DiagGaussian, Gaussian
from mixture_reference import Recording


def numbers(table):
    return np.ascontiguousarray(table.X, np.float64)


class MixtureLaws(Laws):
    """What the ways to use the model have in common."""

    n_start = 3
    n_active = None
    memoized = False

    def likelihood(self, middle, variances):
        return Gaussian(np.diag(variances), mean=middle)

    def model(self, table):
        """With a prior from ranges, which no order of sums can round otherwise."""
        used = table.weight() > 0.0
        X = numbers(table)[used]
        low, high = X.min(axis=0), X.max(axis=0)
        spread = np.where(high > low, high - low, 1e-3 * np.abs(high) + (high == 0.0))
        names = tuple(f"column {j}" for j in range(X.shape[1]))
        columns = Columns(names, (None,) * X.shape[1])
        likelihood = self.likelihood(low + 0.5 * (high - low), (0.2 * spread) ** 2)
        family = likelihood.resolve(X, table.weight()[used], columns)
        return Recording(family, n_active=self.n_active)

    def start(self, model, table):
        """Slices along the first column, and some of each row everywhere."""
        x, used = numbers(table)[:, 0], table.weight() > 0.0
        low, high = x[used].min(), x[used].max()
        place = (x - low) / (high - low) if high > low else np.zeros_like(x)
        k = np.clip(place * self.n_start, 0, self.n_start - 1).astype(int)
        R = 0.8 * np.eye(self.n_start)[k] + 0.2 / self.n_start
        params = mixture.components(model, numbers(table), R, table.weight())
        return model.ready(params, everyone=True)

    def moves(self):
        return [MergeComponents(MoveRecords())]

    def fit(self, table, block_rows=7, threads=1, max_iter=4):
        """A few passes: a mixture converges only little by little."""
        model = self.model(table)
        with self.engine(table, block_rows, threads) as engine:
            groups = None
            if self.memoized:
                groups = [*([index] for index in range(engine.n_blocks)), []]
            result = loop.run(
                model, engine, self.start(model, table),
                moves=self.moves(), groups=groups, max_iter=max_iter, tol=0.0,
            )  # fmt: skip
            return model, result, self.labels_of(engine)

    def statistics(self, total):
        extra = np.array([total.base, total.mass])
        return [total.N, total.S, total.entropy, total.pairs, extra]

    def labels(self, local):
        return local.labels

    def scale(self, params, table):
        """Log densities of a column are hundreds where it is on a tiny scale."""
        return 100.0 * table.weight().sum() * table.X.shape[1]

    def brute(self, model, table, R):
        """The model's summary of responsibilities, by its definition."""
        return mixture.stats_of(model, numbers(table), R, table.weight())

    @law
    @given(tables())
    def test_statistics_equal_brute_force(self, table):
        model, result, _ = self.fit(table)
        expected = self.brute(model, table, model.R)
        self.close(result.total, self.statistics(expected), 1e3 * table.n)

    @law
    @given(tables())
    def test_objective_equals_brute_force(self, table):
        model, result, _ = self.fit(table)
        model = model.at(result.params)  # its prior may have been learned
        expected = mixture.bound(model, numbers(table), model.R, table.weight())
        found = model.best_bound(result.total)
        slack = 1e-12 * self.scale(result.params, table)
        assert found == pytest.approx(expected, rel=1e-10, abs=slack)
        assert -result.history[-1] <= found + slack

    @law
    @given(tables())
    def test_counts_sum_to_n_and_no_row_is_dropped(self, table):
        model, result, labels = self.fit(table)
        assert labels.shape == (table.n,)
        np.testing.assert_allclose(model.R.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(result.total.N, table.weight() @ model.R, atol=1e-11)
        assert result.total.N.sum() == pytest.approx(table.weight().sum(), rel=1e-12)
        np.testing.assert_allclose(result.total.seen, result.total.N, rtol=1e-12)
        largest = model.R[np.arange(table.n), labels]
        np.testing.assert_array_equal(largest, model.R.max(axis=1))

    @law
    @given(tables())
    def test_reports_add_until_the_next_pass(self, table):
        """What was seen and what rows would lose; nothing takes it back."""
        model, params = self.some_params(table)
        cut = int(table.rng.integers(0, table.n))
        whole, _ = self.summary(model, params, table)
        last, _ = self.summary(model, params, table.at(np.arange(cut, table.n)))
        np.testing.assert_array_equal(whole.seen, whole.N)
        seen, removal_cost = whole.seen.copy(), whole.removal_cost.copy()
        whole -= last
        np.testing.assert_array_equal(whole.seen, seen)
        np.testing.assert_array_equal(whole.removal_cost, removal_cost)
        whole += last
        np.testing.assert_allclose(whole.seen, seen + last.seen, rtol=1e-12)
        np.testing.assert_allclose(
            whole.removal_cost, removal_cost + last.removal_cost, rtol=1e-12
        )
        kept = [part.copy() for part in self.statistics(whole)]
        whole.begin_pass()
        assert not np.any(whole.seen)
        assert not np.any(whole.removal_cost)
        assert not whole.collected
        for before, after in zip(kept, self.statistics(whole), strict=True):
            np.testing.assert_array_equal(before, after)

    @law
    @given(tables())
    def test_regroup_equals_recomputation(self, table):
        """Renumber, drop and join components: sums and per-row state follow."""
        model, params = self.some_params(table)
        for old_to_new in self.some_renumberings(params.K, table.rng):
            K = int(old_to_new.max()) + 1
            with self.engine(table) as engine:
                total = engine.sweep(model, params, range(engine.n_blocks))
                R = mixture.regrouped(model.R, old_to_new, K)
                found, expected = (
                    total.regroup(old_to_new, K),
                    self.brute(model, table, R),
                )
                for field in ("N", "S", "entropy", "seen"):
                    np.testing.assert_allclose(
                        getattr(found, field), getattr(expected, field),
                        rtol=1e-10, atol=1e-10 * table.n,
                    )  # fmt: skip
                for local in engine.locals():
                    self.check_local(model, local, old_to_new, K)

    def check_local(self, model, local, old_to_new, K):
        moved = model.regroup_local(local, old_to_new, K)
        before = old_to_new[local.labels]
        if moved is None:
            assert np.any(before < 0)
            return
        kept = before >= 0
        np.testing.assert_array_equal(self.labels(moved)[kept], before[kept])

    def some_renumberings(self, K, rng):
        yield self.some_renumbering(K, rng)
        if K > 1:
            old_to_new = np.arange(K) - (np.arange(K) > 1)
            old_to_new[1] = 0
            yield old_to_new

    @law
    @given(tables())
    def test_blocks_catch_up_with_renumbering(self, table):
        """After two renumberings that it missed, a block ends as if seen afresh."""
        model, params = self.some_params(table)
        with self.engine(table) as engine:
            blocks = range(engine.n_blocks)
            total = engine.sweep(model, params, blocks)
            for seed in (1, 2):
                old_to_new = self.some_renumbering(total.K, np.random.default_rng(seed))
                engine.regroup(old_to_new, int(old_to_new.max()) + 1)
                total = total.regroup(old_to_new, int(old_to_new.max()) + 1)
            params = model.posterior(total.N, total.S, total.mass)
            params = model.ready(params, everyone=True)
            again = engine.sweep(model, params, blocks)
            fresh, labels = self.summary(model, params, table)
            np.testing.assert_array_equal(self.labels_of(engine), labels)
            self.close(again, self.statistics(fresh), table.n)


class TestDense(MixtureLaws):
    pass


class TestDiagonal(MixtureLaws):
    """Scores by t(x), without lists of candidates."""

    def likelihood(self, middle, variances):
        return DiagGaussian(middle, expected_variance=variances)


class TestSparse(MixtureLaws):
    """Rows keep two components of those that they had and their neighbours."""

    n_start, n_active = 10, 2

    def moves(self):
        return []


class TestMemoized(MixtureLaws):
    """Parameters move between blocks, so that it matters how rows are cut."""

    memoized = True
    test_blocks_do_not_matter = None
    test_order_of_rows_does_not_matter = None
    test_weight_two_equals_a_row_twice = None


class TestNoise(MixtureLaws):
    """With noise: components have what it leaves of a row."""

    def model(self, table):
        model = super().model(table)
        X, weights = numbers(table), table.weight()
        return replace(model, noise=Noise.resolve(True, model.family, X, weights))

    def statistics(self, total):
        return [*super().statistics(total), np.array([total.noise])]

    def brute(self, model, table, R):
        X, w, stays = numbers(table), table.weight(), model.R.sum(axis=1)
        total = super().brute(model, table, R)
        inside = np.divide(R, stays[:, None], out=0.0 * R, where=stays[:, None] > 0.0)
        total.entropy = (w * stays) @ mixture.entropy(inside)
        total.pairs = np.array(
            [
                mixture.pair_entropy(inside, a, b, w * stays)
                for a in range(total.K)
                for b in range(a + 1, total.K)
            ]
        )
        log_base, density = model.family.log_base(X), model.noise.log_density(X)
        r0 = np.maximum(1.0 - stays, 0.0)
        total.base = model.noise.base(w, log_base, density, r0)
        total.noise = float(w @ r0)
        return total

    @law
    @given(tables())
    def test_objective_equals_brute_force(self, table):
        model, result, _ = self.fit(table)
        model = model.at(result.params)
        X, w = numbers(table), table.weight()
        r0 = np.clip(1.0 - model.R.sum(axis=1), 0.0, 1.0)
        expected = mixture.bound(model, X, model.R, w)
        expected += w @ (r0 * model.noise.log_density(X) + mixture.entropy(r0))
        expected += betaln(1.0 + w @ r0, 19.0 + w @ (1.0 - r0)) - betaln(1.0, 19.0)
        found = model.best_bound(result.total)
        slack = 1e-12 * self.scale(result.params, table)
        assert found == pytest.approx(expected, rel=1e-10, abs=slack)
        assert -result.history[-1] <= found + slack

    @law
    @given(tables())
    def test_counts_sum_to_n_and_no_row_is_dropped(self, table):
        model, result, labels = self.fit(table)
        total, left = result.total, model.R.sum(axis=1)
        assert labels.shape == (table.n,)
        np.testing.assert_allclose(total.N, table.weight() @ model.R, atol=1e-11)
        assert total.N.sum() + total.noise == pytest.approx(total.mass, rel=1e-12)
        assert total.mass == pytest.approx(table.weight().sum(), rel=1e-12)
        sure = np.abs(left - 0.5) > 1e-9
        np.testing.assert_array_equal((labels < 0)[sure], (left < 0.5)[sure])
        rows = np.flatnonzero(labels >= 0)
        largest = model.R[rows, labels[rows]]
        np.testing.assert_array_equal(largest, model.R[rows].max(axis=1))

    def check_local(self, model, local, old_to_new, K):
        moved = model.regroup_local(local, old_to_new, K)
        before = old_to_new[local.leading]
        if moved is None:
            assert np.any(before < 0)
            return
        np.testing.assert_array_equal(moved.noise, local.noise)
        kept = before >= 0
        np.testing.assert_array_equal(moved.leading[kept], before[kept])
