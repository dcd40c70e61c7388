"""The orchestrator's end of Arrow Flight: it listens, and parties dial in under mutual TLS.

Parties dial, so that a party opens no port: its network need only let connections out. A party's call carries its
answer and returns with its next request; where there is none yet it is held for a while. Who calls is read off the
certificate of the connection, never off a message. Each party has one session at a time: joining again ends the one
before, and the openings and the request that was not answered are sent again.
"""

import re
import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cvxpriv.distributed.carriers import HOLDER, MessageLog, require_willing
from cvxpriv.distributed.keys import Keys
from cvxpriv.distributed.kinds import REFUSAL
from cvxpriv.distributed.messages import Envelope, Message, Vocabulary
from cvxpriv.errors import CvxprivError, DataError, MessageRefused, ModelError, PartyError, shown
from cvxpriv.numerics.arguments import finite_double

try:
    from pyarrow import flight as flight
except ImportError as error:
    raise ModelError('parties over a network need pyarrow: pip install "cvxpriv[parties]"') from error

#: The one action that is served, and how long a call without a request is held, in seconds.
EXCHANGE, HOLD = "exchange", 5.0
#: Seconds that parties are given to fetch the end of a run that failed, and a server to end.
FAREWELL = 1.0
#: Longest time to wait for a party: a month.
MOST_SECONDS = 30.0 * 86400.0
#: A host by its name or number, and a port.
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


@dataclass
class _Seat:
    """One party's place: its session, and what was asked of it."""

    session: str = ""
    sequence: int = 0
    hello: Message | None = None
    pending: deque[Message] = field(default_factory=deque)
    asked: Message | None = None
    answer: Message | None = None
    openings: list[Message] = field(default_factory=list)
    replaying: int = 0
    refused: str = ""
    heard: bool = False
    left: bool = False


