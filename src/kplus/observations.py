"""Observation families: what the rows of a component look like, and the prior.

Each class is a small object of prior settings, to be passed as ``observations``; its
default settings also go by name, as in ``observations="bernoulli"``. Classes are loaded
on first use, so that the names alone cost nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kplus.dp_mixture.families import NAMES, by_name, home

if TYPE_CHECKING:
    from kplus.dp_mixture.families.bernoulli import Bernoulli
    from kplus.dp_mixture.families.categorical import Categorical
    from kplus.dp_mixture.families.diag_gaussian import DiagGaussian
    from kplus.dp_mixture.families.factor_gaussian import FactorGaussian
    from kplus.dp_mixture.families.gaussian import Gaussian
    from kplus.dp_mixture.families.mixed import Mixed
    from kplus.dp_mixture.families.multinomial import Multinomial
    from kplus.dp_mixture.families.negative_binomial import NegativeBinomial
    from kplus.dp_mixture.families.poisson import Poisson
    from kplus.dp_mixture.families.spherical_gaussian import SphericalGaussian
    from kplus.dp_mixture.families.spiked import Spiked
    from kplus.dp_mixture.families.student_t import StudentT
    from kplus.dp_mixture.families.transformed import Transformed
    from kplus.dp_mixture.families.zero_mean_gaussian import ZeroMeanGaussian

__all__ = [
    "Bernoulli",
    "Categorical",
    "DiagGaussian",
    "FactorGaussian",
    "Gaussian",
    "Mixed",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "SphericalGaussian",
    "Spiked",
    "StudentT",
    "Transformed",
    "ZeroMeanGaussian",
    "by_name",
]


def __getattr__(name: str) -> Any:
    for family, about in NAMES.items():
        if about.cls == name:
            return getattr(import_module(home(family)), name)
    raise AttributeError(f"module 'kplus.observations' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
