"""Which features does a row have? The best z for ‖x − zA‖², in Gram form.

With b = Ax and G = AAᵀ the error is ‖x‖² − 2z·b + zGz: trying a flip costs O(1), making
it O(K). Rows are handled with the same arithmetic wherever they stand, so that z does
not depend on how a table is cut. They come in tiles, whose products BLAS computes, and
then side by side: the rows whose z is the best as it stands, mostly nearly all, are
found without a branch.
"""

import cython as cy
import numpy as np
from cython.cimports.kplus.core.kernels_blas import (
    add_product,
    add_product_of_rows,
    add_product_of_transposed,
)
from cython.cimports.kplus.features.kernels_row import (
    CLEAR,
    Search,
    decode,
    factor_into,
    flip,
    prepare,
)

if cy.compiled:
    from cython.cimports.libc.math import sqrt
else:
    from numpy import sqrt

__all__ = ["Allocated", "allocate_rows"]

# Rows whose residuals stay in the cache: no power of two, or columns would collide.
_TILE = cy.declare(cy.Py_ssize_t, 248)
_FEW = cy.declare(cy.Py_ssize_t, 16)  # features: rows are flipped side by side


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Allocated:
    """What a visit of rows changes and adds up."""

    Z: cy.uchar[:, ::1]  # (n, K)
    errors: cy.double[::1]  # (n,) ‖x − zA‖²
    S: cy.double[:, ::1]  # (K, K) ZᵀWZ
    T: cy.double[:, ::1]  # (K, D) ZᵀW(X − ZA)


@cy.final
@cy.cclass
class _Tile:
    """Some rows side by side: of each feature z and Ar, then the residuals R = X − ZA.

    `rows` are the numbers of those whose z is open.
    """

    ones: cy.double[:, ::1]  # (K, tile) z
    ar: cy.double[:, ::1]  # (K, tile)
    y: cy.double[:, ::1]  # (K, tile)
    R: cy.double[:, ::1]  # (tile, D)
    least: cy.double[:, ::1]  # (2, tile) from one and for the next feature
    best: cy.double[:, ::1]  # (2, tile)
    lengths: cy.double[::1]  # (tile,)
    rows: cy.Py_ssize_t[::1]  # (tile,)

    def __init__(self, K: cy.Py_ssize_t, D: cy.Py_ssize_t) -> None:
        self.ones, self.ar, self.y = np.zeros((3, K, _TILE))
        self.R = np.zeros((_TILE, D))
        self.least, self.best = np.zeros((2, 2, _TILE))
        self.lengths = np.zeros(_TILE)
        self.rows = np.zeros(_TILE, np.intp)


# ------------------------------------------------------------------------- flips


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _best_flips(tile: _Tile, m: cy.Py_ssize_t, search: Search) -> cy.Py_ssize_t:
    """For each row the flip that helps most; note and count the rows with one.

    MAD-Bayes Algorithm 1: Δ_k = G_kk − 2(±(Ar)_k).
    """
    K = tile.ar.shape[0]
    for n in range(m):
        tile.least[0, n] = 0.0
        tile.best[0, n] = 0.0
    for k in range(K):
        now, then = k & 1, (k + 1) & 1  # in place, stores would depend on branches
        square: cy.double = search.squares[k]
        number: cy.double = k
        for n in range(m):
            least: cy.double = tile.least[now, n]
            change: cy.double = square - (2.0 - 4.0 * tile.ones[k, n]) * tile.ar[k, n]
            tile.least[then, n] = change if change < least else least
            tile.best[then, n] = number if change < least else tile.best[now, n]
    count: cy.Py_ssize_t = 0
    for n in range(m):
        tile.rows[count] = n
        count += tile.least[K & 1, n] < 0.0
    return count


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _pick(tile: _Tile, n: cy.Py_ssize_t, search: Search) -> cy.void:
    """Take Ar and the signs of a row out of a tile."""
    for k in range(tile.ar.shape[0]):
        search.ar[k] = tile.ar[k, n]
        search.signs[k] = 1.0 - 2.0 * tile.ones[k, n]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _put(tile: _Tile, n: cy.Py_ssize_t, search: Search) -> cy.void:
    """Note the z of a row in a tile."""
    for k in range(tile.ar.shape[0]):
        tile.ones[k, n] = 0.5 - 0.5 * search.signs[k]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _flip_once(tile: _Tile, n: cy.Py_ssize_t, search: Search) -> cy.bint:
    """Make the flip noted for a row, unless it is rounding (see `flip`)."""
    last = search.G.shape[0] & 1
    k = cy.cast(cy.Py_ssize_t, tile.best[last, n])
    norm: cy.double = search.norms[k]
    if not tile.least[last, n] < -1e-14 * norm * (tile.lengths[n] + norm):
        return False
    sign: cy.double = 1.0 - 2.0 * tile.ones[k, n]
    tile.ones[k, n] = 1.0 - tile.ones[k, n]
    for j in range(search.G.shape[0]):
        tile.ar[j, n] -= sign * search.G[k, j]
    return True


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _flip_rows(
    tile: _Tile, m: cy.Py_ssize_t, count: cy.Py_ssize_t, search: Search
) -> cy.void:
    """Flip bits of a tile's rows until none helps, given their `_best_flips`.

    MAD-Bayes Algorithm 1, step 1. Rounds go over all rows as long as many change.
    """
    while count > 0:
        if search.G.shape[0] > _FEW or 8 * count < m:
            for i in range(count):
                n = tile.rows[i]
                _pick(tile, n, search)
                flip(tile.lengths[n], search)
                _put(tile, n, search)
            return
        flipped: cy.Py_ssize_t = 0
        for i in range(count):
            flipped += _flip_once(tile, tile.rows[i], search)
        count = _best_flips(tile, m, search) if flipped else 0


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _length(x: cy.const[cy.double][:, ::1], n: cy.Py_ssize_t) -> cy.double:
    """‖x_n‖."""
    total: cy.double = 0.0
    for d in range(x.shape[1]):
        total += x[n, d] * x[n, d]
    return sqrt(total)


