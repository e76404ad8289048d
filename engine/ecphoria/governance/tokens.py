"""JSON Web Tokens of somebody else's making: checked, and turned into a scope.

Either one secret (HS256) or a file of public keys (RS256, ES256) is set, never both: so no token
can have a public key taken for a secret. What algorithm a key is for is the key's, not the token's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from ecphoria.clock import Clock
from ecphoria.errors import ConfigurationInvalid, InvalidScope, Unauthenticated
from ecphoria.model import EveryUser, Role, Scope
from ecphoria.settings import Settings

_log = structlog.get_logger(__name__)

SHARED_ALGORITHM: Final = "HS256"
KEY_ALGORITHMS: Final = ("RS256", "ES256")
MIN_RSA_BITS: Final = 2048
MAX_TOKEN_CHARS: Final = 8_192
PRINCIPAL_PREFIX: Final = "jwt:"
"""Before the subject, so that no token passes for a key in what is on record."""

_NEEDED = ["exp", "iss", "aud", "sub"]
_MAX_SUBJECT_CHARS = 200


class TokenRefused(Exception):
    """A token does not count; the reason is for the log, never for the client."""


# Also what the library's own reading of hostile JSON may end with.
_REFUSING = (
    TokenRefused, InvalidScope, ConfigurationInvalid, jwt.PyJWTError, ValueError, TypeError,
    RecursionError,
)  # fmt: skip


def looks_like_token(presented: str) -> bool:
    """Whether it has the form of a token: three parts with dots between."""
    return len(presented) <= MAX_TOKEN_CHARS and presented.count(".") == 2  # noqa: PLR2004 - header, claims, signature


# --- keys ----------------------------------------------------------------------------------


def read_jwks(text: str) -> Mapping[str | None, jwt.PyJWK]:
    """Return the keys of a JWKS by their id; one without an id only when it is the only one.

    Keys for something else than signatures are passed over.

    Raises:
        ConfigurationInvalid: When it is no JWKS, or a key of it will not do: a secret, a kind
            other than RSA and P-256, an RSA key of less than 2048 bits, an id twice.
    """
    try:
        found = json.loads(text)
        entries = found["keys"]
        if not isinstance(entries, list):
            raise TypeError  # noqa: TRY301 - the same as any other wrong form
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        msg = "it is no JSON object with a list `keys`"
        raise ConfigurationInvalid(msg) from error
    keys: dict[str | None, jwt.PyJWK] = {}
    for place, entry in enumerate(entries):
        if isinstance(entry, dict) and entry.get("use", "sig") != "sig":
            continue
        key = _checked_key(entry, place)
        id_ = entry.get("kid")
        if id_ in keys or not isinstance(id_, str | None):
            msg = f"key {place} has an id that another one has, or one that is no text"
            raise ConfigurationInvalid(msg)
        keys[id_] = key
    if not keys or (None in keys and len(keys) > 1):
        msg = "it has no key for signatures" if not keys else "one of its several keys has no id"
        raise ConfigurationInvalid(msg)
    return keys


def _checked_key(entry: object, place: int) -> jwt.PyJWK:
    # before anything is made of it: a secret among the public keys would open the door to HS256
    if not isinstance(entry, dict) or entry.get("kty") not in {"RSA", "EC"}:
        msg = f"key {place} is neither RSA nor EC"
        raise ConfigurationInvalid(msg)
    try:
        key = jwt.PyJWK(entry)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        msg = f"key {place} cannot be read"
        raise ConfigurationInvalid(msg) from error
    if key.algorithm_name not in KEY_ALGORITHMS:
        msg = f"key {place} is for {key.algorithm_name}; {' and '.join(KEY_ALGORITHMS)} are taken"
        raise ConfigurationInvalid(msg)
    if hasattr(key.key, "private_numbers"):
        msg = f"key {place} is a private key; only public ones belong here"
        raise ConfigurationInvalid(msg)
    if isinstance(key.key, RSAPublicKey) and key.key.key_size < MIN_RSA_BITS:
        msg = f"key {place} has {key.key.key_size} bits; {MIN_RSA_BITS} are needed"
        raise ConfigurationInvalid(msg)
    return key


@dataclass(slots=True)
class KeyFile:
    """A JWKS file, read again when it changes.

    A change that cannot be read is logged, and the keys before it stay: it may be half written.
    """

    path: Path
    _seen: tuple[int, int, int] | None = None
    _keys: Mapping[str | None, jwt.PyJWK] = field(default_factory=dict)

    def keys(self) -> Mapping[str | None, jwt.PyJWK]:
        """Return the keys as the file has them now.

        Raises:
            ConfigurationInvalid: When it could never be read.
        """
        try:
            stat = self.path.stat()
            now = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if now != self._seen:
                self._keys = read_jwks(self.path.read_text(encoding="utf-8"))
                self._seen = now
        except (OSError, UnicodeDecodeError, ConfigurationInvalid) as error:
            reason = error.message if isinstance(error, ConfigurationInvalid) else str(error)
            if not self._keys:
                msg = f"ECPHORIA_JWT_JWKS_FILE ({self.path}): {reason}"
                raise ConfigurationInvalid(msg) from error
            _log.warning("JWKS file not read, keys stay", file=str(self.path), reason=reason)
        return self._keys


# --- tokens --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tokens:
    """Checks tokens by the settings.

    Attributes:
        keys: The file of public keys; None where a secret is set.
    """

    settings: Settings
    clock: Clock
    keys: KeyFile | None

    def scope(self, token: str) -> Scope:
        """Return the scope of a token.

        Raises:
            Unauthenticated: Without saying why; the log has it.
        """
        try:
            return scope_from(self._claims(token), self.settings)
        except _REFUSING as error:
            # the type alone: a message of the library may hold parts of the token
            reason = str(error) if isinstance(error, TokenRefused) else type(error).__name__
            _log.info("token refused", reason=reason)
            msg = "the API key is missing or not valid"
            raise Unauthenticated(msg) from error

    def _claims(self, token: str) -> Mapping[str, Any]:
        key, algorithms = self._key(token)
        # times are checked below, by a clock that is ours
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=algorithms,
            audience=self.settings.jwt_audience,
            issuer=self.settings.jwt_issuer,
            options={
                "require": _NEEDED,
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "enforce_minimum_key_length": True,
            },
        )
        now, leeway = self.clock.now().timestamp(), self.settings.jwt_leeway_s
        if now >= _seconds(claims, "exp") + leeway:
            msg = "it has expired"
            raise TokenRefused(msg)
        for name in ("nbf", "iat"):
            if name in claims and now < _seconds(claims, name) - leeway:
                msg = f"`{name}` is in the future"
                raise TokenRefused(msg)
        return claims

    def _key(self, token: str) -> tuple[Any, list[str]]:
        if self.keys is None:
            secret = self.settings.jwt_secret
            if secret is None:
                msg = "no tokens are taken"
                raise TokenRefused(msg)
            return secret.get_secret_value().encode(), [SHARED_ALGORITHM]
        keys = self.keys.keys()
        id_ = jwt.get_unverified_header(token).get("kid")
        # a token that names no key is taken for the only one, else for none
        found = next(iter(keys.values())) if id_ is None and len(keys) == 1 else keys.get(id_)
        if found is None:
            msg = "it is signed by a key that is not in the file"
            raise TokenRefused(msg)
        return found, list(KEY_ALGORITHMS)


def open_tokens(settings: Settings, clock: Clock) -> Tokens | None:
    """Return what checks tokens; None when the settings want none.

    Raises:
        ConfigurationInvalid: When the JWKS file cannot be read.
    """
    if settings.jwt_secret is None and settings.jwt_jwks_file is None:
        return None
    keys = None if settings.jwt_jwks_file is None else KeyFile(settings.jwt_jwks_file)
    if keys is not None:
        keys.keys()
    return Tokens(settings, clock, keys)


def scope_from(claims: Mapping[str, Any], settings: Settings) -> Scope:
    """Return the scope that the claims of a checked token stand for.

    Raises:
        TokenRefused: When a claim is missing, of the wrong form, or contradicts another.
        InvalidScope: When the tenant or a user is malformed.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject.strip()) <= _MAX_SUBJECT_CHARS:
        msg = "`sub` is missing, empty or too long"
        raise TokenRefused(msg)
    known = {str(role) for role in Role}
    roles = frozenset(
        Role(name) for name in _texts(claims, settings.jwt_roles_claim, " ") if name in known
    )
    every, users = claims.get(settings.jwt_every_user_claim), settings.jwt_users_claim
    if every is True and users == "sub":
        # whom it is about, not whom alone it may name
        return _scope(claims, settings, subject, roles, EveryUser.OF_TENANT)
    if not isinstance(every, bool | None):
        msg = f"`{settings.jwt_every_user_claim}` is neither true nor false"
        raise TokenRefused(msg)
    if every and users in claims:
        msg = f"it has both `{settings.jwt_every_user_claim}` and `{users}`"
        raise TokenRefused(msg)
    named = EveryUser.OF_TENANT if every else frozenset(_texts(claims, users, None))
    return _scope(claims, settings, subject, roles, named)


def _scope(
    claims: Mapping[str, Any],
    settings: Settings,
    subject: str,
    roles: frozenset[Role],
    users: frozenset[str] | EveryUser,
) -> Scope:
    tenant = claims.get(settings.jwt_tenant_claim)
    if not isinstance(tenant, str):
        msg = f"`{settings.jwt_tenant_claim}` is missing or no text"
        raise TokenRefused(msg)
    return Scope(tenant, f"{PRINCIPAL_PREFIX}{subject.strip()}", roles, users)


def _texts(claims: Mapping[str, Any], name: str, separator: str | None) -> Sequence[str]:
    value = claims.get(name)
    if isinstance(value, str):
        return value.split(separator) if separator is not None else [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        msg = f"`{name}` is missing, or neither a text nor a list of texts"
        raise TokenRefused(msg)
    return value


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        msg = f"`{name}` is no number"
        raise TokenRefused(msg)
    return float(value)
