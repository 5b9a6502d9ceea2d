cdef class Work:
    cdef double[::1] z
    cdef double[::1] h
    cdef double[::1] b
    cdef double[::1] ar
    cdef double[::1] gz
    cdef double[::1] hz
    cdef double[::1] ups
    cdef double[::1] downs
    cdef double[::1] r
    cdef double[:, ::1] H
    cdef double[:, ::1] G
    cdef double[::1] tops
    cdef double[::1] bottoms
    cdef double[::1] costs
    cdef double weight
    cdef double xx
    cdef double rr
    cdef double scale
    cdef double top
    cdef double bottom

cdef double clearly_below(double cost, double xx) noexcept nogil
cdef void choose_by_flips(Work work, Py_ssize_t locked) noexcept nogil
cdef void choose_by_pairs(Work work, Py_ssize_t locked) noexcept nogil
cdef void choose_of_all(Work work, Py_ssize_t locked) noexcept nogil