class FlightHolder:
    """The parties that dial in.

    Parameters
    ----------
    listen : str
        HOST:PORT; port 0 takes a free one, `address` names it.
    keys : Keys
        Those of the orchestrator.
    names : sequence of str
        The parties that are admitted, as their certificates name them.
    vocabulary : Vocabulary
    wait : float
        Seconds that a party is waited for, whether it is lost, late or slow.
    """

    def __init__(
        self, listen: str, keys: Keys, names: Sequence[str], vocabulary: Vocabulary, wait: float = 60.0
    ) -> None:
        self.names, self.vocabulary, self.wait = tuple(names), vocabulary, seconds_of(wait)
        self.sizes: dict[str, int] = {}
        self.log = MessageLog()
        self._seats = {name: _Seat() for name in self.names}
        self._changed = threading.Condition()
        self._ended = ""
        self._server = _server(listen, keys, self._exchange)
        self.address = f"{listen.rpartition(':')[0]}:{self._server.port}"

    def join(self) -> dict[str, Message]:
        """See `Carrier`."""
        seats = self._seats
        with self._changed:
            self._until(lambda: [name for name in self.names if seats[name].hello is None], "join")
            return {name: seat.hello for name, seat in seats.items() if seat.hello is not None}

    def step_all(self, messages: Mapping[str, Message], *, opening: bool = False) -> dict[str, Message]:
        """See `Carrier`."""
        seats = {name: self._seats[name] for name in messages}
        with self._changed:
            for name, seat in seats.items():
                seat.answer = None
                seat.pending.append(messages[name])
            self._changed.notify_all()
            self._until(lambda: [name for name, seat in seats.items() if seat.answer is None], "answer")
            answers = {name: require_willing(name, seat.answer) for name, seat in seats.items() if seat.answer}
            for name, seat in seats.items() if opening else ():
                seat.openings.append(messages[name])
        return answers

    def close(self, how: str = "done") -> None:
        """See `Carrier`. A party that died is waited for where the run is done, so that it comes back to its end."""
        with self._changed:
            self._ended = self._ended or how
            self._changed.notify_all()
            joined = [seat for seat in self._seats.values() if seat.session]
            longest = self.wait if self._ended == "done" else FAREWELL
            self._changed.wait_for(lambda: all(seat.left for seat in joined), longest)
        closing = threading.Thread(target=self._server.shutdown, daemon=True)  # waits for a peer that never reads
        closing.start()
        closing.join(FAREWELL)

    def _until(self, missing: Callable[[], list[str]], what: str) -> None:
        """Wait until no party is missing."""
        if not self._changed.wait_for(lambda: not missing(), self.wait):
            names = missing()
            said = next((self._seats[name].refused for name in names if self._seats[name].refused), "")
            last = f"; the last message of it was refused: {said}" if said else ""
            raise PartyError(f"{', '.join(names)} did not {what} within {self.wait:g} seconds{last}")

    def _exchange(self, name: str, data: Any) -> bytes:
        """Take a party's message and return its next one; on a thread of the server."""
        seat = self._seats.get(name)
        if seat is None:
            raise flight.FlightUnauthorizedError(f"{name!r} is not a party of this run")
        with self._changed:
            try:
                self._take(name, seat, data)
            except MessageRefused as error:
                seat.refused = str(error)
                self.log.note(name, HOLDER, Message("?"), refused=str(error))
                raise
            session, sequence = seat.session, seat.sequence
            self._changed.notify_all()
            self._changed.wait_for(lambda: bool(seat.pending or self._ended) or seat.session != session, HOLD)
            if seat.session != session:
                raise MessageRefused("this session has ended: the party joined again")
            request = self._next(seat)
            self.log.note(HOLDER, name, request)
        return self.vocabulary.encode(request, Envelope(session, sequence))

    def _take(self, name: str, seat: _Seat, data: Any) -> None:
        envelope, message = self.vocabulary.decode(data, "party", self.sizes)
        if message.kind == "hello":
            self._seat(seat, message, envelope)
        elif envelope.session != seat.session or not seat.session:
            raise MessageRefused(f"a message {message.kind!r} was refused: it is of another session")
        elif envelope.sequence != seat.sequence + 1:
            raise MessageRefused(
                f"a message {message.kind!r} was refused: it has number {envelope.sequence}, expected "
                f"{seat.sequence + 1}: it is replayed, or one was lost"
            )
        elif message.kind != "poll":
            self._answered(seat, message)
        seat.sequence = envelope.sequence
        self.log.note(name, HOLDER, message)

    def _seat(self, seat: _Seat, hello: Message, envelope: Envelope) -> None:
        """Begin a session; a party that joins again must have the same table."""
        known = hello.vectors if seat.hello is None else seat.hello.vectors
        if any(known[name].tobytes() != vector.tobytes() for name, vector in hello.vectors.items()):
            raise MessageRefused("a party joined again with other rows: a run keeps the table that it began with")
        unanswered = [seat.asked] if seat.asked is not None and not seat.replaying else []
        waiting = [one for one in seat.pending if not any(one is opening for opening in seat.openings)]
        seat.hello, seat.session, seat.asked = hello, secrets.token_hex(16), None
        seat.heard = seat.left = False
        seat.pending = deque([*seat.openings, *unanswered, *waiting])
        seat.replaying = len(seat.openings)

    def _answered(self, seat: _Seat, answer: Message) -> None:
        if seat.asked is None:
            raise MessageRefused(f"a message {answer.kind!r} was refused: nothing was asked")
        self.vocabulary.answers(answer, seat.asked)
        seat.asked, seat.left = None, answer.kind == REFUSAL
        if seat.replaying and not seat.left:
            seat.replaying -= 1
        else:
            seat.answer = answer

    def _next(self, seat: _Seat) -> Message:
        if self._ended and not (seat.replaying and seat.pending):
            seat.heard, seat.left = True, seat.heard  # it calls once more when it has kept what it has
            self._changed.notify_all()
            return Message("end", texts={"how": self._ended})
        if not seat.pending:
            return Message("wait")
        seat.asked = seat.pending.popleft()
        return seat.asked


def seconds_of(wait: Any) -> float:
    """Return a time to wait; raises DataError where it is none."""
    if not 0.0 <= (seconds := finite_double(wait)) <= MOST_SECONDS:
        raise DataError(f"wait={shown(wait)} is no number of seconds: give one up to {MOST_SECONDS:g}")
    return seconds


def place_of(name: str, address: Any) -> str:
    """Return the location of an address HOST:PORT; raises DataError where it is none."""
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None or int(found[1]) > 65535:
        raise DataError(f"{name}={shown(address)} is no address: give HOST:PORT")
    return f"grpc+tls://{address}"


def _server(listen: str, keys: Keys, exchange: Callable[[str, Any], bytes]) -> Any:
    """Return a server that listens; only members of the team get through to `exchange`."""
    place = place_of("listen", listen)

    class Server(flight.FlightServerBase):  # type: ignore[misc]
        def do_action(self, context: Any, action: Any) -> Any:
            if action.type != EXCHANGE:
                raise flight.FlightServerError(f"{action.type[:40]!r} is no action of this server")
            try:
                answer = exchange(context.peer_identity().decode("ascii", "replace"), action.body)
            except CvxprivError as error:
                raise flight.FlightServerError(str(error)) from error
            return [flight.Result(answer)]

    try:
        return Server(
            place,
            tls_certificates=[(keys.certificate, keys.key)],
            verify_client=True,
            root_certificates=keys.authority,
        )
    except Exception as error:  # pyarrow raises several, whatever is wrong with the address
        said = str(error).partition("\n")[0]
        raise DataError(f"listen={listen!r} cannot be served ({said}): give HOST:PORT with a free port") from error
