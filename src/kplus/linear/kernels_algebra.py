"""Small products that kernels of several models share."""

from kplus.core.kernels import fast_kernel, fast_nsz_kernel

__all__ = ["dot", "sq_dist", "times_bits"]


@fast_kernel
def dot(a, b):
    """Σ_d a_d b_d."""
    total = 0.0
    for d in range(len(a)):
        total += a[d] * b[d]
    return total


@fast_nsz_kernel
def sq_dist(Y, i, C, k):
    """‖y_i − c_k‖²."""
    total = 0.0
    for d in range(Y.shape[1]):
        diff = Y[i, d] - C[k, d]
        total += diff * diff
    return total


@fast_kernel
def times_bits(M, z, K, out):
    """out = Mz for a symmetric M; return zMz."""
    for i in range(K):
        out[i] = 0.0
    for j in range(K):
        if z[j]:
            row = M[j]
            for i in range(K):
                out[i] += row[i]
    total = 0.0
    for i in range(K):
        if z[i]:
            total += out[i]
    return total
