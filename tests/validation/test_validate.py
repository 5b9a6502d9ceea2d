"""Indices against scikit-learn and brute force, and tables of every kind."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score

from every_estimator import ROWS, bits, mixed_rows
from kplus import CRAFT, BPMeans, DPMeans, DPMixture, validate
from kplus.validation.density import density_validity
from kplus.validation.space import Space

X, Y = make_blobs(120, centers=4, n_features=3, cluster_std=2.0, random_state=0)
FRAME, GROUPS = mixed_rows()


def brute_silhouette(X, labels):
    centers = [X[labels == k].mean(axis=0) for k in range(labels.max() + 1)]
    scores = []
    for row, label in zip(X, labels, strict=True):
        distances = [np.linalg.norm(row - center) for center in centers]
        a = distances.pop(label)
        scores.append((min(distances) - a) / max(a, min(distances)))
    return np.array(scores)


def test_against_brute_force_and_scikit_learn():
    found = validate(Y, X, scale=False)
    expected = brute_silhouette(X, Y)
    np.testing.assert_allclose(found.row_silhouette, expected)
    assert found.silhouette == pytest.approx(expected.mean())
    for k, mean in enumerate(found.cluster_silhouette):
        assert mean == pytest.approx(expected[k == Y].mean())
    assert found.davies_bouldin == pytest.approx(davies_bouldin_score(X, Y))
    assert found.calinski_harabasz == pytest.approx(calinski_harabasz_score(X, Y))


def test_scaled_is_what_standardised_columns_give():
    units = X * [1e6, 1.0, 1e-6]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    found, expected = validate(Y, units), validate(Y, Z, scale=False)
    np.testing.assert_allclose(found.row_silhouette, expected.row_silhouette)
    assert found.density == pytest.approx(expected.density)


def brute_dbcv(distances, labels, D):
    """Step by step as in the paper."""
    K, n = labels.max() + 1, len(labels)
    core = np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if labels[j] == labels[i] and j != i]
        core[i] = np.mean([distances[i, j] ** -float(D) for j in others]) ** (-1.0 / D)
    reach = np.maximum(distances, np.maximum(core[:, None], core))
    inner, longest = [], []
    for k in range(K):
        outside, inside, edges = list(np.flatnonzero(labels == k)), [], []
        members = outside.copy()
        inside.append(outside.pop(0))
        while outside:  # Prim; of equal edges the one to the lower number
            length, j = min((min(reach[i, j] for i in inside), j) for j in outside)
            i = next(i for i in inside if reach[i, j] == length)
            edges.append((length, i, j))
            inside.append(j)
            outside.remove(j)
        degree = {m: sum(m in edge[1:] for edge in edges) for m in members}
        inner.append([m for m in members if degree[m] > 1])
        longest.append(
            max(e[0] for e in edges if degree[e[1]] > 1 and degree[e[2]] > 1)
        )
    out = []
    for k in range(K):
        nearest = min(
            reach[i, j]
            for other in set(range(K)) - {k}
            for i in inner[k]
            for j in inner[other]
        )
        out.append((nearest - longest[k]) / max(nearest, longest[k]))
    return out


@pytest.mark.parametrize("seed", range(3))
def test_density_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(36, 2)) + 4.0 * (np.arange(36) % 3)[:, None]
    labels = np.arange(36) % 3
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    found = density_validity(distances, labels, 3, 2)
    np.testing.assert_allclose(found, brute_dbcv(distances, labels, 2))


def test_density_sees_what_centroids_do_not():
    rows, moon = make_moons(300, noise=0.05, random_state=0)
    cut = (rows[:, 0] > rows[:, 0].mean()).astype(int)
    true, wrong = validate(moon, rows), validate(cut, rows)
    assert true.density > 0.4 > 0.0 > wrong.density
    assert true.silhouette < wrong.silhouette
    assert str(true) == "The 2 clusters are well apart."


def test_many_columns_and_copies_of_rows_stay_finite():
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(20, 300)), 3, axis=0)
    found = validate(np.arange(60) // 30, rows)
    assert np.isfinite(found.density)
    assert np.isfinite(found.silhouette)


def test_one_cluster_singletons_and_noise():
    one = validate(np.zeros(120, int), X)
    assert np.isnan([one.silhouette, one.density, one.davies_bouldin]).all()
    assert str(one) == "One cluster: there is nothing to compare it with."
    single = np.where(np.arange(120) == 7, 1, 0)
    found = validate(single, X)
    assert found.row_silhouette[7] == 0.0
    assert np.isnan(found.cluster_density).all()
    noisy = np.where(np.arange(120) < 20, -1, Y)
    with_noise, without = (
        validate(noisy, X, scale=False),
        validate(Y[20:], X[20:], scale=False),
    )
    assert with_noise.n_noise == 20
    assert np.isnan(with_noise.row_silhouette[:20]).all()
    assert with_noise.silhouette == pytest.approx(without.silhouette)
    assert with_noise.davies_bouldin == pytest.approx(without.davies_bouldin)
    assert with_noise.density < without.density  # noise counts as 0
    nobody = validate(np.full(120, -1), X)
    assert np.isnan(nobody.silhouette)
    every = validate(np.arange(120), X)
    assert np.isnan(every.calinski_harabasz)


def test_constant_columns_and_huge_offsets():
    padded = np.column_stack([X + 1e9, np.full(120, 3.0)])
    found, expected = validate(Y, padded), validate(Y, X)
    assert found.silhouette == pytest.approx(expected.silhouette, abs=1e-6)
    same = validate(Y, np.full((120, 2), 1e9))
    assert same.silhouette == 0.0


def test_sparse_float32_lists_and_files(tmp_path):
    whole = np.rint(np.abs(X)).astype(np.float32)
    expected = bits(validate(Y, whole.astype(np.float64)))
    np.save(tmp_path / "x.npy", whole)
    for table in (whole, sp.csr_array(whole), whole.tolist(), tmp_path / "x.npy"):
        assert bits(validate(Y, table)) == expected


def test_categories_weigh_as_much_as_numbers():
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 4, "b": np.tile([0.0, 1.0], 6)})
    space = Space.of(frame)
    values = space.take(np.arange(12)).values
    assert values[:, 1:].var(axis=0).sum() == pytest.approx(1.0)
    assert values[:, 0].var() == pytest.approx(1.0)
    found = validate(GROUPS, FRAME)
    assert found.silhouette > 0.5
    assert found.density > 0.5


def test_gaps_are_left_out_of_distances():
    gaps = X.copy()
    gaps[::7, 0] = np.nan
    gaps[5] = np.nan
    space = Space.of(gaps, scale=False)
    points, centers = space.take(np.arange(120)), np.array([[1.0, 2.0, 3.0]])
    squares = space.squared_distances(points, centers)[:, 0]
    shifted = gaps - np.nanmean(gaps, axis=0) - centers
    there = ~np.isnan(gaps)
    with np.errstate(invalid="ignore"):
        expected = np.nansum(shifted**2, axis=1) * 3 / there.sum(axis=1)
    expected[5] = 0.0
    np.testing.assert_allclose(squares, expected)
    pairs = space.between(points)
    both = there[0] & there[1]
    away = np.sqrt(np.sum((gaps[0] - gaps[1])[both] ** 2) * 3 / both.sum())
    assert pairs[0, 1] == pytest.approx(away)
    assert np.isfinite(pairs).all()
    assert np.isfinite(validate(Y, gaps).silhouette)


def test_mixtures_say_how_sure_they_are():
    model = DPMixture("gaussian", n_clusters=4, n_init=1, random_state=0).fit(X)
    found = validate(model, X)
    shares = model.predict_proba(X)
    assert found.sureness.expected_error == pytest.approx(np.mean(1 - shares.max(1)))
    logs = np.log(np.where(shares > 0, shares, 1.0))
    entropy = -np.sum(shares * logs, axis=1).mean()
    assert found.sureness.entropy == pytest.approx(entropy, abs=1e-9)
    overlap = shares.T @ shares / shares.sum(axis=0)[:, None]
    np.testing.assert_allclose(found.sureness.overlap, overlap)
    np.testing.assert_allclose(overlap.sum(axis=1), 1.0)
    parts = model.predict_component_proba(X)
    inside = -np.sum(parts * np.log(np.where(parts > 0, parts, 1.0)))
    assert found.icl == pytest.approx(model.lower_bound_ - inside)
    assert validate(model, X[:50]).icl is None
    frame = found.summary()
    assert frame.columns.tolist()[-2:] == ["nearest", "overlap"]
    assert (frame["nearest"] != frame["cluster"]).all()


def test_held_out_scores():
    model = DPMixture("diag_gaussian", n_init=1, random_state=0).fit(X)
    found = validate(model, X, cv=3, random_state=0)
    assert found.held_out.shape == (3,)
    assert found.held_out.mean() < model.score(X)
    assert bits(found) == bits(validate(model, X, cv=3, random_state=0))
    rare = FRAME.assign(color=FRAME["color"].where(FRAME.index > 0, "only once"))
    craft = CRAFT(random_state=0).fit(rare)  # in some folds nobody has it
    assert np.isfinite(validate(craft, rare, cv=2, random_state=0).held_out).all()


def test_other_labels():
    words = np.array(["north", "south", "east", "west"])[Y]
    named, numbered = validate(words, X), validate(np.unique(words, False, True)[1], X)
    assert named.silhouette == numbered.silhouette
    years = validate(np.where(Y == 0, -1, 1990 + Y), X)
    assert years.n_noise == np.sum(Y == 0)
    assert len(years.sizes) == 3


@pytest.mark.parametrize(
    ("labels", "given", "message"),
    [
        (Y[:9], {}, "9 labels, but 120 rows"),
        (np.ones((120, 2)), {}, r"shape \(120, 2\)"),
        (np.where(Y == 0, np.nan, Y), {}, "Labels hold NaN"),
        (Y, {"cv": 3}, "score_samples"),
        (DPMeans().fit(X), {"cv": 1}, "cv must be an int of at least 2"),
        (DPMeans().fit(X), {"cv": 3}, "score_samples"),
    ],
)
def test_mistakes(labels, given, message):
    with pytest.raises(ValueError, match=message):
        validate(labels, X, **given)


def test_features_are_refused():
    with pytest.raises(TypeError, match="finds features"):
        validate(BPMeans(0.5, random_state=0).fit(ROWS), ROWS)
    with pytest.raises(ValueError, match="infinity"):
        validate(Y, np.where(X > 4, np.inf, X))


def test_words():
    assert "hardly apart" in str(validate(np.arange(120) % 2, X))
    assert repr(validate(Y, X)).count("\n") == 4
