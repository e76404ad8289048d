"""The result of a recall: a joined, structured context."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import strawberry

from ecphoria.errors import InvalidInput
from ecphoria.model import (
    ConsideredMemory,
    RecalledEntity,
    RecalledMemory,
    RecalledRelation,
    RecallResult,
    TraceStep,
)
from ecphoria.recall.assemble import context_block
from ecphoria_graphql.confidence_types import ConfidenceNode
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.enums import MemoryKind, RecallAction, TextLanguage
from ecphoria_graphql.fields import described, list_of, typed_field
from ecphoria_graphql.memory_types import MemoryTypes
from ecphoria_graphql.receipt_types import EntityRefNode
from ecphoria_graphql.session_types import SessionNode

MAX_CONTEXT_TOKENS = 32_000

MaxTokens = Annotated[
    int | None,
    strawberry.argument(
        description=f"Budget in tokens, 1 to {MAX_CONTEXT_TOKENS}; 800 when not given."
    ),
]


@strawberry.type(name="Because", description="A path that explains why something is there.")
class BecauseNode:
    """An explanation."""

    path: str = strawberry.field(description="The path as text, from the question or the user on.")


@strawberry.type(name="RecalledRelation", description="A relation between two entities.")
class RecalledRelationNode:
    """A relation in an answer."""

    type: str = strawberry.field(description="Its type, as the domain names it.")
    from_: EntityRefNode = strawberry.field(name="from", description="Where it starts.")
    to: EntityRefNode = strawberry.field(description="Where it ends.")
    confidence: float = strawberry.field(description="How far to trust it, 0 to 1.")

    @classmethod
    def of(cls, relation: RecalledRelation) -> "RecalledRelationNode":
        """Return a relation as its GraphQL type."""
        return cls(
            type=relation.type,
            from_=EntityRefNode.of(relation.from_),
            to=EntityRefNode.of(relation.to),
            confidence=relation.confidence,
        )


@strawberry.type(name="Dropped", description="How many candidates a rule dropped.")
class DroppedNode:
    """A count of dropped candidates."""

    rule: str = strawberry.field(description="Which rule.")
    count: int = strawberry.field(description="How many.")


@strawberry.type(name="FeatureShare", description="What a feature adds to a rank score.")
class FeatureShareNode:
    """A part of a rank score."""

    name: str = strawberry.field(description="The feature, e.g. `similarity`.")
    value: float = strawberry.field(description="Its value, mostly 0 to 1.")
    weight: float = strawberry.field(description="How it weighs, from the settings.")
    share: float = strawberry.field(
        description="What it adds; the shares of a memory sum to its score."
    )


@strawberry.type(
    name="ConsideredMemory",
    description="A memory that a stage looked at, and what became of it; one that you may read.",
)
class ConsideredNode:
    """A memory that was looked at."""

    memory_id: strawberry.ID = strawberry.field(description="Its id.")
    kind: MemoryKind = strawberry.field(description="Its kind.")
    text: str = strawberry.field(description="What it says.")
    place: int | None = strawberry.field(
        description="Its place by score, from 1; null when it was dropped before."
    )
    relevance: float | None = strawberry.field(
        description="Probability that it answers, 0 to 1; null when it was dropped before."
    )
    score: float | None = strawberry.field(
        description="By what the memories are ordered; null when it was dropped before."
    )
    similarity: float | None = strawberry.field(
        description="Cosine to the question; null when no search by meaning has found it."
    )
    features: list[FeatureShareNode] = strawberry.field(
        description="What the score is made from, the largest share first."
    )
    dropped: str | None = strawberry.field(
        description="The rule that keeps it out of the answer; null when it is in it."
    )

    @classmethod
    def of(cls, found: ConsideredMemory) -> "ConsideredNode":
        """Return a memory that was looked at as its GraphQL type."""
        return cls(
            memory_id=strawberry.ID(found.memory.id),
            kind=MemoryKind(found.memory.kind),
            text=found.memory.text,
            place=found.place,
            relevance=found.relevance,
            score=found.score,
            similarity=found.similarity,
            features=[
                FeatureShareNode(
                    name=each.name, value=each.value, weight=each.weight, share=each.share
                )
                for each in found.features
            ],
            dropped=found.dropped,
        )


@strawberry.type(name="TraceStep", description="What one stage of the recall did.")
class TraceStepNode:
    """A step of the trace."""

    stage: str = strawberry.field(description="Its name.")
    milliseconds: float = strawberry.field(description="How long it took, in milliseconds.")
    candidates: int = strawberry.field(description="How many candidates it handed on.")
    dropped: list[DroppedNode] = strawberry.field(description="What it dropped, by rule.")
    note: str = strawberry.field(description="What else is worth knowing; may be empty.")
    input: str = strawberry.field(description="What came in, e.g. `42 seeds, 1 named`.")
    output: str = strawberry.field(
        description="What it handed on, e.g. `38 memories, 12 entities`."
    )
    considered: list[ConsideredNode] = strawberry.field(
        description=(
            "The memories that it looked at, each with what became of it; empty unless the input"
            " says `explain`. What you may not see is counted in `dropped`, and never listed."
        )
    )

    @classmethod
    def of(cls, step: TraceStep) -> "TraceStepNode":
        """Return a step as its GraphQL type."""
        return cls(
            stage=step.stage,
            milliseconds=step.milliseconds,
            candidates=step.candidates,
            dropped=[DroppedNode(rule=rule, count=count) for rule, count in step.dropped.items()],
            note=step.note,
            input=step.input,
            output=step.output,
            considered=[ConsideredNode.of(each) for each in step.considered],
        )


class RecallNode:
    """A result of a recall, together with the user it was asked for."""

    result: RecallResult
    user_id: str


class RecalledMemoryNode:
    """A memory in an answer."""

    hit: RecalledMemory
    user_id: str


class RecalledEntityNode:
    """An entity in an answer."""

    hit: RecalledEntity
    user_id: str


def _because(paths: tuple[str, ...]) -> list[BecauseNode]:
    return [BecauseNode(path=path) for path in paths]


@strawberry.type
class _RecalledMemoryFields(RecalledMemoryNode):
    """The fields of a recalled memory that are the same in every domain."""

    @described("How well it fits the question, 0 to 1.")
    def relevance(self) -> float:
        return self.hit.relevance

    @described("By what the memories are ordered; comparable in one recall.")
    def score(self) -> float:
        return self.hit.score

    @described("Cosine to the question; null when found by walking.")
    def similarity(self) -> float | None:
        return self.hit.similarity

    @described("How far to trust it.")
    def confidence(self) -> ConfidenceNode:
        return ConfidenceNode.of(self.hit.confidence)

    @described("Why it is there.")
    def because(self) -> list[BecauseNode]:
        return _because(self.hit.because)

    @described("Ids of memories in this answer that disagree with it.")
    def conflicts_with(self) -> list[strawberry.ID]:
        return [strawberry.ID(item) for item in self.hit.conflicts_with]


@strawberry.type
class _RecalledEntityFields(RecalledEntityNode):
    """The fields of a recalled entity that are the same in every domain."""

    @described("How well it fits the question, 0 to 1.")
    def relevance(self) -> float:
        return self.hit.relevance

    @described("How far to trust it.")
    def confidence(self) -> ConfidenceNode:
        return ConfidenceNode.of(self.hit.confidence)

    @described("Why it is there.")
    def because(self) -> list[BecauseNode]:
        return _because((self.hit.because,))


@strawberry.type
class _RecallFields(RecallNode):
    """The fields of a recall that are the same in every domain."""

    @described("What to do with the result.")
    def action(self) -> RecallAction:
        return RecallAction(self.result.action.value)

    @described("A warning in the question's language when confidence is low, else null.")
    def advisory(self) -> str | None:
        return self.result.advisory

    @described("Of the answer as a whole; null without anything to trust.")
    def confidence(self) -> ConfidenceNode | None:
        found = self.result.confidence
        return None if found is None else ConfidenceNode.of(found)

    @described("Relations among the entities.")
    def relations(self) -> list[RecalledRelationNode]:
        return [RecalledRelationNode.of(relation) for relation in self.result.relations]

    @described("The result as text for a prompt, within a budget of tokens.")
    def context_block(self, max_tokens: MaxTokens = None) -> str:
        if max_tokens is None:
            return self.result.context
        if not 1 <= max_tokens <= MAX_CONTEXT_TOKENS:
            msg = f"maxTokens must be 1 to {MAX_CONTEXT_TOKENS}, not {max_tokens}"
            raise InvalidInput(msg, path=("maxTokens",))
        return context_block(self.result, max_tokens)

    @described("What was not available, e.g. the vector index.")
    def degradations(self) -> list[str]:
        return list(self.result.degradations)

    @described("Topics of the question, as the domain names them.")
    def topics(self) -> list[str]:
        return list(self.result.topics)

    @described("The language of the question.")
    def language(self) -> TextLanguage:
        return TextLanguage(self.result.language)

    @described("The moment that the answer is true for.")
    def as_of(self) -> datetime:
        return self.result.as_of

    @described("What is kept of the session that the question is part of; null without one.")
    def session(self) -> SessionNode | None:
        found = self.result.session
        return None if found is None else SessionNode.of(found)

    @described("What each stage did.")
    def trace(self) -> list[TraceStepNode]:
        return [TraceStepNode.of(step) for step in self.result.trace]


@dataclass(frozen=True, slots=True)
class RecallTypes:
    """The types of a recall in one domain."""

    recall: type[RecallNode]

    def node(self, result: RecallResult, user_id: str) -> RecallNode:
        """Return a result as its GraphQL type."""
        node = self.recall()
        node.result, node.user_id = result, user_id
        return node


def build_recall_types(entities: EntityTypes, memories: MemoryTypes) -> RecallTypes:
    """Make the types of a recall: they hold the domain's entities."""

    def memory_of(root: RecalledMemoryNode) -> Any:  # noqa: ANN401 - typed by the domain
        return memories.node(root.hit.memory, root.user_id)

    def entity_of(root: RecalledEntityNode) -> Any:  # noqa: ANN401 - typed by the domain
        return entities.node(root.hit.entity, root.user_id, root.hit.confidence)

    recalled_memory = _extended(
        "RecalledMemory",
        _RecalledMemoryFields,
        "A memory in an answer.",
        memory=typed_field(memory_of, memories.memory, "The memory."),
    )
    recalled_entity = _extended(
        "RecalledEntity",
        _RecalledEntityFields,
        "An entity in an answer, with how it got there.",
        entity=typed_field(entity_of, entities.interface, "The entity."),
    )

    def memories_of(root: RecallNode) -> Any:  # noqa: ANN401 - typed by the domain
        found = []
        for hit in root.result.memories:
            node = recalled_memory()
            node.hit, node.user_id = hit, root.user_id
            found.append(node)
        return found

    def entities_of(root: RecallNode) -> Any:  # noqa: ANN401 - typed by the domain
        nodes = (
            entities.node(hit.entity, root.user_id, hit.confidence) for hit in root.result.entities
        )
        return [node for node in nodes if node is not None]

    def hits_of(root: RecallNode) -> Any:  # noqa: ANN401 - typed by the domain
        found = []
        for hit in root.result.entities:
            if hit.entity.type in entities.objects:
                node = recalled_entity()
                node.hit, node.user_id = hit, root.user_id
                found.append(node)
        return found

    return RecallTypes(
        _extended(
            "Recall",
            _RecallFields,
            "A joined, structured context: what is remembered, what it is about, how far to"
            " trust it.",
            memories=typed_field(
                memories_of,
                list_of(recalled_memory),
                "Memories, the best first.",
            ),
            entities=typed_field(
                entities_of,
                list_of(entities.interface),
                (
                    "Entities, also those that no memory mentions: what was found by walking the"
                    " graph. `entityHits` has the same with reasons."
                ),
            ),
            entity_hits=typed_field(
                hits_of,
                list_of(recalled_entity),
                "The same entities, each with its relevance and the path to it.",
            ),
        )
    )


def _extended(name: str, base: type[Any], description: str, **fields: object) -> type[Any]:
    made = type(name, (base,), {"__annotations__": {}, **fields})
    return strawberry.type(made, name=name, description=description)
