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
