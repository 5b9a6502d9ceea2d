"""Sizes, trees, sureness, memberships: the numbers drawn against brute force."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from every_estimator import ROWS, every_model, fitted, mixed_rows
from kplus import CRAFT, DPMeans, DPMixture, KFeatures
from kplus.plots import (
    ClusterDisplay,
    MembershipDisplay,
    SizeDisplay,
    SurenessDisplay,
    TraceDisplay,
    TreeDisplay,
)


@pytest.fixture(scope="module")
def X():
    return make_blobs(300, centers=4, n_features=3, random_state=0)[0]


@pytest.fixture(scope="module")
def mixture(X):
    return DPMixture(noise=True, random_state=0).fit(X)


class TestEveryEstimator:
    @every_model
    def test_sizes_and_traces(self, model):
        model = fitted(model)
        display = SizeDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        some = SizeDisplay.from_estimator(model, ROWS[:20])
        if display.kind == "feature":
            expected = model.feature_counts_
            told = np.asarray(model.transform(ROWS[:20]).sum(axis=0)).ravel()
        else:
            expected = np.bincount(model.labels_[model.labels_ >= 0])
            labels = model.predict(ROWS[:20])
            told = np.bincount(labels[labels >= 0], minlength=len(expected))
        np.testing.assert_allclose(display.sizes, expected)
        np.testing.assert_allclose(some.sizes, told)
        assert (display.n_rows, some.n_rows) == (60, 20)
        TraceDisplay.from_estimator(model).figure_.canvas.draw()

    @every_model
    def test_sureness_or_membership(self, model):
        model = fitted(model)
        if hasattr(model, "predict"):
            display = SurenessDisplay.from_estimator(model, ROWS)
            np.testing.assert_array_equal(display.labels, model.predict(ROWS))
            display.figure_.canvas.draw()
        else:
            with pytest.raises(ValueError, match="has no clusters to which"):
                SurenessDisplay.from_estimator(model, ROWS)
        if isinstance(model, DPMeans):
            with pytest.raises(ValueError, match="DPMeans puts each row in one"):
                MembershipDisplay.from_estimator(model, ROWS)
            return
        display = MembershipDisplay.from_estimator(model, ROWS)
        display.figure_.canvas.draw()
        assert display.memberships.shape[0] == 60
        assert sorted(display.rows_) == list(range(60))


class TestSizes:
    @pytest.mark.parametrize("K", [1, 2, 12, 60])
    @pytest.mark.parametrize("noise", [0, 7])
    def test_draws_every_shape(self, K, noise):
        labels = np.concatenate([np.arange(5 * K) % K, np.full(noise, -1)])
        display = SizeDisplay.from_predictions(labels, n_clusters=K + 1)  # one is empty
        display.figure_.canvas.draw()
        bars = display.ax_.patches
        along = "get_width" if K <= 29 else "get_height"
        drawn = [getattr(bar, along)() for bar in bars]
        assert drawn == [5] * K + [0] + [noise] * (noise > 0)
        assert display.n_noise == noise

    def test_weights(self, X):
        model = DPMeans(n_clusters=3, random_state=0).fit(X, sample_weight=[0.5] * 300)
        assert SizeDisplay.from_estimator(model).n_rows == 150.0

    def test_mistakes(self):
        with pytest.raises(ValueError, match="There is no cluster whose size"):
            SizeDisplay.from_predictions([])
        with pytest.raises(ValueError, match="not fitted"):
            SizeDisplay.from_estimator(DPMeans())


class TestSureness:
    def test_probabilities_and_noise(self, X, mixture):
        display = SurenessDisplay.from_estimator(mixture, X)
        P, labels = mixture.predict_proba(X), mixture.predict(X)
        for value, row, k in zip(display.sureness, P, labels, strict=True):
            assert value == pytest.approx(row[k] if k >= 0 else 1.0 - row.sum())
        for k, mean in display.means_.items():
            assert mean == pytest.approx(display.sureness[labels == k].mean())

    def test_scores_of_craft(self):
        frame, _ = mixed_rows(150)
        model = CRAFT(random_state=0).fit(frame)
        display = SurenessDisplay.from_estimator(model, frame)
        expected = softmax(model.transform(frame), axis=1).max(axis=1)
        np.testing.assert_allclose(display.sureness, expected)
        # As the summary of the model has it.
        told = model.summary()["sureness"].to_numpy()
        np.testing.assert_allclose(list(display.means_.values()), told, rtol=1e-6)

    @pytest.mark.parametrize("cls", [DPMeans, KMeans])
    def test_distances(self, X, cls):
        model = cls(n_clusters=4, random_state=0).fit(X)
        display = SurenessDisplay.from_estimator(model, X)
        for x, value in zip(X[:50], display.sureness, strict=False):
            near = np.sort(np.linalg.norm(model.cluster_centers_ - x, axis=1))
            assert value == pytest.approx(1.0 - near[0] / near[1], rel=1e-5)
        assert display.ax_.get_xlabel().startswith("1 − distance")

    def test_others_pipelines_and_samples(self, X):
        pipe = make_pipeline(StandardScaler(), GaussianMixture(2, random_state=0))
        display = SurenessDisplay.from_estimator(pipe.fit(X), X, max_rows=100)
        assert len(display.sureness) == 100
        assert display.ax_.get_title().startswith("100 of 300 rows")

    def test_rows_of_files(self, X, mixture, tmp_path):
        np.save(tmp_path / "rows.npy", X)
        frame = pd.DataFrame(X, columns=list("abc"))
        frame.to_csv(tmp_path / "rows.csv", index=False)
        model = DPMixture(random_state=0).fit(frame)
        expected = SurenessDisplay.from_estimator(mixture, X, max_rows=50)
        display = SurenessDisplay.from_estimator(
            mixture, tmp_path / "rows.npy", max_rows=50
        )
        np.testing.assert_allclose(display.sureness, expected.sureness)
        for table in (frame, tmp_path / "rows.csv"):
            display = SurenessDisplay.from_estimator(model, table, max_rows=50)
            assert len(display.sureness) == 50

    @pytest.mark.parametrize("K", [1, 2, 12, 60])
    def test_blocks_are_sorted_and_do_not_overlap(self, K):
        rng = np.random.default_rng(0)
        labels = np.concatenate([np.arange(K), rng.integers(-1, K, 500)])
        values = rng.random(len(labels))
        values[-1] = np.nan
        display = SurenessDisplay.from_predictions(values, labels)
        display.figure_.canvas.draw()
        bottom = -np.inf
        for part in display.ax_.collections:
            (path,) = part.get_paths()
            assert path.vertices[:, 1].min() > bottom
            bottom = path.vertices[:, 1].max()
        assert len(display.ax_.collections) == K + 1
        assert list(display.means_) == [*range(K), -1]

    def test_equal_centres_and_one_cluster(self):
        twins = SimpleNamespace(
            cluster_centers_=np.zeros((2, 1)),
            predict=lambda X: np.zeros(len(X), int),
            transform=lambda X: np.zeros((len(X), 2)),
        )
        display = SurenessDisplay.from_estimator(twins, np.zeros((3, 1)))
        assert display.sureness.tolist() == [0.0] * 3
        one = DPMeans(n_clusters=1).fit(np.eye(3))
        assert (
            SurenessDisplay.from_estimator(one, np.eye(3)).sureness.tolist() == [1] * 3
        )

    def test_mistakes(self, X):
        with pytest.raises(ValueError, match="no row whose sureness"):
            SurenessDisplay.from_predictions([np.nan], [0])
        paper = CRAFT(variant="paper", n_clusters=2, max_iter=1, random_state=0)
        with pytest.warns(ConvergenceWarning):
            paper.fit(X)
        with pytest.raises(ValueError, match='variant="paper" has costs'):
            SurenessDisplay.from_estimator(paper, X)
        mute = SimpleNamespace(predict=lambda X: np.zeros(len(X), int))
        with pytest.raises(ValueError, match="neither probabilities nor distances"):
            SurenessDisplay.from_estimator(mute, X)


class TestMembership:
    def test_clusters_are_sorted(self, X, mixture):
        display = MembershipDisplay.from_estimator(mixture, X)
        P = mixture.predict_proba(X)
        P = np.column_stack([P, 1.0 - P.sum(axis=1)])
        (image,) = display.ax_.get_images()
        np.testing.assert_allclose(
            image.get_array(), np.clip(P[display.rows_], 0, 1), atol=1e-9
        )
        assert display.has_noise_
        order = display.rows_
        own, sure = P.argmax(axis=1)[order], P.max(axis=1)[order]
        assert (np.diff(own) >= 0).all()
        assert (np.diff(sure)[np.diff(own) == 0] <= 1e-12).all()
        ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
        assert ticks == [*map(str, range(P.shape[1] - 1)), "noise"]

    def test_features_are_sorted_like_words(self):
        model = KFeatures(3, random_state=0).fit(ROWS)
        display = MembershipDisplay.from_estimator(model, ROWS)
        Z = model.transform(ROWS)
        words = ["".join("01"[int(bit)] for bit in Z[n]) for n in display.rows_]
        assert words == sorted(words, reverse=True)
        assert display.kind == "feature"
        assert not display.has_noise_

    @pytest.mark.parametrize("K", [1, 2, 12, 60, 300])
    @pytest.mark.parametrize("kind", ["cluster", "feature"])
    def test_draws_every_shape(self, K, kind):
        P = np.random.default_rng(0).dirichlet(np.ones(K), 90)
        display = MembershipDisplay.from_predictions(P, kind=kind)
        display.figure_.canvas.draw()

    def test_mistakes(self):
        with pytest.raises(ValueError, match="kind must be"):
            MembershipDisplay.from_predictions(np.eye(2), kind="rows")
        with pytest.raises(ValueError, match="There is no row"):
            MembershipDisplay.from_predictions(np.empty((0, 3)))


def chain(heights, sizes=None):
    """A tree that joins one leaf after the other."""
    n = len(heights) + 1
    children = np.array([[t + 1, 0 if t == 0 else n + t - 1] for t in range(n - 1)])
    tree = SimpleNamespace(
        children=np.sort(children.reshape(-1, 2), axis=1),
        heights=np.array(heights, float),
        sizes=np.ones(n) if sizes is None else sizes,
        n_leaves=n,
        n_clusters=min(2, n),
        clearness=0.9,
    )

    def cut(K=None):
        K = tree.n_clusters if K is None else K
        return np.maximum(np.arange(n) - (n - K), 0)

    tree.cut = cut
    return tree


class TestTree:
    @pytest.mark.parametrize("K", [1, 2, 12, 60])
    def test_brackets_are_steps(self, K):
        heights = np.sort(np.random.default_rng(0).gamma(2.0, size=79))
        display = TreeDisplay(chain(heights), n_clusters=K).plot()
        display.figure_.canvas.draw()
        (lines,) = display.ax_.collections
        brackets = lines.get_segments()
        np.testing.assert_allclose([b[:, 1].max() for b in brackets], heights)
        assert sorted(display.leaves_) == list(range(80))
        # Brackets below the cut join one cluster, and are not grey.
        greys = [np.ptp(color[:3]) < 0.01 for color in lines.get_colors()]
        assert greys == [t >= 80 - K for t in range(79)]
        bands = [text.get_text() for text in display.ax_.texts]
        assert sorted(set(bands) - {"cut", "cluster"}, key=int) == list(
            map(str, range(K))
        )

    def test_clusters_of_a_mixture_lie_together(self):
        rng = np.random.default_rng(0)
        angle = rng.uniform(0, 2 * np.pi, 900)
        ring = 5 * np.column_stack([np.cos(angle), np.sin(angle)])
        X = np.concatenate([ring, np.zeros((300, 2))])
        X += rng.normal(0, 0.3, X.shape)
        model = DPMixture(random_state=0).fit(X)
        display = TreeDisplay.from_estimator(model)
        cluster = model.cluster_of_component_[display.leaves_]
        assert np.count_nonzero(np.diff(cluster)) == model.n_clusters_ - 1
        tree = model.cluster_tree_
        below = tree.n_leaves - model.n_clusters_
        cut = display.ax_.lines[0].get_ydata()[0]
        assert tree.heights[below - 1] <= cut <= tree.heights[below]
        assert f"clearness {tree.clearness:.2f}" in display.ax_.get_title()
        pipe = make_pipeline(StandardScaler(), DPMixture(random_state=0)).fit(X)
        assert TreeDisplay.from_estimator(pipe, n_clusters=3).n_clusters == 3

    def test_a_single_leaf_and_ties(self):
        TreeDisplay(chain([])).plot().figure_.canvas.draw()
        TreeDisplay(chain([2.0] * 5)).plot().figure_.canvas.draw()
        TreeDisplay(chain([0.0] * 5)).plot().figure_.canvas.draw()

    def test_what_keeps_no_tree(self, X):
        for cls in (DPMixture, CRAFT):
            model = cls(n_clusters=None, random_state=0).fit(X)
            with pytest.raises(ValueError, match="n_clusters=None keeps no tree"):
                TreeDisplay.from_estimator(model)
        with pytest.raises(ValueError, match='fit with cells="auto"'):
            TreeDisplay.from_estimator(DPMeans(n_clusters=2).fit(X))
        with pytest.raises(ValueError, match="KFeatures has no clusters"):
            TreeDisplay.from_estimator(KFeatures(2).fit(X))


class TestEllipses:
    def test_two_deviations_of_the_rows_of_each_component(self, X):
        model = DPMixture(random_state=0).fit(X)
        display = ClusterDisplay.from_estimator(model, X)
        components = model.predict_components(X)
        shown = {patch.get_gid(): patch for patch in display.ax_.patches}
        for c in np.unique(components):
            points = display.points[components == c]
            ellipse = shown.pop(f"component {c}")
            np.testing.assert_allclose(ellipse.center, points.mean(axis=0))
            # Every point of it is two deviations from the mean, by Mahalanobis.
            corners = ellipse.get_patch_transform().transform([[1, 0], [0, 1]])
            precision = np.linalg.inv(np.cov(points.T, bias=True))
            for off in corners - points.mean(axis=0):
                assert off @ precision @ off == pytest.approx(4.0)
        assert not shown

    def test_only_where_there_are_components(self, X):
        model = DPMixture(random_state=0).fit(X)
        none = ClusterDisplay.from_estimator(model, X, ellipses=False)
        round_ones = ClusterDisplay.from_estimator(DPMeans(n_clusters=2).fit(X), X)
        assert not none.ax_.patches
        assert not round_ones.ax_.patches
        pipe = make_pipeline(StandardScaler(), DPMixture(random_state=0)).fit(X)
        assert ClusterDisplay.from_estimator(pipe, X).ax_.patches

    def test_numbers_stand_in_their_clusters(self):
        angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
        ring = np.column_stack([np.cos(angle), np.sin(angle)])
        X, labels = np.concatenate([ring, ring / 99]), np.repeat([0, 1], 100)
        display = ClusterDisplay.from_predictions(X, labels)
        outer, inner = (text.get_position() for text in display.ax_.texts)
        assert np.hypot(*outer) == pytest.approx(1.0)
        np.testing.assert_allclose(inner, 0.0, atol=1e-9)
