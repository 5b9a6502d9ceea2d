"""Coordinate ascent for the probabilities that a row has each feature.

With b = E[A]x, G = E[AAᵀ] and `odds`, the log-odds of the prior, the part of the bound
that belongs to a row is ν·odds + p(ν·b − ½νᵀGν − ½Σν_k(1 − ν_k)G_kk) + entropy(ν), with
p the precision of the noise. It is linear in each ν_k but for the entropy. `rest` is
b − Gν throughout. Row n has the matrix G[which[n]], that of its observed columns.
"""

import numba as nb
import numpy as np

__all__ = ["ascend_rows", "seed_rows"]

FAST = {"contract", "reassoc"}
_TIE = 1e-10  # gains that differ by less are equal but for rounding


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def ascend_rows(rest, G, which, odds, precision, most_sweeps, tol, nu):
    """Set each ν_k to its best value in turn until none moves by more than `tol`.

    `rest` and `nu` are changed.
    """
    n_rows, K = nu.shape
    for n in range(n_rows):
        gram, left, z = G[which[n]], rest[n], nu[n]
        for _ in range(most_sweeps):
            largest = 0.0
            for k in range(K):
                field = odds[k] + precision * (left[k] + (z[k] - 0.5) * gram[k, k])
                step = 1.0 / (1.0 + np.exp(-field)) - z[k]
                if step == 0.0:
                    continue
                largest = max(largest, abs(step))
                z[k] += step
                row = gram[k]
                for j in range(K):
                    left[j] -= step * row[j]
            if largest <= tol:
                break


@nb.njit(nogil=True, cache=True, fastmath=FAST)
def seed_rows(rest, G, which, odds, precision, nu):
    """Zeros and ones to start from: flip the bit that gains most until none does.

    `nu` begins as zeros and `rest` as b; both are changed. Of bits that gain the same
    the first is flipped, so that equal rows go the same way.
    """
    n_rows, K = nu.shape
    for n in range(n_rows):
        gram, left, z = G[which[n]], rest[n], nu[n]
        for _ in range(4 * K):
            best, most = -1, 0.0
            for k in range(K):
                sign = 1.0 - 2.0 * z[k]
                weight = precision * gram[k, k]
                gain = sign * (odds[k] + precision * left[k]) - 0.5 * weight
                if gain > most + _TIE * (1.0 + weight):
                    best, most = k, gain
            if best < 0:
                break
            sign = 1.0 - 2.0 * z[best]
            z[best] += sign
            row = gram[best]
            for j in range(K):
                left[j] -= sign * row[j]
