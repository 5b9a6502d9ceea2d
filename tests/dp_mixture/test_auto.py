"""What ``observations="auto"`` takes a table for, and that it changes nothing else."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import kplus
from kplus import DPMixture
from kplus.core.job import Sample
from kplus.dp_mixture import auto
from kplus.dp_mixture.families import name_of


def rows_of(n, D, seed=0, correlation=0.0):
    """Two groups of normal columns with variances of their own."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    scales = rng.uniform(0.3, 3.0, size=(2, D))
    X = rng.normal(size=(n, D)) * np.sqrt(1.0 - correlation)
    X += rng.normal(size=(n, 1)) * np.sqrt(correlation)
    return X * scales[z] + 6.0 * z[:, None]


NARROW, INDEPENDENT, CORRELATED, WIDE = (
    rows_of(150, 3),
    rows_of(300, 30),
    rows_of(300, 30, correlation=0.95),
    rows_of(120, 150),
)


def frame_of(n=200, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "size": rng.normal(6.0 * z, 1.0),
            "color": np.where(rng.random(n) < 0.1 + 0.8 * z, "red", "blue"),
            "weight": rng.normal(-5.0 * z, 2.0),
            "new": rng.random(n) < 0.5,
        }
    )


MIXED = frame_of()
TIED = MIXED.assign(weight=MIXED["size"] + np.random.default_rng(1).normal(size=200))
BITS = (np.random.default_rng(0).random((60, 4)) < 0.4).astype(float)
COUNTS = sp.csr_array(np.random.default_rng(0).poisson(0.7, size=(80, 20)))

CHOICES = {
    "few columns": (NARROW, "gaussian"),
    "many rows": (rows_of(2500, 18), "gaussian"),
    "wide, independent": (INDEPENDENT, "diag_gaussian"),
    "too wide, with gaps": (np.where(WIDE > 11.0, np.nan, WIDE), "factor_gaussian"),
    "wide, correlated": (CORRELATED, "factor_gaussian"),
    "too wide": (WIDE, "factor_gaussian"),
    "categories": (MIXED[["color", "new"]], "categorical"),
    "bits": (BITS, "bernoulli"),
    "bits in booleans": (BITS > 0.5, "categorical"),
    "sparse bits": (sp.csr_array(BITS), "bernoulli"),
    "sparse counts": (COUNTS, "multinomial|negative_binomial"),
    "sparse numbers": (sp.csr_array(COUNTS * 0.5), "(factor_|diag_|)gaussian"),
    "whole numbers": (COUNTS.toarray()[:, :5], "gaussian"),
    "one number": (MIXED[["size", "color"]], "mixed, numbers gaussian"),
    "mixed": (TIED, "mixed, numbers gaussian"),
    "polars": (pl.from_pandas(TIED), "mixed, numbers gaussian"),
    "independent": (MIXED, "mixed, numbers (gaussian|diag_gaussian)"),
    "bits among categories": (
        MIXED[["color"]].assign(a=BITS[:, 0].repeat(4)[:200]),
        "mixed, numbers bernoulli",
    ),
}


@pytest.mark.parametrize(("X", "name"), CHOICES.values(), ids=CHOICES.keys())
def test_what_a_table_is_taken_for(X, name):
    model = DPMixture(random_state=0).fit(X)
    assert re.match(f"({name}): ", model.choice_)
    assert "\n" not in model.choice_
    assert name_of(model.observations_) == re.split("[,:]", model.choice_)[0]


@pytest.mark.parametrize("X", [NARROW, CORRELATED, INDEPENDENT], ids=repr)
def test_a_choice_is_the_same_as_its_name(X):
    """The choice takes no random numbers of the fit."""
    model = DPMixture(random_state=3).fit(X)
    same = DPMixture(name_of(model.observations_), random_state=3).fit(X)
    assert model.lower_bound_ == same.lower_bound_
    np.testing.assert_array_equal(model.labels_, same.labels_)
    assert not hasattr(same, "choice_")


def test_the_highest_bound_is_chosen_and_told():
    choice = DPMixture(random_state=0).fit(CORRELATED).choice_
    told = dict(re.findall(r"(\w+) (-?[\d.]+)[,)]", choice))
    assert set(told) == {"gaussian", "factor_gaussian", "diag_gaussian"}
    assert float(told["factor_gaussian"]) == max(map(float, told.values()))
    assert "300 rows" in choice


