"""CRAFT: clusters of mixed tables, each with features of its own."""
