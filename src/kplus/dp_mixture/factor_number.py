"""How many factors: the number for which a short fit reaches the highest bound."""

from collections.abc import Sequence

import numpy as np

from kplus.core.types import Array
from kplus.dp_mixture.families.factor_gaussian import FactorGaussianFamily
from kplus.dp_mixture.fresh import create
from kplus.dp_mixture.model import DPMixtureModel

__all__ = ["with_highest_bound"]

_ROWS = 2_000  # that are fitted
_N_NEW, _N_ITER = 20, 8  # components that fits begin with, and their iterations
_N_LEARN = 5  # steps of learning before a fit is judged


def with_highest_bound(
    families: Sequence[FactorGaussianFamily], X: Array, weights: Array
) -> FactorGaussianFamily:
    """The best of families of the same axes, the foremost of which are factors."""
    step = -(-len(X) // _ROWS)
    rows, light = X[::step], weights[::step] * step
    bounds = [_reached(family, rows, light) for family in families]
    return families[int(np.argmax(bounds))]


def _reached(family: FactorGaussianFamily, X: Array, weights: Array) -> float:
    """The bound of all columns, in their units.

    Densities of what is learned have constants that depend on the number of columns,
    and stay out. Axes that are no factors have a mean and a variance each, which cost
    what they do in Schwarz's criterion; a factor along which all components are alike
    then neither gains nor loses.
    """
    model = DPMixtureModel(family, concentration=None)
    rng = np.random.default_rng(0)
    stats = create(model, X, weights, 1.0, _N_NEW, _N_ITER, rng)
    for _ in range(_N_LEARN):
        model = model.learning(stats.N, stats.S)
    cost = len(family.others) * np.log(weights.sum())
    return model.best_bound(stats) - model.family.log_hyperprior - float(cost)
