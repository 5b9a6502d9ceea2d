"""Kernels of counts: gamma and beta functions of many numbers, and their differences.

By Stirling's series, which is exact to 1e-13 from 10 on; below that by steps of 1.
Differences are taken before anything cancels, so that large arguments cost no digits.
"""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import exp, log, log1p, sqrt
else:
    from numpy import exp, log, log1p, sqrt

__all__ = [
    "dispersion_evidence",
    "dispersion_expectations",
    "log_beta",
    "log_gain",
    "log_gains",
    "log_ways",
    "psi",
]

_HALF_LOG_2_PI = cy.declare(cy.double, 0.9189385332046727)
_LARGE = cy.declare(cy.double, 10.0)
_MOST = cy.declare(cy.double, 1e20)  # sizes with whose powers one can count
_HUGE = cy.declare(cy.double, 1e300)
_NEAR = cy.declare(cy.double, 12.0)  # counts between two that are summed one by one


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _series(x: cy.double) -> cy.double:
    """log Γ(x) less (x - ½) log x - x + ½ log 2π."""
    y = 1.0 / (x * x)
    rest = 1 / 1260.0 - y * (1 / 1680.0 - y / 1188.0)
    return (1 / 12.0 - y * (1 / 360.0 - y * rest)) / x


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def log_gain(a: cy.double, n: cy.double) -> cy.double:
    """log Γ(a + n) - log Γ(a) for a > 0 and n ≥ 0."""
    shift: cy.double = 1.0
    if n == 0.0:
        return 0.0
    while a < _LARGE:
        shift *= a / (a + n)
        a += 1.0
    out = (a + n - 0.5) * log1p(n / a) + n * (log(a) - 1.0)
    out += _series(a + n) - _series(a)
    if shift < 1.0:
        out += log(shift)
    return out


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def log_beta(a: cy.double, b: cy.double) -> cy.double:
    """log Γ(a) Γ(b) / Γ(a + b) for a, b > 0."""
    first: cy.double = 1.0
    second: cy.double = 1.0
    while a < _LARGE:
        first *= 1.0 + b / a
        a += 1.0
    while b < _LARGE:
        second *= 1.0 + a / b
        b += 1.0
    if first * second < _HUGE:
        out = log(first * second / sqrt(b))
    else:
        out = log(first) + log(second) - 0.5 * log(b)
    out += _HALF_LOG_2_PI - (a - 0.5) * log1p(b / a) - b * log1p(a / b)
    return out + _series(a) + _series(b) - _series(a + b)


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def psi(x: cy.double) -> cy.double:
    """The digamma function of x > 0."""
    out: cy.double = 0.0
    while x < _LARGE:
        out -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    rest = 1 / 252.0 - y * (1 / 240.0 - y / 132.0)
    series = y * (1 / 12.0 - y * (1 / 120.0 - y * rest))
    return out + log(x) - 0.5 / x - series


def log_gains(
    a: cy.const[cy.double][::1], n: cy.const[cy.double][:, ::1]
) -> np.ndarray:
    """log Γ(a_d + n_kd) - log Γ(a_d); the evidence of counts is made of these."""
    K, D = n.shape[0], n.shape[1]
    out_: cy.double[:, ::1] = (out := np.empty((K, D)))
    with cy.nogil:
        for k in range(K):
            for d in range(D):
                out_[k, d] = log_gain(a[d], n[k, d])
    return out


def log_ways(
    x: cy.const[cy.double][::1],
    columns: cy.const[cy.longlong][::1],
    sizes: cy.const[cy.double][:, ::1],
) -> np.ndarray:
    """log Γ(x + r) / (Γ(r) x!) for the sizes r of the column, (P, G).

    Pairs of a value and its column come by column, then by value: from one to the next
    it is often but a few counts.
    """
    P, G = x.shape[0], sizes.shape[1]
    out_: cy.double[:, ::1] = (out := np.zeros((P, G)))
    with cy.nogil:
        for p in range(P):
            again: cy.bint = p > 0 and columns[p] == columns[p - 1]
            known: cy.double = x[p - 1] if again else 0.0
            near: cy.bint = x[p] >= known and x[p] - known <= _NEAR
            for g in range(G):
                r = sizes[columns[p], g]
                if near and r < _MOST:
                    out_[p, g] = _log_steps(known, x[p], r)
                    if again:
                        out_[p, g] += out_[p - 1, g]
                else:
                    out_[p, g] = -log(x[p] + r) - log_beta(x[p] + 1.0, r)
    return out


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _log_steps(known: cy.double, x: cy.double, r: cy.double) -> cy.double:
    """log Π (r + i) / (1 + i) over the counts i from one up to another."""
    steps: cy.double = 1.0
    while known < x:
        steps *= (r + known) / (1.0 + known)
        known += 1.0
    return log(steps)


