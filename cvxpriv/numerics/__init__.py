"""Arrays, arguments and numerical methods that know nothing of privacy."""
