"""The token budget: any 24 hours on end, requests under way included."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from ecphoria.chat.budget import TokenBudget
from ecphoria.clock import Clock
from ecphoria.errors import ChatFailed


class Time:
    def __init__(self):
        self.now = NOW

    def pass_(self, **time):
        self.now += timedelta(**time)

    @property
    def clock(self):
        return Clock(now=lambda: self.now)


@pytest.fixture
def time():
    return Time()


def spend(budget, most, used=None):
    with budget.spending(most) as spending:
        if used is not None:
            spending.used = used


def test_what_was_used_counts_not_what_was_set_aside(time):
    budget = TokenBudget(100, time.clock)
    spend(budget, 90, used=10)
    assert budget.used == 10
    spend(budget, 90, used=90)
    assert budget.used == 100


def test_a_request_that_was_given_up_counts_in_full(time):
    budget = TokenBudget(100, time.clock)
    with pytest.raises(TimeoutError), budget.spending(60):
        raise TimeoutError
    assert budget.used == 60


def test_used_up_says_so_with_the_setting_to_change(time):
    budget = TokenBudget(100, time.clock)
    spend(budget, 70)
    with pytest.raises(ChatFailed) as caught:
        spend(budget, 31)
    assert caught.value.message == (
        "the chat model's budget is used up: 70 of 100 tokens in 24 hours "
        "(ECPHORIA_CHAT_TOKENS_PER_DAY), and this request may take 31"
    )
    assert budget.used == 70


def test_nothing_is_allowed_with_a_budget_of_nothing(time):
    with pytest.raises(ChatFailed, match="0 of 0 tokens"):
        spend(TokenBudget(0, time.clock), 1)


def test_it_is_any_24_hours_not_a_calendar_day(time):
    budget = TokenBudget(100, time.clock)
    spend(budget, 60)
    time.pass_(hours=12)
    spend(budget, 40)
    time.pass_(hours=11, minutes=59)
    with pytest.raises(ChatFailed):
        spend(budget, 1)
    time.pass_(minutes=2)
    assert budget.used == 40
    time.pass_(hours=12)
    assert budget.used == 0


def test_a_clock_that_is_set_back_forgets_nothing(time):
    budget = TokenBudget(100, time.clock)
    spend(budget, 60)
    time.pass_(hours=-2)
    spend(budget, 30)
    assert budget.used == 90
    time.pass_(hours=27)
    assert budget.used == 0


def test_memory_stays_small_however_many_requests(time):
    budget = TokenBudget(10**9, time.clock)
    for _ in range(5_000):
        spend(budget, 1)
        time.pass_(seconds=30)
    assert len(budget._spent) <= 24 * 60 + 2


async def test_requests_at_the_same_time_do_not_overdraw(time):
    budget = TokenBudget(100, time.clock)
    begun, refused = 0, 0
    finish = asyncio.Event()

    async def request():
        nonlocal begun, refused
        try:
            with budget.spending(30) as spending:
                begun += 1
                await finish.wait()
                spending.used = 5
        except ChatFailed:
            refused += 1

    async def let_them_finish():
        finish.set()

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(request())
        # tasks begin in their order, so this one when the others wait
        group.create_task(let_them_finish())
    assert (begun, refused, budget.used) == (3, 5, 15)


@given(
    st.lists(
        st.tuples(st.integers(0, 3 * 86_400), st.integers(0, 50), st.integers(0, 50)), max_size=30
    )
)
def test_no_24_hours_ever_use_more_than_the_budget(steps):
    time = Time()
    budget = TokenBudget(100, time.clock)
    spent = []
    for seconds, most, used in steps:
        time.pass_(seconds=seconds)
        try:
            spend(budget, most, used=min(most, used))
        except ChatFailed:
            day = [
                tokens for at, tokens in spent if time.now - at <= timedelta(hours=24, minutes=2)
            ]
            assert sum(day) + most > 100
        else:
            spent.append((time.now, min(most, used)))
    for end, _ in spent:
        within = [tokens for at, tokens in spent if end - timedelta(hours=24) < at <= end]
        assert sum(within) <= 100
