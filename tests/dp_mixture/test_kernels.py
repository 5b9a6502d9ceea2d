"""The kernels of mixtures, against the same written out in numpy."""

import numpy as np
import pytest
from scipy.special import logsumexp

import mixture_reference as mixture
from kplus.dp_mixture.kernels import (
    add_features,
    candidate_sets,
    count_beyond,
    gather_pairs,
    gather_support,
    score_candidates,
)
from kplus.dp_mixture.kernels_gaussian import (
    fill_quadratic,
    gather_outer,
    gather_scores,
    invert_factors,
    shortlist,
)
from kplus.dp_mixture.kernels_normal_gamma import (
    Levels,
    add_columns,
    score_column_candidates,
    score_columns,
)
from kplus.dp_mixture.kernels_responsibilities import Notes, Shares, responsibilities
from mixture_reference import some_shares

EVERYONE = np.empty((0, 0), np.int32)
NEVER = -800.0  # nothing is negligible


def share_out(scores, log_weights, candidates=EVERYONE, n_active=None, **more):
    """Run the kernel; responsibilities (n, K), support, starts and sums."""
    n, C = scores.shape
    K = len(log_weights)
    weights = more.get("weights", np.ones(n))
    most = C if n_active is None else n_active
    support, r = np.full(n * most, -7, np.int32), np.full(n * most, np.nan)
    starts = np.full(n + 1, -7, np.int64)
    entropy, pairs, removal_cost = np.zeros(K), np.zeros((K, K)), np.zeros(K)
    responsibilities(
        scores, candidates, log_weights, weights, most,
        more.get("least", NEVER), Shares(support, r, starts, np.empty(0)),
        Notes(entropy, pairs, removal_cost),
    )  # fmt: skip
    R = np.zeros((n, K))
    for i in range(n):
        R[i, support[starts[i] : starts[i + 1]]] = r[starts[i] : starts[i + 1]]
    return R, support, starts, entropy, pairs, removal_cost


def brute_removal_cost(logs, R, weights, least=NEVER):
    """What rows lose without their leading component, or without a lesser one.

    Nobody is farther off than those that were ruled out, by `least`, are at best.
    """
    out = np.zeros(R.shape[1])
    for row, r, w in zip(logs, R, weights, strict=True):
        lead = int(np.argmax(row))
        for k in np.flatnonzero(r):
            out[k] -= w * np.log1p(-r[k]) if k != lead else 0.0
        second = np.max(np.delete(row, lead), initial=row[lead] + least)
        out[lead] += w * (logsumexp(row[r > 0.0]) - second)
    return out


def check(logs, scores, log_weights, n_active=None, weights=None, **more):
    """Everything that the kernel returns against the reference."""
    w = np.ones(len(logs)) if weights is None else weights
    R, support, starts, entropy, pairs, removal_cost = share_out(
        scores, log_weights, n_active=n_active, weights=w, **more
    )
    expected = mixture.responsibilities(logs, n_active)
    np.testing.assert_allclose(R, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(support[starts[:-1]], np.argmax(logs, axis=1))
    sizes = np.count_nonzero(expected, axis=1)
    np.testing.assert_array_equal(np.diff(starts), sizes)
    np.testing.assert_allclose(
        entropy, w @ mixture.entropy(expected), rtol=1e-11, atol=1e-13
    )
    K = len(log_weights)
    for a in range(K):
        for b in range(K):
            lost = mixture.pair_entropy(expected, a, b, w) if a < b else 0.0
            assert pairs[a, b] == pytest.approx(lost, rel=1e-11, abs=1e-11)
    brute = brute_removal_cost(logs, expected, w)
    np.testing.assert_allclose(removal_cost, brute, rtol=1e-10, atol=1e-12)


def some_scores(seed, n, K, spread=3.0):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=spread, size=(n, K)), rng.normal(size=K)


@pytest.mark.parametrize("n_active", [None, 1, 2, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "K"), [(1, 1), (30, 1), (1, 6), (40, 6), (25, 2)])
def test_every_component(n, K, weighted, n_active):
    scores, log_weights = some_scores(n + K, n, K)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, n) if weighted else None
    n_active = None if n_active is None else min(n_active, K)
    check(scores + log_weights, scores, log_weights, n_active, weights)


