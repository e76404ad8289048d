"""Collections of the vector index on Milvus: names, aliases, locks and generations.

A kind's rows live in the collection `{prefix}_{kind}_{fingerprint}_{number}`, the fingerprint
telling the embedding model and what a row holds, and are reached by the alias `{prefix}_{kind}`.
The vector's field has the fingerprint in its name, too: when the alias leads to another model's
collection, whoever still works with the old one is refused by the server, be the dimension the
same or not.

Rows are also found by their terms, where the store has BM25 (Milvus 2.5 and later, Milvus Lite). A
collection without it, made before or by an older server, is searched by its vectors alone.

What else the stores do not have in common is left out: filter templates, nullable fields, scalar
indexes, and partition keys, with which Milvus before 2.3.10 upserts rows into the wrong partition
(milvus-io/milvus#30607), where a search by tenant misses them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import structlog
from pymilvus import AsyncMilvusClient, DataType, Function, FunctionType

from ecphoria.errors import EmbeddingMismatch, StoreError, StoreUnavailable
from ecphoria.model import MAX_ID_CHARS, EmbeddingSpec
from ecphoria.stores.milvus_connection import MilvusConnection
from ecphoria.stores.milvus_errors import NOT_FOUND, all_done, error_code, settled
from ecphoria.stores.ports import Generation
from ecphoria_schema.domain import KINDS, Kind

log = structlog.get_logger(__name__)

HNSW = {"M": 8, "efConstruction": 256}

# Servers count the bytes of a text, Milvus Lite its characters: room for 4 bytes a character.
_ID_BYTES = 4 * MAX_ID_CHARS
_WORD_BYTES = 64
TEXT_FIELDS = {
    "key": 128 + _ID_BYTES,
    "tenant": 128,
    "user_id": _ID_BYTES,
    "topic": _ID_BYTES,
    "source_id": _ID_BYTES,
    "privacy": _WORD_BYTES,
    "status": _WORD_BYTES,
    "tier": _WORD_BYTES,
    "lang": _WORD_BYTES,
    "hash": 32,
}
TERMS_FIELD = "terms"
# As much as servers allow: the terms of some 6,000 Chinese or 10,000 English words.
TERMS_BYTES = 65_535
LEXICAL_FIELD = "lexical"
# Terms come cut: all that is left to the stores is to split them at the blanks, and Milvus Lite has
# no tokenizer but one that splits at everything that is no letter or digit.
_TOKENIZER, _TOKENIZER_LITE = "whitespace", "standard"
# Memories are short, and long ones are no less to the point (b); measured on conversations.
_BM25 = {"bm25_k1": 1.2, "bm25_b": 0.5}
TIME_FIELDS = ("valid_from", "valid_until", "expires_at")
# Of what a row holds; other fields mean another number.
_ROWS = 2

# Properties of a collection: both stores keep these, but 2.3 cannot remove one again.
_LOCK = "ecphoria.embedding"
_STATE = "ecphoria.generation"
_BUILT = "ecphoria.built"
# Which server could not make a lexical index, when the collection was made without.
_PLAIN = "ecphoria.plain"

# Renamed to this before it is dropped.
_OLD = "_old"
_GROWN = 1.3
_INDEX = "dense"


def vector_field(spec: EmbeddingSpec) -> str:
    """Return the name of the field that holds a model's vectors."""
    return f"dense_{fingerprint(spec)}"


def fingerprint(spec: EmbeddingSpec) -> str:
    """Return what tells a model's collections from another's: 12 hex digits."""
    return hashlib.sha256(_lock(spec).encode()).hexdigest()[:12]


def has_terms(description: Mapping[str, Any]) -> bool:
    """Tell from its description whether a collection's rows are found by their terms.

    Milvus 2.3 takes both without a word, but keeps the field alone, which stays empty.
    """
    return any(
        LEXICAL_FIELD in function["output_field_names"]
        for function in description.get("functions", ())
    )


def _lock(spec: EmbeddingSpec) -> str:
    return json.dumps(
        {
            "model": spec.model,
            "version": spec.version,
            "dimension": spec.dimension,
            "rows": _ROWS,
        },
        ensure_ascii=False,
    )


def _told(spec: EmbeddingSpec) -> str:
    return f"model {spec.model!r}, version {spec.version!r}, {spec.dimension} dimensions"


