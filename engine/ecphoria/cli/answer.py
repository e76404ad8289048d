"""An answer, for scripts and for people: one shape, that of the GraphQL API."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ecphoria.cli.common import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console, RenderableType

    from ecphoria.model import (
        Confidence,
        ConfidencePart,
        ConsideredMemory,
        EntityRef,
        RecallResult,
        SessionContext,
    )

Answer = dict[str, Any]

_ACTION_STYLES: Final = {"ANSWER": "bold green", "FALLBACK": "bold yellow", "SKIP": "bold dim"}
_GOOD, _FAIR = 0.75, 0.6
# Of the memories that are not in the answer so many are shown to people; a share below is rounding.
_SHOWN_DROPPED, _SHARE_TOLD = 10, 0.005
_ID_WIDTH, _EXCERPT = 32, 60


def answer_of(result: RecallResult) -> Answer:
    """Return a recall in the shape in which the GraphQL API sends it."""
    return {
        "action": result.action.value,
        "asOf": moment(result.as_of),
        "language": result.language.upper(),
        "topics": list(result.topics),
        "advisory": result.advisory,
        "confidence": None if result.confidence is None else _confidence(result.confidence),
        "memories": [
            {
                "relevance": found.relevance,
                "similarity": found.similarity,
                "confidence": _confidence(found.confidence),
                "because": [{"path": path} for path in found.because],
                "conflictsWith": list(found.conflicts_with),
                "memory": {
                    "id": found.memory.id,
                    "userId": found.memory.user_id,
                    "kind": found.memory.kind.upper(),
                    "topic": found.memory.topic,
                    "text": found.memory.text,
                    "source": found.memory.source_id,
                    "occurredAt": moment(found.memory.occurred_at),
                    "validFrom": moment(found.memory.valid_from),
                    "validUntil": moment(found.memory.valid_until),
                },
            }
            for found in result.memories
        ],
        "entityHits": [
            {
                "relevance": found.relevance,
                "confidence": _confidence(found.confidence),
                "because": [{"path": found.because}],
                "entity": {
                    **{_camel(name): _plain(value) for name, value in found.entity.props.items()},
                    "type": found.entity.type,
                    "id": found.entity.id,
                    "name": found.entity.name,
                },
            }
            for found in result.entities
        ],
        "relations": [
            {
                "type": found.type,
                "from": _ref(found.from_),
                "to": _ref(found.to),
                "confidence": found.confidence,
            }
            for found in result.relations
        ],
        "session": None if result.session is None else _session(result.session),
        "contextBlock": result.context,
        "degradations": list(result.degradations),
        "trace": [
            {
                "stage": step.stage,
                "milliseconds": step.milliseconds,
                "candidates": step.candidates,
                "dropped": [{"rule": rule, "count": count} for rule, count in step.dropped.items()],
                "note": step.note,
                "input": step.input,
                "output": step.output,
                "considered": [_considered(each) for each in step.considered],
            }
            for step in result.trace
        ],
    }


def _considered(found: ConsideredMemory) -> dict[str, Any]:
    return {
        "memoryId": found.memory.id,
        "kind": found.memory.kind.upper(),
        "text": found.memory.text,
        "place": found.place,
        "relevance": found.relevance,
        "score": found.score,
        "similarity": found.similarity,
        "features": [
            {
                "name": each.name,
                "value": each.value,
                "weight": each.weight,
                "share": each.share,
            }
            for each in found.features
        ],
        "dropped": found.dropped,
    }


def _session(session: SessionContext) -> dict[str, Any]:
    return {
        "sessionId": session.session_id,
        "summary": session.summary,
        "turns": [
            {
                "number": turn.number,
                "speaker": turn.speaker.upper(),
                "text": turn.text,
                "saidAt": moment(turn.said_at),
                "entities": [_ref(ref) for ref in turn.entities],
            }
            for turn in session.turns
        ],
        "entities": [_ref(ref) for ref in session.entities],
        "turnCount": session.turn_count,
        "expiresAt": moment(session.expires_at),
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return moment(value)
    return list(value) if isinstance(value, tuple) else value


def _ref(ref: EntityRef) -> dict[str, str]:
    return {"type": ref.type, "id": ref.id}


def _confidence(confidence: Confidence) -> dict[str, Any]:
    return {
        "overall": confidence.overall,
        "timeliness": _part(confidence.timeliness),
        "source": _part(confidence.source),
        "consistency": _part(confidence.consistency),
    }


def _part(part: ConfidencePart) -> dict[str, Any]:
    return {"score": part.score, "level": part.level, "reason": part.reason}


def show_answer(console: Console, answer: Answer, *, explain: bool = False) -> None:
    """Print an answer for people.

    Args:
        console: Where to.
        answer: In the shape of `answer_of`.
        explain: Why each part is there, and what each stage did.
    """
    action = answer["action"]
    style = _ACTION_STYLES.get(action, "bold")
    console.print(f"[{style}]{action}[/]", _summary(answer["confidence"]))
    if answer["confidence"] is not None:
        console.print(_indented(_parts(answer["confidence"])))
    if answer["advisory"]:
        console.print(_indented(Text(f"⚠ {answer['advisory']}", style="yellow")))
    for degradation in answer["degradations"]:
        console.print(_indented(Text(f"⚠ {degradation}", style="yellow")))
    _section(console, "said just now", _turns(answer.get("session")))
    _section(console, "memories", _memories(answer["memories"], explain=explain))
    _section(console, "entities and relations", _trees(answer, explain=explain))
    if answer["contextBlock"]:
        _section(console, "context for the prompt", [Text(answer["contextBlock"], style="dim")])
    if explain:
        _section(console, "trace", [_trace(answer["trace"])])
        _section(console, "memories looked at", _looked_at(answer["trace"]))


def _section(console: Console, title: str, body: Iterable[RenderableType]) -> None:
    parts = list(body)
    if parts:
        console.print(f"\n[bold cyan]{title}[/]")
        console.print(_indented(Group(*parts)))


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2))


def _colour(score: float) -> str:
    return "green" if score >= _GOOD else "yellow" if score >= _FAIR else "red"


def _summary(confidence: Mapping[str, Any] | None) -> str:
    if confidence is None:
        return "[dim]nothing known well enough[/]"
    score = confidence["overall"]
    return f"confidence [bold {_colour(score)}]{score:.2f}[/]"


def _parts(confidence: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name in ("timeliness", "source", "consistency"):
        part = confidence[name]
        level = f" ({part['level']})" if part.get("level") else ""
        table.add_row(
            f"{name}",
            f"[{_colour(part['score'])}]{part['score']:.2f}[/]",
            Text(f"{part['reason']}{level}", style="dim"),
        )
    return table


def _turns(session: Mapping[str, Any] | None) -> Iterable[Text]:
    if session is None:
        return
    if session["summary"]:
        yield Text(session["summary"], style="dim")
    for turn in session["turns"]:
        yield Text(turn["text"]).append(f"  {turn['speaker'].lower()}", style="dim")


def _memories(memories: Iterable[Mapping[str, Any]], *, explain: bool) -> Iterable[Text]:
    for found in memories:
        memory = found["memory"]
        line = Text()
        line.append(f"{found['relevance']:.2f} ", style=_colour(found["relevance"]))
        line.append(memory["text"])
        until = memory.get("validUntil")
        facts = [
            memory.get("source"),
            memory["kind"],
            until and f"until {until[:10]}",
            memory["id"],
        ]
        line.append(f"  {' · '.join(fact for fact in facts if fact)}", style="dim")
        yield line
        if explain:
            for because in found["because"]:
                yield Text(f"     because {because['path']}", style="dim italic")


def _trees(answer: Answer, *, explain: bool) -> list[Tree]:
    """Join entities by their relations: what nothing points at is a root."""
    entities = {_key(hit["entity"]): hit for hit in answer["entityHits"]}
    below: dict[tuple[str, str], list[tuple[str, tuple[str, str]]]] = {}
    pointed_at = set()
    for relation in answer["relations"]:
        start, end = _key(relation["from"]), _key(relation["to"])
        if start in entities and end in entities:
            below.setdefault(start, []).append((relation["type"], end))
            pointed_at.add(end)
    shown: set[tuple[str, str]] = set()

    def grow(tree: Tree, key: tuple[str, str]) -> None:
        shown.add(key)
        for type_, end in below.get(key, ()):
            label = _entity(entities[end], explain=explain, relation=type_)
            if end in shown:
                tree.add(Text.from_markup(f"{label} [dim]↑[/]"))
            else:
                grow(tree.add(label), end)

    trees = []
    for key in (*(key for key in entities if key not in pointed_at), *entities):
        if key not in shown:
            trees.append(Tree(_entity(entities[key], explain=explain)))
            grow(trees[-1], key)
    return trees


def _key(ref: Mapping[str, Any]) -> tuple[str, str]:
    return ref["type"], ref["id"]


def _entity(hit: Mapping[str, Any], *, explain: bool, relation: str = "") -> str:
    entity = hit["entity"]
    arrow = f"[dim]{escape(relation)} →[/] " if relation else ""
    name = f" {escape(entity['name'])}" if entity["name"] != entity["id"] else ""
    props = ", ".join(
        f"{field} {_short(value)}"
        for field, value in entity.items()
        if field not in {"type", "id", "name"} and value not in (None, "", entity["name"])
    )
    paths = ", ".join(because["path"] for because in hit["because"])
    why = f" [dim italic]because {escape(paths)}[/]" if explain and paths else ""
    return (
        f"{arrow}[bold]{escape(entity['type'])}[/]{name} [cyan]{escape(entity['id'])}[/]"
        f"{f' [dim]{escape(props)}[/]' if props else ''}{why}"
    )


def _short(value: object) -> str:
    text = str(value)
    # midnight times are dates
    return text.removesuffix("T00:00:00Z")


def _trace(steps: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("stage", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    table.add_column("in")
    table.add_column("out")
    table.add_column("dropped, and notes", ratio=1)
    for step in steps:
        said = [Text(f"- {each['count']} {each['rule']}") for each in step["dropped"]]
        if step["note"]:
            said.append(Text(step["note"], style="dim"))
        table.add_row(
            step["stage"],
            f"{step['milliseconds']:.1f}",
            step["input"],
            step["output"] or str(step["candidates"]),
            Text("\n").join(said),
        )
    table.add_section()
    table.add_row("all", f"{sum(step['milliseconds'] for step in steps):.1f}", style="dim")
    return table


def _looked_at(steps: Iterable[Mapping[str, Any]]) -> Iterable[RenderableType]:
    """Yield a table of the memories that were looked at: all in the answer, some that are not."""
    considered = [each for step in steps for each in step["considered"]]
    if not considered:
        return
    inside = [each for each in considered if each["dropped"] is None]
    outside = [each for each in considered if each["dropped"] is not None]
    outside.sort(key=lambda each: each["place"] or len(considered) + 1)
    shown = inside + outside[:_SHOWN_DROPPED]
    widest = max(len(each["memoryId"]) for each in shown)
    table = Table(box=None, pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    # an id is for copying: it may be broken, never cut
    table.add_column("id", overflow="fold", min_width=min(widest, _ID_WIDTH))
    table.add_column("relevance", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("what became of it, and its score", ratio=1)
    for each in shown:
        table.add_row(
            str(each["place"] or ""),
            Text(each["memoryId"]),
            "" if each["relevance"] is None else f"{each['relevance']:.2f}",
            "" if each["score"] is None else f"{each['score']:.2f}",
            _outcome(each),
        )
    yield Text(
        "#: place by score. A score is the sum of its features, each feature(value×weight)=share; "
        "relevance is what the gate looks at.",
        style="dim",
    )
    yield table
    left = len(considered) - len(shown)
    if left:
        yield Text(f"… and {left} more that are not in the answer; --json has all.", style="dim")


def _outcome(found: Mapping[str, Any]) -> Text:
    kept = found["dropped"] is None
    said = Text("in the answer" if kept else found["dropped"], style="green" if kept else "yellow")
    said.append(f"\n{_excerpt(found['text'])}", style="none")
    shares = [each for each in found["features"] if abs(each["share"]) >= _SHARE_TOLD]
    made = "  ".join(
        f"{each['name'].replace(' ', '_')}({each['value']:.2f}×{each['weight']:g})"
        f"={each['share']:+.2f}"
        for each in shares
    )
    if made:
        said.append(f"\n{made}", style="dim")
    return said


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else f"{line[: _EXCERPT - 1]}…"