@pytest.mark.parametrize("n_active", [None, 3])
@pytest.mark.parametrize("seed", range(4))
def test_candidates_only(seed, n_active):
    """Some slots ask for nobody (-1); the others name components in any order."""
    rng = np.random.default_rng(seed)
    n, K, C = 30, 9, 5
    dense, log_weights = some_scores(seed, n, K)
    candidates = np.array([rng.permutation(K)[:C] for _ in range(n)], np.int32)
    hidden = rng.random((n, C)) < 0.3
    hidden[np.arange(n), rng.integers(0, C, n)] = False
    hidden[np.arange(n), (rng.integers(0, C, n))] = False
    candidates[hidden] = -1
    logs = np.full((n, K), -np.inf)
    scores = np.full((n, C), -np.inf)
    for i in range(n):
        for c in np.flatnonzero(candidates[i] >= 0):
            k = candidates[i, c]
            logs[i, k], scores[i, c] = dense[i, k] + log_weights[k], dense[i, k]
    check(logs, scores, log_weights, n_active, candidates=candidates)


def test_no_rows():
    R, _, starts, *sums = share_out(np.empty((0, 3)), np.zeros(3))
    assert R.shape == (0, 3)
    np.testing.assert_array_equal(starts, [0])
    assert all(np.all(part == 0.0) for part in sums)


@pytest.mark.parametrize("n_active", [None, 1, 2])
def test_ties_lead_with_the_lowest_number(n_active):
    scores = np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0], [5.0, 5.0, -3.0]])
    R, support, starts, *_ = share_out(scores, np.zeros(3), n_active=n_active)
    np.testing.assert_array_equal(support[starts[:-1]], [0, 1, 0])
    np.testing.assert_allclose(R.sum(axis=1), 1.0, rtol=1e-14)
    if n_active is None:
        np.testing.assert_allclose(R[0], 1.0 / 3.0, rtol=1e-14)
    if n_active == 1:
        np.testing.assert_array_equal(R, np.eye(3)[[0, 1, 0]])


def test_equal_shares_lose_all_their_entropy():
    scores = np.zeros((7, 2))
    *_, entropy, pairs, _ = share_out(scores, np.zeros(2))
    np.testing.assert_allclose(entropy, 3.5 * np.log(2.0), rtol=1e-13)
    assert pairs[0, 1] == pytest.approx(7 * np.log(2.0), rel=1e-13)


def test_negligible_components_have_no_share():
    scores = np.array([[0.0, -20.0, -30.0], [-29.0, -28.0, 0.0]])
    R, _, starts, *_ = share_out(scores, np.zeros(3), least=np.log(1e-12))
    np.testing.assert_array_equal(np.diff(starts), [2, 1])
    np.testing.assert_array_equal(R > 0.0, [[True, True, False], [False, False, True]])
    assert R[0, 1] == pytest.approx(np.exp(-20.0), rel=1e-8)


def test_what_rows_lose_at_most_is_how_far_off_others_must_be():
    """Components ruled out, here or before, may be as near as `least` says."""
    least, weights = np.log(1e-12), np.array([2.0, 0.5, 3.0])
    scores = np.array([[0.0, -20.0, -30.0], [-29.0, -28.0, 0.0], [-1e9, 0.0, -1.0]])
    R, *_, removal_cost = share_out(scores, np.zeros(3), least=least, weights=weights)
    expected = brute_removal_cost(scores, R, weights, least)
    np.testing.assert_allclose(removal_cost, expected, rtol=1e-12)
    # The lead of the second row, and next to nothing of the third.
    assert removal_cost[2] == pytest.approx(-0.5 * least - 3.0 * np.log1p(-R[2, 2]))
    hidden = np.array([[0, -1, -1], [2, -1, -1], [1, 2, -1]], np.int32)
    asked = np.where(hidden >= 0, np.take_along_axis(scores, hidden, 1), -np.inf)
    R, *_, removal_cost = share_out(
        asked, np.zeros(3), hidden, least=least, weights=weights
    )
    assert removal_cost[0] == pytest.approx(-2.0 * least)


def test_one_component_is_spared_as_if_others_had_been_ruled_out():
    *_, removal_cost = share_out(np.zeros((3, 1)), np.zeros(1), least=-7.0)
    assert removal_cost[0] == pytest.approx(3 * 7.0)


