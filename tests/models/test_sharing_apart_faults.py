"""Faults between parties that are apart: who and what is refused, and a party that dies comes back to the same bits."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cvxpriv_models.admm_sharing.apart import SharingApart
from cvxpriv_models.admm_sharing.apart_messages import SPOKEN
from cvxpriv_models.admm_sharing.apart_party import Allowance, SharingParty
from pyarrow import flight

from cvxpriv.cli.party_table import party_of
from cvxpriv.distributed import flight_holder, messages
from cvxpriv.distributed.carriers import InProcess
from cvxpriv.distributed.flight_holder import EXCHANGE, FlightHolder
from cvxpriv.distributed.flight_party import serve
from cvxpriv.distributed.keys import Keys, add_member, create_team, keys_in
from cvxpriv.distributed.messages import Envelope, Message
from cvxpriv.errors import MessageRefused, PartyError

EXACT = Allowance(exact=True)
#: The options of the processes below, as `party serve` reads them.
READ: dict[str, Any] = {
    **dict.fromkeys(("identifier", "columns", "epsilon", "budget")),
    **{"ranges": ("u:0:1", "w:0:1"), "categories": (), "beyond": "refuse", "exact": True, "delta": 1e-6},
    **{"bounds_from_data": False, "model_name": "ADMMSharing"},
}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Keys]:
    folder = create_team(tmp_path_factory.mktemp("keys") / "team")
    found = {name: keys_in(add_member(folder, name)) for name in ("label-holder", "a", "b", "c")}
    other = create_team(folder.parent / "other")
    late = add_member(folder, "late", days=1e-9)
    own = {kind: (late / f"certificate.{end}").read_bytes() for kind, end in (("certificate", "pem"), ("key", "key"))}
    past = replace(found["c"], name="late", **own)
    return {**found, "stranger": keys_in(add_member(other, "a")), "expired": past}


@pytest.fixture
def holder(team: Mapping[str, Keys]) -> Iterator[FlightHolder]:
    made = FlightHolder("127.0.0.1:0", team["label-holder"], ["a", "b"], SPOKEN, wait=20.0)
    yield made
    made.close()


def columns(rows: int = 80) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.5, 0.5, size=(rows, 4))
    return {"a": x[:, :2], "b": x[:, 2:]}, x @ [2.0, -1.0, 1.0, 0.5] + 0.2 * rng.normal(size=rows) > 0.0


class Caller:
    """A peer that sends whatever it likes."""

    def __init__(self, holder: FlightHolder, keys: Keys, expected: str = "label-holder") -> None:
        self.client = flight.FlightClient(
            f"grpc+tls://{holder.address}",
            tls_root_certs=keys.authority,
            cert_chain=keys.certificate,
            private_key=keys.key,
            override_hostname=expected,
        )

    def send(self, body: bytes, action: str = EXCHANGE) -> tuple[Envelope, Message]:
        found = list(self.client.do_action(flight.Action(action, body), flight.FlightCallOptions(timeout=10)))
        return SPOKEN.decode(found[0].body, "holder", {"rows": 80})

    def say(self, message: Message, session: str = "", sequence: int = 1) -> tuple[Envelope, Message]:
        return self.send(SPOKEN.encode(message, Envelope(session, sequence)))


def hello(rows: float = 80.0) -> Message:
    numbers = {"rows": np.array([rows]), "columns": np.array([2.0])}
    return Message("hello", {**numbers, "digests": np.zeros(0, dtype="<u8")})


def test_strangers_expired_keys_and_members_of_other_runs_are_refused(
    team: Mapping[str, Keys], holder: FlightHolder
) -> None:
    for name in ("stranger", "expired"):
        with pytest.raises(flight.FlightUnavailableError):
            Caller(holder, team[name]).say(hello())
    with pytest.raises(flight.FlightUnavailableError):  # the label holder is not who was expected
        Caller(holder, team["a"], expected="b").say(hello())
    with pytest.raises(flight.FlightUnauthorizedError, match="'c' is not a party of this run"):
        Caller(holder, team["c"]).say(hello())
    with pytest.raises(PartyError, match="'c' is not admitted"):
        serve(SharingParty(np.ones((3, 1)), EXACT), holder.address, team["c"], wait=1.0)
    with pytest.raises(flight.FlightUnavailableError):
        flight.FlightClient(
            f"grpc+tls://{holder.address}", tls_root_certs=team["a"].authority, override_hostname="label-holder"
        ).do_action(flight.Action(EXCHANGE, b"")).__next__()


def test_what_is_wrong_is_refused_and_the_run_still_ends_right(
    team: Mapping[str, Keys], holder: FlightHolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight_holder, "HOLD", 0.2)
    parts, labels = columns()
    caller = Caller(holder, team["a"])
    envelope, asked = caller.say(hello())
    assert asked.kind == "wait"
    session, poll = envelope.session, Message("poll")
    caller.say(poll, session, 2)
    for message, own, sequence, said in (
        (poll, session, 2, "it has number 2, expected 3"),
        (poll, session, 7, "it has number 7, expected 3"),
        (poll, "0" * 32, 3, "of another session"),
        (Message("ready"), session, 3, "nothing was asked"),
        (Message("begin"), session, 3, "none of that kind"),
        (hello(79.0), "", 1, "joined again with other rows"),
        (Message("share", {"pass": np.array([np.nan])}), session, 3, "its vectors are"),
    ):
        with pytest.raises(flight.FlightServerError, match=said):
            caller.say(message, own, sequence)
    with pytest.raises(flight.FlightServerError, match="is no action"):
        caller.send(b"", action="shutdown")
    with pytest.raises(flight.FlightServerError, match="no header"):
        caller.send(b"\x80\x04")
    with monkeypatch.context() as small:
        small.setattr(messages, "LARGEST", 1000)
        with pytest.raises(flight.FlightServerError, match="at most 1,000"):
            caller.send(b"x" * 1001)
    roles = {name: SharingParty(part, EXACT) for name, part in parts.items()}
    threads = [threading.Thread(target=serve, args=(roles[name], holder.address, team[name])) for name in roles]
    for thread in threads:
        thread.start()
    run = SharingApart(holder, labels).solve(max_iter=20)
    holder.close()
    for thread in threads:
        thread.join()
    with pytest.raises(flight.FlightError):  # the session of the first caller, which the party took over
        caller.say(poll, session, 3)
    alone = {name: SharingParty(part, EXACT) for name, part in parts.items()}
    expected = SharingApart(InProcess(alone, SPOKEN), labels).solve(max_iter=20)
    assert run.state["z"].tobytes() == expected.state["z"].tobytes()
    assert sum(bool(entry.refused) for entry in holder.log.entries) == 9


@pytest.mark.parametrize(
    ("sent", "said"), [(["x" * 5000], "more than 1,000 bytes was refused unread"), (["x"] * 10**6, "more messages")]
)
def test_a_party_reads_no_more_than_one_message_of_the_largest_size(
    team: Mapping[str, Keys], monkeypatch: pytest.MonkeyPatch, sent: list[str], said: str
) -> None:
    taken = []

    class Flood(flight.FlightServerBase):  # type: ignore[misc]
        def do_action(self, context: Any, action: Any) -> Iterator[Any]:
            for body in sent:
                taken.append(body)
                yield flight.Result(body.encode())

    own = team["label-holder"]
    monkeypatch.setattr(messages, "LARGEST", 1000)
    pair = [(own.certificate, own.key)]
    flood = Flood("grpc+tls://127.0.0.1:0", tls_certificates=pair, verify_client=True, root_certificates=own.authority)
    with flood, pytest.raises(MessageRefused, match=said):
        serve(SharingParty(np.ones((3, 1)), EXACT), f"127.0.0.1:{flood.port}", team["a"], wait=1.0)
    assert len(taken) < 10**6


class Killed(Exception):
    """The end of a party's process, as a test plays it."""


