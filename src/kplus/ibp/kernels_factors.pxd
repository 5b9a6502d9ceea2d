cpdef double erfcx(double x) noexcept nogil
cpdef double excess(double t) noexcept nogil
cpdef (double, double) truncated(double t) noexcept nogil
cpdef double entropy_cut(double t, double mean) noexcept nogil
