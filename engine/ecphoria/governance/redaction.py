"""Find what identifies a person in a text, and put a placeholder in its place. Pure functions.

Phone numbers, e-mail addresses, Chinese id cards, bank cards and postal addresses, in Chinese and
English; a domain file adds more. What has a checksum is found by it. Ids that the text calls by
what they are (order, tracking number, serial), dates and amounts stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ecphoria.language.folding import language_of
from ecphoria.language.lexicon import narrowed
from ecphoria_schema.domain import Domain, Language

# What stands in the place of what was found.
PLACEHOLDERS: Final[dict[str, dict[Language, str]]] = {
    "phone": {"en": "[phone]", "zh": "[电话]"},
    "email": {"en": "[e-mail]", "zh": "[邮箱]"},
    "id_card": {"en": "[id card]", "zh": "[身份证号]"},
    "bank_card": {"en": "[bank card]", "zh": "[银行卡号]"},
    "address": {"en": "[address]", "zh": "[地址]"},
    "sensitive": {"en": "[sensitive]", "zh": "[敏感信息]"},
}
# Whoever shares something with all users gives the addresses of a business, not of a person.
OF_PERSONS_ALONE: Final = frozenset({"phone", "email", "address"})

# So many characters before a number say what it is.
_LOOK_BACK = 40

# What says right before a number that it is the id of a thing.
_CALLED_ID = re.compile(
    r"(?:#|\b(?:orders?|tracking|serial|ticket|invoice|imei|sku|reference|ref)\b|订单|单号|运单"
    r"|序列号|编号|工单|维修单|流水号|券码|取件码|发票号?|机身码)"
    r"(?: |:|#|-|\(|number|no\.?|code|id\b|is\b|was\b|号码?|为|是){0,8}$",
    re.IGNORECASE,
)

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@"
    r"(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}(?![A-Za-z0-9@-])"
)
_ID_CARD = re.compile(
    r"(?<![0-9A-Za-z])[1-9]\d{5}(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    r"\d{3}[\dXx](?![0-9A-Za-z])"
)
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECKS = "10X98765432"

_CARD = re.compile(
    r"(?<![0-9A-Za-z])(?:\d{4}(?:[ -]\d{4}){2,3}[ -]\d{1,4}|\d{4}[ -]\d{6}[ -]\d{5}|\d{15,19})"
    r"(?![0-9A-Za-z])(?![ -]\d)"
)
_AMEX, _SIXTEEN, _UP_TO_NINETEEN = frozenset({15}), frozenset({16}), frozenset(range(16, 20))
# First digits of a card, from and to, and how long such a card may be (ISO/IEC 7812 issuers).
_ISSUERS: Final = (
    ("34", "34", _AMEX),
    ("37", "37", _AMEX),
    ("4", "4", frozenset({16, 19})),
    ("51", "55", _SIXTEEN),
    ("2221", "2720", _SIXTEEN),
    ("62", "62", _UP_TO_NINETEEN),
    ("60", "60", _UP_TO_NINETEEN),
    ("64", "65", _UP_TO_NINETEEN),
    ("3528", "3589", _SIXTEEN),
    ("9558", "9558", frozenset({19})),
)

_PHONES = (
    # a Chinese mobile number
    re.compile(
        r"(?<![0-9A-Za-z_])(?<![A-Za-z]-)(?:(?:\+|00)?86[- ]?)?"
        r"1[3-9]\d(?:\d{8}|[- ]\d{4}[- ]\d{4})(?![0-9A-Za-z_])"
    ),
    # with the code of a country
    re.compile(
        r"(?<![0-9A-Za-z+])(?:\+|00(?=[1-9]\d{0,2}[ .-]))[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?"
        r"\d{2,4}(?:[ .-]?\d{2,4}){1,4}(?![0-9A-Za-z])"
    ),
    # an area code, then a blank or a hyphen: 021-58881234, 020 7946 0958, 07700 900123
    re.compile(
        r"(?<![0-9A-Za-z.,])(?:\(0\d{2,4}\) ?|0\d{2,4}[- ])"
        r"(?:\d{6,8}|\d{3,4}[- ]\d{3,4})(?:(?:转|-| ext\.? ?)\d{1,5})?(?![0-9A-Za-z])"
    ),
    # (415) 555-0132, 415-555-0132; what begins with 400 or 800 is a hotline
    re.compile(r"(?<![0-9A-Za-z-])(?![48]00-)(?:\(\d{3}\) ?|\d{3}-)\d{3}-\d{4}(?![0-9A-Za-z-])"),
)
# A number that only its name makes a phone number.
_CALLED_PHONE = re.compile(
    r"(?:(?:phone|mobile|cell|contact|telephone) ?(?:number|no\.?)|\btel\.?"
    r"|电话|手机号码?|座机|联系方式)"
    r"(?: is| are|是|为|改成|改为|换成|:| |号|码|已|new|now|changed|to){0,5}"
    r"(\(?\d{3,12}\)?(?:[ .-]\d{3,4}){0,3})(?![0-9A-Za-z]|[.,]\d|-\d)",
    re.IGNORECASE,
)
_DAY = re.compile(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_HOTLINE = re.compile(r"[48]00[- ]?\d")
_FEWEST, _MOST = 7, 15

# Han characters of a place's name: none of the words that lead to one, but where a name has them.
_HAN = (
    r"(?:(?![是在到为址改寄住逛了我您你给搬送至与及请把去往号]|成(?![都安华武固县功])|的(?!坝)"
    r"|和(?![平县田睦顺静])|于(?![洪都田])|将(?![军乐])|从(?!化)|回(?![民龙]))[\u4e00-\u9fff])"
)
_NUMBER = r"[0-9零一二三四五六七八九十百千]"
_REGION = (
    rf"(?:{_HAN}{{2,8}}?(?:省|自治区))?(?:{_HAN}{{2,8}}?(?:市|自治州|盟))?"
    rf"(?:{_HAN}{{1,8}}?(?:区|县|旗|镇|乡|市|街道))?"
)
_ROOMS = (
    r"(?:[ ,]{0,2}(?:[\u4e00-\u9fff]{0,10}?[ ]?[0-9A-Za-z零一二三四五六七八九十百-]{1,8}[ ]?"
    r"(?:号楼|号院|栋|幢|单元|层|楼|室|座|塔|户|房|弄|号))){0,5}"
    r"(?:[ ,]?\d{3,4}(?![0-9A-Za-z年月日元号]))?"
)
_ADDRESSES = (
    # …省…市…区…路88号3栋501室
    re.compile(
        rf"{_REGION}{_HAN}{{1,10}}?(?:路|街|大道|道|巷|弄|胡同|村|里)"
        rf"(?:[东西南北中]?{_NUMBER}{{1,3}}段)?[ ]?{_NUMBER}{{1,6}}(?:-\d{{1,5}})?[ ]?"
        rf"(?:号(?!线)|弄){_ROOMS}"
    ),
    # …小区3栋2单元501室
    re.compile(
        rf"{_REGION}{_HAN}{{2,10}}?(?:小区|花园|公寓|家园|新村|苑|府|城|庭|大厦)"
        rf"[ ]?[0-9A-Za-z零一二三四五六七八九十-]{{1,6}}[ ]?"
        rf"(?:号楼|号院|栋|幢|单元|座|室|期){_ROOMS}"
    ),
    # 12B Baker Street, Flat 3, London NW1 6XE
    re.compile(
        r"(?<![0-9A-Za-z.,/-])\d{1,5}[A-Za-z]?(?:-\d{1,4})?,? "
        r"(?:(?:[NSEW]\.?|North|South|East|West) )?"
        r"(?:(?:[A-Z][A-Za-z'’.-]{1,20}|\d{1,3}(?:st|nd|rd|th)) ){1,4}"
        r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Square|Sq|Place|Pl"
        r"|Way|Terrace|Crescent|Parkway|Pkwy|Highway|Hwy|Close|Row|Gardens|Grove|Mews)\b\.?"
        r"(?: (?:NW|NE|SW|SE|North|South|East|West|[NSEW])\b)?"
        r"(?:,? (?:Apt|Apartment|Flat|Unit|Suite|Ste|Room|Floor|No)\b\.? ?#?[0-9A-Za-z-]{1,6}"
        r"|,? #\d{1,5})?"
        r"(?:(?:, ?[A-Z][A-Za-z.'-]{1,20}(?: [A-Z][A-Za-z.'-]{1,20}){0,2}){0,2}"
        r",? (?:[A-Z]{2},? \d{5}(?:-\d{4})?|\d{5}(?:-\d{4})?"
        r"|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2})"
        r"(?![0-9A-Za-z]))?"
    ),
    # 12 baker street; "2 phones on the road" is none
    re.compile(
        r"(?<![0-9A-Za-z.,/-])\d{1,5}[a-z]? "
        r"(?!(?:days?|hours?|weeks?|months?|years?|orders?|items?|pieces?|times?|more|of|on|in|at|the"
        r"|a|an|for|from|to|my|is|was|per)\b)[a-z'-]{3,15}"
        r"(?: (?!(?:on|in|at|the|a|an|of|for|from|to|my|is|was|by|off|down|across|per)\b)"
        r"[a-z'-]{2,15})?"
        r" (?:street|avenue|road|boulevard|lane)\b"
        r"(?:,? (?:apt|apartment|flat|unit|suite|room)\b\.? ?#?[0-9a-z-]{1,6})?",
        re.IGNORECASE,
    ),
    re.compile(r"\bP\.? ?O\.? ?Box \d{1,6}\b", re.IGNORECASE),
)
# For each of them, what a text without which holds no such address.
_HINTS = (
    re.compile(rf"{_NUMBER}[ ]?(?:号|弄)"),
    re.compile(r"[0-9A-Za-z零一二三四五六七八九十-][ ]?(?:号楼|号院|栋|幢|单元|座|室|期)"),
    re.compile(r"[0-9][A-Za-z]?,? (?:[A-Z]|\d)"),
    re.compile(r"[0-9][A-Za-z]? [a-z'-]{3}", re.IGNORECASE),
    re.compile(r"box", re.IGNORECASE),
)


# Before a placeholder that stands for one given value.
_AS_IS: Final = "="
# A value that is shorter says nothing by itself, and would be found everywhere.
_LEAST_VALUE = 4


@dataclass(frozen=True, slots=True)
class Found:
    """Something that identifies a person, by its place in the text."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Redactor:
    """What is to be found: the rules that every domain has, and those of one domain.

    Attributes:
        own: Name, pattern and placeholders of the domain's own rules.
    """

    own: tuple[tuple[str, re.Pattern[str]], ...] = ()
    own_placeholders: tuple[tuple[str, str, str], ...] = ()

    def placeholder(self, kind: str, lang: Language) -> str:
        """Return what stands in the place of something of a kind."""
        if kind.startswith(_AS_IS):
            return kind.removeprefix(_AS_IS)
        for name, en, zh in self.own_placeholders:
            if name == kind:
                return en if lang == "en" else zh
        return PLACEHOLDERS[kind][lang]

    def find(self, text: str, leave: frozenset[str] = frozenset()) -> tuple[Found, ...]:
        """Return what identifies a person, in order, none within another.

        Args:
            text: Any text.
            leave: Kinds that are left alone.
        """
        return self._found(text, leave, [])

    def _found(self, text: str, leave: frozenset[str], found: list[Found]) -> tuple[Found, ...]:
        # of the same length, so that places are places of the text
        narrow = narrowed(text)
        for kind, finder in _FINDERS:
            if kind not in leave and (kind == "address" or _HINT.search(narrow)):
                _take(found, kind, finder(narrow))
        for name, pattern in self.own:
            _take(found, name, [match.span() for match in pattern.finditer(narrow)])
        return tuple(sorted(found, key=lambda item: item.start))

    def redacted(
        self,
        text: str,
        *,
        lang: Language | None = None,
        hidden: Sequence[tuple[str, str]] = (),
        leave: frozenset[str] = frozenset(),
    ) -> str:
        """Return a text with placeholders; the text itself when there is nothing to hide.

        Args:
            text: Any text.
            lang: Language of the placeholders; that of the text if None.
            hidden: What is to be hidden besides, as it stands in the text, with its placeholder.
            leave: Kinds that are left alone.
        """
        found: list[Found] = []
        for value, placeholder in hidden:
            _take(found, _AS_IS + placeholder, _places(narrowed(text), value))
        found = list(self._found(text, leave, found))
        if not found:
            return text
        spoken = lang or language_of(text)
        pieces: list[str] = []
        done = 0
        for item in found:
            pieces += [text[done : item.start], self.placeholder(item.kind, spoken)]
            done = item.end
        return "".join([*pieces, text[done:]])


