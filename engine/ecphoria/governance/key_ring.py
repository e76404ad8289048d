"""Master keys: under them data keys are wrapped, and nothing else is encrypted under them."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ecphoria.errors import ConfigurationInvalid, DataDirectoryUnusable, EncryptionKeyWrong
from ecphoria.private_file import write_private
from ecphoria.settings import Settings

KEY_BYTES = 32
NONCE_BYTES = 12
# Of embedded stores, in the data directory.
OWN_FILE = "master.keys"

_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_CHECKED = b"ecphoria master key"


def encrypt(key: bytes, plain: bytes, about: str) -> bytes:
    """Return a nonce and what AES-256-GCM makes of a text.

    Args:
        key: 32 bytes.
        plain: What to hide.
        about: What it belongs to; it can be decrypted for nothing else.
    """
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, about.encode())


def decrypt(key: bytes, sealed: bytes, about: str) -> bytes | None:
    """Return what was encrypted; None when the key, the bytes or what it belongs to are others."""
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], about.encode())
    except (InvalidTag, ValueError):
        # too short to be one at all is a ValueError
        return None


@dataclass(frozen=True, slots=True, repr=False)
class KeyRing:
    """Master keys by id; the first one wraps what is new, all unwrap what is there."""

    keys: Mapping[str, bytes]

    @property
    def current(self) -> str:
        """Id of the key that wraps what is new."""
        return next(iter(self.keys))

    @classmethod
    def parsed(cls, text: str, where: str) -> Self:
        """Read keys: ``id:base64``, separated by commas or lines; ``#`` begins a comment line.

        Args:
            text: The keys.
            where: The setting or file they come from, for the message.

        Raises:
            ConfigurationInvalid: Naming what is wrong, and never a key.
        """
        keys: dict[str, bytes] = {}
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        entries = [part.strip() for line in lines for part in line.split(",") if part.strip()]
        for number, entry in enumerate(entries, start=1):
            id_, colon, encoded = entry.partition(":")
            if not colon or not _ID.fullmatch(id_):
                msg = f"{where}: entry {number} is not `id:base64`; an id is letters, digits, . _ -"
                raise ConfigurationInvalid(msg)
            key = _decoded(encoded.strip())
            if key is None:
                msg = f"{where}: the key {id_!r} is not the base64 of {KEY_BYTES} bytes"
                raise ConfigurationInvalid(msg)
            if id_ in keys:
                msg = f"{where}: there are two keys {id_!r}"
                raise ConfigurationInvalid(msg)
            keys[id_] = key
        if not keys:
            msg = f"{where} holds no key"
            raise ConfigurationInvalid(msg)
        return cls(keys)

    def wrap(self, secret: bytes, about: str) -> str:
        """Return a secret wrapped under the current key."""
        return base64.b64encode(encrypt(self.keys[self.current], secret, about)).decode()

    def unwrap(self, master_id: str, wrapped: str, about: str) -> bytes:
        """Return what was wrapped.

        Raises:
            EncryptionKeyWrong: When the ring lacks the key, or has other bytes under its id.
        """
        key = self.keys.get(master_id)
        if key is None:
            msg = f"something is encrypted under the master key {master_id!r}, which is not set"
            raise EncryptionKeyWrong(msg)
        secret = decrypt(key, base64.b64decode(wrapped), about)
        if secret is None:
            msg = f"the master key {master_id!r} is not the one that data was encrypted under"
            raise EncryptionKeyWrong(msg)
        return secret

    def check_value(self) -> str:
        """Return what `check` knows the current key by; it tells nothing about the key."""
        return self.wrap(_CHECKED, self.current)

    def check(self, master_id: str, value: str) -> None:
        """Return when the ring has this very key. Errors as for `unwrap`."""
        self.unwrap(master_id, value, master_id)


def _decoded(text: str) -> bytes | None:
    try:
        # keys come in both alphabets, and with or without padding
        plain = text.rstrip("=").replace("-", "+").replace("_", "/")
        key = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def new_entry(id_: str) -> str:
    """Return a new random key as an entry of a ring."""
    return f"{id_}:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"


def open_key_ring(settings: Settings) -> KeyRing | None:
    """Return the ring of the settings, or that of the embedded stores, made at the first start.

    None with servers and no key set: then nothing sensitive can be kept.

    Raises:
        ConfigurationInvalid: When a key is malformed, or the file cannot be read.
        DataDirectoryUnusable: When the ring of embedded stores cannot be kept.
    """
    if settings.master_keys is not None:
        return KeyRing.parsed(settings.master_keys.get_secret_value(), "ECPHORIA_MASTER_KEYS")
    if settings.master_key_file is not None:
        named = settings.master_key_file
        return KeyRing.parsed(_read(named), f"the file {named}")
    if not settings.embedded:
        return None
    path = settings.data_dir / OWN_FILE
    if not path.exists():
        _keep(path, new_entry("k1") + "\n")
    elif stat.S_IMODE(path.stat().st_mode) & 0o077:
        path.chmod(0o600)
    return KeyRing.parsed(_read(path), f"the file {path}")


def add_own_key(settings: Settings) -> str:
    """Put a new key first in the ring of embedded stores; return its id.

    Raises:
        ConfigurationInvalid: When the keys come from the settings: they are changed there.
    """
    if not settings.embedded or settings.master_keys or settings.master_key_file:
        msg = (
            "the master keys come from the settings: put the new one first in "
            "ECPHORIA_MASTER_KEYS or its file, and keep the old one until `rotate` is done"
        )
        raise ConfigurationInvalid(msg)
    ring = open_key_ring(settings)
    if ring is None:  # for the type checker: embedded stores have one
        raise AssertionError
    numbers = [int(id_[1:]) for id_ in ring.keys if re.fullmatch(r"k\d{1,9}", id_)]
    id_ = f"k{max(numbers, default=0) + 1}"
    path = settings.data_dir / OWN_FILE
    _keep(path, f"{new_entry(id_)}\n{_read(path)}")
    return id_


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        msg = f"the master keys in {path} cannot be read: {reason}"
        raise ConfigurationInvalid(msg) from error


def _keep(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, text)
    except OSError as error:
        msg = f"the master keys cannot be kept in {path}: {error.strerror or error}"
        raise DataDirectoryUnusable(msg) from error
