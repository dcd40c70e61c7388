"""`python -m cvxpriv`: the command line."""

from cvxpriv.cli import main

if __name__ == "__main__":
    main()
