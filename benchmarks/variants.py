"""The same question as people also write it: with a slip, in another order, in two languages.

Pure functions over a text and a random generator. Whatever has a digit in it - ids, serial numbers,
models, dates - stays as it is, and stays the only such thing in the text: a slip in an id asks
about something else. Every function gives the text back where it knows no variant of it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

Variant = Callable[[str, random.Random], str]

# Anything with a digit, as far as it goes in letters that ids are made of.
EXACT: Final = re.compile(r"[#A-Za-z0-9/_-]*[0-9][A-Za-z0-9/_-]*")

_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_HAN_RUN: Final = re.compile(r"[\u4e00-\u9fff]+")
_WORD: Final = re.compile(r"(?<![\w'’])[A-Za-z]{5,}(?![\w'’])")
# One letter makes another month of one, and "not" of "now".
_NEVER_EN: Final = frozenset(
    (
        *("january", "february", "march", "april", "june", "july", "august", "september"),
        *("october", "november", "december", "never", "without", "nothing", "nobody", "cannot"),
    )
)
_NEVER_ZH: Final = frozenset("不没未无非别勿年月日号")
# Of a word of so many Han characters, one may be missing and the word is still guessed.
_LEAST_WORD: Final = 3

_KEYS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEXT: Final[Mapping[str, str]] = {
    key: row[max(0, place - 1) : place] + row[place + 1 : place + 2]
    for row in _KEYS
    for place, key in enumerate(row)
}
# Written for each other by people who type by sound.
_SAME_SOUND: Final = (
    "的得地",
    "在再",
    "做作",
    "他她它",
    "是事式试",
    "到道倒",
    "机鸡激基",
    "修休羞",
    "保宝饱",
    "单但丹",
    "订定丁",
    "退推腿",
    "款宽",
    "货获祸",
    "坏怀",
    "换唤幻",
    "快块筷",
    "递弟第",
    "池迟持",
    "屏瓶平",
    "幕木目",
    "电店点",
    "话画化",
    "址止纸",
    "收手首",
    "买卖麦",
    "什甚",
    "怎咋",
    "过果国",
    "还孩环",
    "新心芯",
    "有又友",
    "问文闻",
    "请情清",
    "现线限",
    "期其七",
    "张章",
    "王汪",
    "伟维",
    "芳方",
    "娜那",
    "静净",
    "洋阳",
    "敏民",
)
_SOUNDS_LIKE: Final[Mapping[str, str]] = {
    one: group.replace(one, "") for group in _SAME_SOUND for one in group
}

# A thing at the end that may be said first; what only looks like one has a verb in it.
_EN_END: Final = re.compile(
    r" (?:for|on|in|with|of|from|about|after|before|since) (?:my|the|our)"
    r"(?: (?!still|now|today|valid|late|here)[A-Za-z'-]+(?<!ed)){1,2}(?=\?$)"
)
_EN_CUT: Final = re.compile(r"(?<=[a-z])([.?!;:,])\s+", re.IGNORECASE)
_EN_JOINER: Final = re.compile(r"^(?:and|but|or|so) ", re.IGNORECASE)
_ZH_CUT: Final = re.compile(r"[，,。？?！!；;：:]")
_ZH_TOPIC: Final = re.compile(
    r"^(我的?[^，,。？?！!；;：:]{1,10}?)"
    r"((?:现在|目前|到底|什么|怎么|能不能|可不可以|有没有|是不是|可以|应该|还|能|是|在).{2,})$"
)
_LEAST_PART: Final = {"en": 8, "zh": 2}
_ENDS: Final = "。？！?.! "
_OPENING: Final = {
    "en": ("Hello, ", "Hi there, ", "Quick question: ", "Good afternoon, "),
    "zh": ("你好，", "您好，打扰一下，", "不好意思，", "客服你好，"),
}
_CLOSING: Final = {
    "en": (" Thanks in advance.", " Thank you!", " Please let me know."),
    "zh": ("谢谢！", "麻烦了。", "急，等回复。"),
}

# The same in both languages; the first one is what the other language says for it.
_TRADE: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (("extended warranty", "extra warranty"), ("延保", "延长保修")),
    (("warranty", "warranties", "guarantee"), ("保修", "质保")),
    (("under warranty",), ("在保",)),
    (("repair", "repaired", "repairs", "fixed"), ("维修", "返修", "送修")),
    (("refund", "refunded", "refunds", "reimburse"), ("退款",)),
    (("return",), ("退货",)),
    (("order", "orders"), ("订单",)),
    (("order number",), ("订单号", "单号")),
    (("address", "shipping address", "delivery address"), ("地址", "收货地址")),
    (("coupon", "voucher"), ("优惠券",)),
    (("phone number", "mobile number"), ("手机号", "手机号码", "联系电话")),
    (("courier", "carrier"), ("快递",)),
    (("parcel", "parcels", "package"), ("包裹", "快件")),
    (("invoice", "invoices", "bill"), ("发票",)),
    (("service centre", "workshop"), ("维修站",)),
    (("part", "parts", "component"), ("零件", "配件")),
    (("loan device", "loaner"), ("备用机",)),
    (("charger", "adapter"), ("充电器",)),
    (("firmware",), ("固件",)),
    (("price",), ("价格",)),
    (("member",), ("会员",)),
    (("lift", "elevator"), ("电梯",)),
    (("gift",), ("礼物",)),
    (("device",), ("设备",)),
    (("screen",), ("屏幕",)),
    (("battery",), ("电池",)),
    (("phone", "smartphone"), ("手机",)),
    (("laptop",), ("笔记本电脑",)),
    (("tablet",), ("平板",)),
    (("headphones",), ("耳机",)),
    (("earbuds", "wireless earbuds"), ("耳塞", "无线耳塞")),
    (("portable charger", "power bank"), ("充电宝", "移动电源")),
    (("smart watch", "smartwatch"), ("智能手表", "手表")),
    (("vacuum cleaner", "vacuum"), ("吸尘器",)),
    (("toothbrush",), ("牙刷",)),
    (("kettle",), ("水壶",)),
    (("e-reader",), ("阅读器",)),
    (("thermostat",), ("温控器",)),
    (("mouse",), ("鼠标",)),
    (("keyboard",), ("键盘",)),
    (("camera",), ("相机", "照相机")),
    (("speaker",), ("音箱",)),
)
_MIXED_AT_MOST: Final = 2
_LONG_WORDS: Final = re.compile(
    "|".join(
        word
        for _, zh in _TRADE
        for word in sorted(zh, key=len, reverse=True)
        if len(word) >= _LEAST_WORD
    )
)


def language(text: str) -> str:
    """Return `zh` for a text with a Han character in it, else `en`."""
    return "zh" if _HAN.search(text) else "en"


def exact_parts(text: str) -> list[str]:
    """Return what must never change: whatever has a digit in it."""
    return EXACT.findall(text)


def _spans(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in EXACT.finditer(text)]


def _is_free(start: int, end: int, taken: Iterable[tuple[int, int]]) -> bool:
    return all(end <= first or start >= last for first, last in taken)


# --- a slip --------------------------------------------------------------------------------


def typo(text: str, rng: random.Random) -> str:
    """Change, drop or double one character of a word or a name."""
    return _typo_zh(text, rng) if language(text) == "zh" else _typo_en(text, rng)


def _typo_en(text: str, rng: random.Random) -> str:
    kept = _spans(text)
    words = [
        found
        for found in _WORD.finditer(text)
        if found[0].lower() not in _NEVER_EN and _is_free(*found.span(), kept)
    ]
    if not words:
        return text
    # the first letter is the one that people get right
    word = rng.choice(words)
    place = rng.randrange(word.start() + 1, word.end())
    letter = text[place]
    slips = ["", letter * 2, *_NEXT[letter.lower()]]
    return _put(text, place, rng.choice(slips))


def _typo_zh(text: str, rng: random.Random) -> str:
    slips: list[tuple[int, str]] = []
    for run in _HAN_RUN.finditer(text):
        for place in range(*run.span()):
            letter = text[place]
            if letter in _NEVER_ZH:
                continue
            slips += [(place, other) for other in _SOUNDS_LIKE.get(letter, "")]
            slips.append((place, letter * 2))
    for word in _LONG_WORDS.finditer(text):
        slips += [(place, "") for place in range(*word.span())]
    return _put(text, *rng.choice(slips)) if slips else text


def _put(text: str, place: int, instead: str) -> str:
    return text[:place] + instead + text[place + 1 :]


# --- another order -------------------------------------------------------------------------


def order(text: str, rng: random.Random) -> str:
    """Say the clauses, or the thing that is asked about, in another place.

    Where there is but one clause and no such thing at its edge, a greeting comes before it or
    thanks after it.
    """
    lang = language(text)
    moved = _clauses_zh(text, rng) if lang == "zh" else _clauses_en(text, rng)
    if moved is None:
        moved = _topic_zh(text) if lang == "zh" else _topic_en(text)
    return moved or _with_courtesy(text, lang, rng)


def _cuts(pattern: re.Pattern[str], bare: str, least: int) -> list[re.Match[str]]:
    kept = _spans(bare)
    return [
        cut
        for cut in pattern.finditer(bare)
        if cut.start() >= least and len(bare) - cut.end() >= least and _is_free(*cut.span(), kept)
    ]


def _clauses_en(text: str, rng: random.Random) -> str | None:
    bare = text.rstrip(_ENDS)
    end = text[len(bare) :].strip() or "?"
    cuts = _cuts(_EN_CUT, bare, _LEAST_PART["en"])
    if not cuts:
        return None
    cut = rng.choice(cuts)
    first, second = bare[: cut.start()], _EN_JOINER.sub("", bare[cut.end() :])
    mark = cut[1]
    if mark == ",":
        return f"{_raised(second)}, {_lowered(first)}{end}"
    return f"{_raised(second)}{end} {first}{mark if mark in '.?!' else '.'}"


def _clauses_zh(text: str, rng: random.Random) -> str | None:
    bare = text.rstrip(_ENDS)
    end = text[len(bare) :].strip() or "？"
    cuts = _cuts(_ZH_CUT, bare, _LEAST_PART["zh"])
    if not cuts:
        return None
    cut = rng.choice(cuts)
    return f"{bare[cut.end() :]}，{bare[: cut.start()]}{end}"


def _topic_en(text: str) -> str | None:
    found = _EN_END.search(text)
    if found is None or found.start() < _LEAST_PART["en"]:
        return None
    return f"{_raised(found[0].strip())}, {_lowered(text[: found.start()])}{text[found.end() :]}"


def _topic_zh(text: str) -> str | None:
    bare = text.rstrip(_ENDS)
    found = _ZH_TOPIC.match(bare)
    return None if found is None else f"{found[2]}，{found[1]}{text[len(bare) :] or '？'}"


def _with_courtesy(text: str, lang: str, rng: random.Random) -> str:
    if rng.random() < 0.5:  # noqa: PLR2004 - either
        opening = rng.choice(_OPENING[lang])
        return opening + (text if lang == "zh" else _lowered(text))
    closed = text if text[-1:] in _ENDS else f"{text}{'。' if lang == 'zh' else '.'}"
    return closed + rng.choice(_CLOSING[lang])


def _raised(text: str) -> str:
    # an id keeps its letters as they are
    return text if EXACT.match(text) else text[:1].upper() + text[1:]


def _lowered(text: str) -> str:
    """Return a text that may stand within a sentence: names and "I" keep their capitals."""
    words = text.split(" ", 2)
    named = len(words) > 1 and words[1][:1].isupper() and words[1] not in {"I", "I'm", "I'd"}
    if EXACT.match(text) or words[0] in {"I", "I'm", "I'd", "I've"} or words[0].isupper() or named:
        return text
    return text[:1].lower() + text[1:]


# --- two languages -------------------------------------------------------------------------


def _exchange(lang: str) -> list[tuple[re.Pattern[str], str]]:
    pairs = [
        (word, zh[0]) if lang == "en" else (word, en[0])
        for en, zh in _TRADE
        for word in (en if lang == "en" else zh)
    ]
    # the longest first: a warranty may be an extended one
    pairs.sort(key=lambda pair: -len(pair[0]))
    edge = r"\b" if lang == "en" else ""
    return [
        (re.compile(f"{edge}{re.escape(word)}{edge}", re.IGNORECASE), other)
        for word, other in pairs
    ]


_EXCHANGE: Final = {lang: _exchange(lang) for lang in ("en", "zh")}


def mixed(text: str, rng: random.Random) -> str:
    """Say one or two words of the trade in the other language."""
    lang = language(text)
    taken = _spans(text)
    found: list[tuple[int, int, str]] = []
    for pattern, other in _EXCHANGE[lang]:
        for hit in pattern.finditer(text):
            if _is_free(*hit.span(), taken):
                taken.append(hit.span())
                found.append((*hit.span(), other))
    chosen = rng.sample(found, min(len(found), rng.randint(1, _MIXED_AT_MOST)))
    for start, end, other in sorted(chosen, reverse=True):
        text = f"{text[:start]}{_spaced(text, start, end, other)}{text[end:]}"
    return text


def _spaced(text: str, start: int, end: int, word: str) -> str:
    """Return a word with blanks where letters of the other script would touch it."""
    before = " " if start and text[start - 1].isalnum() else ""
    after = " " if end < len(text) and (text[end].isalnum() or text[end] == "#") else ""
    return f"{before}{word}{after}"


VARIANTS: Final[Mapping[str, Variant]] = {"typo": typo, "order": order, "mixed": mixed}


def varied(kind: str, text: str, *, seed: int, key: str) -> str:
    """Return a variant of a question, the same for the same seed and question.

    Args:
        kind: One of `VARIANTS`.
        text: The question.
        seed: Another seed makes other slips.
        key: Id of the question.
    """
    # cryptography is not the point, sameness is
    return VARIANTS[kind](text, random.Random(f"{seed}:{kind}:{key}"))  # noqa: S311
