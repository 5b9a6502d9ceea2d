"""What a mixture says of missing values, given those observed in the same row.

A row x = (o, m) with observed part o has p(m | o) = Σ_k r_k p(m | o, rows of k), with
r_k ∝ w_k p(o | rows of k): parameters are integrated out, weights are those expected.
Noise has its share, too: its values are uniform over the box of the columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, softmax

from kplus.core.types import Array
from kplus.dp_mixture.families import NAMES
from kplus.dp_mixture.families.columns import draw_codes
from kplus.dp_mixture.families.family import Family
from kplus.dp_mixture.families.mixed import MixedFamily
from kplus.dp_mixture.noise import Noise

__all__ = ["MixtureFiller"]

_VALUES = {f"{about.cls}Family": about.values for about in NAMES.values()}


@dataclass(frozen=True)
class MixtureFiller:
    """See `kplus.base.imputation.Filler`; noise comes with its share."""

    family: Family
    N: Array
    S: Array
    log_weights: Array
    noise: tuple[Noise, float] | None = None

    @classmethod
    def of(cls, dp: Any) -> Self:
        """From a fitted estimator, whose weights and noise make 1."""
        share = 0.0 if dp._noise is None else dp.noise_share_
        weights = np.log(dp.weights_ / (1.0 - share))
        noise = None if dp._noise is None else (dp._noise, share)
        return cls(dp.observations_, dp._params.N, dp._params.S, weights, noise)

    def check(self, X: Array) -> None:
        self.family.check(X)

    def _shares(self, X: Array) -> tuple[Array, Array]:
        """r of components, which sum to 1; and the share of noise."""
        logs = self.family.log_predictive(self.N, self.S, X) + self.log_weights
        if self.noise is None:
            return softmax(logs, axis=1), np.zeros(len(X))
        noise, share = self.noise
        odds = noise.log_density(X) + np.log(share)
        odds -= logsumexp(logs, axis=1) + np.log1p(-share)
        return softmax(logs, axis=1), expit(odds)

    def expected(self, X: Array) -> Array:
        """Means of numbers, the likeliest bits and categories, whole counts."""
        shares, noise_share = self._shares(X)
        out = self.family.fill(self.N, self.S, X, shares)
        kinds = _kinds(self.family)
        if self.noise is not None:
            noise = self.noise[0]
            # A uniform density does not change which category is likeliest.
            r = np.where(kinds == "categories", 0.0, noise_share[:, None])
            middle = noise.low + 0.5 * (noise.width - noise.whole)
            out = np.where(np.isnan(X), (1.0 - r) * out + r * middle, out)
        whole = (kinds == "bits") | (kinds == "counts")
        return np.where(whole, np.rint(out), out)

    def draws(self, X: Array, n: int, rng: np.random.Generator) -> Sequence[Array]:
        """A component first, then all that is missing in the row given the rest."""
        shares, noise_share = self._shares(X)
        return [self._drawn(X, shares, noise_share, rng) for _ in range(n)]

    def _drawn(
        self, X: Array, shares: Array, noise_share: Array, rng: np.random.Generator
    ) -> Array:
        components = draw_codes(shares, rng)
        out = self.family.draw_missing(self.N, self.S, X, components, rng)
        if self.noise is None:
            return out
        is_noise = rng.random(len(X)) < noise_share
        gaps = np.isnan(X) & is_noise[:, None]
        return np.where(gaps, self.noise[0].draw(len(X), rng), out)


def _kinds(family: Any) -> NDArray[np.str_]:
    """Of each column, what values it holds, as `About` has it."""
    if not isinstance(family, MixedFamily):
        values = _VALUES.get(type(family).__name__, "numbers")
        return np.full(family.n_columns, values, dtype="U10")
    out = np.empty(family.n_columns, dtype="U10")
    for part, j in zip(family.parts, family.where, strict=True):
        out[j] = _kinds(part)
    return out
