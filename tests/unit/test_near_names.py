"""Names that are nearly said: with a typo, in the other number, or more shortly."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builders import AFTER_SALES_WORDS, CLINIC_WORDS, ref
from ecphoria.language.folding import Compact
from ecphoria.language.short_names import in_number, short_names
from ecphoria.language.typos import Edit, one_edit, typo_spans
from ecphoria.model import NamedEntity


def called(*names, property_="name", type_="Product"):
    return tuple(NamedEntity(name, property_, (ref(type_, name),)) for name in names)


SHOP = called(
    "Rotary Toaster",
    "Belt Toaster",
    "Smartphone",
    "Pocket Watch",
    "E-Scooter",
    "Cordless Charger",
    "Charger",
    "Tablet",
    "Aria 15 Pro",
    "Nova X5 Projector",
    "手机",
    "折叠电动滑板车",
    "平板电脑",
    "掌上电脑",
    "挂烫式熨斗",
    "儿童手表",
)


def met(text, names=SHOP, words=AFTER_SALES_WORDS):
    return {
        (mention.text, mention.partial) for mention in words.name_mentions(text, names, near=True)
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("the rotary tostaer", None),
        ("the rotary toster", "Rotary Toaster"),
        ("the rotray toaster", "Rotary Toaster"),
        ("the rotaryy toaster", "Rotary Toaster"),
        ("the rotery toaster", "Rotary Toaster"),
        ("ｔｈｅ ｂｅｌｔ ｔｏａｓｔｒ", "Belt Toaster"),
        ("cordles charger", "Cordless Charger"),
        ("smratphone", "Smartphone"),
        ("儿童手婊", "儿童手表"),
        ("平板电恼", "平板电脑"),
    ],
)
def test_one_typo_in_a_name(text, name):
    found = {name_ for name_, partial in met(text) if not partial}
    assert found == (set() if name is None else {name})


@pytest.mark.parametrize(
    "text",
    [
        "I was charged twice",
        "it charges slowly",
        "on the table",
        "Aria 15 Prp",
        "Aria 16 Pro",
        "儿童手环",
        "折叠电饭煲",
        "",
    ],
)
def test_another_word_is_no_typo(text):
    assert met(text) == set()


def test_ids_serials_and_models_have_no_typos_and_no_short_names():
    for property_ in ("serial", "model"):
        names = called("KXPROLINE", "Nova Projector", property_=property_)
        assert met("KXPROLINA nova projectr projector", names) == set()
        assert met("kxproline", names) == {("KXPROLINE", False)}
    assert met("Nova X6 Projectors", called("Nova X5 Lite")) == set()


def test_a_typo_as_near_to_two_names_is_none():
    assert met("robin", called("Rovin", "Rodin")) == set()
    assert met("rovin", called("Rovin", "Rodin")) == {("Rovin", False)}


def test_an_exact_name_hides_what_is_nearly_said():
    assert met("my charger") == {("Charger", False)}
    assert met("the belt toaster") == {("Belt Toaster", False)}
    assert met("belt toaster and rotary toster") == {
        ("Belt Toaster", False),
        ("Rotary Toaster", False),
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("two pocket watches", "Pocket Watch"),
        ("pocketwatch", "Pocket Watch"),
        ("the tablets", "Tablet"),
        ("escooter", "E-Scooter"),
        ("e scooters", "E-Scooter"),
        ("smart phones", "Smartphone"),
    ],
)
def test_number_and_spacing_make_no_difference(text, name):
    assert met(text) == {(name, False)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("my toaster broke", {"Rotary Toaster", "Belt Toaster"}),
        ("the toasters", {"Rotary Toaster", "Belt Toaster"}),
        ("my toastr broke", {"Rotary Toaster", "Belt Toaster"}),
        ("my phone broke", {"Smartphone"}),
        ("the scooter", {"E-Scooter"}),
        ("the projector", {"Nova X5 Projector"}),
        ("my watch", {"Pocket Watch"}),
        ("平板坏了", {"平板电脑"}),
        ("电脑坏了", {"平板电脑", "掌上电脑"}),
        ("电动滑板车坏了", {"折叠电动滑板车"}),
        ("滑板车", {"折叠电动滑板车"}),
        ("折叠滑板车", {"折叠电动滑板车"}),
        ("挂烫熨斗漏水", {"挂烫式熨斗"}),
        ("手表", {"儿童手表"}),
    ],
)
def test_a_part_of_a_name_brings_all_that_end_so(text, names):
    assert met(text) == {(name, True) for name in names}


@pytest.mark.parametrize(
    "text",
    [
        "what is my phone number",
        "by phone",
        "a phone call",
        "please phone me",
        "a telephone",
        "watch TV",
        "I watch it",
        "toast",
        "Pro",
        "打电话",
        "我的手机号",
        "折叠",
        "儿童",
        "电动",
        "表",
    ],
)
def test_what_means_something_else_is_no_part_of_a_name(text):
    assert met(text) == set()


def test_people_have_no_short_names():
    people = called("Ada Miller", type_="User")
    assert met("miller", people) == set()
    assert met("ada miller", people) == {("Ada Miller", False)}


def test_another_domain_has_its_own_root():
    doctor = called("Dr. Ada Miller", type_="Doctor")
    assert met("with miller", doctor, CLINIC_WORDS) == {("Dr. Ada Miller", True)}


def test_what_was_said_is_told():
    (mention,) = AFTER_SALES_WORDS.name_mentions("The  Belt TOASTR!", SHOP, near=True)
    assert (mention.text, mention.said) == ("Belt Toaster", "belt toastr")


def test_without_near_only_whole_names_count():
    assert AFTER_SALES_WORDS.name_mentions("the belt toastr, a phone, 平板", SHOP) == ()


@pytest.mark.parametrize(
    ("name", "said", "edit"),
    [
        ("abcd", "abcd", None),
        ("abcd", "abxd", Edit("replaced", 2)),
        ("abcd", "acd", Edit("deleted", 1)),
        ("abcd", "abccd", Edit("inserted", 3)),
        ("abcd", "abcde", Edit("inserted", 4)),
        ("abcd", "bacd", Edit("swapped", 0)),
        ("abcd", "badc", None),
        ("abcd", "ab", None),
        ("", "a", Edit("inserted", 0)),
    ],
)
def test_one_edit(name, said, edit):
    assert one_edit(name, said) == edit


LETTERS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=9, max_size=16)


@given(LETTERS, st.integers(1, 6), st.sampled_from("abcdefghijklmnopqrstuvwxyz"), st.data())
def test_a_long_name_is_found_with_any_typo_in_its_middle(name, place, letter, data):
    said = data.draw(
        st.sampled_from(
            [
                name[:place] + letter + name[place + 1 :],
                name[:place] + letter + name[place:],
                name[:place] + name[place + 1 :],
                name[:place] + name[place + 1] + name[place] + name[place + 2 :],
            ]
        )
    )
    assume(said != name)
    assert typo_spans(Compact(f"the {said} broke"), name) == [(3, 3 + len(said))]


@given(LETTERS, LETTERS)
def test_more_than_one_typo_is_never_found(name, said):
    found = typo_spans(Compact(said), name)
    assert all(one_edit(name, said[start:end]) is not None for start, end in found)


@given(st.text(), st.lists(st.text(max_size=12), max_size=4))
def test_any_text_and_any_names_give_known_refs(text, names):
    known = called(*names)
    found = AFTER_SALES_WORDS.name_mentions(text + "".join(names), known, near=True)
    assert {mention.text for mention in found} <= set(names)
    assert found == AFTER_SALES_WORDS.name_mentions(text + "".join(names), known, near=True)


@given(st.text())
def test_short_names_are_shorter(name):
    whole = Compact(name).text
    assert whole not in {form.text for form in short_names(name)}
    assert all(form.text for form in (*short_names(name), *in_number(name)))


@pytest.mark.parametrize(
    ("text", "recorded"),
    [
        ("my hoover broke", "Vacuum Cleaner"),
        ("my HOOVERS broke", "Vacuum Cleaner"),
        ("the digicam", "Digital Camera"),
        ("the notebook computer", "Laptop"),
        ("a wireless hoover", "Wireless Vacuum"),
        ("充电宝坏了", "Power Bank"),
        ("the power bank", "充电宝"),
        ("便携充电宝坏了", "便携移动电源"),
    ],
)
def test_what_the_trade_calls_the_same_is_met(text, recorded):
    (mention,) = AFTER_SALES_WORDS.name_mentions(text, called(recorded))
    assert (mention.refs, mention.partial) == ((ref("Product", recorded),), False)


def test_a_name_as_it_is_recorded_wins_over_what_is_called_the_same():
    assert met("the purifier", called("Purifier", "Air Purifier")) == {("Purifier", False)}
    both = called("Air Purifier", "Air Cleaner")
    (mention, *others) = AFTER_SALES_WORDS.name_mentions("my purifier", both)
    assert {ref_ for item in (mention, *others) for ref_ in item.refs} == {
        ref("Product", "Air Purifier"),
        ref("Product", "Air Cleaner"),
    }


@pytest.mark.parametrize("property_", ["serial", "model"])
def test_serial_numbers_and_models_are_called_nothing_else(property_):
    assert met("my hoover", called("Vacuum", property_=property_)) == set()


def test_a_domain_without_synonyms_knows_none():
    assert met("my hoover", called("Vacuum Cleaner"), words=CLINIC_WORDS) == set()


@given(
    st.text(max_size=30), st.sampled_from(["Vacuum Cleaner", "充电宝", "Laptop", "Robot Vacuum"])
)
def test_synonyms_bring_no_name_that_is_not_known(text, name):
    for mention in AFTER_SALES_WORDS.name_mentions(text, called(name), near=True):
        assert mention.refs == (ref("Product", name),)
