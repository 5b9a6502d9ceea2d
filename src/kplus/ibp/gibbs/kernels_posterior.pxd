cdef class Posterior:
    cdef public unsigned char[:, ::1] Z
    cdef public long long[::1] counts
    cdef public double[:, ::1] T
    cdef public double[:, ::1] H
    cdef public double[:, ::1] Q

cdef class Work:
    cdef double[::1] b
    cdef double[::1] h
    cdef double[::1] g
    cdef double[::1] v
    cdef double[:, ::1] H
    cdef double[:, ::1] Q
    cdef double[:, ::1] factors
    cdef unsigned char[::1] old
    cdef unsigned char[::1] shared
    cdef Py_ssize_t[::1] order
    cdef double error
    cdef double spread
    cdef double part
    cdef bint whole

cdef Work work_for(Py_ssize_t capacity, Py_ssize_t gaps)
cdef bint take_out(Posterior post, Py_ssize_t n, Py_ssize_t K, double ratio, double weight, Work work) noexcept nogil
cdef void take_from_precision(Posterior post, Py_ssize_t K, double ratio, Work work) noexcept nogil
cdef void without_singles(Py_ssize_t K, Work work) noexcept nogil
cdef void take_from_sums(Posterior post, const double[:, ::1] X, Py_ssize_t n, Py_ssize_t K, Work work) noexcept nogil
cdef void add_to_sums(Posterior post, const double[:, ::1] X, Py_ssize_t n, Py_ssize_t K, Work work) noexcept nogil
cdef Py_ssize_t set_singles(Posterior post, Py_ssize_t n, Py_ssize_t K, Py_ssize_t now, Py_ssize_t number, double ratio, Work work) noexcept nogil
