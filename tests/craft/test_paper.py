"""CRAFT as published against plain Python; claims CR-1 to CR-7, literal part."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

import craft_reference as obvious
import reference
from kplus import DPMeans
from kplus.core.errors import DataError
from kplus.craft.paper import algorithm as paper
from kplus.craft.paper.algorithm import (
    PaperSpec,
    assign,
    constants,
    farthest_first,
    fit_paper,
    row_costs,
)
from kplus.datasets.subspaces import make_subspace_clusters

MIXED = (3, None, 2, None, None, 4)


def mixed_rows(seed, n=40, missing=0.05):
    """Three groups in numbers and categories, with gaps and weights."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    X = np.empty((n, len(MIXED)))
    for d, level in enumerate(MIXED):
        if level is None:
            X[:, d] = 4.0 * (d + 1.0) * rng.normal(size=3)[group] + rng.normal(size=n)
        else:
            noise = rng.integers(0, level, n)
            X[:, d] = np.where(rng.uniform(size=n) < 0.7, group % level, noise)
    X[rng.uniform(size=X.shape) < missing] = np.nan
    return X, rng.choice([0.3, 1.0, 2.0], n)


def binary_rows(seed, n=40, D=6):
    rng = np.random.default_rng(seed)
    chances = rng.choice([0.05, 0.5, 0.95], (3, D))
    return (rng.uniform(size=(n, D)) < chances[rng.integers(0, 3, n)]).astype(float)


def start_row(X, weights, rng):
    return X[rng.choice(len(X), p=weights / weights.sum())]


def generator(seed=0):
    return np.random.default_rng(seed)


def expected_steps(X, weights, spec, seed, n):
    """What plain Python finds after each iteration, and its λ."""
    rng, terms = generator(seed), constants(spec.fraction, spec.rho)
    start = start_row(X, weights, rng)
    penalty = spec.penalty
    if penalty is None:
        penalty = obvious.farthest_first(
            X, weights, spec, start, spec.n_clusters, terms
        )
    steps = obvious.iterations(X, weights, spec, start, penalty, terms, rng, n)
    return penalty, list(steps)


def expected_end(X, clusters, weights, spec, terms):
    """Labels by the cheapest cluster, and which clusters have a row then."""
    rows = obvious.plain(X)
    table = obvious.whole_table(rows, weights, spec.levels)
    costs = [[obvious.row_cost(r, c, table, terms[1]) for c in clusters] for r in rows]
    return np.unique(np.argmin(costs, axis=1), return_inverse=True)


SPECS = [
    PaperSpec(MIXED, n_clusters=3),
    PaperSpec(MIXED, penalty=9.0, fraction=0.8, rho=0.05),
    PaperSpec(MIXED, penalty=9.0, fraction=0.3, smoothing=0.2, variance_floor=0.1),
    PaperSpec(MIXED, n_clusters=4, category_threshold=0.3, variance_threshold=6.0),
    PaperSpec(MIXED, n_clusters=3, fraction=1.0),
    PaperSpec(MIXED, penalty=30.0, fraction=1.0, smoothing=0.0),
]


@pytest.mark.parametrize("spec", SPECS, ids=range(len(SPECS)))
@pytest.mark.parametrize("seed", range(4))
def test_every_iteration_is_that_of_plain_python(spec, seed):
    X, w = mixed_rows(seed)
    terms = constants(spec.fraction, spec.rho)
    penalty, steps = expected_steps(X, w, spec, seed, 6)
    values = [value for _, _, value in steps]
    for n in range(1, 7):
        fit = fit_paper(X, w, replace(spec, max_iter=n), generator(seed))
        if len(fit.history) < n:
            assert fit.converged or fit.revisited
            break
        np.testing.assert_allclose(fit.penalty, penalty, rtol=1e-12)
        np.testing.assert_allclose(fit.history[:-1], values[: n - 1], rtol=1e-10)
        clusters = steps[n - 1][1]
        used, labels = expected_end(X, clusters, w, spec, terms)
        np.testing.assert_array_equal(fit.labels, labels)
        np.testing.assert_array_equal(fit.chosen, [clusters[k]["v"] for k in used])
        for d, level in enumerate(MIXED):
            if level is None:
                zeta, sigma2 = (
                    [clusters[k][name][d] for k in used] for name in ("zeta", "sigma2")
                )
                np.testing.assert_allclose(fit.zeta[:, d], zeta, rtol=1e-10)
                np.testing.assert_allclose(fit.sigma2[:, d], sigma2, rtol=1e-10)
        eta = [np.concatenate([e for e in clusters[k]["eta"] if e]) for k in used]
        np.testing.assert_allclose(fit.eta, eta, rtol=1e-10, atol=1e-15)
        if fit.converged:
            np.testing.assert_array_equal(fit.labels, steps[n - 1][0])
            np.testing.assert_allclose(fit.objective, values[n - 1], rtol=1e-10)


