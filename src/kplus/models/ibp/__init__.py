"""Linear-Gaussian models with an Indian buffet process prior: X = ZA + noise."""
