"""Combinations of features, paths of numbers, and traces with moves."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from every_estimator import ROWS
from kplus import (
    CRAFT,
    MEIBP,
    BPMeans,
    DPMeans,
    DPMixture,
    IBPGibbs,
    IBPVariational,
    KFeatures,
)
from kplus.plots import (
    CombinationDisplay,
    NumberDisplay,
    PenaltyPathDisplay,
    TraceDisplay,
)


class TestCombinations:
    @pytest.mark.parametrize("K", [1, 2, 12, 60])
    def test_against_a_counter(self, K):
        rng = np.random.default_rng(0)
        Z = rng.random((500, K)) < rng.beta(0.5, 2.0, K)
        display = CombinationDisplay.from_predictions(Z, max_combinations=9)
        display.figure_.canvas.draw()
        counter = Counter(map(tuple, Z.tolist()))
        assert display.n_combinations_ == len(counter)
        expected = sorted(counter.values(), reverse=True)[:9]
        assert display.counts_.tolist() == expected
        for pattern, count in zip(
            display.combinations_.tolist(), display.counts_, strict=True
        ):
            assert counter[tuple(pattern)] == count
        bars = [bar.get_height() for bar in display.axes_[1].patches]
        assert bars == expected
        np.testing.assert_array_equal(
            display.features_, np.flatnonzero(display.combinations_.any(axis=0))
        )
        shares = [bar.get_width() for bar in display.axes_[2].patches]
        np.testing.assert_allclose(shares, Z[:, display.features_].mean(axis=0))
        dots = display.axes_[0].collections[1].get_offsets()
        assert len(dots) == display.combinations_.sum()

    @pytest.mark.parametrize(
        "model",
        [
            BPMeans(0.5),
            KFeatures(2, sparse_output=True),
            MEIBP(2),
            IBPVariational(3, max_iter=20),
            IBPGibbs(3, n_samples=5, burn_in=5),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_estimators(self, model):
        model.set_params(random_state=0).fit(ROWS)
        Z = model.transform(ROWS)
        Z = Z.toarray() if sp.issparse(Z) else Z
        display = CombinationDisplay.from_estimator(model, ROWS)
        np.testing.assert_array_equal(display.memberships, Z > 0.5)
        some = CombinationDisplay.from_estimator(model, ROWS, max_rows=30)
        assert len(some.memberships) == 30
        assert "30 of 60 rows" in some.ax_.get_title(loc="left")

    def test_no_features_and_mistakes(self):
        display = CombinationDisplay.from_predictions(np.zeros((4, 3)))
        display.figure_.canvas.draw()
        assert display.counts_.tolist() == [4]
        assert not len(display.features_)
        display = CombinationDisplay.from_predictions(np.empty((4, 0)))
        display.figure_.canvas.draw()
        with pytest.raises(ValueError, match="There is no row"):
            CombinationDisplay.from_predictions(np.empty((0, 3)))
        with pytest.raises(ValueError, match="DPMeans puts a row in one cluster"):
            CombinationDisplay.from_estimator(DPMeans(n_clusters=2).fit(ROWS), ROWS)


class TestNumbers:
    def test_features(self):
        model = KFeatures(penalty=0.5, random_state=0).fit(ROWS)
        display = NumberDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        line = display.ax_.lines[0]
        path = np.sort(model.path_, order="n_components")
        np.testing.assert_array_equal(line.get_xdata(), path["n_components"])
        np.testing.assert_allclose(line.get_ydata(), path["objective"])
        assert display.chosen == model.n_components_

    @pytest.mark.parametrize("cls", [CRAFT, DPMeans])
    def test_clusters(self, cls):
        X, _ = make_blobs(300, centers=4, random_state=0)
        settings = {"cells": None} if cls is DPMeans else {}
        pipe = make_pipeline(StandardScaler(), cls(random_state=0, **settings)).fit(X)
        display = NumberDisplay.from_estimator(pipe)
        display.figure_.canvas.draw()
        assert (np.diff(display.numbers) > 0).all()

    @pytest.mark.parametrize("chosen", [1, 60, 99])
    def test_draws_every_shape(self, chosen):
        display = NumberDisplay(np.arange(1, 61), 1.0 / np.arange(1, 61), chosen=chosen)
        display.plot().figure_.canvas.draw()
        (words,) = display.ax_.get_legend().get_texts()
        assert words.get_text() == f"chosen: {chosen} cluster{'s' * (chosen > 1)}"

    def test_mistakes(self):
        with pytest.raises(ValueError, match="This KFeatures keeps no path"):
            NumberDisplay.from_estimator(KFeatures(2).fit(ROWS))
        with pytest.raises(ValueError, match="DPMixture keeps no path of numbers"):
            NumberDisplay.from_estimator(DPMixture(random_state=0).fit(ROWS))
        with pytest.raises(ValueError, match="no number of groups"):
            NumberDisplay([], [], chosen=1).plot()


class TestPenaltyPath:
    def test_of_an_estimator(self):
        X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=2)
        model = DPMeans(cells=None, random_state=0).fit(X)
        display = PenaltyPathDisplay.from_estimator(model)
        assert display.path is model.path_
        with pytest.raises(ValueError, match='fit DPMeans with penalty="auto"'):
            PenaltyPathDisplay.from_estimator(DPMeans(n_clusters=2).fit(X))


class TestMoves:
    def test_marks_are_passes_with_accepted_moves(self):
        X, _ = make_blobs(2500, centers=5, random_state=0)
        model = DPMixture(random_state=0).fit(X)
        display = TraceDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        bound, numbers, moves = display.axes_
        assert numbers.lines[0].get_ydata()[-1] == model.n_components_
        np.testing.assert_array_equal(
            bound.lines[0].get_ydata(), model.lower_bound_history_
        )
        table = model.moves_
        for place, kind in enumerate(["birth", "merge", "delete"]):
            mine = table[table["kind"] == kind]
            accepted = np.unique(mine["pass"][mine["accepted"]])
            refused, taken = moves.collections[2 * place : 2 * place + 2]
            np.testing.assert_array_equal(taken.get_offsets()[:, 0], accepted)
            assert not set(refused.get_offsets()[:, 0]) & set(accepted)
            assert (taken.get_offsets()[:, 1] == place).all()
        counts = [int(sum(table["accepted"] & (table["kind"] == "birth")))]
        words = [tick.get_text() for tick in moves.get_yticklabels()]
        assert words[0] == f"birth ({counts[0]})"
        assert moves.get_xlim() == bound.get_xlim()
        assert moves.get_xlabel() == "pass"

    def test_a_first_value_far_off_does_not_flatten_the_rest(self):
        values = np.concatenate([[-1e9], np.linspace(-3, -1, 30)])
        display = TraceDisplay({"lower bound": values}).plot()
        low, _ = display.axes_[0].get_ylim()
        assert -20 < low < -3

    def test_mistakes(self):
        with pytest.raises(ValueError, match="There is no trace"):
            TraceDisplay({}).plot()
