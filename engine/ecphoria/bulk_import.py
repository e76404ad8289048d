"""Bulk import: files of the exchange format into an engine, in batches, able to resume.

A batch is acknowledged by the engine before the progress file moves past it, and every write is
idempotent. So an import that was killed anywhere goes on from the last acknowledged batch, and
whatever it does twice changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

from ecphoria.errors import (
    BatchTooLarge,
    DataDirectoryUnusable,
    DuplicateId,
    EcphoriaError,
    InvalidInput,
    NotFound,
)
from ecphoria.exchange_file import (
    SHAPES,
    Item,
    Line,
    Shape,
    read_lines,
    shape_of,
)
from ecphoria.model import EntityInput, MemoryInput, ReceiptStatus, RelationInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from ecphoria.engine import Engine
    from ecphoria.model import Scope
    from ecphoria.settings import Settings

STDIN: Final = "-"
BATCH_ITEMS: Final = 500
# The embedded graph store takes messages of 16 MiB; a batch is written as one or two of them.
BATCH_BYTES: Final = 2 * 1024 * 1024
# After so many bad items in one batch it is cut in half, so that a file of nothing but bad lines
# does not cost a whole batch's write for each of them.
BAD_BEFORE_SPLIT: Final = 4

_ORDER: Final = ("entities.jsonl", "relations.jsonl", "memories.jsonl")

Tally: TypeAlias = dict[Shape, dict[str, int]]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that was left out, and why."""

    file: str
    line: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is; one comes after every batch, the last one tells the result.

    Attributes:
        file: The file that is being read.
        done: Bytes of all files read so far.
        total: Bytes of all files; None when standard input is among them.
        lines: Lines of all files read so far, blank ones included.
        tally: Shape -> outcome in lower case -> count, earlier runs of resumed files included.
        unindexed: Memories that are kept but not in the vector index yet.
        bad: Bad lines found since the event before.
        resumed_at: Line at which an interrupted file was taken up again, in its first event.
    """

    file: str
    done: int
    total: int | None
    lines: int
    tally: Tally
    unindexed: int
    bad: tuple[BadLine, ...] = ()
    resumed_at: int | None = None


def sources(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the files that directories, files and ``-`` stand for, in reading order.

    In a directory entities come before relations and those before memories, then every other
    ``*.jsonl`` by name.

    Raises:
        InvalidInput: When a path is missing, unreadable, a directory without files, or given
            twice.
    """
    found: list[str] = []
    for argument in arguments:
        if argument == STDIN:
            found.append(STDIN)
            continue
        path = Path(argument)
        if path.is_dir():
            files = _files_in(path)
        else:
            _check_readable(path)
            files = [path]
        found += [str(file) for file in files]
    twice = [name for name, times in Counter(found).items() if times > 1]
    if twice:
        msg = f"{twice[0]} is given twice"
        raise InvalidInput(msg)
    return tuple(found)


def _files_in(directory: Path) -> list[Path]:
    try:
        names = {path.name for path in directory.iterdir() if path.suffix == ".jsonl"}
    except OSError as error:
        raise _unreadable(directory, error) from error
    known = [name for name in _ORDER if name in names]
    if not names:
        msg = f"the directory {directory} holds no *.jsonl file"
        raise InvalidInput(msg)
    files = [directory / name for name in (*known, *sorted(names.difference(known)))]
    for file in files:
        _check_readable(file)
    return files


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"cannot read {path}: {error.strerror or error}")


async def import_files(
    engine: Engine,
    scope: Scope,
    files: Sequence[str],
    *,
    restart: bool = False,
    batch_items: int = BATCH_ITEMS,
) -> AsyncIterator[Progress]:
    """Import files in order; a bad line is reported and left out, the good ones are kept.

    Args:
        engine: Where to write.
        scope: For whom; its roles must allow both kinds of writes.
        files: Paths, or ``-`` for standard input, as `sources` returns them.
        restart: Begin every file anew, whatever an interrupted import left.
        batch_items: Most lines a write.

    Yields:
        How far it is, after every batch.

    Raises:
        DataDirectoryUnusable: When the progress cannot be kept.
        InvalidInput: When a file cannot be read.
        StoreError: When a store fails. Importing the same files again goes on from there.
    """
    batch_items = min(batch_items, engine.settings.max_batch)
    total: int | None = 0
    for file in files:
        total = None if file == STDIN or total is None else total + _size(file)
    done, lines = 0, 0
    tally: Tally = {shape: {} for shape in SHAPES}
    unindexed = 0
    for file in files:
        place = _Place.standing(engine.settings, scope, file, restart=restart)
        state, earlier_bad = place.read()
        resumed_at = state.line + 1 if state.line else None
        done_before, lines_before = done, lines
        with _opened(file, state.offset) as stream:
            _add(tally, state.tally)
            unindexed += state.unindexed
            bad = list(earlier_bad)
            for batch in _batches(stream, state, batch_items):
                written = await _write(engine, scope, file, batch)
                _add(tally, written.tally)
                unindexed += written.unindexed
                bad += written.bad
                state.move(batch[-1], written)
                place.write(state, written.bad)
                done, lines = done_before + state.offset, lines_before + state.line
                yield Progress(
                    file, done, total, lines, _copy(tally), unindexed, tuple(bad), resumed_at
                )
                bad, resumed_at = [], None
        place.clear()
        done, lines = done_before + state.offset, lines_before + state.line
        yield Progress(file, done, total, lines, _copy(tally), unindexed, tuple(bad), resumed_at)


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError as error:
        raise _unreadable(Path(file), error) from error


