cdef double CLEAR

cdef class Search:
    cdef const double[:, ::1] G
    cdef double[::1] ar
    cdef double[::1] signs
    cdef double[::1] squares
    cdef double[::1] norms
    cdef double[::1] slack
    cdef double[::1] changes
    cdef double[::1] ordered
    cdef Py_ssize_t[::1] order
    cdef double[:, ::1] R
    cdef double[:, ::1] columns
    cdef double[:, ::1] centres
    cdef double[::1] costs
    cdef unsigned char[::1] flips
    cdef unsigned char[::1] turns
    cdef unsigned char[::1] trial

cdef void prepare(Search search) noexcept nogil
cdef void flip(double length, Search search) noexcept nogil
cdef void factor_into(Search search) noexcept nogil
cdef bint decode(Search search, Py_ssize_t most_steps) noexcept nogil
cdef bint is_certain(Search search) noexcept nogil
