"""Serial and collapsed DP-means against the obvious algorithms; claim MB-6."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from jobs import make_job
from kplus.core.loop import run
from kplus.core.runs import labels_of, one_by_one
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means.objective_search import by_objective
from kplus.dp_means.params import Scaling
from kplus.dp_means.search import by_number
from kplus.dp_means.sequential import (
    CollapsedModel,
    DropEmptied,
    Means,
    SerialModel,
    Tally,
)
from kplus.dp_means.sequential_search import collapsed, collapsed_number, refine, serial
from kplus.engine import SerialEngine


def job(X, weights=None, block_rows=None, **settings):
    source = ArrayBlocks(np.asarray(X, dtype=np.float64), block_rows)
    return make_job(source, weights, np.random.default_rng(0), tol=0.0, **settings)


def walk(model, X, centers, weights=None, block_rows=None, max_iter=300):
    """The loop on a model, without scaling, samples or renumbering at the end."""
    task = job(X, weights, block_rows)
    start = Means.start(Scaling(np.zeros(X.shape[1]), 1.0), np.array(centers, float))
    with SerialEngine(task.source, weights) as engine:
        result = run(
            model, engine, start,
            moves=[DropEmptied()], groups=one_by_one(task), max_iter=max_iter, tol=0.0,
        )  # fmt: skip
        return result, labels_of(engine)


def some_rows(seed, n=60, D=2, scale=3.0):
    rng = np.random.default_rng(seed)
    groups = rng.normal(size=(4, D)) * scale
    return groups[rng.integers(0, 4, n)] + rng.normal(size=(n, D))


def some_weights(seed, n):
    return np.random.default_rng(seed).choice([0.0, 0.3, 1.0, 2.0, 2.5], size=n)


def eq_9(X, labels, penalty, weights=None):
    """Eq. 9 over the rows whose label is not -1, weights allowed."""
    w = reference.weights_or_ones(X, weights)
    total, K = 0.0, 0
    for k in np.unique(labels[(labels >= 0) & (w > 0.0)]):
        mine = labels == k
        mean = np.average(X[mine], axis=0, weights=w[mine])
        total += np.sum(w[mine, None] * (X[mine] - mean) ** 2)
        K += 1
    return total + penalty * (K - 1)


# ----------------------------------------------------------------------- serial


def serial_reference(X, penalty, weights=None, cap=np.inf, max_iter=300):
    """Kulis & Jordan (2012), Algorithm 1, row by row."""
    w = reference.weights_or_ones(X, weights)
    C = [np.average(X, axis=0, weights=w)]
    labels, history = None, []
    for passes in range(1, max_iter + 1):
        before, labels = labels, np.zeros(len(X), dtype=int)
        for i, x in enumerate(X):
            d2 = [np.sum((x - c) ** 2) for c in C]
            labels[i] = np.argmin(d2)
            if min(w[i], 1.0) * min(d2) > penalty and len(C) < cap:
                labels[i] = len(C)
                C.append(x)
        used = np.array([w[labels == k].sum() > 0.0 for k in range(len(C))])
        error = reference.squared_error(X, labels, np.array(C), w)
        history.append(error + penalty * (used.sum() - 1))
        converged = before is not None and np.array_equal(before, labels)
        if converged or passes == max_iter:
            break
        C = [reference.means(X, labels, len(C), w)[k] for k in np.flatnonzero(used)]
        labels = np.where(used, np.cumsum(used) - 1, -1)[labels]
    return labels, np.array(C), np.array(history)


@pytest.mark.parametrize("block_rows", [1, 7, 60])
@pytest.mark.parametrize("seed", range(4))
def test_serial_equals_reference_label_for_label(seed, block_rows):
    X = some_rows(seed)
    model = SerialModel(6.0)
    result, labels = walk(model, X, [X.mean(axis=0)], block_rows=block_rows)
    expected, centers, history = serial_reference(X, 6.0)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(result.params.centers, centers, atol=1e-12)
    np.testing.assert_allclose(result.history, history, rtol=1e-12)
    assert len(centers) > 2
    assert result.converged


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=14), st.integers(1, 9))
def test_serial_first_pass_with_ties(numbers, penalty):
    X = np.array(numbers, dtype=float)[:, None]
    _, labels = walk(SerialModel(float(penalty)), X, [X.mean(axis=0)], max_iter=1)
    expected = serial_reference(X, penalty, max_iter=1)[0]
    np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_serial_with_weights_and_cap(cap):
    X, w = some_rows(5), some_weights(5, 60)
    mean = np.average(X, axis=0, weights=w)
    result, labels = walk(SerialModel(4.0, cap), X, [mean], w, block_rows=8)
    expected, centers, history = serial_reference(X, 4.0, w, cap)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(result.history, history, rtol=1e-12)
    assert len(centers) <= cap


def test_serial_fit_is_the_reference_by_size():
    X = some_rows(1)
    _, C, history = serial_reference(X, 6.0)
    fitted = serial(job(X), penalty=6.0)
    np.testing.assert_allclose(fitted.history, history, rtol=1e-12)
    np.testing.assert_array_equal(
        fitted.labels, reference.nearest(X, fitted.centers)[0]
    )
    assert np.all(np.diff(fitted.counts) <= 0.0)
    order = np.lexsort(fitted.centers.T)
    np.testing.assert_allclose(fitted.centers[order], C[np.lexsort(C.T)], atol=1e-12)
    error = fitted.errors.sum() + 6.0 * (len(C) - 1)
    np.testing.assert_allclose(error, fitted.objective, rtol=1e-12)


def test_serial_weight_two_is_the_row_twice():
    X = some_rows(2)
    w = np.random.default_rng(2).integers(1, 4, 60).astype(float)
    once, twice = (
        serial(job(X, w), penalty=5.0),
        serial(job(np.repeat(X, w.astype(int), 0)), penalty=5.0),
    )
    np.testing.assert_array_equal(np.repeat(once.labels, w.astype(int)), twice.labels)
    np.testing.assert_allclose(once.history, twice.history, rtol=1e-12)


def test_serial_rows_of_weight_zero_never_open():
    X = np.array([[0.0], [1.0], [50.0]])
    fitted = serial(job(X, np.array([1.0, 1.0, 0.0])), penalty=4.0)
    np.testing.assert_array_equal(fitted.centers, [[0.5]])
    part = serial(job(X, np.array([1.0, 1.0, 0.001])), penalty=4.0)
    assert len(part.centers) == 1  # .001 · 49.5² < 4
    assert len(serial(job(X, np.array([1.0, 1.0, 0.1])), penalty=4.0).centers) == 2


@given(st.integers(0, 10_000), st.floats(0.05, 30.0), st.booleans())
def test_serial_never_rises(seed, penalty, weighted):
    X = some_rows(seed, n=25)
    w = some_weights(seed, 25) + 1e-3 if weighted else None
    history = serial(job(X, w, block_rows=6), penalty=penalty).history
    assert np.all(np.diff(history) <= 1e-12 * history[0])


def test_tallies_of_different_k_add_subtract_and_regroup():
    model, X = SerialModel(2.0), some_rows(3)
    whole, _ = walk(model, X, [X.mean(axis=0)], max_iter=1)
    parts, _ = walk(model, X, [X.mean(axis=0)], block_rows=9, max_iter=1)
    for name in ("members", "counts", "sums", "squares", "born"):
        one, many = getattr(whole.total, name), getattr(parts.total, name)
        np.testing.assert_allclose(one, many, atol=1e-12)
    total = parts.total.copy()
    small = Tally.zeros(1, 2)
    small += parts.total
    small -= parts.total
    np.testing.assert_allclose(small.sums, 0.0, atol=1e-12)
    old_to_new = np.arange(total.K) // 2
    merged = total.regroup(old_to_new, old_to_new[-1] + 1)
    np.testing.assert_allclose(merged.counts, np.bincount(old_to_new, total.counts))


# -------------------------------------------------------------------- collapsed


def collapsed_reference(X, labels, penalty, weights=None, cap=np.inf):
    """One pass in which every choice is made by recomputing Eq. 9 from scratch."""
    w, labels = reference.weights_or_ones(X, weights), labels.copy()
    next_name = labels.max() + 1
    for i in range(len(X)):
        own, names = labels[i], np.unique(labels[w > 0.0])
        share = w.copy()
        share[i] = min(w[i], 1.0)

        def cost(k, weight, i=i):
            out, at = labels.copy(), labels.copy()
            out[i], at[i] = -1, k
            return eq_9(X, at, penalty, weight) - eq_9(X, out, penalty, weight)

        costs = {k: cost(k, w) for k in names}
        best = min(costs, key=lambda k: (costs[k], k != own, k))
        if costs[best] >= costs[own] - 1e-11:
            best = own
        alone = np.count_nonzero(labels[w > 0.0] == own) == 1
        if not alone and len(names) < cap and cost(best, share) > penalty + 1e-11:
            best, next_name = next_name, next_name + 1
        labels[i] = best
    return labels


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cap", [np.inf, 4])
def test_collapsed_moves_by_the_exact_change_of_eq_9(weighted, cap):
    X = some_rows(7, n=30)
    w = some_weights(7, 30) + 0.1 if weighted else None
    mean = np.average(X, axis=0, weights=w)
    expected = np.zeros(30, dtype=int)
    for passes in range(2, 6):
        expected = collapsed_reference(X, expected, 5.0, w, cap)
        model = CollapsedModel(5.0, cap)
        result, labels = walk(model, X, [mean], w, block_rows=7, max_iter=passes)
        same = reference.canonical(expected)
        np.testing.assert_array_equal(reference.canonical(labels), same)
        np.testing.assert_allclose(
            result.history[-1], eq_9(X, expected, 5.0, w), rtol=1e-12
        )
    assert len(np.unique(labels)) > 2


@pytest.mark.parametrize("weighted", [False, True])
def test_collapsed_is_the_same_for_any_blocking(weighted):
    X = some_rows(8)
    w = some_weights(8, 60) if weighted else None
    fits = [refine(job(X, w, rows), X.mean(axis=0)[None], 4.0) for rows in (1, 7, 60)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].labels, other.labels)
        np.testing.assert_allclose(fits[0].history, other.history, rtol=1e-12)
    assert fits[0].converged


def test_serial_is_the_same_for_any_blocking():
    X, w = some_rows(8), some_weights(8, 60)
    fits = [serial(job(X, w, rows), penalty=4.0) for rows in (1, 7, 60)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].labels, other.labels)
        np.testing.assert_allclose(fits[0].history, other.history, rtol=1e-12)


def single_row_moves(X, labels, K, cap):
    """Every labelling that differs in one row, opening a cluster included."""
    for i in range(len(X)):
        for k in range(min(K + 1, cap)):
            if k != labels[i]:
                moved = labels.copy()
                moved[i] = k
                yield moved


@given(st.integers(0, 10_000), st.floats(0.2, 20.0), st.sampled_from([3, np.inf]))
def test_MB_6_collapsed_descends_to_a_fixed_point(seed, penalty, cap):
    X = some_rows(seed, n=16)
    fitted = refine(job(X, block_rows=5), X.mean(axis=0)[None], penalty, cap)
    assert fitted.converged
    assert np.all(np.diff(fitted.history) <= 1e-12 * fitted.history[0])
    labels, K = fitted.labels, len(fitted.centers)
    np.testing.assert_allclose(
        eq_9(X, labels, penalty), fitted.objective, rtol=1e-10, atol=1e-12
    )
    least = min(
        eq_9(X, moved, penalty) for moved in single_row_moves(X, labels, K, cap)
    )
    assert least >= fitted.objective * (1.0 - 1e-9)


def test_MB_6_by_plain_distance_the_objective_would_rise():
    """A row of the one-row cluster at 1.05 is drawn to the hundred rows at 1.00."""
    X = np.concatenate([np.zeros(100), [2.05, 1.0]])[:, None]
    labels = np.concatenate([np.zeros(100, int), [1, 1]])
    near_one, near_other = np.append(labels[:-1], 0), np.append(labels[:-1], 1)
    assert abs(X[-1] - X[0]) < abs(X[-1] - X[100])
    rise = eq_9(X, near_one, 0.0), eq_9(X, near_other, 0.0)
    np.testing.assert_allclose(rise, (100 / 101, 1.05**2 / 2))
    fitted = refine(job(X), np.array([[0.0], [2.05]]), 1.5)
    assert fitted.labels[-1] == fitted.labels[-2] != fitted.labels[0]


def test_MB_6_at_convergence_every_row_is_nearest_to_its_own_mean():
    X = some_rows(9)
    _, labels = walk(CollapsedModel(3.0), X, [X.mean(axis=0)])
    means = reference.means(X, labels, labels.max() + 1)
    np.testing.assert_array_equal(reference.nearest(X, means)[0], labels)


@given(st.integers(0, 10_000), st.floats(0.05, 30.0))
def test_collapsed_with_weights_never_rises(seed, penalty):
    X, w = some_rows(seed, n=20), some_weights(seed, 20) + 1e-3
    fitted = refine(job(X, w, block_rows=6), X.mean(axis=0)[None], penalty)
    assert np.all(np.diff(fitted.history) <= 1e-12 * fitted.history[0])
    assert (
        fitted.objective <= eq_9(X, fitted.labels, penalty, w) * (1.0 + 1e-12) + 1e-12
    )


def test_collapsed_weights():
    """Many copies open a cluster only where one would; rows of weight 0 follow."""
    X = np.array([[0.0], [1.0], [4.0], [100.0]])
    heavy = refine(job(X, np.array([5.0, 5.0, 1000.0, 0.0])), np.array([[2.0]]), 30.0)
    assert len(heavy.centers) == 1
    light = refine(job(X, np.array([5.0, 5.0, 1.0, 0.0])), np.array([[2.0]]), 3.0)
    np.testing.assert_allclose(light.centers, [[0.5], [4.0]])
    np.testing.assert_array_equal(light.labels, [0, 0, 1, 1])


@pytest.mark.parametrize("seed", range(3))
def test_collapsed_is_never_above_the_fast_fit(seed):
    X = some_rows(seed, n=200, D=4, scale=1.5)
    fast = by_objective(job(X), penalty=12.0)
    assert collapsed(job(X), penalty=12.0).objective <= fast.objective * (1.0 + 1e-12)
    fast = by_number(job(X), n_clusters=7)
    fitted = collapsed_number(job(X), n_clusters=7)
    assert fitted.objective <= fast.objective * (1.0 + 1e-12)
    assert len(fitted.centers) == 7
    assert np.all(fitted.counts > 0.0)


def test_collapsed_number_with_too_few_distinct_rows():
    X = np.repeat([[0.0], [1.0]], 3, axis=0)
    fitted = collapsed_number(job(X), n_clusters=4, start=np.arange(4.0)[:, None])
    np.testing.assert_array_equal(fitted.counts, [3.0, 3.0, 0.0, 0.0])
    assert fitted.objective == 0.0


def test_reports_of_rows_one_by_one_begin_anew_with_each_pass():
    total, part = Tally.zeros(2, 3), Tally.zeros(3, 3)
    part.counts[2], part.moved, part.born = 5.0, 4, np.ones((2, 3))
    for n in (1, 2):
        total += part
        assert (total.moved, len(total.born)) == (4 * n, 2 * n)
    total.begin_pass()
    assert (total.moved, len(total.born)) == (0, 0)
    np.testing.assert_array_equal(total.counts, [0.0, 0.0, 10.0])