@contextlib.contextmanager
def _opened(file: str, offset: int) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115 - closed below; only opening may fail here
    except OSError as error:
        raise _unreadable(Path(file), error) from error
    with stream:
        stream.seek(offset)
        yield stream


def _add(tally: Tally, more: Tally) -> None:
    for shape, outcomes in more.items():
        for outcome, count in outcomes.items():
            tally[shape][outcome] = tally[shape].get(outcome, 0) + count


def _copy(tally: Tally) -> Tally:
    return {shape: dict(outcomes) for shape, outcomes in tally.items()}


# --- batches -------------------------------------------------------------------------------


def _batches(stream: BinaryIO, state: _State, most: int) -> Iterator[list[Line]]:
    """Cut lines into batches of one shape; bad and blank lines go along with any."""
    batch: list[Line] = []
    shape: Shape | None = None
    held: dict[object, Item] = {}
    for line in read_lines(stream, number=state.line, offset=state.offset):
        item = line.item
        if batch and (
            len(batch) >= most
            or line.end - batch[0].start > BATCH_BYTES
            or (item is not None and shape not in {None, shape_of(item)})
            or (item is not None and _depends(item, held))
        ):
            yield batch
            batch, shape, held = [], None, {}
        batch.append(line)
        if item is not None:
            shape = shape_of(item)
            held[_identity(item)] = item
    if batch:
        yield batch


def _identity(item: Item) -> object:
    if isinstance(item, EntityInput):
        return item.type, item.id
    if isinstance(item, MemoryInput):
        return item.id
    return item


def _depends(item: Item, held: dict[object, Item]) -> bool:
    """Tell whether an item must come in a later write than those before it.

    One write refuses an id twice with different content; in a file it is news about the same
    thing, and the order of the lines counts.
    """
    if isinstance(item, MemoryInput):
        if item.supersedes is not None and item.supersedes in held:
            return True
        if item.id is None:
            return False
    before = held.get(_identity(item))
    return before is not None and before != item


@dataclass(slots=True)
class _Written:
    tally: Tally = field(default_factory=lambda: {shape: {} for shape in SHAPES})
    unindexed: int = 0
    bad: list[BadLine] = field(default_factory=list)

    def count(self, shape: Shape, outcome: str, times: int = 1) -> None:
        if times:
            self.tally[shape][outcome] = self.tally[shape].get(outcome, 0) + times


async def _write(engine: Engine, scope: Scope, file: str, batch: Sequence[Line]) -> _Written:
    written = _Written()
    for line in batch:
        if line.error is not None:
            written.bad.append(_bad(file, line, line.error))
    good = [line for line in batch if line.item is not None]
    if good and isinstance(good[0].item, MemoryInput):
        await _write_memories(engine, scope, file, good, written)
    elif good:
        await _write_graph(engine, scope, file, good, written)
    written.bad.sort(key=lambda bad: bad.line)
    return written


def _bad(file: str, line: Line, error: EcphoriaError) -> BadLine:
    return BadLine(file, line.number, error.code, _sentence(error.message, error.path))


def _sentence(reason: str, path: tuple[str | int, ...]) -> str:
    where = ".".join(str(part) for part in path)
    return f"{where}: {reason}" if where else reason


async def _write_memories(
    engine: Engine, scope: Scope, file: str, lines: Sequence[Line], written: _Written
) -> None:
    items = [line.item for line in lines if isinstance(line.item, MemoryInput)]
    for receipt in await engine.remember(scope, items):
        written.count("memory", receipt.status.lower())
        if receipt.status is ReceiptStatus.REJECTED:
            reason = _sentence(receipt.reason or "", receipt.path)
            number = lines[receipt.index].number
            written.bad.append(BadLine(file, number, receipt.code or "", reason))
        elif not receipt.indexed:
            written.unindexed += 1


