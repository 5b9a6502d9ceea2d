"""Columns of numbers in units in which they are nearer to normal inside components.

A column x becomes y = T(x), one-to-one and smooth, so that the density of a row is
p(x) = p(y) Π |T'(x)|: bounds with and without such units compare.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError
from kplus.core.types import Array, IntArray
from kplus.dp_mixture.families.columns import label, refuse_categories, refuse_infinite
from kplus.dp_mixture.families.family import Columns, Family, of_columns
from kplus.dp_mixture.families.gaussian import Gaussian
from kplus.dp_mixture.families.inner import InnerFamily
from kplus.dp_mixture.families.learning import resolutions
from kplus.dp_mixture.families.units import (
    KINDS,
    LOG,
    LOGIT,
    NONE,
    POWER,
    Units,
    suiting,
)

__all__ = ["Transformed", "TransformedFamily"]

_AUTO = -1  # no kind, but the choice of one
_OPEN = (_AUTO, POWER)  # what the data have to say more about


@dataclass(frozen=True, eq=False)
class Transformed:
    """Numbers in units of their own: logarithms, powers, logits of shares.

    Parameters
    ----------
    numbers : Likelihood, default=Gaussian()
        What the columns are in their new units.
    transforms : "auto" or dict, default="auto"
        A transform for each column that is to have one, by its name or position:
        "log" (positive, skewed to the right), "logit" (shares between 0 and 1), "power"
        (skewed to the right or to the left, of any sign), "auto" (what suits it) or
        "none". Columns that are not named have none; "auto" alone is for all of them.

    Notes
    -----
    What suits a column is judged inside the components of a short fit to at most 1,000
    rows: that in which its values are likeliest as Gaussians, slopes included. A fit in
    these units follows, and so on while the bound rises. Other units than the data's
    are taken only if the bound gains 0.02 nats per row and changed column, and with no
    more components; never for columns of which less than a quarter of the values
    differ.

    Logarithms and logits go on as straight lines beyond half of the smallest value (for
    shares also beyond half of the rest of the largest), so that no later value is out
    of bounds. A power is that of Yeo and Johnson (2000) about the least value, for a
    tail to the right, or about the largest, for one to the left.

    ``means_`` are in the units of the data (of a logarithm the median), all other
    attributes in the new ones. ``log_columns_``, ``logit_columns_`` and
    ``power_columns_`` are the positions of the columns that have such units,
    ``column_powers_`` has the powers: 1 is none, below 1 takes off a tail to the right,
    above 1 one to the left.

    References
    ----------
    I.-K. Yeo and R. A. Johnson, "A new family of power transformations to improve
    normality or symmetry", Biometrika 87 (2000).

    Examples
    --------
    >>> from kplus.observations import DiagGaussian, Transformed
    >>> incomes = Transformed(DiagGaussian(), transforms={"income": "log"})
    """

    numbers: Any = field(default_factory=Gaussian)
    transforms: Any = "auto"

    def resolve(
        self, sample: Array, weights: Array | None, columns: Columns
    ) -> "TransformedFamily":
        refuse_categories(columns, "transformed")
        refuse_infinite(sample, columns.names)
        given = None
        if not isinstance(self.transforms, str) or self.transforms != "auto":
            given = _given(self.transforms, columns)
            _refuse_outside(sample, given, columns.names)
            units = Units.of(sample, np.where(np.isin(given, _OPEN), NONE, given))
        if given is None or np.any(np.isin(given, _OPEN)):
            # What fits rows to families is built upon them.
            from kplus.dp_mixture.unit_choice import best_units

            units = best_units(self, _options(sample, given), sample, weights, columns)
        return self.in_units(units, sample, weights, columns)

    def in_units(
        self, units: Units, sample: Array, weights: Array | None, columns: Columns
    ) -> "TransformedFamily":
        """With units that are known."""
        inner = self.numbers.resolve(units.transform(sample), weights, columns)
        if np.any(getattr(inner, "resolution", 0.0)):
            # A step of x is one of T'(x) times that, which is not the same everywhere.
            steps = resolutions(sample) * units.mean_square_slopes(sample)
            rounded = (units.kinds != NONE) & _has_ties(sample)
            own = inner.resolution * np.ones(len(steps))
            resolution = np.where(rounded, steps * inner.inv**2, own)
            inner = replace(inner, resolution=resolution)
        return TransformedFamily(
            units.kinds, units.low, units.high, inner, units.powers
        )


def _has_ties(sample: Array) -> NDArray[np.bool_]:
    """Which columns hold a value twice: they were rounded."""
    seen = (x[~np.isnan(x)] for x in sample.T)
    return np.array([len(np.unique(x)) < len(x) for x in seen], np.bool_)


def _options(sample: Array, given: IntArray | None) -> list[list[Units]]:
    """What each column may be measured in."""
    out = [suiting(x) for x in sample.T]
    for d, kind in enumerate(() if given is None else given):
        if kind == _AUTO:
            continue
        of_kind = [units for units in out[d] if units.kinds[0] == kind]
        column = sample[:, d : d + 1]
        own = NONE if kind == POWER else kind  # of a column without a shape
        out[d] = of_kind or [Units.of(column, np.array([own]))]
    return out


def _given(transforms: Any, columns: Columns) -> IntArray:
    if not isinstance(transforms, dict):
        raise ValueError(
            f"transforms must be 'auto' or a dict of columns, got {transforms!r}."
        )
    kinds = np.zeros(len(columns.names), np.int64)
    for column, kind in transforms.items():
        known = columns.names if isinstance(column, str) else range(len(kinds))
        if column not in known:
            raise ValueError(
                f"transforms names the column {column!r}, which the table does not "
                f"have among its numbers."
            )
        if kind not in (*KINDS, "auto"):
            raise ValueError(
                f"transforms gives {column!r} {kind!r}; it may be one of "
                f"{(*KINDS, 'auto')}."
            )
        at = _AUTO if kind == "auto" else KINDS.index(kind)
        kinds[known.index(column)] = at
    return kinds


def _refuse_outside(sample: Array, kinds: IntArray, names: tuple[str, ...]) -> None:
    for d in np.flatnonzero((kinds == LOG) | (kinds == LOGIT)):
        x = sample[:, d]
        if np.any(x <= 0.0) or (kinds[d] == LOGIT and np.any(x >= 1.0)):
            where = "above 0" if kinds[d] == LOG else "between 0 and 1"
            raise DataError(
                f"{label(names[d])} holds values that are not {where}, so that it "
                f"cannot be transformed by {KINDS[kinds[d]]!r}; choose another."
            )


@dataclass(frozen=True, eq=False)
class TransformedFamily(InnerFamily):
    """See `Transformed`; everything but log h is that of `inner` in the new units."""

    kinds: IntArray
    low: Array
    high: Array
    inner: Family
    powers: Array | float = 1.0

    def consistent(self) -> bool:
        D = self.inner.n_columns
        shapes = of_columns(D, self.kinds, self.low, self.high, self.powers)
        known = np.all((self.kinds >= 0) & (self.kinds < len(KINDS)))
        bent = (self.kinds == LOG) | (self.kinds == LOGIT)
        lows = np.all((self.low > 0.0) | ~bent)
        lows &= np.all((self.high > 0.0) & (np.abs(self.powers - 1.0) <= 1.0))
        return bool(shapes and known and lows and len(self.kinds) == D)

    @property
    def units(self) -> Units:
        powers = self.powers * np.ones(len(self.kinds))
        return Units(self.kinds, self.low, self.high, powers)

    @property
    def n_columns(self) -> int:
        return self.inner.n_columns

    def _in(self, X: Array) -> Array:
        return self.units.transform(X)

    def check(self, X: Array) -> None:
        self.inner.check(self._in(X))

    def log_base(self, X: Array) -> Array:
        return self.inner.log_base(self._in(X)) + self.units.log_slopes(X)

    def log_predictive(self, N: Array, S: Array, X: Array) -> Array:
        out = self.inner.log_predictive(N, S, self._in(X))
        out += self.units.log_slopes(X)[:, None]
        return out

    def draw(
        self, N: Array, S: Array, counts: IntArray, rng: np.random.Generator
    ) -> Array:
        return self.units.inverse_transform(self.inner.draw(N, S, counts, rng))

    def fill(self, N: Array, S: Array, X: Array, shares: Array) -> Array:
        """Means in the new units, brought back: those of exp(y) may be infinite."""
        return self._out(self.inner.fill(N, S, self._in(X), shares), X)

    def draw_missing(
        self, N: Array, S: Array, X: Array, components: IntArray, rng: Any
    ) -> Array:
        return self._out(self.inner.draw_missing(N, S, self._in(X), components, rng), X)

    def _out(self, Y: Array, X: Array) -> Array:
        """X with what was missing from Y, in the units of the data."""
        return np.where(np.isnan(X), self.units.inverse_transform(Y), X)

    def attributes(self, N: Array, S: Array) -> dict[str, Any]:
        out = dict(self.inner.attributes(N, S))
        if "means_" in out:
            out["means_"] = self.units.inverse_transform(out["means_"])
        for kind in (LOG, LOGIT, POWER):
            out[f"{KINDS[kind]}_columns_"] = np.flatnonzero(self.kinds == kind)
        out["column_powers_"] = self.units.powers
        return out
