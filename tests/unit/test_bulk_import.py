"""Bulk import's own part: batches, bad lines among good ones, and what it keeps to resume.

The engine is a double here that can be told to refuse or to die; tests/e2e/test_import.py has the
real one.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from ecphoria.bulk_import import Progress, import_files, sources
from ecphoria.errors import (
    EcphoriaError,
    InvalidInput,
    MissingEntity,
    StoreUnavailable,
    UnknownType,
)
from ecphoria.model import (
    EntityInput,
    EntityReceipts,
    EveryUser,
    MemoryInput,
    Receipt,
    ReceiptStatus,
    RelationInput,
    Role,
    Scope,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ecphoria.engine import Engine

SCOPE = Scope("t", "cli", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)


class FakeEngine:
    """Keeps what it is given; refuses ids that begin with ``bad``; dies on demand."""

    def __init__(self, data_dir: Path) -> None:
        self.settings = SimpleNamespace(
            data_dir=data_dir,
            max_batch=1000,
            neo4j_uri=None,
            neo4j_database="neo4j",
            milvus_uri=None,
            collection_prefix="ecphoria",
        )
        self.entities: dict[str, object] = {}
        self.relations: list[RelationInput] = []
        self.memories: dict[str, str] = {}
        self.calls = 0
        self.die_at: int | None = None
        self.names_the_item = True

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self.die_at:
            msg = "gone"
            raise StoreUnavailable(msg)

    async def upsert_entities(
        self,
        _: Scope,
        entities: Sequence[EntityInput],
        relations: Sequence[RelationInput] = (),
    ) -> EntityReceipts:
        self._call()
        for index, item in enumerate(entities):
            if item.id.startswith("bad"):
                raise self._refusal(UnknownType, "entities", index, "type")
        for index, relation in enumerate(relations):
            if relation.to.id.startswith("bad"):
                raise self._refusal(MissingEntity, "relations", index, "to")
        receipts = [
            Receipt(
                index,
                ReceiptStatus.UNCHANGED
                if self.entities.get(item.id) == item.props
                else ReceiptStatus.CREATED,
            )
            for index, item in enumerate(entities)
        ]
        self.entities |= {item.id: item.props for item in entities}
        self.relations += relations
        return EntityReceipts(tuple(receipts), len(relations), 0)

    def _refusal(self, kind: type[EcphoriaError], *path: str | int) -> EcphoriaError:
        return kind("no", path=path if self.names_the_item else ())

    async def remember(self, _: Scope, items: Sequence[MemoryInput]) -> tuple[Receipt, ...]:
        self._call()
        receipts = []
        for index, item in enumerate(items):
            id_ = str(item.id)
            if id_.startswith("bad"):
                receipts.append(
                    Receipt(index, ReceiptStatus.REJECTED, code="X", reason="no", path=("about", 0))
                )
                continue
            known = self.memories.get(id_) == item.text
            status = ReceiptStatus.DUPLICATE if known else ReceiptStatus.CREATED
            self.memories[id_] = item.text
            receipts.append(Receipt(index, status, id=id_, indexed=id_ != "late"))
        return tuple(receipts)


@pytest.fixture
def fake(tmp_path: Path) -> FakeEngine:
    return FakeEngine(tmp_path / "data")


def entity(id_: str, **props: object) -> str:
    return json.dumps({"type": "User", "id": id_, "props": props})


def relation(to: str) -> str:
    ends = {"from": {"type": "User", "id": "u"}, "to": {"type": "Order", "id": to}}
    return json.dumps({"type": "PLACED", **ends})


def memory(id_: str, text: str = "hi", **keys: object) -> str:
    return json.dumps({"id": id_, "user_id": "u", "text": text, **keys})


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


async def run(fake: FakeEngine, *files: str, **options: Any) -> list[Progress]:
    engine = cast("Engine", fake)
    return [event async for event in import_files(engine, SCOPE, files, **options)]


def bad_of(events: Sequence[Progress]) -> list[tuple[int, str]]:
    return [(bad.line, bad.code) for event in events for bad in event.bad]


async def test_bad_lines_are_reported_and_the_good_ones_kept(
    fake: FakeEngine, tmp_path: Path
) -> None:
    file = write(
        tmp_path / "a.jsonl",
        entity("u-1"), entity("bad-1"), "{", entity("u-2"),
        relation("o-1"), relation("bad"),
        memory("m-1"), memory("bad-2"), "", memory("late"),
    )  # fmt: skip
    events = await run(fake, file)
    assert bad_of(events) == [
        (2, "UNKNOWN_ENTITY_TYPE"), (3, "MALFORMED_LINE"), (6, "MISSING_ENTITY"), (8, "X"),
    ]  # fmt: skip
    assert (list(fake.entities), list(fake.memories)) == (["u-1", "u-2"], ["m-1", "late"])
    last = events[-1]
    assert last.tally == {
        "entity": {"created": 2, "rejected": 1},
        "relation": {"created": 1, "rejected": 1},
        "memory": {"created": 2, "rejected": 1},
    }
    assert (last.lines, last.done, last.unindexed) == (10, last.total, 1)
    reasons = [bad.reason for event in events for bad in event.bad]
    assert reasons[0] == "type: no"
    assert reasons[3] == "about.0: no"


@pytest.mark.parametrize("names_the_item", [True, False])
async def test_many_bad_lines_do_not_cost_a_whole_write_each(
    fake: FakeEngine, tmp_path: Path, *, names_the_item: bool
) -> None:
    fake.names_the_item = names_the_item
    ids = [f"bad-{number}" if number % 2 else f"u-{number}" for number in range(256)]
    events = await run(fake, write(tmp_path / "a.jsonl", *map(entity, ids)))
    assert len(fake.entities) == 128
    assert [line for line, _ in bad_of(events)] == list(range(2, 257, 2))
    assert fake.calls < 2 * 256


async def test_news_about_the_same_thing_is_written_in_order(
    fake: FakeEngine, tmp_path: Path
) -> None:
    file = write(
        tmp_path / "a.jsonl",
        entity("u", level="new"), entity("u", level="gold"), entity("u", level="gold"),
        memory("m", "one"), memory("m", "two"), memory("n", supersedes="m"),
    )  # fmt: skip
    await run(fake, file)
    assert fake.entities == {"u": {"level": "gold"}}
    # entities: new | gold, gold; memories: one | two | what supersedes it
    assert fake.calls == 5


async def test_a_batch_has_a_limit_in_lines_and_in_bytes(fake: FakeEngine, tmp_path: Path) -> None:
    await run(
        fake, write(tmp_path / "a.jsonl", *(entity(f"u-{n}") for n in range(7))), batch_items=3
    )
    assert fake.calls == 3
    fake.calls = 0
    big = (memory(f"m-{n}", "x" * 600_000) for n in range(7))
    await run(fake, write(tmp_path / "b.jsonl", *big))
    assert fake.calls == 3


async def test_goes_on_after_the_last_acknowledged_batch(fake: FakeEngine, tmp_path: Path) -> None:
    lines = [memory(f"m-{n}") if n != 1 else "{" for n in range(10)]
    file = write(tmp_path / "a.jsonl", *lines)
    fake.die_at = 3
    with pytest.raises(StoreUnavailable):
        await run(fake, file, batch_items=2)
    assert len(fake.memories) == 3
    fake.die_at, fake.calls = None, 0
    events = await run(fake, file, batch_items=2)
    assert fake.calls == 3
    assert [event.resumed_at for event in events] == [5, None, None, None]
    # what the first run found belongs to the result, too
    assert bad_of(events) == [(2, "MALFORMED_LINE")]
    assert events[-1].tally["memory"] == {"created": 9}
    assert events[-1].done == events[-1].total
    assert not list((tmp_path / "data" / "imports").iterdir())


async def test_begins_anew_when_told_to_or_when_the_file_changed(
    fake: FakeEngine, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    file = write(path, *(memory(f"m-{n}") for n in range(4)))
    for change in ("restart", "content"):
        fake.calls, fake.die_at = 0, 2
        with pytest.raises(StoreUnavailable):
            await run(fake, file, batch_items=2, restart=True)
        fake.calls, fake.die_at = 0, None
        if change == "content":
            write(path, *(memory(f"m-{n}", "changed") for n in range(4)))
        events = await run(fake, file, batch_items=2, restart=change == "restart")
        assert fake.calls == 2
        assert all(event.resumed_at is None for event in events)


@pytest.mark.parametrize("other", ["tenant", "store"])
async def test_progress_counts_only_for_one_tenant_in_one_store(
    fake: FakeEngine, tmp_path: Path, other: str
) -> None:
    file = write(tmp_path / "a.jsonl", *(memory(f"m-{n}") for n in range(4)))
    fake.die_at = 2
    with pytest.raises(StoreUnavailable):
        await run(fake, file, batch_items=2)
    fake.calls, fake.die_at = 0, None
    scope = SCOPE
    if other == "tenant":
        scope = Scope("other", "cli", SCOPE.roles, SCOPE.users)
    else:
        fake.settings.neo4j_uri = "bolt://elsewhere"
    engine = cast("Engine", fake)
    events = [event async for event in import_files(engine, scope, [file], batch_items=2)]
    assert (fake.calls, events[0].resumed_at) == (2, None)


@pytest.mark.parametrize("junk", ["", "{", "[]", '{"key": 1}', "null"])
async def test_a_spoilt_progress_file_is_no_obstacle(
    fake: FakeEngine, tmp_path: Path, junk: str
) -> None:
    file = write(tmp_path / "a.jsonl", *(memory(f"m-{n}") for n in range(4)))
    fake.die_at = 2
    with pytest.raises(StoreUnavailable):
        await run(fake, file, batch_items=2)
    [progress] = (tmp_path / "data" / "imports").glob("*[0-9a-f].json")
    progress.write_text(junk)
    fake.die_at = None
    await run(fake, file, batch_items=2)
    assert len(fake.memories) == 4


async def test_an_empty_file_is_no_error(fake: FakeEngine, tmp_path: Path) -> None:
    [event] = await run(fake, write(tmp_path / "a.jsonl"))
    assert (event.lines, event.done, event.total) == (0, 0, 0)


def test_a_directory_is_read_entities_first(tmp_path: Path) -> None:
    for name in ("z.jsonl", "memories.jsonl", "a.jsonl", "relations.jsonl", "entities.jsonl", "x"):
        write(tmp_path / name)
    names = [Path(file).name for file in sources([str(tmp_path)])]
    assert names == ["entities.jsonl", "relations.jsonl", "memories.jsonl", "a.jsonl", "z.jsonl"]


def test_paths_that_cannot_be_read_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl")
    (tmp_path / "empty").mkdir()
    for arguments in (
        [str(tmp_path / "none")],
        [str(tmp_path / "empty")],
        [file, file],
        [file, str(tmp_path)],
        ["-", "-"],
    ):
        with pytest.raises(InvalidInput):
            sources(arguments)
