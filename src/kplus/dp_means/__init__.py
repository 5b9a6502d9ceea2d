"""DP-means: clusters by a penalty or by number (MAD-Bayes, sections 2 to 4)."""
