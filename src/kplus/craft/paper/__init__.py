"""CRAFT as published: rows one after the other, in their order."""
