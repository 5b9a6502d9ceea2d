from kplus.core.kernels_random cimport Draws

cdef class Table:
    cdef public double[:, ::1] X
    cdef public double[::1] squares
    cdef const long long[::1] starts
    cdef const long long[::1] gaps

cdef class Law:
    cdef readonly double noise
    cdef readonly double ratio
    cdef readonly double rate
    cdef Py_ssize_t width
    cdef long long most
    cdef readonly long long most_singles
    cdef const double[::1] log_odds
    cdef bint enumerate_new

cpdef bint bit_is_on(double log_odds, Draws draws) noexcept nogil
cdef void shuffle(Py_ssize_t[::1] order, Py_ssize_t K, Draws draws) noexcept nogil
cdef long long count_singles(const unsigned char[:, ::1] Z, Py_ssize_t n, const long long[::1] counts, Py_ssize_t K) noexcept nogil
cdef void move_last_bits(unsigned char[:, ::1] Z, Py_ssize_t n, Py_ssize_t k, Py_ssize_t last) noexcept nogil
cpdef long long draw_number(long long now, long long others, double error, double spread, Law law, Py_ssize_t width, Draws draws) noexcept nogil
cpdef double positive_normal(double mean, double variance, Draws draws) noexcept nogil
cpdef double evidence_of_feature(const double[::1] e, double noise, double variance, Table table, Py_ssize_t n) noexcept nogil
