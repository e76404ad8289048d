"""How times are written in Chinese and English, and how each is read."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, TypeAlias

from ecphoria.language.counts import EN_COUNT, ZH_COUNT
from ecphoria.language.time_readers import (
    WEEKDAYS,
    Reader,
    read_ago,
    read_date,
    read_day,
    read_day_before_yesterday,
    read_day_of_month,
    read_half_year,
    read_iso,
    read_last_night,
    read_nothing,
    read_part_of_this_year,
    read_past_month,
    read_quarter,
    read_recent,
    read_relative_month,
    read_relative_quarter,
    read_the_other_day,
    read_today_part,
    read_week,
    read_week_before_last,
    read_weekday,
    read_weekend,
    read_whole_year,
)

Table: TypeAlias = tuple[tuple[re.Pattern[str], Reader], ...]

_L, _R = r"(?<![a-z0-9])", r"(?![a-z0-9])"
_WEEKDAY = r"(?P<wd>mon|tue|wed|thu|fri|sat|sun)"
_FULL_WEEKDAY = rf"(?P<wd>{'|'.join(WEEKDAYS)})"
_MONTH = (
    r"(?P<m>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    rf"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?){_R}\.?"
)
# of these no other meaning comes to mind
_CLEAR_MONTH = r"(?P<m>january|february|april|june|july|august|september|october|november|december)"
_WHEN = (
    r"(?:in|during|since|before|until|till|by|from|after|between|throughout|through|to|and|of"
    r"|back in|year)"
)
_YEAR = r"(?P<y>(?:19|20)\d\d)(?![\d]|[-./:]\d)"
_OF_YEAR = rf"(?:,? (?:of )?(?:{_YEAR}|(?P<ry>last|this|next) year))"
_THIRD = r"(?P<third>early|mid|late|(?:the )?(?:start|beginning|middle|end) of)"
_NTH = r"(?P<d>\d{1,2})"
_EN_UNIT = r"(?P<u>minute|min|hour|day|week|month|quarter|year)s?"
_EN_PART = (
    r"(?:(?:'s)?,? (?:in the |at )?(?P<part>morning|noon|afternoon|evening|night)(?![a-z0-9]))?"
)

_ZH_YEAR = (
    r"(?:(?P<y>(?:19|20)\d\d|[一二][零〇一二三四五六七八九]{3}) ?年(?!前)"
    r"|(?P<ry>大前年|前年|去年|今年|本年|明年|后年))"
)
_NO_MONTH = r"(?<![\d第每个半两几一二三四五六七八九十])"
_ZH_MONTH = r"(?P<m>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九]) ?月"
_ZH_DAY = r"(?P<d>[12]\d|3[01]|0?[1-9]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_ZH_THIRD = r"(?P<third>初|上旬|中旬|下旬|底|末|中(?!文|国|心|午|秋|旬|的?间))"
_ZH_PART = r"(?: ?的? ?(?P<part>凌晨|清晨|早晨|早上|上午|中午|下午|傍晚|晚上|夜里))?"
_ZH_UNIT = (
    r"(?P<u>分钟|个?(?:半)?小时|个?钟头|天|日(?![常期])|个?(?:周|星期|礼拜)|个半?月|个季度|年半?)"
)
# what is numbered with 号 and is no day of the month
_NO_DAY = r"(?! ?[楼线门店柜机仓电房院馆厅桌车床口栋单元码字])"

# The first that fits takes the words: the longer forms stand before those they contain. Of a
# group "core" only that is the time word; what is before it only shows that it is one.
_ANY: Final[tuple[tuple[str, Reader], ...]] = (
    (
        (
            r"(?<![\w./:#-])(?P<y>(?:19|20)\d\d)(?P<sep>[-/.])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})"
            r"(?!\d|[-/.:]\d|[a-su-z_]|-[a-z])(?:t\d\d:\d\d[\d:.]*(?:z|[+-]\d\d:?\d\d)?)?"
        ),
        read_iso,
    ),
    (r"(?<![\w./:#-])(?P<y>(?:19|20)\d\d)-(?P<m>0[1-9]|1[0-2])(?![\w]|[-/.:][\da-z])", read_iso),
)
_ZH: Final[tuple[tuple[str, Reader], ...]] = (
    (
        (
            rf"(?<![第月\d])(?<!月 )(?P<n>{ZH_COUNT}) ?(?:多 ?)?{_ZH_UNIT}(?:多)?"
            r"(?:之前|以前|前(?![台面置后]))"
        ),
        read_ago,
    ),
    (
        (
            rf"(?:最近|过去|(?<![附接靠最将])近|(?<![\u3400-\u9fff])前|前(?=[几两])|这(?=[几两]))"
            rf" ?的?这?(?P<n>{ZH_COUNT}) ?{_ZH_UNIT}(?!次)(?:之内|以内|以?来|内|里|中)?"
        ),
        read_recent,
    ),
    (r"(?:半年|半个月)内", read_nothing),
    (
        rf"{_ZH_YEAR} ?的? ?{_ZH_MONTH}份?(?: ?{_ZH_DAY} ?[日号]|{_ZH_THIRD})?{_ZH_PART}",
        read_date,
    ),
    (
        rf"(?<!\d)(?P<y>\d\d) ?年 ?{_ZH_MONTH}份?(?: ?{_ZH_DAY} ?[日号]|{_ZH_THIRD})?{_ZH_PART}",
        read_date,
    ),
    (rf"{_ZH_YEAR} ?的?(?:第? ?(?P<q>[一二三四1-4]) ?季度|q(?P<q2>[1-4]){_R})", read_quarter),
    (rf"{_ZH_YEAR} ?的?(?P<half>[上下])半年", read_whole_year),
    (rf"{_ZH_YEAR}年?{_ZH_THIRD}?", read_whole_year),
    (
        (
            r"(?<!晚)(?P<rel>上上个?|上一?个?|本|这个?)月份?"
            rf"(?: ?{_ZH_DAY} ?[日号]|{_ZH_THIRD})?{_ZH_PART}"
        ),
        read_relative_month,
    ),
    (rf"下+个?月份?(?: ?{_ZH_DAY} ?[日号])?", read_nothing),
    (r"(?P<rel>上一?个?|本|这个?)季度", read_relative_quarter),
    (r"(?<!\d)第?(?P<q>[一二三四1-4]) ?季度", read_quarter),
    (r"(?P<half>[上下])半年", read_half_year),
    (r"(?<![\u3400-\u9fff])年(?P<third>初|底|末)", read_part_of_this_year),
    (
        rf"{_NO_MONTH}{_ZH_MONTH}份?(?! ?[内租供饼])(?: ?{_ZH_DAY} ?[日号]|{_ZH_THIRD})?{_ZH_PART}",
        read_date,
    ),
    (
        (
            r"(?P<rel>上上|上|本|这)(?:一|个)?(?:周|星期|礼拜)"
            r"(?P<wd>[二三四五六日天末](?![次个年常])|[1-6](?!\d|次|个|天)"
            r"|一(?![直些起般样定个共半会次下台部]))?" + _ZH_PART
        ),
        read_week,
    ),
    (
        (
            r"(?:每个?|下+个?)(?:周|星期|礼拜)[一二三四五六日天末]?"
            r"|(?:周|星期|礼拜)[一二三四五六日天] ?[到至] ?(?:周|星期|礼拜)?[一二三四五六日天]"
        ),
        read_nothing,
    ),
    (
        (
            r"(?<![一二两三四五六七八九十几半\d双])(?:周|星期|礼拜)"
            r"(?P<wd>[二三四五六日天](?![次个年常])|一(?![直些起般样定个共半会次下台部]))"
            + _ZH_PART
        ),
        read_weekday,
    ),
    (r"明[天日早晚]|大?后[天日]", read_nothing),
    (rf"(?P<day>大前天|前[天日晚]|昨[天日儿晚夜早晨]|今[天日儿早晨晚]){_ZH_PART}", read_day),
    (
        (
            r"(?<![\da-z路街巷道弄里村区楼栋座园第单编型工批址]) ?"
            rf"(?<!\d){_ZH_DAY} ?号" + _NO_DAY + _ZH_PART
        ),
        read_day_of_month,
    ),
)
_EN: Final[tuple[tuple[str, Reader], ...]] = (
    (rf"{_L}(?:the )?day before yesterday{_R}{_EN_PART}", read_day_before_yesterday),
    (rf"{_L}(?:the )?week before last{_R}", read_week_before_last),
    (rf"{_L}(?P<n>half) a (?P<u>month|year) ago{_R}", read_ago),
    (rf"{_L}(?P<n>{EN_COUNT}) {_EN_UNIT} (?:ago|back){_R}", read_ago),
    (rf"{_L}the other day{_R}", read_the_other_day),
    (
        (
            rf"{_L}(?:past|previous|(?:in|over|during|within|for|of) (?:the|my) last|last"
            rf"|(?:in|over|during|within|for) last) (?P<n>{EN_COUNT}) {_EN_UNIT}{_R}"
        ),
        read_recent,
    ),
    (
        (
            rf"{_L}(?:(?:the|this) past|(?:in|over|during|within) the last)"
            rf" (?P<u>hour|day|week|month|quarter|year){_R}"
        ),
        read_recent,
    ),
    (rf"{_L}last night{_R}", read_last_night),
    (rf"{_L}tonight{_R}", read_today_part),
    (rf"{_L}this (?P<part>morning|afternoon|evening){_R}", read_today_part),
    (rf"{_L}(?:earlier )?(?P<day>yesterday|today){_R}{_EN_PART}", read_day),
    (rf"{_L}(?:(?:the )?day after )?tomorrow{_R}{_EN_PART}", read_nothing),
    (
        (
            rf"(?<![\w.,:/#-])(?:the )?{_NTH}(?:st|nd|rd|th)?(?: of)? {_MONTH}"
            rf"{_OF_YEAR}?{_R}{_EN_PART}"
        ),
        read_date,
    ),
    (
        (
            rf"(?<!\bi )(?<!we )(?<!you )(?<!they ){_L}{_MONTH} (?:the )?{_NTH}"
            rf"(?:st|nd|rd|th)?(?![\d]|[.:/-]\d|[a-z]){_OF_YEAR}?{_EN_PART}"
        ),
        read_date,
    ),
    (rf"{_L}{_THIRD}?[ -]?{_L}{_MONTH}{_OF_YEAR}{_R}", read_date),
    (rf"{_L}{_WHEN} (?P<core>{_THIRD}?[ -]?{_MONTH}){_R}", read_date),
    (rf"{_L}(?P<rel>last|this) {_MONTH}{_R}", read_past_month),
    (rf"{_L}next {_MONTH}{_R}", read_nothing),
    (rf"{_L}{_THIRD}[ -]{_MONTH}{_R}", read_date),
    (rf"{_L}{_CLEAR_MONTH}{_R}", read_date),
    (rf"{_L}(?P<rel>last|previous|this) quarter{_R}", read_relative_quarter),
    (
        (
            rf"{_L}(?:the )?(?:q(?P<q>[1-4])|(?P<q2>first|second|third|fourth|last) quarter)"
            rf"(?:,? (?:of )?(?:{_YEAR}|(?P<ry>last|this) year)){_R}"
        ),
        read_quarter,
    ),
    (rf"{_L}(?:the )?(?P<q>first|second|third|fourth) quarter{_R}", read_quarter),
    # after another word it may be a model
    (rf"(?<![a-z\d])(?<![a-z\d] )q(?P<q>[1-4]){_R}", read_quarter),
    (
        (
            rf"{_L}(?:in|of|since|before|during|until|by|for|from|after|and|to)"
            rf" (?P<core>q(?P<q>[1-4])){_R}"
        ),
        read_quarter,
    ),
    (
        (
            rf"{_L}(?:the )?(?P<half>first|second|latter) half of "
            rf"(?:{_YEAR}|(?P<ry>last|this) year){_R}"
        ),
        read_whole_year,
    ),
    (
        rf"{_L}{_THIRD}[ -](?:{_YEAR}|(?P<ry>last|this) year){_R}",
        read_whole_year,
    ),
    (
        (
            rf"{_L}(?:in|during|since|before|until|till|after|throughout|back in|year)"
            rf" (?P<core>{_YEAR})"
            r"(?! ?(?:k?m|miles?|dollars?|euros?|yuan|rmb|hours?|times|pages?|units?|w|mah|%)"
            r"(?![a-z]))"
        ),
        read_whole_year,
    ),
    (rf"{_L}(?:earlier )?(?P<ry>last|this) year{_R}", read_whole_year),
    (rf"{_L}next (?:week|weekend|month|quarter|year){_R}", read_nothing),
    (
        rf"{_L}{_FULL_WEEKDAY} (?:of )?(?P<rel>last|this) week{_R}{_EN_PART}",
        read_week,
    ),
    (
        rf"{_L}(?:earlier )?(?P<rel>last|this|previous) week(?:'s {_FULL_WEEKDAY})?{_R}{_EN_PART}",
        read_week,
    ),
    (rf"{_L}(?P<rel>last|this|previous) weekend{_R}", read_weekend),
    (rf"{_L}(?:earlier )?(?P<rel>last|previous|this) month{_R}", read_relative_month),
    (
        (
            rf"{_L}(?:next|by|until|till|every|each|before) {_FULL_WEEKDAY}s?{_R}{_EN_PART}"
            rf"|{_L}(?:{'|'.join(WEEKDAYS)}) (?:to|till?|through|until)"
            rf" (?:{'|'.join(WEEKDAYS)}){_R}"
        ),
        read_nothing,
    ),
    (rf"{_L}(?:(?P<rel>last|this|past|on) )?{_FULL_WEEKDAY}{_R}{_EN_PART}", read_weekday),
    (rf"{_L}(?P<rel>last|this|past|on) {_WEEKDAY}{_R}\.?{_EN_PART}", read_weekday),
    (
        (
            rf"{_L}(?:on|since|until|till|by|before|after|from|to|and)"
            rf" (?P<core>the {_NTH}(?:st|nd|rd|th)){_R}"
            r"(?! (?:floor|time|street|avenue|order|attempt|try|repair|day|one|line|generation))"
        ),
        read_day_of_month,
    ),
)


@lru_cache(maxsize=1)
def tables() -> tuple[Table, Table, Table]:
    """Return the patterns of any language, of Chinese and of English; the first that fits counts.

    Compiled when first asked for.
    """
    any_, chinese, english = (
        tuple((re.compile(pattern), read) for pattern, read in table) for table in (_ANY, _ZH, _EN)
    )
    return any_, chinese, english
