"""Passes of the mixture model: dense, sparse, memoized, stochastic; what they carry."""

from dataclasses import replace

import numpy as np
import pytest

import mixture_reference as mixture
from kplus.core import loop
from kplus.core.regroup import without
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture.families.learning import worth
from kplus.dp_mixture.model import StochasticModel
from kplus.dp_mixture.params import Collected, MixtureStats, Plan, pair_index
from kplus.engine import SerialEngine
from mixture_reference import CASES, Recording, stats_of

N_ROWS, K = 90, 12
FIELDS = ("N", "S", "entropy", "pairs")


def setting(name="diag_gaussian", seed=0, K=K, **settings):
    """A recording model, rows, and parameters ready for a first pass."""
    X = CASES[name].rows(N_ROWS, seed)
    model = CASES[name].model(X, Recording, **settings)
    start = mixture.components(model, X, mixture.some_shares(N_ROWS, K, seed))
    return model, X, model.ready(start, everyone=True)


def run(model, X, params, *, groups=None, max_iter=12, weights=None, **more):
    with SerialEngine(ArrayBlocks(X, 16), weights) as engine:
        if groups == "each":
            groups = [*([index] for index in range(engine.n_blocks)), []]
        return loop.run(
            model, engine, params, groups=groups, max_iter=max_iter, tol=0.0, **more
        )


def labels_of(engine):
    return np.concatenate([local.labels for local in engine.locals()])


def same_sums(one, other, rtol=1e-9, fields=FIELDS):
    for field in fields:
        a, b = getattr(one, field), getattr(other, field)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * N_ROWS, err_msg=field)


def rises(history, rel=1e-10):
    """A history of objectives that falls, but for rounding."""
    history = np.array(history)
    assert np.all(np.isfinite(history))
    return np.all(np.diff(history) <= rel * np.abs(history[1:]))


# -------------------------------------------------------------------------- dense


@pytest.mark.parametrize("concentration", [1.0, None])
@pytest.mark.parametrize("learns", [False, True], ids=["fixed", "learned"])
@pytest.mark.parametrize("name", CASES)
def test_dense_passes_are_eq_9_and_10_in_turn(name, learns, concentration):
    """And a step of the prior after each pass, where it is learned."""
    model, X, params = setting(name, K=3, concentration=concentration, learns=learns)
    result = run(model, X, params, max_iter=4)
    R, at = mixture.some_shares(N_ROWS, 3), model
    bounds = []
    for _ in range(4):
        alpha = model.posterior(R.sum(axis=0), params.S, N_ROWS).concentration
        given, last = R, at
        R = mixture.responsibilities(mixture.scores(last.family, X, given, alpha))
        bounds.append(mixture.bound(last, X, R, given=given, concentration=alpha))
        if learns:
            N, S, *_ = mixture.statistics(last.family, X, R)
            at = replace(last, family=last.family.learned(N, S))
    np.testing.assert_allclose(-np.array(result.history), bounds, rtol=1e-9)
    np.testing.assert_allclose(model.R, R, atol=1e-7)
    assert learns or result.params.family is model.family
    assert rises(result.history)


def test_float32_rows_count_as_the_numbers_they_are():
    X = CASES["gaussian"].rows(N_ROWS).astype(np.float32)
    X.flags.writeable = False
    model = CASES["gaussian"].model(X.astype(np.float64))
    params = mixture.components(model, X, mixture.some_shares(N_ROWS, 4))
    one = model.share_out(params, X, np.ones(N_ROWS))[0]
    other = model.share_out(params, X.astype(np.float64), np.ones(N_ROWS))[0]
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


def test_one_row():
    model, X, params = setting("gaussian", K=3)
    total, support, r = model.share_out(params, X[:1], np.ones(1))
    assert total.N.sum() == pytest.approx(1.0)
    assert mixture.dense(support, r, 3).sum() == pytest.approx(1.0)


# ------------------------------------------------------------------------- sparse


