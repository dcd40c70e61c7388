"""`cvxpriv doctor`: whether this installation can do what the toolkit promises, and what to say in a report."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version

import click
from packaging.requirements import Requirement

from cvxpriv.cli.main import DONE, UNEXPECTED
from cvxpriv.cli.options import output_options
from cvxpriv.cli.terminal import Terminal
from cvxpriv.reports.formatting import table

GROUPS = ("models", "divergences", "constraints", "penalties", "solvers", "commands")
_EXTRA = re.compile(r"extra == ['\"](?P<name>[^'\"]+)['\"]")


@dataclass(frozen=True)
class Finding:
    """One line of the examination.

    `part`: The part of the installation that it is about.
    `found`: A version, a verdict, or a place.
    `state`: "fine", "absent" (something optional that is not there), or "broken".
    `remedy`: The remedy; empty where nothing is wrong.
    """

    part: str
    name: str
    found: str
    state: str = "fine"
    remedy: str = ""


@click.command()
@output_options
@click.pass_obj
def doctor(terminal: Terminal) -> int:
    """Examine Python, packages, solvers, extensions and folders, and name a remedy for each fault.

    Each installed solver solves a small problem with a known answer, which exact residuals judge. Paste the output into
    a report. The exit code is 1 if something is broken.
    """
    with terminal.phase("examining"):
        findings = [*_system(), *_packages(), *_solvers(), *_extensions(), *_folders()]
    broken = [finding for finding in findings if finding.state == "broken"]
    terminal.result({"command": "doctor", "healthy": not broken, "findings": [asdict(finding) for finding in findings]})
    rows = [[finding.part, finding.name, finding.state, finding.found] for finding in findings]
    terminal.say(table(["part", "name", "state", "found"], rows, indent=""))
    terminal.say()
    for finding in findings:
        if finding.remedy:
            terminal.say(f"{finding.name}: {finding.remedy}")
    terminal.say(f"{len(broken)} broken" if broken else "Nothing is broken.")
    return UNEXPECTED if broken else DONE


def _system() -> Iterator[Finding]:
    yield Finding("system", "Python", platform.python_version())
    yield Finding("system", "platform", f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield Finding("system", "processors", f"{os.cpu_count()}")


def _packages() -> Iterator[Finding]:
    """Yield every package that cvxpriv asks for: those it needs, and those of its extras."""
    yield Finding("package", "cvxpriv", version("cvxpriv"))
    extras: dict[str, tuple[Requirement, list[str]]] = {}
    for text in requires("cvxpriv") or ():
        requirement = Requirement(text)
        extra = _EXTRA.search(str(requirement.marker or ""))
        if extra is None:
            yield _package(requirement, ())
        elif requirement.name != "cvxpriv":
            extras.setdefault(requirement.name, (requirement, []))[1].append(extra["name"])
    for requirement, names in extras.values():
        yield _package(requirement, names)


def _package(requirement: Requirement, extras: tuple[str, ...] | list[str]) -> Finding:
    from cvxpriv.solvers.registry import SOLVERS

    part = f"extra {', '.join(extras)}" if extras else "package"
    remedy = f"pip install '{requirement.name}{requirement.specifier}'"
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        if extras or requirement.name.upper() in SOLVERS:  # one solver is enough
            return Finding(part, requirement.name, "-", "absent")
        return Finding(part, requirement.name, "-", "broken", remedy)
    if requirement.specifier.contains(found, prereleases=True):
        return Finding(part, requirement.name, found)
    return Finding(part, requirement.name, f"{found}, asked for {requirement.specifier}", "broken", remedy)


def _solvers() -> Iterator[Finding]:
    """Yield each solver with the verdict on its answer to min x + y, x + 2y >= 3, x >= 0, y >= 1 (1.5 at (0, 1.5))."""
    import cvxpy as cp

    from cvxpriv.certify import crosscheck
    from cvxpriv.solvers.registry import SOLVERS, installed

    x, y = cp.Variable(name="x"), cp.Variable(name="y")
    problem = cp.Problem(cp.Minimize(x + y), [x + 2 * y >= 3, x >= 0, y >= 1])
    present = installed()
    verdicts = crosscheck(problem, present).verdicts if present else {}
    for name in dict.fromkeys((*SOLVERS, *present)):
        if name not in present:
            yield Finding("solver", name, "-", "absent")
        elif verdicts[name].verdict in ("agrees", "loose"):
            yield Finding("solver", name, verdicts[name].verdict)
        else:
            remedy = f"its answer to a linear program is {verdicts[name].verdict}: reinstall it, or do not name it"
            yield Finding("solver", name, verdicts[name].verdict, "broken", remedy)
    if not present:
        yield Finding("solver", "any", "-", "broken", "pip install clarabel")


def _extensions() -> Iterator[Finding]:
    from cvxpriv.errors import ModelError
    from cvxpriv.numerics.packages import extension, extensions

    for group in GROUPS:
        for name, point in extensions(f"cvxpriv.{group}").items():
            try:
                extension(f"cvxpriv.{group}", name)
            except ModelError as error:
                yield Finding(group.removesuffix("s"), name, point.module, "broken", str(error))
            else:
                yield Finding(group.removesuffix("s"), name, point.module)


def _folders() -> Iterator[Finding]:
    from cvxpriv.tables.datasets.fetching import cache_folder

    folder = cache_folder()
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if os.access(nearest, os.W_OK):
        yield Finding("folder", "datasets", str(folder))
    else:
        remedy = "let CVXPRIV_CACHE name a folder that you may write to"
        yield Finding("folder", "datasets", f"{folder}, not writable", "broken", remedy)
