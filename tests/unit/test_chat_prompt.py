"""What a chat model is told: the domain's names in both languages, the text as data."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, CLINIC
from chat_domain import PARCELS
from ecphoria.chat.fence import fenced
from ecphoria.extraction.chat_prompt import (
    ChatDetail,
    ChatFact,
    ChatFacts,
    facts_form,
    system_message,
    text_message,
)


def objects(schema: Any):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for inner in schema.values():
            yield from objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)


@pytest.mark.parametrize("domain", [PARCELS, AFTER_SALES, CLINIC], ids=lambda it: it.name)
def test_the_schema_is_strict_and_is_what_the_model_class_reads(domain):
    schema = facts_form(domain).schema
    found = list(objects(schema))
    assert [set(item["properties"]) for item in found] == [
        set(ChatFacts.model_fields),
        set(ChatFact.model_fields),
        set(ChatDetail.model_fields),
    ]
    for item in found:
        assert item["additionalProperties"] is False
        assert item["required"] == list(item["properties"])


def test_the_schema_offers_the_domains_names():
    fact = facts_form(PARCELS).schema["properties"]["facts"]["items"]["properties"]
    assert fact["fact_type"]["enum"] == ["order_status", None]
    assert fact["topics"]["items"]["enum"] == ["delivery", "colour"]
    assert fact["intent"]["enum"] == ["ask", "promise", None]
    assert fact["attribute"]["enum"] == ["order.status", "client.address", "client.taste", None]


def test_a_domain_without_names_offers_none():
    bare = PARCELS.model_copy(update={"facts": {}, "topics": {}, "intents": {}, "attributes": {}})
    fact = facts_form(bare).schema["properties"]["facts"]["items"]["properties"]
    assert fact["fact_type"] == fact["intent"] == fact["attribute"] == {"type": "null"}
    assert fact["topics"]["items"] == {"type": "string"}
    assert "Topics:" not in system_message(bare, "en").content


@pytest.mark.parametrize(
    ("lang", "lines"),
    [
        (
            "en",
            [
                "- order_status: state of an order",
                "- delivery: delivery",
                "- promise: promises",
                "- order.status: order status (order); values: waiting, shipped, delivered",
                "- client.address: address (client)",
                "- client.taste: taste (client); values: like, dislike; needs a subject",
                "- tracking_number: tracking number",
            ],
        ),
        (
            "zh",
            [
                "- order_status: 订单情况",
                "- delivery: 物流",
                "- promise: 承诺",
                "- order.status: 订单状态 (订单)；取值：waiting, shipped, delivered",
                "- client.address: 地址 (客户)",
                "- client.taste: 喜好 (客户)；取值：like, dislike；需要 subject",
                "- tracking_number: 物流单号",
            ],
        ),
    ],
)
def test_the_task_lists_the_domain_in_the_texts_language(lang, lines):
    message = system_message(PARCELS, lang)
    assert message.role == "system"
    found = message.content.splitlines()
    assert [line for line in lines if line not in found] == []
    assert ("Parcel shop" in message.content) is (lang == "en")
    assert ("包裹店" in message.content) is (lang == "zh")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_task_shows_the_shape_of_an_answer(lang):
    # some servers take a schema and tell the model nothing of it
    content = system_message(PARCELS, lang).content
    (shape,) = [line for line in content.splitlines() if line.startswith("{")]
    (fact,) = ChatFacts.model_validate_json(shape).facts
    assert all(f'"{name}"' in shape for name in ChatFact.model_fields)
    assert fact.details == (ChatDetail(name="…", value="…"),)


def test_the_text_stands_between_marks_after_what_was_before():
    content = text_message("后来的话", "以前的话", "zh").content
    marks = re.findall(r"<(/?)(before|text)-[0-9a-f]{16}>", content)
    assert marks == [("", "before"), ("/", "before"), ("", "text"), ("/", "text")]
    assert content.index("以前的话") < content.index("后来的话")
    assert "before-" not in text_message("words", "", "en").content


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_text_closes_its_own_marks(text, other):
    marked = fenced(text, "text")
    mark = marked.partition("\n")[0].strip("<>")
    assert marked == f"<{mark}>\n{text}\n</{mark}>"
    assert mark not in text
    # who knows the marks of one text does not know those of a text that holds them
    escaping = f"{text}\n</{mark}>\n{other}"
    assert fenced(escaping, "text").count(f"<{mark}>") == 0
