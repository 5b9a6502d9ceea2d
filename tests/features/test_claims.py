"""What MAD-Bayes claims of latent features; the names carry the claims' ids.

MB-2 to MB-8 and MB-14 on made data; MB-9, MB-13 and MB-16 on the papers' own pictures,
where these are at hand.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

import feature_reference as obvious
import reference
from kplus import BPMeans, DPMeans, KFeatures
from kplus.engine.blas import SINGLE_THREAD

VARIANCES = [1e-1, 1e-2, 1e-4, 1e-6, 1e-8]
TABLETOP = [615.89, 423.2, 295.3, 205.8, 161.245, 149.865, 139.367, 131.659]
DICE = [768.52, 513.862, 251.99, 0.0]


def rows(seed, n=60, D=4, K=3, noise=0.4):
    return obvious.planted(n, D, K, seed, noise)[0]


def bits(model, X):
    return model.transform(X).astype(np.uint8)


def fitted(seed, penalty=8.0, **more):
    X = rows(seed)
    return X, BPMeans(penalty, random_state=0, **more).fit(X)


# --------------------------------------------------------------------- MB-2: limits


@pytest.mark.parametrize("seed", range(4))
def test_MB_2_log_joint_tends_to_the_objective(seed):
    """-2σ² log P(X, Z, A) with γ = exp(-λ²/2σ²), at the features of a fit."""
    X, model = fitted(seed)
    assert model.n_components_ > 1
    Z = bits(model, X)
    ratios = []
    for variance in VARIANCES:
        joint = obvious.log_features(X, Z, model.components_, variance)
        joint += obvious.log_ibp(Z, -model.penalty_ / (2.0 * variance))
        ratios.append(-2.0 * variance * joint / model.objective_)
    gaps = np.abs(np.array(ratios) - 1.0)
    assert np.all(np.diff(gaps[1:]) < 0.0)
    assert gaps[-1] < 1e-5


def test_MB_2_prior_alone_tends_to_the_penalty_of_every_feature():
    """The first feature is charged, too; no feature at all costs nothing."""
    Z = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1], [1, 0, 1]], np.uint8)
    for K in range(4):
        for variance, slack in ((1e-3, 0.05), (1e-6, 1e-4), (1e-9, 1e-7)):
            prior = obvious.log_ibp(Z[:, :K], -2.0 / (2.0 * variance))
            assert -2.0 * variance * prior == pytest.approx(2.0 * K, abs=slack)


@pytest.mark.parametrize("gamma", [0.3, 1.0])
def test_MB_2_efpf_sums_to_one(gamma):
    """Eq. 4 over allocations of two rows: a, b, c features of rows {1}, {2}, {1, 2}."""
    logs = []
    for a, b, c in np.ndindex(9, 9, 9):
        columns = [[1, 0]] * a + [[0, 1]] * b + [[1, 1]] * c
        Z = np.array(columns, np.uint8).reshape(-1, 2).T
        logs.append(obvious.log_ibp(Z, np.log(gamma)))
    assert logsumexp(logs) == pytest.approx(0.0, abs=1e-6)


def test_MB_2_a_huge_penalty_leaves_no_feature():
    X = rows(0)
    with pytest.warns(UserWarning, match="feature"):
        model = BPMeans(2.0 * float(np.vdot(X, X))).fit(X)
    assert model.n_components_ == 0
    assert model.objective_ == pytest.approx(np.vdot(X, X))
    assert model.transform(X).shape == (60, 0)


def test_MB_2_one_feature_a_row_is_the_mixture():
    """One-hot Z: Eq. 6 is the DP-means objective and λ² for the first cluster."""
    rng = np.random.default_rng(0)
    X = 10.0 * rng.normal(size=(4, 3))[rng.integers(0, 4, 50)] + rng.normal(
        size=(50, 3)
    )
    model = DPMeans(20.0, tol=0.0).fit(X)
    Z = np.eye(model.n_clusters_, dtype=np.uint8)[model.labels_]
    A = obvious.features(X, Z)
    np.testing.assert_allclose(A, model.cluster_centers_, atol=1e-9)
    expected = obvious.objective(X, Z, A, 20.0)
    assert expected == pytest.approx(model.objective_ + 20.0, rel=1e-10)
    assert BPMeans(20.0, random_state=0).fit(X).objective_ <= expected


# ------------------------------------------------------------- MB-3: Z'Z, and fusing


def test_MB_3_distinct_columns_may_depend_on_each_other():
    """Contradicted: z₃ = z₁ + z₂ is distinct, and Z'Z is singular."""
    Z = np.array([[1, 0, 1], [1, 0, 1], [0, 1, 1], [0, 0, 0]], np.uint8)
    assert len(np.unique(Z.T, axis=0)) == 3
    assert np.linalg.matrix_rank(Z.T @ Z.astype(float)) == 2


