"""What is sealed opens by its own key, in its own place, and nowhere else."""

from __future__ import annotations

import base64
import stat
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import memory
from ecphoria.errors import ConfigurationInvalid, EncryptionKeyWrong
from ecphoria.governance.data_keys import KeyOwner
from ecphoria.governance.key_ring import (
    OWN_FILE,
    KeyRing,
    add_own_key,
    decrypt,
    encrypt,
    new_entry,
    open_key_ring,
)
from ecphoria.governance.sealing import (
    SealingKeys,
    owner_of,
    sealed_memory,
    sealed_property,
    sealed_text,
    unsealed_memory,
    unsealed_property,
    unsealed_text,
)
from ecphoria.sealed import is_sealed, same_value
from ecphoria.settings import load_settings

KEYS = SealingKeys(KeyOwner("shop", "u:1|=ü"), b"1" * 32, b"2" * 32)
SHARED = SealingKeys(KeyOwner("shop"), b"3" * 32, b"2" * 32)
VALUES = (
    st.text()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.datetimes(timezones=st.just(UTC))
    | st.lists(st.text()).map(tuple)
)


@given(st.text(), st.text())
def test_a_text_comes_back_in_its_place_alone(text, place):
    sealed = sealed_text(KEYS, text, place)
    assert is_sealed(sealed)
    assert owner_of(sealed, "shop") == KEYS.owner
    assert unsealed_text(KEYS.data, sealed, place) == text
    assert unsealed_text(KEYS.data, sealed, place + "x") is None
    assert unsealed_text(SHARED.data, sealed, place) is None


def test_no_part_of_a_sealed_text_can_be_changed():
    sealed = sealed_text(KEYS, "secret", "here", "mark")
    version, owner, mark, body = sealed.split(":")
    raw = base64.b64decode(body)
    changed = [
        f"{version}:{owner}:other:{body}",
        f"{version}::{mark}:{body}",
        *(
            f"{version}:{owner}:{mark}:{base64.b64encode(part).decode()}"
            for part in (raw[:-1], raw[:5], b"", bytes([raw[0] ^ 1]) + raw[1:])
        ),
        f"{version}:{owner}:{mark}:no base64!",
    ]
    assert [unsealed_text(KEYS.data, each, "here") for each in changed] == [None] * len(changed)
    assert owner_of("enc1:%:::", "shop") is None
    assert owner_of("enc1:", "shop") is None


@given(VALUES)
def test_a_property_comes_back_with_its_type(value):
    sealed = sealed_property(KEYS, "shop|User|u1", "phone", value)
    back = unsealed_property(KEYS.data, "shop|User|u1", "phone", sealed)
    assert (type(back), back) == (type(value), value)
    assert unsealed_property(KEYS.data, "shop|User|u2", "phone", sealed) is None
    assert unsealed_property(KEYS.data, "shop|User|u1", "email", sealed) is None


def test_equal_values_are_known_as_equal_and_only_in_one_place():
    def sealed(keys, entity, value):
        return sealed_property(keys, entity, "phone", value)

    one = sealed(KEYS, "shop|User|u1", "138")
    assert one != sealed(KEYS, "shop|User|u1", "138")
    assert same_value(one, sealed(KEYS, "shop|User|u1", "138"))
    assert not same_value(one, sealed(KEYS, "shop|User|u1", "139"))
    assert not same_value(one, sealed(KEYS, "shop|User|u2", "138"))
    # another owner's data key must come in its place
    assert not same_value(one, sealed(SHARED, "shop|User|u1", "138"))
    assert not same_value(one, "138")
    assert same_value("138", "138")


def test_a_memory_comes_back_whole():
    clear = memory(
        text="phone 138", evidence="it is 138", value="138", details={"n": "138"}, subject="138"
    )
    shown = replace(clear, text="[phone]", evidence="[e]", value="[v]", details={}, subject="[s]")
    stored = sealed_memory(clear, shown, KEYS)
    assert "138" not in str(replace(stored, sealed=None, value_hash=None, words_hash=None))
    back = unsealed_memory(stored, KEYS.data)
    assert back is not None
    assert replace(back, sealed=None, value_hash=None, words_hash=None) == clear
    assert unsealed_memory(replace(stored, key="shop|Memory|other"), KEYS.data) is None
    other = sealed_memory(replace(clear, value="139", text="phone 139"), shown, KEYS)
    assert (stored.value_hash, stored.words_hash) != (other.value_hash, other.words_hash)
    again = sealed_memory(clear, shown, replace(KEYS, data=b"9" * 32))
    assert (stored.value_hash, stored.words_hash) == (again.value_hash, again.words_hash)


