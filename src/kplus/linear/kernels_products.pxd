cdef double dot(const double[::1] a, const double[::1] b) noexcept nogil
cdef double row_dot(const double[:, ::1] A, Py_ssize_t i, const double[:, ::1] B, Py_ssize_t j) noexcept nogil
cdef double sq_dist(const double[:, ::1] Y, Py_ssize_t i, const double[:, ::1] C, Py_ssize_t k) noexcept nogil
cdef double times_bits(const double[:, ::1] M, const unsigned char[::1] z, Py_ssize_t K, double[::1] out) noexcept nogil
