"""The sample data: fits the domain, and its central case can only be answered by walking."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ecphoria_schema.domain import KINDS, shipped_domain

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parents[2] / "engine" / "ecphoria" / "demo_data"
DOMAIN = shipped_domain()
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "float": (int, float),
    "boolean": bool,
    "datetime": str,
    "date": str,
    "string_list": list,
}

Ref = tuple[str, str]
Row = dict[str, Any]


def _rows(name: str) -> list[Row]:
    text = (DATA / name).read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def _ref(row: Row) -> Ref:
    return row["type"], row["id"]


def _time(text: str) -> datetime:
    assert TIME.fullmatch(text), text
    return datetime.fromisoformat(text)


ENTITIES: dict[Ref, Row] = {_ref(row): row["props"] for row in _rows("entities.jsonl")}
RELATIONS = [(row["type"], _ref(row["from"]), _ref(row["to"])) for row in _rows("relations.jsonl")]
MEMORIES = _rows("memories.jsonl")
QUESTIONS: list[Row] = json.loads((DATA / "questions.json").read_text(encoding="utf-8"))


def _owners() -> dict[Ref, Ref]:
    """Return the root entity that each owned entity belongs to."""
    parents: dict[Ref, Ref] = {}
    for type_, start, end in RELATIONS:
        relation = DOMAIN.relation(type_, start[0], end[0])
        if relation is not None and relation.owns:
            parents[end] = start
    owners: dict[Ref, Ref] = {}
    for ref in ENTITIES:
        top = ref
        while top in parents:
            top = parents[top]
        if top[0] == DOMAIN.root:
            owners[ref] = top
    return owners


OWNERS = _owners()


def _ends(start: Ref, relation: str) -> list[Ref]:
    return [to for type_, from_, to in RELATIONS if (type_, from_) == (relation, start)]


def _memories_of(user: str) -> list[Row]:
    return [memory for memory in MEMORIES if memory["user_id"] == user]


def test_it_is_as_large_as_promised() -> None:
    counts = Counter(type_ for type_, _ in ENTITIES)
    assert counts["User"] == 36
    assert counts["Order"] >= 40
    assert counts["Device"] >= 40
    assert set(counts) == set(DOMAIN.entities)
    assert min(counts.values()) >= 8
    assert 340 <= len(MEMORIES) <= 380
    assert len(_rows("entities.jsonl")) == len(ENTITIES), "an id stands twice"
    assert len(set(RELATIONS)) == len(RELATIONS), "a relation stands twice"
    assert {type_ for type_, _, _ in RELATIONS} == {r.type for r in DOMAIN.relations}


def test_names_are_shared_by_several_customers() -> None:
    users = [props for (type_, _), props in ENTITIES.items() if type_ == "User"]
    assert sum(user.get("name_zh") == "张伟" for user in users) == 3
    assert sum(user["name"] == "Maria Garcia" for user in users) == 2
    assert sum("name_zh" in user for user in users) == 18


@pytest.mark.parametrize("ref", ENTITIES, ids="/".join)
def test_entities_fit_the_domain(ref: Ref) -> None:
    entity, props = DOMAIN.entities[ref[0]], ENTITIES[ref]
    assert set(props) <= set(entity.properties)
    for name, declared in entity.properties.items():
        if name not in props:
            assert not declared.required, name
            continue
        value = props[name]
        assert isinstance(value, PYTHON_TYPES[declared.type]), name
        assert isinstance(value, bool) == (declared.type == "boolean"), name
        assert not declared.values or value in declared.values
        if isinstance(value, list):
            assert value, name
            assert all(isinstance(item, str) and item for item in value), name
        elif declared.type == "datetime":
            at = _time(str(value))
            assert at.year >= 2020, name
            assert at <= NOW or name in {"ends_at", "expires_at", "starts_at"}, name
        elif declared.type == "date":
            date.fromisoformat(str(value))
        elif isinstance(value, str):
            assert value.strip() == value != "", name


def test_ids_can_be_read_out_of_a_question() -> None:
    for type_, id_ in ENTITIES:
        for pattern in DOMAIN.entities[type_].id_patterns:
            match = re.search(pattern.regex, f"about {id_}, please")
            assert match is not None, id_
            found = match.groups() or (match[0],)
            assert id_ in [form.format(*found) for form in pattern.forms]


def test_serials_are_unique_and_look_like_no_order() -> None:
    serials = [props["serial"] for (type_, _), props in ENTITIES.items() if type_ == "Device"]
    assert len(set(serials)) == len(serials)
    assert all(serial.startswith("SN") for serial in serials)
    (order,) = DOMAIN.entities["Order"].id_patterns
    assert not any(re.search(order.regex, serial) for serial in serials)


def test_relations_fit_the_domain() -> None:
    starts: Counter[tuple[str, Ref]] = Counter()
    ends: Counter[tuple[str, Ref]] = Counter()
    for type_, from_, to in RELATIONS:
        assert from_ in ENTITIES, from_
        assert to in ENTITIES, to
        relation = DOMAIN.relation(type_, from_[0], to[0])
        assert relation is not None, (type_, from_, to)
        if relation.start_has_one_end:
            starts[type_, from_] += 1
        if relation.end_has_one_start:
            ends[type_, to] += 1
    assert max(starts.values()) == 1
    assert max(ends.values()) == 1


def test_everything_owned_has_an_owner() -> None:
    assert {ref for ref in ENTITIES if ref[0] in DOMAIN.owned_types} == set(OWNERS)


def _pairs_in_order() -> Iterator[tuple[Ref, str, str]]:
    for ref, props in ENTITIES.items():
        for first, then in (
            ("placed_at", "delivered_at"),
            ("opened_at", "closed_at"),
            ("starts_at", "ends_at"),
        ):
            if first in props and then in props:
                yield ref, props[first], props[then]
    for type_, from_, to in RELATIONS:
        start, end = ENTITIES[from_], ENTITIES[to]
        if type_ == "PLACED":
            yield to, start["registered_at"], end["placed_at"]
        elif type_ == "PAID_BY":
            yield to, start["placed_at"], end["paid_at"]
        elif type_ == "CONTAINS":
            yield to, start["delivered_at"], end["activated_at"]
        elif type_ == "HAS_REPAIR":
            yield to, start["activated_at"], end["opened_at"]


def test_one_thing_comes_after_the_other() -> None:
    for ref, first, then in _pairs_in_order():
        assert _time(first) < _time(then), ref
    for type_, device, repair in RELATIONS:
        if type_ == "HAS_REPAIR" and ENTITIES[repair]["under_warranty"]:
            opened = ENTITIES[repair]["opened_at"]
            covers = [ENTITIES[warranty] for warranty in _ends(device, "COVERED_BY")]
            assert any(c["starts_at"] <= opened <= c["ends_at"] for c in covers), repair


def test_a_warranty_s_status_says_what_its_times_say() -> None:
    for (type_, id_), props in ENTITIES.items():
        if type_ == "Warranty" and props["status"] != "void":
            over = _time(props["ends_at"]) <= NOW
            assert props["status"] == ("expired" if over else "active"), id_


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: str(memory["id"]))
def test_memories_fit_the_domain(memory: Row) -> None:
    assert list(memory) == [
        *("id", "user_id", "session_id", "kind", "topic", "text", "lang", "source"),
        *("occurred_at", "valid_from", "valid_until", "importance", "about", "supersedes"),
    ]
    user = memory["user_id"]
    assert user is None or ("User", user) in ENTITIES
    assert memory["kind"] in KINDS
    assert memory["topic"] is None or memory["topic"] in DOMAIN.topics
    assert memory["source"] in DOMAIN.sources
    assert memory["lang"] == ("zh" if re.search(r"[\u4e00-\u9fff]", memory["text"]) else "en")
    assert memory["text"].strip() == memory["text"] != ""
    assert 0 <= memory["importance"] <= 1
    occurred, starts = _time(memory["occurred_at"]), _time(memory["valid_from"])
    assert datetime(2024, 1, 1, tzinfo=UTC) <= occurred <= NOW
    assert starts >= occurred
    if memory["valid_until"] is not None:
        assert _time(memory["valid_until"]) > starts
    if memory["session_id"] is not None:
        assert user is not None
    for entry in memory["about"]:
        ref = _ref(entry)
        assert ref in ENTITIES
        assert OWNERS.get(ref) in {None, ("User", user)}, "about somebody else's"


def test_memories_stand_oldest_first_under_their_own_ids() -> None:
    times = [memory["occurred_at"] for memory in MEMORIES]
    assert times == sorted(times)
    assert len({memory["id"] for memory in MEMORIES}) == len(MEMORIES)
    texts = Counter((memory["user_id"], memory["text"]) for memory in MEMORIES)
    assert max(texts.values()) == 1


def test_what_is_superseded_is_an_earlier_memory_of_the_same_customer() -> None:
    earlier: dict[str, Row] = {}
    taken: set[str] = set()
    for memory in MEMORIES:
        if memory["supersedes"] is not None:
            old = earlier[memory["supersedes"]]
            assert old["user_id"] == memory["user_id"]
            assert old["topic"] == memory["topic"]
            assert old["occurred_at"] < memory["occurred_at"]
            assert old["id"] not in taken
            taken.add(old["id"])
        earlier[memory["id"]] = memory
    assert len(taken) >= 10


def test_languages_kinds_and_sources_are_mixed() -> None:
    languages = Counter(memory["lang"] for memory in MEMORIES)
    assert min(languages["zh"], languages["en"]) >= 0.4 * len(MEMORIES)
    assert {memory["kind"] for memory in MEMORIES} == set(KINDS)
    assert {memory["source"] for memory in MEMORIES} == set(DOMAIN.sources)
    assert all(count >= 10 for count in Counter(m["source"] for m in MEMORIES).values())


def test_shared_knowledge_stands_in_both_languages() -> None:
    shared: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for memory in MEMORIES:
        if memory["user_id"] is None:
            about = tuple(_ref(entry) for entry in memory["about"])
            day = memory["occurred_at"][:10]
            shared[day, memory["topic"], memory["valid_until"], about][memory["lang"]] += 1
    assert sum(sum(languages.values()) for languages in shared.values()) >= 50
    for key, languages in shared.items():
        assert languages["zh"] == languages["en"], key


def test_time_has_its_odd_cases() -> None:
    future = [memory for memory in MEMORIES if _time(memory["valid_from"]) > NOW]
    assert {memory["lang"] for memory in future} == {"zh", "en"}
    assert all(memory["user_id"] is None for memory in future), "a policy to come"
    past = [m for m in MEMORIES if m["valid_until"] and _time(m["valid_until"]) <= NOW]
    assert {memory["lang"] for memory in past} == {"zh", "en"}
    assert any(memory["topic"] is None for memory in MEMORIES), "small talk"


def test_orders_of_different_customers_are_one_digit_apart() -> None:
    orders = sorted(
        (int(id_[1:]), OWNERS[type_, id_]) for type_, id_ in ENTITIES if type_ == "Order"
    )
    close = [(a, b) for (a, one), (b, other) in pairwise(orders) if b - a == 1 and one != other]
    assert (882301, 882302) in close
    assert (771204, 771205) in close


def test_a_review_contradicts_the_customer_system() -> None:
    (review,) = [m for m in _memories_of("u-sunxiaolan") if m["source"] == "ugc"]
    (current,) = [m for m in _memories_of("u-sunxiaolan") if m["supersedes"]]
    assert current["source"] == "crm"
    assert "崂山" in review["text"]
    assert "崂山" not in current["text"]


@pytest.mark.parametrize(
    ("user", "order", "device", "repair"),
    [
        ("u-zhangwei-1", "#882301", "dev-zhangwei-1-iphone15", "rep-7f31"),
        ("u-mariagarcia-1", "#771204", "dev-mariagarcia-1-macbookair", "rep-6c11"),
    ],
)
def test_the_central_case_is_a_walk(user: str, order: str, device: str, repair: str) -> None:
    assert ("Order", order) in _ends(("User", user), "PLACED")
    assert ("Device", device) in _ends(("Order", order), "CONTAINS")
    assert _ends(("Device", device), "HAS_REPAIR") == [("Repair", repair)]
    done = ENTITIES["Repair", repair]
    assert done["status"] == "closed"
    assert done["under_warranty"] is True
    assert re.search("(?<!非)授权|(?<!not )authorised", done["service_centre"])
    warranties = {
        ENTITIES[ref]["kind"]: ENTITIES[ref] for ref in _ends(("Device", device), "COVERED_BY")
    }
    assert set(warranties) == {"standard", "extended"}
    assert warranties["standard"]["status"] == "expired"
    assert warranties["extended"]["status"] == "active"
    assert warranties["extended"]["ends_at"] >= "2028"
    assert re.search("授权.*维修.*不影响|authorised.*valid", warranties["extended"]["terms"])


@pytest.mark.parametrize("user", ["u-zhangwei-1", "u-mariagarcia-1"])
def test_no_memory_alone_answers_the_central_case(user: str) -> None:
    own = _memories_of(user)
    assert len(own) >= 10
    serials = [
        ENTITIES[ref]["serial"]
        for ref, owner in OWNERS.items()
        if owner == ("User", user) and ref[0] == "Device"
    ]
    signs = {
        "order": r"#?\d{6}",
        "serial": "|".join(serials),
        "repair": r"维修|修理|换屏|换完屏|检测|(?i:repair|replaced|hinge)",
        "warranty": r"延保|保修|质保|(?i:warrant|extended|cover)",
    }
    for memory in own:
        text = memory["text"]
        assert not ("延保" in text and "维修" in text)
        assert sum(bool(re.search(sign, text)) for sign in signs.values()) <= 1, text
        assert len(memory["about"]) == 1
        assert memory["about"][0]["type"] not in {"Repair", "Warranty"}


def test_a_shared_policy_completes_the_central_case() -> None:
    policies = {m["lang"]: m for m in MEMORIES if m["user_id"] is None and m["importance"] >= 0.95}
    assert "授权服务中心完成的维修" in policies["zh"]["text"]
    assert "不影响延保" in policies["zh"]["text"]
    assert "authorised" in policies["en"]["text"]
    assert "does not void the extended warranty" in policies["en"]["text"]
    for policy in policies.values():
        assert policy["kind"] == "procedural"
        assert _time(policy["valid_from"]) <= NOW
        assert policy["valid_until"] is None


@pytest.mark.parametrize(
    ("twin", "device"),
    [
        ("u-zhangwei-2", "dev-zhangwei-2-iphone15"),
        ("u-mariagarcia-2", "dev-mariagarcia-2-macbookair"),
    ],
)
def test_the_namesake_s_extended_warranty_is_void(twin: str, device: str) -> None:
    assert OWNERS["Device", device] == ("User", twin)
    (repair,) = _ends(("Device", device), "HAS_REPAIR")
    assert ENTITIES[repair]["under_warranty"] is False
    status = {
        ENTITIES[ref]["kind"]: ENTITIES[ref]["status"]
        for ref in _ends(("Device", device), "COVERED_BY")
    }
    assert status["extended"] == "void"


def test_the_third_zhang_wei_has_another_device() -> None:
    products = {
        ENTITIES[ref]["name"]
        for ref, owner in OWNERS.items()
        if owner == ("User", "u-zhangwei-3") and ref[0] == "Device"
    }
    assert products == {"Roborock S8"}


def test_there_are_three_questions() -> None:
    walking, remembering, unknown = QUESTIONS
    for question in QUESTIONS:
        assert set(question) == {"user_id", "question", "lang", "expect"}
        assert ("User", question["user_id"]) in ENTITIES
        expect = question["expect"]
        assert set(expect) == {"action", "entities", "absent_entities"}
        for entry in expect["entities"]:
            assert OWNERS[_ref(entry)] == ("User", question["user_id"])
        for entry in expect["absent_entities"]:
            assert OWNERS[_ref(entry)] != ("User", question["user_id"])

    assert walking["user_id"] == "u-zhangwei-1"
    assert walking["question"] == "张伟买的iPhone15维修后还能享受延保吗"
    assert walking["expect"]["action"] == "ANSWER"
    assert [entry["type"] for entry in walking["expect"]["entities"]] == [
        *("User", "Order", "Device", "Repair", "Warranty")
    ]
    assert ENTITIES[_ref(walking["expect"]["entities"][-1])]["kind"] == "extended"
    assert {OWNERS[_ref(entry)][1] for entry in walking["expect"]["absent_entities"]} == {
        "u-zhangwei-2",
        "u-zhangwei-3",
    }

    assert remembering["lang"] == "en"
    assert remembering["expect"]["action"] == "ANSWER"
    (answer,) = [m for m in _memories_of(remembering["user_id"]) if m["supersedes"]]
    assert answer["topic"] == "address"
    assert "7 Quayside Court" in answer["text"]
    assert "7 Quayside Court" in ENTITIES["User", remembering["user_id"]]["address"]

    assert unknown["expect"]["action"] == "FALLBACK"
    assert unknown["expect"]["entities"] == []
    assert not [m for m in MEMORIES if re.search(r"疫苗|猫|vaccin|\bcats?\b", m["text"])]
