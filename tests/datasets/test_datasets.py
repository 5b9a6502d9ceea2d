"""The generators make what they promise, and the bundled files are as at the source."""

import csv

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import multivariate_normal, norm
from sklearn.datasets import load_wine as load_sklearn_wine
from sklearn.metrics import adjusted_rand_score

from kplus import datasets
from kplus.datasets import (
    csv_path,
    load_banknote,
    load_wine,
    make_binary_features,
    make_edge_patches,
    make_gaussian_blobs,
    make_grid_clusters,
    make_nonnegative_features,
    make_spherical_mixture,
    make_subspace_clusters,
    spherical_battery,
)


def make_small_blobs(random_state):
    return make_gaussian_blobs(500, 3, 4, random_state=random_state)


def make_small_grid(random_state):
    return make_grid_clusters(500, 9, random_state=random_state)


def make_small_mixture(random_state):
    return make_spherical_mixture(500, 3, 4, random_state=random_state)


def make_small_patches(random_state):
    return make_edge_patches(500, 3, 4, random_state)


GENERATORS = [
    make_small_blobs,
    make_small_grid,
    make_small_mixture,
    make_small_patches,
]


def within_sum_of_squares(X, y):
    return sum(((X[y == k] - X[y == k].mean(axis=0)) ** 2).sum() for k in np.unique(y))


@pytest.mark.parametrize("make", GENERATORS)
def test_same_seed_same_data(make):
    first, again, other = make(7), make(7), make(8)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("make", GENERATORS)
def test_generator_as_random_state_advances(make):
    rng = np.random.default_rng(0)
    first, second = make(rng), make(rng)
    np.testing.assert_array_equal(first[0], make(0)[0])
    assert not np.array_equal(first[0], second[0])


@pytest.mark.parametrize("make", GENERATORS)
def test_types_and_shapes(make):
    X, y = make(0)
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert y.dtype == np.int64
    assert len(X) == len(y) == 500


@pytest.mark.parametrize("name", ["n_samples", "n_features", "n_clusters"])
def test_sizes_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        make_spherical_mixture(**{name: 0})
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        make_gaussian_blobs(**{name: 0})


def test_blobs_have_the_size_the_benchmarks_rely_on():
    X, y = make_gaussian_blobs(40_000, random_state=0)
    objective = within_sum_of_squares(X, y) + 200 * 49
    assert objective / 40_000 == pytest.approx(53.5, rel=0.01)
    # The row rule keeps a component whole if no row is farther than the penalty.
    centers = np.array([X[y == k].mean(axis=0) for k in range(50)])
    assert ((X - centers[y]) ** 2).sum(axis=1).max() < 200


def test_blobs_are_correlated_and_unequal():
    X, y = make_gaussian_blobs(20_000, 4, 3, random_state=0)
    correlation = np.corrcoef(X[y == 0].T)
    assert np.abs(correlation - np.eye(4)).max() > 0.1
    sizes = np.bincount(y)
    assert sizes.max() > 1.2 * sizes.min()


def test_grid_spacing_and_scale():
    X, y = make_grid_clusters(40_000, random_state=0)
    centers = np.array([X[y == k].mean(axis=0) for k in range(100)])
    assert pdist(centers).min() == pytest.approx(9, rel=0.1)
    np.testing.assert_allclose(centers[11] - centers[0], [9, 9], rtol=0.1)
    assert within_sum_of_squares(X, y) / 40_000 == pytest.approx(2 * 2.33**2, rel=0.02)


def test_grid_needs_a_square_number():
    with pytest.raises(ValueError, match="n_clusters must be a square number"):
        make_grid_clusters(n_clusters=10)


@pytest.mark.parametrize(("n_features", "n_clusters"), [(1, 2), (2, 40), (50, 8)])
def test_nearest_centres_are_as_far_apart_as_asked(n_features, n_clusters):
    X, y = make_spherical_mixture(
        200_000 // n_features, n_features, n_clusters, separation=6, random_state=0
    )
    centers = np.array([X[y == k].mean(axis=0) for k in range(n_clusters)])
    assert pdist(centers).min() == pytest.approx(6, rel=0.05)


def test_one_component_is_a_standard_normal():
    X, y = make_spherical_mixture(20_000, 2, 1, random_state=0)
    assert not y.any()
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(np.cov(X.T), np.eye(2), atol=0.05)


