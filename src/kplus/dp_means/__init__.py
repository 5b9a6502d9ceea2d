"""DP-means: clusters by a penalty or by number (MAD-Bayes, sections 2 to 4).

The files in reading order; equations are those of MAD-Bayes.

- `estimator`: `DPMeans`: check, open, search, store.
- `search`: by the row rule, for a given number, in a stream.
- `objective_search`: the lowest objective at a penalty: splits, merges, swaps.
- `resolutions`: the automatic choice of number and shape.
- `standard`: columns on one scale.
- `model`: Eqs. 3 and 12: assignment, sums, means and objective of the fast form.
- `params`: the centres and their scaling, for the kernels.
- `moves`: open, refill, drop, remove, order and split clusters between passes.
- `cells`: clusters of any shape, joined from the cells of a fine quantisation.
- `splits`: growth to a number by best splits, and swaps at that number.
- `ward`: which clusters to merge first.
- `penalty_path`: the best number for each penalty, and its plateau.
- `penalty`: the public `penalty_for` (Kulis & Jordan 2012) and `penalty_path`.
- `sequential`: row after row: Kulis & Jordan's pass; Eq. 9 and Algorithm 2.
- `sequential_search`: their searches.
- `full_covariance`: Sup. Mat. E: the model and its moves.
- `full_covariance_search`: its search.
- `kernels_lloyd`: nearest centres, for `model`, with `kernels_bounds` (what is known of
  rows), `kernels_tiles` (many rows at once) and `kernels_nearest` (the exact decision).
- `kernels_sequential`: passes row after row, for `sequential`.
- `kernels_split`: the best split of a cluster, for `moves`.
- `kernels_cells`: sums over cells and between them, and merges, for `cells` and `ward`.

Things that are so for a reason:

- Labels are those of float64 differences. float32 products only rule centres out;
  where rounding could matter a row is decided in float64, ties to the lower number. So
  blocks, engines and the order of BLAS never change a label, and `fit_predict` equals
  `predict`.
- Sums are taken about fixed points near each centre (`refs`), so that squares do not
  cancel where clusters are small and far apart.
- A row that opens a cluster leaves the means that it came from at once
  (`moves.means_without`); otherwise the objective could rise.
"""
