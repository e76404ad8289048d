"""What a text says about the order of things: before or after an event, the last, the first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ecphoria.language.time_words import blanked
from ecphoria.language.words import flattened

Order: TypeAlias = Literal["latest", "first"]

# What the patterns below are made of, and is long enough to be mistyped.
WORDS: Final = (
    *("before", "prior", "previous", "previously", "earlier", "former", "formerly", "after"),
    *("since", "latest", "newest", "recent", "recently", "first", "earliest", "oldest", "initial"),
    *("current", "present", "moved", "moving", "changed", "change", "switched", "updated"),
    *("upgraded", "renewed", "repaired", "mended", "serviced", "bought", "ordered", "purchased"),
    *("placed", "returned", "delivered", "replaced", "brought"),
)

# What changed stands within so many characters before its 之前.
_NEAR = 12
_L, _R = r"(?<![a-z0-9])", r"(?![a-z0-9])"
_HAN = r"[\u3400-\u9fff]"

# "before" alone, or before the one that holds now, asks for what used to be: no event is named
_NOT_NOW = (
    r"(?!(?:the|my|this|that|our|its)? ?"
    r"(?:current|present|new|newest|latest|existing|last|this|that)"
    r"(?: [a-z]+)?(?! ?[a-z0-9\u3400-\u9fff])"
    r"|(?:it|that|this|them|then|now|long|noon|midnight|lunch|tomorrow|next|anyone|everyone|all"
    r"|else)"
    r"(?! ?[a-z\u3400-\u9fff]))"
)
_BEFORE_EN = re.compile(
    rf"{_L}(?P<word>before|prior to){_R}(?: (?:and|or) after)? ?{_NOT_NOW}"
    rf"(?P<event>[a-z{_HAN[1:-1]}])"
)
_AFTER_EN = re.compile(
    rf"{_L}(?:after|ever since) "
    r"(?!(?:that|this|all|sales?|hours|a while|noon|midnight|lunch|tomorrow|next|now|which)"
    r"(?![a-z]))(?=[a-z])"
    rf"|{_L}before (?:and|or) after (?=[a-z])"
    rf"|{_L}following (?:the|my|its|our|that) (?=[a-z])"
    # "since the screen is broken" gives a reason
    rf"|{_L}since (?:the|my|its|his|her|our|their|that|last)(?: [a-z-]+){{1,2}}(?= ?(?:[?.!,;]|$))"
    rf"|{_L}since (?:i|we|it|they|he|she) (?:was|were|got|had|bought|received|sent|came|went|moved"
    rf"|changed|returned){_R}"
)
# who or what stands before a 之前 that names no event, e.g. 我之前的地址
_NO_EVENT = r"(?<![我你您他她它们咱在的是从还这那比就都也早个久么想要])"
_BEFORE_ZH = re.compile(
    rf"(?<=[{_HAN[1:-1]}a-z]){_NO_EVENT}(?<!现在)(?<!目前)(?<!当前)(?P<word>[之以]前)"
    rf"|(?<={_HAN})(?<![目以之从先当提眼面跟日空此午年天月周个到我你他她它的])前"
    r"(?![天台面置摄门后往年端任几两三一二\d盖者提途景边方排段阵次])"
)
_AFTER_ZH = re.compile(
    rf"(?<=[{_HAN[1:-1]}a-z])(?<![在从这那此我你您他她它们])[之以]后"
    rf"|(?<={_HAN})(?<![售最然以今随前先背落事日往此之而午饭其延推退幕])后"
    r"(?![天面来盖置壳背台续方门边排期果摄轮座悔者半镜])"
)
# an event that gives something another value: what was before it is history
_CHANGE_EN = re.compile(
    r"[^.,;?!]{0,24}?(?<![a-z])(?:mov(?:e|ed|ing)|chang(?:e|ed|es|ing)|switch(?:ed|ing)?"
    r"|updat(?:e|ed|ing)|upgrad(?:e|ed|ing)|renew(?:ed|al|ing)?)(?![a-z])"
)
_CHANGE_ZH = re.compile(
    r"(?:搬家|搬|更换|换|更改|变更|变动|变|改|更新|升级|降级|升降级|调级|调整)[了过]?(?:新|号码?|地址|电话|手机号?|快递(?:公司)?|物流|等级|邮箱|银行卡)?$"
    # 在用现在这个号码之前: before the one that holds now
    r"|(?:现在|目前|当前)[这的][个家级档种]?[\u3400-\u9fff]{0,4}$"
)

_LATEST: Final = re.compile(
    rf"{_L}(?:latest|most recent(?:ly)?|newest){_R}"
    rf"|{_L}(?:repaired|fixed|mended|serviced|bought|ordered|purchased|placed|returned|delivered"
    rf"|changed|replaced|opened|paid|sent|(?:bring|brought|hand|handed|send|sent) in) last{_R}"
    rf"|{_L}not long ago{_R}"
    rf"|{_L}(?<!at )(?:the|repair|service|workshop) last(?= ?(?:[,.?!;]|and |$))"
    rf"|(?<!at ){_L}last (?!(?:name|digits?|four|few|couple|of|long|longer|one|ones|day|night"
    rf"|minute|chance|resort|stop|forever|until|for|as|than){_R})(?=[a-z])"
    r"|最近(?:的?一|的?那|的?上一)[次回笔单个台部张条]"
    r"|最近的(?!.{0,4}(?:店|网点|站|地方|地点|中心|服务))|最近(?=买|购|下单|订|修)"
    r"|最后(?=送|修|买|下单|寄|拿去)|刚刚?(?=送|买|下单|订|修|寄|拿去)|上一?[次回]|最新|最后一?[次回笔单个台部张条]"
)
_FIRST: Final = re.compile(
    rf"{_L}first (?!(?:name|of all|floor|class|aid|half|quarter|and foremost){_R})(?=[a-z])"
    rf"|{_L}(?:earliest|oldest|very first|initial){_R}"
    r"|第一[次回个台部笔单张件条]|首[次单]|最早|最初|最先|头一?[次回]"
)


@dataclass(frozen=True, slots=True)
class EventWords:
    """What a text says about the order of things.

    Attributes:
        order: Whether the last or the first of several is meant.
        order_at: Where in the flattened text the word for that stands.
        before_event: What was before something that happened is asked for.
        after_event: What was after something that happened is asked for.
        before_change: The event gave something another value: before it is history.
        before_at: Where in the flattened text the words stand that say "before" of an event.
    """

    order: Order | None = None
    order_at: tuple[int, int] | None = None
    before_event: bool = False
    after_event: bool = False
    before_change: bool = False
    before_at: tuple[tuple[int, int], ...] = ()


def event_words(text: str) -> EventWords:
    """Return what a text says about the order of things; times ("before May") are no events."""
    left = blanked(flattened(text))
    before = [*_BEFORE_EN.finditer(left), *_BEFORE_ZH.finditer(left)]
    latest, first = _LATEST.search(left), _FIRST.search(left)
    order: Order | None = None
    if (latest is None) != (first is None):
        order = "latest" if latest else "first"
    told = latest or first if order else None
    return EventWords(
        order=order,
        order_at=told.span() if told else None,
        before_event=bool(before),
        after_event=bool(_AFTER_EN.search(left) or _AFTER_ZH.search(left)),
        before_change=any(_is_change(match, left) for match in before),
        before_at=tuple(sorted(match.span("word") for match in before if match["word"])),
    )


def _is_change(match: re.Match[str], text: str) -> bool:
    if match.re is _BEFORE_EN:
        return _CHANGE_EN.match(text, match.start("event")) is not None
    return _CHANGE_ZH.search(text[max(match.start() - _NEAR, 0) : match.start()]) is not None