async def _write_graph(
    engine: Engine, scope: Scope, file: str, lines: Sequence[Line], written: _Written
) -> None:
    """Write entities or relations, all of one shape; leave out those that are refused."""
    left = list(lines)
    refused = 0
    while left:
        items = [line.item for line in left]
        entities = [item for item in items if isinstance(item, EntityInput)]
        relations = [item for item in items if isinstance(item, RelationInput)]
        try:
            receipts = await engine.upsert_entities(scope, entities, relations)
        except BatchTooLarge:
            raise
        except (InvalidInput, NotFound) as error:
            index, path = _named_item(error)
            if isinstance(error, DuplicateId) and index:
                # two spellings of one id: news about the same thing after all
                await _write_graph(engine, scope, file, left[:index], written)
                left = left[index:]
                continue
            if index is None and len(left) == 1:
                index = 0
            if index is not None and index < len(left):
                bad = type(error)(error.message, path=path)
                written.bad.append(_bad(file, left[index], bad))
                written.count("entity" if entities else "relation", "rejected")
                del left[index]
                refused += 1
            if (index is None or refused >= BAD_BEFORE_SPLIT) and len(left) > 1:
                half = len(left) // 2
                await _write_graph(engine, scope, file, left[:half], written)
                await _write_graph(engine, scope, file, left[half:], written)
                return
        else:
            for receipt in receipts.entities:
                written.count("entity", receipt.status.lower())
            written.count("relation", "created", receipts.relations_created)
            written.count("relation", "unchanged", receipts.relations_unchanged)
            return


def _named_item(error: EcphoriaError) -> tuple[int | None, tuple[str | int, ...]]:
    """Return which item of the write an error is about, and the path inside it."""
    for place, part in enumerate(error.path[:2]):
        if isinstance(part, int):
            return part, error.path[place + 1 :]
    return None, error.path


# --- progress ------------------------------------------------------------------------------


@dataclass(slots=True)
class _State:
    """What is acknowledged of one file."""

    offset: int = 0
    line: int = 0
    unindexed: int = 0
    bad_bytes: int = 0
    tally: Tally = field(default_factory=lambda: {shape: {} for shape in SHAPES})

    def move(self, last: Line, written: _Written) -> None:
        self.offset, self.line = last.end, last.number
        self.unindexed += written.unindexed
        _add(self.tally, written.tally)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the progress of one file is kept: two files, or none for standard input.

    The bad lines are appended to a file of their own, so that the other one stays small however
    many there are.
    """

    progress: Path | None
    bad: Path
    key: dict[str, Any]

    @classmethod
    def standing(cls, settings: Settings, scope: Scope, file: str, *, restart: bool) -> _Place:
        """Return the place for a file, emptied if asked for."""
        if file == STDIN:
            return cls(None, Path(), {})
        path = Path(file).absolute()
        stat = path.stat()
        # Progress counts only where it was made: the same file into another store starts anew.
        target = [
            scope.tenant,
            str(path),
            settings.neo4j_uri,
            settings.neo4j_database,
            settings.milvus_uri,
            settings.collection_prefix,
        ]
        name = hashlib.sha256(json.dumps(target).encode()).hexdigest()[:32]
        directory = settings.data_dir / "imports"
        key = {"file": str(path), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
        place = cls(directory / f"{name}.json", directory / f"{name}.bad.jsonl", key)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if restart:
                place.clear()
        except OSError as error:
            raise _no_place(directory, error) from error
        return place

    def read(self) -> tuple[_State, list[BadLine]]:
        """Return what is acknowledged, and the bad lines in it."""
        if self.progress is None:
            return _State(), []
        try:
            found = json.loads(self.progress.read_text(encoding="utf-8"))
            if found["key"] != self.key:
                self.clear()
                return _State(), []
            state = _State(**found["state"])
            with self.bad.open("r+b") as file:
                # A kill between the two writes leaves lines here that will be found again.
                file.truncate(state.bad_bytes)
                return state, [BadLine(**json.loads(line)) for line in file]
        except FileNotFoundError:
            return _State(), []
        except (ValueError, TypeError, KeyError, AttributeError):
            # Not ours, or of another version: the file is read from its start, which is safe.
            self.clear()
            return _State(), []
        except OSError as error:
            raise _no_place(self.progress, error) from error

    def write(self, state: _State, bad: Sequence[BadLine]) -> None:
        """Keep the progress; it counts whole or not at all."""
        if self.progress is None:
            return
        try:
            with self.bad.open("ab") as file:
                for each in bad:
                    file.write(json.dumps(asdict(each)).encode() + b"\n")
                file.flush()
                if bad:
                    os.fsync(file.fileno())
                state.bad_bytes = file.tell()
            draft = self.progress.with_suffix(f".{secrets.token_hex(4)}.tmp")
            try:
                with draft.open("w", encoding="utf-8") as file_:
                    json.dump({"key": self.key, "state": asdict(state)}, file_)
                    file_.flush()
                    os.fsync(file_.fileno())
                draft.replace(self.progress)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as error:
            raise _no_place(self.progress, error) from error

    def clear(self) -> None:
        """Forget the progress."""
        if self.progress is not None:
            self.progress.unlink(missing_ok=True)
            self.bad.unlink(missing_ok=True)


def _no_place(path: Path, error: OSError) -> DataDirectoryUnusable:
    msg = f"cannot keep the progress of the import in {path}: {error.strerror or error}"
    return DataDirectoryUnusable(msg)
