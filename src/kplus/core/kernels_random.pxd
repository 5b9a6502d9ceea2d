from libc.stdint cimport uint32_t, uint64_t

cdef extern from "numpy/random/bitgen.h":
    ctypedef struct bitgen_t:
        void *state
        uint64_t (*next_uint64)(void *st) noexcept nogil
        uint32_t (*next_uint32)(void *st) noexcept nogil
        double (*next_double)(void *st) noexcept nogil

cdef extern from "numpy/random/distributions.h":
    double random_standard_normal(bitgen_t *state) noexcept nogil
    double random_standard_exponential(bitgen_t *state) noexcept nogil
    long long random_poisson(bitgen_t *state, double lam) noexcept nogil

cdef class Draws:
    cdef object _rng
    cdef bitgen_t *_bits
    cdef double random(self) noexcept nogil
    cdef double standard_normal(self) noexcept nogil
    cdef double standard_exponential(self) noexcept nogil
    cdef long long poisson(self, double mean) noexcept nogil
