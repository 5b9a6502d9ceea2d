cimport cython

cdef class Top:
    cdef float[:, ::1] scores
    cdef int[::1] first
    cdef int[::1] second
    cdef float[::1] g1
    cdef float[::1] g2

cdef Py_ssize_t load_tile(const cython.floating[:, ::1] X, Py_ssize_t start, Py_ssize_t n, const double[::1] origin, double inv, double[:, ::1] wide, float[:, ::1] narrow, double[::1] norms) noexcept nogil
cpdef void scan(Top top, const float[::1] half, Py_ssize_t K, Py_ssize_t n) noexcept nogil