def test_tiny_shares_keep_their_pair_entropy():
    """Differences of nearly equal numbers would lose it."""
    gap = 25.0
    *_, pairs, _ = share_out(np.array([[0.0, -gap]]), np.zeros(2))
    t = np.exp(-gap)
    assert pairs[0, 1] == pytest.approx(t * (1.0 + gap), rel=1e-9)


def test_logarithms_near_0_keep_their_digits():
    """Of 1 + t and 1 - r as of any other number, however small t and r are."""
    gaps = np.linspace(0.01, 29.0, 500)
    t = np.exp(-gaps)
    for gap, one in zip(gaps, t, strict=True):
        *_, pairs, removal_cost = share_out(np.array([[0.0, -gap]]), np.zeros(2))
        lost = ((1.0 + one) * np.log1p(one) + one * gap) / (1.0 + one)
        assert pairs[0, 1] == pytest.approx(lost, rel=1e-14)
        without = -np.log1p(-one / (1.0 + one))
        assert removal_cost[1] == pytest.approx(without, rel=1e-14)


@pytest.mark.parametrize("n_active", [None, 3])
def test_what_all_scores_have_in_common_costs_no_digits(n_active):
    """Differences of these scores are exact, however large they are."""
    scores = np.round(some_scores(5, 50, 8)[0] * 64.0) / 64.0
    near = share_out(scores, np.zeros(8), n_active=n_active)
    far = share_out(scores - 2.0**45, np.zeros(8), n_active=n_active)
    for one, other in zip(near, far, strict=True):
        np.testing.assert_array_equal(one, other)


def test_huge_and_tiny_scores_stay_finite():
    scores = np.array([[1e6, -1e6, 1e6], [-1e9, -1e9 + 1.0, -2e9]])
    R, *_, entropy, pairs, removal_cost = share_out(
        scores, np.zeros(3), least=np.log(1e-20)
    )
    np.testing.assert_allclose(R.sum(axis=1), 1.0, rtol=1e-12)
    for part in (R, entropy, pairs, removal_cost):
        assert np.all(np.isfinite(part))


@pytest.mark.parametrize("K", [1, 3])
def test_rows_without_weight_say_nothing(K):
    scores, log_weights = some_scores(0, 6, K)
    weights = np.array([1.0, 0.0, 2.0, 0.0, 0.0, 1.0])
    kept = weights > 0.0
    some = share_out(scores, log_weights, weights=weights)[3:]
    rest = share_out(scores[kept], log_weights, weights=weights[kept])[3:]
    for one, other in zip(some, rest, strict=True):
        np.testing.assert_array_equal(one, other)


# --------------------------------------------------------------------- gathering


@pytest.mark.parametrize(("n", "K"), [(0, 2), (1, 1), (20, 4)])
def test_rows_are_gathered_by_component(n, K):
    scores, log_weights = some_scores(n, n, K)
    R, support, starts, *_ = share_out(scores, log_weights, n_active=min(2, K))
    weights = np.random.default_rng(0).uniform(0.0, 2.0, n)
    r = np.array(
        [R[i, k] for i in range(n) for k in support[starts[i] : starts[i + 1]]]
    )
    first, rows, shares = gather_support(
        starts, support[: starts[n]], r.astype(float), weights, K
    )
    assert first[0] == 0
    assert first[K] == starts[n]
    for k in range(K):
        mine = slice(first[k], first[k + 1])
        np.testing.assert_array_equal(rows[mine], np.flatnonzero(R[:, k]))
        expected = (weights * R[:, k])[rows[mine]]
        np.testing.assert_allclose(shares[mine], expected, rtol=1e-15)


def test_pairs_of_row_and_slot_are_gathered_by_component():
    candidates = np.array([[2, 0], [-1, 2], [-1, -1], [0, 3]], np.int32)
    first, rows, slots = gather_pairs(candidates, 5)
    np.testing.assert_array_equal(first, [0, 2, 2, 4, 5, 5])
    np.testing.assert_array_equal(rows, [0, 3, 0, 1, 3])
    np.testing.assert_array_equal(slots, [1, 0, 0, 1, 1])
    first, rows, _ = gather_pairs(np.empty((0, 2), np.int32), 3)
    np.testing.assert_array_equal(first, np.zeros(4))
    assert len(rows) == 0


