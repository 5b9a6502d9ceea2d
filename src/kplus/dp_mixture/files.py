"""What model files keep of a fitted `DPMixture` beside its public attributes."""

from dataclasses import replace
from typing import Any

import numpy as np

from kplus.base.checks import check_shapes
from kplus.core.types import Array
from kplus.dp_mixture import joining
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.families.mixed import MixedFamily
from kplus.dp_mixture.families.normal_wishart import NormalWishartFamily
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.noise import Noise
from kplus.dp_mixture.params import MixtureStats
from kplus.engine.blas import SINGLE_THREAD

__all__ = ["restore", "to_state"]

_SUMS = ("N", "S", "entropy", "pairs", "base", "mass")
_NO_NOISE = {"noise": None, "noise_count": 0.0, "total_noise": 0.0}


def to_state(dp: Any) -> dict[str, Any]:
    """What `restore` needs: the posterior by its sums, and the sums of all rows."""
    q = dp._params
    noise = {
        "noise": dp._noise, "noise_count": q.noise, "total_noise": dp._total.noise,
    }  # fmt: skip
    return {
        "asked": dp._given_observations,
        "coding": dp._coding,
        "N": q.N,
        "S": q.S,
        "mass": q.mass,
        "tried": q.tried,
        "waited": q.waited,
        "visits": q.visits,
        **{f"total_{name}": getattr(dp._total, name) for name in _SUMS},
        **({} if dp._noise is None else noise),
    }


def restore(dp: Any, kept: dict[str, Any]) -> None:
    """Restore what `to_state` kept; refuse parts that do not fit together."""
    if not hasattr(dp, "noise_share_"):
        kept = kept | _NO_NOISE
    sums = {name: _with_gaps(dp.observations_, kept[name]) for name in ("S", "total_S")}
    kept = kept | sums
    _check(dp, kept)
    family, K = dp.observations_, dp.n_components_
    dp._given_observations, dp._coding = kept["asked"], kept["coding"]
    dp._noise = kept["noise"]
    model = DPMixtureModel(family, dp.concentration_)
    # BLAS in one thread, as in a fit: with more it may round in another way.
    SINGLE_THREAD.take()
    try:
        params = model.posterior(
            kept["N"], kept["S"], float(kept["mass"]), float(kept["noise_count"])
        )
    finally:
        SINGLE_THREAD.give_back()
    dp._params = replace(
        params,
        tried=kept["tried"],
        waited=kept["waited"],
        visits=int(kept["visits"]),
    )
    dp._total = MixtureStats.zeros(K, family.n_stats)
    for name in (*_SUMS, "noise"):
        setattr(dp._total, name, kept[f"total_{name}"])


def _with_gaps(family: Family, S: Array) -> Array:
    """Sums of a file from before full covariances took missing values: none were."""
    numbers = family.parts[0] if isinstance(family, MixedFamily) else family
    if not isinstance(numbers, NormalWishartFamily) or np.ndim(S) != 2:
        return S
    before = S.shape[1] == family.n_stats - 1
    return np.insert(S, numbers.n_free, 0.0, axis=1) if before else S


def _check(dp: Any, kept: dict[str, Any]) -> None:
    family, coding, K = dp.observations_, kept["coding"], dp.n_components_
    M = family.n_stats
    shapes = {
        "N": (K,), "S": (K, M), "tried": (K,), "waited": (K,), "total_N": (K,),
        "total_S": (K, M), "total_entropy": (K,), "total_pairs": (K * (K - 1) // 2,),
    }  # fmt: skip
    check_shapes({name: (kept[name], shape) for name, shape in shapes.items()})
    joining.restore(dp)
    n_columns = {"observations_": family.n_columns}
    if coding is not None:
        n_columns["coding"] = len(coding.names)
    for part, n in n_columns.items():
        if n != dp.n_features_in_:
            raise ValueError(f"{part} has {n} columns, not {dp.n_features_in_}.")
    if hasattr(dp, "noise_share_"):
        if not isinstance(kept["noise"], Noise):
            raise ValueError("noise_share_ is there without noise.")
        kept["noise"].check(dp.n_features_in_)