def redactor(domain: Domain) -> Redactor:
    """Return what is to be found in the texts of a domain."""
    return _redactor(
        tuple(
            (name, rule.regex, rule.placeholder.en, rule.placeholder.zh)
            for name, rule in domain.redaction.items()
        )
    )


@lru_cache(maxsize=16)
def _redactor(rules: tuple[tuple[str, str, str, str], ...]) -> Redactor:
    return Redactor(
        tuple((name, re.compile(regex)) for name, regex, _, _ in rules),
        tuple((name, en, zh) for name, _, en, zh in rules),
    )


def _take(found: list[Found], kind: str, spans: Iterable[tuple[int, int]]) -> None:
    """Add what overlaps with nothing found before; of what overlaps, the longest."""
    for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if start < end and not any(start < other.end and other.start < end for other in found):
            found.append(Found(start, end, kind))


def _places(text: str, value: str) -> list[tuple[int, int]]:
    """Return where a value stands in a narrowed text, in whatever case and with whatever blanks."""
    words = narrowed(value).split()
    if len("".join(words)) < _LEAST_VALUE:
        return []
    pattern = r"\s+".join(re.escape(word) for word in words)
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


# --- finders -------------------------------------------------------------------------------


def _emails(text: str) -> list[tuple[int, int]]:
    # without a sign there is none: the pattern looks at every word
    return [match.span() for match in _EMAIL.finditer(text)] if "@" in text else []


