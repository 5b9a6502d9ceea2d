"""Latent binary features, X ≈ ZA: BP-means and K-features."""