def test_candidates_are_the_last_support_and_neighbours_once_each():
    starts = np.array([0, 2, 3, 6])
    support = np.array([4, 1, 0, 2, 2, 3], np.int32)  # the third row's 2 is a merger
    neighbours = np.array([[1, 2], [0, 2], [3, 1], [2, 1], [1, 0]], np.int32)
    found = candidate_sets(starts, support, neighbours, 3)
    assert found.shape == (3, 5)
    for row, expected in zip(found, ([4, 1, 0], [0, 1, 2], [2, 3, 1]), strict=True):
        np.testing.assert_array_equal(row[row >= 0], expected)
        np.testing.assert_array_equal(row[len(expected) :], -1)


def test_a_support_that_is_too_large_keeps_its_first_entries():
    starts, support = np.array([0, 4]), np.array([3, 0, 1, 2], np.int32)
    found = candidate_sets(starts, support, np.empty((4, 0), np.int32), 2)
    np.testing.assert_array_equal(found, [[3, 0]])


def test_candidate_sets_of_no_rows():
    nobody = np.empty(0, np.int32)
    found = candidate_sets(np.array([0]), nobody, np.zeros((3, 2), np.int32), 2)
    assert found.shape == (0, 4)


FEATURE_SHAPES = [(1, 1, 1), (1, 4, 3), (25, 1, 2), (30, 5, 6), (0, 2, 2)]


@pytest.mark.parametrize(("n", "M", "K"), FEATURE_SHAPES)
def test_scores_of_candidates_from_features(n, M, K):
    rng = np.random.default_rng(n + M)
    F, eta, bias = rng.normal(size=(n, M)), rng.normal(size=(K, M)), rng.normal(size=K)
    candidates = rng.integers(-1, K, size=(n, 4)).astype(np.int32)
    out = np.full((n, 4), np.nan)
    score_candidates(F, candidates, eta, bias, out)
    for i in range(n):
        for c, k in enumerate(candidates[i]):
            expected = -np.inf if k < 0 else F[i] @ eta[k] + bias[k]
            assert out[i, c] == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("n", "M", "K"), FEATURE_SHAPES)
def test_sums_of_features_by_component(n, M, K):
    """They are added to what is there; component 0 has no rows where there are more."""
    F = np.random.default_rng(M).normal(size=(n, M))
    shares = some_shares(n, K) if n else np.empty((0, K))
    if K > 1:
        shares[:, 0] = 0.0
    k, rows = np.nonzero(shares.T)
    starts = np.searchsorted(k, np.arange(K + 1)).astype(np.int64)
    out = np.ones((K, M))
    add_features(
        F, starts, rows.astype(np.int64), np.ascontiguousarray(shares[rows, k]), out
    )
    np.testing.assert_allclose(out, 1.0 + shares.T @ F, rtol=1e-12, atol=1e-13)


SHAPES = [(1, 1, 1), (1, 3, 2), (20, 1, 3), (30, 4, 5), (0, 2, 2)]