@pytest.mark.parametrize("groups", [None, "each"])
@pytest.mark.parametrize("n_active", [1, 2, 4])
@pytest.mark.parametrize("name", ["gaussian", "diag_gaussian", "mixed"])
def test_sparse_passes_never_lower_the_bound(name, n_active, groups):
    model, X, params = setting(name, n_active=n_active)
    assert model.is_sparse(K)
    history, everyone = [], []

    def callback(info):
        history.append(info.objective)
        everyone.append(info.params.plan.everyone)
        assert np.all(np.count_nonzero(model.R, axis=1) <= n_active)

    result = run(model, X, params, groups=groups, max_iter=14, callback=callback)
    assert everyone.count(False) > everyone.count(True) > 0
    assert rises(history)
    same_sums(result.total, stats_of(model, X, model.R))
    best = model.best_bound(result.total)
    assert best == pytest.approx(mixture.bound(model, X, model.R), rel=1e-10)


@pytest.mark.parametrize("name", ["gaussian", "diag_gaussian"])
def test_candidates_are_the_last_support_and_neighbours(name):
    """Of these a row keeps the best two."""
    model, X, params = setting(name, n_active=2)
    with SerialEngine(ArrayBlocks(X, 16)) as engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
        before, labels = model.R > 0.0, labels_of(engine)
        params = replace(model.update(params, total), plan=Plan(everyone=False))
        engine.sweep(model, params, range(engine.n_blocks))
    logs = model.family.scores(params.expected, X) + params.log_weights
    for n, lead in enumerate(labels):
        allowed = before[n].copy()
        allowed[params.neighbours[lead]] = True
        logs[n, ~allowed] = -np.inf
    expected = mixture.responsibilities(logs, 2)
    np.testing.assert_allclose(model.R, expected, rtol=1e-9, atol=1e-12)
    assert np.any(np.argmax(model.R, axis=1) != labels)


def test_neighbours_are_others():
    model, _, params = setting("gaussian", n_active=2)
    assert params.neighbours.shape == (K, 6)
    for k, others in enumerate(params.neighbours):
        assert k not in others
        assert len(set(others)) == 6
    assert model.ready(replace(params, visits=3)).plan.everyone is False
    assert model.ready(replace(params, visits=4)).plan.everyone is True


