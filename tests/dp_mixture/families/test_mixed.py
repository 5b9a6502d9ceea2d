"""Groups of columns side by side."""

import numpy as np
import pytest

from kplus.core.errors import DataError
from kplus.dp_mixture.families.family import Columns
from kplus.observations import (
    Categorical,
    DiagGaussian,
    Gaussian,
    Mixed,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
)

COLUMNS = Columns(("x", "kind", "visits", "y"), (None, 3, None, None))


def rows(n=30):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n))
    return np.stack([x, rng.integers(0, 3, n), rng.poisson(3, n), y], axis=1)


def some(where):
    return Columns(*(tuple(part[j] for j in where) for part in COLUMNS))


@pytest.mark.parametrize("counted", [Poisson(), NegativeBinomial()])
@pytest.mark.parametrize("numbers", [DiagGaussian(), SphericalGaussian(), Gaussian()])
def test_it_is_the_sum_of_its_parts(numbers, counted):
    X = rows()
    choice = Mixed(numbers, counts=["visits"], count_family=counted)
    family = choice.resolve(X, None, COLUMNS)
    N, S = np.array([30.0]), family.features(X).sum(axis=0)[None]
    groups = ((numbers, [0, 3]), (Categorical(), [1]), (counted, [2]))
    total, evidence, apart = 0.0, 0.0, 0.0
    for likelihood, where in groups:
        part = likelihood.resolve(X[:, where], None, some(where))
        own = part.features(X[:, where]).sum(axis=0)[None]
        total = total + part.log_predictive(N, own, X[:, where])
        evidence += part.evidence(N, own)
        apart = apart + part.dissimilarity(X[:, where], X[0, where], N, own)
    np.testing.assert_allclose(family.log_predictive(N, S, X), total, rtol=1e-12)
    np.testing.assert_allclose(family.evidence(N, S), evidence, rtol=1e-12)
    np.testing.assert_allclose(family.dissimilarity(X, X[0], N, S), apart, rtol=1e-12)


def test_attributes_say_which_columns_they_describe():
    X = rows()
    family = Mixed(counts=[2]).resolve(X, None, COLUMNS)
    S = family.features(X).sum(axis=0)[None].repeat(2, axis=0)
    found = family.attributes(np.array([30.0, 30.0]), S)
    assert found["means_"].shape == found["covariances_"].shape == (2, 2)
    assert [p.shape for p in found["probabilities_"]] == [(2, 3)]
    assert found["rates_"].shape == (2, 1)
    np.testing.assert_array_equal(found["number_columns_"], [0, 3])
    np.testing.assert_array_equal(found["category_columns_"], [1])
    np.testing.assert_array_equal(found["count_columns_"], [2])
    np.testing.assert_allclose(found["means_"][0], X[:, [0, 3]].mean(0), atol=1e-3)


def test_attributes_of_the_same_name_are_kept_apart():
    X = np.abs(np.round(rows()))
    family = Mixed(numbers=Multinomial()).resolve(X, None, COLUMNS)
    found = family.attributes(np.zeros(1), np.zeros((1, family.n_stats)))
    assert found["probabilities_"].shape == (1, 3)
    assert len(found["category_probabilities_"]) == 1


def test_drawn_columns_are_in_their_places():
    X = rows()
    family = Mixed(counts=["visits"]).resolve(X, None, COLUMNS)
    N, S = np.array([30.0]), family.features(X).sum(axis=0)[None]
    draws = family.draw(N, S, np.array([500]), np.random.default_rng(0))
    assert set(np.unique(draws[:, 1])) == {0, 1, 2}
    np.testing.assert_array_equal(draws[:, 2], np.round(draws[:, 2]))
    assert (draws[:, [0, 3]] < 0).any(axis=0).all()


def test_groups_may_be_empty():
    X = rows()
    numbers = Mixed().resolve(X[:, [0, 3]], None, some([0, 3]))
    codes = Mixed().resolve(X[:, [1]], None, some([1]))
    assert numbers.groups == ("number",)
    assert codes.groups == ("category",)
    assert codes.n_stats == 3


@pytest.mark.parametrize("counts", [["visit"], [4], [-1], [None]])
def test_counts_must_be_columns(counts):
    with pytest.raises(ValueError, match="counts names the column"):
        Mixed(counts=counts).resolve(rows(), None, COLUMNS)


def test_counts_must_be_a_list():
    with pytest.raises(ValueError, match="list of columns"):
        Mixed(counts="visits").resolve(rows(), None, COLUMNS)


def test_counts_must_be_numbers():
    with pytest.raises(DataError, match="'kind' holds categories"):
        Mixed(counts=["kind"]).resolve(rows(), None, COLUMNS)


def test_bad_values_are_named_by_the_columns_of_the_table():
    X = rows()
    family = Mixed(counts=["visits"]).resolve(X, None, COLUMNS)
    X[5, 2] = -1
    with pytest.raises(DataError, match="'visits' holds -1"):
        family.check(X)
