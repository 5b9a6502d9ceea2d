"""Families of observations: their names, classes, and what tables they take.

Whatever must know all families reads the list here: the check of ``observations``, tags
for scikit-learn, model files, the command line, tests. In reading order:

- `family.py`: what a mixture needs from a family, and bases for families
- `columns.py`: default priors, scaling, settings by column, checks
- `gaps.py`: rows of which values are missing, where columns hang together
- `quadratic.py`: matrices, squared distances, what is expected of Gaussian rows
- `normal_wishart.py`: what Gaussians with full covariances share
- `wishart_learning.py`: how their prior is learned
- `gaussian.py`, `zero_mean_gaussian.py`: full covariances
- `student_t.py`: the same with heavy tails
- `inner.py`: families that see rows in other units
- `factor_axes.py`, `factor_gaps.py`, `factor_gaussian.py`: many columns, a few factors
- `normal_gamma.py`: what Gaussians with independent columns share
- `diag_gaussian.py`, `spherical_gaussian.py`: independent columns
- `units.py`, `transformed.py`: logarithms, logits and powers of columns of any of these
- `spiked.py`: a spike, such as at 0, in columns of any of these
- `bernoulli.py`, `categorical.py`: bits and categories
- `poisson.py`, `negative_binomial.py`, `multinomial.py`: counts
- `mixed.py`: several families side by side, each with its columns
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kplus.dp_mixture.families.family import Family, Likelihood

__all__ = ["AUTO", "NAMES", "About", "by_name", "home", "name_of"]

AUTO = "auto"  # no family, but the choice of one: see `kplus.dp_mixture.auto`


class About(NamedTuple):
    """A family at a glance.

    The family "some_name" is the file ``some_name.py`` with the classes `cls` (what
    users choose) and `cls` + "Family" (with a resolved prior).
    """

    cls: str
    values: str  # "numbers", "bits", "counts", "categories", or "mixed": both kinds
    missing: bool  # whether values may be missing

    @property
    def coded(self) -> bool:
        """Whether values are whole numbers from 0 on, which no scaling may change."""
        return self.values in ("bits", "counts", "categories")


NAMES = {
    "gaussian": About("Gaussian", "numbers", missing=True),
    "zero_mean_gaussian": About("ZeroMeanGaussian", "numbers", missing=True),
    "student_t": About("StudentT", "numbers", missing=True),
    "factor_gaussian": About("FactorGaussian", "numbers", missing=True),
    "diag_gaussian": About("DiagGaussian", "numbers", missing=True),
    "spherical_gaussian": About("SphericalGaussian", "numbers", missing=True),
    "transformed": About("Transformed", "numbers", missing=True),
    "spiked": About("Spiked", "numbers", missing=True),
    "bernoulli": About("Bernoulli", "bits", missing=True),
    "categorical": About("Categorical", "categories", missing=True),
    "poisson": About("Poisson", "counts", missing=True),
    "negative_binomial": About("NegativeBinomial", "counts", missing=True),
    "multinomial": About("Multinomial", "counts", missing=False),
    "mixed": About("Mixed", "mixed", missing=True),
}


def home(name: str) -> str:
    """The module of the family of that name."""
    return f"kplus.dp_mixture.families.{name}"


def by_name(observations: "str | Likelihood") -> "Likelihood":
    """The family of that name with its default prior; an object is handed back.

    Examples
    --------
    >>> from kplus.observations import by_name
    >>> by_name("bernoulli")
    Bernoulli(ones=None, zeros=None, learn=True)
    """
    if isinstance(observations, str) and observations in NAMES:
        module = import_module(home(observations))
        likelihood: Likelihood = getattr(module, NAMES[observations].cls)()
        return likelihood
    # A class has the method too, but is not yet a choice of prior.
    if isinstance(observations, str | type) or not hasattr(observations, "resolve"):
        names = ", ".join(map(repr, NAMES))
        raise ValueError(
            f"observations must be one of {names}, or an object such as "
            f"kplus.observations.DiagGaussian(), got {observations!r}."
        )
    return observations


def name_of(family: "Family") -> str:
    """The name of a family with its prior; that of the class for one of the user's."""
    cls = type(family).__name__
    named = (name for name, about in NAMES.items() if cls == f"{about.cls}Family")
    return next(named, cls)
