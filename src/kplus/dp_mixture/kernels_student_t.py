"""Kernels of rows with heavy tails: sums with the scales of rows, and tails.

Given its component, the scale u of a row is Gamma(a, b), with a = (τ + D)/2 the same
for all rows without gaps, and b = (τ + spread + squared distance)/2.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import product, product_of_transposed

if cy.compiled:
    from cython.cimports.libc.math import exp, log
else:
    from numpy import exp, log

__all__ = ["Tailed", "gather_scaled", "likeliest_tails"]

_CHUNK = cy.declare(cy.Py_ssize_t, 256)  # rows gathered at a time, to stay in the cache
_HALVINGS = cy.declare(cy.Py_ssize_t, 40)


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Tailed:
    """What K components expect."""

    means: cy.const[cy.double][:, ::1]  # (K, D)
    whiten: cy.const[cy.double][:, :, ::1]  # (K, D, D)
    shape: cy.const[cy.double][::1]  # a (K,)
    least: cy.const[cy.double][::1]  # b of a row at the mean (K,)


def gather_scaled(
    X: cy.const[cy.floating][:, ::1],
    origin: cy.const[cy.double][::1],
    inv: cy.const[cy.double][::1],
    starts: cy.const[cy.longlong][::1],
    rows: cy.const[cy.longlong][::1],
    weights: cy.const[cy.double][::1],
    expected: Tailed,
    out: cy.double[:, ::1],
    logs: cy.double[::1],
) -> None:
    """out[k] += [Σ w u y, the triangle of Σ w u y yᵀ, 0, Σ w u, 0] with u = a/b, the
    expected scale, and logs[k] += Σ w log b, over the rows of k.

    What `out` has of entropies and log u follows from `logs` and Σ w.
    """
    D, K = X.shape[1], out.shape[0]
    of_scale = out.shape[1] - 2
    plain: cy.double[:, ::1] = np.empty((_CHUNK, D))
    apart: cy.double[:, ::1] = np.empty((_CHUNK, D))
    turned: cy.double[:, ::1] = np.empty((_CHUNK, D))
    square: cy.double[:, ::1] = np.empty((D, D))
    at: cy.Py_ssize_t
    with cy.nogil:
        for k in range(K):
            start = starts[k]
            while start < starts[k + 1]:
                size = min(_CHUNK, starts[k + 1] - start)
                for i in range(size):
                    n = rows[start + i]
                    for d in range(D):
                        y: cy.double = (X[n, d] - origin[d]) * inv[d]
                        plain[i, d] = y
                        apart[i, d] = y - expected.means[k, d]
                product(apart, expected.whiten[k], size, turned)
                for i in range(size):
                    w = weights[start + i]
                    far: cy.double = 0.0
                    for d in range(D):
                        far += turned[i, d] * turned[i, d]
                    rate: cy.double = expected.least[k] + 0.5 * far
                    logs[k] += w * log(rate)
                    w *= expected.shape[k] / rate
                    out[k, of_scale] += w
                    for d in range(D):
                        apart[i, d] = w * plain[i, d]
                        out[k, d] += apart[i, d]
                product_of_transposed(apart, plain, size, square)
                at = D
                for d in range(D):
                    for e in range(D - d):
                        out[k, at + e] += square[d, d + e]
                    at += D - d
                start += size


def likeliest_tails(
    N: cy.const[cy.double][::1],
    slope: cy.const[cy.double][::1],
    prior_shape: cy.double,
    prior_rate: cy.double,
    least: cy.double,
    most: cy.double,
    out: cy.double[::1],
) -> None:
    """out[k] = τ between `least` and `most` where the derivative of the bound is 0.

    N/2 (log τ/2 + 1 - ψ(τ/2)) + `slope` + log p(τ)' falls with τ, so that halving the
    range of log τ finds where. p is a Gamma density.
    """
    middle: cy.double = 0.0
    with cy.nogil:
        for k in range(N.shape[0]):
            low: cy.double = log(least)
            high: cy.double = log(most)
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                half: cy.double = 0.5 * exp(middle)
                rising: cy.double = 0.5 * N[k] * (1.0 + log_over_digamma(half))
                rising += slope[k] + 0.5 * (prior_shape - 1.0) / half - prior_rate
                if rising > 0.0:
                    low = middle
                else:
                    high = middle
            out[k] = exp(0.5 * (low + high))


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def log_over_digamma(x: cy.double) -> cy.double:
    """log x - ψ(x) of a positive x.

    ψ(x) = ψ(x + 1) - 1/x up to 8, and from there the asymptotic series, to rounding.
    """
    more: cy.double = log(x)
    while x < 8.0:
        more += 1.0 / x
        x += 1.0
    r: cy.double = 1.0 / (x * x)
    series: cy.double = 1.0 / 12.0 - r * (
        1.0 / 120.0
        - r
        * (1.0 / 252.0 - r * (1.0 / 240.0 - r * (1.0 / 132.0 - r * (691.0 / 32760.0))))
    )
    return more - log(x) + 0.5 / x + r * series
