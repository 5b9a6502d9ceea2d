cimport cython
from kplus.ibp.kernels_objective cimport Objective

@cython.final
cdef class RowGrams:
    cdef const long long[::1] pattern
    cdef const long long[::1] starts
    cdef const double[::1] signs
    cdef const double[:, ::1] diagonals
    cdef const double[:, ::1] sums

cdef RowGrams open_gaps(Objective f, const double[:, :, ::1] grams, object gaps)
cdef void begin_row(Objective f, RowGrams rows, Py_ssize_t n) noexcept nogil
