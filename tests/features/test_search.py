"""The search for features: optima by exhaustion, seeds, streams, gaps."""

import warnings
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as profile

import feature_reference as obvious
from core.test_laws import tables
from jobs import make_job
from kplus.data.blocks import ArrayBlocks
from kplus.features.local_search import by_splits, plus_plus, without_base
from kplus.features.rows import Rows, Solution
from kplus.features.search import FeatureSpec, allocate, fit, run_passes

INITS = ["auto", "++", "split", "ica", "random"]
PLAIN = FeatureSpec(
    penalty=1.0, n_components=None, max_components=None, stepwise=False,
    collapsed=False, init="auto", assignment="auto", effort=1.0, n_init=1,
)  # fmt: skip


def spec_of(**settings):
    return replace(PLAIN, **settings)


def job_of(X, weights=None, seed=0, block_rows=11, n_threads=1, max_iter=300):
    blocks, rng = ArrayBlocks(X, block_rows), np.random.default_rng(seed)
    return make_job(blocks, weights, rng, n_threads, max_iter, tol=0.0)


def fitted(X, weights=None, seed=0, block_rows=11, n_threads=1, **settings):
    job = job_of(X, weights, seed, block_rows, n_threads)
    return fit(job, spec_of(**settings))


def streamed(job, spec, first):
    """A batch added to a fit of which only the sums are known."""
    penalty = spec.penalty or 0.0
    return run_passes(job, spec, first.sums.A, penalty, first.sums)


def rows_of(X, weights=None):
    return Rows(X, np.ones(len(X)) if weights is None else weights)


def z_of(X, A, assignment="auto"):
    return allocate(job_of(X), A, assignment)


# --------------------------------------------------- the optimum of tiny data sets


def tiny(kind, n):
    """Rows of which all allocations can be tried."""
    rng = np.random.default_rng(n)
    if kind == "planted":
        return obvious.planted(n, 3, 2, seed=n)[0]
    if kind == "base":
        return obvious.planted(n, 3, 2, seed=n, offset=4.0)[0]
    if kind == "noise":
        return rng.normal(size=(n, 2))
    if kind == "bits":
        return rng.integers(0, 2, (n, 4)).astype(float)
    return rng.integers(-2, 3, (n, 1)).astype(float)


TINY = [
    ("planted", 7),
    ("base", 6),
    ("noise", 6),
    ("bits", 6),
    ("line", 6),
    ("base", 5),
]


@pytest.fixture(scope="module", params=TINY, ids=str)
def exhausted(request):
    X = tiny(*request.param)
    return X, obvious.best_allocations(X, 3)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("K", [1, 2, 3])
