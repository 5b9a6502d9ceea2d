"""What a fit of DPMeans is worth: against brute force and the obvious algorithm."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import reference
from kplus import DPMeans


def grid(rng, n):
    return rng.integers(-3, 4, (n, 2)).astype(float)


def normal(rng, n):
    return rng.normal(size=(n, 3))


def repeated(rng, n):
    return rng.normal(size=(n, 2))[rng.integers(0, n // 3, n)]


def heavy(rng, n):
    return rng.standard_t(2, size=(n, 2))


WEIGHTS = {
    "none": lambda rng, n: None,
    "tenths": lambda rng, n: rng.choice([0.1, 0.2, 0.3, 0.7], n),
    "some_zero": lambda rng, n: np.append(rng.integers(0, 3, n - 1), 1).astype(float),
}
CASES = [
    pytest.param(make, weigh, seed, id=f"{make.__name__}-{weigh}-{seed}")
    for make in (grid, normal, repeated, heavy)
    for weigh in WEIGHTS
    for seed in range(6)
]
every_case = pytest.mark.parametrize(("make", "weigh", "seed"), CASES)


def draw(make, weigh, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 120))
    return make(rng, n), WEIGHTS[weigh](rng, n), rng


def check_fit(model, X, weights):
    """What holds after a fit to convergence (tol=0), however the number was chosen.

    Of joined cells, too: rows are then in the nearest cell, and the objective is that
    of the cells.
    """
    K, C, labels = model.n_clusters_, model.cluster_centers_, model.labels_
    assert labels.dtype == np.int32
    assert C.shape == (K, X.shape[1])
    nearest, own_nearest = C, labels
    if hasattr(model, "cell_centers_"):
        nearest, own_nearest = model.cell_centers_, model.cell_labels_
        np.testing.assert_array_equal(model.cluster_of_cell_[own_nearest], labels)
        np.testing.assert_array_equal(model.cluster_of_cell_, model.cluster_tree_.cut())
    d2 = reference.square_distances(X, nearest)
    own = d2[np.arange(len(X)), own_nearest]
    assert np.all(own <= d2.min(axis=1) * (1 + 1e-12) + 1e-14)
    sizes = np.bincount(labels, weights=weights, minlength=K)
    np.testing.assert_allclose(model.cluster_sizes_, sizes, rtol=1e-12)
    assert np.all(sizes > 0)
    assert np.all(np.diff(sizes) <= 1e-12 * sizes[0])  # largest first
    np.testing.assert_allclose(
        C, reference.means(X, labels, K, weights), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(X), labels)
    penalty = model.penalty_
    objective = reference.objective(X, own_nearest, nearest, penalty, weights)
    assert model.objective_ == pytest.approx(objective, rel=1e-10, abs=1e-12)
    history = model.objective_history_
    assert len(history) == model.n_iter_
    assert history[-1] == model.objective_
    assert np.all(np.diff(history) <= 1e-12 * history[:-1] + 1e-13)


@every_case
def test_rest_by_penalty(make, weigh, seed):
    """No opening and no removal that the algorithm considers lowers the objective."""
    X, weights, rng = draw(make, weigh, seed)
    penalty = float(rng.uniform(0.1, 3.0) * X.var())
    model = DPMeans(penalty, tol=0.0).fit(X, sample_weight=weights)
    assert model.penalty_ == pytest.approx(penalty, rel=1e-15)
    check_fit(model, X, weights)
    wants = reference.wants_cluster(
        X, model.cluster_centers_, penalty * (1 + 1e-12), weights
    )
    assert not wants.any()
    if model.n_clusters_ > 1:
        costs = reference.removal_costs(X, model.cluster_centers_, weights)
        assert costs.min() >= penalty * (1 - 1e-9)


@pytest.mark.parametrize("seed", [164, 1844, 7418])
def test_no_removal_pays_among_many_small_clusters(seed):
    """Rows kept by the half distance between centres must not hide a cheap removal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(8, 60)), 2))
    penalty = float(rng.uniform(0.03, 0.5) * X.var())
    model = DPMeans(penalty, tol=0.0).fit(X)
    costs = reference.removal_costs(X, model.cluster_centers_)
    assert costs.min() >= penalty * (1 - 1e-9)


