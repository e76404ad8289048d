"""How many tokens a text costs in a prompt, estimated without a tokenizer."""

from __future__ import annotations

import math
import re

_HAN = re.compile(r"[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef]")
_WORD = re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9\u3000-\u9fff\uf900-\ufaff\uff00-\uffef]")
_CHARS_A_TOKEN = 4


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text costs: one a Han character, one a 4 Latin letters.

    An upper estimate for the usual byte-pair vocabularies; no tokenizer is loaded for it.
    """
    han = len(_HAN.findall(text))
    latin = sum(math.ceil(len(word) / _CHARS_A_TOKEN) for word in _WORD.findall(text))
    return han + latin