def test_k_features_reach_the_best_of_all_allocations(exhausted, K, seed):
    X, errors = exhausted
    result = fitted(X, seed=seed, penalty=None, n_components=K, effort=3.0)
    assert result.sums.error == pytest.approx(errors[K], rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_bp_means_reaches_the_best_of_all_numbers_and_allocations(
    exhausted, share, stepwise
):
    """Eq. 6 over K ≤ 3; stepwise stops where it first rises, which may be too soon."""
    X, errors = exhausted
    penalty = share * errors[0]
    costs = errors + penalty * np.arange(4)
    result = fitted(X, penalty=penalty, max_components=3, effort=3.0, stepwise=stepwise)
    value = result.history[-1]
    assert value >= costs.min() * (1 - 1e-9)
    best = costs.min()
    if stepwise:
        rises = np.flatnonzero(np.diff(costs) > 0.0)
        best = costs[: rises[0] + 1].min() if len(rises) else best
    assert value <= best * (1 + 1e-8) + 1e-9


# ------------------------------------------------------------- what a fit promises

every_way = pytest.mark.parametrize(
    "settings",
    [
        {"penalty": 6.0},
        {"penalty": 6.0, "collapsed": True},
        {"penalty": 6.0, "stepwise": True},
        {"penalty": 6.0, "effort": 0.0},
        {"penalty": 6.0, "effort": 0.0, "assignment": "flips"},
        {"penalty": None},
        {"penalty": None, "n_components": 4},
        {"penalty": None, "n_components": 4, "effort": 0.0, "assignment": "flips"},
        {"penalty": None, "n_components": 10},
    ],
    ids=str,
)


def check(X, result, weights=None, exact=True):
    """The fit says what its features are worth; A suits Z; the history falls."""
    A, penalty = result.components, result.penalty
    Z, error = z_of(X, A)
    w = np.ones(len(X)) if weights is None else weights
    ours = obvious.error(X, Z, A, w)
    assert error == pytest.approx(obvious.error(X, Z, A), rel=1e-9, abs=1e-9)
    if exact:
        assert result.sums.error == pytest.approx(ours, rel=1e-7, abs=1e-9)
        np.testing.assert_allclose(result.sums.counts, w @ Z, rtol=1e-9)
        best = obvious.error(X, Z, obvious.features(X, Z, w), w)
        assert ours <= best * (1 + 1e-8) + 1e-9
    cost = result.sums.error + penalty * len(A)
    assert result.history[-1] == pytest.approx(cost, rel=1e-9)
    assert np.all(np.diff(result.history) <= 1e-9 * result.history[0])
    assert result.converged


@every_way
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_is_what_it_says(settings, weighted):
    X, _, _ = obvious.planted(70, 5, 3, noise=0.4, offset=1.0)
    weights = None
    if weighted:
        weights = np.random.default_rng(0).uniform(0.0, 2.0, 70)
        weights[::7] = 0.0
    result = fitted(X, weights, **settings)
    check(X, result, weights, exact=settings.get("assignment") != "flips")


@every_way
def test_missing_entries_count_for_nothing(settings):
    """The objective is the error of what was observed."""
    X, _, _ = obvious.planted(70, 5, 3, noise=0.4)
    X = obvious.with_gaps(X, 0.15)
    result = fitted(X, **settings)
    check(X, result, exact=settings.get("assignment") != "flips")
    assert result.sums.by_column().ndim == 3


@every_way
def test_threads_do_not_change_a_bit(settings):
    X, _, _ = obvious.planted(70, 5, 3, noise=0.4)
    one = fitted(X, n_init=2, **settings)
    two = fitted(X, n_threads=2, n_init=2, **settings)
    np.testing.assert_array_equal(one.components, two.components)
    np.testing.assert_array_equal(one.history, two.history)


@every_way
def test_blocks_do_not_change_the_fit(settings):
    X, _, _ = obvious.planted(150, 5, 3, noise=0.4)
    whole = fitted(X, block_rows=150, **settings)
    parts = fitted(X, block_rows=13, **settings)
    np.testing.assert_allclose(parts.components, whole.components, atol=1e-9)
    np.testing.assert_array_equal(parts.sums.counts, whole.sums.counts)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("effort", [0.0, 1.0])
@pytest.mark.parametrize("K", [None, 3])
def test_every_seed_leads_somewhere(init, effort, K):
    X, _, _ = obvious.planted(60, 5, 3, noise=0.3)
    settings = {"penalty": 5.0 if K is None else None, "n_components": K}
    result = fitted(X, init=init, effort=effort, **settings)
    check(X, result)
    total = float(np.vdot(X, X))
    assert result.history[-1] < 0.7 * total
    assert K is None or len(result.components) == K


fast = profile(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("K", [None, 2])
@fast
@given(tables())
def test_awkward_tables(K, table):
    """Huge offsets, tiny scales, constants, copies, float32, weights of zero."""
    X, w = table.X.astype(np.float64), table.weight()
    spread = w @ np.sum((X - np.average(X, axis=0, weights=w)) ** 2, axis=1)
    size = float(w @ np.sum(X**2, axis=1))
    if K is not None and len(X) < K:
        return
    penalty = 0.1 * spread if spread > 1e-28 else 1.0
    result = fitted(
        table.X, table.weights, seed=table.seed,
        penalty=penalty if K is None else None, n_components=K,
    )  # fmt: skip
    slack = 1e-13 * np.sqrt(spread * size) + 1e-28 * size
    assert result.converged
    assert np.all(np.isfinite(result.components))
    assert np.all(np.diff(result.history) <= 1e-12 * result.history[0] + slack)
    Z, _ = z_of(table.X, result.components)
    error = obvious.error(X, Z, result.components, w)
    assert result.sums.error == pytest.approx(error, rel=1e-9, abs=slack)
    # no worse than the mean of all rows, or than nothing
    simplest = min(spread + result.penalty, size if K is None else np.inf)
    assert result.history[-1] <= simplest * (1 + 1e-9) + slack


@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1e4, 1e9])
def test_the_unit_of_weights_does_not_matter(unit):
    X, _, _ = obvious.planted(60, 4, 4, noise=0.5, offset=1.0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    for settings in ({"penalty": None, "n_components": 3}, {"penalty": 8.0}):
        one = fitted(X, weights, **settings)
        penalty = None if settings["penalty"] is None else unit * 8.0
        scaled = fitted(X, unit * weights, **(settings | {"penalty": penalty}))
        assert scaled.history[-1] / unit == pytest.approx(one.history[-1], rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 10.0])