def dispersion_evidence(
    n: cy.const[cy.double][:, ::1],
    total: cy.const[cy.double][:, ::1],
    ways: cy.const[cy.double][:, :, ::1],
    sizes: cy.const[cy.double][:, ::1],
    rows: cy.const[cy.double][::1],
    counts: cy.const[cy.double][::1],
) -> np.ndarray:
    """What each column adds to the evidence of a negative binomial, (K, D).

    log mean_g exp(ways_g + log B(a + r n, b + x) - log B(a, b)), a = 1 + r rows and
    b = counts, over the sizes r of the column.
    """
    K, D, G = ways.shape[0], ways.shape[1], ways.shape[2]
    out_: cy.double[:, ::1] = (out := np.empty((K, D)))
    prior: cy.double[::1] = np.empty(G)
    logs: cy.double[::1] = np.empty(G)
    with cy.nogil:
        for d in range(D):
            for g in range(G):
                prior[g] = log_beta(1.0 + sizes[d, g] * rows[d], counts[d])
            for k in range(K):
                top = _log_shares(
                    n[k, d] + rows[d], total[k, d] + counts[d], k, d, ways, sizes,
                    prior, logs,
                )  # fmt: skip
                mass: cy.double = 0.0
                for g in range(G):
                    mass += exp(logs[g] - top)
                out_[k, d] = top + log(mass / G)
    return out


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _log_shares(
    rows: cy.double,
    counts: cy.double,
    k: cy.Py_ssize_t,
    d: cy.Py_ssize_t,
    ways: cy.const[cy.double][:, :, ::1],
    sizes: cy.const[cy.double][:, ::1],
    prior: cy.double[::1],
    out: cy.double[::1],
) -> cy.double:
    """The evidence of one column by the size r; gives the largest."""
    for g in range(ways.shape[2]):
        beta = log_beta(1.0 + sizes[d, g] * rows, counts)
        out[g] = ways[k, d, g] + beta - prior[g]
    top = out[0]
    for g in range(1, ways.shape[2]):
        top = max(top, out[g])
    return top


def dispersion_expectations(
    n: cy.const[cy.double][:, ::1],
    total: cy.const[cy.double][:, ::1],
    ways: cy.const[cy.double][:, :, ::1],
    sizes: cy.const[cy.double][:, ::1],
    rows: cy.const[cy.double][::1],
    counts: cy.const[cy.double][::1],
) -> tuple:
    """E[r log p], E[log(1 - p)], (K, D) both, and the shares of sizes, (K, D, G)."""
    K, D, G = ways.shape[0], ways.shape[1], ways.shape[2]
    stop_: cy.double[:, ::1] = (stop := np.zeros((K, D)))
    more_: cy.double[:, ::1] = (more := np.zeros((K, D)))
    shares_: cy.double[:, :, ::1] = (shares := np.empty((K, D, G)))
    prior: cy.double[::1] = np.empty(G)
    logs: cy.double[::1] = np.empty(G)
    with cy.nogil:
        for d in range(D):
            for g in range(G):
                prior[g] = log_beta(1.0 + sizes[d, g] * rows[d], counts[d])
            for k in range(K):
                a, b = n[k, d] + rows[d], total[k, d] + counts[d]
                top = _log_shares(a, b, k, d, ways, sizes, prior, logs)
                mass: cy.double = 0.0
                for g in range(G):
                    logs[g] = exp(logs[g] - top)
                    mass += logs[g]
                log_b = psi(b)
                for g in range(G):
                    share = logs[g] / mass
                    shares_[k, d, g] = share
                    if share > 0.0:
                        r = sizes[d, g]
                        both = psi(1.0 + r * a + b)
                        stop_[k, d] += share * r * (psi(1.0 + r * a) - both)
                        more_[k, d] += share * (log_b - both)
    return stop, more, shares
