"""DP-means with covariance matrices against brute force; claim MB-17."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

import reference
from jobs import make_job
from kplus import DPMeans
from kplus.core.runs import labels_of, run_job
from kplus.core.types import Position
from kplus.data.blocks import ArrayBlocks
from kplus.dp_means.full_covariance import (
    Ellipsoids,
    FullCovarianceModel,
    OpenEllipsoids,
    Scatters,
)
from kplus.dp_means.full_covariance_search import by_penalty, refine


def job(X, weights=None, block_rows=None, **settings):
    source = ArrayBlocks(np.asarray(X, dtype=np.float64), block_rows)
    return make_job(source, weights, np.random.default_rng(0), tol=0.0, **settings)


def some_rows(seed, n=60, D=2, scale=6.0):
    """Four long Gaussians."""
    rng = np.random.default_rng(seed)
    groups = rng.normal(size=(4, D)) * scale
    shapes = rng.normal(size=(4, D, D))
    z = rng.integers(0, 4, n)
    return groups[z] + np.einsum("nij,nj->ni", shapes[z], rng.normal(size=(n, D)))


def some_weights(seed, n):
    return np.random.default_rng(seed).choice([0.0, 0.3, 1.0, 2.0, 2.5], size=n)


def mahalanobis(X, C, covariances):
    """Squared Mahalanobis distance of each row to each centre."""
    out = np.empty((len(X), len(C)))
    for k, (c, S) in enumerate(zip(C, covariances, strict=True)):
        out[:, k] = np.einsum("nd,de,ne->n", X - c, np.linalg.inv(S), X - c)
    return out


def stein(S, floor):
    """log|Σ| - log|Σ0| + tr(Σ0 Σ⁻¹) - D."""
    D = len(S)
    log_det = np.linalg.slogdet(S)[1] - D * np.log(floor)
    return log_det + floor * np.trace(np.linalg.inv(S)) - D


def objective(X, labels, C, covariances, penalty, floor, weights=None):
    w = reference.weights_or_ones(X, weights)
    cost = w @ mahalanobis(X, C, covariances)[np.arange(len(X)), labels]
    shape = sum(stein(S, floor) for S in covariances) + len(C) - 1
    return cost + penalty * shape


def best_parameters(X, labels, K, penalty, floor, weights=None):
    w = reference.weights_or_ones(X, weights)
    C, covariances = reference.means(X, labels, K, w), []
    for k in range(K):
        diff = X[labels == k] - C[k]
        scatter = (w[labels == k, None] * diff).T @ diff
        covariances.append(floor * np.eye(X.shape[1]) + scatter / penalty)
    return C, np.array(covariances)


def one_pass(model, params, X, weights=None, block_rows=None):
    task = job(X, weights, block_rows, max_iter=1)
    result, labels = run_job(task, model, params, rows=labels_of)
    return result, labels


# ----------------------------------------------------------------------- algebra


@pytest.mark.parametrize("weighted", [False, True])
def test_pass_and_update_equal_brute_force(weighted):
    X = some_rows(0)
    w = some_weights(0, 60) if weighted else None
    labels = np.arange(60) % 3
    C, covariances = best_parameters(X, labels, 3, 7.0, 0.5, w)
    model = FullCovarianceModel(7.0, 0.5)
    result, labels = one_pass(model, Ellipsoids(C, covariances), X, w)
    squares = mahalanobis(X, C, covariances)
    np.testing.assert_array_equal(labels, np.argmin(squares, axis=1))
    value = objective(X, labels, C, covariances, 7.0, 0.5, w)
    np.testing.assert_allclose(result.history[0], value, rtol=1e-12)
    second = np.sort(squares, axis=1)[:, 1] - np.min(squares, axis=1)
    removal_cost = np.bincount(labels, second * reference.weights_or_ones(X, w), 3)
    np.testing.assert_allclose(result.total.removal_cost, removal_cost, rtol=1e-10)
    updated = model.update(result.params, result.total)
    C, covariances = best_parameters(X, labels, 3, 7.0, 0.5, w)
    np.testing.assert_allclose(updated.centers, C, rtol=1e-10)
    np.testing.assert_allclose(updated.covariances, covariances, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 8])
def test_update_is_the_minimum(n):
    """Numerical minimisation over the mean and a Cholesky factor finds the same."""
    X = some_rows(1, n=n)
    penalty, floor = 3.0, 0.7
    lower = np.tril_indices(2)

    def unpack(theta):
        L = np.zeros((2, 2))
        L[lower] = theta[2:]
        return theta[None, :2], (L @ L.T + 1e-12 * np.eye(2))[None]

    def value(theta):
        return objective(X, np.zeros(n, int), *unpack(theta), penalty, floor)

    start = np.concatenate([X[0] + 0.3, [1.0, 0.1, 1.2]])
    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-10, "fatol": 1e-12}
    minimum = minimize(value, start, method="Nelder-Mead", options=options)
    C, covariances = best_parameters(X, np.zeros(n, int), 1, penalty, floor)
    best = objective(X, np.zeros(n, int), C, covariances, penalty, floor)
    np.testing.assert_allclose(minimum.fun, best, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(unpack(minimum.x)[0], C, atol=1e-3)
    np.testing.assert_allclose(unpack(minimum.x)[1], covariances, atol=1e-3)
    log_det = np.linalg.slogdet(covariances[0] / floor)[1]
    np.testing.assert_allclose(best, penalty * log_det, atol=1e-12)


def test_MB_17_the_papers_objective_is_unbounded_ours_is_not():
    """At most D rows: the paper's λ² log|Σ| falls forever as Σ becomes singular."""
    X = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    labels, mean = np.zeros(2, int), X.mean(axis=0)[None]
    paper, ours = [], []
    for width in (1e-2, 1e-4, 1e-8, 1e-16):
        S = np.diag([1.0, width, width])[None]
        square = mahalanobis(X, mean, S).sum()
        paper.append(square + 5.0 * np.linalg.slogdet(S[0])[1])
        ours.append(objective(X, labels, mean, S, 5.0, 0.1))
    assert np.all(np.diff(paper) < -40.0)
    assert np.all(np.diff(ours) > 0.0)
    assert min(ours) >= 0.0
    rows = np.random.default_rng(0).normal(size=(200, 3))
    model = DPMeans(1e-3, covariance="full", min_covariance=1e-6).fit(rows)
    assert np.isfinite(model.objective_)
    assert np.linalg.eigvalsh(model.covariances_).min() >= 1e-6 * (1.0 - 1e-9)


