"""Tokens of somebody else's making: which count, and as whom."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta

import jwt
import pytest
import structlog
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from builders import NOW
from ecphoria.clock import Clock
from ecphoria.errors import ConfigurationInvalid, Unauthenticated
from ecphoria.governance.tokens import MAX_TOKEN_CHARS, looks_like_token, open_tokens, read_jwks
from ecphoria.model import EveryUser, Role
from ecphoria.settings import load_settings

SECRET = "a secret of more than thirty-two bytes"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
P256 = ec.generate_private_key(ec.SECP256R1())
T0 = int(NOW.timestamp())
GOOD = {
    "iss": "https://login.example",
    "aud": "ecphoria",
    "sub": "bot-7",
    "exp": T0 + 60,
    "tenant": "shop",
    "roles": ["agent"],
    "users": ["u-1"],
}


def at(seconds=0.0):
    return Clock(now=lambda: NOW + timedelta(seconds=seconds))


def settings(tmp_path, **more):
    return load_settings(
        data_dir=tmp_path,
        **({"jwt_issuer": GOOD["iss"], "jwt_audience": GOOD["aud"]} | more),
    )


def by_secret(tmp_path, seconds=0.0, **more):
    return open_tokens(settings(tmp_path, jwt_secret=SECRET, **more), at(seconds))


def public(key, kid=None, **more):
    algorithm = jwt.algorithms.ECAlgorithm if key is P256 else jwt.algorithms.RSAAlgorithm
    found = algorithm.to_jwk(key.public_key(), as_dict=True)
    return found | ({} if kid is None else {"kid": kid}) | more


def by_file(tmp_path, *keys, seconds=0.0, **more):
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": list(keys)}))
    return open_tokens(settings(tmp_path, jwt_jwks_file=file, **more), at(seconds))


def signed(key=SECRET, algorithm="HS256", headers=None, drop=(), **changes):
    claims = {name: value for name, value in (GOOD | changes).items() if name not in drop}
    # not `jwt.encode`, which refuses what an attacker would not
    return jwt.PyJWS().encode(json.dumps(claims).encode(), key, algorithm, headers=headers)


def refused(tokens, token):
    with pytest.raises(Unauthenticated) as caught:
        tokens.scope(token)
    # the same words as for a key that is no good
    return caught.value.message == "the API key is missing or not valid"


def test_a_good_token_yields_its_scope(tmp_path):
    scope = by_secret(tmp_path).scope(signed())
    assert (scope.tenant, scope.principal) == ("shop", "jwt:bot-7")
    assert (scope.roles, scope.users) == (frozenset({Role.AGENT}), frozenset({"u-1"}))


@pytest.mark.parametrize(
    ("claims", "users"),
    [
        ({"users": "客户-1"}, frozenset({"客户-1"})),
        ({"users": "two words"}, frozenset({"two words"})),
        ({"users": None, "every_user": False}, None),
    ],
)
def test_users_of_a_token(tmp_path, claims, users):
    if users is None:
        assert refused(by_secret(tmp_path), signed(**claims))
    else:
        assert by_secret(tmp_path).scope(signed(**claims)).users == users


def test_every_user_and_other_claim_names(tmp_path):
    scope = by_secret(tmp_path).scope(signed(drop=["users"], every_user=True))
    assert scope.users is EveryUser.OF_TENANT
    named = by_secret(
        tmp_path,
        jwt_tenant_claim="https://ecphoria/tenant",
        jwt_roles_claim="scope",
        jwt_users_claim="sub",
    )
    token = signed(
        drop=["tenant", "roles", "users"],
        **{"https://ecphoria/tenant": "acme", "scope": "openid analyst admin nonsense"},
    )
    scope = named.scope(token)
    assert (scope.tenant, scope.users) == ("acme", frozenset({"bot-7"}))
    assert scope.roles == {Role.ANALYST, Role.ADMIN}


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example"}, {"iss": None}, {"iss": ["https://login.example"]},
        {"aud": "another"}, {"aud": []}, {"aud": None},
        {"sub": ""}, {"sub": " "}, {"sub": "x" * 201},
        {"tenant": ""}, {"tenant": "*"}, {"tenant": "a|b"}, {"tenant": None}, {"tenant": 7},
        {"roles": []}, {"roles": ["root"]}, {"roles": None}, {"roles": {"agent": True}},
        {"roles": ["AGENT"]}, {"roles": [["agent"]]},
        {"users": []}, {"users": ["*"]}, {"users": [""]}, {"users": "*"}, {"users": [7]},
        {"every_user": True}, {"every_user": 1, "users": None}, {"every_user": "true"},
        {"exp": "soon"}, {"exp": None}, {"exp": True}, {"nbf": "x"},
    ],
)  # fmt: skip
def test_a_claim_that_will_not_do(tmp_path, changes):
    assert refused(by_secret(tmp_path), signed(**changes))


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "exp", "tenant", "roles", "users"])
def test_every_claim_is_needed(tmp_path, claim):
    assert refused(by_secret(tmp_path), signed(drop=[claim]))


@pytest.mark.parametrize(
    ("seconds", "claims", "good"),
    [
        (0, {}, True), (89.9, {}, True), (90, {}, False), (10_000, {}, False),
        (0, {"nbf": T0 + 30}, True), (0, {"nbf": T0 + 31}, False),
        (0, {"iat": T0 + 30}, True), (0, {"iat": T0 + 31}, False),
    ],
)  # fmt: skip
def test_times_with_half_a_minute_of_leeway(tmp_path, seconds, claims, good):
    tokens = by_secret(tmp_path, seconds)
    if good:
        assert tokens.scope(signed(**claims))
    else:
        assert refused(tokens, signed(**claims))


def test_leeway_is_a_setting(tmp_path):
    assert refused(by_secret(tmp_path, 60, jwt_leeway_s=0), signed())
    assert by_secret(tmp_path, 59.9, jwt_leeway_s=0).scope(signed())


# --- algorithms ----------------------------------------------------------------------------


def _part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def by_hand(header, key):
    """Sign as an attacker does, who is free in what he writes."""
    text = f"{_part(header)}.{_part(GOOD)}"
    digest = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", ""])
def test_no_unsigned_token_counts(tmp_path, name):
    bare = f"{_part({'alg': name, 'typ': 'JWT'})}.{_part(GOOD)}."
    signed_too = by_hand({"alg": name}, SECRET.encode())
    for tokens in (by_secret(tmp_path), by_file(tmp_path, public(RSA))):
        assert refused(tokens, bare)
        assert refused(tokens, signed_too)


def test_a_public_key_is_no_secret(tmp_path):
    """The classic confusion: HS256 with the bytes of the public key."""
    tokens = by_file(tmp_path, public(RSA, "k1"))
    numbers = RSA.public_key()
    for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER):
        secret = numbers.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
        assert refused(tokens, by_hand({"alg": "HS256", "kid": "k1"}, secret))
    assert refused(tokens, by_hand({"alg": "HS256", "kid": "k1"}, json.dumps(public(RSA)).encode()))


def test_where_a_secret_is_set_no_public_key_counts(tmp_path):
    for key, algorithm in ((RSA, "RS256"), (P256, "ES256")):
        assert refused(by_secret(tmp_path), signed(key, algorithm))
    for algorithm in ("HS384", "HS512"):
        assert refused(by_secret(tmp_path), signed(SECRET * 2, algorithm))


def test_a_key_is_for_its_own_algorithm_only(tmp_path):
    tokens = by_file(tmp_path, public(RSA, "rsa"), public(P256, "ec"))
    assert tokens.scope(signed(RSA, "RS256", {"kid": "rsa"}))
    assert tokens.scope(signed(P256, "ES256", {"kid": "ec"}))
    assert refused(tokens, signed(RSA, "RS256", {"kid": "ec"}))
    assert refused(tokens, signed(P256, "ES256", {"kid": "rsa"}))
    for algorithm in ("RS384", "RS512", "PS256"):
        assert refused(tokens, signed(RSA, algorithm, {"kid": "rsa"}))


def test_a_token_cannot_bring_its_own_key(tmp_path):
    tokens = by_file(tmp_path, public(RSA, "k1"))
    for headers in (
        {"kid": "k1", "jwk": public(OTHER_RSA)},
        {"kid": "k1", "jku": "https://evil.example/jwks.json"},
        {"kid": "k2"},
        {"kid": "../../etc/passwd"},
        {},
    ):
        assert refused(tokens, signed(OTHER_RSA, "RS256", headers))


def test_a_token_without_a_key_id_counts_where_there_is_one_key(tmp_path):
    assert by_file(tmp_path, public(RSA)).scope(signed(RSA, "RS256"))
    assert by_file(tmp_path, public(RSA, "k1")).scope(signed(RSA, "RS256"))
    both = by_file(tmp_path, public(RSA, "k1"), public(P256, "k2"))
    assert refused(both, signed(RSA, "RS256"))


@pytest.mark.parametrize(
    "token",
    ["", "..", "a.b.c", "é.é.é", "." * 3, f"{'A' * 9000}.e30.x", signed() + "x", signed()[:-2]],
)
def test_what_is_no_token(tmp_path, token):
    assert refused(by_secret(tmp_path), token)
    assert refused(by_file(tmp_path, public(RSA)), token)


def test_the_form_of_a_token():
    assert looks_like_token(signed())
    assert not looks_like_token("ecph_0123_abc")
    assert not looks_like_token("a.b." + "c" * MAX_TOKEN_CHARS)


def test_the_log_has_the_reason_and_nothing_of_the_token(tmp_path):
    token = signed(tenant=None)
    with structlog.testing.capture_logs() as logs:
        assert refused(by_secret(tmp_path), token)
    assert "tenant" in logs[0]["reason"]
    assert token not in str(logs)
    assert token.split(".")[1] not in str(logs)


# --- the file of keys ----------------------------------------------------------------------


def test_the_file_is_read_again_when_it_changes(tmp_path):
    tokens = by_file(tmp_path, public(RSA, "old"))
    old, new = signed(RSA, "RS256", {"kid": "old"}), signed(OTHER_RSA, "RS256", {"kid": "new"})
    assert tokens.scope(old)
    assert refused(tokens, new)
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [public(OTHER_RSA, "new"), public(P256, "x")]}))
    assert tokens.scope(new)
    assert refused(tokens, old)


def test_a_file_that_is_half_written_changes_nothing(tmp_path):
    tokens = by_file(tmp_path, public(RSA, "k1"))
    token = signed(RSA, "RS256", {"kid": "k1"})
    assert tokens.scope(token)
    file = tmp_path / "jwks.json"
    whole = file.read_text()
    for broken in (whole[: len(whole) // 2], "", "{}", '{"keys": []}'):
        file.write_text(broken)
        with structlog.testing.capture_logs() as logs:
            assert tokens.scope(token)
        assert logs[0]["log_level"] == "warning"
    file.unlink()
    assert tokens.scope(token)


SMALL = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - that is the point
P384 = ec.generate_private_key(ec.SECP384R1())


@pytest.mark.parametrize(
    "entries",
    [
        [{"kty": "oct", "k": "c2VjcmV0", "kid": "a"}],
        [public(RSA, "a"), {"kty": "oct", "k": "c2VjcmV0", "kid": "b"}],
        [public(SMALL)],
        [jwt.algorithms.ECAlgorithm.to_jwk(P384.public_key(), as_dict=True)],
        [jwt.algorithms.RSAAlgorithm.to_jwk(RSA, as_dict=True)],
        [jwt.algorithms.ECAlgorithm.to_jwk(P256, as_dict=True)],
        [public(RSA, "a", alg="RS512")],
        [public(RSA, "a", alg="HS256")],
        [public(RSA, "a"), public(P256, "a")],
        [public(RSA), public(P256, "a")],
        [public(RSA, 7)],
        [{"kty": "RSA", "kid": "a"}],
        [{"kty": "RSA", "n": "!", "e": "!"}],
        ["key"],
        [None],
        [public(RSA, use="enc")],
        [],
    ],
)
def test_a_file_that_will_not_do_stops_the_start(tmp_path, entries):
    with pytest.raises(ConfigurationInvalid, match="ECPHORIA_JWT_JWKS_FILE"):
        by_file(tmp_path, *entries)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"keys": {}}', "{", "[" * 100_000])
def test_what_is_no_jwks(text):
    with pytest.raises(ConfigurationInvalid):
        read_jwks(text)


def test_keys_for_something_else_are_passed_over():
    found = read_jwks(
        json.dumps({"keys": [public(OTHER_RSA, "e", use="enc"), public(RSA, "s", use="sig")]})
    )
    assert set(found) == {"s"}


def test_a_file_that_is_not_there_stops_the_start(tmp_path):
    with pytest.raises(ConfigurationInvalid, match=r"none\.json"):
        open_tokens(settings(tmp_path, jwt_jwks_file=tmp_path / "none.json"), at())


def test_no_tokens_unless_they_are_set(tmp_path):
    assert open_tokens(load_settings(data_dir=tmp_path), at()) is None


@pytest.mark.parametrize(
    ("given", "variable"),
    [
        ({"jwt_secret": "short"}, "ECPHORIA_JWT_SECRET"),
        ({"jwt_secret": SECRET, "jwt_issuer": None}, "ECPHORIA_JWT_ISSUER"),
        ({"jwt_secret": SECRET, "jwt_audience": None}, "ECPHORIA_JWT_AUDIENCE"),
        ({"jwt_secret": SECRET, "jwt_jwks_file": "x.json"}, "ECPHORIA_JWT_JWKS_FILE"),
    ],
)
def test_half_a_setting_stops_the_start(tmp_path, given, variable):
    with pytest.raises(ConfigurationInvalid, match=variable) as caught:
        settings(tmp_path, **given)
    assert SECRET not in caught.value.message
