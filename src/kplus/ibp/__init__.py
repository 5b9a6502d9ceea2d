"""The Indian buffet process (IBP): MEIBP, IBPVariational, and IBPGibbs in `gibbs/`.

In reading order:

- `estimator`: what the three estimators share.
- `table`: one pass over a new table, and missing entries filled in.
- `prior`: the IBP prior of Z, its finite form and its stick-breaking form.
- `factors`: q(A) for either prior, and the sums over rows that it needs.
- `meibp`: the estimator MEIBP.
- `meibp_search`: from a table to features, on a sample first.
- `meibp_sample`: starts, and fits of rows in memory.
- `meibp_model`: parameters, model and moves of the loop.
- `meibp_weights`: the same where rows have an amount of each feature.
- `meibp_rows`: the paper's own algorithm, row by row.
- `variational`: the estimator IBPVariational.
- `variational_search`: from a table to a variational posterior.
- `variational_model`: parameters, sums and model of the loop.
- `kernels_objective`: the objective of a row.
- `kernels_submodular`: its maximisation by local search.
- `kernels_scattered`: that of rows of which each has gaps of its own.
- `kernels_weights`: weights of the features of rows.
- `kernels_double_greedy`: the same by the double greedy.
- `kernels_rows`: sweeps of the paper's own algorithm.
- `kernels_factors`: moments and updates of nonnegative factors.
- `kernels_marginals`: probabilities of the bits of a row.

All rows choose their bits at once, by the tangent of the prior at the last counts: the
prior is convex in the counts, so the bound rises by at least the gains that the rows
computed, whatever the order of blocks.
"""
