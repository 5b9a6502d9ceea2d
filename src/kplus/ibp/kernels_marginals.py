"""The probabilities that a row has each feature, given what is known of the factors.

Exactly, for a known A: the log-probability of z is z·c − zGz/2 and a constant, with
G = AAᵀ/σx² and c the log-odds before plus Ax/σx² (columns without a value left out of
both).

By mean field: with b = E[A]x, G = E[AAᵀ] and `odds`, the log-odds of the prior, the
part of the bound that belongs to a row is ν·odds + p(ν·b − ½νᵀGν − ½Σν_k(1 − ν_k)G_kk)
+ entropy(ν), with p the precision of the noise. It is linear in each ν_k but for the
entropy. `rest` is b − Gν throughout. Row n has the matrix G[which[n]], that of its
observed columns.
"""

import math

import numpy as np

from kplus.core.kernels import fast_kernel, kernel

__all__ = ["ascend_rows", "exact_marginals", "seed_rows"]

_TIE = 1e-10  # gains that differ by less are equal but for rounding


@kernel
def _flip(k, z, field, G):
    """Flip bit k; return how the log-probability changes. `field` is c − Gz.

    ±(c − Gz)_k − ½G_kk.
    """
    sign = 1.0 - 2.0 * z[k]
    change = sign * field[k] - 0.5 * G[k, k]
    z[k] = 1.0 - z[k]
    for i in range(len(z)):
        field[i] -= sign * G[k, i]
    return change


@kernel
def exact_marginals(c, G, out):
    """Sum over all 2^K patterns, of which neighbours differ in one bit (Gray code).

    P(z_k = 1 | x, A), z·c − ½zGz being log P(z | x, A).
    """
    K = c.shape[1]
    z, field = np.empty(K), np.empty(K)
    for n in range(len(c)):
        for i in range(K):
            z[i], field[i], out[n, i] = 0.0, c[n, i], 0.0
        score, peak, total = 0.0, 0.0, 1.0
        for step in range(1, 2**K):
            k, rest = 0, step
            while rest % 2 == 0:
                k, rest = k + 1, rest // 2
            score += _flip(k, z, field, G)
            if score > peak:
                shrink = math.exp(peak - score)
                total *= shrink
                for i in range(K):
                    out[n, i] *= shrink
                peak = score
            weight = math.exp(score - peak)
            total += weight
            for i in range(K):
                out[n, i] += weight * z[i]
        for i in range(K):
            out[n, i] /= total


@fast_kernel
def ascend_rows(rest, G, which, odds, precision, most_sweeps, tol, nu):
    """Set each ν_k to its best value in turn until none moves by more than `tol`.

    q(Z) of MEIBP Eq. 2 in mean field (Doshi-Velez et al. 2009): ν_k = 1/(1 + exp
    −[odds_k + p(rest_k + (ν_k − ½)G_kk)]). `rest` and `nu` are changed.
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


@fast_kernel
def seed_rows(rest, G, which, odds, precision, nu):
    """Zeros and ones to start from: flip the bit that gains most until none does.

    Not in the papers. `nu` begins as zeros and `rest` as b; both are changed. Of bits
    that gain the same the first is flipped, so that equal rows go the same way.
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
