"""CRAFT: clusters of mixed tables, each with features of its own.

In reading order:

- `kernels_encode`, `kernels_rows`: encoded rows; their sums, scores and clusters.
- `kernels`, `kernels_rank`: gains, the choice of features, local convergence.
- `layout`: how the columns of a table become numbers and codes.
- `model`: sums, parameters, objective, and the moves between two passes.
- `partition`: partitions of rows in memory, and splits of one cluster in two.
- `axes`, `clusters`: what lies between components; clusters by the tree of these.
- `search`: the number of components on a sample, then passes over all rows.
- `joining`: fits with enough components, their tree, and its cut.
- `report`: which features are reported for a cluster, and descriptions of clusters.
- `settings`: which parameters are refused, and what they mean for a search.
- `files`: what model files keep.
- `estimator`: the class `CRAFT`.
- `paper`: Algorithms 1 and 2 as published.

Things that are so for a reason:

- The background comes from the sums: those of all clusters add up to those of the
  whole table, so gains, costs and objective need no pass of their own, nor do streams.
- The gains hold the logarithm of the prior by which they are smoothed; without it a
  refit could raise the objective.
- Which features count in the objective and which are reported are two questions.
"""
