"""Cut a question into clauses: a thing's fault is told in one, what is wanted in another."""

from __future__ import annotations

import re
from typing import Final

from ecphoria.language.folding import fold

MAX_CLAUSES: Final = 4
_BREAK = re.compile(
    r"[,.;:!?…、。，；：！？\n]+"
    r"|\b(?:because|since|and|but|so|whether|if|which|after|before|when|while|then)\b"
    r"|因为|由于|但是|可是|不过|而且|所以|是否|之前|以前|之后|以后|的时候|的是"
)
_MIN_LETTERS = 2


def clauses(text: str) -> tuple[str, ...]:
    """Return the clauses of a text, folded and in order, at most `MAX_CLAUSES`; never none.

    A text of one clause comes back as it is.
    """
    found = [
        part.strip()
        for part in _BREAK.split(fold(text))
        if sum(char.isalnum() for char in part) >= _MIN_LETTERS
    ]
    return tuple(found[:MAX_CLAUSES]) if len(found) > 1 else (text,)