@pytest.mark.parametrize(("n_active", "K"), [(5, 5), (1, 2), (1, 7), (4, 10)])
def test_few_components_share_in_a_row_as_if_dense(n_active, K):
    """Candidates would be all of them: nothing is gained by fewer."""
    model, X, params = setting("gaussian", K=K, n_active=n_active)
    dense = replace(model, n_active=None)
    one, local, _ = model.share_out(params, X, np.ones(N_ROWS))
    assert not model.is_sparse(K)
    assert np.max(np.diff(local.starts)) > min(n_active, K - 1)
    other = dense.share_out(params, X, np.ones(N_ROWS))[0]
    for field in (*FIELDS, "seen", "removal_cost"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    more = setting("gaussian", K=n_active + 7, n_active=n_active)
    _, local, _ = more[0].share_out(more[2], X, np.ones(N_ROWS))
    assert np.max(np.diff(local.starts)) == n_active


# ----------------------------------------------------------------------- memoized


@pytest.mark.parametrize("name", ["gaussian", "categorical"])
def test_parts_of_the_rows_do_not_replace_a_start_on_all(name):
    model, X, params = setting(name, K=4)
    part = stats_of(model, X[:30], mixture.some_shares(30, 4))
    assert model.advance(params, part, part) is params
    whole = stats_of(model, X, mixture.some_shares(N_ROWS, 4, seed=3))
    ahead = model.advance(params, whole, part)
    np.testing.assert_array_equal(ahead.N, whole.N)
    np.testing.assert_array_equal(ahead.S, whole.S)
    assert ahead.plan is params.plan
    assert ahead.visits == params.visits
    frozen = replace(params, plan=Plan(frozen=True))
    assert model.advance(frozen, whole, part) is frozen


def test_parameters_do_not_share_memory_with_the_sums():
    """The memo changes its total in place."""
    model, X, params = setting("gaussian", K=4)
    whole = stats_of(model, X, mixture.some_shares(N_ROWS, 4))
    for found in (model.advance(params, whole, whole), model.update(params, whole)):
        assert not np.shares_memory(found.N, whole.N)
        assert not np.shares_memory(found.S, whole.S)


def test_rows_seen_earlier_count():
    """`base`: a pass over some rows is judged with the sums of those before."""
    model, X, params = setting("diag_gaussian", K=3)
    first = mixture.some_shares(40, 3, seed=5)
    earlier = stats_of(model, X[:40], first)
    result = run(model, X[40:], params, groups="each", max_iter=3, base=earlier)
    R = np.vstack([first, model.R])
    same_sums(result.total, stats_of(model, X, R))
    np.testing.assert_allclose(result.total.seen, model.R.sum(axis=0), rtol=1e-12)
    expected = mixture.bound(model.at(result.params), X, R)
    assert -result.history[-1] == pytest.approx(expected, rel=1e-10)


# --------------------------------------------------------------------- stochastic


def test_stochastic_steps_move_by_rho():
    case = CASES["diag_gaussian"]
    X = case.rows(N_ROWS)
    model = case.model(X, StochasticModel, delay=3.0, decay=0.7)
    params = mixture.components(model, X, mixture.some_shares(N_ROWS, 3))
    for visits in (0, 5):
        params = replace(params, visits=visits)
        latest, *_ = model.share_out(params, X[:20], np.ones(20))
        ahead = model.advance(params, latest, latest)
        rho = (visits + 3.0) ** -0.7
        for field in ("N", "S"):
            old, new = getattr(params, field), getattr(latest, field)
            expected = (1.0 - rho) * old + rho * (N_ROWS / 20) * new
            np.testing.assert_allclose(getattr(ahead, field), expected, rtol=1e-12)
        assert ahead.N.sum() == pytest.approx(N_ROWS)
        assert ahead.visits == visits + 1
        assert ahead.mass == N_ROWS


@pytest.mark.parametrize("name", CASES)
def test_stochastic_passes_end_with_a_learned_prior(name):
    """Of the sums that the steps have reached, which stay as they are."""
    X = CASES[name].rows(N_ROWS)
    model = CASES[name].model(X, StochasticModel)
    params = mixture.components(model, X, mixture.some_shares(N_ROWS, 3))
    params = replace(params, visits=7)
    last, *_ = model.share_out(params, X[:20], np.ones(20))
    after = model.update(params, last)
    sums = params.N, params.S
    learned = params.family.learned(*sums)
    assert worth(after.family, *sums) == worth(learned, *sums)
    rises = worth(after.family, *sums) > worth(params.family, *sums)
    assert rises == (learned is not params.family)
    np.testing.assert_array_equal(after.N, params.N)
    np.testing.assert_array_equal(after.S, params.S)
    assert (after.visits, after.mass, after.noise) == (7, params.mass, params.noise)
    fixed = replace(model, learns=False)
    assert fixed.update(params, last) is params


# -------------------------------------------------------------------------- regroup


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "old_to_new",
    [
        [0, 1, 2, 3, 4],
        [3, 0, 4, 1, 2],
        [0, 1, 1, 2, 3],
        [2, 0, 1, 0, 2],
        [0, -1, 1, 2, 3],
        [-1, 1, 0, -1, 1],
        [0, 0, -1, -1, -1],
    ],
)
def test_regrouped_sums_are_those_of_regrouped_responsibilities(old_to_new, weighted):
    model, X, _ = setting("gaussian", K=5)
    R, old_to_new = mixture.some_shares(N_ROWS, 5), np.array(old_to_new)
    w = np.random.default_rng(0).uniform(0.1, 2.0, N_ROWS) if weighted else None
    K = old_to_new.max() + 1
    found = stats_of(model, X, R, w).regroup(old_to_new, K)
    expected = stats_of(model, X, mixture.regrouped(R, old_to_new, K), w)
    same_sums(found, expected, 1e-10, ("N", "S", "entropy", "seen"))
    assert found.base == expected.base
    assert found.mass == expected.mass
    merged = np.bincount(old_to_new[old_to_new >= 0], minlength=K) > 1
    a, b = pair_index(K)
    known = ~(merged[a] | merged[b])
    np.testing.assert_allclose(found.pairs[known], expected.pairs[known], rtol=1e-9)
    # Of the others at least as much is charged as they lose.
    assert np.all(found.pairs >= expected.pairs - 1e-9)


def test_new_components_are_appended_empty():
    model, X, _ = setting("gaussian", K=3)
    total = stats_of(model, X, mixture.some_shares(N_ROWS, 3))
    more = total.regroup(np.arange(3), 5)
    assert more.K == 5
    assert np.all(more.N[3:] == 0.0)
    assert more.pairs.shape == (10,)
    assert model.best_bound(more) == pytest.approx(model.best_bound(total), rel=1e-12)


