"""BPMeans and KFeatures: binary features X ≈ ZA (MAD-Bayes, section 5).

In reading order:

bp_means, k_features
    The two classes: parameters and attributes.
estimator
    What they share: fit, partial_fit, transform; from parameters to a `FeatureSpec`.
search
    From a table to features: a search on a sample, then passes over all rows.
model
    A, the sums over rows, and the objective of Eq. 6 for the loop (Algorithms 1, 4).
moves
    Features opened, removed and fused between passes (Algorithm 1).
kernels_row
    The bits z of a row given A: by flips, or the best of all 2^K.
kernels_allocate, kernels_gaps
    The bits of many rows, without and with missing entries; sums over them.
kernels_columns
    The best A for Z by least squares.
kernels_split
    New columns of Z by splits of residuals.
kernels_patterns, kernels_collapsed
    The bits of a row with A refitted for each change (Eq. 10, Algorithm 3).

Beyond the paper, how the search on the sample finds good optima:

number
    How many features: a number given, a penalty given, or neither.
local_search
    Seeds for Z, and an iterated local search from them.
rows
    The sample of rows in memory, and the solutions found on it.

Things that are so for a reason:

- An exact z is sought among flips of a z found from nothing: equal rows get equal z in
  `fit` and `transform`. Rows whose z is the only best one keep it: that is quickly
  told, and true of nearly all. Where the search is cut short, a row keeps what it had
  if that was better, so that the objective never rises.
- With a base feature, which every row has, the search works on centred rows.
"""
