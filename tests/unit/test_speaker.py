"""Who says a line of a dialogue, and whether a question names him."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.language.folding import Compact
from ecphoria.language.speaker import is_said_by, speaker_of


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Anna: I bought it in May.", "Anna"),
        ("  王芳：我五月买的。", "王芳"),
        ("Mary Ann Smith : yes", "Mary Ann Smith"),
        ("I said this, Anna: no", None),
        ("12:30 is fine", None),
        ("https://example.com/x", None),
        ("Anna said so", None),
        ("", None),
    ],
)
def test_what_stands_before_the_first_colon(text, speaker):
    assert speaker_of(text) == speaker


@pytest.mark.parametrize(
    ("speaker", "question", "named"),
    [
        ("Anna", "What did Anna buy?", True),
        ("anna", "What did ANNA's friend buy?", True),
        ("Anna", "What did Annabel buy?", False),
        ("王芳", "王芳买了什么？", True),
        ("王芳", "王小芳买了什么？", False),
        (None, "Anna?", False),
    ],
)
def test_a_question_names_the_speaker(speaker, question, named):
    assert is_said_by(speaker, Compact(question)) is named


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_is_too_strange(text, question):
    speaker = speaker_of(text)
    assert speaker is None or speaker in text
    assert is_said_by(speaker, Compact(question)) in {True, False}