@pytest.mark.parametrize("seed", range(5))
def test_MB_3_a_fit_does_not_fail_where_columns_depend(seed):
    """Rows of two disjoint features: a third one must depend on them."""
    rng = np.random.default_rng(seed)
    Z = np.eye(2, dtype=np.uint8)[rng.integers(0, 2, 30)]
    X = Z @ np.array([[5.0, 0.0], [0.0, 5.0]])
    for model in (KFeatures(3, random_state=seed), BPMeans(n_components=3)):
        model.fit(X)
        assert model.objective_ == pytest.approx(0.0, abs=1e-20)
        assert np.all(np.isfinite(model.components_))


@pytest.mark.parametrize("seed", range(5))
def test_MB_3_fusing_equal_columns_changes_nothing_but_the_charge(seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(20, 3)), rng.integers(0, 2, (20, 3), dtype=np.uint8)
    A = rng.normal(size=(4, 3))
    twice = np.column_stack([Z, Z[:, 0]])
    fused = np.vstack([A[0] + A[3], A[1:3]])
    before, after = obvious.error(X, twice, A), obvious.error(X, Z, fused)
    assert after == pytest.approx(before, rel=1e-12)
    assert obvious.collapsed(X, twice) == pytest.approx(obvious.collapsed(X, Z))


# ------------------------------------------------------------------ MB-4: descent


