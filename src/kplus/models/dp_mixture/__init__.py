"""The Dirichlet-process mixture: sticks, components, statistics, model."""
