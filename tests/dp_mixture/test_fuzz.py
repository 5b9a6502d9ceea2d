"""DPMixture on small tables of every kind: whatever the data, the answers hold."""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from kplus import DPMixture
from kplus.core.errors import DataError
from kplus.data.reading import ColumnsWarning
from kplus.dp_mixture.families import NAMES

MOVES = [
    (), ("merge",), ("delete",), ("merge", "delete"), ("birth",),
    ("birth", "merge", "delete"),
]  # fmt: skip


@contextmanager
def quiet():
    """Warnings are errors, but for fits cut short and constant columns left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ColumnsWarning)
        yield


@dataclass(frozen=True)
class Trial:
    """A table, weights (or None) and the settings of a fit."""

    X: Any
    weights: np.ndarray | None
    how: dict

    @property
    def n(self):
        return len(self.X)

    def weight(self):
        return np.ones(self.n) if self.weights is None else self.weights

    def at(self, rows):
        """Some of the rows; no more components than there are."""
        weights = None if self.weights is None else self.weights[rows]
        X = self.X[rows]
        start = min(self.how["n_components"], len(X))
        return Trial(X, weights, {**self.how, "n_components": start})

    def fitted(self):
        """Fit in silence, but for fits that are cut short."""
        model = DPMixture(max_iter=25, random_state=0, **self.how)
        with quiet():
            try:
                return model.fit(self.X, sample_weight=self.weights)
            except DataError as error:
                assume("has no value" not in str(error))  # as full covariances need
                raise


def values(name, rng, n, D):
    """Rows in up to three groups that suit the observations."""
    group = rng.integers(0, 3, n)[:, None]
    kind = NAMES[name].values
    if kind == "bits":
        return (rng.random((n, D)) < 0.2 + 0.3 * group).astype(float)
    if kind == "categories":
        return np.minimum(rng.integers(0, 4, (n, D)), group + 1.0)
    if kind == "counts":
        return rng.poisson(4.0 ** (group * np.arange(D) % 4)).astype(float)
    return rng.normal(size=(n, D)) + 9.0 * group * rng.integers(0, 2, D)


def spoiled(X, kind, rng, missing):
    """One of the ways in which tables are awkward."""
    n, D = X.shape
    if kind == "twice":
        X = X[rng.integers(0, n, n)]
    elif kind == "one row only":
        X = np.repeat(X[:1], n, axis=0)
    elif kind == "constant":
        X[:, rng.integers(D)] = X[0, 0]
    elif kind == "nothing":
        X[:] = 0.0
    elif kind == "copied":
        X[:, -1] = X[:, 0]
    if missing:
        X[rng.random(X.shape) < 0.3] = np.nan
    return X


def scaled(X, kind):
    """Units and offsets of numbers that nobody would choose."""
    factor, offset = {
        "huge": (1e12, 0.0), "tiny": (1e-12, 0.0), "far": (1.0, 1e6),
    }.get(kind, (1.0, 0.0))  # fmt: skip
    return X * factor + offset


def framed(X, rng):
    """A frame of numbers and a column of text, some of it missing."""
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["text"] = rng.choice(np.array(["a", "b", "c", None], object), len(X))
    frame.loc[0, "text"] = "a"
    return frame


SPOILS = ["plain", "twice", "one row only", "constant", "nothing", "copied"]
SCALES = ["huge", "tiny", "far"]


@st.composite
def tables(draw, name):
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n, D = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from([*SPOILS, *([] if NAMES[name].coded else SCALES)]))
    missing = NAMES[name].missing and draw(st.booleans())
    X = scaled(spoiled(values(name, rng, n, D), kind, rng, missing), kind)
    weights = {
        "none": None,
        "whole": rng.integers(0, 3, n).astype(float),
        "real": rng.uniform(0.0, 2.0, n) * rng.integers(0, 2, n),
    }[draw(st.sampled_from(["none", "whole", "real"]))]
    if weights is not None:
        weights[rng.integers(n)] += 1.0
    return (framed(X, rng) if name == "mixed" else X), weights


@st.composite
def trials(draw, algorithms=("memoized", "full", "stochastic")):
    name = draw(st.sampled_from(sorted(NAMES)))
    X, weights = draw(tables(name))
    n_components = draw(st.integers(1, min(len(X), 14)))
    how = {
        "observations": name,
        "n_components": n_components,
        "max_components": draw(st.sampled_from([None, n_components, 14])),
        "moves": draw(st.sampled_from(MOVES)),
        "algorithm": draw(st.sampled_from(algorithms)),
        "concentration": draw(st.sampled_from([1.0, 0.01, 50.0, "infer"])),
        "n_active": draw(st.sampled_from(["auto", None, 1])),
        "batch_size": draw(st.sampled_from([None, 1, 7])),
    }
    return Trial(X, weights, how)


def never_falls(history, tidied):
    """But for rounding; at the end components that hardly exist may be left out."""
    steps, slack = np.diff(history), 1e-10 * np.abs(history[1:]) + 1e-10
    if tidied:
        slack[-1:] += 1.0
    return np.all(steps >= -slack)


def check_bound(trial, model, history):
    assert np.all(np.isfinite(history))
    moves, algorithm = trial.how["moves"], trial.how["algorithm"]
    if "birth" not in moves and algorithm != "stochastic":
        assert never_falls(history, bool(moves))


def check_attributes(trial, model):
    K = model.n_components_
    assert 1 <= K <= (trial.how["max_components"] or K)
    assert model.weights_.shape == (K,)
    assert np.all(model.weights_ >= 0.0)
    assert model.weights_.sum() <= 1.0 + 1e-12
    assert np.all(np.diff(model.weights_) <= 1e-12)
    assert model.concentration_ > 0.0
    for name, value in vars(model).items():
        if name.endswith("_") and getattr(value, "dtype", None) == np.float64:
            assert np.all(np.isfinite(value)), name


def check_rows(trial, model):
    labels = model.predict(trial.X)
    np.testing.assert_array_equal(labels, model.labels_)
    assert labels.shape == (trial.n,)
    shares = model.predict_proba(trial.X)
    assert shares.shape == (trial.n, model.n_clusters_)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-9)
    proba = model.predict_component_proba(trial.X)
    assert proba.shape == (trial.n, model.n_components_)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)
    lead = proba[np.arange(trial.n), model.component_labels_]
    np.testing.assert_allclose(lead, proba.max(axis=1), rtol=1e-6)
    assert np.all(np.isfinite(model.score_samples(trial.X)))


def check_draws(model):
    drawn, y = model.sample(5)
    assert y.shape == (5,)
    assert np.all(np.isfinite(drawn))


def check_answers(trial, model):
    check_attributes(trial, model)
    check_rows(trial, model)
    check_draws(model)


@settings(max_examples=150)
@given(trials())
def test_fits(trial):
    model = trial.fitted()
    assert model.lower_bound_ == model.lower_bound_history_[-1]
    check_bound(trial, model, model.lower_bound_history_)
    check_answers(trial, model)


@settings(max_examples=60)
@given(trials(algorithms=("memoized", "full")))
def test_streams(trial):
    """Two batches one after the other; the first resolves the prior."""
    first, second = (
        trial.at(slice(None, trial.n // 2)),
        trial.at(slice(trial.n // 2, None)),
    )
    assume(first.weight().sum() > 0.0 and second.weight().sum() > 0.0)
    model = first.fitted()
    passes = model.n_iter_
    try:
        with quiet():
            model.partial_fit(second.X, sample_weight=second.weights)
    except DataError:  # a category that the first batch has not
        assert trial.how["observations"] in ("categorical", "mixed")
        return
    assert model._total.mass == pytest.approx(trial.weight().sum(), rel=1e-12)
    check_bound(trial, model, model.lower_bound_history_[passes:])
    check_answers(second, model)


# -------------------------------------------------- found by longer runs of the above


def test_a_batch_without_weight_moves_no_stochastic_step():
    model = DPMixture("bernoulli", algorithm="stochastic", batch_size=1)
    with quiet():
        model.fit([[1.0], [1.0]], sample_weight=[0.0, 1.0])
    assert np.isfinite(model.lower_bound_)


def test_shares_of_rows_far_from_all_components_sum_to_one():
    """Scores of -1e9, of which a logarithm takes too few digits."""
    X = [[-9.0, 0.0], [-9.5, 0.0], [9.0, 0.0], [9.5, 0.0]]
    model = DPMixture("spherical_gaussian", n_components=2, moves=(), random_state=0)
    proba = model.fit(X).predict_proba([[0.0, 10.0**p] for p in range(3, 9)])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)


def test_a_light_row_may_have_a_component_of_its_own():
    """Less than half a row, but all of it, and far from the others."""
    X = np.append(np.random.default_rng(0).normal(size=50), 60.0)[:, None]
    weights = np.append(np.ones(50), 0.4)
    model = DPMixture("diag_gaussian", n_components=2, moves=("merge",), random_state=0)
    history = model.fit(X, sample_weight=weights).lower_bound_history_
    assert never_falls(history, tidied=True)


def test_a_stream_whose_later_rows_are_shared_by_components():
    """What is left of a component without rows of this pass need not be sums of any."""
    x = [1.0, -1.1, 9.9, 8.8, 17.8, 10.1, -0.4, 7.7, 17.5, 16.8, 7.2, 17.9, 9.4]
    X = np.array(x)[:, None]
    for concentration in (1.0, 50.0):
        model = DPMixture(concentration=concentration, random_state=0).fit(X[:2])
        model.partial_fit(X[2:])
        assert np.isfinite(model.lower_bound_)
