"""A party's end of Arrow Flight: it dials the orchestrator, answers what its vocabulary has, and opens no port."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from cvxpriv.distributed import messages
from cvxpriv.distributed.carriers import HOLDER, MessageLog, Role, refusal
from cvxpriv.distributed.flight_holder import EXCHANGE, HOLD, flight, place_of, seconds_of
from cvxpriv.distributed.keys import Keys
from cvxpriv.distributed.messages import Envelope, Message
from cvxpriv.errors import CvxprivError, MessageRefused, PartyError

#: Seconds between two attempts to reach the orchestrator.
PAUSE = 0.2
#: Seconds beyond `HOLD` after which a call is given up.
MARGIN = 30.0
#: Bytes that Arrow Flight puts around a message, at most.
WRAPPING = 1024


def serve(
    role: Role,
    join: str,
    keys: Keys,
    *,
    holder: str = "label-holder",
    wait: float = 60.0,
    log: MessageLog | None = None,
    joined: Callable[[], None] | None = None,
    kept: Callable[[], None] | None = None,
) -> str:
    """Join a run, answer its messages until it ends, and return how it ended: "done" or "failed".

    Parameters
    ----------
    role : Role
    join : str
        HOST:PORT of the orchestrator.
    keys : Keys
    holder : str
        Name in the orchestrator's certificate.
    wait : float
        Seconds for which an orchestrator that is not there is looked for, at the start and after a lost connection.
    log : MessageLog, optional
    joined : callable, optional
        Called once, when the orchestrator has admitted the party.
    kept : callable, optional
        Called when the run has ended, to keep what the party has of it. The orchestrator waits until it is done: a
        party that dies before comes back to the end of the run.

    Raises
    ------
    DataError
        `join` is no address, or `wait` no time.
    PartyError
        The orchestrator was not reached in time, or does not admit this party.
    MessageRefused
        It refused a message, or sent one that is refused here.
    """
    connection = _Connection(role, join, keys, holder, log or MessageLog())
    lost, admitted, wait = time.monotonic(), False, seconds_of(wait)
    while True:
        try:
            request = connection.call(role.hello(), fresh=True)
            if joined is not None and not admitted:
                joined()
            admitted = True
            while request.kind != "end":
                lost = time.monotonic()
                request = connection.call(_answer(role, request, connection))
            if kept is not None:
                kept()
            with suppress(CvxprivError, flight.FlightError):  # whoever is no longer there need not know
                connection.call(Message("poll"))
            return request.texts["how"]
        except (flight.FlightUnavailableError, flight.FlightTimedOutError) as error:
            if time.monotonic() - lost > wait:
                reason = str(error).splitlines()[0][:200]
                raise PartyError(f"join={join!r} was not reached within {wait:g} seconds: {reason}") from error
            time.sleep(PAUSE)


def _answer(role: Role, request: Message, connection: _Connection) -> Message:
    """Return the answer to a request; a party that fails says so, and then fails."""
    if request.kind == "wait":
        return Message("poll")
    try:
        return role.answer(request)
    except CvxprivError as error:
        with suppress(CvxprivError, flight.FlightError):
            connection.call(refusal(error))
        raise


class _Connection:
    """A session with the orchestrator."""

    def __init__(self, role: Role, join: str, keys: Keys, holder: str, log: MessageLog) -> None:
        self.role, self.name, self.log = role, keys.name, log
        self.session, self.sequence = "", 0
        self.options = flight.FlightCallOptions(timeout=HOLD + MARGIN)
        self.client = flight.FlightClient(
            place_of("join", join),
            tls_root_certs=keys.authority,
            cert_chain=keys.certificate,
            private_key=keys.key,
            override_hostname=holder,
            generic_options=[("grpc.max_receive_message_length", messages.LARGEST + WRAPPING)],
        )

    def call(self, message: Message, fresh: bool = False) -> Message:
        """Send a message and return the next request."""
        self.session, self.sequence = ("", 1) if fresh else (self.session, self.sequence + 1)
        spoken = self.role.vocabulary
        body = spoken.encode(message, Envelope(self.session, self.sequence))
        try:
            found = list(islice(self.client.do_action(flight.Action(EXCHANGE, body), self.options), 2))
        except flight.FlightUnauthorizedError as error:
            raise PartyError(f"{self.name!r} is not admitted to this run: the orchestrator must list it") from error
        except flight.FlightServerError as error:
            raise MessageRefused(str(error).splitlines()[0].partition(". Detail:")[0][:400]) from error
        except flight.FlightCancelledError as error:  # what gRPC makes of a message beyond the limit
            raise MessageRefused(f"a message of more than {messages.LARGEST:,} bytes was refused unread") from error
        if len(found) != 1:
            raise MessageRefused(f"{'more' if found else 'fewer'} messages came than one")
        self.log.note(self.name, HOLDER, message)
        envelope, request = spoken.decode(found[0].body, "holder", self.role.sizes)
        if envelope.sequence != self.sequence or (not fresh and envelope.session != self.session):
            raise MessageRefused(f"a message {request.kind!r} was refused: it is replayed, or of another session")
        self.session = envelope.session
        self.log.note(HOLDER, self.name, request)
        return request
