"""Memories and receipts, for scripts and for people: the shapes of the GraphQL API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ecphoria.cli.common import id_column, moment
from ecphoria.model import ReceiptStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from ecphoria.lifecycle.history import AttributeHistory
    from ecphoria.model import EntityRef, Link, Memory, Page, Receipt
    from ecphoria.stores.ports import Lineage

View = dict[str, Any]

STYLES: Final = {
    "ACTIVE": "bold green",
    "SUPERSEDED": "bold yellow",
    "DISABLED": "bold red",
    "CREATED": "bold green",
    "DUPLICATE": "bold",
    "HISTORICAL": "bold yellow",
    "CONFLICT": "bold yellow",
    "RETRACTED": "bold green",
    "REJECTED": "bold red",
}

_TEXT_WIDTH = 60
_RELATIONS: Final = (
    ("supersedes", "SUPERSEDES", True, "took the place of"),
    ("supersededBy", "SUPERSEDES", False, "replaced by"),
    ("conflictsWith", "CONFLICTS_WITH", None, "contradicts"),
    ("possibleUpdateOf", "POSSIBLE_UPDATE_OF", True, "may update"),
    ("possiblyUpdatedBy", "POSSIBLE_UPDATE_OF", False, "may be updated by"),
)


def memory_of(memory: Memory) -> View:
    """Return a memory in the shape in which the GraphQL API sends it."""
    return {
        "id": memory.id,
        "userId": memory.user_id,
        "kind": memory.kind.upper(),
        "text": memory.text,
        "topic": memory.topic,
        "factType": memory.fact_type,
        "intent": memory.intent,
        "urgency": memory.urgency.upper(),
        "evidence": memory.evidence,
        "details": [{"name": name, "value": value} for name, value in memory.details.items()],
        "attribute": memory.attribute,
        "value": memory.value,
        "subject": memory.subject,
        "source": memory.source_id,
        "importance": memory.importance,
        "status": memory.status.upper(),
        "tier": memory.tier.upper(),
        "occurredAt": moment(memory.occurred_at),
        "validFrom": moment(memory.valid_from),
        "validUntil": moment(memory.valid_until),
        "expiresAt": moment(memory.expires_at),
        "recordedAt": moment(memory.recorded_at),
        "invalidatedAt": moment(memory.invalidated_at),
        "accessCount": memory.access_count,
        "lastAccessedAt": moment(memory.last_accessed_at),
        "reinforced": memory.reinforced,
    }


def related_of(links: Iterable[Link], lineage: Sequence[Lineage]) -> View:
    """Return what a memory is about and how it stands to others, as the API sends it."""
    return {
        "links": [_link(link) for link in links],
        **{
            name: [
                {
                    "memoryId": each.other,
                    "how": each.how and each.how.upper(),
                    "reason": each.reason,
                    "by": each.by,
                    "at": moment(each.at),
                }
                for each in lineage
                if each.type == type_ and outgoing in {None, each.outgoing}
            ]
            for name, type_, outgoing, _ in _RELATIONS
        },
    }


def page_of(page: Page[Memory], count: int) -> View:
    """Return a page of memories in the shape in which the GraphQL API sends it.

    Args:
        page: The page.
        count: How many the whole list has.
    """
    return {
        "totalCount": count,
        "edges": [
            {"cursor": cursor, "node": memory_of(memory)}
            for memory, cursor in zip(page.items, page.cursors, strict=True)
        ],
        "pageInfo": {
            "hasNextPage": page.has_next,
            "endCursor": page.cursors[-1] if page.cursors else None,
        },
    }


def history_of(history: AttributeHistory) -> View:
    """Return the values of an attribute in the shape in which the GraphQL API sends them."""
    return {
        "current": [memory_of(memory) for memory in history.current],
        "conflicting": [memory_of(memory) for memory in history.conflicting],
        "entries": [memory_of(memory) for memory in history.entries],
    }


def receipt_of(receipt: Receipt) -> View:
    """Return a receipt in the shape in which the GraphQL API sends it."""
    return {
        "status": receipt.status.value,
        "id": receipt.id,
        "links": [_link(link) for link in receipt.links],
        "indexed": receipt.indexed,
        "code": receipt.code,
        "reason": receipt.reason,
        "path": [str(part) for part in receipt.path],
        "supersedes": list(receipt.supersedes),
        "supersededBy": receipt.superseded_by,
        "conflictsWith": list(receipt.conflicts_with),
        "possibleUpdateOf": list(receipt.possible_update_of),
        "waitingFor": list(receipt.waiting_for),
        "notes": list(receipt.notes),
        "facts": [receipt_of(fact) for fact in receipt.facts],
    }


def _link(link: Link) -> View:
    return {
        "entity": {"type": link.entity.type, "id": link.entity.id},
        "certainty": link.certainty,
        "how": link.how.upper(),
    }


def shortened(text: str, width: int = _TEXT_WIDTH) -> str:
    """Return the beginning of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def show_memory(console: Console, memory: View) -> None:
    """Print a memory for people.

    Args:
        console: Where to.
        memory: In the shape of `memory_of`, with that of `related_of`.
    """
    console.print(f"[{STYLES.get(memory['status'], 'bold')}]{memory['status']}[/]", memory["id"])
    console.print(Text(memory["text"]))
    table = Table.grid(padding=(0, 2))
    for name, value in _lines(memory):
        table.add_row(Text(f"  {name}", style="dim"), Text(value))
    console.print(table)


