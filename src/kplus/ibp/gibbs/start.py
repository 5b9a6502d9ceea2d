"""Where a chain of `IBPGibbs` begins, and the priors of what it infers."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from kplus.core.types import Array
from kplus.ibp.estimator import given
from kplus.ibp.gibbs.chain import Bits, Start
from kplus.ibp.gibbs.scales import LEAST_RATIO, Hyperprior, Scales

__all__ = ["draw_ibp", "hyperprior", "start_of", "tidy"]

_LEAST = LEAST_RATIO**0.5
_SMALL_NOISE = 0.01  # of the variance of the data: where the prior of the noise lies


def hyperprior(model: Any, deviation: float) -> Hyperprior:
    """Weak priors of what is to be inferred; None where a number is given."""
    variance = _positive(deviation) ** 2
    return Hyperprior(
        alpha=(1.0, 1.0) if given(model.alpha) is None else None,
        noise=_prior(model.noise_scale, _SMALL_NOISE * variance),
        factor=_prior(model.factor_scale, variance),
    )


def _prior(value: Any, scale: float) -> tuple[float, float] | None:
    return (1.0, scale) if given(value) is None else None


def _positive(deviation: float) -> float:
    """Columns that do not vary give no scale of their own."""
    return deviation if deviation > 0.0 else 1.0


def start_of(
    model: Any, X: Any, n_rows: int, deviation: float, rng: np.random.Generator
) -> Start:
    """What `init` asks for."""
    init, most = model.init, model.max_components
    _check_scales(model, deviation)
    scales = _scales(model, deviation)
    if init is None:
        return Start(draw_ibp(n_rows, scales.alpha, most, rng), scales)
    if not hasattr(init, "transform"):
        return Start(tidy(_checked(init, n_rows), None, most)[0], scales)
    Z, A = tidy(*_features_of(init, X, n_rows), most)
    if not model._nonnegative or A is None:
        return Start(Z, scales)
    # Zeros would hold on to nothing: factors are drawn one after the other.
    return Start(Z, scales, np.maximum(A, 0.0))


def _scales(model: Any, deviation: float) -> Scales:
    """As given, else as `init` has them, else from the spread of the data."""
    spread = _positive(deviation)
    alpha, noise, factor = (
        known
        if (known := given(getattr(model, name))) is not None
        else float(getattr(model.init, f"{name}_", default))
        for name, default in (
            ("alpha", 1.0),
            ("noise_scale", 0.5 * spread),
            ("factor_scale", spread),
        )
    )
    if given(model.noise_scale) is None:
        noise = max(noise, _LEAST * factor)
    return Scales(alpha, noise**2, min(factor, noise / _LEAST) ** 2)


def _check_scales(model: Any, deviation: float) -> None:
    """Refuse scales for which a float64 has too few digits."""
    noise, factor = given(model.noise_scale), given(model.factor_scale)
    if noise is not None and noise < _LEAST * deviation:
        raise ValueError(
            f"noise_scale={noise:g} is too small for data with a standard deviation of "
            f"{deviation:.6g}: give at least {_LEAST * deviation:.6g}, or 'infer'."
        )
    scale = _positive(deviation) if noise is None else noise
    if factor is not None and factor * _LEAST > scale:
        of = "the standard deviation of the data" if noise is None else "noise_scale"
        raise ValueError(
            f"factor_scale={factor:g} is too large: it may be {1 / _LEAST:g} times "
            f"{of}, which is {scale:.6g}. Give a smaller one, or 'infer'."
        )


def _features_of(init: Any, X: Any, n_rows: int) -> tuple[Bits, Array | None]:
    """Z and A of a fitted estimator."""
    try:
        check_is_fitted(init)
    except NotFittedError:
        raise NotFittedError(
            f"init is a {type(init).__name__} that is not fitted: fit it first. Where "
            f"parameters are cloned (in searches), wrap it in "
            f"sklearn.frozen.FrozenEstimator, or it comes unfitted."
        ) from None
    Z = init.transform(X)
    Z = np.asarray(Z.toarray() if sp.issparse(Z) else Z, dtype=np.float64)
    if Z.ndim != 2 or len(Z) != n_rows:
        raise ValueError(f"init gives features of shape {Z.shape} for {n_rows} rows.")
    return (Z >= 0.5).astype(np.uint8), getattr(init, "components_", None)


def _checked(init: Any, n_rows: int) -> Bits:
    """A Z that was given."""
    Z = check_array(init, ensure_min_features=0, ensure_min_samples=0, dtype=None)
    if len(Z) != n_rows:
        raise ValueError(f"init has {len(Z)} rows, X has {n_rows}.")
    if not np.isin(Z, (0, 1)).all():
        raise ValueError("init must hold zeros and ones: which features each row has.")
    return Z.astype(np.uint8)


def draw_ibp(N: int, alpha: float, most: int | None, rng: np.random.Generator) -> Bits:
    """Draw Z from the Indian buffet process; features beyond the limit are left out."""
    columns: list[Bits] = []
    counts = np.empty(0)
    for n in range(N):
        for k in np.flatnonzero(rng.random(len(counts)) < counts / (n + 1)):
            columns[k][n] = 1
            counts[k] += 1
        new = int(rng.poisson(alpha / (n + 1)))
        if most is not None:
            new = min(new, most - len(columns))
        for _ in range(new):
            columns.append(np.zeros(N, dtype=np.uint8))
            columns[-1][n] = 1
        counts = np.append(counts, np.ones(new))
    return np.column_stack(columns) if columns else np.zeros((N, 0), dtype=np.uint8)


def tidy(Z: Bits, A: Array | None, most: int | None) -> tuple[Bits, Array | None]:
    """Without features that no row has, and the rarest beyond the limit."""
    counts = Z.sum(axis=0, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")[:most]
    kept = np.sort(order[counts[order] > 0])
    return np.ascontiguousarray(Z[:, kept]), None if A is None else A[kept]
