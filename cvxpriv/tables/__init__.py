"""Joint tables and their parts: alphabets, checked arrays, and data frames read by one rule."""
