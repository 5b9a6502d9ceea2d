"""Values that every room may use: types, summaries, the memo, errors."""
