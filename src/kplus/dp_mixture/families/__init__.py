"""Families of observations, one file each; `names.py` lists them."""