def test_clusters_do_open_in_these_tests():
    sizes = [
        len(fit_paper(*mixed_rows(seed), spec, generator(seed)).chosen)
        for spec in SPECS
        for seed in range(4)
    ]
    assert np.mean(np.array(sizes) > 1) > 0.5


# --------------------------------------------------------------- CR-1: binary data


@given(st.integers(0, 10_000), st.floats(1.0, 60.0))
def test_CR_1_objective_is_the_entropy(seed, penalty):
    """m = 1, hardly any smoothing: λK + Σ_k n_k Σ_d H(μ_kd), Eq. 11."""
    X = binary_rows(seed)
    spec = PaperSpec((2,) * 6, fraction=1.0, penalty=penalty, smoothing=1e-13)
    fit = fit_paper(X, None, spec, generator(seed))
    if fit.converged:
        expected = obvious.entropy_objective(X, fit.labels, penalty)
        np.testing.assert_allclose(fit.objective, expected, rtol=1e-9, atol=1e-9)


def test_CR_1_is_not_only_about_trivial_partitions():
    sizes = []
    for seed in range(10):
        spec = PaperSpec((2,) * 6, fraction=1.0, penalty=35.0, smoothing=1e-13)
        fit = fit_paper(binary_rows(seed), None, spec, generator(seed))
        sizes.append(len(fit.chosen) if fit.converged else 0)
    assert any(1 < K < 20 for K in sizes)


def test_CR_1_discrepancy_of_a_row_is_its_cross_entropy():
    """H(μ) + (μ − x) log(μ / (1 − μ)) = −x log μ − (1 − x) log(1 − μ), 0 < μ < 1."""
    X = binary_rows(3)
    X[0], X[1] = 0.0, 1.0  # no column is constant
    spec = PaperSpec((2,) * 6, fraction=1.0, n_clusters=3)
    fit = fit_paper(X, None, spec, generator())
    mu = fit.eta[:, 1::2]
    assert np.all((mu > 0.0) & (mu < 1.0))
    entropy = -mu * np.log(mu) - (1.0 - mu) * np.log(1.0 - mu)
    odds = np.log(mu / (1.0 - mu))
    printed = np.sum(entropy + (mu - X[:, None]) * odds, axis=2)
    np.testing.assert_allclose(row_costs(X, fit), printed, rtol=1e-10)


def test_CR_1_without_smoothing_every_distinct_row_opens():
    """log 0: what a cluster of one row has not seen costs infinitely much."""
    X = binary_rows(1)
    spec = PaperSpec((2,) * 6, fraction=1.0, penalty=1e6, smoothing=0.0)
    fit = fit_paper(X, None, spec, generator())
    assert len(fit.chosen) == len(np.unique(X, axis=0))


# ------------------------------------------------------------- CR-2: numeric density


@pytest.mark.parametrize("chosen", [0, 1])
def test_CR_2_density_integrates_to_one(chosen):
    own, whole = (1.5, 0.7), (0.2, 3.0)  # ζ and σ, of the cluster and of all rows

    def density(x):
        v = chosen
        power = v * (x - own[0]) ** 2 / (2.0 * own[1] ** 2)
        power += (1 - v) * (x - whole[0]) ** 2 / (2.0 * whole[1] ** 2)
        Z = np.sqrt(2.0 * np.pi) * whole[1] * own[1]
        Z /= own[1] * np.sqrt(1 - v) + whole[1] * np.sqrt(v)
        return np.exp(-power) / Z

    np.testing.assert_allclose(quad(density, -40.0, 40.0, points=[0.2, 1.5])[0], 1.0)


