"""dp_means."""
