cdef double dot(const double[::1] a, const double[::1] b) noexcept nogil
cdef double row_dot(const double[:, ::1] A, Py_ssize_t i, const double[:, ::1] B, Py_ssize_t j) noexcept nogil