# ------------------------------------------------------- the best of all patterns


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _uncertain(tile: _Tile, m: cy.Py_ssize_t, search: Search) -> cy.Py_ssize_t:
    """Note and count the rows for which another z may be as good, see `is_certain`."""
    for n in range(m):
        tile.least[0, n] = 0.0
        tile.best[0, n] = 0.0
    for i in range(tile.ar.shape[0]):
        k = search.order[i]
        own: cy.double = search.R[i, i]
        scale: cy.double = 1.0 / own if own > 0.0 else 0.0
        for n in range(m):
            tile.y[i, n] = tile.ar[k, n]
        for j in range(i):
            f: cy.double = search.R[j, i]
            for n in range(m):
                tile.y[i, n] -= f * tile.y[j, n]
        for n in range(m):
            y: cy.double = tile.y[i, n] * scale
            room: cy.double = own * (CLEAR * own - (2.0 - 4.0 * tile.ones[k, n]) * y)
            tile.best[0, n] += 0.0 if tile.least[0, n] < room else 1.0
            tile.least[0, n] += y * y
            tile.y[i, n] = y
    count: cy.Py_ssize_t = 0
    for n in range(m):
        tile.rows[count] = n
        count += tile.best[0, n] > 0.0
    return count


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _is_worse(
    x: cy.const[cy.double][:, ::1],
    n: cy.Py_ssize_t,
    A: cy.const[cy.double][:, ::1],
    before: cy.uchar[:, ::1],
    search: Search,
) -> cy.bint:
    """Whether the z of a search that was cut short is worse than that from before it.

    The lower ‖x − zA‖² of two, for row n.
    """
    now: cy.double = 0.0
    then: cy.double = 0.0
    for d in range(A.shape[1]):
        a: cy.double = x[n, d]
        b: cy.double = x[n, d]
        for k in range(A.shape[0]):
            a -= (0.5 - 0.5 * search.signs[k]) * A[k, d]
            b -= before[n, k] * A[k, d]
        now += a * a
        then += b * b
    return then < now


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _start_afresh(
    x: cy.const[cy.double][:, ::1],
    A: cy.const[cy.double][:, ::1],
    most_steps: cy.Py_ssize_t,
    before: cy.uchar[:, ::1],
    tile: _Tile,
    count: cy.Py_ssize_t,
    some: _Tile,
    search: Search,
) -> cy.void:
    """The best z of all 2^K for the open rows of a tile, by flips from nothing first.

    MAD-Bayes Algorithm 4, step 1. `some` is room for these rows.
    """
    K, D = A.shape[0], A.shape[1]
    for j in range(count):
        n = tile.rows[j]
        for d in range(D):
            some.R[j, d] = x[n, d]
        some.lengths[j] = _length(x, n)
    for k in range(K):
        for j in range(count):
            some.ones[k, j] = 0.0
    add_product_of_rows(1.0, A, some.R, K, count, D, 0.0, some.ar)
    many = _best_flips(some, count, search)
    if many > 0:
        _flip_rows(some, count, many, search)
        add_product_of_transposed(-1.0, some.ones, A, count, D, K, 1.0, some.R)
        add_product_of_rows(1.0, A, some.R, K, count, D, 0.0, some.ar)
    still = _uncertain(some, count, search)
    for i in range(still):
        j = some.rows[i]
        n = tile.rows[j]
        _pick(some, j, search)
        short = decode(search, most_steps)
        for k in range(K):
            if search.flips[k]:
                search.signs[k] = -search.signs[k]
        if short and _is_worse(x, n, A, before, search):
            for k in range(K):
                search.signs[k] = 1.0 - 2.0 * before[n, k]
        _put(some, j, search)
    for j in range(count):
        n = tile.rows[j]
        for k in range(K):
            tile.ones[k, n] = some.ones[k, j]


