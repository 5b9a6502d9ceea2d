cdef class Frame:
    cdef const double[::1] origin
    cdef double inv
    cdef const double[:, ::1] centers
    cdef const double[:, ::1] refs
    cdef const double[::1] halves
    cdef double reach

cdef class Drift:
    cdef readonly const double[::1] own
    cdef readonly const double[::1] others
    cdef readonly const double[::1] gaps
    cdef readonly const Py_ssize_t[::1] order
    cdef readonly const Py_ssize_t[::1] rank
    cdef readonly const float[:, ::1] narrow
    cdef readonly const float[::1] half
    cdef readonly double widest
    cdef readonly const Py_ssize_t[::1] widths
    cdef readonly const double[::1] beyond

cdef class Bounds:
    cdef int[::1] labels
    cdef int[::1] seconds
    cdef float[::1] upper
    cdef float[::1] near
    cdef float[::1] lower

cdef class Sums:
    cdef double[::1] counts
    cdef double[:, ::1] sums
    cdef double[::1] squares
    cdef double[::1] removal_cost