def heavy_rows(n, D, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    scale = np.sqrt(rng.chisquare(2.5, size=(n, 1)) / 2.5)
    return rng.normal(size=(n, D)) / scale + 15.0 * z[:, None], z


def fitted_names(monkeypatch, X, **settings):
    """Of the families that are fitted to some rows before the choice."""
    names, fit = [], auto.search.fit_sample
    monkeypatch.setattr(
        auto.search,
        "fit_sample",
        lambda job, spec, sample: (
            names.append(name_of(spec.model.family)) or fit(job, spec, sample)
        ),
    )
    return names, DPMixture(random_state=0, **settings).fit(X)


def test_few_columns_are_fitted_once_if_their_tails_are_light(monkeypatch):
    X = np.random.default_rng(0).normal(size=(240, 3))
    names, model = fitted_names(monkeypatch, X, n_init=1)
    assert names == ["gaussian"]
    assert model.choice_ == "gaussian: full covariances, 26.7 rows for each number" + (
        " of a component"
    )


def test_of_few_rows_nobody_can_tell_a_tail(monkeypatch):
    names, model = fitted_names(monkeypatch, NARROW)
    assert names == []
    assert model.choice_ == "gaussian: full covariances, 16.7 rows for each number" + (
        " of a component"
    )


@pytest.mark.parametrize("share", [0.0, 0.1], ids=["whole", "gaps"])
def test_heavy_tails_are_found_and_told(monkeypatch, share):
    X, _ = heavy_rows(300, 3)
    X[np.random.default_rng(1).random(X.shape) < share] = np.nan
    names, model = fitted_names(monkeypatch, X, n_init=1)
    assert names == ["gaussian", "student_t"]
    told = dict(re.findall(r"(\w+) (-?[\d.]+)[,)]", model.choice_))
    assert model.choice_.startswith("student_t: heavy tails, by the bound of 300 rows")
    assert float(told["student_t"]) > float(told["gaussian"])
    assert model.n_components_ <= 3
    same = DPMixture("student_t", n_init=1, random_state=0).fit(X)
    assert model.lower_bound_ == same.lower_bound_


def test_heavy_tails_beside_categories():
    X, z = heavy_rows(600, 3)
    X[:, 1:] = 0.1 * X[:, 1:] + X[:, :1]  # that independent columns do not suit
    table = pd.DataFrame(X, columns=["a", "b", "d"]).assign(c=np.where(z, "x", "y"))
    model = DPMixture(random_state=0).fit(table)
    assert model.choice_.startswith("mixed, numbers student_t: heavy tails")
    assert model.n_components_ <= 3


def test_a_choice_looks_at_some_rows_only():
    sample = Sample(np.arange(10.0)[:, None], np.arange(10.0), 0.5)
    some = sample.some(4)
    np.testing.assert_array_equal(some.rows[:, 0], [0.0, 3.0, 6.0, 9.0])
    np.testing.assert_array_equal(some.weights, [0.0, 3.0, 6.0, 9.0])
    assert some.share == pytest.approx(0.2)
    assert sample.some(10) is sample


def test_gaps_and_categories_of_a_frame():
    table = MIXED.copy()
    table.loc[::7, "size"] = np.nan
    table.loc[3, "color"] = None
    model = DPMixture(random_state=0).fit(table)
    assert model.n_clusters_ == 2
    assert model.categories_ == (None, ("blue", "red"), None, (False, True))
    np.testing.assert_array_equal(model.predict(table), model.labels_)


def test_what_was_chosen_stays(tmp_path):
    model = DPMixture(random_state=0).fit(CORRELATED)
    choice = model.choice_
    kplus.save(model, tmp_path / "model.kplus")
    again = kplus.load(tmp_path / "model.kplus")
    assert again.choice_ == choice
    np.testing.assert_array_equal(again.predict(CORRELATED), model.labels_)
    # A batch that would be taken for something else is not.
    again.partial_fit(INDEPENDENT[:40])
    assert (again.choice_, name_of(again.observations_)) == (choice, "factor_gaussian")
    model.set_params(warm_start=True).fit(INDEPENDENT)
    assert (model.choice_, name_of(model.observations_)) == (choice, "factor_gaussian")
    model.set_params(warm_start=False).fit(INDEPENDENT)
    assert name_of(model.observations_) == "diag_gaussian"
    model.set_params(observations="gaussian").fit(INDEPENDENT)
    assert not hasattr(model, "choice_")
    assert clone(again).observations == "auto"