def show_page(console: Console, page: View) -> None:
    """Print a page of memories for people.

    Args:
        console: Where to.
        page: In the shape of `page_of`.
    """
    shown = [edge["node"] for edge in page["edges"]]
    if not shown:
        console.print("[dim]no such memories[/]")
        return
    table = Table("occurred", "kind", "status", "source", "text", id_column(), box=None)
    for memory in shown:
        table.add_row(
            memory["occurredAt"],
            memory["kind"].lower(),
            Text(memory["status"].lower(), style=STYLES.get(memory["status"], "bold")),
            Text(memory["source"]),
            Text(shortened(memory["text"])),
            Text(memory["id"]),
        )
    console.print(table)
    count = page["totalCount"]
    console.print(f"[dim]{len(shown)} of {count}[/]")
    if page["pageInfo"]["hasNextPage"]:
        console.print(
            f"[dim]The next page: --after[/] {page['pageInfo']['endCursor']}", soft_wrap=True
        )


def _lines(memory: View) -> Iterable[tuple[str, str]]:
    yield "user", memory["userId"] or "shared by all"
    kinds = (memory["kind"], memory["topic"], memory["factType"], memory["intent"])
    yield "kind", " · ".join(each for each in kinds if each)
    if memory["attribute"]:
        subject = f" ({memory['subject']})" if memory["subject"] else ""
        yield "attribute", f"{memory['attribute']}{subject} = {memory['value']}"
    if memory["details"]:
        yield "details", ", ".join(f"{each['name']} {each['value']}" for each in memory["details"])
    if memory["evidence"] and memory["evidence"] != memory["text"]:
        yield "evidence", memory["evidence"]
    yield "source", f"{memory['source']}, importance {memory['importance']:.2f}"
    yield "occurred", memory["occurredAt"]
    yield "valid", f"from {memory['validFrom']} until {memory['validUntil'] or 'further notice'}"
    until = f", no longer since {memory['invalidatedAt']}" if memory["invalidatedAt"] else ""
    yield "known", f"since {memory['recordedAt']}{until}"
    yield "expires", memory["expiresAt"] or "never"
    last = f", last {memory['lastAccessedAt']}" if memory["lastAccessedAt"] else ""
    again = f"; said again {memory['reinforced']} times" if memory["reinforced"] else ""
    yield "used", f"{memory['accessCount']} times{last}{again}; {memory['tier'].lower()}"
    for link in memory["links"]:
        entity = link["entity"]
        how = f"{link['how'].lower()}, {link['certainty']:.2f}"
        yield "about", f"{entity['type']} {entity['id']} ({how})"
    for name, _, _, title in _RELATIONS:
        for each in memory[name]:
            parts = (each["how"] and each["how"].lower(), each["reason"], each["by"], each["at"])
            yield title, f"{each['memoryId']} ({', '.join(part for part in parts if part)})"


def show_history(console: Console, entity: EntityRef, attribute: str, history: View) -> None:
    """Print the values of an attribute for people, the oldest first.

    Args:
        console: Where to.
        entity: Whose attribute.
        attribute: Its name.
        history: In the shape of `history_of`.
    """
    what = f"{escape(entity.type)} [cyan]{escape(entity.id)}[/] {escape(attribute)}"
    values = dict.fromkeys(memory["value"] for memory in history["current"])
    said = ", ".join(f"[bold green]{escape(value)}[/]" for value in values)
    console.print(f"{what}: {said or '[dim]nothing is known for then[/]'}")
    for memory in history["conflicting"]:
        console.print(
            f"  [yellow]⚠ {escape(memory['source'])} says {escape(memory['value'])}[/]: "
            f"{escape(memory['id'])}"
        )
    if not history["entries"]:
        return
    table = Table(
        "", "value", "source", "from", "until", "known since", id_column(), box=None, pad_edge=False
    )
    current = {memory["id"] for memory in history["current"]}
    conflicting = {memory["id"] for memory in history["conflicting"]}
    for memory in history["entries"]:
        mark = "●" if memory["id"] in current else "⚠" if memory["id"] in conflicting else ""
        table.add_row(
            mark,
            Text(memory["value"] or ""),
            Text(memory["source"]),
            memory["validFrom"],
            memory["validUntil"] or "",
            memory["recordedAt"],
            Text(memory["id"]),
        )
    console.print(table)


def show_receipt(console: Console, receipt: Receipt) -> None:
    """Print a receipt for people, with what is left to do."""
    style = STYLES.get(receipt.status, "bold")
    console.print(f"[{style}]{receipt.status}[/] {escape(receipt.id or '')}")
    for text in _told(receipt):
        console.print(f"  {text}", soft_wrap=True)
    for fact in receipt.facts:
        console.print(f"  [dim]fact {fact.index + 1}:[/] {fact.status} {escape(fact.id or '')}")


def _told(receipt: Receipt) -> Iterable[str]:
    if receipt.status is ReceiptStatus.DUPLICATE:
        yield "It was there already."
    if receipt.supersedes:
        yield f"It took the place of {_names(receipt.supersedes)}."
    if receipt.superseded_by:
        yield f"It is history: {_names([receipt.superseded_by])} holds now."
    if receipt.conflicts_with:
        yield f"A more reliable source says otherwise: {_names(receipt.conflicts_with)}."
    if receipt.possible_update_of:
        yield f"It may be an update of {_names(receipt.possible_update_of)}."
    if receipt.waiting_for:
        yield f"It is linked when {_names(receipt.waiting_for)} is known."
    if not receipt.indexed and receipt.status is not ReceiptStatus.REJECTED:
        yield "Vector search follows with the next background work, or `ecphoria reconcile`."
    yield from (escape(note) for note in receipt.notes)


def _names(ids: Iterable[str]) -> str:
    return ", ".join(f"[cyan]{escape(each)}[/]" for each in ids)