def _id_cards(text: str) -> list[tuple[int, int]]:
    return [
        match.span()
        for match in _ID_CARD.finditer(text)
        if is_id_card(match[0]) and not _is_called_id(text, match.start())
    ]


def _bank_cards(text: str) -> list[tuple[int, int]]:
    return [
        match.span()
        for match in _CARD.finditer(text)
        if is_bank_card(match[0]) and not _is_called_id(text, match.start())
    ]


def _phone_numbers(text: str) -> list[tuple[int, int]]:
    found = [
        match.span()
        for pattern in _PHONES
        for match in pattern.finditer(text)
        if _has_length(match[0]) and not _is_called_id(text, match.start())
    ]
    # a day or a hotline is none, whatever stands before it
    found += [
        match.span(1)
        for match in _CALLED_PHONE.finditer(text)
        if _has_length(match[1]) and not _DAY.fullmatch(match[1]) and not _HOTLINE.match(match[1])
    ]
    return found


def _addresses(text: str) -> list[tuple[int, int]]:
    # most texts hold none, and the patterns look at every word
    return [
        match.span()
        for pattern, hint in zip(_ADDRESSES, _HINTS, strict=True)
        if hint.search(text)
        for match in pattern.finditer(text)
    ]


# All but addresses have a sign or as many digits as the shortest number.
_HINT = re.compile(r"@|(?:\d[^\d]{0,3}){7}")

