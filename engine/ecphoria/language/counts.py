"""Small numbers as they are written in Chinese and English."""

from __future__ import annotations

from typing import Final

_EN: Final = {
    "a": 1.0,
    "an": 1.0,
    "one": 1.0,
    "two": 2.0,
    "couple": 2.0,
    "three": 3.0,
    "four": 4.0,
    "five": 5.0,
    "six": 6.0,
    "seven": 7.0,
    "eight": 8.0,
    "nine": 9.0,
    "ten": 10.0,
    "eleven": 11.0,
    "twelve": 12.0,
    "half": 0.5,
}
_ZH_DIGITS: Final = "零一二三四五六七八九"
_ZH_SAME: Final = str.maketrans("〇两", "零二")

EN_COUNT: Final = (
    r"\d{1,3}|half an?|(?:a )?couple of|(?:a )?few|several|an?"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
)
ZH_COUNT: Final = (
    r"\d{1,3}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九半几数]"
)


def chinese_number(written: str) -> int:
    """Return a number below a hundred, or one written digit by digit (二〇二五).

    Raises:
        ValueError: When it is neither.
    """
    text = written.translate(_ZH_SAME)
    if text.isascii():
        return int(text)
    if "十" not in text:
        return int("".join(str(_ZH_DIGITS.index(char)) for char in text))
    tens, _, ones = text.partition("十")
    return 10 * (_ZH_DIGITS.index(tens) if tens else 1) + (_ZH_DIGITS.index(ones) if ones else 0)


def count_of(written: str) -> float | None:
    """Return how many `EN_COUNT` or `ZH_COUNT` words mean; None for "a few" (几)."""
    if written in {"几", "数", "several"} or written.endswith("few"):
        return None
    if written == "半":
        return 0.5
    words = [word for word in written.split() if word not in {"of", "a", "an"}]
    if written.isascii() and not written.isdigit():
        return _EN[words[0] if words else "a"]
    return float(chinese_number(written))