def test_regrouped_rows():
    model, X, params = setting("gaussian", K=4)
    _, local, _ = model.share_out(params, X, np.ones(N_ROWS))
    swapped = model.regroup_local(local, np.array([2, 3, 0, 1]), 4)
    expected = np.array([2, 3, 0, 1])[local.labels]
    np.testing.assert_array_equal(swapped.labels, expected)
    np.testing.assert_array_equal(swapped.starts, local.starts)
    fewer = model.regroup_local(local, np.array([0, -1, 1, 1]), 2)
    for n in range(N_ROWS):
        old = local.components[local.starts[n] : local.starts[n + 1]]
        kept = fewer.components[fewer.starts[n] : fewer.starts[n + 1]]
        old_to_new = np.array([0, -1, 1, 1])[old]
        np.testing.assert_array_equal(kept, old_to_new[old_to_new >= 0])


def test_rows_that_lose_all_their_components_start_anew():
    model, X, params = setting("gaussian", n_active=1)
    _, local, _ = model.share_out(params, X, np.ones(N_ROWS))
    assert len(local.components) == N_ROWS
    old_to_new = without(K, local.labels[:1])
    assert model.regroup_local(local, old_to_new, K - 1) is None


# ------------------------------------------------------------------------- collected


def collected(model, params, X, block_rows, weights=None):
    with SerialEngine(ArrayBlocks(X, block_rows), weights) as engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
        return Collected.joined(total.collected)


@pytest.mark.parametrize("n_collect", [5, 1000])
def test_rows_noted_for_births(n_collect):
    """More than a tenth of the target, whatever the blocks; a draw if they are many."""
    model, X, params = setting("gaussian", K=4, n_collect=n_collect)
    params = replace(params, plan=Plan(targets=np.array([1, 3]), seed=7))
    weights = np.ones(N_ROWS)
    weights[::9] = 0.0
    R = mixture.responsibilities(
        model.family.scores(params.expected, X) + params.log_weights
    )
    found = [
        collected(model, params, X, block_rows, weights).lowest(n_collect)
        for block_rows in (8, 33, N_ROWS)
    ]
    for k in (1, 3):
        rows = [set(part.rows[part.targets == k]) for part in found]
        assert rows[0] == rows[1] == rows[2]
        fine = set(np.flatnonzero((R[:, k] > 0.1) & (weights > 0.0)))
        assert rows[0] <= fine
        assert len(rows[0]) <= n_collect
        assert n_collect == 5 or rows[0] == fine
    assert set(found[0].targets) == {1, 3}
    assert np.all((found[0].priority >= 0.0) & (found[0].priority < 1.0))


def test_another_seed_notes_other_rows():
    model, X, params = setting("gaussian", K=2, n_collect=5)
    some = [
        set(collected(model, replace(params, plan=plan), X, 16).lowest(5).rows)
        for plan in (Plan(targets=np.array([0]), seed=seed) for seed in (1, 2))
    ]
    assert some[0] != some[1]


def test_of_each_target_the_lowest_are_kept():
    part = Collected(
        np.array([4, 9, 1, 7, 3]),
        np.array([0, 0, 2, 0, 2]),
        np.array([0.5, 0.1, 0.3, 0.1, 0.2]),
    )
    kept = part.lowest(2)
    assert set(zip(kept.rows, kept.targets, strict=True)) == {
        (9, 0),
        (7, 0),
        (1, 2),
        (3, 2),
    }
    assert set(part.lowest(1).rows) == {7, 3}  # ties: the lower row
    assert len(Collected.joined([]).lowest(3).rows) == 0


def test_a_new_pass_forgets_the_report_only():
    model, X, params = setting("gaussian", K=3)
    params = replace(params, plan=Plan(targets=np.array([0]), seed=1))
    with SerialEngine(ArrayBlocks(X, 32)) as engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
    before = total.copy()
    assert before.collected
    total.begin_pass()
    assert not total.collected
    assert np.all(total.seen == 0.0)
    assert np.all(total.removal_cost == 0.0)
    same_sums(total, before, 0.0)
    assert isinstance(before, MixtureStats)
