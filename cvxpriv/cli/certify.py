"""`cvxpriv certify`: check a certificate of a bound, without a solver."""

from __future__ import annotations

import click

from cvxpriv.bounds.certificate import Certificate
from cvxpriv.cli.options import output_options
from cvxpriv.cli.terminal import Terminal
from cvxpriv.reports.formatting import format_number

__all__ = ["certify"]


@click.command(short_help="Check the certificate of a bound, without a solver.")
@click.argument("file", metavar="CERTIFICATE")
@output_options
@click.pass_obj
def certify(terminal: Terminal, file: str) -> None:
    """Derive the bound of CERTIFICATE, a JSON file that `cvxpriv funnel` wrote, again in exact arithmetic.

    It ends with 2 where the certificate does not prove what it claims. The same check without cvxpriv is
    `python check_certificate.py CERTIFICATE`, of the file that stands beside the certificate.
    """
    certificate = Certificate.load(file)
    shown = certificate.verify()
    terminal.say(
        f"proved: every mechanism with I(X;Y) >= {format_number(certificate.rate, 6)} nats leaks at least "
        f"{format_number(shown.bound, 9)} nats\n"
        f"the certificate's own mechanism leaks {format_number(shown.leakage, 9)} nats and tells "
        f"{format_number(shown.utility, 6)}"
    )
    terminal.result(
        {
            "command": "certify",
            "rate": certificate.rate,
            "bound": shown.bound,
            "leakage": shown.leakage,
            "utility": shown.utility,
            "gap": shown.leakage - shown.bound,
        }
    )
