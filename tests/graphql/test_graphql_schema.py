"""The schema: exported, typed from the domain, two of them in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    parse,
    validate,
)
from graphql import (
    build_schema as read_sdl,
)

from ecphoria.errors import DomainFileInvalid
from ecphoria.model import ChangeKind, LinkMethod, ReceiptStatus, Speaker, Status, Urgency
from ecphoria_graphql.entity_types import OWN_TYPES, connection_types
from ecphoria_graphql.export import export_sdl
from ecphoria_graphql.schema import build_schema
from ecphoria_schema.domain import Domain, DomainFault, parse_domain, shipped_domain

REPOSITORY = Path(__file__).parents[2]
OPERATIONS = sorted(
    [
        *(REPOSITORY / "graphql" / "operations").glob("*.graphql"),
        *(REPOSITORY / "graphql" / "ecphoria_graphql").glob("*.graphql"),
    ]
)


def core(domain: Domain) -> GraphQLSchema:
    return build_schema(domain)._schema


def fields(schema: GraphQLSchema, name: str) -> dict[str, str]:
    type_ = schema.type_map[name]
    assert isinstance(type_, GraphQLObjectType | GraphQLInterfaceType)
    return {field: str(definition.type) for field, definition in type_.fields.items()}


def test_exported_sdl_is_current() -> None:
    exported = (REPOSITORY / "graphql" / "schema.graphql").read_text(encoding="utf-8")
    assert exported == export_sdl(shipped_domain()), (
        "run `ecphoria schema export --output graphql/schema.graphql`"
    )


def test_exported_sdl_is_valid_and_stable() -> None:
    sdl = export_sdl(shipped_domain())
    assert read_sdl(sdl).query_type is not None
    assert export_sdl(shipped_domain()) == sdl


def test_entities_are_typed_from_the_domain() -> None:
    schema = core(shipped_domain())
    assert fields(schema, "Entity") == {
        "nodeId": "ID!",
        "id": "ID!",
        "type": "EntityType!",
        "name": "String!",
        "observedAt": "DateTime",
        "confidence": "Confidence",
    }
    device = fields(schema, "Device")
    assert device["serial"] == "String"
    assert device["activatedAt"] == "DateTime"
    assert device["order"] == "Order"
    assert device["product"] == "Product"
    assert device["repairs"] == "[Repair!]!"
    assert device["repairsConnection"] == "RepairConnection!"
    assert "orderConnection" not in device
    assert fields(schema, "RepairEdge")["node"] == "Repair!"
    assert device["warranties"] == "[Warranty!]!"
    assert device["name"] == "String!"
    assert fields(schema, "Product")["aliases"] == "[String!]"
    assert fields(schema, "Repair")["underWarranty"] == "Boolean"
    assert fields(schema, "Order")["total"] == "Float"
    # a relation with several end types gives the interface; its other side the type
    assert fields(schema, "Ticket")["concerns"] == "[Entity!]!"
    assert fields(schema, "Repair")["tickets"] == "[Ticket!]!"


def test_a_second_domain_gives_a_second_schema(clinic: Domain) -> None:
    before = export_sdl(shipped_domain())
    schema = core(clinic)
    assert export_sdl(shipped_domain()) == before
    assert {"Patient", "Visit", "Doctor", "Prescription"} <= set(schema.type_map)
    assert not {"User", "Order", "Device"} & set(schema.type_map)
    patient = fields(schema, "Patient")
    assert patient["birthDate"] == "Date"
    assert patient["visits"] == "[Visit!]!"
    assert fields(schema, "Visit")["doctor"] == "Doctor"
    assert fields(schema, "Doctor")["room"] == "Long"
    assert fields(schema, "Doctor")["nicknames"] == "[String!]"
    # a relation from a type to itself has two fields there
    assert fields(schema, "Doctor")["colleagues"] == "[Doctor!]!"
    assert fields(schema, "Doctor")["referrers"] == "[Doctor!]!"
    kinds = schema.type_map["EntityType"]
    assert isinstance(kinds, GraphQLEnumType)
    assert set(kinds.values) == {"Patient", "Visit", "Doctor", "Prescription"}


def test_every_entity_type_implements_the_interface() -> None:
    domain = shipped_domain()
    schema = core(domain)
    interface = schema.type_map["Entity"]
    assert isinstance(interface, GraphQLInterfaceType)
    assert {type_.name for type_ in schema.get_possible_types(interface)} == set(domain.entities)


@pytest.mark.parametrize("which", ["shipped", "clinic"])
def test_every_element_has_a_description(which: str, clinic: Domain) -> None:
    schema = core(clinic if which == "clinic" else shipped_domain())
    bare: list[str] = []
    for name, type_ in schema.type_map.items():
        if name.startswith("__"):
            continue
        if not type_.description:
            bare.append(name)
        if isinstance(type_, GraphQLEnumType):
            bare += [f"{name}.{key}" for key, item in type_.values.items() if not item.description]
        elif isinstance(type_, GraphQLInputObjectType):
            bare += [f"{name}.{key}" for key, item in type_.fields.items() if not item.description]
        elif isinstance(type_, GraphQLObjectType | GraphQLInterfaceType):
            for key, field in type_.fields.items():
                if not field.description:
                    bare.append(f"{name}.{key}")
                bare += [
                    f"{name}.{key}({argument})"
                    for argument, item in field.args.items()
                    if not item.description
                ]
    assert bare == []


# They are about no user's data, or the global id says whose.
WITHOUT_USER = {"auditLog", "me", "node", "sources", "tenantStats"}


def test_every_query_names_its_user() -> None:
    schema = core(shipped_domain())
    assert schema.query_type is not None
    for name in WITHOUT_USER:
        assert "userId" not in schema.query_type.fields[name].args
    for name, field in schema.query_type.fields.items():
        if name in WITHOUT_USER:
            continue
        if "input" in field.args:
            inner = schema.type_map[str(field.args["input"].type).rstrip("!")]
            assert isinstance(inner, GraphQLInputObjectType)
            user = inner.fields["userId"].type
        else:
            user = field.args["userId"].type
        assert str(user) == "ID!", name


def test_every_subscription_names_its_user() -> None:
    schema = core(shipped_domain())
    assert schema.subscription_type is not None
    for name, field in schema.subscription_type.fields.items():
        assert str(field.args["userId"].type) == "ID!", name


def test_forgetting_by_a_rule_is_a_dry_run_unless_one_says_otherwise() -> None:
    schema = core(shipped_domain())
    assert schema.mutation_type is not None
    dry_run = schema.mutation_type.fields["forgetByRule"].args["dryRun"]
    assert (str(dry_run.type), dry_run.default_value) == ("Boolean!", True)


def test_a_domain_tells_its_attributes(clinic: Domain) -> None:
    for domain in (shipped_domain(), clinic):
        schema = core(domain)
        fact = schema.type_map["FactInput"]
        assert isinstance(fact, GraphQLInputObjectType)
        assert schema.query_type is not None
        history = schema.query_type.fields["attributeHistory"]
        for told in (fact.fields["attribute"].description, history.args["attribute"].description):
            assert told is not None
            assert all(f"`{name}`" in told for name in domain.attributes)


@pytest.mark.parametrize(
    ("enum", "values"),
    [
        ("ReceiptStatus", [each.value for each in ReceiptStatus]),
        ("ChangeKind", [each.value for each in ChangeKind]),
        ("LinkMethod", [each.upper() for each in LinkMethod]),
        ("Urgency", [each.upper() for each in get_args(Urgency)]),
        ("Speaker", [each.upper() for each in get_args(Speaker)]),
        ("MemoryStatus", [each.upper() for each in Status]),
    ],
)
def test_enums_have_every_value_of_the_engine(enum: str, values: list[str]) -> None:
    found = core(shipped_domain()).type_map[enum]
    assert isinstance(found, GraphQLEnumType)
    assert set(found.values) == set(values)


def test_own_types_are_reserved(clinic: Domain) -> None:
    domains = (shipped_domain(), clinic)
    own = {
        name
        for domain in domains
        for name in core(domain).type_map
        if not name.startswith("__") and name not in domain.entities
    }
    made = {name for domain in domains for name in connection_types(domain)}
    assert own <= OWN_TYPES | made
    assert not made & OWN_TYPES


TINY = """
version: 1
name: tiny
title: {{en: tiny, zh: 小}}
root: Root
entities:
  Root:
    title: {{en: root, zh: 根}}
    caption: "{{id}}"
    properties: {properties}
  {other}:
    title: {{en: other, zh: 其他}}
    caption: "{{id}}"
    properties: {{}}