@pytest.mark.parametrize("cap", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_rest_under_a_cap(cap, seed):
    X, weights, _ = draw(normal, "tenths", seed)
    model = DPMeans(0.5, max_clusters=cap, tol=0.0).fit(X, sample_weight=weights)
    assert model.n_clusters_ == cap
    check_fit(model, X, weights)
    costs = reference.removal_costs(X, model.cluster_centers_, weights)
    assert cap == 1 or costs.min() >= 0.5 * (1 - 1e-9)


@every_case
def test_rest_by_number(make, weigh, seed):
    X, weights, rng = draw(make, weigh, seed)
    distinct = len(np.unique(X if weights is None else X[weights > 0], axis=0))
    K = int(rng.integers(1, min(distinct, 12) + 1))
    model = DPMeans(n_clusters=K, tol=0.0).fit(X, sample_weight=weights)
    assert model.n_clusters_ == K
    assert model.penalty_ == 0.0
    check_fit(model, X, weights)


def test_a_penalty_beside_a_number_is_only_charged(blobs):
    plain = DPMeans(n_clusters=5).fit(blobs)
    model = DPMeans(1e9, n_clusters=5).fit(blobs)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert (plain.penalty_, model.penalty_) == (0.0, 1e9)
    assert model.objective_ == pytest.approx(plain.objective_ + 4e9, rel=1e-12)


@every_case
def test_rest_of_the_automatic_choice(make, weigh, seed):
    """Of round clusters; those that are joined from cells pay no penalty."""
    X, weights, _ = draw(make, weigh, seed)
    model = DPMeans(cells=None, tol=0.0).fit(X, sample_weight=weights)
    assert not hasattr(model, "cell_centers_")
    check_fit(model, X, weights)
    path = model.path_
    assert model.n_clusters_ == path.n_clusters[path.chosen]
    assert model.penalty_ == path.penalty
    assert (
        path.penalty_low[path.chosen] <= path.penalty <= path.penalty_high[path.chosen]
    )


@every_case
def test_rest_of_the_automatic_choice_of_any_shape(make, weigh, seed):
    X, weights, _ = draw(make, weigh, seed)
    model = DPMeans(tol=0.0).fit(X, sample_weight=weights)
    check_fit(model, X, weights)
    path = model.path_
    apart = np.abs(path.n_clusters - model.n_clusters_)
    assert apart[path.chosen] == apart.min()
    assert (
        path.penalty_low[path.chosen] <= path.penalty <= path.penalty_high[path.chosen]
    )
    if hasattr(model, "cell_centers_"):
        assert 1 <= model.n_clusters_ < len(model.cell_centers_)
        assert model.penalty_ == 0.0
    else:
        assert model.n_clusters_ == path.n_clusters[path.chosen]
        assert model.penalty_ == path.penalty


# ----------------------------------------------------------- the global optimum


def test_never_below_the_best_partition_and_restarts_often_reach_it():
    """Of seven rows or fewer; the row rule has local minima that no start leaves."""
    reached = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(int(rng.integers(2, 8)), 2))
        penalty = float(rng.uniform(0.2, 2.0))
        best, _ = reference.best_partition(X, penalty)
        once = DPMeans(penalty, tol=0.0).fit(X).objective_
        many = DPMeans(penalty, tol=0.0, n_init=40, random_state=0).fit(X).objective_
        assert best * (1 - 1e-12) <= many <= once
        reached += many <= best * (1 + 1e-10)
    assert reached >= 8


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("K", [1, 2, 3, 7])
def test_a_number_reaches_the_best_partition(K, seed):
    X = np.random.default_rng(seed).normal(size=(7, 2))
    best = reference.best_sse(X, K)
    model = DPMeans(n_clusters=K, tol=0.0, n_init=12, random_state=0).fit(X)
    assert model.n_clusters_ == K
    assert model.objective_ == pytest.approx(best, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("K", [2, 3, 4])
def test_numbers_on_a_line_are_cut_in_the_best_places(K):
    x = np.random.default_rng(K).normal(size=14)
    model = DPMeans(n_clusters=K, tol=0.0, n_init=20, random_state=0).fit(x[:, None])
    assert model.objective_ == pytest.approx(reference.best_sse_1d(x, K), rel=1e-10)


# ------------------------------------------------------------------ small things


@pytest.mark.parametrize(
    ("X", "square"),
    [
        ([[0.0], [2.0]], 1.0),
        ([[0.0], [0.0], [2.0], [2.0]], 1.0),
        ([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]], 2.0),
        ([[1000.0], [1064.0]], 1024.0),
    ],
)
def test_a_row_at_exactly_the_penalty_opens_nothing(X, square):
    """The rule is 'more than', and the distances of these rows are exact."""
    assert DPMeans(square, algorithm="rows").fit(X).n_clusters_ == 1
    above = DPMeans(square * (1 + 1e-9), algorithm="rows")
    assert above.fit(X).n_clusters_ == 1
    assert DPMeans(square * (1 - 1e-9)).fit(X).n_clusters_ > 1


