cimport cython

@cython.final
cdef class Objective:
    cdef readonly double[::1] lin
    cdef readonly const double[:, ::1] Q
    cdef readonly const double[::1] sums
    cdef const double[::1] overlaps
    cdef readonly unsigned char[::1] fresh
    cdef readonly Py_ssize_t base
    cdef readonly double slack
    cdef readonly unsigned char[::1] z
    cdef double[::1] free
    cdef double[::1] held
    cdef readonly bint whole
    cdef double[:, ::1] own
    cdef double[::1] most
    cdef const double[:, ::1] total
    cdef unsigned char[::1] ready
    cdef const double[:, :, ::1] grams
    cdef const long long[::1] listed
    cdef Py_ssize_t begin
    cdef Py_ssize_t end
    cdef double sign

cdef void need(Objective f, Py_ssize_t k) noexcept nogil
cdef double row_slack(const double[::1] lin, const double[:, ::1] Q) noexcept nogil
cdef void sums_beside_diagonal(const double[:, ::1] Q, double[::1] sums) noexcept nogil
cdef void take_row(Objective f, const double[:, ::1] B, Py_ssize_t n, const double[:, ::1] linear, Py_ssize_t p) noexcept nogil
cdef double cost(Py_ssize_t c, Py_ssize_t base) noexcept nogil
cpdef double value(Objective f, const unsigned char[::1] z) noexcept nogil
cdef Py_ssize_t keep_better(Objective f, double f_z, unsigned char[:, ::1] Z, Py_ssize_t n) noexcept nogil
