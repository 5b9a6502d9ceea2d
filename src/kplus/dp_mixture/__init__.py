"""Dirichlet-process mixtures by memoized variational inference. In reading order:

- `estimator.py`: `DPMixture`, its parameters, the steps of a fit, predictions, files
- `settings.py`: from parameters to tables, models and batches, and to attributes
- `auto.py`: which observations suit a table
- `search.py`: samples first, then passes over all rows; streams; densities of rows
- `params.py`: the components, and the sums over rows that they follow from
- `noise.py`: rows that belong nowhere
- `model.py`: a pass over rows, the posterior given sums, the bound
- `sticks.py`: the stick-breaking weights
- `birth.py`: new components from a fresh fit to the rows of one
- `fresh.py`: fresh fits of rows in memory, from seeds, splits, pieces of groups
- `noise_births.py`: the same from rows of noise
- `directions.py`: splits of rows along columns and other axes, where births may start
- `moves.py`: merges, deletes, the final order; a record of all proposals
- `refit.py`: splits, deletes and joins anew of neighbours, judged by refits
- `joining.py`, `clusters.py`, `axes.py`, `classes.py`: from components to clusters
- `factor_number.py`: how many factors a wide table has, by short fits
- `files.py`: what model files keep
- `kernels_responsibilities.py`: the responsibilities of rows
- `kernels.py`: who takes part: rows by component, candidates; scores and sums from t(x)
- `kernels_counts.py`: gamma and beta functions of counts
- `kernels_gaussian.py`, `kernels_normal_gamma.py`: the same for Gaussians, without t(x)
- `kernels_gaps.py`: Gaussian rows of which values are missing
- `kernels_student_t.py`: rows with heavy tails, with their scales
- `families/`: what rows of a component look like, one file each

Things that are so for a reason:

- The parameters are the posterior given some sums (N, S), so their part of the bound
  is an evidence, and linear in the difference for any other sums: exact also in
  stochastic steps and within a pass.
- float32 products only rule components out (`Family.shortlist`); scores are float64.
- A row's candidates contain its last support, so that sparse passes never lower the
  bound. Every fifth pass, and after births, rows are compared with all components.
- Of a row with a share r₀ of noise every sum has 1 - r₀, as if its weight were less. So
  families, merges and the tree need not know of noise.
- Births are fitted to rows that stand for many and pay Akaike's price for the noise
  that this fits; without the first a wide prior hides small components, without the
  second every component splits.
- Up to 2,000 rows are refitted all at once, which prices every change exactly; so
  refits take the place of births there, and need not wait for passes to converge.
"""