def test_a_tiny_penalty_gives_every_distinct_row_a_cluster():
    X = np.random.default_rng(0).permutation(np.arange(60.0)).reshape(30, 2)
    model = DPMeans(1e-6).fit(np.vstack([X, X]))
    assert model.n_clusters_ == 30
    assert model.objective_ == pytest.approx(29e-6, rel=1e-9)


def test_a_huge_penalty_gives_one_cluster(blobs):
    model = DPMeans(1e12).fit(blobs)
    assert model.n_clusters_ == 1
    np.testing.assert_allclose(
        model.cluster_centers_[0], blobs.mean(axis=0), rtol=1e-12
    )
    assert model.objective_ == pytest.approx(np.sum((blobs - blobs.mean(axis=0)) ** 2))


def test_the_automatic_number_on_clear_groups(blobs):
    model = DPMeans().fit(blobs)
    assert model.n_clusters_ == 4
    assert len(np.unique(model.labels_.reshape(4, 50), axis=1).ravel()) == 4


def test_largest_cluster_first(blobs):
    model = DPMeans(n_clusters=4).fit(blobs[:180])
    np.testing.assert_array_equal(model.cluster_sizes_, [50, 50, 50, 30])


def test_random_state_does_not_matter_for_one_start_on_few_rows(blobs):
    one, other = (DPMeans(30.0, random_state=seed).fit(blobs) for seed in (0, 1))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert one.objective_ == other.objective_


@pytest.mark.parametrize("how", [{"penalty": 2.0}, {"n_clusters": 9}, {}])
def test_more_starts_are_never_worse(how):
    X = np.random.default_rng(3).normal(size=(150, 2))
    one = DPMeans(**how, random_state=0).fit(X)
    many = DPMeans(**how, n_init=8, random_state=0).fit(X)
    assert many.objective_ <= one.objective_


def test_warns_when_passes_run_out(blobs):
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = DPMeans(30.0, max_iter=1).fit(blobs)
    assert model.n_iter_ == 1
    np.testing.assert_array_equal(model.predict(blobs), model.labels_)
    objective = reference.objective(
        blobs, model.labels_, model.cluster_centers_, model.penalty_
    )
    assert model.objective_ == pytest.approx(objective, rel=1e-10)


def test_tolerance_only_stops_earlier():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    loose = DPMeans(n_clusters=30, tol=1e-2).fit(X)
    tight = DPMeans(n_clusters=30, tol=0.0).fit(X)
    assert loose.n_iter_ < tight.n_iter_
    assert tight.objective_ <= loose.objective_


@pytest.mark.parametrize(
    "how", [{"penalty": 4.0}, {"n_clusters": 6}, {}, {"cells": None}, {"cells": "auto"}]
)
@pytest.mark.parametrize("seed", range(8))
def test_weights_equal_copies(how, seed):
    """Zero: left out; two: twice there, in whatever order."""
    rng = np.random.default_rng(seed)
    X = rng.normal(scale=2.0, size=(70, 2))
    weights = rng.integers(0, 4, 70)
    copies = rng.permutation(np.repeat(np.arange(70), weights))
    one = DPMeans(**how, tol=0.0).fit(X, sample_weight=weights)
    other = DPMeans(**how, tol=0.0).fit(X[copies])
    assert one.n_clusters_ == other.n_clusters_
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-10)
    np.testing.assert_array_equal(
        reference.canonical(one.labels_[copies]), reference.canonical(other.labels_)
    )


