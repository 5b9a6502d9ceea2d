"""Dirichlet-process mixtures by memoized variational inference."""
