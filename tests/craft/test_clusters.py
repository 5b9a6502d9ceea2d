"""Clusters joined from components: axes, sums, the tree, streams, files."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.metrics import adjusted_rand_score

import kplus
from kplus import CRAFT
from kplus.craft.axes import PairAxes
from kplus.craft.clusters import same_categories
from kplus.craft.kernels_rows import score_rows
from kplus.tree.borders import N_BINS


def cigars(seed=0, n=1000):
    """Two groups, each long and slanting in six columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(0, 2, (n, 1)) + rng.normal(0, 1, (n, 6))
    X[:, :3] += 8.0 * y[:, None]
    return X, y


@pytest.fixture(scope="module")
def table():
    return cigars()


@pytest.fixture(scope="module")
def fitted(table):
    return CRAFT(random_state=0).fit(table[0])


def test_correlated_columns_are_not_cut_in_slices(table, fitted):
    X, y = table
    assert fitted.n_components_ > 3
    assert fitted.n_clusters_ == 2
    assert adjusted_rand_score(y, fitted.labels_) > 0.98
    assert fitted.cluster_tree_.n_clusters == 2
    np.testing.assert_array_equal(fitted.predict(X), fitted.labels_)
    np.testing.assert_array_equal(
        fitted.cluster_of_component_[fitted.predict_components(X)], fitted.labels_
    )
    scores = fitted.transform(X)
    assert scores.shape == (len(X), 2)
    np.testing.assert_array_equal(scores.argmax(axis=1), fitted.labels_)


def test_every_component_is_a_cluster_on_request(table, fitted):
    each = CRAFT(n_clusters=None, random_state=0).fit(table[0])
    assert each.n_clusters_ == each.n_components_ == fitted.n_components_
    np.testing.assert_array_equal(each.labels_, fitted.component_labels_)
    assert not hasattr(each, "cluster_tree_")
    assert each.objective_ == fitted.objective_


@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_a_number_is_met(table, K):
    """Where as many components would cut through groups, by the tree of others."""
    X, y = table
    craft = CRAFT(n_clusters=K, random_state=0).fit(X)
    assert craft.n_clusters_ == K == len(np.unique(craft.labels_))
    if K == 2:
        assert adjusted_rand_score(y, craft.labels_) > 0.9


def test_reports_are_those_of_clusters(table, fitted):
    X, _ = table
    np.testing.assert_array_equal(fitted.cluster_sizes_, np.bincount(fitted.labels_))
    assert fitted.feature_scores_.shape == (2, 6)
    assert fitted.selected_features_.shape == (2, 6)
    lines = fitted.describe()
    first = lines[(lines["cluster"] == 0) & (lines["feature"] == "0")]
    mean = float(first["here"].iloc[0].split(" ")[0])
    assert mean == pytest.approx(X[fitted.labels_ == 0, 0].mean(), rel=1e-2)


@pytest.mark.parametrize("settings", [{"n_jobs": 2}, {"batch_size": 64}])
def test_any_blocking_and_number_of_threads(table, fitted, settings):
    other = CRAFT(random_state=0, **settings).fit(table[0])
    np.testing.assert_array_equal(other.labels_, fitted.labels_)
    tree, expected = other.cluster_tree_, fitted.cluster_tree_
    np.testing.assert_array_equal(tree.children, expected.children)
    np.testing.assert_allclose(tree.heights, expected.heights, rtol=1e-9)


def test_weight_two_is_the_row_twice(table):
    X, _ = table
    weights = np.random.default_rng(1).integers(1, 3, len(X))
    one = CRAFT(random_state=0).fit(X, sample_weight=weights)
    two = CRAFT(random_state=0).fit(np.repeat(X, weights, axis=0))
    assert one.n_clusters_ == two.n_clusters_
    np.testing.assert_array_equal(np.repeat(one.labels_, weights), two.labels_)


def test_sums_between_components_against_brute_force(table, fitted):
    X, _ = table
    between, K = fitted._between, fitted.n_components_
    rows = fitted._model.layout.encode(X)
    scores = np.empty((len(X), K))
    clusters = fitted._clusters
    score_rows(rows.numbers, rows.codes, clusters.tables, clusters.shares, scores)
    shares, labels = softmax(scores, axis=1), scores.argmax(axis=1)
    overlap = np.array(
        [[shares[labels == j, i].sum() for j in range(K)] for i in range(K)]
    )
    np.testing.assert_allclose(between.borders.overlap, overlap, rtol=1e-9, atol=1e-12)
    along, P = between.along, fitted._model.layout.P
    for p, pair in enumerate(along.axes.pairs):
        mine = np.isin(labels, pair)
        values = rows.numbers[mine, P : P + 6] @ along.coefficients[p]
        ends = (along.axes.low[p], along.axes.high[p])
        counts, _ = np.histogram(values, N_BINS, ends)
        assert np.abs(between.borders.counts[p] - counts).sum() < 1e-9


