from libc.stdint cimport uint64_t

cdef uint64_t scramble(uint64_t x) noexcept nogil
cpdef double uniform(uint64_t start, uint64_t k) noexcept nogil
