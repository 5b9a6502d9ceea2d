"""Which features does a new row have? The marginal probabilities of its bits.

Given A the log-probability of z is z·c − zGz/2 and a constant, with G = AAᵀ/σx² and c
the log-odds before plus Ax/σx² (columns without a value left out of both).
"""

import math

import numba as nb
import numpy as np

__all__ = ["exact_marginals", "mean_field"]


@nb.njit(nogil=True, cache=True)
def _flip(k, z, field, G):
    """Flip bit k; return how the log-probability changes. `field` is c − Gz."""
    sign = 1.0 - 2.0 * z[k]
    change = sign * field[k] - 0.5 * G[k, k]
    z[k] = 1.0 - z[k]
    for i in range(len(z)):
        field[i] -= sign * G[k, i]
    return change


@nb.njit(nogil=True, cache=True)
def exact_marginals(c, G, out):
    """Sum over all 2^K patterns, of which neighbours differ in one bit (Gray code)."""
    K = c.shape[1]
    z, field = np.zeros(K), np.empty(K)
    for n in range(len(c)):
        z[:] = 0.0
        field[:] = c[n]
        out[n, :] = 0.0
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


@nb.njit(nogil=True, cache=True)
def mean_field(c, G, max_iter, tol, out):
    """Independent bits that fit best, from the best z that flips of one bit find."""
    K = c.shape[1]
    z, field = np.zeros(K), np.empty(K)
    for n in range(len(c)):
        z[:] = 0.0
        field[:] = c[n]
        while True:
            best, most = -1, 1e-12
            for k in range(K):
                gain = (1.0 - 2.0 * z[k]) * field[k] - 0.5 * G[k, k]
                if gain > most:
                    best, most = k, gain
            if best < 0:
                break
            _flip(best, z, field, G)
        for _ in range(max_iter):
            moved = 0.0
            for k in range(K):
                odds = field[k] + (z[k] - 0.5) * G[k, k]
                step = 1.0 / (1.0 + math.exp(-min(max(odds, -700.0), 700.0))) - z[k]
                z[k] += step
                moved = max(moved, abs(step))
                for i in range(K):
                    field[i] -= step * G[k, i]
            if moved < tol:
                break
        out[n, :] = z
