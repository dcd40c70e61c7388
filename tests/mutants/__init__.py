"""Mutants: small wrong changes of the code that tests must notice; `make mutate` makes them."""
