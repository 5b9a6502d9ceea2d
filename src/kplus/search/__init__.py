"""How to look for a good optimum: samples first, splits, swaps, restarts."""
