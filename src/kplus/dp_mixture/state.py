"""What a fitted `DPMixture` knows: its attributes, and what a model file keeps."""

from dataclasses import replace
from typing import Any, NamedTuple, Self

from kplus.base.checks import check_shapes
from kplus.core.types import Array
from kplus.data.categories import Coding
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.params import Components, MixtureStats
from kplus.dp_mixture.sticks import mean_weights
from kplus.engine.blas import SINGLE_THREAD

__all__ = [
    "LastFit",
    "attributes",
    "from_state",
    "last_fit",
    "names_of_family",
    "to_state",
]


class LastFit(NamedTuple):
    """What a later fit or prediction takes from the last fit."""

    family: Family
    params: Components
    coding: Coding | None

    @classmethod
    def of(cls, dp: Any) -> Self:
        return cls(dp.observations_, dp._params, dp._coding)


def last_fit(dp: Any) -> LastFit | None:
    """The last fit, if there was one with the same observations."""
    if not hasattr(dp, "_params"):
        return None
    same = dp._asked is dp.observations or (
        isinstance(dp.observations, str) and dp._asked == dp.observations
    )
    return LastFit.of(dp) if same else None


def attributes(
    asked: Any, coding: Coding | None, family: Family, params: Components
) -> dict[str, Any]:
    """What components say about themselves, under the names of attributes."""
    weights = mean_weights(params.N, params.concentration)
    found: dict[str, Any] = {
        "observations_": family,
        "n_components_": params.K,
        "n_clusters_": params.K,
        # The rest belongs to components not seen yet.
        "weights_": weights / weights.sum(),
        "concentration_": float(params.concentration),
        "_params": params,
        "_asked": asked,
        "_coding": coding,
    }
    if coding is not None:
        found["categories_"] = coding.categories
    return found | family.attributes(params.N, params.S)


def names_of_family(dp: Any) -> list[str]:
    """Attributes that depend on the family of the last fit."""
    q = dp._params
    names = ["categories_", *dp.observations_.attributes(q.N, q.S)]
    return [name for name in names if hasattr(dp, name)]


# ---------------------------------------------------------------------- files

_SUMS = ("N", "S", "entropy", "pairs", "base", "mass")


def to_state(dp: Any) -> dict[str, Any]:
    """What a model file keeps beside the public attributes."""
    q, total = dp._params, dp._total
    return {
        "asked": dp._asked,
        "coding": dp._coding,
        "N": q.N,
        "S": q.S,
        "mass": q.mass,
        "tried": q.tried,
        "waited": q.waited,
        "visits": q.visits,
        **{f"total_{name}": getattr(total, name) for name in _SUMS},
    }


def from_state(dp: Any, kept: dict[str, Any]) -> None:
    """Take up what `to_state` kept; refuse parts that do not fit together."""
    family, K = dp.observations_, dp.n_components_
    M = family.n_stats
    shapes = {
        "N": (K,), "S": (K, M), "tried": (K,), "waited": (K,), "total_N": (K,),
        "total_S": (K, M), "total_entropy": (K,), "total_pairs": (K * (K - 1) // 2,),
    }  # fmt: skip
    check_shapes({name: (kept[name], shape) for name, shape in shapes.items()})
    coding = kept["coding"]
    names = () if coding is None else coding.names
    for what, found in (("observations_", family.n_columns), ("coding", len(names))):
        if found != dp.n_features_in_ and not (what == "coding" and coding is None):
            raise ValueError(f"{what} has {found} columns, not {dp.n_features_in_}.")
    dp._asked, dp._coding = kept["asked"], coding
    dp._params = replace(
        _posterior(family, kept["N"], kept["S"], float(kept["mass"]), dp),
        tried=kept["tried"],
        waited=kept["waited"],
        visits=int(kept["visits"]),
    )
    dp._total = MixtureStats.zeros(K, M)
    for name in _SUMS:
        setattr(dp._total, name, kept[f"total_{name}"])


def _posterior(family: Family, N: Array, S: Array, mass: float, dp: Any) -> Components:
    """Components from their counts and sums, to the last bit.

    BLAS is held to one thread, as in a fit: with more it may round in another way.
    """
    SINGLE_THREAD.take()
    try:
        return DPMixtureModel(family, dp.concentration_).posterior(N, S, mass)
    finally:
        SINGLE_THREAD.give_back()
