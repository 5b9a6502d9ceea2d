"""Compiled inner loops: numba, and nothing but numba.

Kernels are serial and release the interpreter's lock. The first fit compiles them, so
that they are written to compile quickly, too:

- one type for each argument: whole arrays and a count rather than slices, and constants
  with a type (``np.int64(0)``), as numba compiles anew for a plain ``0``;
- loops instead of ``a[:] = b`` between arrays, for which numba compiles its machinery
  of error messages;
- little of numpy, of which each function brings code of its own: ``np.empty`` and a
  loop or ``a[:] = 0.0`` rather than ``np.zeros``, no sorts, no inverses;
- no small kernels called by kernels from many places, and no large ones from any: what
  is called is compiled by itself and once more in every caller.

Docstrings name the equation or algorithm that a kernel computes. MAD-Bayes is
Broderick, Kulis and Jordan (2013), Memoized is Hughes and Sudderth (2013), CRAFT is
Garg, Rudin and Jaakkola (2016), MEIBP is Reed and Ghahramani (2013).

Which model each file serves:

====================  =================================================================
`lloyd`               DP-means: nearest centres with bounds, sums of rows that moved
`split`               DP-means: a cluster cut in two
`sequential`          DP-means, row by row as published
`features`            mixtures: scores and sums from the statistics of rows
`gaussian`            mixtures: quadratic forms and second moments, by component
`posterior`           mixtures: responsibilities, entropies, rows by component
`allocate`            BP-means and K-features: the best bits of rows, given the features
`collapsed`           BP-means and K-features: local search, features following
`columns`             BP-means and K-features: where a new feature may begin
`craft`               CRAFT: encoded rows, scores of clusters, sums
`craft_paper`         CRAFT, row by row as published
`submodular`          MEIBP: the best bits of rows, given q(A)
`factor_updates`      MEIBP: factors that are not negative
`ibp_sweep`           MEIBP, row by row as published
`ibp_marginals`       IBPVariational and IBPGibbs: probabilities of the bits of rows
`gibbs_accelerated`   IBPGibbs: rows given the posterior of the factors
`gibbs_collapsed`     IBPGibbs: rows, the factors integrated out
`gibbs_uncollapsed`   IBPGibbs: rows given the factors
`gibbs_draws`         what these samplers share: draws of bits and of single features
`gibbs_posterior`     the factors' posterior without one row, for the first two
`gibbs_truncated`     factors that are not negative, for the third
`algebra`, `tails`    small products; tails of a Gaussian
`uniform`             random numbers by seed and row
====================  =================================================================
"""

from numba import njit

__all__ = ["FAST", "fast_kernel", "fast_nsz_kernel", "inlined", "kernel"]

# Sums may be added up in any order. NaN and infinities are not compiled away: a sum may
# be asked whether it is finite.
FAST = {"contract", "reassoc"}

# Numba would make two wrappers of each function, for Python and for C: one is enough.
kernel = njit(nogil=True, cache=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]
fast_kernel = njit(  # type: ignore[call-overload]
    nogil=True, cache=True, no_cfunc_wrapper=True, fastmath=FAST
)
# The same for DP-means, where the sign of zero does not matter either: the compiler
# then adds up in another order, which gave fits of DP-means the bits that they have.
fast_nsz_kernel = njit(  # type: ignore[call-overload]
    nogil=True, cache=True, no_cfunc_wrapper=True, fastmath=FAST | {"nsz"}
)
# For a part with one caller, of which it becomes a piece before that is compiled, with
# the caller's options: each level of calls would be compiled and optimised once more.
inlined = njit(nogil=True, cache=True, inline="always")