_FINDERS: Final[tuple[tuple[str, Callable[[str], list[tuple[int, int]]]], ...]] = (
    ("email", _emails),
    ("id_card", _id_cards),
    ("bank_card", _bank_cards),
    ("phone", _phone_numbers),
    ("address", _addresses),
)


def _has_length(number: str) -> bool:
    return _FEWEST <= sum(char.isdigit() for char in number) <= _MOST


def _is_called_id(text: str, start: int) -> bool:
    """Whether what stands right before a number says that it is the id of a thing."""
    return _CALLED_ID.search(text[max(0, start - _LOOK_BACK) : start]) is not None


def is_id_card(number: str) -> bool:
    """Whether 18 characters are the number of a Chinese id card: ISO 7064 MOD 11-2."""
    total = sum(int(digit) * weight for digit, weight in zip(number[:17], _ID_WEIGHTS, strict=True))
    return _ID_CHECKS[total % 11] == number[17].upper()


def is_bank_card(number: str) -> bool:
    """Whether a number, blanks and hyphens aside, can be that of a bank card.

    Its first digits are those of an issuer, its length is one of theirs, and the Luhn sum is right.
    """
    digits = re.sub(r"[ -]", "", number)
    issued = any(
        first <= digits[: len(first)] <= last and len(digits) in lengths
        for first, last, lengths in _ISSUERS
    )
    return issued and luhn_sum(digits) % 10 == 0


def luhn_sum(digits: str) -> int:
    """Return the sum that a card number's check digit makes a multiple of ten."""
    # the digits of twice a digit, summed
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return sum(int(digit) for digit in digits[::-2]) + sum(doubled)
