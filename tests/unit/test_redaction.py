"""What identifies a person is found in both languages; ids, dates and amounts stay."""

from __future__ import annotations

import re
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, CLINIC
from ecphoria.governance.redaction import (
    OF_PERSONS_ALONE,
    is_bank_card,
    is_id_card,
    luhn_sum,
    redactor,
)
from ecphoria_schema.domain import Redaction, Title

WORDS = redactor(AFTER_SALES)
DIGITS = "0123456789"
# Ids as the domain and its texts have them, each called what it is.
NAMED = (
    "订单{}还没到", "订单号：{}", "order {} is late", "order #{}", "Order number {}.", "快递单号{}",
    "物流单号是{}", "tracking number {}", "serial number: {}", "运单号 {}", "工单 {}", "#{}",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("我的手机号是13812345678", "我的手机号是[电话]"),
        ("打１３８１２３４５６７８给我", "打[电话]给我"),
        ("+86 138-1234-5678 是我的", "[电话] 是我的"),
        ("座机021-58881234转802", "座机[电话]"),
        ("call +1 (415) 555-0132", "call [phone]"),
        ("call 415-555-0132 or (415) 555-0132", "call [phone] or [phone]"),
        ("+44 20 7946 0958, 07700 900123", "[phone], [phone]"),
        ("My phone number is 5550132", "My phone number is [phone]"),
        ("mail li.lei+shop@mail.example.co.uk!", "mail [e-mail]!"),
        ("邮箱zhang@example.com，谢谢", "邮箱[邮箱]，谢谢"),
        ("身份证11010519491231002X", "身份证[身份证号]"),
        ("visa 4111 1111 1111 1111", "visa [bank card]"),
        ("my card 4111111111111111", "my card [bank card]"),
        ("amex 3782 822463 10005", "amex [bank card]"),
        ("寄到上海市浦东新区张江路88号3栋501室，谢谢", "寄到[地址]，谢谢"),
        ("家住成都市武侯区人民南路四段11号", "家住[地址]"),
        ("地址：杭州市西湖区文三路 478 号 A 座 1203 室", "地址：[地址]"),
        ("送北京市朝阳区望京花园5号楼1203", "送[地址]"),
        ("I live at 12B Baker Street, Flat 3, London NW1 6XE.", "I live at [address]."),
        ("ship to 1600 Pennsylvania Avenue NW, Washington, DC 20500", "ship to [address]"),
        ("ship to 12 baker street please", "ship to [address] please"),
        ("P.O. Box 1234", "[address]"),
        ("I placed an order, 13812345678 is my number", "I placed an order, [phone] is my number"),
    ],
)
def test_what_identifies_a_person_is_found(text, shown):
    assert WORDS.redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "2 phones on the road",
        "I have 2 orders on 5th Avenue",
        "上海的快递没到",
        "London is far, the courier is in 深圳南山区",
        "paid 1,299.00 on 2025-06-15 at 14:30:05",
        "2025年6月15日 付款 12999.50 元",
        "phone number 20250615",
        "客服热线400-820-8820",
        "iPhone 15 Pro 256 GB, version 17.5.1",
        "5 TB hard drive",
        "地铁3号线在修",
        "SN-4111111111111112, 4111111111111112",
        "11010519491231002Y 110105194912310021",
        "@someone, me@home, a@b",
    ],
)
def test_what_is_none_stays(text):
    assert WORDS.redacted(text) == text


@given(
    st.sampled_from(NAMED),
    st.from_regex(r"[A-Z]{0,3}[0-9]{6,20}", fullmatch=True)
    | st.sampled_from(["4111111111111111", "11010519491231002X", "13812345678", "021-58881234"]),
)
def test_ids_that_are_called_so_survive(template, number):
    text = template.format(number)
    assert number in WORDS.redacted(text)


@given(
    st.dates(date(1900, 1, 1)).map(str)
    | st.datetimes(datetime(1900, 1, 1)).map(str)  # noqa: DTZ001 - as hypothesis wants it
    | st.decimals(0, 10**9, places=2).map("{:,}".format)
    | st.times().map(str)
    | st.dates(date(1900, 1, 1)).map(lambda day: f"{day.year}年{day.month}月{day.day}日"),
    st.sampled_from(["付款{}元", "paid {} for it", "on {}", "{}", "退款 {}，已到账"]),
)
def test_dates_and_amounts_survive(value, template):
    text = template.format(value)
    assert WORDS.redacted(text) == text


@given(st.text() | st.text(alphabet=DIGITS + "+-() .@#Xx路号市abc我的 Street", max_size=200))
def test_it_never_fails_and_twice_is_once(text):
    once = WORDS.redacted(text)
    assert WORDS.redacted(once) == once
    assert WORDS.redacted(once, lang="zh") == once


@given(st.from_regex(r"1[3-9][0-9]{9}", fullmatch=True), st.sampled_from(["打{}", "call {} now"]))
def test_no_mobile_number_gets_through(number, template):
    assert number not in WORDS.redacted(template.format(number))


@given(st.sampled_from([("62", 19), ("62", 16), ("4", 16), ("51", 16), ("37", 15)]), st.data())
def test_card_numbers_are_known_by_their_sum(issuer, data):
    first, length = issuer
    rest = data.draw(st.text(alphabet=DIGITS, min_size=length - len(first) - 1,
                             max_size=length - len(first) - 1))  # fmt: skip
    good = [first + rest + digit for digit in DIGITS if luhn_sum(first + rest + digit) % 10 == 0]
    assert len(good) == 1
    assert is_bank_card(good[0])
    assert good[0] not in WORDS.redacted(f"卡号{good[0]}")


@given(st.from_regex(r"[1-9][0-9]{5}19[0-9]{2}0[1-9]1[0-9][0-9]{3}", fullmatch=True))
def test_id_cards_have_one_check_character(number):
    good = [check for check in f"{DIGITS}X" if is_id_card(number + check)]
    assert len(good) == 1
    assert number not in WORDS.redacted(f"身份证是{number}{good[0]}")


def test_hidden_values_are_found_in_any_case_and_spacing():
    shown = WORDS.redacted(
        "moved to ROSE  cottage; Rose Cottage it is", hidden=[("Rose Cottage", "[home]")]
    )
    assert shown == "moved to [home]; [home] it is"
    assert WORDS.redacted("a tin of tea", hidden=[("tin", "[x]")]) == "a tin of tea"


def test_the_addresses_of_a_business_may_be_left():
    text = "Returns go to 12 Baker Street, call 13812345678"
    assert WORDS.redacted(text, leave=OF_PERSONS_ALONE) == text


def test_a_domain_has_patterns_of_its_own():
    rule = Redaction(regex=r"MRN-\d{4,8}", placeholder=Title(en="[record]", zh="[病历号]"))
    words = redactor(CLINIC.model_copy(update={"redaction": {"record": rule}}))
    assert words.redacted("see MRN-12345") == "see [record]"
    assert words.redacted("病历MRN-12345") == "病历[病历号]"
    assert WORDS.redacted("see MRN-12345") == "see MRN-12345"


def test_a_pattern_must_not_find_its_own_placeholder():
    with pytest.raises(ValueError, match=re.escape("finds its own placeholder '[card]'")):
        Redaction(regex="card", placeholder=Title(en="[card]", zh="[卡]"))
