cimport cython

@cython.final
cdef class SumArrays:
    cdef double[:, ::1] T
    cdef double[:, :, ::1] S
    cdef double[::1] counts

@cython.final
cdef class FactorArrays:
    cdef double[:, ::1] mu
    cdef double[:, ::1] scale
    cdef double[:, ::1] mean
    cdef double[:, ::1] variance
    cdef double noise
    cdef double spread
    cdef double alpha
    cdef bint nonnegative

cdef void update_factor(Py_ssize_t k, SumArrays sums, const long long[::1] starts, FactorArrays factors) noexcept nogil
cdef double evidence_of_factor(Py_ssize_t k, FactorArrays factors) noexcept nogil
cpdef (double, double) truncated(double t) noexcept nogil
cdef double entropy_cut(double t, double mean) noexcept nogil
