"""Whole fits with learned priors: ascent, bits, checkpoints, files, streams."""

import dataclasses
from functools import partial

import numpy as np
import pandas as pd
import pytest

import crashes
import kplus
from kplus import DPMixture
from kplus.dp_mixture.families import NAMES
from kplus.dp_mixture.families.family import Columns
from kplus.observations import (
    DiagGaussian,
    Gaussian,
    Mixed,
    SphericalGaussian,
    Spiked,
    Transformed,
)


def groups(n=300, seed=0, K=5, D=3):
    """Numbers in groups that overlap a little."""
    rng = np.random.default_rng(seed)
    centers, z = rng.normal(0.0, 4.0, (K, D)), rng.integers(0, K, n)
    return centers[z] + rng.normal(size=(n, D)) * rng.gamma(4.0, 0.25, (K, D))[z]


def rows_of(name, n=300, seed=0):
    """Rows that suit a family, of several groups."""
    kind = NAMES[name].values
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 4, n)
    if kind in ("bits", "categories"):
        chances = rng.beta(0.7, 0.7, (4, 6))
        return (rng.random((n, 6)) < chances[z]).astype(float)
    if kind == "counts":
        return rng.poisson(rng.gamma(1.0, 6.0, (4, 5))[z]).astype(float)
    if name == "mixed":
        return pd.DataFrame(
            {
                "size": groups(n, seed)[:, 0],
                "color": np.array(list("abcd"))[z],
                "weight": groups(n, seed)[:, 1],
            }
        )
    return groups(n, seed)


def same_family(one, other):
    """Whether two families have the same bits in every field."""
    assert type(one) is type(other)
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "parts":
            for part, twin in zip(a, b, strict=True):
                same_family(part, twin)
        elif field.name == "inner":
            same_family(a, b)
        elif field.name == "where":
            for part, twin in zip(a, b, strict=True):
                np.testing.assert_array_equal(part, twin)
        else:
            np.testing.assert_array_equal(a, b, err_msg=field.name)


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


# ------------------------------------------------------------------------- ascent


