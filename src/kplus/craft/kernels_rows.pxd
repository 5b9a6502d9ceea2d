cdef void sum_rows(const double[:, ::1] numbers, const long long[:, ::1] codes, const double[::1] weights, const long long[::1] labels, double[:, ::1] sums, double[::1] counts) noexcept nogil
cdef Py_ssize_t move_rows(const double[:, ::1] numbers, const long long[:, ::1] codes, const double[:, ::1] tables, const double[::1] shares, double[:, ::1] scores, long long[::1] labels) noexcept nogil
