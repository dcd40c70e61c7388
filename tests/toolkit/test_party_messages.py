"""Messages, keys, alignment and checkpoints of parties that are apart: what is taken, and what is refused."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cvxpriv.distributed import messages
from cvxpriv.distributed.alignment import common_rows, digests
from cvxpriv.distributed.checkpoint import FILE, Checkpoint, hold, read_checkpoint, write_checkpoint
from cvxpriv.distributed.flight_holder import place_of, seconds_of
from cvxpriv.distributed.keys import add_member, create_team, keys_in
from cvxpriv.distributed.kinds import Kind, Text, Vector
from cvxpriv.distributed.messages import PROTOCOL, Envelope, Message, Vocabulary
from cvxpriv.distributed.participant import Allowance, Participant
from cvxpriv.errors import DataError, MessageRefused, PartyError

SPOKEN = Vocabulary(
    [
        Kind("ask", "holder", {"pass": Vector(1, "the pass")}, answer="share"),
        Kind(
            "share",
            "party",
            {"pass": Vector(1, "the pass"), "values": Vector("rows", "one number a row", low=-10.0, high=10.0)},
            {"name": Text("a name", ("a", "b"))},
        ),
    ]
)
SIZES = {"rows": 3}
SHARE = Message("share", {"pass": np.ones(1), "values": np.array([1.0, -0.0, 0.1])}, {"name": "a"})


def changed(vectors: dict[str, Any] | None = None, kind: str = "share", name: str = "a") -> Message:
    return Message(kind, {**SHARE.vectors, **(vectors or {})}, {"name": name})


def test_a_message_comes_back_to_the_last_bit() -> None:
    envelope, found = SPOKEN.decode(SPOKEN.encode(SHARE, Envelope("s", 7)), "party", SIZES)
    assert (envelope, found.kind, found.texts) == (Envelope("s", 7), "share", {"name": "a"})
    assert all(found.vectors[name].tobytes() == vector.tobytes() for name, vector in SHARE.vectors.items())


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (changed({"values": np.array([1.0, np.nan, 0.0])}), "NaN or infinity"),
        (changed({"values": np.array([1.0, np.inf, 0.0])}), "NaN or infinity"),
        (changed({"values": np.zeros(4)}), "4 entries, expected 3"),
        (changed({"values": np.array([1.0, 11.0, 0.0])}), "leaves -10 to 10"),
        (changed({"values": np.zeros(3, dtype="<u8")}), "another type"),
        (changed({"rows": np.zeros(3)}), "vectors are"),
        (changed(kind="run-this"), "has none of that kind"),
        (changed(kind="ask"), "has none of that kind"),
        (changed(name="c"), "its text 'name'"),
    ],
)
def test_a_message_that_is_not_of_the_vocabulary_is_refused(message: Message, said: str) -> None:
    with pytest.raises(MessageRefused, match=said):
        SPOKEN.decode(SPOKEN.encode(message), "party", SIZES)


def header(change: Callable[[dict[str, Any]], Any]) -> bytes:
    line, _, rest = SPOKEN.encode(SHARE).partition(b"\n")
    head = json.loads(line)
    change(head)
    return json.dumps(head).encode() + b"\n" + rest


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (header(lambda head: head.update(protocol="cvxpriv-parties/0")), f"this end {PROTOCOL}"),
        (header(lambda head: head.update(sequence=True)), "malformed"),
        (header(lambda head: head.update(vectors=[["values", "object", 3]])), "malformed"),
        (header(lambda head: head["vectors"].append(head["vectors"][0])), "malformed"),
        (header(lambda head: head["vectors"][1].__setitem__(2, 2**27)), "cut off"),
        (header(lambda head: head["vectors"][1].__setitem__(2, 1)), "bytes follow"),
        (b"{}" * 70_000, "no header"),
        (b"\x80\x04\x95\n", "no JSON"),
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(MessageRefused, match=said):
        SPOKEN.decode(data, "party", SIZES)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 200))
def test_any_damage_is_refused_or_leaves_a_message_of_the_vocabulary(noise: bytes, place: int) -> None:
    data = SPOKEN.encode(SHARE)
    try:
        _, found = SPOKEN.decode(data[:place] + noise + data[place + len(noise) :], "party", SIZES)
    except MessageRefused:
        return
    assert SPOKEN.check(found, "party", SIZES) is found


def test_an_oversized_message_is_refused_before_it_is_read_or_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = SPOKEN.encode(SHARE)
    monkeypatch.setattr(messages, "LARGEST", 100)
    with pytest.raises(MessageRefused, match="was refused: at most 100"):
        SPOKEN.decode(sent, "party", SIZES)
    with pytest.raises(MessageRefused, match="is not sent: at most 100"):
        SPOKEN.encode(SHARE)


def test_an_answer_is_of_the_pass_and_the_kind_that_was_asked_for() -> None:
    ask = Message("ask", {"pass": np.ones(1)})
    assert SPOKEN.answers(SHARE, ask) is SHARE
    with pytest.raises(MessageRefused, match="it is of pass 2, not 1"):
        SPOKEN.answers(changed({"pass": np.array([2.0])}), ask)
    with pytest.raises(MessageRefused, match="'share' was expected"):
        SPOKEN.answers(Message("poll"), ask)


def test_secrets_are_their_owner_s_alone_and_are_never_replaced(tmp_path: Path) -> None:
    create_team(tmp_path / "team")
    own = add_member(tmp_path / "team", "hospital-a")
    secret = [tmp_path / "team" / "authority.key", own / "certificate.key", own / "alignment.key"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in secret] == [0o600] * 3
    assert keys_in(own).name == "hospital-a"
    assert "PRIVATE" not in repr(keys_in(own))
    with pytest.raises(DataError, match="never replaced"):
        add_member(tmp_path / "team", "hospital-a")
    with pytest.raises(DataError, match="never replaced"):
        create_team(tmp_path / "team")
    secret[1].chmod(0o640)
    with pytest.raises(DataError, match="chmod 600"):
        keys_in(own)


def test_keys_that_do_not_belong_together_or_are_not_good_now_are_told(tmp_path: Path) -> None:
    team = create_team(tmp_path / "team")
    own, other = add_member(team, "a"), add_member(create_team(tmp_path / "other"), "a")
    for name in ("authority.pem", "certificate.pem", "certificate.key"):
        kept = (own / name).read_bytes()
        for wrong in (b"no key", (other / name).read_bytes()):
            (own / name).write_bytes(wrong)
            with pytest.raises(DataError, match="do not belong together"):
                keys_in(own)
        (own / name).write_bytes(kept)
    assert keys_in(own).name == "a"
    with pytest.raises(DataError, match="it is not that time here: set the clock"):
        keys_in(add_member(team, "late", days=1e-9))
    for days in ("x", True, 0.0, float("nan")):
        with pytest.raises(DataError, match="is no time"):
            add_member(team, "b", days=days)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "address", ["", "x", "127.0.0.1", "a:b:c", "h:99999", "h:-1", "h:80/..", "u@h:80", "::1:80", 80]
)
def test_what_is_no_address_is_refused_before_anything_is_reached(address: Any) -> None:
    with pytest.raises(DataError, match=r"join=.* is no address: give HOST:PORT"):
        place_of("join", address)
    with pytest.raises(DataError, match="wait=nan is no number of seconds"):  # a party had waited without end
        seconds_of(float("nan"))
    assert [place_of("join", one)[-7:] for one in ("h.example:8815", "[::1]:0")] == ["le:8815", "[::1]:0"]


@pytest.mark.parametrize("name", ["", "../b", "A", "a b", "-a", "a" * 41])
def test_a_member_s_name_is_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="is no name"):
        add_member(tmp_path, name)


def test_rows_are_aligned_by_keyed_hashes_that_tell_nothing_without_the_key() -> None:
    people = {"holder": ["p1", "p2", "p3", "p4"], "a": ["p4", "p2", "p9"], "b": ["p8", "p2", "p7", "p4"]}
    found = common_rows({name: digests(ids, b"k" * 16) for name, ids in people.items()})
    rows = [[people[name][place] for place in places] for name, places in found.items()]
    assert sorted(rows[0]) == ["p2", "p4"]
    assert rows[0] == rows[1] == rows[2]
    assert digests(["\u00e9"], b"k" * 16).tolist() == digests(["e\u0301"], b"k" * 16).tolist()  # one letter, é
    assert not np.isin(digests(["p2"], b"l" * 16), digests(["p2"], b"k" * 16)).any()


def test_identifiers_that_cannot_be_aligned_are_refused() -> None:
    with pytest.raises(DataError, match="names a row twice"):
        digests(["p1", "p1"], b"k" * 16)
    with pytest.raises(DataError, match="empty cells"):
        digests(["p1", ""], b"k" * 16)
    with pytest.raises(DataError, match="no row in common"):
        common_rows({"a": digests(["p1"], b"k" * 16), "b": digests(["p2"], b"k" * 16)})
    with pytest.raises(DataError, match="distinct hashes"):
        common_rows({"a": np.zeros(8, dtype="<u8"), "b": digests(["p2"], b"k" * 16)})


@pytest.mark.parametrize("durable", [True, False])
def test_a_checkpoint_comes_back_whole_or_is_called_damaged(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "checkpoint.bin"
    assert read_checkpoint(path) is None
    write_checkpoint(path, Checkpoint("r", 3, {"x": np.array([0.1, 2.0])}, [{"mu": 0.1}], {"mu": 0.1}), durable=durable)
    found = read_checkpoint(path)
    assert found is not None
    assert (found.run, found.passes, found.ledger, found.terms) == ("r", 3, [{"mu": 0.1}], {"mu": 0.1})
    assert found.arrays["x"].tolist() == [0.1, 2.0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="no checkpoint"):
        read_checkpoint(path)


def test_a_folder_is_served_by_one_process_and_free_when_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "party"
    program = (
        "import pathlib, sys; from cvxpriv.distributed.checkpoint import hold;"
        "hold(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        for place in (folder, tmp_path / "." / "party"):
            with pytest.raises(PartyError, match="served by another process"):
                Participant(np.ones((1, 1)), Allowance(exact=True), place)
        other.kill()
    assert (folder / f"{FILE}.lock").exists()  # it is left over, and nobody holds it
    first = Participant[Any](np.ones((1, 1)), Allowance(exact=True), folder)
    second = Participant[Any](np.ones((1, 1)), Allowance(exact=True), folder)
    assert first.file == second.file
    hold(tmp_path / "another")
