"""The best split of a cluster in two, by 2-means from its principal axis."""

import cython as cy
import numpy as np

if cy.compiled:
    from cython.cimports.libc.math import sqrt
else:
    from numpy import sqrt

__all__ = ["group_rows", "split_cluster", "split_clusters"]


def group_rows(
    labels: cy.const[cy.int][::1], K: cy.Py_ssize_t
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of each cluster, in row order ({n : z_n = k}).

    Those of cluster k are ``rows[starts[k] : starts[k + 1]]`` of (rows, starts).
    """
    rows_array = np.empty(labels.shape[0], np.intp)
    starts_array = np.zeros(K + 1, np.intp)
    rows: cy.Py_ssize_t[::1] = rows_array
    starts: cy.Py_ssize_t[::1] = starts_array
    at: cy.Py_ssize_t[::1] = np.empty(K, np.intp)
    with cy.nogil:
        for i in range(labels.shape[0]):
            starts[labels[i] + 1] += 1
        for k in range(K):
            at[k] = starts[k]
            starts[k + 1] += starts[k]
        for i in range(labels.shape[0]):
            rows[at[labels[i]]] = i
            at[labels[i]] += 1
    return rows_array, starts_array


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class _Room:
    """What the split of a cluster works on."""

    dots: cy.double[::1]  # (n,) y·axis
    axis: cy.double[::1]  # (D,)
    onto: cy.double[::1]  # (D,) Σ w (y·axis) y
    above: cy.double[::1]  # (D,) Σ w y of the rows on one side
    everything: cy.double[::1]  # (D,) Σ w y


def _room(n: cy.Py_ssize_t, D: cy.Py_ssize_t) -> _Room:
    return _Room(np.empty(n), *np.empty((4, D)))


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _dots(
    Y: cy.const[cy.double][:, ::1],
    i: cy.Py_ssize_t,
    j: cy.Py_ssize_t,
    axis: cy.const[cy.double][::1],
) -> tuple[cy.double, cy.double]:
    """y_i·axis and y_j·axis: two sums at once take little longer than one."""
    one: cy.double = 0.0
    two: cy.double = 0.0
    for d in range(Y.shape[1]):
        one += Y[i, d] * axis[d]
        two += Y[j, d] * axis[d]
    return one, two


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _project(Y: cy.const[cy.double][:, ::1], n: cy.Py_ssize_t, room: _Room) -> cy.void:
    """dots = Y·axis."""
    for i in range(0, n, 2):
        j = min(i + 1, n - 1)
        room.dots[i], room.dots[j] = _dots(Y, i, j, room.axis)


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _power_step(
    Y: cy.const[cy.double][:, ::1],
    w: cy.const[cy.double][::1],
    n: cy.Py_ssize_t,
    room: _Room,
) -> cy.void:
    """onto = Σ w (y·axis) y."""
    one: cy.double
    two: cy.double
    for d in range(Y.shape[1]):
        room.onto[d] = 0.0
    for i in range(0, n, 2):
        j = min(i + 1, n - 1)
        one, two = _dots(Y, i, j, room.axis)
        one *= w[i]
        two *= w[j] if j > i else 0.0
        for d in range(Y.shape[1]):
            room.onto[d] += one * Y[i, d] + two * Y[j, d]


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _sum_above(
    Y: cy.const[cy.double][:, ::1],
    w: cy.const[cy.double][::1],
    n: cy.Py_ssize_t,
    dots: cy.const[cy.double][::1],
    cut: cy.double,
    total: cy.double[::1],
) -> cy.double:
    """Σ w and Σ w y over the rows with y·axis > cut."""
    weight: cy.double = 0.0
    for d in range(Y.shape[1]):
        total[d] = 0.0
    for i in range(n):
        if dots[i] > cut:
            one: cy.double = w[i]
            weight += one
            for d in range(Y.shape[1]):
                total[d] += one * Y[i, d]
    return weight


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _farthest(
    Y: cy.const[cy.double][:, ::1], w: cy.const[cy.double][::1], n: cy.Py_ssize_t
) -> cy.Py_ssize_t:
    """argmax ‖y‖² over the rows that weigh anything."""
    far: cy.Py_ssize_t = 0
    most: cy.double = -1.0
    for i in range(n):
        norm: cy.double = 0.0
        for d in range(Y.shape[1]):
            norm += Y[i, d] * Y[i, d]
        if w[i] > 0.0 and norm > most:
            far, most = i, norm
    return far


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _dot(a: cy.const[cy.double][::1], b: cy.const[cy.double][::1]) -> cy.double:
    """Σ_d a_d b_d."""
    total: cy.double = 0.0
    for d in range(a.shape[0]):
        total += a[d] * b[d]
    return total


def split_cluster(
    Y: cy.const[cy.double][:, ::1],
    w: cy.const[cy.double][::1],
    max_iter: cy.Py_ssize_t,
    first: cy.double[::1],
    second: cy.double[::1],
) -> float:
    """Split rows, centred on their mean, in two by 2-means.

    Not in the papers: a move that lowers MAD-Bayes Eq. 3 where the gain exceeds λ². The
    start is the sign along the principal axis (a few power steps from the farthest
    row), which depends on neither the order nor the number of copies of the rows.
    Writes the two centres and returns the fall of the squared distances,
    W₁W₂/(W₁+W₂)·|c₁ - c₂|²; 0 means that no split was found.
    """
    room: _Room = _room(Y.shape[0], Y.shape[1])
    with cy.nogil:
        gain = _split(Y, w, Y.shape[0], max_iter, first, second, room)
    return gain  # noqa: RET504  with the lock of the interpreter


@cy.cfunc
@cy.nogil
@cy.exceptval(check=False)
def _split(
    Y: cy.const[cy.double][:, ::1],
    w: cy.const[cy.double][::1],
    n: cy.Py_ssize_t,
    max_iter: cy.Py_ssize_t,
    first: cy.double[::1],
    second: cy.double[::1],
    room: _Room,
) -> cy.double:
    """`split_cluster` of the first n rows."""
    D, far = Y.shape[1], _farthest(Y, w, n)
    for i in range(n):
        room.dots[i] = 0.0
    W = _sum_above(Y, w, n, room.dots, -1.0, room.everything)
    for d in range(D):
        room.axis[d] = Y[far, d]
    for _ in range(4):
        _power_step(Y, w, n, room)
        norm = sqrt(_dot(room.onto, room.onto))
        if norm == 0.0:
            return 0.0
        for d in range(D):
            room.axis[d] = room.onto[d] / norm
    _project(Y, n, room)
    cut: cy.double = _dot(room.axis, room.everything) / W
    gain: cy.double = 0.0
    for _ in range(max_iter):
        W1 = _sum_above(Y, w, n, room.dots, cut, room.above)
        if W1 <= 0.0 or W1 >= W:
            break
        cut = 0.0
        for d in range(D):
            c1: cy.double = room.above[d] / W1
            c2: cy.double = (room.everything[d] - room.above[d]) / (W - W1)
            room.axis[d] = c1 - c2
            cut += 0.5 * (c1 * c1 - c2 * c2)
        rise: cy.double = W1 * (W - W1) / W * _dot(room.axis, room.axis)
        if rise <= gain * (1.0 + 1e-4):
            break
        gain = rise
        for d in range(D):
            first[d] = room.above[d] / W1
            second[d] = (room.everything[d] - room.above[d]) / (W - W1)
        _project(Y, n, room)
    return gain


def split_clusters(
    Y: cy.const[cy.double][:, ::1],
    w: cy.const[cy.double][::1],
    labels: cy.const[cy.int][::1],
    centers: cy.const[cy.double][:, ::1],
    wanted: cy.const[cy.Py_ssize_t][::1],
    enough: cy.Py_ssize_t,
    max_iter: cy.Py_ssize_t,
) -> tuple[np.ndarray, np.ndarray]:
    """Split each wanted cluster on trial: the gains (n,) and the centres (n, 2, D).

    Not in the papers. Of a cluster of more than `enough` rows every so-manieth shows
    how it splits.
    """
    D = Y.shape[1]
    gains_array = np.zeros(wanted.shape[0])
    pairs_array = np.zeros((wanted.shape[0], 2, D))
    gains: cy.double[::1] = gains_array
    pairs: cy.double[:, :, ::1] = pairs_array
    rows: cy.const[cy.Py_ssize_t][::1]
    starts: cy.const[cy.Py_ssize_t][::1]
    rows, starts = group_rows(labels, centers.shape[0])
    most: cy.Py_ssize_t = min(Y.shape[0], enough)
    own: cy.double[:, ::1] = np.empty((most, D))
    own_w: cy.double[::1] = np.empty(most)
    room: _Room = _room(most, D)
    with cy.nogil:
        for i in range(wanted.shape[0]):
            k = wanted[i]
            size = starts[k + 1] - starts[k]
            step = 1 + size // enough
            n = (size + step - 1) // step
            W: cy.double = 0.0
            for j in range(n):
                row = rows[starts[k] + j * step]
                own_w[j] = w[row]
                W += w[row]
                for d in range(D):
                    own[j, d] = Y[row, d] - centers[k, d]
            if n < 2 or W <= 0.0:
                continue
            gain = _split(own, own_w, n, max_iter, pairs[i, 0], pairs[i, 1], room)
            gains[i] = gain * size / n
            for side in range(2):
                for d in range(D):
                    pairs[i, side, d] += centers[k, d]
    return gains_array, pairs_array
