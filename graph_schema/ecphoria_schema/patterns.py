"""Keep the patterns of a domain file from running away on a hostile text.

Python's regular expressions try every way in which a text can be divided among repeats. What is
let in here has a bound on those ways that does not grow with the text, so that reading a text
takes time in proportion to its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Most characters that one repeat may take.
MAX_REPEAT = 80
# Most ways in which the repeats of one pattern may divide a text, from one place of it.
MAX_WAYS = 5_000
# Most things that may be there or not.
MAX_OPTIONAL = 16

_REPEAT = re.compile(r"([*+?]|\{(?=[\d,]*\d)(\d*)(,?)(\d*)\})([+?]?)")
_OPENING = re.compile(r"\((?:\?(?:P<[A-Za-z_]\w*>|:|=|!|<=|<!|[aiLmsu]+:)|(?!\?))")


@dataclass(slots=True)
class _Group:
    """Ways through a group: of its longest alternative so far, and of the one under way."""

    done: int = 1
    ways: int = 1

    @property
    def most(self) -> int:
        return max(self.done, self.ways)


@dataclass(slots=True)
class _Scan:
    pattern: str
    at: int = 0
    optional: int = 0
    groups: list[_Group] = field(default_factory=lambda: [_Group()])
    # what a repeat after it would repeat: a character or set, a group, or nothing
    last: str = ""

    def run(self) -> str | None:
        while self.at < len(self.pattern):
            fault = self._step(self.pattern[self.at])
            if fault is not None:
                return fault
        ways = self.groups[0].most
        if ways > MAX_WAYS:
            return f"can divide a text in {ways} ways; {MAX_WAYS} are allowed: repeat less"
        if self.optional > MAX_OPTIONAL:
            return f"has {self.optional} optional parts; {MAX_OPTIONAL} are allowed"
        return None

    def _step(self, char: str) -> str | None:
        repeat = _REPEAT.match(self.pattern, self.at)
        if repeat is not None and self.last:
            return self._repeat(repeat)
        if char == "(":
            return self._open()
        if char == ")":
            group = self.groups.pop()
            self.groups[-1].ways *= group.most
            self.at, self.last = self.at + 1, "group"
        elif char == "|":
            here = self.groups[-1]
            here.done, here.ways = here.most, 1
            self.at, self.last = self.at + 1, ""
        elif re.match(r"\\[1-9]", self.pattern[self.at : self.at + 2]):
            return "refers back to a group"
        else:
            self.at, self.last = self._end_of_item(char), "item"
        return None

    def _open(self) -> str | None:
        opening = _OPENING.match(self.pattern, self.at)
        if opening is None:
            return "has a group of a kind that is of no use here"
        self.groups.append(_Group())
        self.at, self.last = opening.end(), ""
        return None

    def _repeat(self, repeat: re.Match[str]) -> str | None:
        least, most = _bounds(repeat)
        if most is None or most > MAX_REPEAT:
            return f"repeats without end or too often: write {{1,{MAX_REPEAT}}} or less"
        if most > 1 and self.last == "group":
            return "repeats a group: only a character or a set may be repeated, a group be optional"
        width = most - least + 1
        # one that never gives back what it took has one way only
        if most > 1 and repeat[5] != "+":
            self.groups[-1].ways *= width
        elif width > 1 and repeat[5] != "+":
            self.optional += 1
        self.at, self.last = repeat.end(), ""
        return None

    def _end_of_item(self, char: str) -> int:
        if char == "\\":
            return self.at + 2
        if char != "[":
            return self.at + 1
        end = self.at + 1
        if self.pattern.startswith("^", end):
            end += 1
        first = end
        while self.pattern[end] != "]" or end == first:
            end += 2 if self.pattern[end] == "\\" else 1
        return end + 1


def _bounds(repeat: re.Match[str]) -> tuple[int, int | None]:
    sign = repeat[1]
    if sign in {"*", "+", "?"}:
        return (0, 1) if sign == "?" else (0, None)
    least = int(repeat[2] or 0)
    if not repeat[3]:
        return least, least
    return least, int(repeat[4]) if repeat[4] else None


def unbounded(pattern: str) -> str | None:
    """Tell why a pattern may take too long on some text.

    Args:
        pattern: A valid regular expression.

    Returns:
        What is wrong with it, to follow after the pattern; None when nothing is.

    """
    return _Scan(pattern).run()
