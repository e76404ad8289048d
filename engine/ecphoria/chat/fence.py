"""How a text is handed to a chat model as data."""

from __future__ import annotations

import hashlib


def fenced(text: str, name: str) -> str:
    """Return a text between two marks that it cannot hold itself.

    The marks are made from the text's hash: who writes a text cannot know them beforehand, so no
    text can close them and go on as if it were the prompt.
    """
    mark = f"{name}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return f"<{mark}>\n{text}\n</{mark}>"
