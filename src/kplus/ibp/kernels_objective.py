"""The objective of one row in MEIBP (section 3.6), which is to be maximised.

For one row, f(z) = Σ_k u_k z_k − ½ zᵀQz − ln[(K₊ + c)!/K₊!], where c is the number of
`fresh` features chosen (those that no other row has), less f(∅) = 0. Written with
``lin = u − diag(Q)/2``, the gain of feature k given the others is
``w_k = lin_k − Σ_{j≠k} Q_kj z_j``, less the cost of a fresh one: O(1) per flip tried,
O(K) per flip made. For Q ≥ 0 the objective is submodular, and

- a local optimum A, or V∖A if that is better, reaches 1/3 of the range of f
  (`kernels_submodular`);
- the double greedy of Buchbinder et al. (2012) reaches 1/3, and 1/2 in expectation if
  it decides at random (`kernels_double_greedy`).

For a signed Q neither is guaranteed. `_ROUNDING` of what the numbers of a row add up to
is taken as no improvement, so that no bit flips to and fro for ever.
"""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import log
else:
    from numpy import log

__all__ = [
    "Objective",
    "cost",
    "keep_better",
    "need",
    "objective",
    "row_slack",
    "sums_beside_diagonal",
    "take_row",
    "value",
]

_ROUNDING = cy.declare(cy.double, 1e-12)


@cy.final
@cy.cclass
class Objective:
    """f of one row, see above, with room for its maximisers; `objective` makes one.

    Attributes
    ----------
    lin : (K,)
    Q : (K, K)
    sums : (K,)
        Of Q beside its diagonal.
    overlaps : (K,)
        The largest of each row of Q beside its diagonal, or 0; for exchanges.
    fresh : (K,) uint8
        Features that no other row has.
    base : int
        Number of the others, K₊.
    slack : float
        By how much f must rise to be higher by more than rounding.
    z : (K,) uint8
        What a maximiser chose.
    free, held : (K,)
        For gains of features that are not chosen, and of those that are.
    whole : bool
        Whether all of Q is there. Otherwise `need` computes the rows of it that are
        used, as `own`, and their overlaps, as `most`: `total` less the `grams` in
        ``listed[begin:end]``, or their sum if `sign` is positive.
    """

    def __init__(self, K: cy.Py_ssize_t) -> None:
        self.lin = np.empty(K)
        self.fresh = np.zeros(K, np.uint8)
        self.base = 0
        self.slack = 0.0
        self.z = np.zeros(K, np.uint8)
        self.free = np.empty(K)
        self.held = np.empty(K)
        self.whole = True


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _add_row(
    own: cy.double[:, ::1],
    k: cy.Py_ssize_t,
    sign: cy.double,
    grams: cy.const[cy.double][:, :, ::1],
    g: cy.Py_ssize_t,
) -> cy.void:
    """Q_k ± E[A_g A_gᵀ]_k, for `need`."""
    for j in range(own.shape[1]):
        own[k, j] += sign * grams[g, k, j]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def need(f: Objective, k: cy.Py_ssize_t) -> cy.void:
    """See that row k of Q is there: Q_kj = Σ_g E[a_k·a_j]_g over what a row has.

    A row with gaps of its own has a Q of its own, but a search uses only the rows of Q
    of features that it takes up. The diagonal is there before.
    """
    if f.whole or f.ready[k]:
        return
    K = f.own.shape[0]
    own: cy.double = f.own[k, k]
    for j in range(K):
        f.own[k, j] = f.total[k, j] if f.sign < 0.0 else 0.0
    for i in range(f.begin, f.end):
        _add_row(f.own, k, f.sign, f.grams, f.listed[i])
    f.own[k, k] = 0.0
    most: cy.double = 0.0
    for j in range(K):
        most = max(most, f.own[k, j])
    f.most[k] = most
    f.own[k, k] = own
    f.ready[k] = 1


def objective(
    lin: cy.double[::1],
    Q: cy.const[cy.double][:, ::1],
    fresh: cy.uchar[::1],
    base: cy.Py_ssize_t,
) -> Objective:
    """f of one row."""
    f = Objective(lin.shape[0])
    sums: cy.double[::1] = np.empty(lin.shape[0])
    sums_beside_diagonal(Q, sums)
    f.lin = lin
    f.Q = Q
    f.sums = sums
    f.fresh = fresh
    f.base = base
    f.slack = row_slack(lin, Q)
    return f


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def sums_beside_diagonal(
    Q: cy.const[cy.double][:, ::1], sums: cy.double[::1]
) -> cy.void:
    """sums_k = Σ_{j≠k} Q_kj."""
    for k in range(Q.shape[0]):
        total: cy.double = 0.0
        for j in range(k):
            total += Q[k, j]
        for j in range(k + 1, Q.shape[0]):
            total += Q[k, j]
        sums[k] = total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def row_slack(
    lin: cy.const[cy.double][::1], Q: cy.const[cy.double][:, ::1]
) -> cy.double:
    """By how much an objective must rise to be higher by more than rounding.

    10⁻¹² Σ_k (max(lin_k, 0) + Q_kk). Gains that come near zero are those of features
    with lin > 0 (or raised by a negative Q), so that features forbidden by a huge
    negative lin do not count.
    """
    total: cy.double = 0.0
    for k in range(lin.shape[0]):
        total += max(lin[k], 0.0) + Q[k, k]
    return _ROUNDING * total


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def take_row(
    f: Objective,
    B: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    linear: cy.const[cy.double][:, ::1],
    p: cy.Py_ssize_t,
) -> cy.void:
    """lin_k = b_k + linear_k − ½Q_kk of row n, which has pattern p, and its slack."""
    for k in range(B.shape[1]):
        f.lin[k] = B[n, k] + linear[p, k] - 0.5 * f.Q[k, k]
    f.slack = row_slack(f.lin, f.Q)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def cost(c: cy.Py_ssize_t, base: cy.Py_ssize_t) -> cy.double:
    """ln[(base + c)!/base!].

    MEIBP Eq. 20.
    """
    total: cy.double = 0.0
    for i in range(1, c + 1):
        total += log(base + i)
    return total


@cy.ccall
@cy.nogil
@cy.exceptval(check=False)
def value(f: Objective, z: cy.const[cy.uchar][::1]) -> cy.double:
    """f(z) = lin·z + ½Σ Q_kk z_k − ½zᵀQz − ln[(base + c)!/base!]; `free` is a buffer.

    MEIBP Eq. 19.
    """
    for k in range(z.shape[0]):
        f.free[k] = f.lin[k] + 0.5 * f.Q[k, k]
    for k in range(z.shape[0]):
        if z[k]:
            need(f, k)
            for j in range(z.shape[0]):
                f.free[j] -= 0.5 * f.Q[k, j]
    total: cy.double = 0.0
    c: cy.Py_ssize_t = 0
    for k in range(z.shape[0]):
        if z[k]:
            total += f.free[k]
            if f.fresh[k]:
                c += 1
    return total - cost(c, f.base)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def keep_better(
    f: Objective, f_z: cy.double, Z: cy.uchar[:, ::1], n: cy.Py_ssize_t
) -> cy.Py_ssize_t:
    """Write z over row n's bits if it is better; return how many bits changed.

    f(z) > f(Z_n).
    """
    bits: cy.Py_ssize_t = 0
    for k in range(Z.shape[1]):
        bits += f.z[k] != Z[n, k]
    if bits == 0:
        return 0
    if not f_z > value(f, Z[n]) + f.slack:
        return 0
    for k in range(Z.shape[1]):
        Z[n, k] = f.z[k]
    return bits
