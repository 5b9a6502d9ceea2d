cdef void choose_lowest(const double[::1] scores, Py_ssize_t most, double[::1] work, unsigned char[:, ::1] chosen, Py_ssize_t k) noexcept nogil