WAYS = {
    "memoized": {"batch_size": 40, "n_active": None},
    "full": {"algorithm": "full", "n_active": None},
    "sparse": {"batch_size": 40, "n_active": 1},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_the_bound_never_falls_where_nothing_moves(name, way):
    X = rows_of(name)
    model = DPMixture(
        name, n_components=10, moves=(), n_init=1, max_iter=60, random_state=0,
        **WAYS[way],
    ).fit(X)  # fmt: skip
    history = model.lower_bound_history_
    slack = 1e-10 * np.abs(history[1:])
    if way == "sparse":  # the last pass compares rows with all components once more
        history = history[:-1]
        slack = slack[:-1]
    assert len(history) > 2
    assert np.all(np.diff(history) >= -slack)


def likelihood(name):
    return getattr(kplus.observations, NAMES[name].cls)(learn=False)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore")
def test_a_learned_prior_raises_the_bound(name, seed):
    """Beyond that of the same fit with the prior that it begins with."""
    X = rows_of(name, seed=seed)
    settings = {"n_components": 4, "moves": (), "n_init": 1, "random_state": 0}
    if name == "mixed":
        fixed = Mixed(likelihood("diag_gaussian"), likelihood("categorical"))
    elif name == "transformed":
        fixed = Transformed(likelihood("gaussian"))
    elif name == "spiked":
        fixed = Spiked(likelihood("gaussian"))
    else:
        fixed = likelihood(name)
    before = DPMixture(fixed, **settings).fit(X)
    after = DPMixture(name, **settings).fit(X)
    # the hyperprior is part of the bound; a prior that is given has none
    assert after.lower_bound_ - after.observations_.log_hyperprior > before.lower_bound_


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", [Gaussian, DiagGaussian, SphericalGaussian])
def test_stochastic_fits_learn_the_prior_of_memoized_ones(kind, seed):
    """Their bound, hyperprior included, is above that of the prior they begin with."""
    X = groups(3_000, seed, K=15, D=6)
    settings = {"n_components": 15, "n_init": 1, "batch_size": 300, "random_state": 0}
    learned, fixed = (
        DPMixture(kind(learn=learn), algorithm="stochastic", **settings).fit(X)
        for learn in (True, False)
    )
    first = np.sum(fixed.observations_.scatter)
    assert np.sum(learned.observations_.scatter) != pytest.approx(first, rel=0.1)
    assert learned.lower_bound_ > fixed.lower_bound_
    memoized = DPMixture(kind(), moves=(), **settings).fit(X)
    assert learned.lower_bound_ == pytest.approx(memoized.lower_bound_, rel=1e-3)


def test_what_was_learned_is_in_the_attributes():
    model = DPMixture(random_state=0).fit(groups())
    family = model.observations_
    assert set(family.learns) == {"covariance", "dof", "mean", "mean_strength"}
    columns = Columns(("a", "b", "c"), (None,) * 3)
    start = Gaussian().resolve(groups(), None, columns)
    assert np.any(family.scatter != start.scatter)
    fixed = DPMixture(Gaussian(learn=False), random_state=0).fit(groups())
    np.testing.assert_array_equal(fixed.observations_.scatter, start.scatter)
    assert fixed.observations_.learns == ()


def test_given_settings_are_those_of_the_fit():
    given = DiagGaussian(mean=1.0, dof=7.0)
    family = DPMixture(given, random_state=0).fit(groups()).observations_
    assert family.dof == 7.0
    np.testing.assert_allclose(family.scaling.inverse_transform(family.mean), 1.0)
    assert family.learns == ("variance", "mean_strength")


def test_one_variance_for_all_columns_is_not_cut_into_rows():
    """Columns on other scales: a component for each row must not make up for that."""
    X = groups() * [1.0, 10.0, 100.0]
    model = DPMixture(SphericalGaussian(), random_state=0, n_init=1).fit(X)
    assert model.n_components_ < 40
    assert np.size(model.observations_.mean_strength) == 1


# --------------------------------------------------------------------------- bits


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_threads_learn_the_same_bits(name, way):
    X = rows_of(name)
    one, other = (
        DPMixture(
            name, n_components=6, n_init=1, max_iter=15, random_state=0, n_jobs=n_jobs,
            **WAYS[way],
        ).fit(X)
        for n_jobs in (1, 2)
    )  # fmt: skip
    np.testing.assert_array_equal(one.lower_bound_history_, other.lower_bound_history_)
    same_family(one.observations_, other.observations_)


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_crashed_learns_on(name, tmp_path, monkeypatch):
    X = rows_of(name)
    model = DPMixture(name, batch_size=64, n_init=1, max_iter=12, random_state=0)
    expected = DPMixture(**model.get_params()).fit(X)
    partial(crashes.crash_after, patch=monkeypatch)(3)
    with pytest.raises(crashes.Crash):
        model.fit(X, checkpoint=tmp_path)
    monkeypatch.undo()
    again = DPMixture.resume(tmp_path, X)
    same_family(again.observations_, expected.observations_)
    np.testing.assert_array_equal(
        again.lower_bound_history_, expected.lower_bound_history_
    )
    np.testing.assert_array_equal(again.labels_, expected.labels_)


@pytest.mark.filterwarnings("ignore")
def test_model_files_keep_what_was_learned(name, tmp_path):
    X = rows_of(name)
    model = DPMixture(name, n_init=1, max_iter=12, random_state=0).fit(X)
    kplus.save(model, tmp_path / "model.npz")
    again = kplus.load(tmp_path / "model.npz")
    same_family(again.observations_, model.observations_)
    assert again._params.family is again.observations_
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    one, other = (m.partial_fit(X[:50]).observations_ for m in (model, again))
    same_family(one, other)


@pytest.mark.filterwarnings("ignore")
def test_a_warm_start_goes_on_from_what_was_learned():
    X = groups()
    whole = DPMixture("diag_gaussian", n_init=1, random_state=0).fit(X)
    model = DPMixture("diag_gaussian", n_init=1, random_state=0, warm_start=True)
    model.set_params(max_iter=3).fit(X)
    model.set_params(max_iter=300).fit(X)
    assert model.lower_bound_ > whole.lower_bound_ - 1.0