def dying(role: SharingParty, at: Mapping[float, str]) -> SharingParty:
    """A party that dies at some passes, before or after it has written its checkpoint."""
    answer = role.answer

    def listening(message: Message) -> Message:
        when = at.get(message.number("pass")) if "pass" in message.vectors else None
        if when == "before":
            raise Killed
        found = answer(message)
        if when == "after":
            raise Killed
        return found

    role.answer = listening  # type: ignore[method-assign]
    return role


def reborn(make: Callable[[int], SharingParty], address: str, keys: Keys) -> threading.Thread:
    """A party that is started again each time it dies."""

    def work() -> None:
        for life in range(10):
            try:
                serve(make(life), address, keys, wait=10.0)
                return
            except Killed:
                continue

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_party_comes_back_from_its_checkpoint_to_the_same_bits(
    team: Mapping[str, Keys], holder: FlightHolder, tmp_path: Path
) -> None:
    parts, labels = columns()
    deaths: list[Mapping[float, str]] = [{3.0: "before"}, {3.0: "after"}, {9.0: "after"}, {12.0: "before"}, {}]
    threads = [
        reborn(
            lambda life: dying(SharingParty(parts["a"], EXACT, folder=tmp_path / "a"), deaths[life]),
            holder.address,
            team["a"],
        ),
        reborn(lambda life: SharingParty(parts["b"], EXACT, folder=tmp_path / "b"), holder.address, team["b"]),
    ]
    run = SharingApart(holder, labels).solve(max_iter=20)
    holder.close()
    for thread in threads:
        thread.join()
    alone = {name: SharingParty(part, EXACT) for name, part in parts.items()}
    expected = SharingApart(InProcess(alone, SPOKEN), labels).solve(max_iter=20)
    assert all(run.state[name].tobytes() == expected.state[name].tobytes() for name in run.state)
    assert run.kkt == expected.kkt