def test_no_component_of_a_mixture_is_tiny():
    _, y = make_spherical_mixture(50_000, 2, 20, concentration=0.1, random_state=0)
    assert np.bincount(y, minlength=20).min() > 0.15 * 50_000 / 20


@pytest.fixture(scope="module")
def patches():
    return make_edge_patches(40_000, random_state=0, return_covariances=True)


def test_patches_have_the_moments_of_their_component(patches):
    X, y, covariances = patches
    assert X.shape == (40_000, 25)
    assert covariances.shape == (8, 25, 25)
    for k, covariance in enumerate(covariances):
        rows = X[y == k]
        np.testing.assert_allclose(rows.mean(axis=0), 0, atol=0.06)
        second = rows.T @ rows / len(rows)
        np.testing.assert_allclose(second, covariance, atol=0.06)


def test_patch_components_are_equally_common(patches):
    sizes = np.bincount(patches[1], minlength=8)
    np.testing.assert_allclose(sizes, 5000, rtol=0.05)


def test_patch_covariances_are_distinct_and_of_one_size(patches):
    covariances = patches[2]
    np.testing.assert_allclose(np.trace(covariances, axis1=1, axis2=2), 12.75)
    values = np.linalg.eigvalsh(covariances)
    assert values.min() == pytest.approx(0.01, rel=1e-3)
    assert 8 < values[:, -1].min() < values[:, -1].max() < 12
    assert pdist(covariances.reshape(8, -1)).min() > 3


def test_patch_components_are_known_well_but_not_trivially(patches):
    X, y, covariances = patches
    fits = [multivariate_normal(cov=covariance).logpdf(X) for covariance in covariances]
    assert 0.98 < adjusted_rand_score(y, np.argmax(fits, axis=0)) < 0.995


def test_patches_have_opposite_signs_beside_the_edge(patches):
    # The edge of component 0 runs from top to bottom, that of component 4 across.
    upright, level = (patches[2][k].reshape(5, 5, 5, 5) for k in (0, 4))
    assert upright[2, 0, 2, 4] == pytest.approx(-upright[2, 0, 2, 0] + 0.01)
    assert level[0, 2, 4, 2] == pytest.approx(-level[0, 2, 0, 2] + 0.01)
    assert level[0, 0, 0, 4] > 0.2


def test_patch_covariances_do_not_depend_on_the_seed(patches):
    other = make_edge_patches(10, random_state=1, return_covariances=True)
    np.testing.assert_array_equal(other[2], patches[2])


def test_patch_variances_are_as_asked():
    *_, covariances = make_edge_patches(
        10, 2, 3, 0, signal=2.0, noise=0.5, return_covariances=True
    )
    np.testing.assert_allclose(np.trace(covariances, axis1=1, axis2=2), 4 * 2.5)


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [("n_rows", 0, 1), ("size", 1, 2), ("n_components", 0, 1)],
)
def test_patch_sizes_too_small_are_refused(name, value, least):
    with pytest.raises(ValueError, match=f"{name} must be at least {least}, got"):
        make_edge_patches(**{name: value})


@pytest.mark.parametrize("name", ["signal", "noise"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_patch_variances_must_be_positive(name, value):
    with pytest.raises(ValueError, match=f"{name} must be positive and finite"):
        make_edge_patches(10, **{name: value})


def make_small_features(random_state):
    return make_binary_features(500, 6, 4, random_state=random_state)


def test_features_depend_on_the_seed_only():
    rng = np.random.default_rng(7)
    first, again, other = (make_small_features(seed) for seed in (7, rng, rng))
    for one, same, new in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, new)


def test_rows_are_sums_of_features_and_noise():
    X, Z, A = make_binary_features(20_000, 7, 5, noise=0.2, random_state=0)
    assert (X.shape, Z.shape, A.shape) == ((20_000, 7), (20_000, 5), (5, 7))
    assert X.dtype == Z.dtype == A.dtype == np.float64
    assert set(np.unique(Z)) == {0.0, 1.0}
    np.testing.assert_allclose(np.std(X - Z @ A, axis=0), 0.2, rtol=0.03)
    X, Z, A = make_binary_features(50, 7, 5, noise=0.0, random_state=0)
    np.testing.assert_array_equal(X, Z @ A)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_features_have_their_share_and_company(share, correlation):
    _, Z, _ = make_binary_features(
        50_000, 1, 4, share=share, correlation=correlation, random_state=0
    )
    np.testing.assert_allclose(Z.mean(axis=0), share, atol=0.01)
    both = multivariate_normal(cov=[[1, correlation], [correlation, 1]])
    expected = both.cdf(np.full(2, norm.ppf(share)))
    together = (Z.T @ Z / len(Z))[np.triu_indices(4, 1)]
    np.testing.assert_allclose(together, expected, atol=0.01)


def test_every_row_has_the_base():
    _, Z, _ = make_binary_features(500, 3, 4, base=True, random_state=0)
    assert Z[:, 0].all()
    assert not Z[:, 1:].all(axis=0).any()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_samples", 0, "at least 1"),
        ("n_features", 0, "at least 1"),
        ("n_components", 0, "at least 1"),
        ("share", 1.0, "between 0 and 1"),
        ("share", np.nan, "between 0 and 1"),
        ("noise", -0.1, "not negative"),
        ("noise", np.inf, "finite"),
        ("correlation", 1.0, "less than 1"),
        ("correlation", -0.1, "at least 0"),
    ],
)
def test_bad_settings_of_features_are_named(name, value, message):
    with pytest.raises(ValueError, match=f"{name} must be .*{message}"):
        make_binary_features(**{name: value})


