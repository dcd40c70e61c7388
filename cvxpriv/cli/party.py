"""`cvxpriv party serve`: hold columns, and answer the messages of a run."""

from pathlib import Path
from typing import Any

import click

from cvxpriv.cli.options import NAMES, output_options, reading_options
from cvxpriv.cli.terminal import Terminal

_KEYS = "Folder of this party's keys, from `cvxpriv keys add`."
_EXACT = "Let exact shares leave, without privacy."
_EPSILON = "The most that a private run may cost; without it no private run is taken."
_DELTA = "The delta at which that holds."


@click.group(no_args_is_help=True)
@output_options
def party() -> None:
    """Take part in a run whose columns or rows are with several parties."""


@party.command("serve")
@click.argument("source", metavar="TABLE.csv")
@click.option("--join", required=True, metavar="HOST:PORT", help="Address of the label holder or coordinator.")
@click.option("--keys", "folder", required=True, metavar="FOLDER", help=_KEYS)
@click.option("--identifier", metavar="COLUMN", help="Column by which rows are aligned; a keyed hash of it is sent.")
@click.option("--label", metavar="COLUMN", help="The column to predict, of a party that holds rows.")
@click.option("--positive", metavar="VALUE", help="Its value that is class 1, the same at every node.")
@click.option("--intercept/--no-intercept", default=True, help="Rows: whether a column of ones is added.")
@click.option("--columns", type=NAMES, metavar="A,B,...", help="Columns to learn from.  [default: all others]")
@reading_options
@click.option("--range", "ranges", multiple=True, metavar="COLUMN:LOW:HIGH", help="A public range; repeat.")
@click.option("--category", "categories", multiple=True, metavar="COLUMN[:A,B,...]", help="Public values; repeat.")
@click.option("--beyond", type=click.Choice(["refuse", "move"]), default="refuse", help="Values beyond a range.")
@click.option("--exact", is_flag=True, help=_EXACT)
@click.option("--epsilon", type=float, metavar="NUMBER", help=_EPSILON)
@click.option("--delta", type=float, default=1e-6, show_default=True, help=_DELTA)
@click.option("--budget", metavar="FILE", help="File of a budget that several private runs spend from.")
@click.option("--bounds-from-data", is_flag=True, help="Private: let other ranges and values be read off the rows.")
@click.option("--holder", default="label-holder", show_default=True, help="Name in its certificate.")
@click.option("--wait", type=float, default=60.0, show_default=True, help="Seconds to look for the label holder.")
@click.option("--model", "model_name", default="ADMMSharing", show_default=True, help="The model.")
@click.option("--out", default="party", show_default=True, metavar="FOLDER", help="Folder for the party's own files.")
@output_options
@click.pass_obj
def serve_command(terminal: Terminal, /, source: str, join: str, folder: str, out: str, **given: Any) -> None:
    """Hold a table, and dial the label holder or coordinator, whose run it then takes part in.

    Parties of ADMMSharing hold columns. Nodes of RecycledADMM hold rows and labels: give --model RecycledADMM, --label,
    --positive, and a range or values for every column, the same at every node.

    This end opens no port. It answers a fixed vocabulary of messages, and only what its options allow: --exact, or
    private runs within --epsilon. Its checkpoint, coefficients, ledger and message log are in the folder --out, for
    their owner alone; a process that was killed comes back with the same command.
    """
    from cvxpriv.cli.party_table import party_of, write_own
    from cvxpriv.distributed.carriers import MessageLog
    from cvxpriv.distributed.flight_party import serve
    from cvxpriv.distributed.keys import keys_in
    from cvxpriv.errors import PartyError

    keys, log, home, files = keys_in(folder), MessageLog(), Path(out), list[Path]()
    with terminal.phase("reading the table"):
        role, features = party_of(source, home, keys.alignment, **given)
    terminal.say(f"{keys.name} has {len(features)} encoded columns, and dials {join}.")
    try:
        how = serve(
            role,
            join,
            keys,
            holder=given["holder"],
            wait=given["wait"],
            log=log,
            joined=lambda: terminal.say("The label holder has admitted this party."),
            kept=lambda: files.extend(write_own(role, features, log, home)),
        )
    finally:
        files = files or write_own(role, features, log, home)
    terminal.result({"party": keys.name, "ended": how, "files": [str(path) for path in files]})
    terminal.say(f"The run is {how}. Written to {home}/: {', '.join(path.name for path in files)}")
    if how != "done":
        raise PartyError("the label holder ended the run before it was done: its own message says why")
