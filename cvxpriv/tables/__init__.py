"""What a joint table is made of: alphabets, checked arrays, and data frames read by one rule."""
