"""The best z of one row that was taken out of a collapsed fit.

Putting it back with z costs ‖x − zA₋‖²/(1 + w zH₋z), see `kernels_collapsed`. Here
top = ‖x‖² − 2z·b + zG₋z is what stands above, bottom what stands below.
"""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import fabs
else:
    from numpy import fabs

__all__ = [
    "Work",
    "choose_by_flips",
    "choose_by_pairs",
    "choose_of_all",
    "clearly_below",
]


@cy.final
@cy.cclass
class Work:
    """What belongs to one row that is taken out.

    z; its weight, ‖x‖² (xx), what is left of it, r = x − zA, and ‖r‖² (rr); h = Hz;
    H₋ = H + scale hhᵀ; b = A₋x, ar = Ar; gz = G₋z, hz = H₋z; H₋ and G₋. How top and
    bottom change with each flip: ups, downs. Of all patterns: tops, bottoms, costs.
    """

    def __init__(
        self, K: cy.Py_ssize_t, D: cy.Py_ssize_t, n_patterns: cy.Py_ssize_t
    ) -> None:
        self.z, self.h, self.b, self.ar = np.zeros((4, K))
        self.gz, self.hz, self.ups, self.downs = np.zeros((4, K))
        self.r = np.zeros(D)
        self.H, self.G = np.zeros((2, K, K))
        self.tops, self.bottoms, self.costs = np.zeros((3, n_patterns))
        self.weight = self.xx = self.rr = self.scale = 0.0
        self.top = self.bottom = 0.0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def clearly_below(cost: cy.double, xx: cy.double) -> cy.double:
    """What a cost must fall below to be lower by more than rounding.

    Costs are differences of numbers as large as ‖x‖²: near zero they are noise, by
    which bits could be flipped back and forth forever.
    """
    return cost - 1e-10 * fabs(cost) - 1e-12 * xx


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _weigh(work: Work) -> cy.void:
    """Top and bottom of z as it stands, with Gz and Hz."""
    K = work.z.shape[0]
    for i in range(K):
        work.gz[i] = 0.0
        work.hz[i] = 0.0
    for j in range(K):
        z: cy.double = work.z[j]
        for i in range(K):
            work.gz[i] += z * work.G[j, i]
            work.hz[i] += z * work.H[j, i]
    top: cy.double = work.xx
    held: cy.double = 0.0
    for i in range(K):
        top += work.z[i] * (work.gz[i] - 2.0 * work.b[i])
        held += work.z[i] * work.hz[i]
    work.top = top
    work.bottom = 1.0 + work.weight * held


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _try_flips(work: Work) -> cy.void:
    """How zGz − 2z·b and zHz change when a bit flips: G_kk ± 2((Gz)_k − b_k)."""
    for k in range(work.z.shape[0]):
        sign: cy.double = 2.0 - 4.0 * work.z[k]
        work.ups[k] = work.G[k, k] + sign * (work.gz[k] - work.b[k])
        work.downs[k] = work.weight * (work.H[k, k] + sign * work.hz[k])


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def choose_by_flips(work: Work, locked: cy.Py_ssize_t) -> cy.void:
    """Flip the bit that lowers the row's cost most until none does.

    MAD-Bayes Algorithm 3: lower w‖x − zA₋‖²/(1 + w zH₋z).
    """
    K = work.z.shape[0]
    _weigh(work)
    while True:
        _try_flips(work)
        best: cy.Py_ssize_t = -1
        least: cy.double = clearly_below(work.top / work.bottom, work.xx)
        for k in range(locked, K):
            cost: cy.double = (work.top + work.ups[k]) / (work.bottom + work.downs[k])
            if cost < least:
                best, least = k, cost
        if best < 0:
            return
        work.top += work.ups[best]
        work.bottom += work.downs[best]
        sign: cy.double = 1.0 - 2.0 * work.z[best]
        work.z[best] = 1.0 - work.z[best]
        for i in range(K):  # Gz ± G_k, Hz ± H_k
            work.gz[i] += sign * work.G[best, i]
            work.hz[i] += sign * work.H[best, i]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _pair_below(
    i: cy.Py_ssize_t, least: cy.double, work: Work, costs: cy.double[::1]
) -> cy.bint:
    """The costs of flipping bit i and one behind it; whether any is below `least`."""
    sign: cy.double = 2.0 - 4.0 * work.z[i]
    top: cy.double = work.top + work.ups[i]
    bottom: cy.double = work.bottom + work.downs[i]
    below: cy.double = 0.0
    for j in range(i + 1, work.z.shape[0]):
        both: cy.double = sign * (1.0 - 2.0 * work.z[j])
        over: cy.double = top + work.ups[j] + both * work.G[i, j]
        under: cy.double = bottom + work.downs[j] + work.weight * both * work.H[i, j]
        costs[j] = over / under
        below += 1.0 if costs[j] < least else 0.0
    return below > 0.0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def choose_by_pairs(work: Work, locked: cy.Py_ssize_t) -> cy.void:
    """Flip two bits at once as long as that helps, then single ones.

    Not in the paper.
    """
    K = work.z.shape[0]
    while True:
        choose_by_flips(work, locked)
        _weigh(work)
        _try_flips(work)
        first: cy.Py_ssize_t = -1
        second: cy.Py_ssize_t = -1
        least: cy.double = clearly_below(work.top / work.bottom, work.xx)
        for i in range(locked, K):
            if _pair_below(i, least, work, work.costs):
                for j in range(i + 1, K):
                    if work.costs[j] < least:
                        first, second, least = i, j, work.costs[j]
        if first < 0:
            return
        work.z[first] = 1.0 - work.z[first]
        work.z[second] = 1.0 - work.z[second]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _double(
    totals: cy.double[::1],
    cross: cy.double[::1],
    M: cy.const[cy.double][:, ::1],
    k: cy.Py_ssize_t,
    locked: cy.Py_ssize_t,
    own: cy.double,
) -> cy.void:
    """Extend zMz from patterns of the bits before k to those with bit k.

    ZMz over 2^k patterns in O(1) each. `cross` holds Σ_j z_j M_kj of the patterns,
    doubled up bit by bit as well; `own` is what bit k costs by itself.
    """
    half: cy.Py_ssize_t = 1
    start: cy.double = 0.0
    for j in range(locked):
        start += M[k, j]
    cross[0] = start
    for j in range(locked, k):
        more: cy.double = M[k, j]
        for p in range(half):
            cross[half + p] = cross[p] + more
        half *= 2
    for p in range(half):
        totals[half + p] = totals[p] + 2.0 * cross[p] + own


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def choose_of_all(work: Work, locked: cy.Py_ssize_t) -> cy.void:
    """The best of all patterns of the bits that are not locked.

    MAD-Bayes Algorithm 3, exactly.
    """
    K = work.z.shape[0]
    top: cy.double = work.xx
    bottom: cy.double = 0.0
    now: cy.Py_ssize_t = 0
    for i in range(locked):
        top -= 2.0 * work.b[i]
        for j in range(locked):
            top += work.G[i, j]
            bottom += work.H[i, j]
    work.tops[0] = top
    work.bottoms[0] = bottom
    n_patterns: cy.Py_ssize_t = 1
    for k in range(locked, K):
        own: cy.double = work.G[k, k] - 2.0 * work.b[k]
        _double(work.tops, work.costs, work.G, k, locked, own)
        _double(work.bottoms, work.costs, work.H, k, locked, work.H[k, k])
        if work.z[k] > 0.0:
            now += n_patterns
        n_patterns *= 2
    weight: cy.double = work.weight
    here: cy.double = work.tops[now] / (1.0 + weight * work.bottoms[now])
    least: cy.double = clearly_below(here, work.xx)
    below: cy.double = 0.0
    for p in range(n_patterns):
        work.costs[p] = work.tops[p] / (1.0 + weight * work.bottoms[p])
        below += 1.0 if work.costs[p] < least else 0.0
    if not below > 0.0:
        return
    best = now
    for p in range(n_patterns):
        if work.costs[p] < least:
            best, least = p, work.costs[p]
    for k in range(locked, K):
        work.z[k] = (best >> (k - locked)) & 1