@given(st.integers(0, 10_000), st.floats(0.01, 10.0), st.floats(-3.0, 3.0))
def test_MB_17_the_added_terms_are_never_negative(seed, floor, log_scale):
    A = np.random.default_rng(seed).normal(size=(3, 3))
    S = 10.0**log_scale * (A @ A.T + 0.01 * np.eye(3))
    loss = Ellipsoids(np.zeros((1, 3)), S[None]).stein(floor)
    np.testing.assert_allclose(loss, stein(S, floor), rtol=1e-9, atol=1e-9)
    assert loss > 0.0
    np.testing.assert_array_equal(
        Ellipsoids.spheres(np.zeros((2, 3)), floor).stein(floor), 0.0
    )


def test_MB_17_large_penalties_give_eq_3(blobs):
    """λ² log|I + S/λ²| → tr S: the penalty kept out, Eq. 3 remains."""
    labels = np.repeat(np.arange(4), 50)
    sse = reference.squared_error(blobs, labels, reference.means(blobs, labels, 4))
    gaps = []
    for penalty in (1e3, 1e5, 1e7):
        C, covariances = best_parameters(blobs, labels, 4, penalty, 1.0)
        value = objective(blobs, labels, C, covariances, penalty, 1.0)
        gaps.append(abs(value - 3.0 * penalty - sse) / sse)
    np.testing.assert_allclose(gaps[1] / gaps[0], 1e-2, rtol=0.1)
    assert gaps[2] < 1e-4


# ----------------------------------------------------------------------- algorithm


