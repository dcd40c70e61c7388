"""Arrays, arguments, extensions and numerical methods: what knows nothing of privacy."""
