"""IBPVariational: what users see."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import entr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kplus import IBPVariational
from kplus.datasets import make_binary_features

pytestmark = pytest.mark.filterwarnings("ignore:IBPVariational found no feature")
processes = pytest.mark.parametrize("process", ["finite", "infinite"])


# --------------------------------------------------------------------- recovery


def matched(found, truth):
    """Found columns in the order of the true ones."""
    cost = np.abs(found[:, :, None] - truth[:, None, :]).mean(axis=0)
    rows, columns = linear_sum_assignment(cost)
    return rows[np.argsort(columns)]


@pytest.fixture(scope="module")
def table():
    X, Z, A = make_binary_features(400, 30, 5, random_state=0)
    X.flags.writeable = False
    return X, Z, A


@processes
@pytest.mark.parametrize("base", [False, True])
def test_recovers_made_features(process, base):
    X, Z, A = make_binary_features(400, 30, 5, base=base, random_state=1)
    model = IBPVariational(10, process=process, random_state=0).fit(X)
    assert model.n_components_ == 5
    found = model.transform(X)
    order = matched(found, Z)
    assert np.mean(np.abs(found[:, order] - Z)) < 0.01
    assert np.max(np.abs(model.components_[order] - A)) < 0.3
    assert model.noise_scale_ == pytest.approx(0.5, rel=0.03)
    assert model.factor_scale_ == pytest.approx(np.sqrt(np.mean(A**2)), rel=0.05)
    np.testing.assert_allclose(model.feature_counts_[order], Z.sum(axis=0), atol=2)
    assert np.all(np.diff(model.feature_counts_) <= 0)
    shares = model.feature_counts_ / 400
    np.testing.assert_allclose(model.feature_probabilities_, shares, atol=0.02)
    # What it says of its own fit is what the rows say.
    assert model.score(X) == pytest.approx(
        -0.5 * np.log(2 * np.pi * 0.25) - 0.5, abs=0.02
    )


@processes
def test_the_number_need_not_be_given(process, table):
    X, Z, _ = table
    model = IBPVariational(process=process, random_state=0).fit(X)
    assert model.n_components_ == Z.shape[1]


@processes
@pytest.mark.parametrize("kind", ["scattered", "block"])
def test_missing_entries(process, kind):
    truth, Z, _ = make_binary_features(500, 40, 5, random_state=2)
    X = truth.copy()
    if kind == "scattered":
        X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
    else:
        X[250:, 10:18] = np.nan
    model = IBPVariational(8, process=process, random_state=0).fit(X)
    assert model.n_components_ == 5
    found = model.transform(X)
    assert np.mean(np.abs(found[:, matched(found, Z)] - Z)) < 0.01
    filled = model.impute(X)
    gaps = np.isnan(X)
    np.testing.assert_allclose(filled[~gaps], X[~gaps], rtol=1e-12)
    assert np.sqrt(np.mean((filled - truth)[gaps] ** 2)) < 0.56  # the noise is 0.5
    assert model.score(X, truth) > -0.5 * np.log(2 * np.pi * 0.25) - 0.6
    assert np.all(np.diff(model.lower_bound_history_) >= -1e-6)


@processes
def test_random_starts(process, table):
    """The bound tells which start is best; the search is hardly ever beaten."""
    X, _, _ = table
    model = IBPVariational(6, process=process, random_state=0, tol=1e-6)
    searched = clone(model).fit(X)
    one = clone(model).set_params(init="random").fit(X)
    several = clone(one).set_params(n_init=4).fit(X)
    assert several.lower_bound_ >= one.lower_bound_
    assert searched.lower_bound_ >= several.lower_bound_ - 1.0


# ---------------------------------------------------------------------- the fit


@processes
@pytest.mark.parametrize("init", ["auto", "random"])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_bound_never_falls(process, init, gaps, table):
    X = table[0].copy()
    if gaps:
        X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    model = IBPVariational(7, process=process, init=init, random_state=1, tol=1e-5)
    history = model.fit(X).lower_bound_history_
    assert len(history) == model.n_iter_
    assert history[-1] == model.lower_bound_
    assert np.all(np.diff(history) >= -1e-10 * np.abs(history[0]))


@processes
def test_given_values_stay(process, table):
    given = {"alpha": 2.0, "noise_scale": 0.6, "factor_scale": 1.5}
    model = IBPVariational(6, process=process, random_state=0, **given).fit(table[0])
    for name, value in given.items():
        assert getattr(model, name + "_") == pytest.approx(value, rel=1e-12)
    free = IBPVariational(6, process=process, random_state=0).fit(table[0])
    assert free.lower_bound_ > model.lower_bound_


@processes
def test_rows_of_the_fit_and_of_transform_agree(process, table):
    """The counts of the fit are those of `transform`, and equal rows are equal."""
    X = np.vstack([table[0], table[0][:50]])
    model = IBPVariational(6, process=process, random_state=0, tol=1e-9).fit(X)
    Z = model.transform(X)
    np.testing.assert_allclose(Z.sum(axis=0), model.feature_counts_, atol=1e-2)
    np.testing.assert_allclose(Z[400:], Z[:50], atol=1e-9)
    np.testing.assert_allclose(model.transform(X[7:9]), Z[7:9], atol=1e-9)
    np.testing.assert_array_equal(model.transform(X), Z)


@processes
def test_threads_and_batches(process):
    X, _, _ = make_binary_features(300, 12, 3, random_state=4)
    X[::7, 3] = np.nan
    model = IBPVariational(4, process=process, batch_size=32, random_state=0)
    one = clone(model).fit(X)
    two = clone(model).set_params(n_jobs=2).fit(X)
    assert two.lower_bound_ == one.lower_bound_
    np.testing.assert_array_equal(two.components_, one.components_)
    np.testing.assert_array_equal(two.transform(X), one.transform(X))
    whole = clone(model).set_params(batch_size=None).fit(X)
    assert whole.lower_bound_ == pytest.approx(one.lower_bound_, rel=1e-8)
    np.testing.assert_allclose(whole.components_, one.components_, atol=1e-5)


def test_more_rows_than_the_sample(tmp_path):
    """Out of core: the search sees a sample, the passes all rows of a file."""
    X, Z, _ = make_binary_features(7_000, 12, 3, random_state=5)
    np.save(tmp_path / "rows.npy", X.astype(np.float32))
    model = IBPVariational(5, random_state=0).fit(tmp_path / "rows.npy")
    assert model.n_components_ == 3
    counts = np.sort(Z.sum(axis=0))[::-1]
    np.testing.assert_allclose(model.feature_counts_, counts, rtol=0.02)
    assert model.lower_bound_ < 0


@processes
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((5, 3)),
        np.full((6, 2), 4.0),
        np.array([[1.0, 2.0]]),
        np.array([[1.0], [2.0]]),
        np.eye(4)[[0, 1, 2, 3, 0, 0]] * 1e-9,
        np.arange(12.0).reshape(4, 3) * 1e9,
        np.array([[1.0, np.nan], [np.nan, 2.0], [1.0, 2.0]]),
    ],
    ids=["zeros", "constant", "row", "column", "tiny", "large", "gaps"],
)
@pytest.mark.filterwarnings("ignore:IBPVariational did not converge")
def test_awkward_tables(process, X):
    model = IBPVariational(3, process=process, random_state=0, max_iter=200).fit(X)
    history = model.lower_bound_history_
    assert np.all(np.isfinite(history))
    assert np.all(np.diff(history) >= -1e-7 * (1.0 + np.abs(history[0])))
    assert np.all(np.isfinite(model.components_))
    Z = model.transform(X)
    assert Z.shape == (len(X), model.n_components_)
    assert np.all((Z >= 0.0) & (Z <= 1.0))


def test_nothing_to_find_is_said():
    X = np.random.default_rng(0).normal(size=(200, 5))
    with pytest.warns(UserWarning, match="found no feature"):
        model = IBPVariational(3, random_state=0).fit(X)
    assert model.transform(X).shape == (200, 0)
    assert model.impute(np.full((2, 5), np.nan)).tolist() == np.zeros((2, 5)).tolist()
    assert model.noise_scale_ == pytest.approx(1.0, rel=0.05)


def test_an_unfinished_fit_is_said(table):
    model = IBPVariational(9, init="random", max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model.fit(table[0])
    assert model.n_iter_ == 2


# -------------------------------------------------------------------- new rows


def test_rows_with_gaps_say_less(table):
    X, _, _ = table
    model = IBPVariational(6, random_state=0).fit(X)
    nothing = model.transform(np.full((1, 30), np.nan))[0]
    np.testing.assert_allclose(nothing, model.feature_probabilities_, atol=0.02)
    few = np.full((1, 30), np.nan)
    few[0, :2] = X[0, :2]
    sure, unsure = (entr(model.transform(rows)).sum() for rows in (X[:1], few))
    assert sure < unsure


def test_sample(table):
    model = IBPVariational(6, random_state=0).fit(table[0])
    X, Z = model.sample(2_000, random_state=1)
    assert X.shape == (2_000, 30)
    shares = model.feature_counts_ / 400
    np.testing.assert_allclose(Z.mean(axis=0), shares, atol=0.05)
    assert np.std(X - Z @ model.components_) == pytest.approx(0.5, rel=0.05)


@processes
def test_parts_that_do_not_fit_are_refused(process, table):
    model = IBPVariational(6, process=process, random_state=0).fit(table[0])
    state = model._to_state()
    wrong = {
        "mean": state["mean"][:, :3],
        "covs": state["covs"][:, :2],
        "tau": state["tau"][:2],
        "group": np.full(30, 7),
        "reported": np.full(model.n_components_, 99),
    }
    if process == "infinite":
        wrong["order"] = np.zeros(6, np.int64)
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=name):
            clone_of(model)._from_state({**state, name: value})


def clone_of(model):
    other = clone(model)
    vars(other).update(vars(model))
    return other


# ------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"max_components": 0}, "max_components"),
        ({"max_components": True}, "max_components"),
        ({"alpha": 0.0}, "alpha"),
        ({"noise_scale": -1.0}, "noise_scale"),
        ({"factor_scale": "auto"}, "factor_scale"),
        ({"process": "other"}, "process"),
        ({"init": "meibp"}, "init"),
    ],
)
def test_bad_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        IBPVariational(**params).fit(np.eye(4))


@pytest.mark.parametrize(("seed", "K"), [(0, 10), (1, 10), (2, 5)])
def test_noise_of_different_sizes_in_columns_makes_no_features(seed, K):
    rng = np.random.default_rng(seed)
    Z = rng.random((1_500, K)) < 0.3
    noise = rng.uniform(0.2, 1.0, 50) * rng.normal(size=(1_500, 50))
    X = Z @ rng.normal(size=(K, 50)) + noise
    assert IBPVariational(random_state=0, max_iter=50).fit(X).n_components_ == K


def test_as_many_features_as_columns_are_not_taken_for_noise():
    """Columns that have nothing in common, or everything, leave the limit alone."""
    rng = np.random.default_rng(0)
    Z = rng.random((400, 24)) < 0.4
    X = Z * rng.uniform(1.0, 9.0, 24) + 0.05 * rng.normal(size=(400, 24))
    assert IBPVariational(random_state=0, max_iter=50).fit(X).n_components_ > 20