@given(
    st.integers(0, 10_000), st.floats(0.5, 60.0), st.booleans(), st.sampled_from([2, 9])
)
def test_objective_never_rises(seed, penalty, weighted, cap):
    X = some_rows(seed, n=40)
    w = some_weights(seed, 40) + 1e-3 if weighted else None
    model = FullCovarianceModel(penalty, 0.3, cap)
    start = Ellipsoids.spheres(X.mean(axis=0)[None], 0.3)
    fitted = refine(job(X, w), model, start)
    assert np.all(np.diff(fitted.history) <= 1e-10 * fitted.history[0])
    assert len(fitted.centers) <= cap
    value = objective(
        X, fitted.labels, fitted.centers, fitted.covariances, penalty, 0.3, w
    )
    np.testing.assert_allclose(fitted.objective, value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_at_convergence_no_move_that_is_considered_pays(seed):
    X = some_rows(seed, n=80)
    fitted = by_penalty(job(X), penalty=12.0, floor=0.5)
    C, S, labels = fitted.centers, fitted.covariances, fitted.labels
    assert fitted.converged
    squares = mahalanobis(X, C, S)
    np.testing.assert_array_equal(labels, np.argmin(squares, axis=1))
    assert squares.min(axis=1).max() <= 12.0
    best_C, best_S = best_parameters(X, labels, len(C), 12.0, 0.5)
    np.testing.assert_allclose(C, best_C, atol=1e-9)
    np.testing.assert_allclose(S, best_S, atol=1e-9)
    for k in range(len(C) if len(C) > 1 else 0):
        rest = np.delete(np.arange(len(C)), k)
        other = np.argmin(squares[:, rest], axis=1)
        less = objective(X, other, C[rest], S[rest], 12.0, 0.5)
        assert less >= fitted.objective * (1.0 - 1e-9)


def test_removal_happens_and_lowers_the_objective():
    """Two clusters in one blob: one of them is not worth its penalty."""
    X = np.random.default_rng(0).normal(size=(100, 2))
    start = Ellipsoids.spheres(np.array([[-0.5, 0.0], [0.5, 0.0]]), 1.0)
    fitted = refine(job(X), FullCovarianceModel(300.0, 1.0), start)
    assert len(fitted.centers) == 1
    assert np.all(np.diff(fitted.history) <= 1e-9)


def test_far_rows_have_clusters_of_their_own():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    X = np.concatenate([rows, [[60.0, 0.0], [60.5, 0.0], [0.0, 80.0]]])
    labels = by_penalty(job(X), penalty=100.0, floor=0.5).labels
    np.testing.assert_array_equal(labels, [0] * 60 + [1, 1, 2])


def test_opened_rows_are_far_apart_and_taken_out_of_their_clusters():
    X = np.concatenate([np.zeros((40, 1)), [[30.0], [30.5], [-40.0]]])
    start = Ellipsoids.spheres(np.zeros((16, 1)) + np.arange(16)[:, None], 1.0)
    model = FullCovarianceModel(100.0, 1.0)
    result, _ = one_pass(model, start, X)
    params, total = result.params, result.total
    proposal = OpenEllipsoids().propose(Position(model, params, total, params, False))
    np.testing.assert_array_equal(proposal.params.centers[16:, 0], [-40.0, 30.5])
    np.testing.assert_array_equal(proposal.params.covariances[16:], 1.0)
    assert proposal.params.centers[0, 0] == 0.0  # without the row at -40
    assert proposal.params.centers[15, 0] == 30.0  # with the row that stays


@pytest.mark.parametrize(("K", "opened"), [(1, 1), (15, 1), (16, 2), (24, 3)])
def test_an_eighth_of_the_clusters_opens_at_once_or_one(K, opened):
    X = np.concatenate([np.zeros((40, 1)), [[200.0], [300.0], [500.0], [900.0]]])
    start = Ellipsoids.spheres(np.arange(float(K))[:, None], 1.0)
    model = FullCovarianceModel(100.0, 1.0)
    result, _ = one_pass(model, start, X)
    at = Position(model, result.params, result.total, result.params, False)
    far = [900.0, 500.0, 300.0][:opened]
    born = OpenEllipsoids().propose(at).params.centers[K:, 0]
    np.testing.assert_array_equal(born, far)


@pytest.mark.parametrize("weighted", [False, True])
def test_any_blocking_gives_the_same(weighted):
    X = some_rows(4)
    w = some_weights(4, 60) if weighted else None
    model = FullCovarianceModel(8.0, 0.4)
    start = Ellipsoids.spheres(X.mean(axis=0)[None], 0.4)
    fits = [refine(job(X, w, rows), model, start) for rows in (1, 7, 60)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].labels, other.labels)
        np.testing.assert_allclose(fits[0].history, other.history, rtol=1e-10)
        np.testing.assert_allclose(
            fits[0].covariances, other.covariances, rtol=1e-10, atol=1e-10
        )


def test_threads_change_nothing():
    X = some_rows(5, n=300)
    one, two = (
        DPMeans(9.0, covariance="full", batch_size=32, n_jobs=n).fit(X) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.covariances_, two.covariances_)
    np.testing.assert_array_equal(one.objective_history_, two.objective_history_)


@pytest.mark.parametrize("seed", range(4))
def test_weight_two_is_the_row_twice(seed):
    X = some_rows(seed)
    times = np.random.default_rng(seed).integers(1, 4, 60)
    model = FullCovarianceModel(10.0, 0.4)
    start = Ellipsoids.spheres(X.mean(axis=0)[None], 0.4)
    once = refine(job(X, times.astype(float)), model, start)
    twice = refine(job(np.repeat(X, times, axis=0)), model, start)
    np.testing.assert_array_equal(np.repeat(once.labels, times), twice.labels)
    np.testing.assert_allclose(once.history, twice.history, rtol=1e-10)