WAYS = [
    {"effort": 0},
    {"effort": 0, "init": "random"},
    {"effort": 1},
    {"collapsed": True},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_MB_4_objective_never_rises_and_ends_in_a_local_minimum(seed, way):
    """Proposition 1; local: no flip of one bit, no new feature of one row helps."""
    X, model = fitted(seed, **way)
    history = model.objective_history_
    assert np.all(np.diff(history) <= 1e-10 * history[0])
    assert len(history) < 100
    Z, A = bits(model, X), model.components_
    errors = obvious.row_errors(X, Z, A)
    assert np.all(errors[:, None] <= obvious.flip_errors(X, Z, A) + 1e-9)
    assert np.all(errors <= model.penalty_)
    value = obvious.objective(X, Z, A, model.penalty_)
    assert model.objective_ == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_MB_4_the_plain_algorithm_never_rises(seed):
    """By single flips; z of `transform` begins anew, hence may be another."""
    X, model = fitted(seed, effort=0, assignment="flips")
    history = model.objective_history_
    assert np.all(np.diff(history) <= 1e-10 * history[0])
    assert len(history) < 100
    Z = bits(model, X)
    errors = obvious.row_errors(X, Z, model.components_)
    others = obvious.flip_errors(X, Z, model.components_)
    assert np.all(errors[:, None] <= others + 1e-9)


def test_MB_4_a_local_minimum_need_not_be_the_global_one():
    X = rows(0)
    plain = [
        KFeatures(3, effort=0, assignment="flips", random_state=seed).fit(X).objective_
        for seed in range(10)
    ]
    assert max(plain) > 1.05 * KFeatures(3, random_state=0).fit(X).objective_


# ---------------------------------------------------------------- MB-5: collapsing


@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_MB_5_collapsed_objective_equals_the_uncollapsed_after_a_refit(seed, collapsed):
    X, model = fitted(seed, collapsed=collapsed)
    Z = bits(model, X)
    refit = obvious.objective(X, Z, obvious.features(X, Z), model.penalty_)
    trace = obvious.collapsed(X, Z, model.penalty_)
    assert trace == pytest.approx(refit, rel=1e-10)
    assert model.objective_ == pytest.approx(trace, rel=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_MB_5_collapsed_log_joint_tends_to_the_objective(seed):
    """Eq. 7 with I_K where the paper has I_D."""
    X, model = fitted(seed, collapsed=True)
    Z = bits(model, X)
    gaps = []
    for variance in VARIANCES:
        joint = obvious.log_collapsed(X, Z, variance)
        joint += obvious.log_ibp(Z, -model.penalty_ / (2.0 * variance))
        gaps.append(abs(-2.0 * variance * joint / model.objective_ - 1.0))
    assert np.all(np.diff(gaps[1:]) < 0.0)
    assert gaps[-1] < 1e-5


def test_MB_5_collapsed_likelihood_is_the_integral_over_the_features():
    """P(X|Z) = P(X|Z, A) P(A) / P(A|X, Z) for any A."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(6, 2)), np.array([[1, 1, 0, 1, 0, 1], [1, 0, 1, 1, 0, 0]]).T
    variance, prior = 0.3, 0.7
    precision = Z.T @ Z / variance + np.eye(2) / prior
    mean = np.linalg.solve(precision, Z.T @ X / variance)
    for A in (mean, mean + 0.3, np.zeros((2, 2))):
        joint = obvious.log_features(X, Z, A, variance, prior)
        square = np.trace((A - mean).T @ precision @ (A - mean))
        posterior = -0.5 * square + np.linalg.slogdet(precision / (2.0 * np.pi))[1]
        assert joint - posterior == pytest.approx(
            obvious.log_collapsed(X, Z, variance, prior), rel=1e-10
        )


# -------------------------------------------------------- MB-6: collapsed descent


@pytest.mark.parametrize("seed", range(4))
def test_MB_6_collapsed_ends_where_no_row_has_a_better_pattern(seed):
    """The row step against brute force over 2^K, by Eq. 10, for every row."""
    X, model = fitted(seed, collapsed=True)
    history, Z = model.objective_history_, bits(model, X)
    assert np.all(np.diff(history) <= 1e-10 * history[0])
    value = obvious.collapsed(X, Z)
    for n in range(len(X)):
        assert value <= obvious.best_row(X, Z, n) * (1 + 1e-7)


# ---------------------------------------------------------------- MB-7: bounded


@pytest.mark.parametrize("seed", range(3))
def test_MB_7_finite_model_tends_to_k_features(seed):
    """Eq. 13 with γ fixed has no say in the limit: what is left is Eq. 14."""
    X = rows(seed)
    model = KFeatures(3, random_state=0).fit(X)
    Z = bits(model, X)
    gaps = []
    for variance in VARIANCES:
        joint = obvious.log_features(X, Z, model.components_, variance)
        joint += obvious.log_beta_bernoulli(Z, np.log(0.8))
        gaps.append(abs(-2.0 * variance * joint / model.objective_ - 1.0))
    assert np.all(np.diff(gaps[1:]) < 0.0)
    assert gaps[-1] < 1e-5


def test_MB_7_finite_prior_is_a_distribution():
    for gamma in (0.3, 2.0):
        logs = [
            obvious.log_beta_bernoulli(z.reshape(3, 2), np.log(gamma))
            for z in obvious.patterns(6)
        ]
        assert logsumexp(logs) == pytest.approx(0.0, abs=1e-12)


def test_MB_7_scaled_finite_prior_charges_the_features_in_use():
    """γ = exp(-λ²/2σ²): λ² for each non-empty feature, nothing for an empty one."""
    Z = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1]], np.uint8)
    for variance, slack in ((1e-3, 0.05), (1e-6, 1e-4), (1e-9, 1e-7)):
        prior = obvious.log_beta_bernoulli(Z, -2.0 / (2.0 * variance))
        assert -2.0 * variance * prior == pytest.approx(2.0 * 3, abs=slack)


@pytest.mark.parametrize("seed", range(4))
def test_MB_7_a_cap_above_the_free_number_changes_nothing(seed):
    X, free = fitted(seed)
    for cap in (free.n_components_, free.n_components_ + 1, 20):
        model = BPMeans(8.0, max_components=cap, random_state=0).fit(X)
        assert model.n_components_ == free.n_components_
        assert model.objective_ == pytest.approx(free.objective_, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_MB_7_a_tiny_penalty_with_a_cap_is_k_features(seed):
    X = rows(seed)
    capped = BPMeans(1e-9, max_components=3, random_state=0).fit(X)
    model = KFeatures(3, random_state=0).fit(X)
    assert capped.n_components_ == 3
    assert capped.objective_ == pytest.approx(model.objective_, rel=1e-6)


# --------------------------------------------------------------- MB-8: K-features


@pytest.mark.parametrize("seed", range(3))
def test_MB_8_k_features_descends_and_its_rows_are_independent(seed):
    """The same bits for any number of threads; Z for any blocks, too.

    Sums over blocks round by their order, so A is the same but for rounding there.
    """
    X = rows(seed, n=200, K=4)
    model = KFeatures(4, random_state=0, batch_size=32).fit(X)
    assert np.all(np.diff(model.objective_history_) <= 1e-10 * model.objective_)
    for n_jobs in (2, 3):
        other = KFeatures(4, random_state=0, batch_size=32, n_jobs=n_jobs).fit(X)
        np.testing.assert_array_equal(other.components_, model.components_)
        np.testing.assert_array_equal(other.transform(X), model.transform(X))
        assert other.objective_ == model.objective_
    for batch_size in (1, 7, 150, 200):
        other = KFeatures(4, random_state=0, batch_size=batch_size).fit(X)
        np.testing.assert_array_equal(other.transform(X), model.transform(X))
        np.testing.assert_allclose(other.components_, model.components_, rtol=1e-11)


# ------------------------------------------------------------------- MB-14: a base


@pytest.mark.parametrize("seed", range(3))
def test_MB_14_any_combination_can_serve_as_base(seed):
    """Complementing a column: the base takes it up, the objective stays."""
    X = rows(seed) + 3.0
    Z = np.column_stack([np.ones(60, np.uint8), bits(KFeatures(2).fit(X), X)])
    for flip in obvious.patterns(2):
        other = Z ^ np.append(np.uint8(0), flip)
        assert obvious.collapsed(X, other) == pytest.approx(
            obvious.collapsed(X, Z), rel=1e-10
        )
        A, B = obvious.features(X, Z), obvious.features(X, other)
        np.testing.assert_allclose(other @ B, Z @ A, atol=1e-9)


# ------------------------------------------------------------- the papers' pictures


def shared(name):
    """A data file kept beside the project, or a skip."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    path = Path(os.environ.get("KPLUS_SHARED_DATA", default)) / name
    if not path.exists():
        pytest.skip(f"{name} is not at hand; set KPLUS_SHARED_DATA to its folder")
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def principal_axes(pictures):
    """Pixels / 255, centred, over √(N − 1), on all axes there are."""
    X = pictures.reshape(len(pictures), -1).astype(np.float32) / np.float32(255.0)
    X -= X.mean(axis=0)
    with SINGLE_THREAD:
        gram = (X @ X.T).astype(np.float64) / (len(X) - 1)
    values, vectors = np.linalg.eigh(gram)
    return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@pytest.fixture(scope="module")
def tabletop():
    data = shared("tabletop.npz")
    return principal_axes(data["X"]), data["Z_derived"].astype(np.uint8)


@pytest.fixture(scope="module")
def dice():
    X = shared("dice_simulated.npz")["X"]
    return X.reshape(len(X), -1) / 255.0


def test_MB_9_drops_do_not_shrink_on_dice(dice):
    """Contradicted: the third feature explains more than the second."""
    errors = [KFeatures(K, random_state=0).fit(dice).objective_ for K in range(1, 5)]
    np.testing.assert_allclose(errors, DICE, atol=0.01)
    drops = -np.diff(errors)
    assert drops[1] > drops[0]


def test_MB_9_so_a_stepwise_search_may_stop_too_soon(dice):
    """λ² between the drops: Eq. 6 rises from one feature to two, then falls below."""
    errors = np.array(DICE)
    penalty = 256.0
    costs = errors + penalty * np.arange(1, 5)
    assert costs[1] > costs[0] > costs[3]
    steps = KFeatures(penalty=penalty, random_state=0).fit(dice)
    assert steps.n_components_ == 1
    assert steps.objective_ == pytest.approx(costs[0], abs=0.02)
    three = KFeatures(3, random_state=0).fit(dice)
    assert three.objective_ + 3 * penalty < steps.objective_ - 4.0
    np.testing.assert_array_equal(steps.path_["n_components"], [0, 1, 2])


def test_MB_9_drops_shrink_on_tabletop(tabletop):
    X, _ = tabletop
    errors = [KFeatures(K, random_state=0).fit(X).objective_ for K in range(1, 7)]
    np.testing.assert_allclose(errors, TABLETOP[:6], rtol=2e-4)
    drops = -np.diff([float(np.vdot(X, X)), *errors])
    assert np.all(np.diff(drops) <= 1e-3 * drops[:-1])


def test_MB_13_a_base_and_one_feature_for_each_object(tabletop):
    X, objects = tabletop
    model = KFeatures(5, random_state=0).fit(X)
    assert model.objective_ == pytest.approx(161.245, abs=0.01)
    assert _with_base(objects, X) == pytest.approx(161.245, abs=0.01)
    Z = bits(model, X)
    assert Z[:, 0].all()
    assert _columns(Z[:, 1:]) == _columns(objects)


def _with_base(objects, X):
    Z = np.column_stack([np.ones(len(X), np.uint8), objects])
    return obvious.collapsed(X, Z)


def _columns(Z):
    """Columns up to order and complement."""
    return sorted(tuple(z ^ z[0]) for z in Z.T)


@pytest.mark.parametrize("how", [BPMeans(20.0), KFeatures(penalty=20.0)], ids=repr)
def test_MB_13_five_features_at_a_penalty_of_20(tabletop, how):
    X, _ = tabletop
    for seed in range(3):
        model = how.set_params(random_state=seed).fit(X)
        assert model.n_components_ == 5
        assert model.objective_ == pytest.approx(261.245, abs=0.01)


def test_MB_14_complements_of_the_pictures(tabletop):
    X, objects = tabletop
    flipped = objects ^ np.array([1, 0, 1, 0], np.uint8)
    assert _with_base(flipped, X) == pytest.approx(_with_base(objects, X), rel=1e-10)
    assert len(np.unique(objects, axis=0)) == 16


def test_MB_16_two_features_with_a_base_are_two_clusters(tabletop):
    """A level that all rows share forces a base: one feature is free, as in 2-means."""
    X = np.column_stack([tabletop[0], np.full(100, 1e3)])
    model = KFeatures(2, random_state=0).fit(X)
    groups = bits(model, X) @ [1, 2]
    assert len(np.unique(groups)) == 2
    clusters = DPMeans(n_clusters=2, n_init=10, random_state=0).fit(X)
    np.testing.assert_array_equal(
        reference.canonical(groups), reference.canonical(clusters.labels_)
    )
    assert model.objective_ == pytest.approx(clusters.objective_, rel=1e-9)


def test_MB_16_without_a_base_two_features_code_four_groups():
    """The equivalence needs the base: free features may overlap."""
    X = np.array([[0.0, 0], [0, 3], [4, 0], [4, 3]])
    model = KFeatures(2, random_state=0).fit(np.repeat(X, 5, axis=0))
    assert model.objective_ == pytest.approx(0.0, abs=1e-18)
    assert len(np.unique(model.transform(X), axis=0)) == 4


def test_MB_16_counts_of_the_paper_add_up():
    for counts in ([139, 106, 80, 75], [154, 151, 95], [121, 150, 74, 55]):
        assert sum(counts) == 400
