"""CRAFT: clusters of mixed tables, each with features of its own.

In reading order:

- `kernels`: encoded rows, scores, gains, the choice of features, local convergence.
- `layout`: how the columns of a table become numbers and codes.
- `model`: sums, parameters, objective, and the moves between two passes.
- `partition`: partitions of rows in memory, and cuts of one cluster in two.
- `search`: the number of clusters on a sample, then passes over all rows.
- `report`: which features are reported for a cluster, and descriptions of clusters.
- `settings`: which parameters are refused, and what they mean for a search.
- `estimator`: the class `CRAFT`.
- `paper`: Algorithms 1 and 2 as published.
"""
