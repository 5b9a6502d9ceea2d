"""Classes of tables with categories: costs against brute force, trees, numbers."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from sklearn.metrics import adjusted_rand_score

import kplus
from kplus import DPMixture
from kplus.base.job import answering
from kplus.dp_mixture.classes import (
    Unions,
    _sides,
    elbow,
    has_classes,
    same_categories,
    tree_of_classes,
)
from kplus.dp_mixture.clusters import _apart_in_numbers
from kplus.dp_mixture.families import by_name
from kplus.observations import Mixed
from kplus.tree.cluster_tree import ClusterTree


def drawn_classes(rng, n, probabilities, z=None):
    """Rows of classes; `probabilities` of shape (K, D, levels)."""
    K, D, _ = probabilities.shape
    z = rng.integers(0, K, n) if z is None else z
    steps = np.cumsum(probabilities, axis=2)[z][:, :, :-1]
    codes = (rng.random((n, D, 1)) >= steps).sum(axis=2)
    frame = pd.DataFrame(codes, columns=[f"c{d}" for d in range(D)])
    return frame.astype(str).astype("category"), z


@pytest.fixture(scope="module")
def mixed():
    """A fit of four groups of numbers, categories and counts."""
    rng = np.random.default_rng(0)
    frame, z = drawn_classes(rng, 400, rng.dirichlet(np.full(3, 0.5), (4, 4)))
    frame["x"] = rng.normal(4.0 * z)
    frame["n"] = rng.poisson(3.0 + 5.0 * (z % 2))
    observations = Mixed(counts=["n"])
    return DPMixture(observations, n_components=6, moves=(), random_state=0).fit(frame)


def worth(params, members):
    """log evidence of rows in these groups, and of the groups, up to a constant."""
    out = 0.0
    for group in members:
        N, S = params.N[group].sum(), params.S[group].sum(axis=0)
        out += params.family.evidence(np.array([N]), S[None])[0]
        out += gammaln(max(N, 1.0))
        out += np.log(params.concentration)
    return out


def test_costs_of_unions_are_what_the_evidence_loses(mixed):
    params = mixed._params
    unions = Unions.of(params, np.arange(params.K))
    members = [[k] for k in range(params.K)]
    while len(members) > 1:
        before = worth(params, members)
        for a, b in combinations(range(len(members)), 2):
            rest = [m for i, m in enumerate(members) if i not in (a, b)]
            lost = before - worth(params, [*rest, members[a] + members[b]])
            np.testing.assert_allclose(unions.costs[a, b], lost, atol=1e-8)
            np.testing.assert_allclose(unions.costs[b, a], lost, atol=1e-8)
        a, b, cost = unions.cheapest()
        assert a < b
        assert cost == unions.costs.min()
        unions.join(a, b)
        members[a] += members.pop(b)


def test_a_tree_goes_on_from_what_is_joined(mixed):
    params = mixed._params
    plain = tree_of_classes(params)
    assert plain.consistent()
    assert np.all(plain.heights > 0.0)
    assert np.all(np.diff(plain.heights) >= 0.0)
    for n_clusters in (2, 4):
        joined = kplus.dp_mixture.classes.ClusterTree(
            plain.children, plain.heights, plain.sizes, n_clusters, 1.0
        )
        tree = tree_of_classes(params, joined)
        assert tree.consistent()
        n_before = params.K - n_clusters
        assert np.all(tree.heights[:n_before] == 0.0)
        assert np.all(tree.heights[n_before:] > 0.0)
        np.testing.assert_array_equal(tree.cut(n_clusters), joined.cut())
        np.testing.assert_array_equal(tree.children, plain.children)
    np.testing.assert_allclose(plain.sizes, params.N)


def test_no_class_spans_a_valley_of_numbers(mixed):
    params = mixed._params
    plain = tree_of_classes(params)
    own = plain.cut(2)
    swapped = np.argsort(own, kind="stable")  # the first of each group trade places
    first, second = swapped[0], np.flatnonzero(own == 1)[0]
    wanted = own.copy()
    wanted[[first, second]] = own[[second, first]]
    apart = tree_that_cuts(wanted, params.N)
    tree = tree_of_classes(params, None, apart)
    assert tree.consistent()
    np.testing.assert_array_equal(tree.cut(2), apart.cut())
    assert tree.n_clusters >= 2
    few = np.where(wanted == 1, 1e-3, 1.0)  # too few rows to decide
    np.testing.assert_array_equal(_sides(apart.cut(), wanted, few), [0, -1])


def tree_that_cuts(cluster, sizes):
    """A tree whose two clusters are these."""
    names, steps = {}, []
    for k, c in enumerate(cluster):
        if c in names:
            steps.append(sorted((names[c], k)))
            names[c] = len(cluster) + len(steps) - 1
        else:
            names[c] = k
    steps.append(sorted(names.values()))
    heights = np.arange(1.0, len(cluster))
    return ClusterTree(np.array(steps), heights, np.array(sizes, float), 2, 0.9)


def test_categories_do_not_hide_groups_of_numbers():
    """Three species, two of them alike in their categories."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [150, 70, 120])
    X = np.array([[39.0, 18, 190], [49, 18, 195], [47, 15, 217]])[y]
    frame = pd.DataFrame(X + rng.normal(size=X.shape) * [2.5, 1.1, 6.5])
    frame.columns = ["length", "depth", "flipper"]
    island = np.where(y == 2, "B", rng.choice(["T", "D"], len(y)))
    frame["island"], frame["sex"] = island, rng.choice(["male", "female"], len(y))
    model = DPMixture(random_state=0).fit(frame)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, model.labels_) > 0.85


