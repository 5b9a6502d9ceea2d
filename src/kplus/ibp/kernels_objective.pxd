cimport cython

@cython.final
cdef class Objective:
    cdef readonly double[::1] lin
    cdef readonly const double[:, ::1] Q
    cdef readonly const double[::1] sums
    cdef readonly unsigned char[::1] fresh
    cdef readonly Py_ssize_t base
    cdef readonly double slack
    cdef readonly unsigned char[::1] z
    cdef double[::1] free
    cdef double[::1] held

cdef double row_slack(const double[::1] lin, const double[:, ::1] Q) noexcept nogil
cdef void sums_beside_diagonal(const double[:, ::1] Q, double[::1] sums) noexcept nogil
cdef void take_row(Objective f, const double[:, ::1] B, Py_ssize_t n, const double[:, ::1] linear, Py_ssize_t p) noexcept nogil
cdef double cost(Py_ssize_t c, Py_ssize_t base) noexcept nogil
cpdef double value(Objective f, const unsigned char[::1] z) noexcept nogil
cdef Py_ssize_t keep_better(Objective f, double f_z, unsigned char[:, ::1] Z, Py_ssize_t n) noexcept nogil
