"""What users may get wrong, and what they are told."""

import numpy as np
import pytest

from kplus.core.errors import DataError
from kplus.dp_mixture.families import NAMES
from kplus.dp_mixture.families.family import Columns
from kplus.observations import (
    Bernoulli,
    Categorical,
    DiagGaussian,
    Gaussian,
    Mixed,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    ZeroMeanGaussian,
    by_name,
)

NUMBERS = Columns(("age", "size"), (None, None))
CODES = Columns(("age", "size"), (2, 3))
GOOD = np.array([[0.0, 1], [1, 0], [1, 1]])


@pytest.mark.parametrize(
    ("likelihood", "value", "hint"),
    [
        (Bernoulli(), 2.0, "'size' holds 2; .*'categorical'"),
        (Bernoulli(), 0.5, "'size' holds 0.5; .*'diag_gaussian'"),
        (Bernoulli(), np.inf, "'size' holds inf"),
        (Poisson(), -1.0, "'size' holds -1; .*counts"),
        (Poisson(), 2.5, "'size' holds 2.5; .*'diag_gaussian'"),
        (Poisson(), np.inf, "'size' holds inf"),
        (NegativeBinomial(), -1.0, "'size' holds -1; .*'negative_binomial'.*counts"),
        (NegativeBinomial(), 2.5, "'size' holds 2.5; .*'diag_gaussian'"),
        (NegativeBinomial(), np.inf, "'size' holds inf"),
        (Multinomial(), -1.0, "'size' holds -1; .*counts"),
        (Multinomial(), 2.5, "'size' holds 2.5; "),
        (Multinomial(), np.nan, "'size' holds nan; .*'poisson'"),
    ],
)
def test_bad_values_are_named(likelihood, value, hint):
    bad = GOOD.copy()
    bad[1, 1] = value
    with pytest.raises(DataError, match=hint):
        likelihood.resolve(bad, None, NUMBERS)
    with pytest.raises(DataError, match=hint):
        likelihood.resolve(GOOD, None, NUMBERS).check(bad)


@pytest.mark.parametrize("value", [3.0, -1.0, 0.5, np.inf])
def test_unseen_categories(value):
    bad = GOOD.copy()
    bad[1, 1] = value
    for likelihood in (Categorical(), Mixed()):
        family = likelihood.resolve(GOOD, None, CODES)
        with pytest.raises(DataError, match=r"'size' holds .*unseen category"):
            family.check(bad)
        with pytest.raises(DataError, match="unseen category"):
            likelihood.resolve(bad, None, CODES)


@pytest.mark.parametrize(
    "likelihood",
    [
        Gaussian(),
        ZeroMeanGaussian(),
        DiagGaussian(),
        SphericalGaussian(),
        Poisson(),
        NegativeBinomial(),
        Multinomial(),
    ],
)
def test_categories_among_numbers(likelihood):
    with pytest.raises(DataError, match=r"'size' holds categories.*'mixed'"):
        likelihood.resolve(GOOD, None, Columns(("age", "size"), (None, 3)))


def test_numbers_among_categories():
    with pytest.raises(DataError, match=r"'size' holds numbers.*'mixed'"):
        Categorical().resolve(GOOD, None, Columns(("age", "size"), (2, None)))
    with pytest.raises(DataError, match="'age' has no values"):
        Categorical().resolve(GOOD, None, Columns(("age", "size"), (0, 3)))


def test_many_categories_are_no_bits():
    with pytest.raises(DataError, match=r"'size' holds 3 categories.*'categorical'"):
        Bernoulli().resolve(GOOD, None, Columns(("age", "size"), (2, 3)))
    Bernoulli().resolve(GOOD, None, Columns(("age", "size"), (2, 2)))


def test_columns_without_names():
    nameless = Columns(("column 0", "column 1"), (None, None))
    with pytest.raises(DataError, match=r"^Column 1 holds -1;"):
        Poisson().resolve(np.array([[0.0, -1]]), None, nameless)


@pytest.mark.parametrize(
    ("likelihood", "hint"),
    [
        (DiagGaussian(dof=2.0), "dof must be a number above 2"),
        (DiagGaussian(mean_strength=0), "mean_strength must be a number above 0"),
        (DiagGaussian(variance_share=-1), "variance_share must"),
        (DiagGaussian(expected_variance=[1, 0]), "expected_variance must hold finite"),
        (DiagGaussian(mean=[1, 2, 3]), "mean must be one number or .* 2 columns"),
        (DiagGaussian(mean=np.nan), "mean must hold finite numbers"),
        (SphericalGaussian(dof=1), "dof must be a number above 2"),
        (SphericalGaussian(expected_variance=np.inf), "expected_variance must"),
        (Bernoulli(ones=0), "ones must hold finite numbers above 0"),
        (Bernoulli(zeros=[1, 2, 3]), "zeros must be one number"),
        (Poisson(shape=0), "shape must"),
        (Poisson(rate=-1), "rate must"),
        (NegativeBinomial(dispersion=0), "dispersion must hold finite numbers above 0"),
        (NegativeBinomial(mean=-1), "mean must hold finite numbers above 0"),
        (NegativeBinomial(mean_strength=[1, 2, 3]), "mean_strength must be one number"),
        (Multinomial(pseudo_counts=0), "pseudo_counts must"),
    ],
)
def test_bad_settings(likelihood, hint):
    with pytest.raises(ValueError, match=hint):
        likelihood.resolve(GOOD, None, NUMBERS)


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        (0.0, "pseudo_counts must hold finite numbers above 0"),
        ([1.0], "one entry for each of the 2 columns"),
        ([1.0, [1, 2]], "'size' has 3 categories"),
    ],
)
def test_bad_pseudo_counts(setting, hint):
    with pytest.raises(ValueError, match=hint):
        Categorical(setting).resolve(GOOD, None, CODES)


@pytest.mark.parametrize("name", NAMES)
def test_families_by_name(name):
    found = by_name(name)
    assert type(found).__name__ == NAMES[name].cls
    assert by_name(found) is found


@pytest.mark.parametrize("bad", ["gauss", "", None, 3, DiagGaussian])
def test_names_that_are_none(bad):
    with pytest.raises(ValueError, match=r"must be one of 'gaussian', .*'mixed'.*got"):
        by_name(bad)
