"""The command line: `cvxpriv`.

The toolkit's own commands stand here. A model brings its own through entry points: `cvxpriv.commands` for
``cvxpriv NAME``, `cvxpriv.certify` for ``cvxpriv crosscheck NAME``. Nothing here imports a model.
"""

from cvxpriv.cli.main import main

__all__ = ["main"]