def test_nonnegative_features_depend_on_the_seed_only():
    rng = np.random.default_rng(7)
    first, again, other = (
        make_nonnegative_features(50, 9, 4, random_state=seed) for seed in (7, rng, rng)
    )
    for one, same, new in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, new)


def test_nonnegative_features_are_as_in_the_paper():
    """Section 5: z ~ Bernoulli(.4), binary factors that overlap, noise of scale 1."""
    X, Z, A = make_nonnegative_features(random_state=0)
    assert (X.shape, Z.shape, A.shape) == ((500, 500), (500, 20), (20, 500))
    assert set(np.unique(Z)) == set(np.unique(A)) == {0.0, 1.0}
    assert Z.mean() == pytest.approx(0.4, abs=0.02)
    np.testing.assert_array_equal(A.sum(axis=1), 167)
    assert np.triu(A @ A.T, 1).max() > 30
    assert np.std(X - Z @ A) == pytest.approx(1.0, abs=0.01)
    assert X.min() < 0


def test_nonnegative_features_are_filled_as_asked():
    X, Z, A = make_nonnegative_features(
        2_000, 10, 3, share=0.1, filled=0.01, noise=0.0, random_state=0
    )
    np.testing.assert_array_equal(A.sum(axis=1), 1)
    np.testing.assert_array_equal(X, Z @ A)
    np.testing.assert_allclose(Z.mean(axis=0), 0.1, atol=0.03)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_components", 0, "at least 1"),
        ("share", 0.0, "between 0 and 1"),
        ("noise", np.nan, "finite"),
        ("filled", 0.0, "above 0"),
        ("filled", 1.1, "at most 1"),
    ],
)
def test_bad_settings_of_nonnegative_features_are_named(name, value, message):
    with pytest.raises(ValueError, match=f"{name} must be .*{message}"):
        make_nonnegative_features(**{name: value})


def test_battery_covers_the_promised_range():
    cases = list(spherical_battery())
    assert len(cases) == len({(case.name, case.seed) for case in cases}) == 130
    clusters = [case.n_clusters for case in cases]
    features = [case.n_features for case in cases]
    assert (min(clusters), max(clusters)) == (2, 40)
    assert (min(features), max(features)) == (2, 50)


def test_battery_repeats_each_configuration_with_each_seed():
    cases = list(spherical_battery(seeds=iter([3, 4])))
    assert [case.seed for case in cases[:4]] == [3, 4, 3, 4]
    assert [case.name for case in cases[:2]] == [cases[0].name] * 2


@pytest.mark.parametrize(
    "case", list(spherical_battery(seeds=[0])), ids=lambda case: case.name
)
def test_battery_case_makes_all_its_components(case):
    X, y = case.make()
    assert X.shape == (case.n_samples, case.n_features)
    np.testing.assert_array_equal(np.unique(y), np.arange(case.n_clusters))


def test_wine_is_the_set_everyone_knows():
    known = load_sklearn_wine()
    wine = load_wine()
    np.testing.assert_array_equal(wine.data, known.data)
    np.testing.assert_array_equal(wine.target, known.target)
    assert list(wine.feature_names) == known.feature_names


