cdef class Factors:
    cdef public unsigned char[:, ::1] Z
    cdef public long long[::1] counts
    cdef public double[:, ::1] A
    cdef public double[::1] norms
