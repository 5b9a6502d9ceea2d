cdef double RIDGE

cdef class Fit:
    cdef double[:, ::1] H
    cdef double[:, ::1] G
    cdef double[:, ::1] S
    cdef double[:, ::1] L
    cdef double[:, ::1] A
    cdef double[:, ::1] T
    cdef double[:, ::1] Z
    cdef double[:, ::1] ZW

cdef double fit_to(const double[:, ::1] X, const double[::1] weights, unsigned char[:, ::1] Z, Py_ssize_t K, Fit fit) noexcept nogil
cdef void subtract(const double[:, ::1] X, unsigned char[:, ::1] Z, Py_ssize_t K, Fit fit, double[:, ::1] R) noexcept nogil
