"""What Gibbs samplers of the Indian buffet process draw: bits, singles, factors.

A feature that only row n has is its *single*. Given all else, the number of singles of
a row is Poisson(α/N) before its values are seen (exchangeability), which is how
features come and go; all others have rows left when this one is taken out.
"""

import math
from typing import NamedTuple

import numpy as np

from kplus.core.kernels import fast_kernel, inlined, kernel

__all__ = [
    "Law",
    "Table",
    "bit_is_on",
    "count_singles",
    "draw_factors",
    "draw_number",
    "evidence_of_feature",
    "move_last_column",
    "poisson",
    "positive_normal",
    "shuffle",
]

_FAR = -25.0  # standard deviations from which on a series is exact
_NEGLIGIBLE = 45.0  # e^-45 of the largest term changes no draw


class Table(NamedTuple):
    """The rows: X with gaps filled, ‖x‖², and each row's missing columns (CSR)."""

    X: np.ndarray
    squares: np.ndarray
    starts: np.ndarray
    gaps: np.ndarray


class Law(NamedTuple):
    """What a sweep is conditioned on.

    `noise` is σx², `ratio` σx²/σa², `rate` α/N, `width` the number of columns of the
    data, `most` the largest number of features, `most_singles` that of singles of a row
    (as many as arrays must have room for, beyond what the prior ever gives),
    `log_odds[m]` is log m/(N − m), and `enumerate_new` says that the number of singles
    is drawn from its conditional distribution, not by Metropolis.
    """

    noise: float
    ratio: float
    rate: float
    width: int
    most: int
    most_singles: int
    log_odds: np.ndarray
    enumerate_new: bool


@kernel
def bit_is_on(log_odds, rng):
    """True with probability 1/(1 + e^−log_odds)."""
    u = rng.random()
    if log_odds > 40.0:
        return True
    if log_odds < -40.0:
        return False
    return u * (1.0 + math.exp(-log_odds)) < 1.0


@kernel
def shuffle(order, K, rng):
    """Put 0..K−1 into a random order, in which the bits of a row are drawn.

    Not in the papers. The places of features tell their history (new ones stand at the
    end). In that order, or in any that knows of the bits to be drawn, draws would be
    off by some per cent where tables are small.
    """
    for i in range(K):
        j = int(rng.random() * (i + 1))
        order[i] = order[j]
        order[j] = i


@kernel
def count_singles(z, counts, K):
    """Σ_k z_k [m_k = 1], the features that only this row has."""
    singles = 0
    for k in range(K):
        if z[k] and counts[k] == 1:
            singles += 1
    return singles


@kernel
def move_last_column(M, k, last):
    """M_k ← M_last: let the last column take the place of column k."""
    for i in range(len(M)):
        M[i, k] = M[i, last]


@kernel
def _fit_of_number(j, error, spread, law, width):
    """Log-likelihood of a row with j singles, their factors integrated out.

    −½[D log(s + j/ratio) + e/(σx²(s + j/ratio))]. Each adds σa² to the variance of all
    its entries, σx²·`spread` without any.
    """
    total = spread + j / law.ratio
    return -0.5 * (width * math.log(total) + error / (law.noise * total))


@kernel
def poisson(rate, rng):
    """A draw from Poisson(rate) by products of uniform numbers, in pieces up to 10.

    P(j) = rate^j e^−rate/j!. The same as numpy's for smaller rates; those beyond would
    take long to compile.
    """
    count = 0
    while rate > 0.0:
        piece = min(rate, 10.0)
        rate -= piece
        least, product = math.exp(-piece), rng.random()
        while product > least:
            count += 1
            product *= rng.random()
    return count


