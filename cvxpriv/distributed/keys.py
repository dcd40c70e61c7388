"""A private certificate authority: the keys by which the members of a team know each other.

`create_team` makes the authority, and `add_member` a folder for each member, to be brought to that member and to nobody
else. A member's certificate carries its name alone; both ends of a connection present one, and check the other's. Keys
are of the curve P-256. Files with secrets are readable by their owner alone.
"""

import datetime
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from cvxpriv.errors import DataError, ModelError, shown
from cvxpriv.numerics.arguments import finite_double
from cvxpriv.reports.files import PathLike, plain_file

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
except ImportError as error:
    raise ModelError('keys of parties need the package cryptography: pip install "cvxpriv[parties]"') from error

#: Days for which the authority's certificate is good.
AUTHORITY_DAYS = 3650
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
AUTHORITY, AUTHORITY_KEY, ALIGNMENT = "authority.pem", "authority.key", "alignment.key"
CERTIFICATE, KEY = "certificate.pem", "certificate.key"
_FOREIGN_USES = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")


@dataclass(frozen=True, repr=False)
class Keys:
    """The content of a member's folder.

    Attributes
    ----------
    name : str
        The name in its certificate.
    authority, certificate, key : bytes
        PEM texts; the key is a secret.
    alignment : bytes
        The secret of the team under which identifiers are hashed.
    """

    name: str
    authority: bytes
    certificate: bytes
    key: bytes
    alignment: bytes

    def __repr__(self) -> str:
        return f"Keys({self.name!r})"


def create_team(folder: PathLike) -> Path:
    """Make a certificate authority and the secret for aligning rows in a new folder.

    Raises
    ------
    DataError
        The folder holds an authority already, or cannot be written.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    home = Path(folder)
    certificate = _certificate("cvxpriv team", key, key, "cvxpriv team", AUTHORITY_DAYS, authority=True)
    _write(home / AUTHORITY_KEY, _private_text(key), secret=True)
    _write(home / AUTHORITY, certificate, secret=False)
    _write(home / ALIGNMENT, secrets.token_bytes(32).hex().encode() + b"\n", secret=True)
    return home


def add_member(folder: PathLike, name: str, days: float = 90.0) -> Path:
    """Make the folder of a member, `folder/name`, with a key and a certificate that the team's authority signed.

    Parameters
    ----------
    folder : path
    name : str
        Small letters, digits and hyphens.
    days : float
        Time for which the certificate is good.

    Raises
    ------
    DataError
        No authority is there, the name is no name, or the member has keys already.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DataError(
            f"name={shown(name)} is no name of a member: give small letters, digits and hyphens, at most 40"
        )
    if not 0.0 < finite_double(days) <= AUTHORITY_DAYS:
        raise DataError(f"days={shown(days)} is no time that a certificate is good for: give 1 to {AUTHORITY_DAYS}")
    home = Path(folder)
    signing = serialization.load_pem_private_key(_read(home / AUTHORITY_KEY, "init"), password=None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise DataError(f"{home / AUTHORITY_KEY} is no key of cvxpriv keys init: make a team in a new folder")
    key = ec.generate_private_key(ec.SECP256R1())
    own = home / name
    _write(own / KEY, _private_text(key), secret=True)
    _write(own / CERTIFICATE, _certificate(name, key, signing, "cvxpriv team", days, authority=False), secret=False)
    _write(own / AUTHORITY, _read(home / AUTHORITY, "init"), secret=False)
    _write(own / ALIGNMENT, _read(home / ALIGNMENT, "init"), secret=True)
    return own


def keys_in(folder: PathLike) -> Keys:
    """Return the keys of a member's folder.

    Raises
    ------
    DataError
        A file is missing or malformed, the files do not belong together, the certificate is not good now, or others
        than the owner may read a secret.
    """
    home = Path(folder)
    for secret in (KEY, ALIGNMENT):
        if (home / secret).exists() and (home / secret).stat().st_mode & 0o077:
            raise DataError(f"{home / secret} may be read by others than its owner: chmod 600 it")
    found = {name: _read(home / name, "add") for name in (AUTHORITY, CERTIFICATE, KEY, ALIGNMENT)}
    try:
        certificate = x509.load_pem_x509_certificate(found[CERTIFICATE])
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(found[AUTHORITY]))
        if serialization.load_pem_private_key(found[KEY], password=None).public_key() != certificate.public_key():
            raise ValueError("the key is of another certificate")
        name = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
        alignment = bytes.fromhex(found[ALIGNMENT].decode().strip())
    except (ValueError, TypeError, IndexError, InvalidSignature) as error:
        raise DataError(
            f"{home} holds keys that are malformed or do not belong together: remove it, and make them again"
        ) from error
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not begin <= datetime.datetime.now(datetime.UTC) <= end:
        raise DataError(
            f"the certificate in {home} is good from {begin:%F %R} to {end:%F %R} UTC, and it is not that time here: "
            "set the clock, or remove the folder and make the keys again"
        )
    return Keys(str(name), found[AUTHORITY], found[CERTIFICATE], found[KEY], alignment)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    signing: ec.EllipticCurvePrivateKey,
    issuer: str,
    days: float,
    *,
    authority: bool,
) -> bytes:
    """Return a signed certificate as a PEM text."""
    named = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, one)]) for one in (name, issuer)]
    now = datetime.datetime.now(datetime.UTC)
    begin = now - datetime.timedelta(minutes=5)  # clocks differ
    usage = x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        **dict.fromkeys((*_FOREIGN_USES, "encipher_only", "decipher_only"), False),
    )
    purposes = [x509.ExtendedKeyUsageOID.SERVER_AUTH, x509.ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        x509.CertificateBuilder()
        .subject_name(named[0])
        .issuer_name(named[1])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(begin, now + datetime.timedelta(days=days) - datetime.timedelta(minutes=1)))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    )
    if not authority:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    signed = builder.sign(signing, hashes.SHA256())
    return bytes(signed.public_bytes(serialization.Encoding.PEM))


def _private_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


def _write(path: Path, data: bytes, *, secret: bool) -> None:
    """Write a new file; one that is there is never replaced: it is somebody's key."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
    except FileExistsError:
        raise DataError(f"{path} is there already, and keys are never replaced: take another folder or name") from None
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror}): choose a folder that may be written") from error
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def _read(path: Path, command: str) -> bytes:
    try:
        with plain_file(path) as file:
            return file.read()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): `cvxpriv keys {command}` makes it") from error
