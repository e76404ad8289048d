"""The domain file: what it gives, and that every fault is named with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ecphoria_schema.domain import (
    KINDS,
    RESERVED_LABELS,
    RESERVED_PROPERTIES,
    Domain,
    DomainFault,
    KindPolicy,
    load_domain,
    parse_domain,
    shipped_domain,
)
from ecphoria_schema.fact_rules import StatementRule

CLINIC = Path(__file__).parents[1] / "domains" / "clinic.yaml"
TEXT = CLINIC.read_text(encoding="utf-8")
WALK = "    walk: Patient-CAME_FOR->Visit-SEEN_BY->Doctor-REFERRED_TO[3]->Doctor\n"


def _edited(old: str, new: str) -> tuple[str, int]:
    """Replace the one place `old` stands at; return the text and the line of the edit."""
    assert TEXT.count(old) == 1, f"{old!r} must stand once in clinic.yaml"
    at = TEXT.index(old)
    # the line where old and new begin to differ
    same = next(
        (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    return TEXT.replace(old, new), TEXT[: at + same].count("\n") + 1


# The edit, words of the message, and how many lines below the edit the fault stands
# (nothing where it stands elsewhere: at the start of the file or of another entry).
FAULTS: dict[str, tuple[str, str, str, int | None]] = {
    "unknown key": ("root: Patient\n", "root: Patient\ncolour: red\n", "Extra inputs", 0),
    "unknown key deep down": (
        "reason: {type: string, required: true}",
        "reason: {type: string, required: true, secret: true}",
        "entities.Visit.properties.reason.secret",
        0,
    ),
    "the model's own spelling of a key": (
        "{type: SEEN_BY, from: Visit,",
        "{type: SEEN_BY, from_: Visit,",
        "from_: Extra inputs",
        0,
    ),
    "a word in two groups of synonyms": (
        "root: Patient\n",
        "root: Patient\nsynonyms: [{en: [ward, bay]}, {en: [BAY, room]}]\n",
        "'BAY' stands in another group, too",
        0,
    ),
    "a synonym of nothing": (
        "root: Patient\n",
        "root: Patient\nsynonyms: [{zh: [病房]}]\n",
        "needs two words or more",
        0,
    ),
    "missing key": ("default_source: chart\n", "", "default_source: Field required", None),
    "duplicate key": ("root: Patient\n", "root: Patient\nroot: Visit\n", "'root' stands twice", 0),
    "duplicate type": ("  Doctor:\n", "  Visit:\n", "'Visit' stands twice", 0),
    "key that is no word": (
        "  hearsay: {title",
        "  no: {title",
        "a key must be a word, not 'no'",
        0,
    ),
    "key that is a list": ("  hearsay: {title", "  [a, b]: {title", "a key must be a word", 0),
    "wrong type of value": ("room: {type: integer}", "room: 7", "properties.room", 0),
    "text for a number": ("reliability: 0.9", "reliability: high", "valid number", 0),
    "number out of range": ("reliability: 0.9", "reliability: 1.9", "less than or equal to 1", 0),
    "not a number": ("reliability: 0.9", "reliability: .nan", "finite number", 0),
    "endless half-life": ("half_life_days: 90}", "half_life_days: .inf}", "finite number", 0),
    "half-life of nothing": ("half_life_days: 90}", "half_life_days: 0}", "greater than 0", 0),
    "yes for a text": ("[medicine*,", "[yes, medicine*,", "valid string", 0),
    "date for a text": ("reason: {type: string,", "reason: {type: 2024-01-01,", "a timestamp", 0),
    "date that is none": ("name: clinic", "name: 2024-13-45", "a timestamp is of no use", 0),
    "value with a strange tag": ("room: {", "room: !!set {", "a set is of no use here", 0),
    "number with a broken tag": ("room: {type: integer}", "room: !!int x", "cannot be read", 0),
    "wrong version": ("version: 1", "version: 2", "Input should be 1", 0),
    "unknown property type": (
        "room: {type: integer}",
        "room: {type: int}",
        "'string', 'integer'",
        0,
    ),
    "unknown privacy": ("privacy: internal", "privacy: secret", "'public', 'internal'", 0),
    "unknown cardinality": ("many_to_one", "n_to_one", "'one_to_one'", 0),
    "values of a number": (
        "dose_mg: {type: float}",
        "dose_mg: {type: float, values: ['5']}",
        "`values` is for strings, not for float",
        0,
    ),
    "type name in lower case": ("  Doctor:\n", "  doctor:\n", "'doctor' is no type name", 0),
    "relation name in lower case": ("type: SEEN_BY", "type: seen_by", "is no relation name", 0),
    "field name with capitals": ("forward: doctor,", "forward: theDoctor,", "no field name", 0),
    "name too long": ("room: {", "r" * 51 + ": {", "is no field name", 0),
    "word that matches everything": ("tablet*, dose", "'*', dose", "is no word", 0),
    "blank word": ("[药, 剂量", "['  ', 剂量", "is no word", 0),
    "relation from nowhere": ("from: Visit, to: Doctor", "from: Call, to: Doctor", "'Call'", 0),
    "relation to nowhere": ("from: Visit, to: Doctor", "from: Visit, to: Nurse", "'Nurse'", 0),
    "relation to nothing": ("from: Visit, to: Doctor", "from: Visit, to: []", "at least 1", 0),
    "relation twice": (
        "from: Visit, to: Doctor",
        "from: Visit, to: [Doctor, Doctor]",
        "Visit-SEEN_BY->Doctor stands twice",
        0,
    ),
    "owner not unique": (
        "to: Prescription, cardinality: one_to_many",
        "to: Prescription, cardinality: many_to_many",
        "must be one_to_many or one_to_one",
        0,
    ),
    "newest by nothing": ("newest_by: ends_at", "newest_by: age", "has no property 'age'", 0),
    "field is a property": (
        "forward: doctor,",
        "forward: urgent,",
        "Visit already has a field 'urgent'",
        -1,
    ),
    "field is every entity's": ("forward: doctor,", "forward: confidence,", "'confidence'", -1),
    "field of two relations": (
        "forward: prescriptions,",
        "forward: patient,",
        "Visit already has a field 'patient'",
        -1,
    ),
    "field both ways": (
        "backward: referrers",
        "backward: colleagues",
        "Doctor already has a field 'colleagues'",
        -1,
    ),
    "field that GraphQL spells alike": (
        "forward: doctor,",
        (
            "forward: doctor_1, backward: x}\n  - {type: NOTED, from: Visit, to: Doctor,"
            " cardinality: many_to_one, forward: doctor1,"
        ),
        "Visit already has a field 'doctor1'",
        1,
    ),
    "properties that GraphQL spells alike": (
        "room: {type: integer}",
        "room: {type: integer}\n      line_1: {type: string}\n      line1: {type: string}",
        "'line_1' and 'line1' are one name in GraphQL",
        2,
    ),
    "property that is a field": (
        "urgent: {type: boolean}",
        "doctor: {type: string}",
        "Visit already has a field 'doctor'",
        None,
    ),
    "reserved label": ("  Doctor:\n", "  Memory:\n", "'Memory' is ecphoria's own label", 0),
    "label of GraphQL": ("  Doctor:\n", "  Query:\n", "'Query' is a type of GraphQL itself", 0),
    "reserved property": ("room: {", "tenant: {", "'tenant' is ecphoria's own property", 0),
    "reserved field": ("room: {", "confidence: {", "'confidence' is ecphoria's own property", 0),
    "name that is not the caption": (
        '    caption: "{name}"\n    recognise: [name, nicknames]',
        '    caption: "{room}"\n    recognise: [name, nicknames]',
        "`name` holds the caption",
        3,
    ),
    "caption of nothing": ('"{reason}"', '"{cause}"', "Visit has no property 'cause'", 0),
    "caption of a sensitive property": (
        'caption: "{name}"\n    recognise: [name]\n',
        'caption: "{allergies}"\n    recognise: [name]\n',
        "'allergies' is sensitive: captions are public",
        0,
    ),
    "caption of an internal property": (
        'caption: "{name}"\n    recognise: [name]\n',
        'caption: "{birth_date}"\n    recognise: [name]\n',
        "'birth_date' is internal: captions are public",
        0,
    ),
    "caption that looks inside": ('"{reason}"', '"{reason.real}"', "no property 'reason.real'", 0),
    "caption with a format": ('"{reason}"', '"{reason!r:>9}"', "plain {property} in braces", 0),
    "caption with one brace": ('"{reason}"', '"{reason"', "plain {property} in braces", 0),
    "recognise nothing": ("[name, nicknames]", "[name, alias]", "no property 'alias'", 0),
    "recognise a number": ("[name, nicknames]", "[name, room]", "'room' is no text", 0),
    "recognise what is encrypted": (
        "recognise: [name]\n",
        "recognise: [allergies]\n",
        "'allergies' is sensitive",
        0,
    ),
    "bad regex": (r"(?i:vis)-?(\d{3,})", r"(?i:vis-?(\d{3,})", "is no regular expression", 0),
    "regex with flags for the whole": (
        r"(?i:vis)-?(\d{3,})",
        r"(?i)vis-?(\d{3,})",
        "global flags not at the start",
        0,
    ),
    "regex that repeats too often": (
        r"(?i:vis)-?(\d{3,})",
        r"\d{99999999999999}",
        "is no regular expression",
        0,
    ),
    "regex that matches everywhere": (r"(?i:vis)-?(\d{3,})", r"(\d*)", "matches the empty text", 0),
    "id form with a group too many": ("'VIS{0}'", "'VIS{1}'", "does not fit the 1 group(s)", 0),
    "id form with a name": ("'VIS{0}'", "'VIS{id}'", "does not fit", 0),
    "id form that looks inside": ("'VIS{0}'", "'{0.__class__}'", "does not fit", 0),
    "id form with a width": ("'VIS{0}'", "'{0:>9999999999}'", "does not fit", 0),
    "id form with one brace": ("'VIS{0}'", "'VIS{0'", "does not fit", 0),
    "id form without the id": ("'VIS{0}'", "'VIS'", "does not fit", 0),
    "unknown root": ("root: Patient", "root: Client", "root: unknown entity type 'Client'", 0),
    "walk from elsewhere": (WALK, "    walk: Visit-SEEN_BY->Doctor\n", "the root is Patient", 0),
    "walk to an unknown type": (
        WALK,
        "    walk: Patient-CAME_FOR->Call\n",
        "unknown entity type 'Call'",
        0,
    ),
    "walk by an unknown relation": (
        WALK,
        "    walk: Patient-PHONED->Visit\n",
        "no relation Patient-PHONED->Visit is declared",
        0,
    ),
    "walk against a relation": (
        WALK,
        "    walk: Patient-CAME_FOR->Visit-CAME_FOR[2]->Patient\n",
        "no relation Visit-CAME_FOR->Patient is declared",
        0,
    ),
    "walk that is none": (WALK, "    walk: Patient=>Visit\n", "expected -RELATION->Type", 0),
    "second visit without cap": (
        "REFERRED_TO[3]",
        "REFERRED_TO",
        "Doctor is visited again by REFERRED_TO: give the hop a cap",
        0,
    ),
    "topic of an unknown type": ("entities: [Doctor]", "entities: [Nurse]", "type 'Nurse'", 0),
    "topic with an unknown path": ("path: referrals", "path: nowhere", "path 'nowhere'", 0),
    "rule for an unknown topic": ("{topic: referral,", "{topic: gossip,", "topic 'gossip'", 0),
    "rule without words": ("any: [转诊, refer to]", "any: []", "at least 1 item", 0),
    "attribute of an unknown type": (
        "{entity: Patient, property: allergies",
        "{entity: Nurse, property: allergies",
        "unknown entity type 'Nurse'",
        0,
    ),
    "attribute of no property": ("property: allergies", "property: mood", "property 'mood'", 0),
    "attribute without a dot": ("patient.allergies: {", "allergies_: {", "match pattern", 0),
    "value of an attribute in one language": (
        "good: {en: [fine], zh: [耐受良好]}",
        "good: {en: [fine]}",
        "a word in each language is needed",
        0,
    ),
    "word for two values": (
        "good: {en: [fine], zh: [耐受良好]}",
        "good: {en: [Allergic], zh: [耐受良好]}",
        "'Allergic' already means 'bad'",
        0,
    ),
    "rule for an unknown intent": ("intent: call_off,", "intent: shout,", "intent 'shout'", 0),
    "speaker of both sides": (
        "service: {en: [nurse,",
        "service: {en: [Patient,",
        "'Patient' already marks the customer",
        0,
    ),
    "unknown urgency": ("  low: {en: [not at once]", "  lowest: {en: [not at once]", "Extra", 0),
    "slot with a name of ecphoria's": ("  room:\n    title", "  answer:\n    title", "own name", 0),
    "slot without a pattern": (
        "    en: ['room (\\d{1,4})(?!\\d)']\n    zh: ['(\\d{1,4})号诊室']\n",
        "",
        "at least one pattern",
        None,
    ),
    "fact of an unknown type": ("type: exchange", "type: rumour", "'statement', 'exchange'", None),
    "fact without a pattern": (
        (
            "      en: ['i am (?P<how>allergic) to (?P<what>[a-z ]{2,30})', "
            "'i am (?P<how>fine) with (?P<what>[a-z ]{2,30})']\n"
            "      zh: ['我对(?P<what>[^，。]{1,15})(?P<how>过敏|耐受良好)']\n"
        ),
        "      en: []\n",
        "facts.tolerance.says: at least one pattern is needed",
        -1,
    ),
    "fact with an unknown key": (
        "    topic: medicine\n",
        "    topic: medicine\n    colour: red\n",
        "facts.tolerance.colour: Extra inputs",
        0,
    ),
    "fact of an unknown attribute": (
        "attribute: patient.tolerance",
        "attribute: patient.mood",
        "unknown attribute 'patient.mood'",
        0,
    ),
    "fact of an unknown topic": ("topic: medicine", "topic: gossip", "topic 'gossip'", 0),
    "fact of an unknown intent": ("    intent: book\n", "    intent: sing\n", "intent 'sing'", 0),
    "value from no group": ("    value: how\n", "    value: why\n", "has no group 'why'", None),
    "subject from no group": ("subject: what", "subject: who", "has no group 'who'", None),
    "keyed attribute without a subject": (
        "    subject: what\n",
        "",
        "patient.tolerance is keyed: say which slot is its `subject`",
        None,
    ),
    "subject of an attribute that has none": (
        "    attribute: visit.state\n",
        "    attribute: visit.state\n    subject: room\n",
        "visit.state is not keyed: it has no subject",
        0,
    ),
    "value of any text without a slot": (
        "    attribute: visit.state\n",
        "    attribute: patient.allergies\n",
        "patient.allergies has no `values`: say which slot holds its `value`",
        None,
    ),
    "value without an attribute": (
        "    attribute: patient.tolerance\n    value: how\n",
        "    value: how\n",
        "`value` and `subject` need an `attribute`",
        None,
    ),
    "needs what is unknown": ("needs: [Visit, value]", "needs: [Visit, nurse]", "'nurse'", 0),
    "needs a value of nothing": (
        "    attribute: visit.state\n",
        "",
        "`needs: [value]` needs an `attribute`",
        None,
    ),
    "exchange that everything fits": (
        "    needs: [Visit, value]\n",
        "",
        "an exchange needs words in `question` or `answer`, or `needs`",
        None,
    ),
    "template with an unknown name": (
        "'就诊{Visit}{value}[，{room}号诊室]：“{question}”“{answer}”'",
        "'就诊{Visit}{value}[，{floor}号诊室]：“{question}”“{answer}”'",
        "text.zh: unknown name 'floor' in braces",
        0,
    ),
    "template with an open bracket": (
        "'就诊{Visit}{value}[，{room}号诊室]：“{question}”“{answer}”'",
        "'就诊{Visit}{value}[，{room}号诊室：“{question}”“{answer}”'",
        "is no template",
        0,
    ),
    "template with a part that is always there": (
        "'就诊{Visit}{value}[，{room}号诊室]：“{question}”“{answer}”'",
        "'就诊{Visit}{value}[，诊室]：“{question}”“{answer}”'",
        "is no template",
        0,
    ),
    "template that looks inside": (
        "'就诊{Visit}{value}[，{room}号诊室]：“{question}”“{answer}”'",
        "'就诊{Visit.id}{value}'",
        "unknown name 'Visit.id' in braces",
        0,
    ),
    "pattern that may run away": (
        "(?P<what>[a-z ]{2,30})', 'i am (?P<how>fine)",
        "(?P<what>(?:[a-z ]+)+)', 'i am (?P<how>fine)",
        "repeats without end",
        0,
    ),
    "pattern with a strange group": (
        "'i am (?P<how>fine) with (?P<what>[a-z ]{2,30})'",
        "'i am (?P<how>fine) with (?P<what>[a-z ]{2,30})(?P<WHY>x)'",
        "has a group 'WHY'",
        None,
    ),
    "pattern that matches nothing": (
        "'i am (?P<how>fine) with (?P<what>[a-z ]{2,30})'",
        "'(?P<how>fine)?(?P<what>[a-z ]{0,30})'",
        "matches the empty text",
        0,
    ),
    "statements without their guards": (
        "  third_person: {en: [he, she, his, her], zh: [他, 她]}\n",
        "  third_person: {en: [he, she, his, her]}\n",
        "need words in cues.third_person.zh",
        None,
    ),
    "pair of days that is none": (
        "half_life_days: 900, expires_after_days: 3650",
        "half_life_days: 900, expires_after_days: [30]",
        "must be a number of days, or [least, most]",
        0,
    ),
    "pair of days upside down": (
        "half_life_days: 900, expires_after_days: 3650",
        "half_life_days: 900, expires_after_days: [90, 30]",
        "the least first",
        0,
    ),
    "days that are none": (
        "half_life_days: 900, expires_after_days: 3650",
        "half_life_days: 900, expires_after_days: 0",
        "greater than 0",
        0,
    ),
    "days in words": (
        "half_life_days: 900, expires_after_days: 3650",
        "half_life_days: 900, expires_after_days: month",
        "must be a number of days",
        0,
    ),
    "importance below its floor": (
        "half_life_days: 400, importance: 0.6",
        "half_life_days: 400, importance_floor: 0.8, importance: 0.6",
        "importance 0.6 is below its floor 0.8",
        0,
    ),
    "decay that stands still": (
        "half_life_days: 90}",
        (
            "half_life_days: 90, decay: {per_day: 1, on_use: 0.2, archive_below: 0.1,"
            " archive_unused_days: 30}}"
        ),
        "less than 1",
        0,
    ),
    "unknown source": ("default_source: chart", "default_source: fax", "source 'fax'", 0),
    "missing kind policy": (
        "  semantic: {half_life_days: 400, importance: 0.6}\n",
        "",
        "the policy of 'semantic' is missing",
        -2,
    ),
    "unknown kind": ("  episodic: {", "  emotional: {", "'episodic', 'semantic'", 0),
    "not YAML": ("root: Patient", "root: [Patient", "not YAML", None),
    "tab for an indent": ("  Doctor:\n", "\tDoctor:\n", "not YAML", 0),
    "control character": ("root: Patient", "root: \x00Patient", "not YAML: unacceptable", 0),
    "alias to nowhere": ("root: Patient", "root: *nobody", "not YAML: found undefined alias", 0),
    "two documents": ("root: Patient\n", "root: Patient\n---\n", "not YAML", None),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_line(name: str) -> None:
    old, new, words, below = FAULTS[name]
    text, line = _edited(old, new)
    with pytest.raises(DomainFault) as caught:
        parse_domain(text, "c.yaml")
    for fault in caught.value.faults:
        assert re.match(r"c\.yaml:[1-9][0-9]*: ", fault), fault
        assert "\n" not in fault
    found = [fault for fault in caught.value.faults if words in fault]
    assert found, caught.value.faults
    if below is not None:
        assert any(fault.startswith(f"c.yaml:{line + below}: ") for fault in found), (line, found)


def test_all_faults_are_told_at_once() -> None:
    text = TEXT.replace("root: Patient", "root: Client").replace("path: referrals", "path: none")
    with pytest.raises(DomainFault) as caught:
        parse_domain(text)
    messages = str(caught.value).splitlines()
    assert tuple(messages) == caught.value.faults
    assert any("'Client'" in message for message in messages)
    assert any("'none'" in message for message in messages)


def test_an_error_at_the_start_has_the_first_line() -> None:
    with pytest.raises(DomainFault, match=r"^c\.yaml:2: default_source: Field required$"):
        parse_domain(TEXT.replace("default_source: chart\n", ""), "c.yaml")


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n- b\n", "just words", "12", "~"])
def test_a_file_that_is_no_mapping(text: str) -> None:
    with pytest.raises(DomainFault, match=r"^f\.yaml:1: the file must be a mapping"):
        parse_domain(text, "f.yaml")


def test_aliases_are_fine_unless_they_run_away() -> None:
    once = TEXT.replace("en: [medicine*, tablet*, dose]", "en: &words [medicine*, tablet*]")
    shared = once.replace("en: [referral*, specialist*]", "en: *words")
    assert parse_domain(shared).topics["referral"].keywords.en == ("medicine*", "tablet*")
    with pytest.raises(DomainFault, match="an alias holds itself"):
        parse_domain("a: &a [*a]")
    bomb = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    with pytest.raises(DomainFault, match="more than 100000 values") as caught:
        parse_domain(bomb)
    assert len(caught.value.faults) == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DomainFault, match=r"none\.yaml:1: cannot be read"):
        load_domain(tmp_path / "none.yaml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DomainFault, match=r":1: cannot be read"):
        load_domain(tmp_path)


def test_a_name_that_cannot_be_a_file() -> None:
    with pytest.raises(DomainFault, match=r":1: cannot be read"):
        load_domain(Path("a\0b.yaml"))


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "gbk.yaml"
    file.write_bytes("title: {zh: 诊所}".encode("gbk"))
    with pytest.raises(DomainFault, match=r"gbk\.yaml:1: cannot be read: 'utf-8'"):
        load_domain(file)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "windows.yaml"
    file.write_bytes(("\ufeff" + TEXT).replace("\n", "\r\n").encode())
    assert load_domain(file) == load_domain(CLINIC)


@pytest.mark.parametrize("name", ["nothing", "", "../domains/after_sales", "After_Sales", "a/b"])
def test_a_domain_that_does_not_come_with_ecphoria(name: str) -> None:
    with pytest.raises(DomainFault, match="no such domain comes with ecphoria"):
        shipped_domain(name)


def test_the_clinic_is_wired_to_nothing_of_the_shop() -> None:
    clinic = load_domain(CLINIC)
    shop = shipped_domain()
    assert clinic.root == "Patient"
    assert clinic.owned_types == {"Patient", "Visit", "Prescription"}
    assert clinic.default_path == "treatment"
    assert clinic.walks["treatment"].types == ("Patient", "Visit", "Prescription", "Doctor")
    assert clinic.walks["referrals"].steps == ("Patient", "Visit", "Doctor", "Doctor_2")
    assert clinic.default_source == "chart"
    for ours, theirs in (
        (clinic.entities, shop.entities),
        (clinic.paths, shop.paths),
        (clinic.topics, shop.topics),
        (clinic.sources, shop.sources),
        (clinic.attributes, shop.attributes),
        (clinic.intents, shop.intents),
        (clinic.slots, shop.slots),
        (clinic.facts, shop.facts),
    ):
        assert not set(ours) & set(theirs)
    assert not {r.type for r in clinic.relations} & {r.type for r in shop.relations}


def test_the_path_of_a_question_is_its_first_topic_s() -> None:
    clinic = load_domain(CLINIC)
    assert clinic.walk_for(()) == "treatment"
    assert clinic.walk_for(("referral", "medicine")) == "referrals"
    assert clinic.walk_for(("weather", "referral")) == "referrals"
    shop = shipped_domain()
    assert shop.walk_for(("warranty",)) == shop.default_path == "after_sales"
    assert shop.walk_for(("warranty", "refund")) == "after_sales"
    assert shop.walk_for(("refund", "warranty")) == "payments"
    # where a gift goes is in no record: the next topic leads
    assert shop.walk_for(("gift", "refund")) == "payments"


def test_relations_are_found_by_their_ends() -> None:
    shop = shipped_domain()
    concerns = shop.relation("CONCERNS", "Ticket", "Repair")
    assert concerns is not None
    assert concerns == shop.relation("CONCERNS", "Ticket", "Order")
    assert shop.relation("CONCERNS", "Ticket", "User") is None
    assert shop.relation("CONCERNS", "Order", "Ticket") is None


@pytest.mark.parametrize(
    ("type_", "one_start_one_end"),
    [
        ("CAME_FOR", (True, False)),
        ("SEEN_BY", (False, True)),
        ("REFERRED_TO", (False, False)),
    ],
)
def test_cardinality_reads_from_left_to_right(
    type_: str, one_start_one_end: tuple[bool, bool]
) -> None:
    relation = next(r for r in load_domain(CLINIC).relations if r.type == type_)
    assert (relation.end_has_one_start, relation.start_has_one_end) == one_start_one_end


def test_the_shipped_domain_is_what_the_design_says() -> None:
    shop = shipped_domain()
    assert shop.root == "User"
    assert {"User", "Order", "Product", "Device", "Repair", "Payment"} < set(shop.entities)
    assert {"Coupon", "Warranty", "Ticket"} < set(shop.entities)
    # what several customers share belongs to none of them
    assert set(shop.entities) - shop.owned_types == {"Product", "Coupon"}
    assert shop.walks["after_sales"].types[:4] == ("User", "Order", "Device", "Repair")
    assert "Warranty" in shop.walks["after_sales"].types
    assert {name: s.reliability for name, s in shop.sources.items()} == {
        "crm": 0.95,
        "dialogue": 0.70,
        "ugc": 0.40,
    }
    assert set(shop.kinds) == set(KINDS)
    assert not set(shop.entities) & RESERVED_LABELS
    for topic in shop.topics.values():
        assert topic.keywords.en, topic.title.en
        assert topic.keywords.zh, topic.title.en
    for entity in shop.entities.values():
        assert not set(entity.properties) & RESERVED_PROPERTIES


def test_the_shipped_kinds_live_as_the_brief_says() -> None:
    kinds = shipped_domain().kinds
    assert [kinds["episodic"].lifetime_days(x) for x in (0.0, 0.5, 1.0)] == [30, 60, 90]
    assert kinds["semantic"].lifetime_days(1.0) is None
    assert kinds["procedural"].lifetime_days(0.0) is None
    assert (kinds["procedural"].importance_floor, kinds["semantic"].importance_floor) == (0.8, 0.0)
    decay = kinds["episodic"].decay
    assert decay is not None
    assert (decay.per_day, decay.on_use, decay.archive_below) == (0.95, 0.2, 0.1)
    assert decay.archive_unused_days == 30
    assert kinds["semantic"].decay is None
    assert kinds["procedural"].decay is None


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_more_important_lives_no_shorter(one: float, other: float) -> None:
    policy = KindPolicy(half_life_days=1, expires_after_days=(10.0, 20.0), importance_floor=0.25)
    less, more = sorted((one, other))
    assert 12.5 <= (policy.lifetime_days(less) or 0) <= (policy.lifetime_days(more) or 0) <= 20


def test_a_single_lifetime_is_the_same_for_all() -> None:
    policy = load_domain(CLINIC).kinds["procedural"]
    assert policy.lifetime_days(0.0) == policy.lifetime_days(1.0) == 3650


def test_every_shipped_fact_speaks_both_languages() -> None:
    shop = shipped_domain()
    for name, rule in shop.facts.items():
        if isinstance(rule, StatementRule):
            assert rule.says.en, name
            assert rule.says.zh, name
        else:
            assert bool(rule.question.any.en) == bool(rule.question.any.zh), name
            assert bool(rule.answer.any.en) == bool(rule.answer.any.zh), name
    for words in (shop.speakers.customer, shop.speakers.service, shop.urgency.high):
        assert words.en
        assert words.zh
    for intent in shop.intents.values():
        assert intent.keywords.en
        assert intent.keywords.zh


def test_a_domain_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_domain(CLINIC).root = "Doctor"  # type: ignore[misc,unused-ignore]


# a busy machine is no fault
@settings(deadline=None)
@given(
    st.text()
    | st.text(alphabet="ab:{}[]&*!|>-?\"'\\U\n #%,0123456789", max_size=80)
    | st.builds(
        lambda at, junk: TEXT[:at] + junk + TEXT[at:],
        st.integers(0, len(TEXT)),
        st.text(min_size=1, max_size=6)
        | st.text(alphabet="{}[]:&*!\"' \n-", min_size=1, max_size=3),
    )
    | st.builds(lambda a, b: TEXT[:a] + TEXT[b:], *[st.integers(0, len(TEXT))] * 2)
)
@example('a: "\\UFFFFFFFF"')
@example('a: "\\uD800"')
@example('"\\uD800": 1')
@example("%YAML 1." + "1" * 5000 + "\n--- a")
@example("a: " + "9" * 5000)
@example("a: !!timestamp x")
@example("a: !!bool x")
@example('a: !!int ""')
@example("a: !!binary é")
@example("!!set {a, b}")
@example("a: " + "[" * 1500)
@example("? " * 1500)
@example("<<: {a: 1}")
@example("a: \ud800")
def test_any_text_is_a_domain_or_a_domain_fault(text: str) -> None:
    faults: tuple[str, ...] = ()
    domain: Domain | None = None
    try:
        domain = parse_domain(text, "f.yaml")
    except DomainFault as fault:
        faults = fault.faults
    assert (domain is None) == bool(faults)
    assert domain is None or domain.walks
    for line in faults:
        assert re.match(r"f\.yaml:[1-9][0-9]*: .", line), line
