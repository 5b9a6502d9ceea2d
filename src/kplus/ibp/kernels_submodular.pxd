from kplus.ibp.kernels_objective cimport Objective

cpdef double local_search(Objective f) noexcept nogil
cdef double exchange(Objective f) noexcept nogil
