"""DPMixture: what a fit finds and tells, on tables of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import kplus
import mixture_reference
from kplus import DPMixture
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture import settings
from kplus.dp_mixture.families import NAMES
from kplus.dp_mixture.model import DPMixtureModel
from kplus.observations import DiagGaussian, Gaussian, Mixed, ZeroMeanGaussian

TRUTH = np.repeat(np.arange(4), 50)  # of the fixture `blobs`


def bits(*arrays):
    return [np.asarray(a).tobytes() for a in arrays]


def some_rows(name, n=120, seed=0):
    """Two groups of rows that suit the family."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)[:, None]
    if NAMES[name].values in ("bits", "categories"):
        return (rng.random((n, 8)) < np.where(z, 0.9, 0.1)).astype(float)
    if NAMES[name].values == "counts":
        return rng.poisson(np.where(z, [20.0, 1, 1, 9], [1.0, 20, 9, 1]))
    if name == "zero_mean_gaussian":
        return rng.normal(size=(n, 3)) * np.where(z, [9.0, 1, 1], [1.0, 1, 9])
    return rng.normal(size=(n, 3)) + 8.0 * z


def mixed_frame(n=200, seed=0, make=pd.DataFrame):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    return make(
        {
            "size": rng.normal(6.0 * z, 1.0),
            "color": np.where(rng.random(n) < 0.1 + 0.8 * z, "red", "blue").tolist(),
            "weight": rng.normal(-5.0 * z, 2.0),
        }
    ), z


# ------------------------------------------------------------------------ fits


def test_separate_groups_are_found(blobs):
    model = DPMixture(random_state=0).fit(blobs)
    assert model.n_components_ == model.n_clusters_ == 4
    assert adjusted_rand_score(TRUTH, model.labels_) == 1.0
    np.testing.assert_allclose(model.weights_, 0.25, atol=0.01)
    assert model.weights_.sum() == pytest.approx(1.0)
    for k in range(4):
        rows = blobs[model.labels_ == k]
        np.testing.assert_allclose(model.means_[k], rows.mean(axis=0), atol=0.1)
    assert model.covariances_.shape == (4, 3, 3)
    whiten = model.precisions_cholesky_
    np.testing.assert_allclose(
        whiten @ np.swapaxes(whiten, 1, 2), np.linalg.inv(model.covariances_), rtol=1e-8
    )
    assert model.converged_
    assert len(model.lower_bound_history_) == model.n_iter_
    assert model.lower_bound_ == model.lower_bound_history_[-1]
    assert model.concentration_ > 0.0  # learned
    given = DPMixture(concentration=1.0, random_state=0).fit(blobs)
    assert given.concentration_ == 1.0


@pytest.mark.parametrize("load", [load_iris, load_wine], ids=["iris", "wine"])
@pytest.mark.parametrize("name", ["gaussian", "diag_gaussian", "spherical_gaussian"])
def test_small_classic_tables(load, name):
    """Warnings are errors here: a fit of these converges in silence.

    One variance for all columns of wine, whose largest varies 300 times as much as the
    next, cuts that column into pieces, the more so the narrower the prior has become.
    """
    X = load().data
    model = DPMixture(name, random_state=0).fit(X)
    most = 30 if (name, len(X)) == ("spherical_gaussian", 178) else 15
    assert 2 <= model.n_components_ <= most
    fixed = getattr(kplus.observations, NAMES[name].cls)(learn=False)
    fixed = DPMixture(fixed, random_state=0).fit(X)
    assert 2 <= fixed.n_components_ <= 15
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("name", NAMES)
def test_every_family_from_fit_to_sample(name, tmp_path):
    X = some_rows(name)
    model = DPMixture(name, random_state=0).fit(X)
    assert model.n_components_ >= 2
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    proba = model.predict_component_proba(X)
    assert proba.shape == (len(X), model.n_components_)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(proba.argmax(axis=1), model.component_labels_)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    drawn, y = model.sample(50)
    assert drawn.shape == (50, X.shape[1])
    assert y.shape == (50,)
    assert np.all(np.isfinite(model.score_samples(drawn)))
    assert set(y) <= set(model.cluster_of_component_)


