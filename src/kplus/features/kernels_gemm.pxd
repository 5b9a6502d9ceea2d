cdef void add_product(double sign, const double[:, ::1] A, const double[:, ::1] B, Py_ssize_t m, Py_ssize_t n, Py_ssize_t inner, double keep, double[:, ::1] out) noexcept nogil
cdef void add_product_of_rows(double sign, const double[:, ::1] A, const double[:, ::1] B, Py_ssize_t m, Py_ssize_t n, Py_ssize_t inner, double keep, double[:, ::1] out) noexcept nogil
cdef void add_product_of_transposed(double sign, const double[:, ::1] A, const double[:, ::1] B, Py_ssize_t m, Py_ssize_t n, Py_ssize_t inner, double keep, double[:, ::1] out) noexcept nogil