@pytest.mark.parametrize("K", [3, 4, 6])
def test_more_features_than_the_rows_are_made_of(K, offset):
    """Nothing is left to explain: a fit converges, and within few passes."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (40, 2)) @ (3.0 * rng.normal(size=(2, 5))) + offset
    result = fitted(X, penalty=None, n_components=K)
    assert result.converged
    assert len(result.history) < 20
    assert result.sums.error == pytest.approx(0.0, abs=1e-18 * np.vdot(X, X))


@pytest.mark.parametrize("X", [np.ones((9, 3)), np.zeros((9, 3)), np.eye(3)], ids=str)
@pytest.mark.parametrize("init", INITS)
def test_plain_tables_with_too_many_features_asked_for(X, init):
    for K in (1, 2, 3):
        result = fitted(X, init=init, penalty=None, n_components=K)
        assert result.converged
        assert np.all(np.isfinite(result.components))
        assert result.sums.error <= obvious.best_allocations(X[:6], K)[K] + 1e-9


# ------------------------------------------------------------------- the penalty


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_a_penalty_is_found_where_none_is_given(noise):
    X, Z, _ = obvious.planted(200, 10, 4, noise=noise)
    result = fitted(X, penalty=None)
    assert len(result.components) == 4
    found_Z, _ = z_of(X, result.components)
    assert sorted(map(tuple, found_Z.T)) == sorted(map(tuple, Z.T))
    path = result.path
    np.testing.assert_array_equal(path["n_components"], np.arange(len(path)))
    np.testing.assert_allclose(
        path["objective"], path["error"] + result.penalty * path["n_components"]
    )
    assert np.argmin(path["objective"]) == 4


def test_the_stepwise_path_falls_and_ends_one_past_the_optimum():
    X, _, _ = obvious.planted(60, 6, 3, noise=0.3)
    result = fitted(X, penalty=10.0, stepwise=True)
    path = result.path
    assert np.all(np.diff(path["error"]) <= 1e-9 * path["error"][0])
    assert np.all(np.diff(path["objective"])[:-1] < 0.0)
    assert np.diff(path["objective"])[-1] > 0.0
    assert path["error"][0] == pytest.approx(np.vdot(X, X))
    best = path[np.argmin(path["objective"])]
    assert len(result.components) == best["n_components"]
    assert result.history[-1] == pytest.approx(best["objective"], rel=1e-6)


def test_steps_end_at_the_number_allowed():
    X, _, _ = obvious.planted(40, 5, 3)
    result = fitted(X, penalty=1e-9, max_components=2, stepwise=True)
    np.testing.assert_array_equal(result.path["n_components"], [0, 1, 2])
    assert len(result.components) == 2


# ------------------------------------------------------------------------ streams


def test_a_stream_is_the_sums_over_all_rows():
    """Earlier rows keep their z; features are the best for all rows."""
    X, _, _ = obvious.planted(90, 5, 3, noise=0.4)
    spec = spec_of(penalty=None, n_components=3)
    first = fit(job_of(X[:60]), spec)
    after = streamed(job_of(X[60:]), spec, first)
    Z = _followed(X[:60], X[60:], first, after)
    S, T, error, counts = obvious.sums(X, Z, after.components)
    np.testing.assert_allclose(after.sums.counts, counts)
    np.testing.assert_allclose(after.sums.by_column(), S, atol=1e-9)
    np.testing.assert_allclose(after.sums.T, T, atol=1e-8)
    assert after.sums.error == pytest.approx(error, rel=1e-9)
    np.testing.assert_allclose(obvious.features(X, Z), after.components, atol=1e-8)
    assert after.sums.weight == 90.0


def _followed(X, later, first, after):
    """Z of all rows: earlier ones keep theirs, features numbered as they are now."""
    kept, _ = z_of(X, first.components)
    kept = min(
        (kept[:, order] for order in permutations(range(kept.shape[1]))),
        key=lambda Z: obvious.error(X, Z, after.components),
    )
    return np.vstack([kept, z_of(later, after.components)[0]])


def test_a_stream_opens_features_that_pay_and_drops_none_of_earlier_rows():
    X, _, _ = obvious.planted(60, 4, 2, noise=0.1)
    first = fitted(X, penalty=4.0)
    strange = np.vstack([X[:10], X[:10]])
    strange[10:, 2] += 30.0
    job = job_of(strange)
    after = streamed(job, spec_of(penalty=4.0), first)
    assert len(after.components) > len(first.components)
    assert after.sums.weight == 80.0
    assert after.history[-1] < first.history[-1] + 10 * 30.0**2
    assert np.all(np.diff(after.history) <= 1e-9 * after.history[0])


# -------------------------------------------------------------------------- parts


def test_allocate_is_exact_up_to_25_features_unless_set():
    X, _, A = obvious.planted(40, 8, 12, noise=1.0)
    best = obvious.best_errors(X, A).sum()
    assert z_of(X, A)[1] == pytest.approx(best, rel=1e-9)
    assert z_of(X, A, "exact")[1] == pytest.approx(best, rel=1e-9)
    assert z_of(X, A, "flips")[1] > best


@pytest.mark.parametrize("base", [False, True])
def test_losses_are_those_of_refits(base):
    X, Z, _ = obvious.planted(40, 4, 3)
    Z[:, 0] = 1 if base else Z[:, 0]
    losses = rows_of(X).losses(Solution(Z, base, np.nan))
    before = obvious.collapsed(X, Z)
    for k in range(3):
        without = obvious.collapsed(X, np.delete(Z, k, axis=1))
        assert losses[k] == pytest.approx(without - before, rel=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_rows_are_those_of_the_definition(weighted):
    X, Z, _ = obvious.planted(40, 4, 3, offset=2.0)
    weights = (
        np.random.default_rng(1).uniform(0.5, 2.0, 40) if weighted else np.ones(40)
    )
    rows, rng = rows_of(X, weights), np.random.default_rng(0)
    Z[:, 0] = 1
    for some in (
        rows.empty(),
        rows.only_base(),
        rows.polish(Z.copy(), True),
        rows.polish(Z.copy(), False),
        by_splits(rows, 3, True, rng),
        by_splits(rows, 2, False, rng),
        without_base(rows, rows.polish(Z.copy(), True)),
    ):
        expected = obvious.collapsed(X, some.Z, weights=weights)
        assert some.error == pytest.approx(expected, rel=1e-6)
        A = rows.features(some)
        np.testing.assert_allclose(A, obvious.features(X, some.Z, weights), atol=1e-5)


def test_plus_plus_begins_with_the_mean_and_ends_where_nothing_pays():
    X, _, _ = obvious.planted(50, 4, 3, offset=5.0)
    rng = np.random.default_rng(0)
    A = plus_plus(rows_of(X), 3, 0.0, rng)
    np.testing.assert_allclose(A[0], X.mean(axis=0))
    assert len(A) == 3
    assert len(plus_plus(rows_of(X), 10, 2.0 * float(np.vdot(X, X)), rng)) == 1
    assert len(plus_plus(rows_of(np.ones((5, 2))), 4, 0.0, rng)) == 1


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_projections_of_two_values_are_the_columns(share):
    X, Z, _ = obvious.planted(400, 20, 6, noise=0.1, share=share)
    result = fitted(X - X.mean(axis=0), init="ica", penalty=None, n_components=7)
    columns, _ = z_of(X - X.mean(axis=0), result.components)
    agree = np.abs(np.corrcoef(columns[:, 1:].T, Z.T)[:6, 6:])
    np.testing.assert_allclose(agree.max(axis=0), 1.0, atol=0.02)


def test_too_few_directions_for_projections():
    X = np.outer(np.arange(10.0), [1.0, 2.0, 3.0])
    result = fitted(X, init="ica", penalty=None, n_components=3)
    check(X, result)


def test_no_warning_of_numpy_escapes():
    X = obvious.with_gaps(np.zeros((12, 3)), 0.3)
    X[:6, :2], X[:6, 2], X[6:, 2] = 5.0, np.nan, 0.01
    X[:3, 0] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for penalty in (0.1, 1.0, 10.0, 1e3):
            assert np.all(np.isfinite(fitted(X, penalty=penalty).components))


def test_passes_of_both_stages_are_counted(monkeypatch):
    """Flips first, then the best z: the second stage goes on with the numbers."""
    monkeypatch.setattr("kplus.features.search._SAMPLE_ROWS", 60)
    X = obvious.planted(200, 4, 3, seed=0)[0]
    passes = []
    job = replace(job_of(X), callback=lambda info: passes.append(info.iteration))
    assert len(fit(job, PLAIN).history) == len(passes)
    assert passes == list(range(1, len(passes) + 1))