@pytest.mark.parametrize("name", ["gaussian", "diag_gaussian", "bernoulli"])
@pytest.mark.parametrize("concentration", [0.5, "infer"])
def test_the_bound_is_that_of_the_rows(name, concentration):
    """Eq. 8 row by row, for the shares that the fit ends with."""
    X = some_rows(name, n=80)
    model = DPMixture(
        name, concentration=concentration, n_active=None, tol=0.0, random_state=0
    ).fit(X)
    alpha = None if concentration == "infer" else concentration
    brute = mixture_reference.bound(
        DPMixtureModel(model.observations_, alpha),
        X,
        model.predict_component_proba(X),
        concentration=model.concentration_,
    )
    assert model.lower_bound_ == pytest.approx(brute, rel=1e-7)


def test_moves_can_be_left_out(blobs):
    fixed = DPMixture(moves=(), n_components=3, random_state=0).fit(blobs)
    assert fixed.n_components_ <= 3
    assert len(fixed.moves_) == 0
    born = DPMixture(moves=["birth"], random_state=0).fit(blobs)
    assert set(born.moves_["kind"]) == {"birth"}
    merged = DPMixture(moves=("merge",), n_components=9, random_state=0).fit(blobs)
    assert merged.n_components_ >= 4
    assert set(merged.moves_["kind"]) == {"merge"}


def test_the_table_of_moves(blobs):
    moves = DPMixture(random_state=0).fit(blobs).moves_
    assert list(moves.dtype.names) == [
        "pass", "kind", "target", "other", "accepted", "change",
    ]  # fmt: skip
    assert set(moves["kind"]) <= {"birth", "merge", "delete"}
    assert np.all((moves["other"] >= 0) == (moves["kind"] == "merge"))
    assert np.all(np.isfinite(moves["change"]))
    assert len(pd.DataFrame(moves)) == len(moves)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_components_than_allowed(blobs, most):
    assert DPMixture(max_components=most, random_state=0).fit(blobs).n_components_ <= (
        most
    )


def test_a_learned_concentration(blobs):
    model = DPMixture(concentration="infer", random_state=0).fit(blobs)
    assert model.n_components_ == 4
    assert 0.1 < model.concentration_ < 5.0


def test_several_starts_never_do_worse():
    X = load_iris().data
    one = DPMixture(random_state=0)
    bounds = [clone(one).set_params(n_init=n).fit(X).lower_bound_ for n in (2, 3)]
    assert bounds[0] <= bounds[1]


def test_the_sparse_and_the_dense_posterior_agree():
    X = some_rows("gaussian", 400)
    sparse = DPMixture(random_state=0).fit(X)
    dense = DPMixture(n_active=None, random_state=0).fit(X)
    assert sparse.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)


# ------------------------------------------------------------------ algorithms


def test_mo_3_one_batch_is_full_data_inference_bit_for_bit():
    X = some_rows("gaussian", 3000)
    full = DPMixture(algorithm="full", random_state=0).fit(X)
    memoized = DPMixture(batch_size=len(X), random_state=0).fit(X)
    assert bits(full.lower_bound_history_, full.labels_, full.means_) == bits(
        memoized.lower_bound_history_, memoized.labels_, memoized.means_
    )


@pytest.mark.parametrize("algorithm", ["memoized", "full", "stochastic"])
def test_threads_do_not_change_a_bit(algorithm):
    X = some_rows("gaussian", 6000)
    how = {"algorithm": algorithm, "n_components": 3, "random_state": 0, "tol": 1e-4}
    one, two = (DPMixture(**how, n_jobs=n).fit(X) for n in (1, 2))
    assert bits(one.lower_bound_history_, one.labels_, one.means_) == bits(
        two.lower_bound_history_, two.labels_, two.means_
    )
    assert bits(one.predict(X)) == bits(two.predict(X))