@pytest.mark.parametrize("private", [False, True])
def test_a_party_that_dies_at_the_end_comes_back_to_its_coefficients_and_its_ledger(
    private: bool, team: Mapping[str, Keys], holder: FlightHolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has answered all, and dies before its files are written."""
    monkeypatch.setattr(flight_holder, "FAREWELL", 0.1)
    parts, labels = columns()
    allowed = Allowance(exact=True, epsilon=1.0, bounds={"row_bound": 1.2})
    lives, kept = list[SharingParty](), list[SharingParty]()

    def live(keep: Callable[[], None]) -> None:
        lives.append(SharingParty(parts["a"], allowed, folder=tmp_path / "a"))
        serve(lives[-1], holder.address, team["a"], wait=1.0, kept=keep)

    def die() -> None:
        raise Killed

    def work() -> None:
        with suppress(Killed):
            live(die)
        time.sleep(0.3)
        live(lambda: kept.append(lives[-1]))

    threads = [threading.Thread(target=work)]
    threads[0].start()
    threads.append(reborn(lambda life: SharingParty(parts["b"], allowed), holder.address, team["b"]))
    model = SharingApart(holder, labels, lam=5.0)
    if private:
        model.solve_private(epsilon=1.0, delta=1e-6, adjacency="replace-one", max_iter=3)
    else:
        model.solve(max_iter=3)
    holder.close()
    for thread in threads:
        thread.join()
    (last,) = kept
    assert last.coefficients.tobytes() == lives[0].coefficients.tobytes()
    assert last.ledger == lives[0].ledger
    assert len(last.ledger) == (3 if private else 0)


def test_a_private_party_that_dies_releases_each_pass_once(
    team: Mapping[str, Keys], holder: FlightHolder, tmp_path: Path
) -> None:
    parts, labels = columns()
    allowed = Allowance(epsilon=1.0, bounds={"row_bound": 1.2})
    deaths: list[Mapping[float, str]] = [{1.0: "after"}, {2.0: "before"}, {2.0: "after"}, {4.0: "after"}, {}]
    lives: list[SharingParty] = []

    def make(life: int) -> SharingParty:
        lives.append(SharingParty(parts["a"], allowed, folder=tmp_path / "a"))
        return dying(lives[-1], deaths[life])

    threads = [
        reborn(make, holder.address, team["a"]),
        reborn(lambda life: SharingParty(parts["b"], allowed, folder=tmp_path / "b"), holder.address, team["b"]),
    ]
    run = SharingApart(holder, labels, lam=5.0).solve_private(epsilon=1.0, delta=1e-6, adjacency="replace-one")
    holder.close()
    for thread in threads:
        thread.join()
    assert [entry.iteration for entry in lives[-1].ledger] == [1, 2, 3, 4]
    sent = [entry for entry in holder.log.entries if entry.kind == "released" and entry.sender == "a"]
    assert len(sent) == 4
    assert run.accounting.epsilon == pytest.approx(1.0, rel=1e-6)  # the budget, to the margin of the noise's scale


def test_a_party_without_its_checkpoint_ends_the_run(team: Mapping[str, Keys], holder: FlightHolder) -> None:
    parts, labels = columns()
    deaths: list[Mapping[float, str]] = [{3.0: "after"}, {}]
    ended: list[Exception] = []

    def first() -> None:
        try:
            serve(dying(SharingParty(parts["a"], EXACT), deaths[0]), holder.address, team["a"])
        except Killed:
            try:
                serve(SharingParty(parts["a"], EXACT), holder.address, team["a"])
            except PartyError as error:
                ended.append(error)

    threads = [
        threading.Thread(target=first),
        reborn(lambda life: SharingParty(parts["b"], EXACT), holder.address, team["b"]),
    ]
    threads[0].start()
    with pytest.raises(PartyError, match="it came back without its checkpoint"):
        SharingApart(holder, labels).solve(max_iter=20)
    holder.close("failed")
    for thread in threads:
        thread.join()
    assert "its checkpoint is missing" in str(ended[0])


def test_a_late_party_ends_the_run(team: Mapping[str, Keys]) -> None:
    parts, labels = columns()
    holder = FlightHolder("127.0.0.1:0", team["label-holder"], ["a"], SPOKEN, wait=0.5)
    role, done = SharingParty(parts["a"], EXACT), threading.Event()
    answer = role.answer

    def slow(message: Message) -> Message:
        if message.kind == "step":
            done.wait(3.0)
        return answer(message)

    role.answer = slow  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: serve(role, holder.address, team["a"], wait=0.1))
    thread.start()
    with pytest.raises(PartyError, match="a did not answer within 0.5 seconds"):
        SharingApart(holder, labels).solve()
    done.set()
    holder.close("failed")
    thread.join()


class Processes:
    """Real processes of `cvxpriv party serve`, each started again when it is killed."""

    def __init__(self, folder: Path, holder: FlightHolder, names: list[str], options: list[str]) -> None:
        self.folder, self.holder, self.options = folder, holder, options
        self.running = {name: self.start(name) for name in names}

    def start(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "cvxpriv", "party", "serve", f"{name}.csv", "--join", self.holder.address]
        keys = ["--keys", f"team/{name}", "--wait", "300", "--out", f"party-{name}", "--quiet"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen([*command, *keys, *self.options], cwd=self.folder, env=environment)

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].wait()
        self.running[name] = self.start(name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create_team(tmp_path / "team")
    for name in ("label-holder", "a", "b"):
        add_member(tmp_path / "team", name)
    parts, _ = columns()
    for name, part in parts.items():
        pd.DataFrame(part + 0.5, columns=["u", "w"]).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


@pytest.mark.slow
def test_twenty_random_kills_of_real_processes_give_no_wrong_model(folder: Path) -> None:
    """Kills come while a pass is under way, at a random moment of it; each is followed by a start."""
    _, labels = columns()
    rng = random.Random(0)
    holder = FlightHolder("127.0.0.1:0", keys_in(folder / "team" / "label-holder"), ["a", "b"], SPOKEN, wait=300.0)
    public = ["--range", "u:0:1", "--range", "w:0:1"]
    parties = Processes(folder, holder, ["a", "b"], ["--exact", *public])
    passes = set(rng.sample(range(2, 200), 20))
    killers: list[threading.Thread] = []

    def watch(loop: str, iteration: int, measured: Any) -> None:
        if iteration in passes:
            name, delay = rng.choice(["a", "b"]), rng.uniform(0.0, 0.02)
            for killer in killers:
                killer.join()
            killers.append(threading.Timer(delay, parties.kill, (name,)))
            killers[-1].start()
        time.sleep(0.002)  # so that a kill falls within some pass

    run = SharingApart(holder, labels).solve(max_iter=220, tol=1e-30, callback=watch)
    for killer in killers:
        killer.join()
    holder.close()
    assert [process.wait(300) for process in parties.running.values()] == [0, 0]
    alone = {name: party_of(str(folder / f"{name}.csv"), folder / "alone", b"", **READ)[0] for name in ("a", "b")}
    for role in alone.values():
        role.file = None
    expected = SharingApart(InProcess(alone, SPOKEN), labels).solve(max_iter=220, tol=1e-30)
    assert all(run.state[name].tobytes() == expected.state[name].tobytes() for name in run.state)
    for name, role in alone.items():
        found = pd.read_csv(folder / f"party-{name}" / "coefficients.csv")["coefficient"].to_numpy()
        assert found.tolist() == role.coefficients.tolist()
    assert sum(entry.kind == "hello" for entry in holder.log.entries) >= 12  # some kills meet a party that starts


@pytest.mark.slow
def test_killed_private_processes_keep_one_ledger(folder: Path) -> None:
    _, labels = columns()
    holder = FlightHolder("127.0.0.1:0", keys_in(folder / "team" / "label-holder"), ["a", "b"], SPOKEN, wait=300.0)
    public = ["--range", "u:0:1", "--range", "w:0:1"]
    parties = Processes(folder, holder, ["a", "b"], ["--epsilon", "1", *public])

    def watch(loop: str, iteration: int, measured: Any) -> None:
        if iteration in (2, 5):
            parties.kill("a")

    run = SharingApart(holder, labels, lam=5.0).solve_private(
        epsilon=1.0, delta=1e-6, adjacency="replace-one", max_iter=8, callback=watch
    )
    holder.close()
    assert [process.wait(300) for process in parties.running.values()] == [0, 0]
    ledger = json.loads((folder / "party-a" / "ledger.json").read_text())
    assert [entry["iteration"] for entry in ledger] == list(range(1, 9))
    assert run.accounting.releases == 16


@pytest.mark.slow
def test_a_process_that_stops_reading_ends_the_run_in_time(folder: Path) -> None:
    _, labels = columns()
    holder = FlightHolder("127.0.0.1:0", keys_in(folder / "team" / "label-holder"), ["a"], SPOKEN, wait=60.0)
    parties = Processes(folder, holder, ["a"], ["--exact"])

    def watch(loop: str, iteration: int, measured: Any) -> None:
        if iteration == 3:
            holder.wait = 2.0
            parties.running["a"].send_signal(signal.SIGSTOP)

    with pytest.raises(PartyError, match="a did not answer within 2 seconds"):
        SharingApart(holder, labels).solve(callback=watch)
    begun = time.monotonic()
    holder.close("failed")
    assert time.monotonic() - begun < 10.0
    parties.running["a"].kill()
    parties.running["a"].wait()


#: A label holder of 20,000 rows as a process of its own: it says its address, and at its end its peak of memory.
HOLDER_ALONE = """
import sys
import numpy as np
from cvxpriv.distributed.flight_holder import FlightHolder
from cvxpriv.distributed.keys import keys_in
from cvxpriv_models.admm_sharing.apart import SharingApart
from cvxpriv_models.admm_sharing.apart_messages import SPOKEN

holder = FlightHolder("127.0.0.1:0", keys_in(sys.argv[1]), ["a"], SPOKEN, wait=300.0)
print(holder.address, flush=True)
SharingApart(holder, np.arange(20_000) % 2 == 0).solve(max_iter=4, tol=1e-30)
holder.close()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
def test_the_label_holder_needs_no_more_memory_for_a_party_of_many_columns(folder: Path) -> None:
    peaks, columns_of, kib = [], (10, 300), 1024
    x = np.random.default_rng(0).uniform(size=(20_000, max(columns_of)))
    for count in columns_of:
        command = [sys.executable, "-c", HOLDER_ALONE, str(folder / "team" / "label-holder")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as alone:
            assert alone.stdout is not None
            address = alone.stdout.readline().strip()
            party = SharingParty(x[:, :count], EXACT)
            serve(party, address, keys_in(folder / "team" / "a"), wait=60.0)
            peaks.append(int(alone.stdout.readline()) * kib)
        assert len(party.coefficients) == count
    assert abs(peaks[1] - peaks[0]) < x.nbytes / 4  # the columns are 48 MB; two runs differ by a few