relations:
  - {{type: HAS, from: Root, to: {other}, cardinality: one_to_many, owns: true,
     forward: {forward}, backward: root}}
paths:
  all: {{walk: "Root-HAS[3]->{other}"}}
sources:
  crm: {{title: {{en: CRM, zh: 系统}}, reliability: 0.9}}
default_source: crm
kinds:
  episodic: {{half_life_days: 1}}
  semantic: {{half_life_days: 1}}
  procedural: {{half_life_days: 1}}
"""


def tiny(properties: str = "{}", other: str = "Other", forward: str = "others") -> Domain:
    return parse_domain(TINY.format(properties=properties, other=other, forward=forward))


@pytest.mark.parametrize(
    "changes",
    [
        {"other": "Recall"},
        {"other": "MemoryInput"},
        {"other": "String"},
        {"properties": "{a_1: {type: string}, a1: {type: string}}"},
        {"properties": "{confidence: {type: string}}"},
        {"properties": "{node_id: {type: string}}"},
        {"properties": "{others_connection: {type: string}}"},
        {"other": "RootConnection"},
        {"other": "Node"},
        {"properties": "{x_y: {type: string}}", "forward": "x_y"},
    ],
)
def test_clashing_graphql_names_are_refused(changes: dict[str, str]) -> None:
    # by the domain's own rules, or at the latest when the schema is made
    with pytest.raises((DomainFault, DomainFileInvalid)):
        build_schema(tiny(**changes))


@pytest.mark.parametrize("name", ["class", "record", "user_id_", "self", "none", "init"])
def test_any_property_name_will_do(name: str) -> None:
    build_schema(tiny(f"{{{name}: {{type: string}}}}"))


@pytest.mark.parametrize("file", OPERATIONS, ids=lambda file: file.name)
def test_operations_fit_the_schema(file: Path) -> None:
    document = parse(file.read_text(encoding="utf-8"))
    assert validate(core(shipped_domain()), document) == []


def test_there_are_operations() -> None:
    assert {file.stem for file in OPERATIONS} >= {
        "recall", "remember", "remember_batch", "upsert_entities", "memory", "entity",
        "supersede", "correct", "retract", "forget", "forget_by_rule", "attribute_history",
        "memory_changed", "remember_turn", "session", "end_session",
        "memories", "entities", "node", "conflicts", "entity_graph", "sources", "stats",
        "tenant_stats", "me",
    }  # fmt: skip


def test_no_module_shadows_graphql_core() -> None:
    assert list((REPOSITORY / "graphql").glob("*.py")) == []


def test_the_design_query_is_valid() -> None:
    query: Any = """
    query Recall($question: String!, $userId: ID!) {
      recall(input: {question: $question, userId: $userId}) {
        action
        advisory
        confidence {
          overall timeliness { score level reason } source { score reason }
          consistency { score reason }
        }
        memories {
          relevance confidence { overall } memory { id text kind validUntil } because { path }
        }
        entities {
          __typename id name
          ... on Device { serial repairs { status closedAt } warranties { kind endsAt } }
        }
        relations { type from { id } to { id } }
        contextBlock(maxTokens: 800)
        trace { stage milliseconds candidates }
      }
    }
    """
    assert validate(core(shipped_domain()), parse(query)) == []
