from libc.stdint cimport uint64_t

from kplus.ibp.kernels_objective cimport Objective

cpdef double double_greedy(Objective f) noexcept nogil
cpdef double random_double_greedy(Objective f, uint64_t seed, uint64_t row) noexcept nogil
