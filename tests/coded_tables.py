"""Frames, arrays and files with categories, opened as estimators open them."""

from kplus.data.categories import Coding
from kplus.data.open import open_data, typed_columns
from kplus.data.wrapped import read_if_small


def coding_of(table, *choice):
    """The categories found in a table."""
    return Coding.of(typed_columns(open_data(table)), *choice)


def coded(table, coding, block_rows=None, unknown="error"):
    """Blocks of a table, from memory if it is small."""
    blocks = typed_columns(open_data(table)).coded(coding, block_rows, unknown)
    return read_if_small(blocks) or blocks
