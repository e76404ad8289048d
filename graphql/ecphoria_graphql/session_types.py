"""Conversations: what is kept of one that is under way, and what became of one."""

from datetime import datetime

import strawberry

from ecphoria.model import SessionContext, Turn
from ecphoria.session.flush import SessionFlush
from ecphoria_graphql.enums import WhoSpoke
from ecphoria_graphql.receipt_types import EntityRefNode, ReceiptNode
from ecphoria_graphql.write_faults import WriteFaultNode


@strawberry.type(name="SessionTurn", description="One message of a conversation.")
class TurnNode:
    """A turn."""

    number: int = strawberry.field(description="From 1, without gaps.")
    speaker: WhoSpoke = strawberry.field(description="Who said it.")
    text: str = strawberry.field(description="What was said.")
    said_at: datetime = strawberry.field(description="When it was said.")
    entities: list[EntityRefNode] = strawberry.field(
        description="Entities that it names, in the order of the text."
    )

    @classmethod
    def of(cls, turn: Turn) -> "TurnNode":
        """Return a turn as its GraphQL type."""
        return cls(
            number=turn.number,
            speaker=WhoSpoke(turn.speaker),
            text=turn.text,
            said_at=turn.said_at,
            entities=[EntityRefNode.of(ref) for ref in turn.entities],
        )


@strawberry.type(
    name="SessionContext",
    description="What is kept of a conversation that is under way, for a while.",
)
class SessionNode:
    """A session."""

    session_id: strawberry.ID = strawberry.field(description="Its id, as the caller gave it.")
    summary: str = strawberry.field(
        description="A summary of the turns before `turns`; empty when there are none."
    )
    turns: list[TurnNode] = strawberry.field(
        description="The last turns, word by word, as many as fit the budget of tokens."
    )
    entities: list[EntityRefNode] = strawberry.field(
        description="The last entity of each type that was named, the latest first."
    )
    turn_count: int = strawberry.field(description="How many turns there were.")
    expires_at: datetime | None = strawberry.field(
        description="When it is over unless something is said."
    )

    @classmethod
    def of(cls, session: SessionContext) -> "SessionNode":
        """Return a session as its GraphQL type."""
        return cls(
            session_id=strawberry.ID(session.session_id),
            summary=session.summary,
            turns=[TurnNode.of(turn) for turn in session.turns],
            entities=[EntityRefNode.of(ref) for ref in session.entities],
            turn_count=session.turn_count,
            expires_at=session.expires_at,
        )


@strawberry.type(
    name="RememberTurnPayload", description="What is kept of a conversation now, or why not."
)
class RememberTurnNode:
    """What became of a turn."""

    session: SessionNode | None = strawberry.field(
        description="What is kept of the conversation; null when the turn was not taken."
    )
    error: WriteFaultNode | None = strawberry.field(
        default=None, description="Why the turn was not taken; null when it was."
    )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "RememberTurnNode":
        """Return the payload of a turn that was not taken."""
        return cls(session=None, error=fault)


@strawberry.type(name="SessionFlush", description="What became of a conversation that is over.")
class FlushNode:
    """A flush."""

    receipts: list[ReceiptNode] = strawberry.field(
        description="One for each dialogue that was written, in order."
    )
    turns: int = strawberry.field(description="How many turns are in long-term memory now.")
    set_aside: int = strawberry.field(
        description="How many turns were refused; the receipts say why."
    )
    under_way: bool = strawberry.field(
        description="Whether somebody else brings it to long-term memory at this moment."
    )
    error: WriteFaultNode | None = strawberry.field(
        description="Why nothing was done; null when the call was good."
    )

    @classmethod
    def of(cls, flush: SessionFlush) -> "FlushNode":
        """Return what became of a conversation as its GraphQL type."""
        return cls(
            receipts=[ReceiptNode.of(receipt) for receipt in flush.receipts],
            turns=flush.turns,
            set_aside=flush.set_aside,
            under_way=flush.under_way,
            error=None,
        )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "FlushNode":
        """Return the payload of a call that did nothing."""
        return cls(receipts=[], turns=0, set_aside=0, under_way=False, error=fault)