@kernel
def draw_number(now, others, error, spread, law, width, rng):
    """The next number of singles of a row that has `now`, beside `others` shared ones.

    From Poisson(α/N) of the IBP (MEIBP Eq. 1) times the likelihood of the row. `error`
    is what the shared features leave of the row, squared.
    """
    room = min(law.most - others, law.most_singles)
    if law.enumerate_new:
        return _draw_from_all(room, error, spread, law, width, rng)
    tried = poisson(law.rate, rng)
    if tried == now or tried > room:
        return now
    gain = _fit_of_number(tried, error, spread, law, width) - _fit_of_number(
        now, error, spread, law, width
    )
    return tried if -rng.standard_exponential() < gain else now


@inlined
def _draw_from_all(room, error, spread, law, width, rng):
    """From Poisson(rate) times likelihood, by the largest of Gumbel variables.

    P(j) ∝ rate^j/j! · L(j). Terms rise to one peak and then fall: the rest is left out
    where it is nothing.
    """
    best, chosen, peak, prior = -np.inf, 0, -np.inf, 0.0
    j = 0
    while j <= room:
        if j > 0:
            prior += math.log(law.rate / j)
        term = prior + _fit_of_number(j, error, spread, law, width)
        peak = max(peak, term)
        if term < peak - _NEGLIGIBLE:
            break
        noisy = term - math.log(rng.standard_exponential())
        if noisy > best:
            best, chosen = noisy, j
        j += 1
    return chosen


# ------------------------------------------------------------------ nonnegative factors


@kernel
def positive_normal(mean, variance, rng):
    """A draw from N(mean, variance) given that it is not negative.

    TN(mean, variance) of MEIBP Eq. 13. By trial near the middle; further out from an
    exponential (Robert 1995).
    """
    sigma = math.sqrt(variance)
    cut = -mean / sigma
    if cut < 0.45:
        while True:
            t = rng.standard_normal()
            if t >= cut:
                return sigma * (t - cut)
    slope = 0.5 * (cut + math.sqrt(cut * cut + 4.0))
    while True:
        beyond = rng.standard_exponential() / slope
        if 2.0 * rng.standard_exponential() > (cut + beyond - slope) ** 2:
            return sigma * beyond


@kernel
def _log_scaled_tail(t):
    """log Φ(t) + t²/2, without cancellation for any t."""
    if t > _FAR:
        return math.log(0.5 * math.erfc(-t / math.sqrt(2.0))) + 0.5 * t * t
    u = 1.0 / (t * t)
    series = 1.0 - u * (1.0 - u * (3.0 - u * (15.0 - u * 105.0)))
    return math.log(series / (-t * math.sqrt(2.0 * math.pi)))


@kernel
def evidence_of_feature(e, noise, variance, table, n):
    """log ∏ ∫ N(e; a, noise) p(a) da / N(e; 0, noise), p half-normal, over row n.

    Entries that are missing there say nothing.
    """
    share = variance / (variance + noise)
    factor = math.sqrt(share / noise)
    nothing = math.log(0.5)
    total = 0.0
    for d in range(len(e)):
        total += _log_scaled_tail(e[d] * factor) - nothing
    known = len(e) - (table.starts[n + 1] - table.starts[n])
    # e is zero in gaps, where the sum gained log Φ(0) − log ½ = 0.
    return total + 0.5 * known * math.log(noise / (variance + noise))


@fast_kernel
def draw_factors(A, T, grams, pattern, noise, ratio, rng):
    """Draw nonnegative factors given Z, one after the other; A and T are (D, K).

    p(a_kd | rest) is TN of MEIBP Eqs. 13 to 15, with the other a drawn, not expected.
    `grams[pattern[d]]` is ZᵀZ over the rows that have a value in column d. Features
    come in a random order, as bits do.
    """
    D, K = A.shape
    order = np.empty(K, np.int64)
    shuffle(order, K, rng)
    for d in range(D):
        a, gram = A[d], grams[pattern[d]]
        for place in range(K):
            k = order[place]
            row = gram[k]
            rest = T[d, k] + row[k] * a[k]
            for j in range(K):
                rest -= row[j] * a[j]
            precision = row[k] + ratio
            a[k] = positive_normal(rest / precision, noise / precision, rng)
