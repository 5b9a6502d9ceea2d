"""Small products that the kernels of feature models share."""

from kplus.kernels import fast_kernel

__all__ = ["dot", "times_bits"]


@fast_kernel
def dot(a, b):
    total = 0.0
    for d in range(len(a)):
        total += a[d] * b[d]
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
