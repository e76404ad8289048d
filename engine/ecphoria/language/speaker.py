"""Who says a line of a dialogue, as it is written down: ``Anna: …``, ``王芳：…``."""

from __future__ import annotations

import re

from ecphoria.language.folding import Compact

_MARK = re.compile(r"\s{0,8}([^\W\d][^\n:：,，。.!！?？;；]{0,39}?)\s?[:：](?!//)")


def speaker_of(text: str) -> str | None:
    """Return what stands before the first colon of a text, when it may be a name."""
    found = _MARK.match(text)
    return found[1] if found else None


def is_said_by(speaker: str | None, question: Compact) -> bool:
    """Whether a question names the speaker."""
    return speaker is not None and bool(question.find(speaker))
