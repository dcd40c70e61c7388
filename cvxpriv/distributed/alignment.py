"""The rows that all parties have, found by a keyed hash of an identifier, in one common order.

Each member hashes its identifiers under the team's secret (HMAC-SHA256), and sends the hashes to the label holder, who
intersects them and tells each party which of its rows to take. What is assumed: every member holds the secret and keeps
it. Whoever has it can test whether a guessed identifier is in a list of hashes that it sees; the label holder sees all
lists, and learns which of its own people each party has. Private set intersection would hide that, and is not done.
"""

import hashlib
import hmac
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from cvxpriv.distributed.carriers import HOLDER, Carrier
from cvxpriv.distributed.messages import Message
from cvxpriv.errors import DataError

#: Words of 64 bits in a hash.
WORDS = 4
Words = npt.NDArray[np.uint64]


def digests(identifiers: Sequence[str], secret: bytes) -> Words:
    """Return the keyed hashes of identifiers, one after the other, four words each.

    Raises
    ------
    DataError
        An identifier is empty or stands twice, or the secret is shorter than 16 bytes.

    Examples
    --------
    >>> one = digests(["a", "b"], b"sixteen bytes or more")
    >>> one.size, bool((one[:4] == digests(["a"], b"sixteen bytes or more")).all())
    (8, True)
    """
    if len(secret) < 16:
        raise DataError("the secret for aligning rows has fewer than 16 bytes: `cvxpriv keys init` makes one of 32")
    identifiers = [unicodedata.normalize("NFC", one) for one in identifiers]  # one letter has several spellings
    if "" in identifiers:
        raise DataError("the identifier column has empty cells: leave those rows out")
    if len(set(identifiers)) < len(identifiers):
        raise DataError("the identifier column names a row twice: each row needs an identifier of its own")
    hashed = b"".join(hmac.digest(secret, one.encode(errors="surrogatepass"), hashlib.sha256) for one in identifiers)
    return np.frombuffer(hashed, dtype="<u8")


def common_rows(lists: Mapping[str, Words]) -> dict[str, Words]:
    """Return, for each list of hashes, the positions of those that all lists have, in the order of the hashes.

    Raises
    ------
    DataError
        A list is no list of hashes, holds one twice, or nothing is common to all.
    """
    places = {}
    for name, words in lists.items():
        rows = [words[start : start + WORDS].tobytes() for start in range(0, words.size, WORDS)]
        places[name] = {row: place for place, row in enumerate(rows)}
        if words.size % WORDS or len(places[name]) < len(rows):
            raise DataError(f"{name} sent no list of distinct hashes of its rows: it must hash one identifier a row")
    common = sorted(set.intersection(*(set(rows) for rows in places.values())))
    if not common:
        raise DataError("the parties have no row in common: check that they hash the same identifier under one secret")
    return {name: np.array([rows[one] for one in common], dtype="<u8") for name, rows in places.items()}


def aligned(carrier: Carrier, hellos: Mapping[str, Message], rows: int, hashed: Words | None) -> npt.NDArray[np.intp]:
    """Align the parties' rows with a number of rows here; return the positions of those that are left.

    `hashed`: The hashes of the rows here; None where all have the same rows in one order.

    Raises DataError: The parties' rows do not match.
    """
    lists = {name: hellos[name].vectors["digests"] for name in carrier.names}
    if hashed is None:
        if stray := [name for name, one in lists.items() if hellos[name].number("rows") != rows or one.size]:
            raise DataError(
                f"{stray[0]} has other rows than the {rows:,} labels, or hashed identifiers: name the identifier "
                "column here too, or give all parties the same rows in the same order"
            )
        positions = {name: np.zeros(0, dtype="<u8") for name in lists}
        own = np.arange(rows)
    else:
        if silent := [name for name, one in lists.items() if one.size == 0]:
            raise DataError(f"{silent[0]} sent no hashes of identifiers: it must name its identifier column")
        positions = common_rows({HOLDER: hashed, **lists})
        own = positions.pop(HOLDER).astype(np.intp)
    carrier.sizes["rows"] = own.size
    messages = {name: Message("positions", {"positions": one}) for name, one in positions.items()}
    for name, answer in carrier.step_all(messages, opening=True).items():
        if answer.number("rows") != own.size:
            raise DataError(f"{name} has {answer.number('rows'):g} rows after alignment, expected {own.size}")
    return own
