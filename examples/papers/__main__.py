"""Every figure and table of the papers, drawn again: `make papers`.

    python examples/papers                                # all into docs/pictures, but for those of NEEDS_FILES
    python examples/papers --only pf_fig1 --only istdp_path
    python examples/papers --text                         # only the verdicts and the README: nothing is drawn

Each script runs twice: in full, for the picture and the numbers behind it, and with `--fast`, for the numbers in
docs/pictures/fast that tests/test_papers.py compares with a run of its own. docs/papers.json keeps, for each script,
its verdicts, the processor time of the full run, and a digest of its files; this folder's README is written from it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PICTURES, RECORD, README = ROOT / "docs/pictures", ROOT / "docs/papers.json", HERE / "README.md"
#: The papers by the first part of a script's name, and the scripts of each.
SCRIPTS = {
    "PF": ("pf_fig1", "pf_fig2"),
    "IAS": ("ias_convergence", "ias_tradeoff", "ias_table1"),
    "ISTDP": ("istdp_convergence", "istdp_floor", "istdp_path", "istdp_epsilon", "istdp_support"),
    "SHARING": ("sharing_fig1", "sharing_fig2", "sharing_fig3"),
    "RADMM": ("radmm_convergence", "radmm_private"),
}


NEEDS_FILES = ("sharing_fig2",)
"""Scripts of data that the user brings: drawn where --only names them."""


def pictures_of(script: str) -> list[str]:
    """Return the names of the files that a script draws, each once."""
    verdicts = importlib.import_module(script).VERDICTS
    return list(dict.fromkeys(picture for verdict in verdicts for picture in verdict.pictures))


def drawn(script: str, fast: bool, into: Path) -> float:
    """Run a script, and return its processor time in seconds, its processes' included."""
    before, began = os.times(), time.perf_counter()
    command = [sys.executable, str(HERE / f"{script}.py"), *(["--fast"] if fast else []), "--out", str(into)]
    subprocess.run(command, check=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent or time.perf_counter() - began


def draw(script: str) -> float:
    """Draw a script's pictures into docs/pictures with their numbers, and keep those of its fast run."""
    seconds = drawn(script, False, PICTURES)
    with tempfile.TemporaryDirectory() as folder:
        drawn(script, True, Path(folder))
        (PICTURES / "fast").mkdir(exist_ok=True)
        for found in Path(folder).glob("*.json"):
            (PICTURES / "fast" / found.name).write_bytes(found.read_bytes())
    return seconds


def digest(script: str) -> str:
    """Return a digest of a script's pictures and their numbers, which are made together and committed together."""
    sha = hashlib.sha256()
    for picture in map(Path, pictures_of(script)):
        for path in (picture, picture.with_suffix(".json"), "fast" / picture.with_suffix(".json")):
            if (PICTURES / path).exists():
                sha.update((PICTURES / path).read_bytes())
    return sha.hexdigest()[:16]


def entries(seconds: dict[str, float], known: dict[str, Any]) -> dict[str, Any]:
    """Return the record of every script: the verdicts of now, and the times and digests of what is drawn now or was."""
    found = {}
    for paper, scripts in SCRIPTS.items():
        for script in scripts:
            verdicts = [verdict.as_dict() for verdict in importlib.import_module(script).VERDICTS]
            found[script] = {**{"seconds": None, "digest": None}, **known.get(script, {})}
            found[script] |= {"paper": paper, "verdicts": verdicts}
            if script in seconds:
                found[script] |= {"seconds": round(seconds[script], 1), "digest": digest(script)}
    return found


def sections(record: dict[str, Any]) -> dict[str, str]:
    """Return the texts that the README takes from the record, by the name of their place in it."""
    table = ["| figure | verdict | script | processor time |", "| --- | --- | --- | --- |"]
    texts = {"table": ""}
    for script, entry in record.items():
        spent = f"{entry['seconds']:.0f} s" if entry["seconds"] is not None else "not measured"
        for verdict in entry["verdicts"]:
            table.append(f"| {entry['paper']}: {verdict['figure']} | {verdict['kind']} | `{script}.py` | {spent} |")
            texts[entry["paper"]] = texts.get(entry["paper"], "") + paragraph(verdict, script)
    return {**texts, "table": "\n".join(table) + "\n"}


def paragraph(verdict: dict[str, Any], script: str) -> str:
    """Return what is said of one figure, with its picture."""
    kind = verdict["kind"]
    lines = [
        f"### {verdict['figure']}",
        f"**{kind[0].upper()}{kind[1:]}.** In the paper: {verdict['shows']}",
        f"Here: {verdict['found']}",
        *([verdict["why"]] if verdict["why"] else []),
    ]
    for name in verdict["pictures"]:
        if not (PICTURES / name).exists():
            lines.append(f"*{name} is not drawn yet: `make papers` does it.*")
            continue
        numbers = Path(name).with_suffix(".json")
        beside = f", numbers in [{numbers}](../../docs/pictures/{numbers})" if (PICTURES / numbers).exists() else ""
        shown = f"![{verdict['figure']}](../../docs/pictures/{name})" if name.endswith(".png") else ""
        link = "" if shown else f"[The table](../../docs/pictures/{name}). "
        lines += [*([shown] if shown else []), f"*{link}Drawn by `{script}.py`{beside}.*"]
    return "\n\n".join(lines) + "\n\n"


def written(readme: str, texts: dict[str, str]) -> str:
    """Return the README with its places filled: each stands between two comments."""
    for name, text in texts.items():
        opening, closing = f"<!-- {name}: written by make papers -->", f"<!-- end of {name} -->"
        before, _, rest = readme.partition(opening)
        readme = f"{before}{opening}\n\n{text.rstrip()}\n\n{closing}{rest.partition(closing)[2]}"
    return readme


def main() -> None:
    """Draw what is asked for, and write the record and the README after each script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a script, without .py; may be given again")
    parser.add_argument("--text", action="store_true", help="draw nothing")
    options = parser.parse_args()
    everything = [script for scripts in SCRIPTS.values() for script in scripts]
    for script in [] if options.text else options.only or everything:
        if pictures_of(script) and (options.only or script not in NEEDS_FILES):
            seconds = draw(script)
            print(f"{script}: {seconds:.0f} s of processor time")
            record({script: seconds})
    record({})


def record(seconds: dict[str, float]) -> None:
    """Write the record, with the times of what is just drawn, and the README."""
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    found = entries(seconds, known)
    RECORD.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    README.write_text(written(README.read_text(encoding="utf-8"), sections(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
