"""Observation families: what the rows of a component look like, and the prior.

Each class is a small object of prior settings, to be passed as ``observations``; its
default settings also go by name, as in ``observations="bernoulli"``.
"""

from kplus.observations.bernoulli import Bernoulli
from kplus.observations.categorical import Categorical
from kplus.observations.diag_gaussian import DiagGaussian
from kplus.observations.gaussian import Gaussian
from kplus.observations.mixed import Mixed
from kplus.observations.multinomial import Multinomial
from kplus.observations.names import by_name
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
    "Poisson",
    "SphericalGaussian",
    "ZeroMeanGaussian",
    "by_name",
]
