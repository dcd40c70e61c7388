"""Parties in a federation that NVIDIA FLARE administers: our messages, as bytes, through its Collab API.

FLARE has the keys, the connections and the life of the job; here are the vocabulary's check, the numbering and the
log. A job ships no code (`write_job`): it names the two classes below, which a site admits in its `class_allow_list`.
The role of a site is made by a function that its own administrator names in the environment, never by the job. FLARE
ends a run whose party is killed.
"""

import json
import logging
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from cvxpriv.distributed.carriers import HOLDER, MessageLog, Role, refusal, require_willing
from cvxpriv.distributed.messages import Envelope, Message, Vocabulary
from cvxpriv.errors import DataError, MessageRefused, ModelError, PartyError, shown
from cvxpriv.reports.files import PathLike, write_text

try:
    from nvflare.collab import collab
except ImportError as error:
    raise ModelError('parties in a FLARE federation need nvflare: pip install "cvxpriv[nvflare]"') from error

#: Environment variables with the place, MODULE:FUNCTION, of a site's own function: `run()` at the label holder, inside
#: which `FlareHolder` is made, and `role(site)` at a party, which returns its `Role`.
HOLDING, SERVING = "CVXPRIV_FLARE_HOLDER", "CVXPRIV_FLARE_PARTY"


class FlareHolder:
    """The parties of the FLARE job that is running: see `Carrier`.

    Parameters
    ----------
    vocabulary : Vocabulary
    wait : float
        Seconds that an answer is waited for.
    """

    def __init__(self, vocabulary: Vocabulary, wait: float = 60.0) -> None:
        self.vocabulary, self.wait = vocabulary, wait
        self.names = tuple(sorted(site.name for site in collab.clients))
        self.sizes: dict[str, int] = {}
        self.log = MessageLog()
        self._session, self._numbers = "", dict.fromkeys(self.names, 0)

    def join(self) -> dict[str, Message]:
        """See `Carrier`."""
        self._session, self._numbers = secrets.token_hex(16), dict.fromkeys(self.names, 0)
        return self._called(dict.fromkeys(self.names, Message("wait")))

    def step_all(self, messages: Mapping[str, Message], *, opening: bool = False) -> dict[str, Message]:
        """See `Carrier`."""
        self._numbers.update({name: self._numbers[name] + 1 for name in messages})
        answers = self._called(messages)
        return {name: self.vocabulary.answers(answer, messages[name]) for name, answer in answers.items()}

    def close(self, how: str = "done") -> None:
        """See `Carrier`. FLARE ends the job where its main function returns or fails."""

    def _called(self, messages: Mapping[str, Message]) -> dict[str, Message]:
        """Call parties, all at once, and return the checked answer of each."""
        calls, answers = {}, {}
        for name, message in messages.items():
            data = self.vocabulary.encode(message, self._envelope(name))
            calls[name] = collab.get_clients([name])(blocking=False, timeout=self.wait).answer(data)
            self.log.note(HOLDER, name, message)
        for name, call in calls.items():
            found = [one for _, one in call]
            if not found or not isinstance(found[0], bytes):
                raise PartyError(f"{name} did not answer within {self.wait:g} seconds: {call.failures.get(name)}")
            envelope, answer = self.vocabulary.decode(found[0], "party", self.sizes)
            require_willing(name, answer)
            if envelope != self._envelope(name):
                raise MessageRefused(f"a message {answer.kind!r} was refused: it is replayed, or of another session")
            self.log.note(name, HOLDER, answer)
            answers[name] = answer
        return answers

    def _envelope(self, name: str) -> Envelope:
        return Envelope(self._session, self._numbers[name])


class HolderSite:
    """The label holder's component of a job."""

    @collab.main  # type: ignore[untyped-decorator]
    def run(self) -> None:
        """Run the function that this site names."""
        _named(HOLDING)()


class PartySite:
    """A party's component of a job: it answers the label holder, and nobody else."""

    def __init__(self) -> None:
        self._role: Role | None = None
        self._at = Envelope()

    @collab.publish  # type: ignore[untyped-decorator]
    def answer(self, data: bytes) -> bytes:
        """Answer a message; the first one, `wait`, begins a session, and its answer is the party's `hello`.

        Of an error nothing leaves but its class: FLARE would send its text and its traceback.
        """
        try:
            if collab.caller != "server":
                raise MessageRefused("a message was refused: a party answers the label holder alone")
            if self._role is None:
                self._role = _named(SERVING)(collab.site_name)
            said = self._answered(self._role, data)
        except Exception as error:
            log = logging.getLogger("cvxpriv")  # a provisioned site streams its job's log to the server
            log.error("what was asked is refused: %s", type(error).__name__)
            log.debug("because: %s", error)
            said = refusal(error)
        return Vocabulary([]).encode(said, self._at)

    def _answered(self, role: Role, data: bytes) -> Message:
        envelope, message = role.vocabulary.decode(data, "holder", role.sizes)
        if message.kind == "wait" and envelope.sequence == 0:
            self._at = envelope
            return role.hello()
        if envelope != replace(self._at, sequence=self._at.sequence + 1):
            raise MessageRefused(f"a message {message.kind!r} was refused: it is replayed, or of another session")
        self._at = envelope
        return role.answer(message)


def _named(variable: str) -> Callable[..., Any]:
    """Return the function that a site names in its environment."""
    place = os.environ.get(variable, "")
    try:
        found: Callable[..., Any] = resolve_name(place)
    except (ValueError, ImportError, AttributeError) as error:
        raise DataError(f"{variable}={shown(place)} names no function: set it to MODULE:FUNCTION ({error})") from error
    return found


def write_job(folder: PathLike, parties: int) -> Path:
    """Write a FLARE job, which ships no code, for a number of parties, and return its folder."""
    home, runtime, own = Path(folder), "nvflare.collab.runtime", "cvxpriv.distributed.flare"
    server = {
        "workflows": [
            {"id": "run", "path": f"{runtime}.controller.CollabController", "args": {"server_obj_id": "holder"}}
        ],
        "components": [{"id": "holder", "path": f"{own}.HolderSite"}],
    }
    executor = {"path": f"{runtime}.executor.CollabExecutor", "args": {"client_obj_id": "party"}}
    client = {
        "executors": [{"tasks": ["*"], "executor": executor}],
        "components": [{"id": "party", "path": f"{own}.PartySite"}],
    }
    meta = {"name": "cvxpriv", "min_clients": parties, "deploy_map": {"app": ["@ALL"]}}
    for name, content in {"app/config/config_fed_server": server, "app/config/config_fed_client": client}.items():
        write_text(home / f"{name}.json", json.dumps({"format_version": 2, **content}, indent=1))
    write_text(home / "meta.json", json.dumps(meta, indent=1))
    return home
