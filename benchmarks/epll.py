"""Denoising by expected patch log-likelihood, with a mixture of patches as the prior.

Zoran & Weiss (ICCV 2011) look for the picture x that is near to the noisy y and whose
patches, all that overlap, are likely. Half-quadratic splitting takes turns: given x,
each patch is replaced by what is likeliest of it, if it were seen with noise of
variance 1/β; given these, x is their mean where they overlap, drawn to y. β grows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert

# In units of 1/σ². Chosen among twelve lists, the usual 1, 4, 8, 16, 32 being one, by
# eight pictures that the mixture was fitted to: others may gain less, or lose.
BETAS = (1.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0)
SMALLEST = 0.1  # share of the noise; directions with less variance count as none
BLOCK = 4096  # patches at a time, which stay in the processor's cache


@dataclass(frozen=True)
class PatchPrior:
    """A mixture of zero-mean Gaussians for patches less their mean.

    `axes` are the principal axes of each component, from the largest variance to the
    smallest, all at right angles to the constant patch.
    """

    log_weights: np.ndarray  # (K,)
    variances: np.ndarray  # (K, D - 1)
    axes: np.ndarray  # (K, D - 1, D)

    @classmethod
    def of(cls, weights: np.ndarray, covariances: np.ndarray) -> "PatchPrior":
        basis = helmert(covariances.shape[-1])
        values, vectors = np.linalg.eigh(basis @ covariances @ basis.T)
        axes = np.swapaxes(vectors, 1, 2) @ basis
        values = np.maximum(values[:, ::-1], 0.0)
        return cls(np.log(weights), values, axes[:, ::-1])

    @property
    def side(self) -> int:
        return round(self.axes.shape[-1] ** 0.5)

    def filters(self, noise: float, smallest: float) -> "list[Filter]":
        """What each component needs at this variance of the noise.

        Directions with less than `smallest` times that count as without variance, in
        the density as in the filter.
        """
        out = []
        for log_weight, values, axes in zip(
            self.log_weights, self.variances, self.axes, strict=True
        ):
            large = values > smallest * noise
            kept, axes = values[large], axes[large]
            score = log_weight - 0.5 * np.log1p(kept / noise).sum()
            gains = np.sqrt(0.5 * kept / (noise * (kept + noise)))
            shrunk = axes * np.sqrt(kept / (kept + noise))[:, None]
            scaled = axes * gains[:, None]
            out.append(
                Filter(score, scaled.astype(np.float32), shrunk.astype(np.float32))
            )
        return out


@dataclass(frozen=True)
class Filter:
    """A component at a level of noise, in float32.

    The log density of a patch p is `score` + |scaled p|², but for what is the same in
    all components; its Wiener filter is shrunkᵀ shrunk p.
    """

    score: float
    scaled: np.ndarray
    shrunk: np.ndarray


def likeliest(patches: np.ndarray, filters: Sequence[Filter]) -> np.ndarray:
    """The likeliest component of each patch, a column less its mean."""
    best = np.full(patches.shape[1], -np.inf, np.float32)
    found = np.zeros(patches.shape[1], np.int32)
    for k, one in enumerate(filters):
        product = one.scaled @ patches
        scores = np.einsum("ij,ij->j", product, product)
        scores += np.float32(one.score)
        found[scores > best] = k
        np.maximum(best, scores, out=best)
    return found


def restored(patches: np.ndarray, filters: Sequence[Filter]) -> np.ndarray:
    """Columns of patches by the Wiener filter of their likeliest component."""
    out = np.empty_like(patches)
    for start in range(0, patches.shape[1], BLOCK):
        block = patches[:, start : start + BLOCK]
        means = block.mean(axis=0)
        block = block - means
        found = likeliest(block, filters)
        clean = out[:, start : start + BLOCK]
        for k in np.unique(found):
            mine = np.flatnonzero(found == k)
            shrunk = filters[k].shrunk
            clean[:, mine] = shrunk.T @ (shrunk @ block[:, mine])
        clean += means
    return out


def patches_of(picture: np.ndarray, side: int) -> np.ndarray:
    """All patches that overlap, one a column, in float32."""
    height, width = (size - side + 1 for size in picture.shape)
    windows = np.lib.stride_tricks.sliding_window_view(picture, (height, width))
    return windows.reshape(side * side, -1).astype(np.float32)


def averaged(patches: np.ndarray, shape: tuple[int, int], side: int) -> np.ndarray:
    """The picture whose pixels are the means of all patches that they are in."""
    height, width = (size - side + 1 for size in shape)
    sums, counts = np.zeros(shape), np.zeros(shape)
    for i, row in enumerate(patches):
        place = np.s_[i // side : i // side + height, i % side : i % side + width]
        sums[place] += row.reshape(height, width)
        counts[place] += 1.0
    return sums / counts


def denoise(
    noisy: np.ndarray,
    prior: PatchPrior,
    sigma: float,
    betas: Sequence[float] = BETAS,
    smallest: float = SMALLEST,
) -> np.ndarray:
    """A picture with values from 0 to 1, without its noise of deviation `sigma`.

    A noisy pixel counts once for every patch that it is in, against β times what they
    say: at the border as elsewhere.
    """
    picture, side = noisy, prior.side
    for beta in betas:
        patches = patches_of(picture, side)
        clean = restored(patches, prior.filters(sigma**2 / beta, smallest))
        likely = averaged(clean, noisy.shape, side)
        picture = (noisy + beta * likely) / (1.0 + beta)
    return np.clip(picture, 0.0, 1.0)


def psnr(picture: np.ndarray, truth: np.ndarray) -> float:
    """Peak signal to noise in dB, where the peak is 1."""
    return float(-10.0 * np.log10(np.mean((picture - truth) ** 2)))
