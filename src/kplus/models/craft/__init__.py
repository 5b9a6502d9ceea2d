"""CRAFT: clusters of mixed tables, each with the features that matter for it."""
