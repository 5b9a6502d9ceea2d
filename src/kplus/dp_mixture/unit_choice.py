"""Which units suit the columns: those in which a short fit reaches the highest bound.

A column of two groups is not skewed because one of them is smaller. So units are judged
inside the components of a fit: each column takes those in which its values, by
component, are likeliest as Gaussians, slopes included; then comes a fit in these units,
and so on while the bound rises. Other units than the data's are taken only if the bound
gains clearly by them, and with no more components.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kplus.core.types import Array
from kplus.dp_mixture.families.columns import row_weights
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.learning import resolutions
from kplus.dp_mixture.families.units import Units, recognised
from kplus.dp_mixture.fresh import create
from kplus.dp_mixture.model import DPMixtureModel

__all__ = ["best_units"]

_ROWS = 1_000  # that are fitted
_N_NEW, _N_ITER = 20, 8  # components that fits begin with, and their iterations
_N_LEARN = 5  # steps of learning before a fit is judged
_ROUNDS = 2  # of fits, from each start
_CLEAR = 0.02  # nats per row and changed column that other units must gain
_GAIN = 0.01  # nats per row that a column must gain inside components


def best_units(
    likelihood: Any,
    options: Sequence[Sequence[Units]],
    sample: Array,
    weights: Array | None,
    columns: Columns,
) -> Units:
    """For each column one of its options, of which the first is taken in doubt.

    Parameters
    ----------
    likelihood : Transformed
    options : sequence of sequences of Units
        Of one column each.
    """
    step = -(-len(sample) // _ROWS)
    X, heavy = sample[::step], row_weights(sample, weights)[::step] * step
    plain = Units.of(X, np.zeros(X.shape[1], np.int64))
    for d, of_column in enumerate(options):
        plain = plain.changed(d, of_column[0])
    if all(len(of_column) == 1 for of_column in options):
        return plain

    def fit(units: Units) -> tuple[float, int, Array]:
        family = likelihood.in_units(units, X, heavy, columns)
        model = DPMixtureModel(family, concentration=None)
        rng = np.random.default_rng(0)
        stats = create(model, X, heavy, 1.0, _N_NEW, _N_ITER, rng)
        for _ in range(_N_LEARN):
            model = model.learning(stats.N, stats.S)
        params = model.posterior(stats.N, stats.S, stats.mass)
        _, support, r = model.share_out(params, X, heavy)
        R = np.zeros((len(X), params.K))
        rows = np.repeat(np.arange(len(X)), np.diff(support.starts))
        R[rows, support.components] = r * heavy[rows]
        return model.best_bound(stats) / heavy.sum(), params.K, R

    found = [(fit(plain), plain)]
    for units in _starts(plain, options, X, found[0][0][2]):
        best = fit(units), units
        for _ in range(_ROUNDS):
            units = _likeliest(options, X, best[0][2])
            if units.same(best[1]):
                break
            result = fit(units)
            if result[0] <= best[0][0]:
                break
            best = result, units
        found.append(best)
    (bound, K, _), _ = found[0]
    (reached, K_new, _), units = max(found, key=lambda each: each[0][0])
    n_changed = int(np.sum(units.kinds != plain.kinds))
    clear = reached > bound + _CLEAR * max(n_changed, 1)
    return units if clear and K_new <= K else plain


def _starts(
    plain: Units, options: Sequence[Sequence[Units]], X: Array, R: Array
) -> list[Units]:
    """What other units may be: as whole columns look, and inside fewer components.

    Gaussians that cut a tail in pieces have none inside. Those that overlap most are
    put together, until half of them are left, then a quarter, at last one.
    """
    looks = plain
    for d, kind in enumerate(recognised(X)):
        of_kind = [units for units in options[d] if units.kinds[0] == kind]
        if of_kind:
            looks = looks.changed(d, of_kind[0])
    starts = [_likeliest(options, X, R), looks]
    while R.shape[1] > 1:
        R = _joined(R, -(-R.shape[1] // 2))
        starts.append(_likeliest(options, X, R))
    new: list[Units] = []
    for units in starts:
        if not any(units.same(other) for other in (plain, *new)):
            new.append(units)
    return new


def _joined(R: Array, K: int) -> Array:
    """Shares in K groups of components, those together that overlap most."""
    while R.shape[1] > K:
        root = np.sqrt(np.maximum(R.sum(axis=0), 1e-300))
        overlap = (R / root).T @ (R / root)
        np.fill_diagonal(overlap, -np.inf)
        a, b = np.unravel_index(np.argmax(overlap), overlap.shape)
        R = np.column_stack([np.delete(R, [a, b], axis=1), R[:, a] + R[:, b]])
    return R


def _likeliest(options: Sequence[Sequence[Units]], X: Array, R: Array) -> Units:
    """Those in which the values of each column are likeliest inside components."""
    out = Units.of(X, np.zeros(X.shape[1], np.int64))
    rounding = resolutions(X)
    for d, of_column in enumerate(options):
        x = X[:, d : d + 1]
        logs = np.array([_fit_inside(each, x, R, rounding[d]) for each in of_column])
        logs[1:] -= _GAIN * R.sum()
        out = out.changed(d, of_column[int(np.argmax(logs))])
    return out


def _fit_inside(units: Units, x: Array, R: Array, rounding: float) -> float:
    """log-likelihood of a column's values by component, each a Gaussian."""
    y, seen = units.transform(x)[:, 0], ~np.isnan(x[:, 0])
    w, y = R[seen], y[seen]
    N = np.maximum(w.sum(axis=0), 1e-9)
    means = y @ w / N
    variances = np.einsum("nk,nk->k", w, (y[:, None] - means) ** 2)
    floor = 1e-6 * y.var() + rounding * float(units.mean_square_slopes(x)[0])
    variances = (variances + y.var()) / (N + 1.0) + max(floor, 1e-300)
    slopes = float(w.sum(axis=1) @ units.log_slopes(x)[seen])
    return slopes - 0.5 * float(N @ np.log(variances))