def test_stochastic_steps_come_near_the_memoized_bound(blobs):
    X = np.tile(blobs, (25, 1))
    how = {"n_components": 4, "moves": (), "random_state": 0}
    memoized = DPMixture(**how).fit(X)
    stochastic = DPMixture(**how, algorithm="stochastic", tol=1e-3).fit(X)
    assert stochastic.n_components_ == 4
    assert stochastic.lower_bound_ <= memoized.lower_bound_ + 1e-6 * len(X)
    assert len(stochastic.moves_) == 0


def test_the_steps_of_stochastic_inference_can_be_set():
    X = some_rows("gaussian", 500)
    how = {"algorithm": "stochastic", "n_components": 3, "tol": 0.0, "max_iter": 3}
    bounds = []
    for delay, decay in ((1.0, 0.5), (1e6, 0.5), (1.0, 1.0)):
        model = DPMixture(
            **how, learning_delay=delay, learning_decay=decay, random_state=0
        )
        with pytest.warns(ConvergenceWarning, match="max_iter=3"):
            bounds.append(model.fit(X).lower_bound_)
    assert len(set(bounds)) == 3


def test_batches_and_memory():
    X = some_rows("gaussian", 5000)
    base = DPMixture(random_state=0)
    spared = clone(base).set_params(memory_limit=1.0).fit(X)  # room for one batch
    full = clone(base).set_params(algorithm="full").fit(X)
    assert bits(spared.lower_bound_history_) == bits(full.lower_bound_history_)
    many = clone(base).set_params(batch_size=100).fit(X)
    assert many.lower_bound_ == pytest.approx(full.lower_bound_, rel=1e-3)


class OwnRows:
    """Blocks of somebody's own, which cannot be cut in another way."""

    n_features, block_rows = 3, 48

    def __init__(self, X):
        self.X, self.n_rows = X, len(X)

    def read(self, index):
        return self.X[48 * index : 48 * (index + 1)]


@pytest.mark.parametrize("name", ["gaussian", "mixed"])
def test_blocks_of_ones_own(blobs, name):
    """The fit chooses its blocks, but not those of tables that have their own."""
    rows = OwnRows(blobs)
    model = DPMixture(name, random_state=0).fit(rows)
    assert adjusted_rand_score(TRUTH, model.labels_) > 0.99
    np.testing.assert_array_equal(model.predict(rows), model.predict(blobs))
    np.testing.assert_array_equal(model.score_samples(rows), model.score_samples(blobs))
    model.partial_fit(rows)
    assert rows.block_rows == 48


def test_no_table_is_cut_in_place():
    source = ArrayBlocks(np.zeros((5000, 2)), 100)
    family = DPMixture(random_state=0).fit(np.eye(2)).observations_
    spec = settings.make_spec(DPMixture(), family, source)
    assert settings.split_blocks(source, spec.n_batches).block_rows == 500
    assert source.block_rows == 100


def test_a_fit_that_is_cut_short_says_so(blobs):
    with pytest.warns(
        ConvergenceWarning,
        match=r"did not converge in max_iter=2 passes; raise max_iter or tol\.",
    ):
        model = DPMixture(max_iter=2, random_state=0).fit(blobs)
    assert not model.converged_
    assert model.n_iter_ == 2
    np.testing.assert_array_equal(model.predict(blobs), model.labels_)


# ---------------------------------------------------------------------- tables


