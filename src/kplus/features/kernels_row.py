"""The z of one row: flips of single bits, and the best of all 2^K (sphere decoding)."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import fabs, sqrt
else:
    from numpy import fabs, sqrt

__all__ = ["Search", "decode", "factor", "factor_into", "flip", "is_certain", "prepare"]


CLEAR = 1.0 - 1e-6  # what is certain is by so much no tie


@cy.final
@cy.cclass
class Search:
    """Products of features G = AAᵀ, one row, and room for the search of its z.

    ar: Ar, with the row's residual r = x − zA; signs: 1 − 2z; squares: G_kk; norms, the
    roots of these. For `flip`: slack, the least gain that is no rounding; changes.

    For `decode`: G = RᵀR with features in some order, and `columns`, Rᵀ; flips: the
    answer, bits to flip; turns, how many values of each bit were tried; trial, those
    bits; costs of the bits from one on; signs as `ordered`; centres, what is left of y
    given the bits behind.
    """

    def __init__(self, G: object) -> None:
        K = len(G)
        self.G = G
        self.ar, self.signs, self.squares, self.norms = np.zeros((4, K))
        self.slack, self.changes, self.ordered = np.zeros((3, K))
        self.order = np.arange(K, dtype=np.intp)
        self.R, self.columns, self.centres = np.zeros((3, K, K))
        self.costs = np.zeros(K + 1)
        self.flips, self.turns, self.trial = np.zeros((3, K + 1), np.uint8)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def prepare(search: Search) -> cy.void:
    """Note G_kk and its roots."""
    for k in range(search.G.shape[0]):
        search.squares[k] = search.G[k, k]
        search.norms[k] = sqrt(search.G[k, k])


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _lowest(search: Search, K: cy.Py_ssize_t) -> cy.double:
    """The lowest of the changes, or 0; four at a time, as each waits for the last."""
    a: cy.double = 0.0
    b: cy.double = 0.0
    c: cy.double = 0.0
    d: cy.double = 0.0
    for q in range(K // 4):
        k = 4 * q
        a = search.changes[k] if search.changes[k] < a else a
        b = search.changes[k + 1] if search.changes[k + 1] < b else b
        c = search.changes[k + 2] if search.changes[k + 2] < c else c
        d = search.changes[k + 3] if search.changes[k + 3] < d else d
    for k in range(K - K % 4, K):
        a = search.changes[k] if search.changes[k] < a else a
    return min(min(a, b), min(c, d))


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def flip(length: cy.double, search: Search) -> cy.void:
    """Flip the bit that helps most until none does.

    MAD-Bayes Algorithm 1, "choose the optimal value of z_nk": Δ_k = G_kk − 2(±(Ar)_k).
    Ar and the signs 1 − 2z follow. `length` is ‖x‖: changes below its rounding do not
    count.
    """
    K = search.G.shape[0]
    for k in range(K):
        search.slack[k] = -1e-14 * search.norms[k] * (length + search.norms[k])
    while True:
        for k in range(K):
            change: cy.double = search.squares[k] - 2.0 * search.signs[k] * search.ar[k]
            search.changes[k] = change if change < search.slack[k] else 0.0
        least = _lowest(search, K)
        if least == 0.0:
            return
        best: cy.Py_ssize_t = 0
        while search.changes[best] != least:
            best += 1
        sign: cy.double = search.signs[best]
        search.signs[best] = -sign
        for k in range(K):
            search.ar[k] -= sign * search.G[best, k]


# ----------------------------------------------------------- the best of all 2^K


def factor(G: cy.const[cy.double][:, ::1]) -> tuple:
    """Order features and factor G = RᵀR in that order; (order, R).

    The feature with the least left over comes first: it is decided last by `decode`,
    which begins where a wrong bit costs most. Features that depend on others get a
    row of zeros.
    """
    search = Search(G)
    factor_into(search)
    return np.array(search.order, np.int64), np.array(search.R)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def factor_into(search: Search) -> cy.void:
    """As `factor`, into a `Search`: Cholesky, the least left over first."""
    K = search.G.shape[0]
    for k in range(K):
        search.order[k], search.costs[k] = k, search.G[k, k]
        for j in range(K):
            search.R[k, j] = 0.0
    for i in range(K):
        least = i
        for j in range(i + 1, K):
            if search.costs[j] < search.costs[least]:
                least = j
        search.order[i], search.order[least] = search.order[least], search.order[i]
        search.costs[i], search.costs[least] = search.costs[least], search.costs[i]
        for m in range(i):
            search.R[m, i], search.R[m, least] = search.R[m, least], search.R[m, i]
        if search.costs[i] <= 1e-12 * search.G[search.order[i], search.order[i]]:
            continue
        root: cy.double = sqrt(search.costs[i])
        search.R[i, i] = root
        for j in range(i + 1, K):
            search.R[i, j] = search.G[search.order[i], search.order[j]]
        for m in range(i):
            f: cy.double = search.R[m, i]
            for j in range(i + 1, K):
                search.R[i, j] -= f * search.R[m, j]
        for j in range(i + 1, K):
            search.R[i, j] /= root
            search.costs[j] -= search.R[i, j] * search.R[i, j]
    for i in range(K):
        for j in range(K):
            search.columns[j, i] = search.R[i, j]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _centre(search: Search) -> cy.double:
    """Begin a search: y with Rᵀy = Ar; return ‖y‖²."""
    K = search.ar.shape[0]
    total: cy.double = 0.0
    last = K - 1
    for i in range(K):
        search.centres[last, i] = search.ar[search.order[i]]
        search.ordered[i] = search.signs[search.order[i]]
        search.flips[i] = 0
    for i in range(K):
        value: cy.double = 0.0
        if search.R[i, i] > 0.0:
            value = search.centres[last, i] / search.R[i, i]
        search.centres[last, i] = value
        total += value * value
        for j in range(i + 1, K):
            search.centres[last, j] -= search.R[i, j] * value
    return total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def is_certain(search: Search) -> cy.bint:
    """Whether no other z is as good: the first branches of `decode` end at once.

    With Rᵀy = Ar, to flip bit i and keep those behind it costs at least (y_i ± R_ii)²
    instead of Σ_j≤i y_j². If that is more for every i, none is flipped.
    """
    K = search.ar.shape[0]
    _centre(search)
    below: cy.double = 0.0
    for i in range(K):
        y: cy.double = search.centres[K - 1, i]
        own: cy.double = search.R[i, i]
        if not below < own * (CLEAR * own - 2.0 * search.ordered[i] * y):
            return False
        below += y * y
    return True


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def decode(search: Search, most_steps: cy.Py_ssize_t) -> cy.bint:
    """Find the bits to flip for the best z of all 2^K by depth-first search.

    Not in the paper: argmin_z ‖x − zA‖², the step of MAD-Bayes Algorithm 4, over all z
    at once (sphere decoding). Bits to flip are sought, f, so that a large feature that
    stays costs no digits: with signs s = 1 − 2z, ‖r − (f·s)A‖² is ‖y − R(f·s)‖² and a
    constant, where Rᵀy = Ar. Bits are decided from the last to the first, the likelier
    value first; a branch ends where its part of the sum exceeds the best known whole.
    After `most_steps` the best so far is kept. True if that was the end.
    """
    K = search.ar.shape[0]
    if K == 0:
        return False
    best: cy.double = _centre(search) * (1.0 - 1e-10)
    level = K - 1
    search.turns[level] = 0
    search.costs[K] = 0.0
    for _ in range(most_steps):
        if level == K:
            break
        turn = search.turns[level]
        if turn == 2:
            level += 1
            continue
        gap: cy.double = search.centres[level, level]
        step: cy.double = search.ordered[level] * search.R[level, level]
        bit: cy.uchar = (fabs(gap - step) < fabs(gap)) ^ turn
        search.trial[level] = bit
        search.turns[level] = turn + 1
        gap -= bit * step
        cost: cy.double = search.costs[level + 1] + gap * gap
        if cost >= best:
            search.turns[level] = 2  # the other value costs more still
        elif level > 0:
            search.costs[level] = cost
            taken: cy.double = bit * search.ordered[level]
            for i in range(level):
                search.centres[level - 1, i] = (
                    search.centres[level, i] - taken * search.columns[level, i]
                )
            level -= 1
            search.turns[level] = 0
        else:
            best = cost
            for i in range(K):
                search.flips[search.order[i]] = search.trial[i]
    return level < K
