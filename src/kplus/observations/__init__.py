"""Observation families: what the rows of a component look like, and the prior.

Each class is a small object of prior settings, to be passed as ``observations``; its
default settings also go by name, as in ``observations="bernoulli"``. Classes are loaded
on first use, so that the names alone cost nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kplus.observations.names import NAMES, by_name, home

if TYPE_CHECKING:
    from kplus.observations.bernoulli import Bernoulli
    from kplus.observations.categorical import Categorical
    from kplus.observations.diag_gaussian import DiagGaussian
    from kplus.observations.gaussian import Gaussian
    from kplus.observations.mixed import Mixed
    from kplus.observations.multinomial import Multinomial
    from kplus.observations.negative_binomial import NegativeBinomial
    from kplus.observations.poisson import Poisson
    from kplus.observations.spherical_gaussian import SphericalGaussian
    from kplus.observations.zero_mean_gaussian import ZeroMeanGaussian

__all__ = [
    "Bernoulli",
    "Categorical",
    "DiagGaussian",
    "Gaussian",
    "Mixed",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "SphericalGaussian",
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