def test_banknote_counts_and_first_row():
    notes = load_banknote()
    assert notes.data.shape == (1372, 4)
    np.testing.assert_array_equal(notes.data[0], [3.6216, 8.6661, -2.8073, -0.44699])
    assert np.bincount(notes.target).tolist() == [762, 610]
    assert notes.target_names == ("genuine", "forged")


def test_csv_holds_numbers_only():
    for name, n_columns in [("wine", 13), ("banknote", 4)]:
        with csv_path(name).open(newline="") as file:
            header, *rows = csv.reader(file)
        assert len(header) == n_columns
        assert np.isfinite(np.array(rows, dtype=float)).all()


def test_csv_path_names_the_choices():
    with pytest.raises(ValueError, match="'wine' or 'banknote', got 'iris'"):
        csv_path("iris")


def test_public_names_exist():
    assert all(hasattr(datasets, name) for name in datasets.__all__)


BINARY, NUMERIC = ["2a", "2c", "4a"], ["3a", "3c", "4c"]


@pytest.mark.parametrize("figure", BINARY + NUMERIC)
def test_subspace_clusters_in_shape(figure):
    X, labels, subspaces = make_subspace_clusters(figure, 300, random_state=0)
    D = 24 if figure in BINARY else 36
    assert X.shape == (300, D)
    assert subspaces.shape == (3, D)
    assert (labels.dtype, subspaces.dtype) == (np.int64, bool)
    again = make_subspace_clusters(figure, 300, random_state=0)
    np.testing.assert_array_equal(X, again[0])
    other = make_subspace_clusters(figure, 300, random_state=1)
    assert not np.array_equal(X, other[0])
    np.testing.assert_array_equal(subspaces, other[2])


@pytest.mark.parametrize("figure", BINARY)
def test_binary_subspaces_are_ones(figure):
    X, labels, subspaces = make_subspace_clusters(figure, 30_000, random_state=0)
    assert set(np.unique(X)) == {0, 1}
    for k in range(3):
        shares = X[labels == k].mean(axis=0)
        np.testing.assert_array_equal(shares[subspaces[k]], 1.0)
        rest = ~subspaces[k]
        if figure == "2c":
            assert shares[23] == pytest.approx(0.5, abs=0.02)
            rest[23] = False
        np.testing.assert_allclose(shares[rest], 0.1, atol=0.02)


@pytest.mark.parametrize("figure", NUMERIC)
def test_numeric_subspaces_are_narrow(figure):
    X, labels, subspaces = make_subspace_clusters(figure, 30_000, random_state=0)
    for k, mean in enumerate((1.0, 5.0, 10.0)):
        rows = X[labels == k]
        own, rest = rows[:, subspaces[k]], rows[:, ~subspaces[k]]
        np.testing.assert_allclose(own.mean(axis=0), mean, atol=0.05)
        np.testing.assert_allclose(own.std(axis=0), 1.0, atol=0.03)
        np.testing.assert_allclose(rest.mean(axis=0), 0.0, atol=0.15)
        np.testing.assert_allclose(rest.var(axis=0), 9.0, atol=0.5)


def test_subspaces_are_those_of_the_paper():
    """As far as its text says."""
    sizes = {
        figure: make_subspace_clusters(figure, 30, random_state=0)[2].sum(axis=1)
        for figure in BINARY + NUMERIC
    }
    assert sizes["2a"].tolist() == [8, 8, 8]
    assert sizes["2c"].tolist() == [8, 8, 8]
    assert sizes["3a"].tolist() == [12, 12, 13]
    assert sizes["4a"].tolist() == [9, 16, 8]
    _, labels, _ = make_subspace_clusters("2c", 300, random_state=0)
    np.testing.assert_array_equal(np.bincount(labels), [140, 100, 60])


def test_an_unknown_figure_is_refused():
    with pytest.raises(ValueError, match=r"figure must be one of '2a'.*got '5a'"):
        make_subspace_clusters("5a")


@pytest.mark.parametrize("n_rows", [0, -3])
def test_subspace_clusters_without_rows_are_refused(n_rows):
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        make_subspace_clusters(n_samples=n_rows)


def test_subspace_clusters_take_a_generator():
    X, _, _ = make_subspace_clusters(random_state=np.random.default_rng(0))
    assert X.shape == (300, 24)