def test_float32_and_integers(blobs):
    single = DPMixture(random_state=0).fit(blobs.astype(np.float32))
    assert adjusted_rand_score(TRUTH, single.labels_) == 1.0
    assert single.means_.dtype == np.float64
    whole = DPMixture(random_state=0).fit(blobs.astype(np.int64))
    assert adjusted_rand_score(TRUTH, whole.labels_) == 1.0


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_frame_with_categories(make):
    frame, z = mixed_frame(make=make)
    model = DPMixture("mixed", random_state=0).fit(frame)
    assert adjusted_rand_score(z, model.labels_) > 0.9
    assert model.categories_ == (None, ("blue", "red"), None)
    assert list(model.feature_names_in_) == ["size", "color", "weight"]
    assert model.means_.shape == (model.n_components_, 2)
    assert model.probabilities_[0].shape == (model.n_components_, 2)
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    drawn, _ = model.sample(20)
    assert set(drawn[:, 1]) <= {0.0, 1.0}


def test_mixed_observations_of_chosen_columns():
    frame, _ = mixed_frame()
    frame["visits"] = np.random.default_rng(0).poisson(3.0, len(frame))
    model = DPMixture(Mixed(counts=["visits"]), random_state=0).fit(frame)
    assert model.rates_.shape == (model.n_components_, 1)
    assert list(model.count_columns_) == [3]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_categories_alone(make, tmp_path):
    frame, _ = mixed_frame(make=make)
    codes = np.random.default_rng(0).integers(0, 3, len(frame))
    table = make({"color": frame["color"], "code": codes})
    model = DPMixture("categorical", random_state=0).fit(table)
    assert model.categories_ == (("blue", "red"), (0, 1, 2))
    pl.DataFrame({"color": list(frame["color"]), "code": codes}).write_csv(
        tmp_path / "rows.csv"
    )
    again = DPMixture("categorical", random_state=0).fit(tmp_path / "rows.csv")
    assert again.categories_ == model.categories_
    assert bits(again.labels_) == bits(model.labels_)
    np.testing.assert_array_equal(again.predict(tmp_path / "rows.csv"), model.labels_)


def test_another_family_leaves_nothing_of_the_last(blobs):
    frame, _ = mixed_frame()
    model = DPMixture("mixed", random_state=0).fit(frame)
    model.set_params(observations="poisson").fit(np.abs(blobs).astype(int))
    assert not hasattr(model, "means_")
    assert not hasattr(model, "categories_")
    assert not hasattr(model, "feature_names_in_")
    assert model.rates_.shape == (model.n_components_, 3)


@pytest.mark.parametrize("name", ["diag_gaussian", "spherical_gaussian", "mixed"])
def test_missing_values_are_taken_where_they_can_be(blobs, name):
    X = blobs.copy()
    X[::7, 1] = np.nan
    X[3] = np.nan
    model = DPMixture(name, random_state=0).fit(X)
    assert adjusted_rand_score(TRUTH, model.labels_) > 0.85
    for found in (model.means_, model.score_samples(X), model.predict_proba(X)):
        assert np.all(np.isfinite(found))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


# --------------------------------------------------------------- unusual tables


@pytest.mark.parametrize("name", ["gaussian", "diag_gaussian", "spherical_gaussian"])
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((1, 1)),
        np.array([[3.0, -1.0, 7.0]]),
        np.zeros((20, 3)),
        np.full((20, 2), 1e6),
        np.repeat([[0.0, 1.0], [5.0, 5.0]], 30, axis=0),
        np.c_[np.arange(30.0), np.full(30, 4.0)],
        np.c_[np.arange(30.0), np.arange(30.0)],
        np.random.default_rng(0).normal(size=(5, 20)),
        np.random.default_rng(0).normal(size=(40, 3)) * [1e-150, 1.0, 1e150],
        np.random.default_rng(0).normal(size=(40, 2)) * 1e-150,
    ],
    ids=[
        "one_zero", "one_row", "zeros", "constant", "duplicates", "constant_column",
        "equal_columns", "wide", "scales", "tiny",
    ],
)  # fmt: skip
def test_nothing_comes_out_as_nan(name, X):
    model = DPMixture(name, random_state=0).fit(X)
    for found in (
        model.lower_bound_history_,
        model.weights_,
        model.means_,
        model.predict_proba(X),
        model.score_samples(X),
        model.sample(5)[0],
    ):
        assert np.all(np.isfinite(found))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("name", ["gaussian", "diag_gaussian"])
