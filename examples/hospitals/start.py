"""Five hospitals as five processes, and a registry that has the labels: `make parties`.

    python examples/hospitals/start.py --out out/hospitals [--epsilon 1]

Makes the tables and the keys, starts a process for each hospital, which dials the registry under mutual TLS on this
machine, and fits one model. Without --epsilon exact shares cross; with it, shares with noise of the hospitals' own.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

from tables import RANGES, write_tables

from cvxpriv.distributed.keys import add_member, create_team

COMMAND = [sys.executable, "-m", "cvxpriv"]


def main() -> int:
    """Run the example; return the exit code of the registry's command."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=Path("out/hospitals"))
    options.add_argument("--epsilon", type=float)
    given = options.parse_args()
    hospitals = write_tables(given.out)
    team = given.out / "team"
    if not team.exists():
        create_team(team)
        for name in ("label-holder", *hospitals):
            add_member(team, name)
    address = f"127.0.0.1:{free_port()}"
    plan = ['table = "registry.csv"', 'identifier = "patient"', f'listen = "{address}"', 'keys = "team/label-holder"']
    plan += [f"parties = {hospitals}".replace("'", '"'), "wait = 120"]
    (given.out / "parties.toml").write_text("\n".join(plan) + "\n", encoding="utf-8")
    private = [] if given.epsilon is None else ["--epsilon", str(given.epsilon)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen([*COMMAND, *party(name, address, private)], cwd=given.out, env=environment)
        for name in hospitals
    ]
    fit = ["sharing", "--parties", "parties.toml", "--label", "readmitted", "--positive", "yes", "--out", "registry"]
    ended = subprocess.run(
        [*COMMAND, *fit, "--no-report", *(private or ["--tol", "1e-3"])], cwd=given.out, env=environment
    )
    for process in started:
        if ended.returncode:
            process.terminate()
        process.wait()
    return ended.returncode


def party(name: str, address: str, private: list[str]) -> list[str]:
    """Return the arguments by which a hospital takes part."""
    ranges = [f"--range={column}:{low}:{high}" for column, (low, high) in RANGES[name].items()]
    place = ["--join", address, "--keys", f"team/{name}", "--identifier", "patient", "--out", name, "--quiet"]
    return ["party", "serve", f"{name}.csv", *place, *ranges, *(private or ["--exact"])]


def free_port() -> int:
    """Return a port of this machine that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
