"""Families by name."""

from importlib import import_module

from kplus.observations.family import Likelihood

__all__ = ["NAMES", "by_name"]

NAMES = {
    "gaussian": "Gaussian",
    "zero_mean_gaussian": "ZeroMeanGaussian",
    "diag_gaussian": "DiagGaussian",
    "spherical_gaussian": "SphericalGaussian",
    "bernoulli": "Bernoulli",
    "categorical": "Categorical",
    "poisson": "Poisson",
    "multinomial": "Multinomial",
    "mixed": "Mixed",
}


def by_name(observations: str | Likelihood) -> Likelihood:
    """The family of that name with its default prior; an object is handed back.

    Examples
    --------
    >>> from kplus.observations import by_name
    >>> by_name("bernoulli")
    Bernoulli(ones=None, zeros=None)
    """
    if isinstance(observations, str) and observations in NAMES:
        module = import_module(f"kplus.observations.{observations}")
        found: Likelihood = getattr(module, NAMES[observations])()
        return found
    # A class has the method too, but is not yet a choice of prior.
    if isinstance(observations, str | type) or not hasattr(observations, "resolve"):
        names = ", ".join(map(repr, NAMES))
        raise ValueError(
            f"observations must be one of {names}, or an object such as "
            f"kplus.observations.DiagGaussian(), got {observations!r}."
        )
    return observations
