"""`cvxpriv keys`: a private certificate authority for parties that are apart, and the keys of its members."""

import click

from cvxpriv.cli.options import output_options
from cvxpriv.cli.terminal import Terminal


@click.group(no_args_is_help=True)
@output_options
def keys() -> None:
    """Make the keys by which parties know each other.

    \b
    cvxpriv keys init team/
    cvxpriv keys add team/ label-holder
    cvxpriv keys add team/ hospital-a

    Bring each member its own folder, and nobody another's. Whoever has team/authority.key can make members.
    """


@keys.command("init")
@click.argument("folder", metavar="FOLDER")
@output_options
@click.pass_obj
def init(terminal: Terminal, folder: str) -> None:
    """Make a certificate authority, and a secret for aligning rows, in a new folder."""
    from cvxpriv.distributed.keys import create_team

    home = create_team(folder)
    terminal.result({"folder": str(home)})
    terminal.say(f"{home}/ has a certificate authority: keep authority.key to yourself.")


@keys.command("add")
@click.argument("folder", metavar="FOLDER")
@click.argument("name", metavar="NAME")
@click.option("--days", type=float, default=90.0, show_default=True, help="Time for which the certificate is good.")
@output_options
@click.pass_obj
def add(terminal: Terminal, folder: str, name: str, days: float) -> None:
    """Make the folder FOLDER/NAME of a member, with its key and certificate."""
    from cvxpriv.distributed.keys import add_member

    own = add_member(folder, name, days)
    terminal.result({"folder": str(own), "name": name})
    terminal.say(f"{own}/ is for {name} alone: bring it there by a way that you trust.")
