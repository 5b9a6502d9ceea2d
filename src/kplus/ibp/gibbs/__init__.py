"""IBPGibbs: chains of samples of the Indian buffet process."""