# --- key ring ------------------------------------------------------------------------------


@given(st.binary(), st.text())
def test_bytes_come_back(plain, about):
    assert decrypt(KEYS.data, encrypt(KEYS.data, plain, about), about) == plain


def test_a_ring_is_read_in_order_with_comments_and_both_alphabets():
    raw = b"\xfb\xff" * 16
    plain, url = base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("=")
    ring = KeyRing.parsed(f"# the new one\nb:{plain}\n\n a.1:{url}, c:{plain}", "here")
    assert (ring.current, set(ring.keys.values())) == ("b", {raw})
    assert list(ring.keys) == ["b", "a.1", "c"]
    assert plain not in repr(ring)
    assert str(raw) not in repr(ring)


ENTRY = f"a:{base64.b64encode(bytes(32)).decode()}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "holds no key"),
        ("# nothing", "holds no key"),
        ("c2VjcmV0", "entry 1 is not `id:base64`"),
        (f"{ENTRY},x y:AAAA", "entry 2 is not `id:base64`"),
        ("a:AAAA", "'a' is not the base64 of 32 bytes"),
        ("a:???", "'a' is not the base64 of 32 bytes"),
        (f"{ENTRY},{ENTRY}", "two keys 'a'"),
    ],
)
def test_a_malformed_ring_is_said_without_telling_a_key(text, fault):
    with pytest.raises(ConfigurationInvalid, match=fault) as caught:
        KeyRing.parsed(text, "here")
    assert "c2VjcmV0" not in caught.value.message


def test_what_another_key_has_wrapped_names_that_key():
    old, new = KeyRing.parsed(new_entry("a"), "here"), KeyRing.parsed(new_entry("b"), "here")
    wrapped = old.wrap(b"secret", "place")
    assert old.unwrap("a", wrapped, "place") == b"secret"
    other = KeyRing.parsed(new_entry("a"), "here")
    for ring, fault in ((new, "'a', which is not set"), (other, "'a' is not the one")):
        with pytest.raises(EncryptionKeyWrong, match=fault):
            ring.unwrap("a", wrapped, "place")
    with pytest.raises(EncryptionKeyWrong):
        old.unwrap("a", wrapped, "another place")
    old.check("a", old.check_value())
    with pytest.raises(EncryptionKeyWrong):
        KeyRing.parsed(new_entry("a"), "here").check("a", old.check_value())


def test_embedded_stores_make_a_ring_once_that_only_their_owner_reads(tmp_path, monkeypatch):
    for name in ("ECPHORIA_MASTER_KEYS", "ECPHORIA_MASTER_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    settings = load_settings(data_dir=tmp_path / "data")
    ring = open_key_ring(settings)
    path = settings.data_dir / OWN_FILE
    path.chmod(0o644)
    assert open_key_ring(settings).keys == ring.keys
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert add_own_key(settings) == "k2"
    turned = open_key_ring(settings)
    assert (turned.current, turned.keys["k1"]) == ("k2", ring.keys["k1"])
    assert list(settings.data_dir.iterdir()) == [path]


def test_servers_have_the_ring_of_the_settings_or_none(tmp_path):
    uris = {"neo4j_uri": "bolt://x", "milvus_uri": "http://x", "data_dir": tmp_path}
    assert open_key_ring(load_settings(**uris)) is None
    file = tmp_path / "keys"
    with pytest.raises(ConfigurationInvalid, match="cannot be read"):
        open_key_ring(load_settings(**uris, master_key_file=file))
    file.write_text(f"{new_entry('a')}\n{new_entry('b')}\n")
    given_ = load_settings(**uris, master_key_file=file)
    assert open_key_ring(given_).current == "a"
    with pytest.raises(ConfigurationInvalid, match="come from the settings"):
        add_own_key(given_)
    secret = new_entry("c")
    listed = load_settings(**uris, master_keys=secret)
    assert open_key_ring(listed).current == "c"
    assert secret not in repr(listed)
    with pytest.raises(ConfigurationInvalid, match="not both"):
        load_settings(**uris, master_keys=secret, master_key_file=file)


def test_times_keep_their_zone():
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    sealed = sealed_property(KEYS, "shop|P|1", "born", moment)
    assert unsealed_property(KEYS.data, "shop|P|1", "born", sealed) == moment
