"""Collapsed local search over feature allocations: A follows every change of Z at once.

With row n taken out, A₋ and H₋ = (ZᵀWZ)⁻¹ without it, putting it back with z adds
w‖x − zA₋‖²/(1 + w zH₋z) to the error (Eq. 10 of MAD-Bayes, one row at a time). H, A and
G = AAᵀ follow by rank-one updates: O(KD + K²) per row, O(1) per flip tried.

The first `locked` columns of Z are ones for every row and stay so (a base feature).
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import (
    add_product,
    add_product_of_rows,
)
from cython.cimports.kplus.features.kernels_columns import Fit, fit_to
from cython.cimports.kplus.features.kernels_patterns import (
    Work,
    choose_by_flips,
    choose_by_pairs,
    choose_of_all,
    clearly_below,
)

__all__ = ["ALL", "PAIRS", "SINGLE", "improve"]

# How many bits of a row are changed at once.
SINGLE, PAIRS, ALL = 0, 1, 2
_SINGLE = cy.declare(cy.int, 0)
_PAIRS = cy.declare(cy.int, 1)

_ALONE = cy.declare(
    cy.double, 1e-5
)  # a row that alone holds up a feature has less room
_NEVER = cy.declare(cy.double, -float("inf"))
_CHUNK = cy.declare(cy.Py_ssize_t, 120)  # the most rows looked at together
_CALM = cy.declare(cy.Py_ssize_t, 8)  # so many rows stayed: look at some together


@cy.final
@cy.cclass
class _Chunk:
    """Rows looked at together; for each feature and row z, b = Ax, Gz and Hz."""

    ones: cy.double[:, ::1]  # (K, chunk)
    b: cy.double[:, ::1]
    gz: cy.double[:, ::1]
    hz: cy.double[:, ::1]
    held: cy.double[::1]  # (chunk,) zHz, then 1/(1 − w zHz)
    rr: cy.double[::1]  # (chunk,) ‖r‖²
    least: cy.double[::1]  # (chunk,) a cost below it is lower
    helps: cy.double[::1]  # (chunk,) how many flips help

    def __init__(self, K: cy.Py_ssize_t) -> None:
        self.ones, self.b, self.gz, self.hz = np.zeros((4, K, _CHUNK))
        self.held, self.rr, self.least, self.helps = np.zeros((4, _CHUNK))


# --------------------------------------------------------------------- one row


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _take_out(
    X: cy.const[cy.double][:, ::1], n: cy.Py_ssize_t, fit: Fit, work: Work
) -> cy.bint:
    """What row n leaves when it is taken out; False if it alone holds up a feature.

    Given z, weight and ‖x‖²: h = Hz, b = A₋x and ar = Ar, with the row's residual r;
    H₋ = H + scale hhᵀ.
    """
    K, D = fit.A.shape[0], fit.A.shape[1]
    for i in range(K):
        work.h[i] = 0.0
        work.ar[i] = 0.0
    for j in range(K):
        z: cy.double = work.z[j]
        for i in range(K):
            work.h[i] += z * fit.H[j, i]
            work.ar[i] += z * fit.G[j, i]
    held: cy.double = 0.0
    for i in range(K):
        held += work.z[i] * work.h[i]
    room: cy.double = 1.0 - work.weight * held
    if room < _ALONE:
        return False
    along: cy.double = work.xx  # r·x
    rr: cy.double = work.xx
    for i in range(K):
        b: cy.double = 0.0
        for d in range(D):
            b += fit.A[i, d] * X[n, d]
        work.b[i] = b
        work.ar[i] = b - work.ar[i]
        along -= work.z[i] * b
        rr -= work.z[i] * (b + work.ar[i])
    work.scale = work.weight / room
    work.rr = max(rr, 0.0)
    work.bottom = 1.0 / room
    for i in range(K):
        work.b[i] -= work.scale * work.h[i] * along
    return True


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _stays(locked: cy.Py_ssize_t, fit: Fit, work: Work) -> cy.bint:
    """Whether no flip of a single bit lowers the row's cost.

    With r₋ = x − zA₋ = r/room and A₋r₋, all that a flip changes is known without
    building H₋ and G₋: a row that stays costs O(K) beyond its products with A. Here
    `bottom` is 1/room, which is 1 + w zH₋z.
    """
    more: cy.double = work.bottom
    rr: cy.double = work.rr
    scale: cy.double = work.scale
    top: cy.double = rr * more * more
    least: cy.double = clearly_below(rr * more, work.xx)
    moves: cy.double = 0.0
    for k in range(locked, fit.G.shape[0]):
        sign: cy.double = 2.0 - 4.0 * work.z[k]
        h: cy.double = work.h[k]
        gap: cy.double = (work.ar[k] - scale * h * rr) * more  # A₋r₋
        g: cy.double = fit.G[k, k] - scale * h * (2.0 * work.ar[k] - scale * rr * h)
        up: cy.double = g - sign * gap
        down: cy.double = fit.H[k, k] + h * (scale * h + sign * more)
        moves += 1.0 if top + up < least * (more + work.weight * down) else 0.0
    return moves == 0.0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _build(fit: Fit, work: Work) -> cy.void:
    """H₋ = H + s hhᵀ and G₋ = A₋A₋ᵀ, with A₋ = A − s h rᵀ."""
    K = fit.G.shape[0]
    for i in range(K):
        h: cy.double = work.scale * work.h[i]
        f: cy.double = work.scale * work.ar[i] - work.scale * work.rr * h
        for j in range(K):
            work.H[i, j] = fit.H[i, j] + h * work.h[j]
            work.G[i, j] = fit.G[i, j] - f * work.h[j] - h * work.ar[j]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _put_back(
    X: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    Z: cy.uchar[:, ::1],
    fit: Fit,
    work: Work,
) -> cy.void:
    """Let H, A and G follow row n from its z in Z to that in `work`.

    H = H₋ − s hhᵀ, A = A₋ + s h rᵀ.
    """
    K, D = fit.A.shape[0], fit.A.shape[1]
    for d in range(D):
        work.r[d] = X[n, d]
    for k in range(K):
        if Z[n, k]:
            for d in range(D):
                work.r[d] -= fit.A[k, d]
    for k in range(K):
        f: cy.double = work.scale * work.h[k]
        for d in range(D):
            fit.A[k, d] -= f * work.r[d]
    for d in range(D):
        work.r[d] = X[n, d]
    for k in range(K):
        if work.z[k] > 0.0:
            for d in range(D):
                work.r[d] -= fit.A[k, d]
    for k in range(K):
        work.h[k] = 0.0
    for j in range(K):
        for k in range(K):
            work.h[k] += work.z[j] * work.H[j, k]
    held: cy.double = 0.0
    for k in range(K):
        held += work.z[k] * work.h[k]
    scale: cy.double = work.weight / (1.0 + work.weight * held)
    rr: cy.double = 0.0
    for d in range(D):
        rr += work.r[d] * work.r[d]
    for k in range(K):
        ar: cy.double = 0.0
        for d in range(D):
            ar += fit.A[k, d] * work.r[d]
        work.ar[k] = ar
    for k in range(K):
        f = scale * work.h[k]
        g: cy.double = scale * work.ar[k] + scale * rr * f
        for d in range(D):
            fit.A[k, d] += f * work.r[d]
        for j in range(K):
            fit.H[k, j] = work.H[k, j] - f * work.h[j]
            fit.G[k, j] = work.G[k, j] + g * work.h[j] + f * work.ar[j]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _move(
    X: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    Z: cy.uchar[:, ::1],
    locked: cy.Py_ssize_t,
    flips: cy.int,
    fit: Fit,
    work: Work,
) -> cy.bint:
    """Give row n the best z there is, and let the fit follow; whether it is new."""
    K = Z.shape[1]
    for k in range(K):
        work.z[k] = Z[n, k]
    if work.weight == 0.0 or not _take_out(X, n, fit, work):
        return False
    if flips == _SINGLE and _stays(locked, fit, work):
        return False
    _build(fit, work)
    if flips == _SINGLE:
        choose_by_flips(work, locked)
    elif flips == _PAIRS:
        choose_by_pairs(work, locked)
    else:
        choose_of_all(work, locked)
    differs: cy.bint = False
    for k in range(K):
        differs |= work.z[k] != Z[n, k]
    if differs:
        _put_back(X, n, Z, fit, work)
        for k in range(K):
            Z[n, k] = cy.cast(cy.uchar, work.z[k])
    return differs


# ------------------------------------------------------------ rows looked at together


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _multiply(
    x: cy.const[cy.double][:, ::1], Z: cy.uchar[:, ::1], fit: Fit, chunk: _Chunk
) -> cy.void:
    """Ax, Gz and Hz of some rows."""
    m, K, D = x.shape[0], fit.A.shape[0], fit.A.shape[1]
    for n in range(m):
        for k in range(K):
            chunk.ones[k, n] = Z[n, k]
    add_product_of_rows(1.0, fit.A, x, K, m, D, 0.0, chunk.b)
    add_product(1.0, fit.G, chunk.ones, K, m, K, 0.0, chunk.gz)
    add_product(1.0, fit.H, chunk.ones, K, m, K, 0.0, chunk.hz)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _take_out_each(
    weights: cy.const[cy.double][::1],
    squares: cy.const[cy.double][::1],
    chunk: _Chunk,
) -> cy.void:
    """What `_take_out` says of single rows, of several: 1/room, ‖r‖², and costs."""
    m = weights.shape[0]
    for n in range(m):
        chunk.held[n] = 0.0
        chunk.rr[n] = squares[n]
        chunk.helps[n] = 0.0
    for k in range(chunk.ones.shape[0]):
        for n in range(m):
            z: cy.double = chunk.ones[k, n]
            chunk.held[n] += z * chunk.hz[k, n]
            chunk.rr[n] -= z * (2.0 * chunk.b[k, n] - chunk.gz[k, n])
    for n in range(m):
        more: cy.double = 1.0 / (1.0 - weights[n] * chunk.held[n])
        rr: cy.double = chunk.rr[n] if chunk.rr[n] > 0.0 else 0.0
        chunk.held[n] = more
        chunk.rr[n] = rr
        chunk.least[n] = clearly_below(rr * more, squares[n])


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _count_flips(
    weights: cy.const[cy.double][::1],
    locked: cy.Py_ssize_t,
    fit: Fit,
    chunk: _Chunk,
) -> cy.void:
    """How many flips help each row, see `_stays`."""
    for k in range(locked, fit.G.shape[0]):
        square: cy.double = fit.G[k, k]
        own: cy.double = fit.H[k, k]
        for n in range(weights.shape[0]):
            more: cy.double = chunk.held[n]
            rr: cy.double = chunk.rr[n]
            scale: cy.double = weights[n] * more
            sign: cy.double = 2.0 - 4.0 * chunk.ones[k, n]
            h: cy.double = chunk.hz[k, n]
            ar: cy.double = chunk.b[k, n] - chunk.gz[k, n]
            up: cy.double = (
                square
                - scale * h * (2.0 * ar - scale * rr * h)
                - sign * (ar - scale * h * rr) * more
            )
            down: cy.double = own + h * (scale * h + sign * more)
            bar: cy.double = chunk.least[n] * (more + weights[n] * down)
            chunk.helps[n] += 1.0 if rr * more * more + up < bar else 0.0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _look(
    x: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    squares: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
    locked: cy.Py_ssize_t,
    fit: Fit,
    chunk: _Chunk,
) -> cy.Py_ssize_t:
    """The first of some rows for which a flip helps, or their number."""
    _multiply(x, Z, fit, chunk)
    _take_out_each(weights, squares, chunk)
    _count_flips(weights, locked, fit, chunk)
    for n in range(x.shape[0]):
        if chunk.helps[n] > 0.0:
            return n
    return x.shape[0]


# ----------------------------------------------------------------------- sweeps


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _sweep(
    X: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    squares: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
    locked: cy.Py_ssize_t,
    flips: cy.int,
    fit: Fit,
    work: Work,
    chunk: _Chunk,
) -> cy.Py_ssize_t:
    """Visit every row once; return how many changed.

    One round of MAD-Bayes Algorithm 3. Where rows stayed lately, the next ones are
    looked at together: all that stay as the fit is now are left behind at once.
    """
    N = X.shape[0]
    changed: cy.Py_ssize_t = 0
    calm: cy.Py_ssize_t = 0  # rows that stayed since the last change
    n: cy.Py_ssize_t = 0
    while n < N:
        if calm >= _CALM and flips == _SINGLE:
            stop = min(n + min(2 * calm, _CHUNK), N)
            stayed = _look(
                X[n:stop], weights[n:stop], squares[n:stop], Z[n:stop],
                locked, fit, chunk,
            )  # fmt: skip
            calm += stayed
            n += stayed
            if n == stop:
                continue
        work.weight = weights[n]
        work.xx = squares[n]
        differs = _move(X, n, Z, locked, flips, fit, work)
        calm = 0 if differs else calm + 1
        changed += differs
        n += 1
    return changed


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _copy(Z: cy.uchar[:, ::1], to: cy.uchar[:, ::1]) -> cy.void:
    """To = Z."""
    for n in range(Z.shape[0]):
        for k in range(Z.shape[1]):
            to[n, k] = Z[n, k]


def improve(
    X: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    squares: cy.const[cy.double][::1],
    Z: cy.uchar[:, ::1],
    locked: cy.Py_ssize_t,
    flips: cy.int,
    max_sweeps: cy.Py_ssize_t,
    target: cy.double,
) -> float:
    """Sweep until no row changes; return the error, infinite where Z is singular.

    MAD-Bayes Algorithm 3 for a given K: a local minimum of Eq. 10, tr X'(I −
    Z(Z'Z)⁻¹Z')X. Z is changed in place; `squares` are ‖x‖². Where single flips change
    no row, `flips` says what is tried next: PAIRS, or ALL patterns. A is refitted after
    each sweep, so that rounding does not build up; a sweep that raised the error by
    rounding is undone. The search ends early where two more sweeps that gain as much as
    the last would leave the error above `target`.
    """
    K, D = Z.shape[1], X.shape[1]
    fit, chunk = Fit(K, D), _Chunk(K)
    work = Work(K, D, 1 << (K - locked) if flips == ALL else K)
    before: cy.uchar[:, ::1] = np.empty((Z.shape[0], K), np.uint8)
    total: cy.double = np.dot(weights, squares)
    with cy.nogil:
        explained = fit_to(X, weights, Z, K, fit)
        for _ in range(max_sweeps):
            if explained == _NEVER:
                break
            _copy(Z, before)
            changed = _sweep(X, weights, squares, Z, locked, _SINGLE, fit, work, chunk)
            if flips != _SINGLE and changed == 0:
                changed = _sweep(
                    X, weights, squares, Z, locked, flips, fit, work, chunk
                )
            if changed == 0:
                break
            after = fit_to(X, weights, Z, K, fit)
            if not after > explained:
                _copy(before, Z)
                break
            gain = after - explained
            explained = after
            if total - explained - 2.0 * gain > target:
                break
    return total - explained
