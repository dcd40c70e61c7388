"""`cvxpriv certify`: check a certificate of a bound, without a solver."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cvxpriv.bounds.certificate import certificate_of
from cvxpriv.bounds.check_constrained_service_certificate import KIND as CONSTRAINED_SERVICE
from cvxpriv.bounds.check_service_certificate import KIND as SERVICE
from cvxpriv.bounds.service_certificate import service_certificate_of
from cvxpriv.cli.options import output_options
from cvxpriv.cli.terminal import Terminal
from cvxpriv.reports.files import read_document
from cvxpriv.reports.formatting import format_number, paragraph
from cvxpriv.reports.sets import require_whole

CERTIFICATE = "certificate.json"


@click.command()
@click.argument("file", metavar="CERTIFICATE|FOLDER")
@output_options
@click.pass_obj
def certify(terminal: Terminal, file: str) -> None:
    """Derive a bound again in exact arithmetic, from the CERTIFICATE that `cvxpriv funnel` or `inference` wrote.

    Of a FOLDER that a command wrote, every file is compared with the hash in manifest.json first.

    It ends with 2 where a file has changed, or the certificate does not prove what it claims. The same check without
    cvxpriv is `python check_certificate.py CERTIFICATE`, of the file that stands beside the certificate, and
    `python check_constrained_certificate.py CERTIFICATE` where it is one under constraints.
    """
    if Path(file).is_dir():
        names, file = require_whole(file), str(Path(file) / CERTIFICATE)
        terminal.say(paragraph(f"unchanged since they were written: {', '.join(names)}", indent=""))
        if CERTIFICATE not in names:
            return terminal.result({"command": "certify", "files": list(names)})
    document = read_document(file, f"a {CERTIFICATE}")
    service = document.get("kind") in (SERVICE, CONSTRAINED_SERVICE)
    text, result = (_of_service if service else _of_funnel)(document, file)
    terminal.say(text)
    terminal.result({"command": "certify", **result})


def _of_funnel(document: Any, file: str) -> tuple[str, dict[str, Any]]:
    certificate = certificate_of(document, file)
    shown = certificate.verify()
    under = getattr(certificate, "constraints", ())
    such = _such(under)
    text = (
        f"proved: every mechanism with I(X;Y) >= {format_number(certificate.rate, 6)} nats{such} leaks at least "
        f"{format_number(shown.bound, 9)} nats\n"
        f"the certificate's own mechanism leaks {format_number(shown.leakage, 9)} nats and tells "
        f"{format_number(shown.utility, 6)} nats"
    )
    return text, {
        "rate": certificate.rate,
        "constraints": list(under),
        "bound": shown.bound,
        "leakage": shown.leakage,
        "utility": shown.utility,
        "gap": shown.leakage - shown.bound,
    }


def _such(constraints: Sequence[dict[str, Any]]) -> str:
    return " that satisfies " + ", ".join(map(_stated, constraints)) if constraints else ""


def _stated(constraint: dict[str, Any]) -> str:
    """A certificate's constraint, for people: its kind, and its numbers but for matrices."""
    shown = [f"{key}={value}" for key, value in constraint.items() if key != "kind" and not isinstance(value, list)]
    return f"{constraint['kind']}({', '.join(shown)})"


def _of_service(document: Any, file: str) -> tuple[str, dict[str, Any]]:
    certificate = service_certificate_of(document, file)
    under = getattr(certificate, "constraints", ())
    shown = certificate.verify()
    every = "" if certificate.conjugate is None else ", for every f whose conjugate the file's points bound"
    text = (
        f"proved: with f of {certificate.divergence} and beta = {format_number(certificate.beta, 6)} no mechanism"
        f"{_such(under)} has "
        f"I(S;U) - beta E[f] above {format_number(shown.bound, 9)} nats{every}"
    )
    worth = None if certificate.conjugate is not None else shown.value
    if worth is not None:
        text += f"\nthe certificate's own mechanism is worth at least {format_number(worth, 9)} nats"
    return text, {
        "divergence": certificate.divergence,
        "beta": certificate.beta,
        "constraints": list(under),
        "bound": shown.bound,
        "value": worth,
        "gap": None if worth is None else shown.bound - worth,
    }
