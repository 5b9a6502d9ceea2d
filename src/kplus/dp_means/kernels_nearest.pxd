from kplus.dp_means.kernels_bounds cimport Drift

cdef (Py_ssize_t, Py_ssize_t, double, double, double) two_nearest(const double[:, ::1] Y, Py_ssize_t i, Py_ssize_t p, Py_ssize_t a, Py_ssize_t b, double rest2, const double[:, ::1] centers) noexcept nogil
cdef (Py_ssize_t, Py_ssize_t, double, double, double) decide(const double[:, ::1] Y, Py_ssize_t i, const float[:, ::1] G, Py_ssize_t t, Py_ssize_t width, double floor, Py_ssize_t a, Py_ssize_t b, Drift drift, const double[:, ::1] centers) noexcept nogil