def test_CR_2_the_numeric_term_is_the_same_for_every_partition():
    """With σ fitted, each chosen number costs n_k / 2, however the rows are parted."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    spec = PaperSpec((None,) * 4, fraction=1.0, n_clusters=3)
    sizes = set()
    for seed in range(12):
        fit = fit_paper(X, None, spec, generator(seed))
        if fit.converged and np.bincount(fit.labels).min() > 4:
            K = len(fit.chosen)
            sizes.add(K)
            np.testing.assert_allclose(fit.objective - fit.penalty * K, 60 * 4 / 2)
    assert sizes


# ------------------------------------------------------------------ CR-3, CR-4: F, ν


@given(st.floats(0.001, 0.999), st.floats(0.01, 0.99))
def test_CR_3_shapes_of_the_beta_prior(m, share):
    rho = share * m * (1.0 - m)
    F0, F_delta, a0, b0, a1, b1 = constants(m, rho)
    mean, variance = beta.stats(a0, b1)  # the posterior adds v and 1 − v
    np.testing.assert_allclose([mean, variance], [m, rho], rtol=1e-9)
    np.testing.assert_allclose([a1 - a0, b0 - b1], 1.0)
    np.testing.assert_allclose(a0, m**2 * (1 - m) / rho - m, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(b0, m * (1 - m) ** 2 / rho + m, rtol=1e-6)
    assert np.isfinite([F0, F_delta]).all()
    assert F0 > 0.0


@given(st.floats(1e-6, 1.0 - 1e-6))
def test_CR_3_default_rho_is_finite_for_every_m(m):
    assert np.isfinite(constants(m)).all()


def test_CR_3_default_rho_and_what_it_costs():
    for m in (0.2, 0.5, 0.8):
        np.testing.assert_array_equal(constants(m), constants(m, m * (1 - m) - 0.01))
    np.testing.assert_array_equal(constants(0.0105), constants(0.0105, 0.01))
    changes = [constants(m).F_delta for m in (1 / 3, 0.5, 0.8)]
    np.testing.assert_allclose(changes, [0.06, 0.0, -0.14], atol=0.006)


@pytest.mark.parametrize(
    ("m", "rho", "message"),
    [
        (0.0, None, "feature_fraction"),
        (1.2, None, "feature_fraction"),
        (np.nan, None, "feature_fraction"),
        (0.5, 0.0, "rho"),
        (0.5, 0.25, "rho"),
        (0.5, np.nan, "rho"),
        (1.0, 0.1, "rho"),
    ],
)
def test_CR_3_errors_outside(m, rho, message):
    with pytest.raises(ValueError, match=message):
        constants(m, rho)
    with pytest.raises(ValueError, match=message):
        PaperSpec((None,), fraction=m, rho=rho, penalty=1.0)


@given(st.floats(0.05, 0.95), st.floats(0.01, 0.99), st.sampled_from([0, 1]))
def test_CR_4_nu_interpolates(m, share, v):
    rho = share * m * (1.0 - m)
    _, _, a0, b0, a1, b1 = constants(m, rho)
    a, b = (a1, b1) if v else (a0, b0)
    np.testing.assert_allclose(a / (a + b), m + (v - m) * rho / (m * (1.0 - m)))


def test_CR_4_but_rho_does_not_choose_features_and_a_small_one_stops_opening():
    """The update never uses ρ; F_0 grows like 1/ρ."""
    X, _, _ = make_subspace_clusters("2a", random_state=0)
    X = X.astype(float)
    spec = PaperSpec((2,) * 24, fraction=1 / 3, n_clusters=3)
    for rho, F0 in ((1e-3, 140.0), (1e-5, 14_000.0)):
        assert constants(1 / 3, rho).F0 > F0
        small = fit_paper(X, None, replace(spec, rho=rho), generator())
        assert len(small.chosen) == 1
    assert len(fit_paper(X, None, spec, generator()).chosen) > 1


# ------------------------------------------------------------------ CR-5: DP-means


@given(st.integers(0, 10_000), st.floats(0.5, 60.0))
def test_CR_5_with_sigma_fixed_it_is_dp_means(seed, penalty):
    rng = np.random.default_rng(seed)
    X = 3.0 * rng.normal(size=(4, 3))[rng.integers(0, 4, 40)] + rng.normal(size=(40, 3))
    spec = PaperSpec((None,) * 3, fraction=1.0, penalty=penalty, fixed_variance=0.5)
    fit = fit_paper(X, None, spec, generator(seed))
    start = start_row(X, np.ones(40), generator(seed))
    labels, objective = obvious.dp_means(X, start, penalty)
    np.testing.assert_array_equal(fit.labels, labels)
    np.testing.assert_allclose(fit.objective, objective, rtol=1e-10)
    assert fit.converged
    assert np.all(np.diff(fit.history) <= 1e-9 * fit.history[0])


def test_CR_5_from_the_mean_it_is_serial_dp_means(blobs):
    spec = PaperSpec(
        (None,) * 3, fraction=1.0, penalty=300.0, fixed_variance=0.5, start="mean"
    )
    fit = fit_paper(blobs, None, spec, generator())
    serial = DPMeans(300.0, algorithm="serial", tol=0).fit(blobs)
    same = reference.canonical(serial.labels_)
    np.testing.assert_array_equal(reference.canonical(fit.labels), same)
    np.testing.assert_allclose(fit.objective, serial.objective_ + 300.0)  # K, not K − 1


def test_CR_5_not_with_the_cluster_s_own_sigma():
    """Eq. 12 as printed is N·D/2 + λK for any partition, so that one cluster wins."""
    X = np.random.default_rng(1).normal(size=(60, 4))
    spec = PaperSpec((None,) * 4, fraction=1.0, penalty=20.0)
    fit = fit_paper(X, None, spec, generator())
    assert fit.objective >= 60 * 4 / 2 + 20.0 - 1e-9


# ------------------------------------------- CR-6: convergence, partitions that return


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.floats(2.0, 12.0), st.floats(0.1, 1.0))
def test_CR_6_it_always_ends(seed, penalty, fraction):
    X, w = mixed_rows(seed, n=25)
    spec = PaperSpec(MIXED, fraction=fraction, penalty=penalty, max_iter=60)
    fit = fit_paper(X, w, spec, generator(seed))
    assert len(fit.history) <= 60
    assert fit.converged or fit.revisited or len(fit.history) == 60
    assert np.isfinite(fit.history).all()
    assert fit.objective == fit.history[-1]
    np.testing.assert_array_equal(np.unique(fit.labels), np.arange(len(fit.chosen)))
    np.testing.assert_array_equal(fit.labels, assign(X, fit))


def test_CR_6_a_partition_may_come_back():
    """New clusters draw their features, so that it may converge all the same."""
    X, _ = mixed_rows(389, n=25)
    spec = PaperSpec(MIXED, fraction=0.578, penalty=3.087)
    fit = fit_paper(X, None, spec, generator(389))
    assert fit.revisited
    assert fit.converged


def test_CR_6_a_circle_without_draws_is_left(monkeypatch):
    """One of 43,000 random partitions led into a circle of two; this is it."""
    rng = np.random.default_rng(41145)
    n, D = int(rng.integers(6, 60)), int(rng.integers(2, 8))
    X = rng.normal(size=(n, D))
    spec = PaperSpec((None,) * D, fraction=rng.uniform(0.2, 0.9), penalty=1e9)
    begin = rng.integers(0, int(rng.integers(2, 5)), n)
    walk, calls = paper._walk, []

    def walk_from_there(*arguments):
        calls.append(arguments)
        return walk(*arguments) if len(calls) > 1 else (begin, True)

    monkeypatch.setattr(paper, "_walk", walk_from_there)
    fit = fit_paper(X, None, replace(spec, max_iter=10_000), generator())
    assert fit.revisited
    assert not fit.converged
    assert len(fit.history) < 60


# ---------------------------------------------------- CR-7: opening, unseen categories


def test_CR_7_a_row_opens_where_its_cheapest_cost_exceeds_the_limit():
    """After convergence no row costs more than λ + D F0."""
    X, _ = mixed_rows(2, missing=0.0)
    for seed in range(5):
        spec = PaperSpec(MIXED, fraction=0.5, penalty=9.0)
        fit = fit_paper(X, None, spec, generator(seed))
        limit = 9.0 + len(MIXED) * constants(0.5).F0
        costs = row_costs(X, fit).min(axis=1)
        alone = np.bincount(fit.labels)[fit.labels] == 1
        if fit.converged:
            assert np.all(costs[~alone] <= limit)


def test_CR_7_an_unseen_category_costs_something_finite():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 5)
    spec = PaperSpec((4, 2), fraction=1.0, penalty=100.0)
    fit = fit_paper(X, None, spec, generator())
    new = np.array([[2.0, 0.0], [3.0, 1.0], [17.0, 0.0], [np.nan, 1.0], [-1.0, 1.0]])
    costs = row_costs(new, fit)
    assert np.isfinite(costs).all()
    np.testing.assert_allclose(costs[[0, 1]], costs[[2, 3]])  # all left out
    assert fit.eta0[2] == fit.eta[0, 2] == 0.0
    opened = fit_paper(X, None, replace(spec, penalty=0.1), generator())
    assert np.isfinite(row_costs(X, opened)).all()
    without = fit_paper(X, None, replace(spec, smoothing=0.0), generator())
    assert np.isinf(row_costs(X, without)).any()


# ------------------------------------------------------------------ all that is left


@pytest.mark.parametrize("start", ["random", "mean"])
def test_farthest_first_is_that_of_plain_python(start):
    X, w = mixed_rows(4)
    for k, m in ((1, 0.5), (3, 0.3), (5, 1.0)):
        spec = PaperSpec(MIXED, fraction=m, n_clusters=k, start=start)
        row = start_row(X, w, generator()) if start == "random" else np.full(6, np.nan)
        expected = obvious.farthest_first(X, w, spec, row, k, constants(m))
        found = farthest_first(X, w, spec, k, generator())
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_farthest_first_without_smoothing_or_with_too_many_clusters():
    X, _ = mixed_rows(0, n=5)
    with pytest.raises(ValueError, match="smoothing"):
        fit_paper(X, None, PaperSpec(MIXED, n_clusters=2, smoothing=0.0), generator())
    with pytest.raises(ValueError, match=r"n_clusters must be from 1 to .* 5; got 6"):
        fit_paper(X, None, PaperSpec(MIXED, n_clusters=6), generator())


@pytest.mark.parametrize("seed", range(3))
def test_units_do_not_matter(seed):
    X, w = mixed_rows(seed)
    scaled = X.copy()
    numbers = [d for d, level in enumerate(MIXED) if level is None]
    scaled[:, numbers] = scaled[:, numbers] * [1024.0, 0.25, 8.0]
    spec = PaperSpec(MIXED, n_clusters=3)
    one, other = (fit_paper(rows, w, spec, generator(seed)) for rows in (X, scaled))
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.chosen, other.chosen)
    np.testing.assert_allclose(one.history, other.history, rtol=1e-9)


def test_rows_of_weight_zero_follow():
    X, _ = mixed_rows(0)
    w = np.ones(len(X))
    w[::3] = 0.0
    spec = PaperSpec(MIXED, penalty=6.0)
    some = fit_paper(X, w, spec, generator())
    few = fit_paper(X[w > 0.0], None, spec, generator())
    np.testing.assert_array_equal(some.labels[w > 0.0], few.labels)
    np.testing.assert_array_equal(some.labels, assign(X, few))
    assert some.objective == few.objective


def test_constant_and_empty_columns():
    """They cost nothing, and are the last to be chosen."""
    X, _ = mixed_rows(1)
    X[:, 1], X[:, 3], X[:, 5] = 7.1, np.nan, np.nan
    fit = fit_paper(X, None, PaperSpec(MIXED, fraction=0.3, n_clusters=2), generator())
    assert np.isfinite(fit.objective)
    assert np.all(fit.chosen[:, 4])
    assert not fit.chosen[:, [1, 3]].any()


def test_all_rows_the_same_are_one_cluster():
    X = np.tile([1.0, 5.0, 0.0, 2.0, 2.0, 3.0], (9, 1))
    fit = fit_paper(X, None, PaperSpec(MIXED, n_clusters=2), generator())
    assert len(fit.chosen) == 1
    assert fit.converged


def test_mistakes():
    X, _ = mixed_rows(0)
    spec = PaperSpec(MIXED, penalty=1.0)
    with pytest.raises(DataError, match="6 columns"):
        fit_paper(X[:, :4], None, spec, generator())
    with pytest.raises(DataError, match="positive weight"):
        fit_paper(X, np.zeros(len(X)), spec, generator())
    for column, value, message in ((1, np.inf, "Column 1"), (0, 3.0, "0 to 2")):
        bad = X.copy()
        bad[5, column] = value
        with pytest.raises(DataError, match=message):
            fit_paper(bad, None, spec, generator())
    for wrong in (
        {"penalty": None}, {"penalty": -1.0}, {"smoothing": -1.0},
        {"variance_floor": 0.0}, {"start": "middle"},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            replace(spec, **wrong)
