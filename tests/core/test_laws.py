"""The laws that every model obeys; a model's own test inherits them.

A subclass says with a handful of small methods how to make its model; see
`Laws`. The data sets are drawn by hypothesis: few rows, often equal ones, constant
columns, a huge offset, a tiny scale, integers, a single row.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kplus.core import loop
from kplus.core.memo import add_up
from kplus.data.blocks import ArrayBlocks
from kplus.engine import SerialEngine, ThreadEngine
from reference import canonical

# One law serves several models, hence several classes.
law = settings(max_examples=25, suppress_health_check=[HealthCheck.differing_executors])


@dataclass(frozen=True)
class Table:
    """Rows with weights (or None) and what else a law may want to draw."""

    X: np.ndarray
    weights: np.ndarray | None
    seed: int

    @property
    def n(self):
        return len(self.X)

    @property
    def rng(self):
        return np.random.default_rng(self.seed)

    def weight(self):
        return np.ones(self.n) if self.weights is None else self.weights

    def at(self, rows):
        weights = None if self.weights is None else self.weights[rows]
        return Table(self.X[rows], weights, self.seed)


def _spoiled(X, kind):
    """One of the ways in which data are awkward."""
    if kind == "offset":
        return X + 1e8
    if kind == "tiny":
        return X * 1e-12
    if kind == "constant":
        return np.column_stack([X, np.full(len(X), 3.7)])
    if kind == "float32":
        return X.astype(np.float32)
    if kind == "fortran":
        return np.asfortranarray(X)
    return X


def _weights(kind, n, rng):
    if kind is None:
        return None
    drawn = rng.integers(0, 3, n) if kind == "whole" else rng.uniform(0.0, 2.0, n)
    drawn = drawn.astype(np.float64)
    drawn[0] += 1.0  # at least one row counts
    return drawn


KINDS = ["plain", "offset", "tiny", "constant", "float32", "fortran"]


@st.composite
def tables(draw, weights=(None, "whole", "real"), kinds=("grid", *KINDS), least=1):
    """Rows in a few loose groups; every third table repeats some of its rows."""
    seed = draw(st.integers(0, 2**20))
    n, D = draw(st.integers(least, 40)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(kinds))
    rng = np.random.default_rng(seed)
    if kind == "grid":
        X = rng.integers(-2, 3, (n, D))
    else:
        groups = rng.normal(scale=3.0, size=(draw(st.integers(1, 5)), D))
        X = groups[rng.integers(0, len(groups), n)] + rng.normal(size=(n, D))
        if draw(st.integers(0, 2)) == 0:
            X = X[rng.integers(0, n, n)]
    return Table(
        _spoiled(X, kind), _weights(draw(st.sampled_from(weights)), n, rng), seed
    )


# Two rows that mirror each other about a centre cost the same but for rounding, and
# rounding depends on the order of sums. So laws about order speak of data without ties.
UNTIED = [kind for kind in KINDS if kind != "float32"]


class Laws:
    """What holds for every model; subclasses fill in the first few methods."""

    def model(self, table):
        """The hyperparameters to try on a table."""
        raise NotImplementedError

    def start(self, model, table):
        """Parameters to start from; must not depend on the order of the rows."""
        raise NotImplementedError

    def moves(self):
        """The moves that the estimator uses with this model."""
        raise NotImplementedError

    def statistics(self, total):
        """The additive part of a summary, as a list of arrays."""
        raise NotImplementedError

    def labels(self, local):
        """The labels in a block's per-row state."""
        raise NotImplementedError

    def brute_objective(self, model, params, table, labels):
        """The objective by its definition."""
        raise NotImplementedError

    def brute_statistics(self, params, table, labels):
        """`statistics` by their definition; rows labelled -1 belong to no group."""
        raise NotImplementedError

    def renumbered(self, params, old_to_new):
        """Parameters after groups were renumbered (-1 drops one)."""
        raise NotImplementedError

    def scale(self, params, table):
        """A size below 1e-13 of which the objective is rounding error."""
        raise NotImplementedError

    def unit(self, params):
        """What a 1 in the objective means in the units of the data."""
        return 1.0

    # -------------------------------------------------------------- machinery

    def engine(self, table, block_rows=7, threads=1):
        blocks = ArrayBlocks(table.X, block_rows)
        if threads == 1:
            return SerialEngine(blocks, table.weights)
        return ThreadEngine(blocks, table.weights, n_threads=threads)

    def fit(self, table, block_rows=7, threads=1, max_iter=200):
        """Run to convergence; return the result and the labels."""
        model = self.model(table)
        with self.engine(table, block_rows, threads) as engine:
            result = loop.run(
                model,
                engine,
                self.start(model, table),
                moves=self.moves(),
                max_iter=max_iter,
                tol=0.0,
            )
            return model, result, self.labels_of(engine)

    def labels_of(self, engine):
        return np.concatenate([self.labels(local) for local in engine.locals()])

    def summary(self, model, params, table, block_rows=7):
        """Summary and labels of a first visit."""
        with self.engine(table, block_rows) as engine:
            total = engine.sweep(model, params, range(engine.n_blocks))
            return total, self.labels_of(engine)

    def close(self, some, others, scale):
        for one, other in zip(self.statistics(some), others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13 * scale)

    def some_params(self, table):
        """Parameters with several groups, from a fit cut short."""
        model, result, _ = self.fit(table, max_iter=3)
        return model, result.params

    # ------------------------------------------------------------------- laws

    @law
    @given(tables())
    def test_summaries_add(self, table):
        model, params = self.some_params(table)
        cut = int(table.rng.integers(0, table.n + 1))
        parts = [
            rows for rows in (np.arange(cut), np.arange(cut, table.n)) if len(rows)
        ]
        total = add_up(self.summary(model, params, table.at(rows))[0] for rows in parts)
        whole, _ = self.summary(model, params, table)
        self.close(total, self.statistics(whole), table.n)
        if len(parts) == 2:
            whole -= self.summary(model, params, table.at(parts[1]))[0]
            part = self.summary(model, params, table.at(parts[0]))[0]
            self.close(whole, self.statistics(part), table.n)

    @law
    @given(tables())
    def test_statistics_equal_brute_force(self, table):
        _, result, labels = self.fit(table)
        expected = self.brute_statistics(result.params, table, labels)
        self.close(result.total, expected, table.n)

    @law
    @given(tables())
    def test_objective_equals_brute_force(self, table):
        model, result, labels = self.fit(table)
        expected = self.brute_objective(model, result.params, table, labels)
        assert result.history[-1] == pytest.approx(
            expected, rel=1e-10, abs=1e-13 * self.scale(result.params, table)
        )

    @law
    @given(tables())
    def test_history_never_rises(self, table):
        _, result, _ = self.fit(table)
        history = np.array(result.history)
        assert np.all(np.isfinite(history))
        slack = 1e-12 * np.abs(history[:-1]) + 1e-13 * self.scale(result.params, table)
        assert np.all(np.diff(history) <= slack)

    @law
    @given(tables(), st.integers(1, 45))
    def test_engines_give_the_same_bits(self, table, block_rows):
        _, serial, labels = self.fit(table, block_rows)
        for threads in (2, 3):
            _, result, again = self.fit(table, block_rows, threads)
            np.testing.assert_array_equal(labels, again)
            assert serial.history == result.history
            for one, other in zip(
                self.statistics(serial.total),
                self.statistics(result.total),
                strict=True,
            ):
                np.testing.assert_array_equal(one, other)

    @law
    @given(tables(kinds=UNTIED), st.integers(1, 45))
    def test_blocks_do_not_matter(self, table, block_rows):
        _, whole, labels = self.fit(table, table.n)
        _, result, again = self.fit(table, block_rows)
        np.testing.assert_array_equal(canonical(labels), canonical(again))
        self.same_end(whole, result, table)

    @law
    @given(tables(kinds=UNTIED))
    def test_order_of_rows_does_not_matter(self, table):
        order = table.rng.permutation(table.n)
        _, before, labels = self.fit(table)
        _, after, again = self.fit(table.at(order))
        np.testing.assert_array_equal(canonical(labels[order]), canonical(again))
        self.same_end(before, after, table)

    @law
    @given(tables(kinds=UNTIED, weights=("whole",)))
    def test_weight_two_equals_a_row_twice(self, table):
        copies = np.repeat(np.arange(table.n), table.weights.astype(int))
        weighted, repeated = table, Table(table.X[copies], None, table.seed)
        _, before, labels = self.fit(weighted)
        _, after, again = self.fit(repeated)
        np.testing.assert_array_equal(canonical(labels[copies]), canonical(again))
        self.same_end(before, after, repeated)

    def same_end(self, one, other, table):
        assert one.params.K == other.params.K
        unit = self.unit(one.params)
        assert one.history[-1] * unit == pytest.approx(
            other.history[-1] * self.unit(other.params),
            rel=1e-10,
            abs=1e-13 * unit * self.scale(one.params, table),
        )

    @law
    @given(tables())
    def test_counts_sum_to_n_and_no_row_is_dropped(self, table):
        _, result, labels = self.fit(table)
        K = result.params.K
        assert labels.shape == (table.n,)
        assert labels.min() >= 0
        assert labels.max() < K
        sizes = np.bincount(labels, weights=table.weight(), minlength=K)
        if np.all(table.weight() % 1.0 == 0.0):
            np.testing.assert_array_equal(result.total.counts, sizes)
        else:
            np.testing.assert_allclose(
                result.total.counts, sizes, rtol=1e-12, atol=1e-12
            )

    @law
    @given(tables())
    def test_regroup_equals_recomputation(self, table):
        """Renumber and drop groups: summaries and per-row state follow."""
        model, params = self.some_params(table)
        old_to_new = self.some_renumbering(params.K, table.rng)
        K = int(old_to_new.max()) + 1
        total, labels = self.summary(model, params, table)
        after = self.renumbered(params, old_to_new)
        expected = self.brute_statistics(after, table, old_to_new[labels])
        self.close(total.regroup(old_to_new, K), expected, table.n)
        with self.engine(table) as engine:
            engine.sweep(model, params, range(engine.n_blocks))
            for local in engine.locals():
                before = old_to_new[self.labels(local)]
                moved = model.regroup_local(local, old_to_new, K)
                np.testing.assert_array_equal(self.labels(moved), before)

    @law
    @given(tables())
    def test_blocks_catch_up_with_renumbering(self, table):
        """After two renumberings that it missed, a block ends as if seen afresh."""
        model, params = self.some_params(table)
        with self.engine(table) as engine:
            blocks = range(engine.n_blocks)
            total = engine.sweep(model, params, blocks)
            for seed in (1, 2):
                old_to_new = self.some_renumbering(
                    params.K, np.random.default_rng(seed)
                )
                params = self.renumbered(params, old_to_new)
                engine.regroup(old_to_new, params.K)
                total = total.regroup(old_to_new, params.K)
            change = engine.sweep(model, params, blocks)
            total = (
                total if model.incremental else type(total).zeros(*change.sums.shape)
            )
            total += change
            fresh, labels = self.summary(model, params, table)
            np.testing.assert_array_equal(self.labels_of(engine), labels)
            self.close(total, self.statistics(fresh), table.n)

    def some_renumbering(self, K, rng):
        """Keep some groups, at least one, in a new order."""
        kept = np.sort(rng.choice(K, rng.integers(1, K + 1), replace=False))
        old_to_new = np.full(K, -1)
        old_to_new[kept] = rng.permutation(len(kept))
        return old_to_new
