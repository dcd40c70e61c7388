"""`make mutate`: make wrong changes of the code that guards privacy and certificates, and run the tests that belong.

    python -m tests.mutants                        # every group
    python -m tests.mutants sensitivities          # one group
    python -m tests.mutants --only privacy.grid    # modules whose name holds the text
    python -m tests.mutants --sample 50            # at most so many mutants a module, drawn at random
    python -m tests.mutants --list                 # groups, modules, counts; nothing is run

A mutant that its tests do not notice survives and is printed. The command ends with 1 where one survives in a group
that allows none.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection

from tests.mutants.campaign import ROOT, Outcome, run_target
from tests.mutants.changes import Mutant, mutants_of
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.targets import GROUPS, Target

#: Seconds between two lines of progress where the output is no terminal.
QUIET = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants; return 1 where one survives in a group that allows none."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; none is all")
    parser.add_argument("--only", default="", help="modules whose name holds this")
    parser.add_argument("--function", default="", help="mutants of this function alone")
    parser.add_argument("--sample", type=int, default=0, help="at most so many mutants of each module, at random")
    parser.add_argument("--killers", action="store_true", help="say which test notices each mutant")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(arguments)
    if unknown := set(asked.groups) - set(GROUPS):
        parser.error(f"no group is called {', '.join(sorted(unknown))}: choose from {', '.join(GROUPS)}")
    failed = False
    for name in asked.groups or GROUPS:
        for target in GROUPS[name].targets:
            mutants = [one for one in mutants_to_notice(target) if asked.function in ("", one.function)]
            if asked.only not in target.module or not mutants:
                continue
            if asked.sample:
                mutants = random.Random(0).sample(mutants, min(asked.sample, len(mutants)))
            if asked.list:
                print(f"{name:<14} {target.module:<50} {len(mutants):>4} mutants")
            else:
                failed |= _report(target, mutants, asked.jobs, asked.killers) > 0 and GROUPS[name].none_may_survive
    return int(failed)


def mutants_to_notice(target: Target) -> list[Mutant]:
    """Return the mutants of a target that tests have to notice: all but those that `equivalent` explains.

    Raises
    ------
    ValueError
        An explanation fits no mutant: the code moved on.
    """
    found = mutants_of((ROOT / target.path).read_text(encoding="utf-8"), target.functions)
    for function, pattern in EQUIVALENT.get(target.module, {}):
        left = [one for one in found if one.function != function or re.search(pattern, one.changed) is None]
        if len(left) == len(found):
            raise ValueError(f"{target.module}: no mutant of {function!r} fits {pattern!r}: take it out of equivalent")
        found = left
    return found


def _report(target: Target, mutants: Sequence[Mutant], jobs: int, killers: bool) -> int:
    began = time.monotonic()
    print(f"{target.module}: {len(mutants)} mutants", flush=True)
    outcomes = _in_its_own_process(target, mutants, jobs)
    survivors = [outcome.mutant for outcome in outcomes if outcome.noticed_by is None]
    for outcome in outcomes if killers else ():
        print(f"    {outcome.mutant}    [{outcome.noticed_by}]")
    print(f"  {len(mutants) - len(survivors)} of {len(mutants)} noticed, {time.monotonic() - began:.0f} s")
    for mutant in survivors:
        print(f"  survives  {mutant}\n            {mutant.changed}", flush=True)
    return len(survivors)


def _in_its_own_process(target: Target, mutants: Sequence[Mutant], jobs: int) -> list[Outcome]:
    import cvxpy  # noqa: F401  imported once, before the processes are forked
    import hypothesis  # noqa: F401
    import pandas  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401

    reading, writing = get_context("fork").Pipe(duplex=False)
    process = get_context("fork").Process(target=_collect_and_run, args=(target, mutants, jobs, writing))
    process.start()
    writing.close()
    answer: list[Outcome] | str = reading.recv()
    process.join()
    if isinstance(answer, str):
        raise RuntimeError(answer)
    return answer


def _collect_and_run(target: Target, mutants: Sequence[Mutant], jobs: int, writing: Connection) -> None:
    tell = _teller()
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    try:
        writing.send(run_target(target, mutants, jobs, tell))
    except RuntimeError as problem:
        writing.send(str(problem))


def _teller() -> Callable[[str], None]:
    """Say how far the work is: on one line of a terminal, else now and then on a new one."""
    out = os.fdopen(os.dup(1), "w")
    live, last = out.isatty(), [-QUIET]

    def tell(message: str) -> None:
        if live or time.monotonic() - last[0] >= QUIET or message.startswith("survives"):
            out.write(f"\r\x1b[K  {message}" if live else f"  {message}\n")
            out.flush()
            last[0] = time.monotonic()

    return tell


if __name__ == "__main__":
    raise SystemExit(main())