def test_weights_equal_copies_where_very_many_rows_want_a_cluster():
    """More than the candidates that a pass keeps: copies must not crowd out others."""
    X = np.random.default_rng(0).normal(size=(800, 2))
    weights = np.random.default_rng(1).integers(1, 4, 800)
    one = DPMeans(0.02, tol=0.0).fit(X, sample_weight=weights)
    other = DPMeans(0.02, tol=0.0).fit(np.repeat(X, weights, axis=0))
    assert one.n_clusters_ == other.n_clusters_
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)


@pytest.mark.parametrize("how", [{"penalty": 4.0}, {"n_clusters": 6}, {}])
@pytest.mark.parametrize("seed", range(4))
def test_order_of_rows_does_not_matter(how, seed):
    rng = np.random.default_rng(seed)
    X, order = rng.normal(scale=2.0, size=(90, 2)), rng.permutation(90)
    one, other = (DPMeans(**how, tol=0.0).fit(rows) for rows in (X, X[order]))
    np.testing.assert_array_equal(one.labels_[order], other.labels_)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-10)


def test_zero_weight_rows_are_labelled_but_do_not_count(blobs):
    far = np.full((1, 3), 1e4)
    X = np.vstack([blobs, far])
    weights = np.append(np.ones(len(blobs)), 0.0)
    with_it = DPMeans(30.0).fit(X, sample_weight=weights)
    without = DPMeans(30.0).fit(blobs)
    np.testing.assert_array_equal(with_it.labels_[:-1], without.labels_)
    np.testing.assert_allclose(with_it.cluster_centers_, without.cluster_centers_)
    assert with_it.labels_[-1] == reference.nearest(far, without.cluster_centers_)[0][0]


@pytest.mark.parametrize("how", [{"penalty": 3.0}, {"n_clusters": 3}, {}])
def test_few_weighty_rows_among_many_of_no_weight(how):
    """A sample of a large table may well hold no row that counts."""
    X = np.random.default_rng(0).normal(size=(30_000, 2))
    weights = np.zeros(len(X))
    weights[:20] = 1.0
    model = DPMeans(**how, tol=0.0, random_state=0).fit(X, sample_weight=weights)
    check_fit(model, X, weights)
    if "n_clusters" in how:
        assert model.n_clusters_ == 3


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_wished_number_knows_no_scale_of_weights(factor, blobs):
    weights = np.full(len(blobs), factor)
    one, other = DPMeans(n_clusters=4), DPMeans(n_clusters=4)
    one.fit(blobs)
    other.fit(blobs, sample_weight=weights)
    np.testing.assert_array_equal(
        reference.canonical(one.labels_), reference.canonical(other.labels_)
    )
    assert other.objective_ == pytest.approx(one.objective_ * factor, rel=1e-9)


def test_fractions_of_a_row_and_of_the_penalty(blobs):
    """A fraction w of every row at the w-th part of the penalty: the same clusters."""
    one = DPMeans(3.0).fit(blobs)
    other = DPMeans(0.75).fit(blobs, sample_weight=np.full(len(blobs), 0.25))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert other.objective_ == pytest.approx(0.25 * one.objective_, rel=1e-12)


# --------------------------------------------------------- large enough for samples


@pytest.fixture(scope="module")
def many():
    """21,000 rows: a fit starts on samples of them."""
    rng = np.random.default_rng(1)
    centers = rng.uniform(-20.0, 20.0, (12, 2))
    return centers[rng.integers(0, 12, 21_000)] + rng.normal(size=(21_000, 2))


@pytest.mark.parametrize("how", [{"penalty": 25.0}, {"n_clusters": 12}, {}])
def test_many_rows(many, how):
    """A fit converges, and its seed repeats it."""
    model, again = (DPMeans(**how, tol=0.0, random_state=0).fit(many) for _ in range(2))
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    check_fit(model, many, None)
    if "penalty" in how:
        C = model.cluster_centers_
        assert not reference.wants_cluster(many, C, 25.0 * (1 + 1e-12)).any()
        assert reference.removal_costs(many, C).min() >= 25.0