def test_the_axis_is_fishers(table, fitted):
    """With many rows it is that of plain covariances."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    X = rng.normal(size=(40_000, 3)) @ A
    labels = (np.arange(len(X)) % 2).astype(np.int64)
    X[labels == 1] += (3.0, 1.0, 0.0)
    craft = CRAFT(n_clusters=None, max_clusters=1, random_state=0).fit(X)
    layout = craft._model.layout
    rows = layout.encode(X)
    sums = craft._sums.__class__(np.zeros((2, layout.n_sums)), np.zeros(2))
    for k in (0, 1):
        sums.sums[k, :9] = rows.numbers[labels == k].sum(axis=0)
        sums.counts[k] = np.count_nonzero(labels == k)
    along = PairAxes.of(layout, sums, rows, labels, np.array([[0, 1]]))
    z = (X - layout.origins) / layout.scales
    first, second = z[labels == 0], z[labels == 1]
    pooled = 0.5 * (np.cov(first.T) + np.cov(second.T))
    expected = np.linalg.solve(pooled, second.mean(axis=0) - first.mean(axis=0))
    np.testing.assert_allclose(along.coefficients[0], expected, rtol=2e-3, atol=2e-3)
    assert along.volumes[0] == pytest.approx(
        0.5 * np.linalg.slogdet(np.cov(first.T))[1], abs=1e-2
    )


def test_components_of_other_categories_stay_apart():
    """No valley can lie between them; those that differ in numbers alone are joined."""
    X, y = cigars(n=2000)
    kind = np.where(np.random.default_rng(1).random(len(X)) < 0.5, "a", "b")
    frame = pd.DataFrame(X).add_prefix("x").assign(kind=kind, copy=kind)
    craft = CRAFT(random_state=0).fit(frame)
    alike = same_categories(craft._model, craft._sums)
    assert np.array_equal(alike, alike.T)
    components, K = craft.component_labels_, craft.n_components_
    share = [np.mean(kind[components == k] == "a") for k in range(K)]
    clusters = craft.cluster_of_component_
    assert not set(clusters[np.equal(share, 1)]) & set(clusters[np.equal(share, 0)])
    assert 4 <= craft.n_clusters_ < craft.n_components_ / 2
    truth = 2 * y + (kind == "a")
    assert adjusted_rand_score(truth, craft.labels_) > 0.8


def test_components_that_share_no_row_stay_apart():
    """A dozen rows each in 90 columns: no axis shows a valley; every row is sure."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 12, 150)
    X = 0.9 * rng.normal(size=(12, 90))[y] + rng.normal(size=(150, 90))
    craft = CRAFT(random_state=0).fit(X)
    assert craft.n_clusters_ == craft.n_components_ == 12
    assert adjusted_rand_score(y, craft.labels_) == 1.0
    assert craft.cluster_tree_.consistent()
    np.testing.assert_array_equal(craft.predict(X), craft.labels_)


def test_few_rows_among_categories_stay_apart():
    """They are too few to show a valley; without categories they belong nowhere."""
    X, _ = cigars(n=300)
    frame = pd.DataFrame(X).add_prefix("x").assign(kind=["a", "b"] * 150)
    craft = CRAFT(random_state=0).fit(frame)
    sums = craft._sums
    alike = same_categories(craft._model, sums)
    few = sums.counts < 20
    assert few.any()
    assert not alike[few].any()
    numbers = CRAFT(random_state=0).fit(X)
    assert same_categories(numbers._model, numbers._sums)[0, 1]


def test_columns_of_categories_alone():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = np.where(rng.random((400, 8)) < 0.9, y[:, None], rng.integers(0, 3, (400, 8)))
    craft = CRAFT(categorical_features=range(8), random_state=0).fit(X)
    assert craft.n_clusters_ == craft.n_components_ == 3
    assert craft.cluster_tree_.consistent()


