"""Values that every package may use: types, summaries, the memo, errors."""