# ------------------------------------------------------------------------- rows


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _subtract(
    x: cy.const[cy.double][:, ::1], A: cy.const[cy.double][:, ::1], tile: _Tile
) -> cy.void:
    """R = X − ZA for the rows of a tile."""
    m, D = x.shape[0], x.shape[1]
    for n in range(m):
        for d in range(D):
            tile.R[n, d] = x[n, d]
    add_product_of_transposed(-1.0, tile.ones, A, m, D, A.shape[0], 1.0, tile.R)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _note_changes(tile: _Tile, Z: cy.uchar[:, ::1]) -> cy.Py_ssize_t:
    """Write z of a tile's rows into Z; how many are new."""
    changed: cy.Py_ssize_t = 0
    for n in range(Z.shape[0]):
        differs: cy.bint = False
        for k in range(Z.shape[1]):
            z: cy.uchar = cy.cast(cy.uchar, tile.ones[k, n])
            differs |= z != Z[n, k]
            Z[n, k] = z
        changed += differs
    return changed


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _visit(
    x: cy.const[cy.double][:, ::1],
    A: cy.const[cy.double][:, ::1],
    exact: cy.bint,
    most_steps: cy.Py_ssize_t,
    Z: cy.uchar[:, ::1],
    tile: _Tile,
    some: _Tile,
    search: Search,
) -> cy.Py_ssize_t:
    """Choose z for the rows of a tile; how many are new."""
    m, K, D = x.shape[0], A.shape[0], A.shape[1]
    for n in range(m):
        for k in range(K):
            tile.ones[k, n] = Z[n, k]
    _subtract(x, A, tile)
    add_product_of_rows(1.0, A, tile.R, K, m, D, 0.0, tile.ar)
    if exact:
        count = _uncertain(tile, m, search)
        if count > 0:
            _start_afresh(x, A, most_steps, Z, tile, count, some, search)
    else:
        count = _best_flips(tile, m, search)
        for i in range(count):
            n = tile.rows[i]
            tile.lengths[n] = _length(x, n)
        _flip_rows(tile, m, count, search)
    changed = _note_changes(tile, Z) if count > 0 else 0
    if changed > 0:
        _subtract(x, A, tile)
    return changed


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _add_up(
    tile: _Tile,
    weights: cy.const[cy.double][::1],
    errors: cy.double[::1],
    out: Allocated,
) -> cy.void:
    """S += ZᵀWZ and T += ZᵀWR of a tile, and the errors of its rows."""
    m, K, D = errors.shape[0], tile.ones.shape[0], tile.R.shape[1]
    for n in range(m):
        error: cy.double = 0.0
        for d in range(D):
            error += tile.R[n, d] * tile.R[n, d]
        errors[n] = error
    for k in range(K):
        for n in range(m):
            tile.ar[k, n] = weights[n] * tile.ones[k, n]
    add_product_of_rows(1.0, tile.ar, tile.ones, K, K, m, 1.0, out.S)
    add_product(1.0, tile.ar, tile.R, K, D, m, 1.0, out.T)


def allocate_rows(
    X: cy.const[cy.double][:, ::1],
    weights: cy.const[cy.double][::1],
    A: cy.const[cy.double][:, ::1],
    G: cy.const[cy.double][:, ::1],
    exact: cy.bint,
    most_steps: cy.Py_ssize_t,
    out: Allocated,
) -> int:
    """Choose z for each row and add up S += ZᵀWZ, T += ZᵀW(X − ZA); count rows changed.

    Step 1 of MAD-Bayes Algorithms 1 and 4: z = argmin ‖x − zA‖²; A = (ZᵀWZ)⁻¹ZᵀWX of
    step 2 follows from S and T. `errors` becomes ‖x − zA‖². Flips start from Z as it
    stands. With `exact` they start from nothing, so that equal rows get equal z
    whatever came before, and the best of all patterns follows, if `most_steps` suffice
    to prove it so; rows whose z is certainly the only best one keep it. G is AAᵀ.
    """
    n_rows, D, K = X.shape[0], X.shape[1], A.shape[0]
    tile, some = _Tile(K, D), _Tile(K, D)
    search = Search(G)
    prepare(search)
    if exact:
        factor_into(search)
    changed: cy.Py_ssize_t = 0
    with cy.nogil:
        for t in range((n_rows + _TILE - 1) // _TILE):
            start = t * _TILE
            stop = min(start + _TILE, n_rows)
            changed += _visit(
                X[start:stop], A, exact, most_steps, out.Z[start:stop],
                tile, some, search,
            )  # fmt: skip
            _add_up(tile, weights[start:stop], out.errors[start:stop], out)
    return changed
