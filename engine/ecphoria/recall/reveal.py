"""Last of all: what an answer holds as the asker may see it, in clear or redacted.

Ranking goes by what is stored, so that an answer is the same for every role; only what is returned
is unsealed.
"""

from __future__ import annotations

from dataclasses import replace

from ecphoria.governance.reveal import shown_entities, shown_memories
from ecphoria.model import RecallResult, Scope, TraceStep
from ecphoria.parts import EngineParts
from ecphoria.recall.assemble import context_block
from ecphoria.sealed import is_sealed


async def revealed(
    parts: EngineParts, scope: Scope, result: RecallResult, context_tokens: int
) -> RecallResult:
    """Return an answer as a scope may see it, its text for a prompt too.

    Without anything sealed in it there is nothing to ask the graph for.
    """
    sealed = any(item.memory.sealed is not None for item in result.memories) or any(
        is_sealed(value) for item in result.entities for value in item.entity.props.values()
    )
    if not sealed:
        return result
    memories = await shown_memories(parts.vault, scope, [item.memory for item in result.memories])
    entities = await shown_entities(
        parts.vault, parts.domain, scope, [item.entity for item in result.entities]
    )
    shown = replace(
        result,
        memories=tuple(
            replace(item, memory=memory)
            for item, memory in zip(result.memories, memories, strict=True)
        ),
        entities=tuple(
            replace(item, entity=entity)
            for item, entity in zip(result.entities, entities, strict=True)
        ),
    )
    return replace(shown, context=context_block(shown, context_tokens))


async def revealed_steps(
    parts: EngineParts, scope: Scope, steps: tuple[TraceStep, ...]
) -> tuple[TraceStep, ...]:
    """Return the steps of a trace with the memories they looked at as a scope may see them."""
    every = [item.memory for step in steps for item in step.considered]
    shown = iter(await shown_memories(parts.vault, scope, every))
    return tuple(
        replace(
            step, considered=tuple(replace(item, memory=next(shown)) for item in step.considered)
        )
        for step in steps
    )
