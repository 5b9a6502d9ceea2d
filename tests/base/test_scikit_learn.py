"""Every estimator as scikit-learn expects it to be, none of its checks excused."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import kplus
from every_estimator import (
    CLASSES,
    DEFAULTS,
    QUICK,
    ROW_BY_ROW,
    ROWS,
    answers,
    assert_same_answers,
    assert_same_attributes,
    bits,
    every_default,
    every_model,
    fitted,
    offered,
    seeded,
)
from kplus import CRAFT, MEIBP, BPMeans, DPMeans, DPMixture, IBPGibbs, KFeatures
from kplus.observations import DiagGaussian

# The data of scikit-learn's checks are often noise, in which nothing pays, or small
# integers; and one of the models has few passes.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\w+ found no feature"),
    pytest.mark.filterwarnings("ignore:More than half of the rows have the same"),
    pytest.mark.filterwarnings("ignore:IBPVariational did not converge"),
]
# Settings whose fits or answers go another way than those of the default.
OTHERS = [
    DPMeans(penalty=1.0),  # no search for a penalty
    DPMixture("diag_gaussian", max_components=4),  # column by column, with gaps
    KFeatures(2, sparse_output=True),  # a number is given; answers are sparse
    CRAFT(n_clusters=2),  # a number is given
    MEIBP(prior="gaussian"),  # takes negative values
    IBPGibbs(sampler="uncollapsed", prior="nonnegative", **QUICK),  # refuses them
]
TRANSFORMERS = [model for model in DEFAULTS if hasattr(model, "transform")]

# These two take whatever has predict_proba for a classifier of four classes;
# `test_sources.py` looks at the same.
CANNOT_BE = dict.fromkeys(
    ["check_estimator_sparse_array", "check_estimator_sparse_matrix"],
    "the check needs the tags of a classifier",
)


def test_no_estimator_is_left_out():
    public = [getattr(kplus, name) for name in kplus.__all__]
    classes = [
        thing
        for thing in public
        if isinstance(thing, type) and issubclass(thing, BaseEstimator)
    ]
    assert set(classes) == set(CLASSES)


@parametrize_with_checks(
    [*DEFAULTS, *OTHERS],
    expected_failed_checks=lambda estimator: (
        CANNOT_BE if isinstance(estimator, DPMixture) else {}
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


EVERYWHERE = [
    checks.check_dataframe_column_names_consistency,
    checks.check_param_validation,
    checks.check_n_features_in_after_fitting,
]
OUTPUT = [
    checks.check_set_output_transform,
    checks.check_set_output_transform_pandas,
    checks.check_set_output_transform_polars,
    checks.check_global_output_transform_pandas,
    checks.check_global_set_output_transform_polars,
    checks.check_transformer_get_feature_names_out,
    checks.check_transformer_get_feature_names_out_pandas,
]
OUTSIDE = [(model, check) for model in DEFAULTS for check in EVERYWHERE]
# One of those that share a class which names the columns.
OUTSIDE += [
    (model, check)
    for model in (DPMeans(), KFeatures(), CRAFT(), MEIBP())
    for check in OUTPUT
]


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize(
    ("model", "check"),
    OUTSIDE,
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_checks_outside_the_list(model, check):
    check(type(model).__name__, clone(model))


# -------------------------------------------------------------------- parameters


@every_default
def test_parameters(model):
    """Constraints cover them all, and only one may come without its name."""
    cls = type(model)
    assert set(cls._parameter_constraints) == set(cls().get_params())
    with pytest.raises(TypeError, match="positional"):
        cls(3, 4)


@every_default
def test_clone_and_params(model):
    again = clone(fitted(model))
    assert again.get_params() == seeded(model).get_params()
    assert repr(again) == repr(seeded(model))
    assert not [name for name in vars(again) if name.endswith("_")]


def works(model, X):
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* features in 5 columns")
            seeded(model).fit(X)
    except ValueError:
        return False
    return True


@every_model
def test_tags_tell_the_truth(model):
    tags, few = get_tags(model), ROWS[:20]
    expected = not isinstance(model, DPMeans)
    gaps = np.where(np.eye(20, 5, -7) > 0, np.nan, few)
    assert works(model, gaps) == tags.input_tags.allow_nan == expected
    prior = getattr(model, "prior", None)
    expected = prior == "nonnegative" and model.negative == "error"
    assert works(model, -few) != tags.input_tags.positive_only == expected
    words = pd.DataFrame(few).assign(word=["red", "green"] * 10).rename(columns=str)
    expected = isinstance(model, CRAFT) or vars(model).get("observations") == "auto"
    assert works(model, words) == tags.input_tags.categorical == expected
    assert works(model, sp.csr_array(few)) == tags.input_tags.sparse
    assert (tags.transformer_tags is not None) == hasattr(model, "transform")
    expected = "clusterer" if hasattr(model, "predict") else None
    assert tags.estimator_type == expected


def test_tags_of_mixtures_follow_the_observations():
    for observations, nan, categories, positive in (
        ("auto", True, True, False),
        ("gaussian", True, False, False),
        ("diag_gaussian", True, False, False),
        (DiagGaussian(), True, False, False),
        ("mixed", True, True, False),
        ("categorical", True, True, True),
        ("multinomial", False, False, True),
    ):
        tags = get_tags(DPMixture(observations)).input_tags
        assert tags.allow_nan is nan
        assert tags.categorical is categories
        assert tags.positive_only is positive


def test_latent_features_take_the_same_parameters():
    """Only the first differs, and with it the meaning of a bare number."""
    assert BPMeans().get_params() == KFeatures().get_params()
    assert BPMeans(3.0).penalty == 3.0
    assert KFeatures(3).n_components == 3
    assert CRAFT(0.3).feature_fraction == 0.3


# ------------------------------------------------------------------- composition


def learn(model, X):
    """Let a fitted model see rows: as more of a stream, or anew."""
    return model.partial_fit(X) if hasattr(model, "partial_fit") else model.fit(X)


@every_model
def test_pickle_keeps_everything(model):
    again = pickle.loads(pickle.dumps(fitted(model)))
    assert_same_attributes(fitted(model), again)
    assert_same_answers(fitted(model), again, ROWS)
    other = pickle.loads(pickle.dumps(fitted(model)))
    assert_same_answers(learn(again, ROWS[:20]), learn(other, ROWS[:20]), ROWS)


@every_default
def test_no_rows_are_kept(model):
    """A model that is passed on must not give its data away."""
    X = np.vstack([ROWS] * 3)
    X += np.random.default_rng(0).uniform(0.0, 0.01, X.shape)
    kept = pickle.dumps(seeded(model).fit(X))
    assert not [n for n in range(len(X)) if X[n, :2].tobytes() in kept]
    assert not [n for n in range(len(X)) if X[n : n + 2, 0].tobytes() in kept]


@every_default
def test_a_generator_continues(model):
    """Samples of a model with a seed are the same ones, else they are others."""
    if hasattr(model, "sample"):
        again = clone(model).set_params(random_state=np.random.RandomState(0)).fit(ROWS)
        assert not np.array_equal(again.sample(9)[0], again.sample(9)[0])


@every_default
def test_unfitted(model):
    calls = offered(model, (*ROW_BY_ROW, "inverse_transform"))
    for name in calls:
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(clone(model), name)(ROWS)
    for name in offered(model, ("describe", "get_feature_names_out", "sample")):
        with pytest.raises(NotFittedError):
            getattr(clone(model), name)()


@every_default
@pytest.mark.filterwarnings("ignore:MEIBP did not converge")  # 5 features in 5 columns
def test_fit_leaves_data_and_parameters_alone(model):
    X, weights = ROWS.copy(), np.linspace(0.5, 1.5, len(ROWS))
    if get_tags(model).input_tags.allow_nan:
        X[3, 2] = np.nan
    before = X.copy()
    weighted = {"sample_weight": weights} if hasattr(model, "partial_fit") else {}
    estimator = clone(model)
    params = estimator.get_params()
    estimator.fit(X, **weighted)
    answers(estimator, X)
    if weighted:
        estimator.partial_fit(X, **weighted)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(weights, np.linspace(0.5, 1.5, len(ROWS)))
    assert estimator.get_params() == params


@every_model
def test_a_failed_fit_leaves_the_last_one(model):
    estimator = seeded(model)
    with pytest.raises(ValueError, match="inf"):
        estimator.fit(np.full((9, 5), np.inf))
    for name in offered(model, ROW_BY_ROW):
        with pytest.raises(NotFittedError):
            getattr(estimator, name)(ROWS)
    estimator = pickle.loads(pickle.dumps(fitted(model)))
    with pytest.raises(ValueError, match="inf"):
        estimator.fit(np.full((9, 5), np.inf))
    assert_same_attributes(estimator, fitted(model))
    assert_same_answers(estimator, fitted(model), ROWS)


@every_model
def test_fit_and_ask_at_once(model):
    """The seed decides all, whichever way a fit is asked for."""
    for name in offered(model, ("predict", "transform")):
        again = seeded(model)
        said = getattr(again, f"fit_{name}")(ROWS)
        assert bits(said) == bits(getattr(fitted(model), name)(ROWS))
        assert_same_attributes(again, fitted(model))
    if hasattr(model, "predict"):
        assert bits(fitted(model).labels_) == bits(fitted(model).predict(ROWS))
        assert fitted(model).labels_.dtype == np.int32


@every_default
def test_inside_a_pipeline(model):
    pipe = make_pipeline(MinMaxScaler(), seeded(model)).fit(ROWS)
    scaled = MinMaxScaler().fit_transform(ROWS)
    alone = seeded(model).fit(scaled)
    for name in offered(model, ("predict", "transform", "score")):
        assert bits(getattr(pipe, name)(ROWS)) == bits(getattr(alone, name)(scaled))
    assert pipe[-1].n_features_in_ == 5
    if hasattr(model, "inverse_transform"):
        back = pipe.inverse_transform(pipe.transform(ROWS))
        assert back.shape == ROWS.shape
    if hasattr(model, "transform"):
        names = pipe.get_feature_names_out().tolist()
        assert names == alone.get_feature_names_out().tolist()


# ------------------------------------------------------------------------ frames


@pytest.mark.parametrize("model", TRANSFORMERS, ids=repr)
def test_output_as_frames(model):
    frame = pd.DataFrame(ROWS, columns=list("abcde"), index=np.arange(60) * 3)
    again = seeded(model).fit(frame)
    plain = again.transform(frame)
    names = [f"{type(model).__name__.lower()}{i}" for i in range(plain.shape[1])]
    assert again.get_feature_names_out().tolist() == names
    as_pandas = again.set_output(transform="pandas").transform(frame)
    assert isinstance(as_pandas, pd.DataFrame)
    assert as_pandas.columns.tolist() == names
    assert as_pandas.index.equals(frame.index)
    np.testing.assert_array_equal(as_pandas.to_numpy(), plain)
    # What is not the output of transform does not change.
    assert again.score(frame) == fitted(model).score(ROWS)
    if hasattr(model, "impute"):
        kind = type(frame) if isinstance(model, CRAFT) else np.ndarray
        assert isinstance(again.impute(frame), kind)
    as_polars = again.set_output(transform="polars").transform(frame)
    assert isinstance(as_polars, pl.DataFrame)
    assert as_polars.columns == names
    np.testing.assert_array_equal(as_polars.to_numpy(), plain)
    if hasattr(model, "inverse_transform"):
        np.testing.assert_array_equal(
            again.inverse_transform(as_polars), again.inverse_transform(plain)
        )


def test_frames_cannot_be_sparse():
    model = KFeatures(2, sparse_output=True, random_state=0)
    with pytest.raises(ValueError, match="sparse"):
        model.set_output(transform="pandas").fit_transform(ROWS)


@every_default
def test_names_of_columns_are_noted(model):
    again = seeded(model).fit(pd.DataFrame(ROWS, columns=list("abcde")))
    assert again.feature_names_in_.tolist() == list("abcde")
    assert not hasattr(again.fit(ROWS), "feature_names_in_")
