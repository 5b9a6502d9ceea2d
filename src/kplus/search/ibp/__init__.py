"""Inference for the Indian buffet process: maximisation, sampling, variational."""
