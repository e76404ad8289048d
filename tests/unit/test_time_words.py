"""What a question says about when, in the asker's own days."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.language.time_words import blanked, time_windows, time_words
from ecphoria.language.words import flattened

SHANGHAI = ZoneInfo("Asia/Shanghai")
NEW_YORK = ZoneInfo("America/New_York")
# a Wednesday, noon in Shanghai
NOW = datetime(2026, 3, 11, 4, tzinfo=UTC)


def local(text):
    if text == "":
        return None
    return datetime.fromisoformat(text).replace(tzinfo=SHANGHAI).astimezone(UTC)


def windows(text, now=NOW, zone=SHANGHAI):
    return [(window.start, window.end) for window in time_windows(text, now, zone)]


DAY = "2026-03-11"
ONE_WINDOW = [
    ("今天", "2026-03-11", "2026-03-12"),
    ("昨天", "2026-03-10", "2026-03-11"),
    ("前天", "2026-03-09", "2026-03-10"),
    ("昨天上午", "2026-03-10T05:00", "2026-03-10T12:00"),
    ("昨晚", "2026-03-10T18:00", "2026-03-11T06:00"),
    ("上周三下午", "2026-03-04T12:00", "2026-03-04T18:00"),
    ("上星期日", "2026-03-08", "2026-03-09"),
    ("周三", "2026-03-11", "2026-03-12"),
    ("周四", "2026-03-05", "2026-03-06"),
    ("上周末", "2026-03-07", "2026-03-09"),
    ("上上周", "2026-02-23", "2026-03-02"),
    ("这周一直没收到", "2026-03-09", "2026-03-16"),
    ("上个月", "2026-02-01", "2026-03-01"),
    ("上个月25号", "2026-02-25", "2026-02-26"),
    ("上月初", "2026-02-01", "2026-02-11"),
    ("去年", "2025-01-01", "2026-01-01"),
    ("去年下半年", "2025-07-01", "2026-01-01"),
    ("去年第四季度", "2025-10-01", "2026-01-01"),
    ("今年三月", "2026-03-01", "2026-04-01"),
    ("三月份买的", "2026-03-01", "2026-04-01"),
    ("四月", "2025-04-01", "2025-05-01"),
    ("2025年3月", "2025-03-01", "2025-04-01"),
    ("２０２５年３月", "2025-03-01", "2025-04-01"),
    ("二〇二五年三月", "2025-03-01", "2025-04-01"),
    ("25年3月", "2025-03-01", "2025-04-01"),
    ("3月5日", "2026-03-05", "2026-03-06"),
    ("十二月二十五号", "2025-12-25", "2025-12-26"),
    ("二十五号", "2026-02-25", "2026-02-26"),
    ("2月29日", "2024-02-29", "2024-03-01"),
    ("三天前", "2026-03-08", "2026-03-09"),
    ("2 周前", "2026-02-22", "2026-03-01"),
    ("半年前", "2025-08-27", "2025-09-27"),
    ("几天前", "2026-03-02", "2026-03-11"),
    ("最近两周", "2026-02-25", "2026-03-12"),
    ("近30天", "2026-02-09", "2026-03-12"),
    ("过去一年", "2025-03-11", "2026-03-12"),
    ("自去年以来", "2025-01-01", ""),
    ("从上周开始", "2026-03-02", ""),
    ("从3月到现在", "2026-03-01", ""),
    ("3月5日之前", "", "2026-03-05"),
    ("2025年5月前", "", "2025-05-01"),
    ("截至2月底", "", "2026-03-01"),
    ("2月以后", "2026-03-01", ""),
    ("2025年3月1日至3月5日", "2025-03-01", "2025-03-06"),
    ("去年3月到5月", "2025-03-01", "2025-06-01"),
    ("today", "2026-03-11", "2026-03-12"),
    ("yesterday morning", "2026-03-10T05:00", "2026-03-10T12:00"),
    ("the day before yesterday", "2026-03-09", "2026-03-10"),
    ("last night", "2026-03-10T18:00", "2026-03-11T06:00"),
    ("last week", "2026-03-02", "2026-03-09"),
    ("the week before last", "2026-02-23", "2026-03-02"),
    ("last Wednesday afternoon", "2026-03-04T12:00", "2026-03-04T18:00"),
    ("on Wednesday", "2026-03-11", "2026-03-12"),
    ("Friday last week", "2026-03-06", "2026-03-07"),
    ("last month", "2026-02-01", "2026-03-01"),
    ("earlier this month", "2026-03-01", "2026-04-01"),
    ("last year", "2025-01-01", "2026-01-01"),
    ("in March", "2026-03-01", "2026-04-01"),
    ("in May", "2025-05-01", "2025-06-01"),
    ("last March", "2025-03-01", "2025-04-01"),
    ("my January order", "2026-01-01", "2026-02-01"),
    ("in March 2025", "2025-03-01", "2025-04-01"),
    ("March of last year", "2025-03-01", "2025-04-01"),
    ("early March", "2026-03-01", "2026-03-11"),
    ("on 5 March", "2026-03-05", "2026-03-06"),
    ("on March 5th, 2025", "2025-03-05", "2025-03-06"),
    ("on the 25th", "2026-02-25", "2026-02-26"),
    ("2025-03-05", "2025-03-05", "2025-03-06"),
    ("2025/3/5", "2025-03-05", "2025-03-06"),
    ("2025-03-05T10:00:00Z", "2025-03-05", "2025-03-06"),
    ("in 2025", "2025-01-01", "2026-01-01"),
    ("Q1", "2026-01-01", "2026-04-01"),
    ("in Q3", "2025-07-01", "2025-10-01"),
    ("the first quarter of 2025", "2025-01-01", "2025-04-01"),
    ("2 weeks ago", "2026-02-22", "2026-03-01"),
    ("three days ago", "2026-03-08", "2026-03-09"),
    ("3 hours ago", "2026-03-11T08:30", "2026-03-11T09:30"),
    ("the past month", "2026-02-11", "2026-03-12"),
    ("the last 30 days", "2026-02-09", "2026-03-12"),
    ("since January", "2026-01-01", ""),
    ("before May 2025", "", "2025-05-01"),
    ("until the end of February", "", "2026-03-01"),
    ("after February", "2026-03-01", ""),
    ("between March and May 2025", "2025-03-01", "2025-06-01"),
    ("from 1 March to 5 March", "2026-03-01", "2026-03-06"),
    ("between November and February", "2025-11-01", "2026-03-01"),
]


@pytest.mark.parametrize(("text", "start", "end"), ONE_WINDOW)
def test_a_time_word_is_a_window_of_the_askers_days(text, start, end):
    assert windows(text) == [(local(start), local(end))]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2月31日",
        "31 February",
        "2025-02-31",
        "2025-13-01",
        "within 30 days",
        "30天内能退吗",
        "how many days",
        "3-5 days",
        "三个月的保修",
        "after 18:00",
        "18点以后",
        "order 20250615",
        "订单20250305",
        "#W2025030",
        "W2025-03-05",
        "2025-03-05-001",
        "serial 2025-03-05X",
        "may I return it",
        "you may march on",
        "a refund of 2000",
        "every Monday",
        "on Mondays",
        "Monday to Friday",
        "每周一",
        "周一到周五",
        "一周一次",
        "中山路25号",
        "5号楼",
        "on the 5th floor",
        "the Audi Q3",
        "tomorrow",
        "next week",
        "下周三",
        "明年3月",
        "下个月5号",
        "一直",
    ],
)
def test_no_window(text):
    assert windows(text) == []


def test_several_windows_stand_in_the_order_of_the_text():
    text = "昨天说的, not the one of last week, 也不是2025年3月5日"
    assert [window.text for window in time_windows(text, NOW, SHANGHAI)] == [
        "昨天",
        "last week",
        "2025年3月5日",
    ]


def test_the_day_is_that_of_the_time_zone():
    late = datetime(2026, 3, 11, 20, tzinfo=UTC)
    assert windows("今天", late) == [(local("2026-03-12"), local("2026-03-13"))]
    (found,) = windows("today", late, NEW_YORK)
    assert found == (datetime(2026, 3, 11, 4, tzinfo=UTC), datetime(2026, 3, 12, 4, tzinfo=UTC))


def test_a_day_on_which_the_clocks_change_has_23_hours():
    after = datetime(2026, 3, 9, 12, tzinfo=UTC)
    ((start, end),) = windows("yesterday", after, NEW_YORK)
    assert end - start == timedelta(hours=23)


@pytest.mark.parametrize("year", [1, 9999])
def test_at_the_ends_of_the_calendar_nothing_is_raised(year):
    for month, day in ((1, 1), (12, 31)):
        now = datetime(year, month, day, 12, tzinfo=UTC)
        for text, _, _ in ONE_WINDOW:
            for zone in (SHANGHAI, NEW_YORK):
                time_windows(text, now, zone)


PIECES = st.sampled_from(
    (
        "上周", "上个月", "三", "月", "5", "日", "号", "前", "之前", "到", "至",
        "2025", "年", "-", "最近", "两", "天", "last", "week", "in", "March", "5th",
        "of", "31", "February", "since", "before", "Q1", "ago", "0", "00", "99", "十",
        "半", "几", "次", "the", "past", "从", "以来", "昨天", "morning", "，", ".",
        "\x00", "/", "İ", "ﬁ",
    )
)  # fmt: skip
MOMENTS = st.datetimes(timezones=st.sampled_from([UTC, SHANGHAI, NEW_YORK]))


@given(st.one_of(st.text(), st.lists(PIECES).map("".join), st.lists(PIECES).map(" ".join)), MOMENTS)
def test_any_text_at_any_moment_gives_ordered_windows(text, now):
    found = time_windows(text, now, SHANGHAI)
    assert found == time_windows(text, now, SHANGHAI)
    for window in found:
        assert window.start is not None or window.end is not None
        if window.start is not None and window.end is not None:
            assert window.start < window.end
        assert all(end is None or end.tzinfo is UTC for end in (window.start, window.end))


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
def test_time_words_do_not_overlap_and_blanking_keeps_places(text):
    flat = flattened(text)
    words = time_words(flat)
    assert all(one.end <= other.start for one, other in pairwise(words))
    blank = blanked(flat)
    assert len(blank) == len(flat)
    assert all(flat[place] == char for place, char in enumerate(blank) if char != "\x00")


@given(st.integers(10**4, 10**12), st.sampled_from(["{}", "#{}", "订单{}", "order W{}", "REP-{}x"]))
def test_no_id_is_a_date(number, written):
    assert windows(written.format(number)) == []


@given(st.dates(date(2020, 1, 1), date(2026, 3, 11)))
def test_a_day_of_the_past_is_read_back_in_both_languages(day):
    start = datetime(day.year, day.month, day.day, tzinfo=SHANGHAI).astimezone(UTC)
    wanted = [(start, start + timedelta(days=1))]
    for text in (f"{day:%Y-%m-%d}", f"{day.year}年{day.month}月{day.day}日", f"on {day:%d %B %Y}"):
        assert windows(text) == wanted


@given(st.integers(1, 12), st.dates(date(1990, 1, 1), date(2050, 1, 1)))
def test_a_month_without_a_year_is_the_latest_that_has_begun(month, day):
    now = datetime(day.year, day.month, day.day, tzinfo=UTC)
    ((start, end),) = windows(f"{month}月", now, ZoneInfo("UTC"))
    assert start.month == month
    assert start <= now < start + timedelta(days=366)
    assert end - start <= timedelta(days=31)


def test_a_long_text_is_read_to_its_end():
    # there is no time limit: what reads again and again does not come back
    for unit in ("上周", "最近", "三天前", "5 ", "in may ", "1月", "- 2025", "a"):
        time_windows(unit * (20_000 // len(unit)), NOW, SHANGHAI)
