"""The prior of a family as people read it: by column, in the units of the data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kplus.core.types import Array
from kplus.dp_mixture.families.bernoulli import BernoulliFamily
from kplus.dp_mixture.families.categorical import CategoricalFamily
from kplus.dp_mixture.families.factor_gaussian import FactorGaussianFamily
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.families.mixed import MixedFamily
from kplus.dp_mixture.families.multinomial import MultinomialFamily
from kplus.dp_mixture.families.negative_binomial import NegativeBinomialFamily
from kplus.dp_mixture.families.normal_gamma import NormalGammaFamily
from kplus.dp_mixture.families.normal_wishart import NormalWishartFamily
from kplus.dp_mixture.families.poisson import PoissonFamily
from kplus.dp_mixture.families.spiked import SpikedFamily
from kplus.dp_mixture.families.transformed import TransformedFamily
from kplus.dp_mixture.families.units import KINDS

__all__ = ["Described", "prior_of", "prior_values"]

Described = dict[str, float | str | dict[str, float]]  # by setting, maybe by column

_WORDS = {"dof": "degrees of freedom", "mean_strength": "mean strength"}
_MOST_PAIRS = 3  # of columns, with the highest correlations


def prior_of(mixture: Any) -> Described:
    """The prior of a fitted `DPMixture`; its columns by name, or by number."""
    numbered = [f"column {j}" for j in range(mixture.n_features_in_)]
    names = getattr(mixture, "feature_names_in_", numbered)
    return prior_values(mixture.observations_, list(map(str, names)))


def prior_values(family: Family, names: Sequence[str]) -> Described:
    """Settings of a prior by name: a number, or a number for each column.

    Standard deviations are those of a component with the prior's mean precision,
    √(B0/ν0). "learned" lists what was learned; without it all is as it was given.
    """
    if isinstance(family, MixedFamily):
        return _of_parts(family, names)
    if isinstance(family, TransformedFamily):
        named = zip(names, family.kinds, strict=True)
        units = ", ".join(f"{KINDS[kind]} of {name}" for name, kind in named if kind)
        told = prior_values(family.inner, names)
        return {"units": units or "those of the data", **told}
    if isinstance(family, SpikedFamily):
        spiked = [f"spike of {names[d]}" for d in family.where]
        return prior_values(family.inner, [*names, *spiked])
    if isinstance(family, FactorGaussianFamily):
        factors = [f"factor {j}" for j in range(family.inner.n_columns)]
        return {"factors": float(len(factors)), **_of_gaussian(family.inner, factors)}
    if isinstance(family, (NormalWishartFamily, NormalGammaFamily)):
        return _of_gaussian(family, names)
    if isinstance(family, CategoricalFamily):
        parts = np.split(family.pseudo_counts, family.starts[1:])
        settings = {"pseudo-counts in all": np.array([part.sum() for part in parts])}
    elif isinstance(family, MultinomialFamily):
        settings = {"pseudo-counts": family.pseudo_counts}
    elif isinstance(family, BernoulliFamily):
        settings = {"ones": family.ones, "zeros": family.zeros}
    elif isinstance(family, PoissonFamily):
        settings = {"shape": family.shape, "rate": family.rate}
    elif isinstance(family, NegativeBinomialFamily):
        means = family.counts / family.rows
        settings = {"mean": means, "mean strength": family.rows}
    else:
        return {}  # one of the user's own
    out: Described = {key: _named(names, value) for key, value in settings.items()}
    return out if family.guess is None else {"learned": ", ".join(settings), **out}


def _of_parts(family: MixedFamily, names: Sequence[str]) -> Described:
    """Of all groups of columns; a setting that two have is named after the second."""
    out: Described = {}
    learned = []
    for group, part, where in zip(
        family.groups, family.parts, family.where, strict=True
    ):
        told = prior_values(part, [names[j] for j in where])
        learned += [str(told.pop("learned"))] if "learned" in told else []
        for key, value in told.items():
            out[f"{key}, {group}" if key in out else key] = value
    return {"learned": ", ".join(learned), **out} if learned else out


def _of_gaussian(
    family: NormalWishartFamily | NormalGammaFamily, names: Sequence[str]
) -> Described:
    D = family.n_columns
    own: Any = family
    out: Described = {}
    if family.learns:
        out["learned"] = ", ".join(_WORDS.get(name, name) for name in family.learns)
    out["degrees of freedom"] = _named(names, family.dof)
    if hasattr(own, "mean_strength"):
        out["mean strength"] = _named(names, own.mean_strength)
        mean = family.scaling.inverse_transform(own.mean * np.ones(D))
        out["mean"] = _by_name(names, mean)
    full = isinstance(family, NormalWishartFamily)
    scatter = np.diag(own.scatter) if full else own.scatter * np.ones(D)
    deviations = np.sqrt(scatter / family.dof) / family.inv
    out["standard deviation"] = _by_name(names, deviations)
    if full and D > 1:
        out["highest correlations"] = _correlations(names, own.scatter)
    return out


def _correlations(names: Sequence[str], scatter: Array) -> dict[str, float]:
    """The pairs of columns that the prior takes to be most correlated."""
    scale = np.sqrt(np.diag(scatter))
    a, b = np.triu_indices(len(scatter), 1)
    values = (scatter / (scale[:, None] * scale))[a, b]
    top = np.argsort(-np.abs(values), kind="stable")[:_MOST_PAIRS]
    return {f"{names[a[i]]} and {names[b[i]]}": float(values[i]) for i in top}


def _named(names: Sequence[str], value: Any) -> float | dict[str, float]:
    """One number, or one for each column."""
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape != (len(names),):
        return float(numbers.reshape(()))  # one that all columns share
    return _by_name(names, numbers)


def _by_name(names: Sequence[str], values: Array) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))
