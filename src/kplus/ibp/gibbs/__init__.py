"""IBPGibbs: chains of samples of the Indian buffet process.

In reading order:

- `estimator`: the estimator IBPGibbs.
- `start`: where a chain begins, and the priors of what it infers.
- `chain`: the state that all chains have, and how to run one.
- `mixing`: whether chains agree, and the posterior of the number of features.
- `samplers`: the collapsed, accelerated and uncollapsed chains.
- `scales`: draws of α and of the variances.
- `conditionals`: A given Z, and E[Z] of rows given A.
- `kernels_draws`: draws of bits, singles and nonnegative factors.
- `kernels_posterior`: the posterior of A with one row taken out.
- `kernels_accelerated`, `kernels_collapsed`, `kernels_uncollapsed`: sweeps over rows.
"""
