"""Many clients at once: every question is asked once, and no bad answer passes for a good one."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.data import Asked
from benchmarks.figures import Series
from benchmarks.latency import Load, load_table, under_load
from rich.console import Console
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from ecphoria_graphql.app import GRAPHQL_PATH
from ecphoria_graphql.server import running_server

GOOD = {"data": {"recall": {"degradations": []}}}
BAD = {
    "lost": (GOOD, 503),
    "refused": ({"errors": [{"message": "no such user"}]}, 200),
    "partial": ({"data": {"recall": {"degradations": ["search unavailable"]}}}, 200),
}


def shop(asked):
    """Return an application that answers badly where the question says so."""

    async def answer(request):
        variables = (await request.json())["variables"]
        asked.append((variables["question"], request.headers["Authorization"]))
        body, status = BAD.get(variables["question"], (GOOD, 200))
        return JSONResponse(body, status)

    return Starlette(routes=[Route(GRAPHQL_PATH, answer, methods=["POST"])])


async def asked_by(clients, texts, requests):
    asked, ticks = [], []
    async with running_server(shop(asked)) as url:
        found = await under_load(
            url,
            "secret",
            [Asked("u", text) for text in texts],
            clients=clients,
            requests=requests,
            tick=lambda: ticks.append(1),
        )
    return found, asked, ticks


@pytest.mark.parametrize("clients", [1, 4])
async def test_all_clients_together_ask_each_question_as_often_as_wanted(clients):
    found, asked, ticks = await asked_by(clients, ["a", "b", "c"], 9)

    # each client has asked the first one to warm up
    assert Counter(text for text, _ in asked) == {"a": 3 + clients, "b": 3, "c": 3}
    assert {key for _, key in asked} == {"Bearer secret"}
    assert (len(found.times), found.errors, len(ticks)) == (9, Counter(), 9)


async def test_errors_and_partial_answers_are_counted_and_not_timed():
    found, _, _ = await asked_by(2, ["good", *BAD], 8)

    assert len(found.times) == 2
    assert found.errors.total() == 6
    assert found.errors["HTTP 503"] == 2
    assert found.errors["left out: search unavailable"] == 2
    assert any("no such user" in name for name in found.errors)


async def test_a_server_that_is_gone_is_an_error():
    async with running_server(shop([])) as url:
        pass

    found = await under_load(url, "", [Asked("u", "a")], clients=2, requests=4, tick=int)

    assert found.errors == {"ConnectError": 4}
    assert "p50_ms" not in found.figures()


def test_the_table_shows_throughput_tail_and_errors():
    load = Load(8, 2.0, [10.0, 30.0, 50.0], Counter({"HTTP 503": 2}))
    figures = load.figures()

    assert (figures["requests"], figures["a_second"], figures["p50_ms"]) == (5, 1.5, 30.0)
    console = Console(record=True, width=120)
    console.print(load_table("embedded", {"1000": {"under_load": [figures]}}))
    row = next(line for line in console.export_text().splitlines() if "1,000" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [
        *("1,000", "8", "5", "1.5", "30", "48", "50", "2")
    ]


def test_ratios_are_taken_pair_by_pair_and_of_the_tails():
    series = Series({"ours": [2.0, 4.0, 9.0], "raw": [1.0, 4.0, 3.0]})

    ratio = series.ratio("ours", "raw")

    assert (ratio["p50"], ratio["of_p50"]) == (2.0, 1.333)
    assert ratio["of_p99"] == pytest.approx(8.9 / 3.98, abs=0.001)
