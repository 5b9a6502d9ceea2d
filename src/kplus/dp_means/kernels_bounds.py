"""What is known of rows and centres between two visits, and the rows that may move.

Each row knows its nearest and second nearest centre when last looked at, and bounds
of its distances: from above to the first, from below to the second and to all others
(after Hamerly 2010). `screen_rows` moves the bounds by the drift of the centres,
without the data, and lists the rows that may not stay.
"""

import cython as cy

__all__ = ["Bounds", "Drift", "Frame", "Sums", "screen_rows"]

UP = cy.declare(cy.double, 1.0 + 2.0**-22)  # bounds are float32, rounded to be safe
DOWN = cy.declare(cy.double, 1.0 - 2.0**-22)


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Frame:
    """The scaling and the centres for the kernels; K clusters, D columns."""

    origin: cy.const[cy.double][::1]  # (D,)
    inv: cy.double
    centers: cy.const[cy.double][:, ::1]  # (K, D)
    refs: cy.const[cy.double][:, ::1]  # (K, D), see `Sums`
    halves: cy.const[cy.double][::1]  # (K,) half the way to the nearest other, or less
    reach: cy.double  # rows farther than this want a cluster of their own


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Drift:
    """How the centres moved since a block was last visited."""

    own: cy.const[cy.double][::1]  # (K,) how far each centre moved, 0 if born since
    others: cy.const[cy.double][::1]  # (K,) how far any other centre moved at the most
    gaps: cy.const[cy.double][::1]  # (K,) distance to the nearest born since, or less
    order: cy.const[cy.Py_ssize_t][::1]  # (K,) centres, farthest drifted first
    rank: cy.const[cy.Py_ssize_t][::1]  # (K,) place of each centre in that order
    narrow: cy.const[cy.float][:, ::1]  # (K, D) float32 centres in that order
    half: cy.const[cy.float][::1]  # (K,) float32 |c|²/2 in that order
    widest: cy.double  # largest norm of a centre
    widths: cy.const[cy.Py_ssize_t][::1]  # (tiers,) how many a tier looks at, up to K
    beyond: cy.const[cy.double][::1]  # (tiers,) how far the first not looked at moved


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Bounds:
    """Per-row state of a block."""

    labels: cy.int[::1]  # (n,) nearest centre, -1 before the first visit
    seconds: cy.int[::1]  # (n,) second nearest, -1 if there is none
    upper: cy.float[::1]  # (n,) distance to the nearest or more
    near: cy.float[::1]  # (n,) distance to the second or less
    lower: cy.float[::1]  # (n,) distance to any other or less


@cy.final
@cy.dataclasses.dataclass(eq=False, repr=False)
@cy.cclass
class Sums:
    """Change of the statistics, taken about fixed points near each centre (refs)."""

    counts: cy.double[::1]  # (K,)
    sums: cy.double[:, ::1]  # (K, D)
    squares: cy.double[::1]  # (K,)
    removal_cost: cy.double[::1]  # (K,) rise of the squared distances without that one


def screen_rows(
    bounds: Bounds,
    weights: cy.const[cy.double][::1],
    drift: Drift,
    frame: Frame,
    removal_cost: cy.double[::1],
    rows: cy.int[::1],
) -> int:
    """Move the bounds by the drift; list the rows that may move; return how many.

    Not in the papers: bounds after Hamerly (2010) for the step of
    `kernels_lloyd.visit_rows`.
    """
    labels, seconds, upper = bounds.labels, bounds.seconds, bounds.upper
    near, lower = bounds.near, bounds.lower
    own, others, gaps = drift.own, drift.others, drift.gaps
    halves, reach = frame.halves, frame.reach
    n: cy.Py_ssize_t = 0
    with cy.nogil:
        for i in range(labels.shape[0]):
            a, b = labels[i], seconds[i]
            if a < 0:
                rows[n] = i
                n += 1
                continue
            u: cy.double = (upper[i] + own[a]) * UP
            close: cy.double = near[i] - own[b] if b >= 0 else lower[i]
            low: cy.double = min(lower[i] - others[a], gaps[a] - u)
            bound: cy.double = max(min(close, low) * DOWN, 0.0)
            upper[i], near[i] = u, close * DOWN
            if u < max(bound, halves[a]) and u <= reach:
                lower[i] = low * DOWN
                w: cy.double = weights[i] if weights.shape[0] else 1.0
                removal_cost[a] += max(bound * bound - u * u, 0.0) * w
            else:
                rows[n] = i
                n += 1
    return n