def test_a_huge_offset_changes_nothing(blobs, name):
    here = DPMixture(name, random_state=0).fit(blobs)
    there = DPMixture(name, random_state=0).fit(blobs + 2.0**30)
    assert adjusted_rand_score(here.labels_, there.labels_) == 1.0
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-5)
    found = there.means_[there.predict(blobs + 2.0**30)] - 2.0**30
    np.testing.assert_allclose(found, here.means_[here.labels_], atol=1e-5)


# --------------------------------------------------------------------- weights


@pytest.mark.parametrize("name", ["gaussian", "diag_gaussian"])
def test_weight_2_is_the_row_twice(name):
    """From the same start; births and seeds draw rows, which are other rows then."""
    X = some_rows(name, 90)
    start = DPMixture(
        name, n_components=3, moves=("merge",), warm_start=True, random_state=0
    ).fit(X)
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    weighted, repeated = clone(start), clone(start)
    for model in (weighted, repeated):
        model.fit(X)
    weighted.fit(X, sample_weight=weights)
    repeated.fit(np.repeat(X, weights, axis=0))
    assert weighted.n_components_ == repeated.n_components_
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-6)
    assert weighted.n_iter_ == repeated.n_iter_


def test_the_prior_is_that_of_the_weighted_rows(blobs):
    weights = np.where(np.arange(200) < 100, 1.0, 0.0)
    part = DPMixture(random_state=0).fit(blobs[:100])
    whole = DPMixture(random_state=0).fit(blobs, sample_weight=weights)
    np.testing.assert_allclose(whole.observations_.origin, part.observations_.origin)
    assert whole.n_components_ == part.n_components_ == 2
    assert whole.lower_bound_ == pytest.approx(part.lower_bound_, rel=1e-6)


# ----------------------------------------------------------------- warm starts


def test_a_warm_start_continues_where_the_last_fit_ended(blobs):
    model = DPMixture(warm_start=True, random_state=0).fit(blobs)
    first = model.lower_bound_
    model.set_params(moves=()).fit(blobs)
    assert model.n_iter_ <= 3
    assert model.lower_bound_ >= first - 1e-6 * abs(first)
    assert model.n_components_ == 4
    model.set_params(max_components=2).fit(blobs)
    assert model.n_components_ == 2


def test_a_warm_start_with_other_observations_begins_anew(blobs):
    model = DPMixture(warm_start=True, random_state=0).fit(blobs)
    model.set_params(observations="diag_gaussian").fit(blobs)
    fresh = DPMixture("diag_gaussian", random_state=0).fit(blobs)
    assert bits(model.means_) == bits(fresh.means_)


def test_a_warm_start_needs_the_same_columns(blobs):
    model = DPMixture(warm_start=True, random_state=0).fit(blobs)
    with pytest.raises(ValueError, match="2 features and the last fit had 3"):
        model.fit(blobs[:, :2])


# ------------------------------------------------------------------ wide priors


@pytest.mark.parametrize("kind", [Gaussian, ZeroMeanGaussian])
def test_a_prior_much_wider_than_the_components(blobs, kind):
    X = blobs - blobs.mean(axis=0)
    with pytest.warns(UserWarning, match="times what they turned out to be"):
        DPMixture(kind(covariance=1e6), moves=(), n_components=4).fit(X)
    # As wide as a component, nothing is said, and neither by default.
    DPMixture(kind(covariance=np.eye(3)), random_state=0).fit(X)
    DPMixture(kind(), random_state=0).fit(X)


# ----------------------------------------------------------------------- names


def test_public_names():
    assert kplus.DPMixture is DPMixture
    assert kplus.observations.DiagGaussian is DiagGaussian
    assert {"DPMixture", "observations"} <= set(dir(kplus))