def _same(one: EmbeddingSpec, other: EmbeddingSpec) -> bool:
    # what its anchors of relevance are does not change the vectors
    return _lock(one) == _lock(other)


class Collections:
    """Makes, finds, switches and drops collections."""

    def __init__(self, connection: MilvusConnection, prefix: str) -> None:
        """Use a connection.

        Args:
            connection: To which Milvus.
            prefix: Beginning of the names of all collections and aliases.
        """
        self._connection = connection
        self._prefix = prefix

    def alias(self, kind: Kind) -> str:
        """Return the name by which a kind's rows are reached."""
        return f"{self._prefix}_{kind}"

    def name(self, kind: Kind, generation: str) -> str:
        """Return the name of a generation's collection."""
        return f"{self.alias(kind)}_{generation}"

    async def load(self, name: str) -> None:
        """Load a collection, so that it can be searched."""
        await self._connection.call(f"loading {name}", "load_collection", name)

    # --- for one model ---------------------------------------------------------------------

    async def prepare(self, kind: Kind, spec: EmbeddingSpec) -> None:
        """Make what is missing of a kind and load it.

        Raises:
            EmbeddingMismatch: When its collection was made for another model.
        """
        alias = self.alias(kind)
        target = await self.target(kind)
        if target is None:
            number = await self._newest(kind, spec)
            made = await self._make(kind, f"{fingerprint(spec)}_{number}", spec, filling=False)
            await self._check_lock(made, spec)
            await self._point(alias, made, new=True)
            # another process, set to another model, may have been quicker
            target = await self.target(kind) or made
        await self._check_lock(target, spec)
        await self._create_index(target, spec)
        await self.load(target)

    async def _newest(self, kind: Kind, spec: EmbeddingSpec) -> int:
        # an alias may be gone where the rows are not
        complete = [
            generation.number
            for generation in await self.generations()
            if kind in generation.kinds
            and generation.spec is not None
            and _same(generation.spec, spec)
            and not generation.filling
        ]
        return max(complete, default=1)

    async def drop(self, kind: Kind) -> None:
        """Drop a kind's alias and all of its collections."""
        alias = self.alias(kind)

        async def drop_alias() -> None:
            await self._connection.call(f"dropping {alias}", "drop_alias", alias)

        async def gone() -> bool:
            return await self.target(kind) is None

        # servers after 2.3 refuse to drop a collection that has an alias
        await settled(drop_alias, gone)
        for generation in await self._names(kind):
            await self._drop(self.name(kind, generation))

    async def target(self, kind: Kind) -> str | None:
        """Return the collection that a kind's alias leads to."""
        alias = self.alias(kind)
        try:
            found = await self._connection.call(f"reading alias {alias}", "describe_alias", alias)
        except StoreError as error:
            if error_code(error) in NOT_FOUND:
                return None
            raise
        return str(found["collection_name"])

    async def locked_spec(self, name: str) -> EmbeddingSpec:
        """Return the model that a collection was made for.

        Raises:
            EmbeddingMismatch: When it does not say so.
        """
        lock = await self._property(name, _LOCK)
        spec = _spec(lock)
        if spec is None:
            msg = (
                f"collection {name} does not say which embedding model it was made for; "
                "build another with `ecphoria reembed`"
            )
            raise EmbeddingMismatch(msg)
        if lock.get("rows") != _ROWS:
            msg = (
                f"collection {name} was made by another version of ecphoria, whose rows have "
                "other fields; build it anew with `ecphoria reembed`"
            )
            raise EmbeddingMismatch(msg)
        return spec

    async def taken_over(self, kind: Kind, spec: EmbeddingSpec) -> EmbeddingMismatch | None:
        """Return an error when a kind belongs to another model by now."""
        target = await self.target(kind)
        found = None if target is None else _spec(await self._property(target, _LOCK))
        if found is None or _same(found, spec):
            return None
        msg = (
            f"the vector index belongs to {_told(found)} now, but this process was started for "
            f"{_told(spec)}; restart it with the new ECPHORIA_EMBEDDING_*, or go back with "
            "`ecphoria reembed --rollback`"
        )
        return EmbeddingMismatch(msg)

    async def has_terms(self, name: str) -> bool:
        """Tell whether the rows of a collection are found by their terms."""
        found = await self._described(name)
        return found is not None and has_terms(found)

    async def _is_outdated(self, name: str) -> bool:
        found = await self._described(name)
        if found is None or has_terms(found):
            return False
        plain = found["properties"].get(_PLAIN)
        return bool(plain != await self._connection.version())

    async def _check_lock(self, name: str, spec: EmbeddingSpec) -> None:
        found = await self.locked_spec(name)
        if not _same(found, spec):
            msg = (
                f"collection {name} was made for {_told(found)}, but the settings name "
                f"{_told(spec)}; set ECPHORIA_EMBEDDING_* back, or change the index over with "
                "`ecphoria reembed`"
            )
            raise EmbeddingMismatch(msg)

    # --- generations -------------------------------------------------------------------------

    async def generations(self) -> tuple[Generation, ...]:
        """Return all sets of collections, the oldest first."""
        kinds: dict[str, list[Kind]] = {}
        serving: dict[str, set[Kind]] = {}
        for kind in KINDS:
            target = await self.target(kind)
            for generation in await self._names(kind):
                kinds.setdefault(generation, []).append(kind)
                if self.name(kind, generation) == target:
                    serving.setdefault(generation, set()).add(kind)
        found = []
        for generation, its in kinds.items():
            states = [await self._state(kind, generation) for kind in its]
            specs = [await self._property(self.name(kind, generation), _LOCK) for kind in its]
            usable = not generation.endswith(_OLD) and all(
                lock.get("rows") == _ROWS for lock in specs
            )
            number = generation.removesuffix(_OLD).partition("_")[2]
            outdated = [await self._is_outdated(self.name(kind, generation)) for kind in its]
            found.append(
                Generation(
                    name=generation,
                    number=int(number or 0),
                    spec=_spec(specs[0]) if usable else None,
                    kinds=frozenset(its),
                    serving=frozenset(serving.get(generation, ())),
                    filling=any(state.get("filling") for state in states),
                    replaces=next((s["replaces"] for s in states if s.get("replaces")), ""),
                    outdated=any(outdated),
                )
            )
        return tuple(sorted(found, key=lambda item: (item.number, item.name)))

    async def make_generation(self, spec: EmbeddingSpec, number: int) -> Generation:
        """Make a set of empty collections, or complete a half-made one."""
        name = f"{fingerprint(spec)}_{number}"

        async def make(kind: Kind) -> None:
            await self.load(await self._make(kind, name, spec, filling=True))

        # servers take seconds to load one
        await all_done(make(kind) for kind in KINDS)
        return next(item for item in await self.generations() if item.name == name)

    async def serve(self, generation: Generation) -> None:
        """Point the aliases of all kinds at a generation."""
        for kind in KINDS:
            own = self.name(kind, generation.name)
            target = await self.target(kind)
            if target == own:
                continue
            before = "" if target is None else target.removeprefix(f"{self.alias(kind)}_")
            state = await self._state(kind, generation.name)
            # first: a crash between the two must not lose the way back, nor that it came
            state |= {"filling": True, "replaces": before}
            await self._set_state(kind, generation.name, state)
            await self._point(self.alias(kind), own, new=target is None)

    async def finish(self, generation: Generation) -> None:
        """Mark a generation as complete, and take what it replaced out of memory."""
        for kind in KINDS:
            state = await self._state(kind, generation.name)
            before = state.get("replaces", "")
            if before in await self._names(kind):
                name = self.name(kind, before)
                await self._connection.call(f"releasing {name}", "release_collection", name)
            await self._set_state(kind, generation.name, {**state, "filling": False})

    async def drop_generation(self, generation: Generation) -> None:
        """Drop a generation's collections, which are renamed before.

        Raises:
            StoreError: When it serves.
        """
        for kind in KINDS:
            name = self.name(kind, generation.name)
            if await self.target(kind) == name:
                msg = f"collection {name} serves: it cannot be dropped"
                raise StoreError(msg)
        for kind in sorted(generation.kinds):
            name = self.name(kind, generation.name)
            if await self._described(name) is None:
                continue
            if not name.endswith(_OLD):
                # nobody who still knows the name gets at it while it is being dropped
                await self._rename(name, f"{name}{_OLD}")
                name += _OLD
            await self._drop(name)

    async def _rename(self, name: str, new: str) -> None:
        async def rename() -> None:
            await self._connection.call(f"renaming {name}", "rename_collection", name, new)

        async def done() -> bool:
            return await self._described(new) is not None and await self._described(name) is None

        await settled(rename, done)

    async def _drop(self, name: str) -> None:
        await self._connection.call(f"dropping {name}", "drop_collection", name)

    async def idle(self) -> list[str]:
        """Return the collections to which no alias leads."""
        found = await self._listed()
        idle: list[str] = []
        for kind in KINDS:
            names = [self.name(kind, generation) for generation in self._own(kind, found)]
            # mostly there is one, and it serves
            target = await self.target(kind) if len(names) > 1 else names[0] if names else None
            idle += [name for name in names if name != target]
        return idle

    async def _names(self, kind: Kind) -> list[str]:
        return self._own(kind, await self._listed())

    async def _listed(self) -> list[str]:
        found: list[str] = await self._connection.call("listing collections", "list_collections")
        return found

    def _own(self, kind: Kind, names: Iterable[str]) -> list[str]:
        own = re.compile(rf"{re.escape(self.alias(kind))}_([0-9a-f]{{12}}(?:_\d+)?(?:{_OLD})?)")
        return sorted(match[1] for name in names if (match := own.fullmatch(name)))

    # --- growth ------------------------------------------------------------------------------

    async def refresh(self, kind: Kind, rows: int, least: int) -> str | None:
        """Take the rebuilding of a kind's search index a step further.

        What is written is searched row by row until its segment is sealed. A flush seals it, the
        store then indexes it, and merges small segments, with an index over the whole, when it
        is told to compact; segments without an index are left out of that.

        Args:
            kind: Whose.
            rows: How many it has now.
            least: Fewer are not worth it.

        Returns:
            The collection, when something was done.
        """
        target = await self.target(kind)
        if target is None:
            return None
        built = await self._property(target, _BUILT)
        if built.get("step") == "sealed":
            index = await self._connection.call(
                f"reading the index of {target}", "describe_index", target, _INDEX
            )
            if index.get("pending_index_rows", 0):
                return None
            await self._connection.call(f"compacting {target}", "compact", target)
            await self._set_property(target, _BUILT, {**built, "step": "built"})
            return target
        before = built.get("rows", 0)
        if rows < least or before / _GROWN < rows < before * _GROWN:
            return None
        await self._connection.call(f"flushing {target}", "flush", target)
        await self._set_property(target, _BUILT, {"rows": rows, "step": "sealed"})
        return target

    # --- one collection ----------------------------------------------------------------------

    async def _described(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await self._connection.call(
                f"reading collection {name}", "describe_collection", name
            )
        except StoreError as error:
            if error_code(error) in NOT_FOUND:
                return None
            raise
        return found

    async def _property(self, name: str, key: str) -> dict[str, Any]:
        found = await self._described(name)
        try:
            value = json.loads("" if found is None else found["properties"].get(key, ""))
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    async def _set_property(self, name: str, key: str, value: Mapping[str, object]) -> None:
        await self._connection.call(
            f"marking {name}",
            "alter_collection_properties",
            name,
            properties={key: json.dumps(value)},
        )

    async def _state(self, kind: Kind, generation: str) -> dict[str, Any]:
        return await self._property(self.name(kind, generation), _STATE)

    async def _set_state(self, kind: Kind, generation: str, state: Mapping[str, object]) -> None:
        await self._set_property(self.name(kind, generation), _STATE, state)

    async def _make(
        self, kind: Kind, generation: str, spec: EmbeddingSpec, *, filling: bool
    ) -> str:
        name = self.name(kind, generation)
        properties = {
            _LOCK: _lock(spec),
            _STATE: json.dumps({"filling": filling, "replaces": ""}),
        }

        async def make() -> None:
            if await self._connection.has_bm25() and await self._make_lexical(
                name, spec, properties
            ):
                return
            plain = {_PLAIN: await self._connection.version()}
            await self._create(name, spec, properties | plain, lexical=False)

        async def there() -> bool:
            return await self._described(name) is not None

        if not await there():
            await settled(make, there)
        await self._create_index(name, spec)
        return name

    async def _make_lexical(
        self, name: str, spec: EmbeddingSpec, properties: Mapping[str, str]
    ) -> bool:
        """Make a collection with a lexical index; False when the store cannot, and has none."""
        try:
            await self._create(name, spec, properties, lexical=True)
        except StoreUnavailable:
            raise
        except StoreError as error:
            # another process may have been quicker
            found = await self._described(name)
            if found is None:
                log.warning("no lexical index", collection=name, reason=error.message)
            return found is not None
        if await self.has_terms(name):
            return True
        # taken, but not understood: Milvus 2.3 ends when it is to load a field of that type
        await self._drop(name)
        return False

    async def _create(
        self, name: str, spec: EmbeddingSpec, properties: Mapping[str, str], *, lexical: bool
    ) -> None:
        await self._connection.call(
            f"creating collection {name}",
            "create_collection",
            name,
            schema=_schema(spec, lexical=lexical, lite=await self._connection.is_lite()),
            # Milvus Lite keeps properties, but neither a schema's nor a field's description
            properties=dict(properties),
            # counts only where none is named: pymilvus ignores the level of paged reads
            consistency_level="Strong",
        )

    async def _create_index(self, name: str, spec: EmbeddingSpec) -> None:
        # Apart from the collection: an index that fails leaves the collection behind without one.
        lite = await self._connection.is_lite()
        wanted = {vector_field(spec): _dense_index(spec, lite=lite)}
        if await self.has_terms(name):
            wanted[LEXICAL_FIELD] = _lexical_index()

        async def there(field: str) -> bool:
            # by the field: Milvus Lite names an index after it
            return bool(
                await self._connection.call(
                    f"reading indexes of {name}", "list_indexes", name, field_name=field
                )
            )

        async def make(field: str) -> None:
            # Milvus Lite makes the index, but lacks a call by which pymilvus waits for it: this
            # fails there every time, and `there` finds the index.
            await self._connection.call(f"indexing {name}", "create_index", name, wanted[field])

        for field in wanted:
            if not await there(field):
                await settled(partial(make, field), partial(there, field))

    async def _point(self, alias: str, name: str, *, new: bool) -> None:
        async def point() -> None:
            method = "create_alias" if new else "alter_alias"
            await self._connection.call(f"pointing {alias} at {name}", method, name, alias)

        async def there() -> bool:
            found = await self._connection.call(f"reading alias {alias}", "describe_alias", alias)
            return new or found["collection_name"] == name

        await settled(point, there)


def _spec(lock: Mapping[str, Any]) -> EmbeddingSpec | None:
    try:
        return EmbeddingSpec(lock["model"], lock["version"], lock["dimension"])
    except KeyError:
        return None


def _dense_index(spec: EmbeddingSpec, *, lite: bool) -> Any:  # noqa: ANN401 - pymilvus has no types
    # HNSW of Milvus Lite applies filters after the search: of one user's 100 rows among 10,000
    # it found .59 of the ten nearest (ef 64) or .96 (ef 512), and took rows at half the pace.
    # FLAT finds all of them in about the same time.
    params = AsyncMilvusClient.prepare_index_params()
    params.add_index(
        vector_field(spec),
        index_name=_INDEX,
        index_type="FLAT" if lite else "HNSW",
        metric_type="COSINE",
        params={} if lite else HNSW,
    )
    return params


def _lexical_index() -> Any:  # noqa: ANN401 - pymilvus has no types
    params = AsyncMilvusClient.prepare_index_params()
    params.add_index(
        LEXICAL_FIELD,
        index_name=LEXICAL_FIELD,
        index_type="SPARSE_INVERTED_INDEX",
        metric_type="BM25",
        params=_BM25,
    )
    return params


def _schema(spec: EmbeddingSpec, *, lexical: bool, lite: bool) -> Any:  # noqa: ANN401 - pymilvus has no types
    schema = AsyncMilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=32)
    for name, length in TEXT_FIELDS.items():
        schema.add_field(name, DataType.VARCHAR, max_length=length)
    schema.add_field("importance", DataType.FLOAT)
    for name in TIME_FIELDS:
        schema.add_field(name, DataType.INT64)
    schema.add_field(vector_field(spec), DataType.FLOAT_VECTOR, dim=spec.dimension)
    if lexical:
        schema.add_field(
            TERMS_FIELD,
            DataType.VARCHAR,
            max_length=TERMS_BYTES,
            enable_analyzer=True,
            analyzer_params={"tokenizer": _TOKENIZER_LITE if lite else _TOKENIZER},
        )
        schema.add_field(LEXICAL_FIELD, DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(
            Function(
                name="bm25",
                function_type=FunctionType.BM25,
                input_field_names=[TERMS_FIELD],
                output_field_names=[LEXICAL_FIELD],
            )
        )
    return schema