def rows(n, D, seed=0):
    return np.random.default_rng(seed).normal(size=(n, D)) + 2.0


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(("n", "D", "_"), SHAPES)
def test_rows_and_the_triangle_of_their_products(n, D, _, linear):
    Y = rows(n, D)
    offset = D if linear else 0
    out = np.full((n, offset + D * (D + 1) // 2), np.nan)
    fill_quadratic(Y, offset, out)
    i, j = np.triu_indices(D)
    np.testing.assert_array_equal(out, np.hstack([Y[:, :offset], Y[:, i] * Y[:, j]]))


@pytest.mark.parametrize(("K", "D"), [(1, 1), (3, 1), (2, 6)])
def test_inverses_of_triangular_factors(K, D):
    rng = np.random.default_rng(D)
    L = np.tril(rng.normal(size=(K, D, D))) + 3.0 * np.eye(D)
    scale, out = rng.uniform(0.5, 2.0, K), np.full((K, D, D), np.nan)
    invert_factors(L, scale, out)
    expected = scale[:, None, None] * np.swapaxes(np.linalg.inv(L), 1, 2)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


def near_best(scores, log_weights, error, margin, sizes=1.0):
    """The shortlist of rows with these scores: row n has `sizes` in column n alone."""
    n, K = scores.shape
    D = max(n, 1)
    eta = np.zeros((K, D + D * (D + 1) // 2), np.float32)
    eta[:, :n] = scores.T
    X = np.diag(np.full(D, sizes))[:n]
    return shortlist(X, np.zeros(D), np.ones(D), D, eta, log_weights, error, margin)


@pytest.mark.parametrize("margin", [1.0, 40.0])
@pytest.mark.parametrize(("n", "K"), [(0, 3), (1, 1), (40, 7), (70, 3)])
def test_components_near_the_best(n, K, margin):
    """With no rounding at all just those within the margin, in order, then -1."""
    rng = np.random.default_rng(n)
    scores, log_weights = rng.normal(scale=20.0, size=(n, K)), rng.normal(size=K)
    found = near_best(scores, log_weights, 0.0, margin)
    assert found.shape[0] == n
    logs = scores + log_weights
    for row, candidates in zip(logs, found, strict=True):
        near = np.flatnonzero(row >= row.max() - margin)
        np.testing.assert_array_equal(candidates[: len(near)], near)
        assert np.all(candidates[len(near) :] == -1)


def test_rounding_keeps_more_components():
    scores = np.array([[0.0, -12.0, -30.0]])
    for error, kept in ((0.0, 1), (0.5, 1), (1.0, 2), (8.0, 3)):
        found = near_best(scores, np.zeros(3), error, 10.0)
        assert np.count_nonzero(found >= 0) == kept


@pytest.mark.parametrize("size", [np.inf, np.nan, 1e30])
def test_a_row_without_numbers_keeps_every_component(size):
    """Also one whose squares are beyond float32."""
    scores = np.array([[0.0, -99.0], [0.0, -99.0], [0.0, -99.0]])
    found = near_best(scores, np.zeros(2), 1.0, 5.0, sizes=[size, 1.0, -size])
    np.testing.assert_array_equal(found, [[0, 1], [0, -1], [0, 1]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("n", [1, 600])
def test_shortlists_hold_all_that_are_near(n, linear, dtype):
    """Scores of rows in units of their own, in more than one tile."""
    D, K, margin = 5, 6, 3.0
    X, origin, inv = rows(n, D).astype(dtype), np.arange(5.0), 2.0 ** np.arange(-2, 3)
    X.flags.writeable = False
    rng = np.random.default_rng(1)
    Y = (X - origin) * inv
    i, j = np.triu_indices(D)
    F = np.hstack([Y[:, : D * linear], Y[:, i] * Y[:, j]])
    eta, bias = rng.normal(size=(K, F.shape[1])).astype(np.float32), rng.normal(size=K)
    found = shortlist(X, origin, inv, D * linear, eta, bias, 1e-6, margin)
    scores = F @ eta.T + bias
    off = scores - scores.max(axis=1, keepdims=True)
    for row, candidates in zip(off, found, strict=True):
        kept = set(candidates[candidates >= 0])
        assert set(np.flatnonzero(row > -margin)) <= kept
        assert kept <= set(np.flatnonzero(row > -margin - 0.1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_beyond_a_limit_are_counted(dtype):
    values = np.array([0.0, -3.0, 3.5, np.nan, -np.inf, 2.0, np.nan, 1e30], dtype)
    assert count_beyond(values, 3.0) == (3, 2)
    assert count_beyond(values[:2], 3.0) == (0, 0)
    assert count_beyond(values[:0], 3.0) == (0, 0)


def gappy(n, D, share, dtype=np.float64):
    rng = np.random.default_rng(n + D)
    X = rng.normal(size=(n, D)) + 2.0
    X[rng.random((n, D)) < share] = np.nan
    X = X.astype(dtype)
    X.flags.writeable = False
    return X


def column_features(X, origin, inv, pooled):
    Y = (X.astype(np.float64) - origin) * inv
    seen, Y = ~np.isnan(Y), np.nan_to_num(Y)
    squares = np.sum(Y**2, axis=1, keepdims=True) if pooled else Y**2
    return np.hstack([seen, Y, squares])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    ("n", "D", "K"), [(1, 1, 1), (30, 4, 5), (300, 3, 2), (0, 2, 2)]
)
def test_scores_and_sums_of_independent_columns(n, D, K, share, pooled, dtype):
    rng = np.random.default_rng(0)
    X, origin, inv = gappy(n, D, share, dtype), rng.normal(size=D), np.full(D, 0.5)
    F = column_features(X, origin, inv, pooled)
    eta = rng.normal(size=(K, F.shape[1]))
    observed, values = map(np.ascontiguousarray, np.split(eta, [D], axis=1))
    levels = Levels(observed, observed.sum(axis=1), values)
    dense = np.full((n, K), np.nan)
    score_columns(X, origin, inv, levels, dense)
    np.testing.assert_allclose(dense, F @ eta.T, rtol=1e-12, atol=1e-12)

    candidates = rng.integers(-1, K, size=(n, 3)).astype(np.int32)
    some = np.full((n, 3), np.nan)
    score_column_candidates(X, origin, inv, candidates, levels, some)
    expected = np.where(
        candidates < 0, -np.inf, np.take_along_axis(dense, np.maximum(candidates, 0), 1)
    )
    np.testing.assert_allclose(some, expected, rtol=1e-12, atol=1e-12)

    shares = some_shares(n, K) if n else np.empty((0, K))
    k, members = np.nonzero(shares.T)
    starts = np.searchsorted(k, np.arange(K + 1)).astype(np.int64)
    weights = np.ascontiguousarray(shares[members, k])
    out = np.ones((K, F.shape[1]))
    add_columns(X, origin, inv, starts, members.astype(np.int64), weights, out)
    np.testing.assert_allclose(out, 1.0 + shares.T @ F, rtol=1e-12, atol=1e-13)


def in_other_units(Y):
    """Rows that are these after a shift and a scaling."""
    origin, inv = 0.5 * np.arange(Y.shape[1]), np.full(Y.shape[1], 0.25)
    X = Y / inv + origin
    X.flags.writeable = False
    return X, origin, inv


def components(K, D, seed=1):
    rng = np.random.default_rng(seed)
    whiten = rng.normal(size=(K, D, D))
    return rng.normal(size=(K, D)), whiten, rng.normal(size=K)


@pytest.mark.parametrize("hidden", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("n", "D", "K"), SHAPES)
def test_gaussian_scores_of_candidates(n, D, K, hidden):
    Y, (means, whiten, const) = rows(n, D), components(K, D)
    rng = np.random.default_rng(2)
    C = min(K, 3)
    candidates = np.array([rng.permutation(K)[:C] for _ in range(n)], np.int32).reshape(
        n, C
    )
    candidates[rng.random((n, C)) < hidden] = -1
    out = np.full((n, C), -np.inf)
    X, origin, inv = in_other_units(Y)
    pairs = gather_pairs(candidates, K)
    gather_scores(X, origin, inv, *pairs, means, whiten, const, out)
    for i in range(n):
        for c, k in enumerate(candidates[i]):
            expected = -np.inf
            if k >= 0:
                precision = whiten[k] @ whiten[k].T
                off = Y[i] - means[k]
                expected = const[k] - 0.5 * off @ precision @ off
            assert out[i, c] == pytest.approx(expected, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(("n", "D", "K"), SHAPES)
def test_second_moments_by_component(n, D, K, linear):
    """Component 1 has no rows where there is one."""
    Y = rows(n, D)
    shares = some_shares(n, K) if n else np.empty((0, K))
    if K > 1:
        shares[:, 1] = 0.0
    k, members = np.nonzero(shares.T)
    starts = np.searchsorted(k, np.arange(K + 1)).astype(np.int64)
    weights = np.ascontiguousarray(shares[members, k])
    offset = D if linear else 0
    out = np.zeros((K, offset + D * (D + 1) // 2))
    X, origin, inv = in_other_units(Y)
    gather_outer(X, origin, inv, starts, members.astype(np.int64), weights, offset, out)
    i, j = np.triu_indices(D)
    second = np.einsum("nk,ni,nj->kij", shares, Y, Y)[:, i, j]
    np.testing.assert_allclose(out[:, offset:], second, rtol=1e-12, atol=1e-13)
    if linear:
        np.testing.assert_allclose(out[:, :D], shares.T @ Y, rtol=1e-12, atol=1e-13)
