"""Rows as sums of binary features, X ≈ ZA: what all models of that kind share."""