def test_scatters_add_subtract_and_regroup():
    X, model = some_rows(6), FullCovarianceModel(5.0, 1.0)
    start = Ellipsoids.spheres(X[:4], 1.0)
    whole = one_pass(model, start, X)[0].total
    parts = one_pass(model, start, X, block_rows=11)[0].total
    names = ("counts", "sums", "outers", "squares", "removal_cost")
    for name in names:
        np.testing.assert_allclose(
            getattr(whole, name), getattr(parts, name), rtol=1e-10, atol=1e-10
        )
    np.testing.assert_array_equal(whole.candidates.row, parts.candidates.row)
    left = Scatters.zeros(4, 2)
    left += whole
    left -= parts
    np.testing.assert_allclose(left.outers, 0.0, atol=1e-10)
    merged = whole.copy().regroup(np.array([0, -1, 1, 0]), 2)
    kept = whole.counts
    np.testing.assert_allclose(merged.counts, [kept[0] + kept[3], kept[2]])


# ----------------------------------------------------------------------- estimator


def test_predict_score_and_transform_use_the_matrices():
    X = some_rows(7, n=120, D=3)
    model = DPMeans(20.0, covariance="full", min_covariance=0.5).fit(X)
    new = some_rows(8, n=50, D=3)
    K = model.n_clusters_
    assert K > 1
    assert model.covariances_.shape == (K, 3, 3)
    distances = np.column_stack(
        [
            cdist(new, [c], "mahalanobis", VI=np.linalg.inv(S))
            for c, S in zip(model.cluster_centers_, model.covariances_, strict=True)
        ]
    )
    np.testing.assert_allclose(model.transform(new), distances, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(new), np.argmin(distances, axis=1))
    w = some_weights(9, 50)
    cost = w @ np.min(distances, axis=1) ** 2
    np.testing.assert_allclose(model.score(new, sample_weight=w), -cost, rtol=1e-9)
    value = objective(
        X, model.labels_, model.cluster_centers_, model.covariances_, 20.0, 0.5
    )
    np.testing.assert_allclose(model.objective_, value, rtol=1e-9)


def test_a_long_cluster_keeps_its_ends():
    """A row at its end, nearer to the centre of a small round cluster beside it."""
    rng = np.random.default_rng(0)
    long = rng.normal(size=(100, 2)) * [5.0, 0.3]
    small = rng.normal(size=(100, 2)) * 0.3 + [14.0, 4.0]
    X = np.concatenate([long, small, [[14.0, 0.0]]])
    start = Ellipsoids.spheres(np.array([[0.0, 0.0], [14.0, 4.0]]), 1.0)
    fitted = refine(job(X), FullCovarianceModel(100.0, 1.0, 2), start)
    np.testing.assert_array_equal(fitted.labels, [0] * 100 + [1] * 100 + [0])
    assert reference.nearest(X[-1:], fitted.centers)[0] == [1]


@pytest.mark.parametrize("factor", [0.1, 100.0])
def test_only_the_product_of_penalty_and_floor_decides(factor):
    X = some_rows(10, n=100)
    one = DPMeans(12.0, covariance="full", min_covariance=0.5).fit(X)
    other = DPMeans(12.0 * factor, covariance="full", min_covariance=0.5 / factor).fit(
        X
    )
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.objective_ * factor, other.objective_, rtol=1e-9)


def test_spherical_fit_after_a_full_one_forgets_the_matrices(blobs):
    model = DPMeans(30.0, covariance="full").fit(blobs)
    model.set_params(covariance="spherical")
    with pytest.raises(ValueError, match="covariances_"):
        model.partial_fit(blobs)
    model.fit(blobs)
    assert not hasattr(model, "covariances_")
    np.testing.assert_array_equal(model.predict(blobs), model.labels_)


def test_a_flat_cluster_keeps_its_distances_finite():
    """Rows on a line: the variance across it is 0, or rounding below 0."""
    direction = np.array([1.0, 0.3, -0.2])
    flat = Ellipsoids(np.zeros((1, 3)), np.outer(direction, direction)[None])
    across = np.cross(direction, [0.0, 0.0, 1.0])
    squares = flat.squares(np.stack([direction, across]))[:, 0]
    assert squares[0] == pytest.approx(1.0)
    assert 1e12 < squares[1] < np.inf
    assert np.all(np.isfinite(flat.stein(1.0)))


def test_distances_are_those_of_the_covariance():
    rng = np.random.default_rng(1)
    half = rng.normal(size=(4, 3, 3))
    params = Ellipsoids(rng.normal(size=(4, 3)), half @ np.swapaxes(half, 1, 2))
    X = rng.normal(size=(9, 3))
    for k in range(4):
        diff, inverse = X - params.centers[k], np.linalg.inv(params.covariances[k])
        expected = np.einsum("nd,de,ne->n", diff, inverse, diff)
        np.testing.assert_allclose(params.squares(X)[:, k], expected, rtol=1e-8)
