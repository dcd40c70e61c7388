"""`cvxpriv constraints`: the ready constraints, or what one of them asks and how it is written."""

import inspect

import click

from cvxpriv import constraints as ready
from cvxpriv.cli.options import output_options
from cvxpriv.cli.terminal import Terminal
from cvxpriv.constraints.documents import GROUP, maker
from cvxpriv.constraints.text import FORMS, FUNCTIONS
from cvxpriv.errors import ModelError, suggest
from cvxpriv.numerics.packages import extensions
from cvxpriv.reports.formatting import paragraph


@click.command()
@click.argument("name", required=False)
@output_options
@click.pass_obj
def constraints(terminal: Terminal, name: str | None) -> None:
    """List the ready constraints on a mechanism, or show one: its formula, text and parameters.

    \b
    constraints              all of them
    constraints ldp          one, by its name
    constraints ldp=1.0      the constraint that a text makes

    `--constraint` of a command, and `cvxpriv.constraints.parse`, take the text.
    """
    forms = {**FORMS, **{one: f"{one}=NUMBER:..." for one in extensions(GROUP)}}
    if name is None:
        rows = [{"name": one, "text": form, "asks": _asks(one)} for one, form in forms.items()]
        terminal.result({"command": "constraints", "constraints": rows})
        for row in rows:
            terminal.say(paragraph(row["text"], hanging="  "))
            terminal.say(paragraph(row["asks"] or "of another package", indent="    ", hanging="    "))
        return
    key, _, value = name.partition("=")
    key = key.strip().lower().replace("_", "-")
    if key not in forms:
        raise ModelError(f"{key!r} is not a constraint; {suggest(key, list(forms))}")
    made = repr(ready.parse(name)) if value else ""
    document = {"name": key, "text": forms[key], "asks": _asks(key), "constraint": made or None, "about": _about(key)}
    terminal.result({"command": f"constraints {name}", **document})
    terminal.say("\n\n".join(filter(None, [made, f"--constraint {forms[key]}", _about(key)])))


def _about(key: str) -> str:
    """Return the docstring of the function that makes a constraint; "" where it has none."""
    own = getattr(ready, FUNCTIONS.get(key, key), None)
    return inspect.getdoc(own if own is not None or key not in extensions(GROUP) else maker(key)) or ""


def _asks(key: str) -> str:
    """Return the first sentence of what is said of a constraint, from what it asks on."""
    first = " ".join(_about(key).split("\n\n")[0].split())
    return first.removeprefix("Return the constraint ").removeprefix("that ").split(". ")[0].rstrip(".")
