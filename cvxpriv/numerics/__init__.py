"""Arrays, arguments, extensions and numerical methods: the parts that know nothing of privacy."""
