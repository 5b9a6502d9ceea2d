"""Dirichlet-process mixtures by memoized variational inference. In reading order:

- `estimator.py`: `DPMixture`, its parameters, the steps of a fit, predictions, files
- `settings.py`: from parameters to tables, models and batches, and to attributes
- `search.py`: samples first, then passes over all rows; streams; densities of rows
- `params.py`: the components, and the sums over rows that they follow from
- `model.py`: a pass over rows, the posterior given sums, the bound
- `sticks.py`: the stick-breaking weights
- `birth.py`: new components from a fresh fit to the rows of one
- `moves.py`: merges, deletes, the final order; a record of all proposals
- `kernels.py`: responsibilities, scores and sums in numba
- `families/`: what rows of a component look like, one file each
"""
