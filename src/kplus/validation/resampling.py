"""Fits to resamples: what each of them found, side by side on threads."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone, is_clusterer
from sklearn.utils.validation import has_fit_parameter

from kplus.base.estimator import Estimator
from kplus.core.types import Array, IntArray
from kplus.data.open import read_as_fitted
from kplus.data.rows import some_of

__all__ = [
    "METHODS",
    "Draw",
    "Fit",
    "as_fitted",
    "draws",
    "fits",
    "found_by",
    "is_for_features",
]

Method = Literal["bootstrap", "subsample", "seeds"]
METHODS = ("bootstrap", "subsample", "seeds")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Draw:
    """Rows of a sample, in order, and the seed of the fit to them."""

    rows: IntArray
    seed: int


@dataclass(frozen=True)
class Fit:
    """What a fit found.

    Attributes
    ----------
    groups : array or None
        Labels, or lines of bits; None: the fit was not possible.
    n_found : int
    converged : bool
    error : str
        Why it was not possible.
    """

    groups: Any
    n_found: int = 0
    converged: bool = True
    error: str = ""


def draws(method: Method, n_rows: int, n: int, rng: np.random.Generator) -> list[Draw]:
    """What each of `n` fits is given.

    A bootstrap draws with replacement and takes each row once, so that copies of a row
    are not mistaken for a group: .63 of the rows. A subsample is half of the rows.
    """
    made = []
    for each in rng.spawn(n):
        rows = np.arange(n_rows)
        if method == "bootstrap":
            rows = np.unique(each.integers(0, n_rows, n_rows))
        elif method == "subsample":
            half = max(1, (n_rows + 1) // 2)
            rows = np.sort(each.choice(n_rows, half, replace=False, shuffle=False))
        made.append(Draw(rows, int(each.integers(2**31 - 1))))
    return made


def is_for_features(estimator: Any) -> bool:
    """Whether rows may have several groups: features, not clusters."""
    return not is_clusterer(estimator) and hasattr(estimator, "transform")


def fits(
    estimator: Any,
    sample: Any,
    drawn: list[Draw],
    weights: Array | None,
    n_threads: int,
    progress: Progress | None,
) -> Iterator[Fit]:
    """Fit to all draws; yield what was found, in order.

    Each fit has one thread, whatever there is: so the bits are the same.
    """

    def one(draw: Draw) -> Fit:
        some = some_of(sample, draw.rows)
        part = None if weights is None else weights[draw.rows]
        return _fit(fresh(estimator, draw.seed), some, part)

    # Warnings of forty fits are no news; what they are about is counted.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, fit in enumerate(_in_order(one, drawn, n_threads), 1):
            if progress is not None:
                progress(number, len(drawn))
            yield fit


def _in_order(
    one: Callable[[Draw], Fit], drawn: list[Draw], n_threads: int
) -> Iterator[Fit]:
    if n_threads == 1:
        yield from map(one, drawn)
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        yield from pool.map(one, drawn)
    finally:  # after Ctrl-C no other fit begins
        pool.shutdown(cancel_futures=True)


def fresh(estimator: Any, seed: int | None) -> Any:
    """An estimator of the same parameters, quiet, in one thread, with this seed."""
    other = clone(estimator)
    settings: dict[str, Any] = {}
    for name in other.get_params():
        last = name.rpartition("__")[2]
        if last == "random_state" and seed is not None:
            settings[name] = seed
        elif last == "n_jobs":
            settings[name] = 1
        elif last == "verbose":
            settings[name] = False
    return other.set_params(**settings)


def as_fitted(model: Any, sample: Any) -> Any:
    """Rows as a fit to all of them reads them, so that fits to some of them do so, too.

    In a part of a table numbers of rows have gaps, and rare values may be missing.
    """
    return read_as_fitted(model, sample) if isinstance(model, Estimator) else sample


def _fit(estimator: Any, some: Any, weights: Array | None) -> Fit:
    try:
        groups = found_by(estimator, some, weights)
    except ValueError as error:  # such as a column without a value in these rows
        return Fit(None, error=str(error))
    n_found = (
        groups.shape[1] if groups.ndim == 2 else len(np.unique(groups[groups >= 0]))
    )
    return Fit(groups, n_found, bool(getattr(estimator, "converged_", True)))


def found_by(estimator: Any, X: Any, weights: Array | None = None) -> Any:
    """Fit; return the label of each row, or lines of bits."""
    given = {} if weights is None else {"sample_weight": weights}
    if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(f"{type(estimator).__name__}.fit takes no sample_weight.")
    if not is_for_features(estimator):
        return np.asarray(estimator.fit_predict(X, **given))
    return as_bits(estimator.fit(X, **given).transform(X))


def as_bits(Z: Any) -> Any:
    """Features of rows: those more likely than not."""
    Z = Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)
    return Z > 0.5
