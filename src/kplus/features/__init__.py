"""BPMeans and KFeatures: binary features X ≈ ZA (MAD-Bayes, section 5)."""
