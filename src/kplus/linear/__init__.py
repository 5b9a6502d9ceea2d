"""Rows as sums of binary features, X ≈ ZA: what all models of that kind share.

In reading order:

bits
    Z of a block's rows, eight bits per byte.
gaps
    Columns that miss the same rows share one ZᵀZ.
kernels_gaps
    Scattered gaps: ZᵀZ of each column from that of all and what it misses.
sums
    ZᵀZ, ZᵀR and ‖R‖² of the residuals R = X − ZA, and what follows from them.
pursuit
    Projections of the rows with two values: seeds for Z; the rank above noise.

Sums are taken about the features themselves (ZᵀR, not ZᵀX; `LinearSums.about` moves
them to others, exactly), so that a feature a million times larger than the rest costs
no digits. Columns that miss the same rows share one ZᵀZ, so that missing entries are
exact and cost little, whatever their pattern: what differs between columns is added up
from the shorter of the lists of entries that rows lack and have. Blocks with other
patterns are added by common refinement.
"""