def test_rounded_numbers_have_no_valleys_between_them():
    rng = np.random.default_rng(0)
    mood = rng.normal(0, 1, (2000, 1))
    X = np.clip(np.rint(3 + 0.9 * mood + rng.normal(0, 0.4, (2000, 6))), 1, 5)
    craft = CRAFT(random_state=0).fit(X)
    assert craft.n_clusters_ <= 3 <= craft.n_components_ / 3


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.astype(np.float32),
        lambda X: X + 1e7,
        lambda X: np.column_stack([X, np.full(len(X), 3.0)]),
        lambda X: np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X),
        lambda X: X * np.logspace(-6, 6, X.shape[1]),
    ],
)
def test_tables_of_all_sorts(table, change):
    X, y = table
    craft = CRAFT(random_state=0).fit(change(X))
    assert craft.n_clusters_ <= 3
    assert adjusted_rand_score(y, craft.labels_) > 0.85


def test_more_columns_than_axes_are_looked_for_in():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = rng.normal(0, 1, (600, 1)) + rng.normal(0, 1, (600, 90))
    X[:, :45] += 5.0 * y[:, None]
    craft = CRAFT(random_state=0).fit(X)
    assert 2 <= craft.n_clusters_ <= 3 < craft.n_components_
    assert adjusted_rand_score(y, craft.labels_) > 0.8


def test_streams_add_what_lies_between(table):
    X, y = table
    craft = CRAFT(random_state=0).partial_fit(X[:600])
    K = craft.n_components_
    first = craft._between.borders.copy()
    craft.partial_fit(X[600:])
    assert craft.n_components_ == K
    assert craft.n_clusters_ == 2
    assert adjusted_rand_score(y, craft.predict(X)) > 0.95
    assert craft._between.borders.overlap.sum() == pytest.approx(len(X))
    assert np.all(craft._between.borders.counts >= first.counts)
    np.testing.assert_array_equal(craft.predict(X[600:]), craft.labels_)
    craft.partial_fit(X[:1])
    assert craft.n_clusters_ == 2


def test_model_files_go_on_with_a_stream(table, tmp_path):
    X, _ = table
    craft = CRAFT(random_state=0).fit(X[:600])
    kplus.save(craft, tmp_path / "craft.kplus")
    other = kplus.load(tmp_path / "craft.kplus")
    np.testing.assert_array_equal(other.predict(X), craft.predict(X))
    assert other.describe().equals(craft.describe())
    for model in (craft, other):
        model.partial_fit(X[600:])
    np.testing.assert_array_equal(other.labels_, craft.labels_)
    np.testing.assert_array_equal(
        other.cluster_tree_.heights, craft.cluster_tree_.heights
    )


# -------------------------------------------------------------------- descriptions


def test_descriptions_name_a_category_that_each_cluster_fixes():
    """As the sex of penguins: no cluster is broad in it, so none is a background."""
    rng = np.random.default_rng(0)
    species, female = rng.integers(0, 2, 300), rng.random(300) < 0.5
    sizes = np.array([[40.0, 18.0, 190.0, 3700.0], [47.0, 15.0, 217.0, 5000.0]])
    X = sizes[species] * (1.0 + 0.06 * np.where(female, -1, 1))[:, None]
    X *= 1.0 + rng.normal(0, 0.015, X.shape)
    frame = pd.DataFrame(X, columns=["bill", "depth", "flipper", "mass"])
    frame["sex"] = np.where(female, "female", "male")
    craft = CRAFT(random_state=0).fit(frame)
    assert craft.n_clusters_ == 4
    lines = craft.describe()
    for k in range(4):
        assert "sex" in set(lines.loc[lines["cluster"] == k, "feature"])


def test_descriptions_name_the_highest_scores():
    """As a high income, also where another column is the narrower one."""
    rng = np.random.default_rng(0)
    n, rich = 1000, np.arange(1000) < 80
    frame = pd.DataFrame(
        {
            "income": np.where(
                rich, rng.normal(194e3, 25e3, n), rng.normal(48e3, 12e3, n)
            ),
            "age": np.where(rich, rng.normal(52, 3, n), rng.normal(40, 14, n)),
            "town": rng.choice(list("abc"), n),
        }
    )
    craft = CRAFT(random_state=0).fit(frame)
    lines = craft.describe()
    for k in range(craft.n_clusters_):
        best = frame.columns[np.argmax(craft.feature_scores_[k])]
        assert lines.loc[lines["cluster"] == k, "feature"].iloc[0] == best
    k = craft.labels_[0]
    mine = lines[lines["cluster"] == k]
    assert mine["feature"].iloc[0] == "income"
