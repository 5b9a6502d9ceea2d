"""Every estimator in the ways it can work: for tests of what holds for all of them."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

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

QUICK = {"n_samples": 10, "burn_in": 10}
# Of each class its default first; the others go other ways through the code.
MODELS = [
    DPMeans(),
    DPMeans(n_clusters=2),
    DPMeans(penalty=1.0),
    DPMixture(),
    DPMixture("diag_gaussian", max_components=4, n_init=1),
    DPMixture(algorithm="full", n_init=1),
    DPMixture(noise=True, n_init=1),
    BPMeans(),
    BPMeans(0.5, max_components=4),
    BPMeans(0.5, max_components=4, collapsed=True),
    KFeatures(),
    KFeatures(2, sparse_output=True),
    KFeatures(penalty=0.5, assignment="exact", max_components=5),
    CRAFT(),
    CRAFT(n_clusters=2, feature_fraction=0.5),
    CRAFT(numeric="quantile"),
    MEIBP(),
    MEIBP(2, negative="noise", init="random"),
    MEIBP(prior="gaussian"),
    MEIBP(maximizer="double_greedy", negative="shift"),
    IBPVariational(tol=1e-5),
    IBPVariational(3, process="infinite", tol=1e-5),
    IBPVariational(3, init="random", n_init=2, max_iter=30, alpha=1.0, noise_scale=1.0),
    IBPGibbs(**QUICK),
    IBPGibbs(3, sampler="collapsed", new_features="metropolis", **QUICK),
    IBPGibbs(sampler="uncollapsed", alpha=1.0, noise_scale=0.5, **QUICK),
    IBPGibbs(sampler="uncollapsed", prior="nonnegative", **QUICK),
]
CLASSES = list(dict.fromkeys(map(type, MODELS)))
DEFAULTS = [next(model for model in MODELS if type(model) is cls) for cls in CLASSES]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)
every_default = pytest.mark.parametrize(
    "model", DEFAULTS, ids=lambda model: type(model).__name__
)


class Words(NamedTuple):
    """How a class reports its passes, and where it keeps the numbers."""

    groups: str
    measure: str
    history: str
    number: str | None = None  # attribute; None where the last pass is not the answer


WORDS = {
    DPMeans: Words("clusters", "objective", "objective_history_", "n_clusters_"),
    DPMixture: Words(
        "clusters", "lower bound", "lower_bound_history_", "n_components_"
    ),
    BPMeans: Words("features", "objective", "objective_history_", "n_components_"),
    KFeatures: Words("features", "objective", "objective_history_", "n_components_"),
    CRAFT: Words("clusters", "objective", "objective_history_", "n_clusters_"),
    MEIBP: Words("features", "lower bound", "lower_bound_history_", "n_components_"),
    IBPVariational: Words("features at most", "lower bound", "lower_bound_history_"),
    IBPGibbs: Words("features", "log joint", "log_joint_history_"),
}


def feature_rows() -> np.ndarray:
    """Three features in five columns, 60 rows; all positive, in eight clusters."""
    rng = np.random.default_rng(0)
    A = np.array([[5.0, 5, 0, 0, 0], [0, 0, 4, 0, 4], [0, 3, 0, 3, 0]])
    Z = rng.random((60, 3)) < (0.6, 0.45, 0.3)
    X = Z @ A + rng.uniform(0.0, 0.3, size=(60, 5))
    X.flags.writeable = False
    return X


ROWS = feature_rows()


def mixed_rows(n: int = 160) -> tuple[pd.DataFrame, np.ndarray]:
    """Three groups in a frame of numbers and categories, with gaps; and the groups."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 3, n)
    age = rng.normal(30.0 + 15.0 * z, 3.0)
    age[rng.random(n) < 0.1] = np.nan
    color = np.array(["red", "green", "blue"])[z]
    return pd.DataFrame({"age": age, "color": color, "noise": rng.normal(size=n)}), z


def seeded(model):
    return clone(model).set_params(random_state=0)


@cache
def _fitted(number):
    return seeded(MODELS[number]).fit(ROWS)


def fitted(model):
    """One of `MODELS`, fitted to `ROWS`: many tests share it, none may change it."""
    return _fitted(next(i for i, other in enumerate(MODELS) if other is model))


def dense(value):
    return value.toarray() if sp.issparse(value) else np.asarray(value)


def bits(value):
    """What a value is made of, to compare by every bit."""
    if isinstance(value, tuple | list):
        return [bits(part) for part in value]
    if hasattr(value, "__dataclass_fields__"):
        value = {name: getattr(value, name) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {name: bits(part) for name, part in value.items()}
    value = dense(value)
    if value.dtype == object:
        return value.tolist()
    return value.dtype, value.shape, value.tobytes()


ROW_BY_ROW = (
    "predict",
    "predict_proba",
    "transform",
    "score",
    "score_samples",
    "impute",
)


def answers(model, X):
    """All that a fitted model says of rows, and what it draws and makes anew."""
    said = {name: getattr(model, name)(X) for name in offered(model, ROW_BY_ROW)}
    if "impute" in said:  # of the kind of X
        said["impute"] = dense(said["impute"]).astype(object)
    if hasattr(model, "inverse_transform"):
        said["inverse_transform"] = model.inverse_transform(said["transform"])
    if hasattr(model, "sample"):
        said["sample"] = model.sample(5)
    if hasattr(model, "describe"):
        said["describe"] = model.describe().to_csv()
    return said


def offered(model, names):
    return [name for name in names if hasattr(model, name)]


def assert_same_answers(one, other, X, same_rows=None):
    """Both say the same of X, or the other of the same rows in another form."""
    said = answers(one, X)
    again = answers(other, X if same_rows is None else same_rows)
    if hasattr(one, "feature_names_in_") != hasattr(other, "feature_names_in_"):
        del said["describe"]  # which calls columns by their names
    for name in said:
        assert bits(said[name]) == bits(again[name]), name


def assert_same_attributes(one, other):
    """The fitted attributes of users, bit for bit; private parts by their names.

    What fits took, `fit_report_`, may differ.
    """
    assert vars(one).keys() == vars(other).keys()
    assert bits(one.get_params()) == bits(other.get_params())
    for name, value in vars(one).items():
        if name.endswith("_") and name[0] != "_" and name != "fit_report_":
            assert bits(value) == bits(getattr(other, name)), name