@pytest.mark.parametrize(
    "numbers", ["bernoulli", "transformed", "spiked", "student_t", "factor_gaussian"]
)
def test_numbers_of_every_kind_beside_categories(numbers):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.lognormal(size=(200, 3))).add_prefix("x")
    if numbers == "bernoulli":
        frame = (frame > 1.0).astype(float)
    frame.iloc[::3, 0] = 0.0
    frame["color"] = rng.choice(["red", "blue"], 200)
    observations = Mixed(numbers=by_name(numbers))
    model = DPMixture(observations, n_components=3, moves=(), random_state=0).fit(frame)
    assert 1 <= model.n_clusters_ <= 3
    np.testing.assert_array_equal(model.predict(frame), model.labels_)


def test_steps_of_rounded_numbers_are_no_valleys():
    """A flag of 0 and 1 beside categories that have nothing to do with it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=600), "flag": rng.integers(0, 2, 600)})
    frame["color"] = rng.choice(["red", "blue", "green"], 600)
    model = DPMixture(Mixed(), n_components=4, moves=(), random_state=0).fit(frame)
    rows, mixture = model._rows_and_model(frame)
    tree = _apart_in_numbers(
        answering(model, rows), mixture, model._params, np.zeros(6)
    )
    assert tree.n_clusters == 1
    one = DPMixture(Mixed(), n_components=1, moves=(), random_state=0).fit(frame)
    rows, mixture = one._rows_and_model(frame)
    job = answering(one, rows)
    assert _apart_in_numbers(job, mixture, one._params, np.zeros(0)) is None


@pytest.mark.parametrize(
    ("costs", "number"),
    [
        ([], 1),
        ([-0.1, -0.2], 1),  # all unions raise the evidence
        ([0.5], 2),
        ([-0.1, 0.5], 2),
        ([-0.1, 0.2, -0.3], 1),  # a dear one that a later one makes up for
        ([0.1, 0.12, 3.0], 2),
        ([0.1, 1.5, 3.0], 3),
        ([0.001, 0.002, 0.005, 0.9], 2),  # how small a small cost is does not matter
        ([0.3, 0.4, 0.5], 4),
    ],
)
def test_the_number_is_where_costs_rise_most(costs, number):
    found, clearness = elbow(np.array(costs, dtype=float))
    assert found == number
    assert 0.0 <= clearness <= 1.0


def test_clearness_compares_the_two_steepest_rises():
    assert elbow(np.array([0.02, 0.02, 2.0]))[1] == pytest.approx(1 - 1 / 100)
    assert elbow(np.array([0.2, 0.2, 2.0]))[1] == pytest.approx(0.0)


def test_which_families_have_classes(mixed):
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    zeros = rng.integers(0, 2, (60, 3))
    assert has_classes(mixed.observations_)
    assert has_classes(DPMixture("bernoulli").fit(zeros).observations_)
    assert has_classes(DPMixture("categorical").fit(zeros).observations_)
    assert not has_classes(DPMixture("poisson").fit(zeros).observations_)
    assert not has_classes(DPMixture("mixed").fit(numbers).observations_)


def test_pairs_of_the_same_categories(mixed):
    params = mixed._params
    family, at = params.family, params.family.groups.index("category")
    part, S = family.parts[at], family.split(params.S)[at]
    pairs = np.array(list(combinations(range(params.K), 2)))
    same = same_categories(params, pairs)
    for (a, b), told in zip(pairs, same, strict=True):
        alone = part.evidence(params.N, S)
        N, both = params.N[a] + params.N[b], S[a] + S[b]
        gain = part.evidence(np.array([N]), both[None])[0] - alone[a] - alone[b]
        assert told == (gain >= -3.0)
    assert not same.all()
    categories, _ = drawn_classes(np.random.default_rng(1), 90, np.full((1, 3, 2), 0.5))
    only = DPMixture("mixed", n_components=2, moves=(), random_state=0).fit(categories)
    assert not same_categories(only._params, np.array([[0, 1]])).any()


@pytest.mark.parametrize("K", [2, 5, 9])
def test_drawn_classes_are_the_clusters(K):
    rng = np.random.default_rng(K)
    frame, z = drawn_classes(rng, 1500, rng.dirichlet(np.full(4, 0.3), (K, 12)))
    model = DPMixture("mixed", random_state=0).fit(frame)
    assert model.n_clusters_ == K
    assert adjusted_rand_score(z, model.labels_) > 0.95


def test_classes_that_differ_in_little_are_one_cluster():
    """Two classes that differ in 12 columns, each of two kinds that differ in 2."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 4, 2000)
    high = np.where(np.arange(14) < 12, (z // 2)[:, None], (z % 2)[:, None])
    ones = rng.random((2000, 14)) < np.where(high, 0.95, 0.05)
    model = DPMixture("bernoulli", random_state=0).fit(ones)
    assert model.n_components_ == 4
    assert adjusted_rand_score(z, model.component_labels_) > 0.7
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(z // 2, model.labels_) > 0.99


@pytest.mark.parametrize("n_clusters", ["auto", 2])
def test_shapes_of_numbers_stay_whole_beside_categories(n_clusters):
    """A ring and a disc; one column of categories says nothing, one a little."""
    rng = np.random.default_rng(0)
    z, angle = np.repeat([0, 1], [1200, 400]), rng.uniform(0, 2 * np.pi, 1600)
    circle = 5 * np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where((z == 0)[:, None], circle, 0.0) + rng.normal(0, 0.3, (1600, 2))
    frame = pd.DataFrame(X, columns=["x", "y"])
    frame["any"] = pd.Categorical(rng.choice(list("abc"), 1600))
    frame["some"] = pd.Categorical(np.where(rng.random(1600) < 0.5 + 0.3 * z, "u", "v"))
    model = DPMixture("mixed", n_clusters=n_clusters, random_state=0).fit(frame)
    assert model.n_components_ > 5
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(z, model.labels_) > 0.99


def test_fewer_classes_are_fitted_not_joined():
    rng = np.random.default_rng(3)
    frame, _ = drawn_classes(rng, 600, rng.dirichlet(np.full(3, 0.5), (6, 10)))
    auto = DPMixture("mixed", random_state=0).fit(frame)
    assert auto.n_components_ >= 6
    for n_clusters in (2, 4):
        model = DPMixture("mixed", n_clusters=n_clusters, random_state=0).fit(frame)
        assert model.n_clusters_ == model.n_components_ == n_clusters
        assert len(np.unique(model.labels_)) == n_clusters
    one = DPMixture("mixed", n_clusters=1, random_state=0).fit(frame)
    assert one.n_clusters_ == 1
    assert one.n_components_ == auto.n_components_
    many = DPMixture("mixed", n_clusters=11, random_state=0).fit(frame)
    assert many.n_clusters_ == many.n_components_ == 11
