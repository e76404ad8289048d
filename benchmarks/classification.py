"""Measure how often a text gets the right topic, in the words of two sets of sentences.

The first set is the memories of the after-sales benchmark, made by its generator; the second is
`wordings.py`. Both have the benchmark's topics; `ACCEPTED` says which topics of the shipped domain
they are.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.figures import percentile
from benchmarks.wordings import WORDINGS
from ecphoria.language.folding import language_of
from ecphoria.language.lexicon import Lexicon
from ecphoria_schema.domain import shipped_domain

RESULTS: Final = Path(__file__).with_name("classification.json")
SMALLTALK: Final = "smalltalk"
LANGUAGES: Final = ("en", "zh")

# Topic of the benchmark -> topics of the domain of which the first one found must be one.
# Decided before the domain's words were chosen. A rule (`policy`) is about what it rules.
ACCEPTED: Final[Mapping[str, tuple[str, ...]]] = {
    "purchase_note": ("order_status", "warranty"),
    "repair_note": ("repair",),
    "intake_note": ("repair", "fault"),
    "serial_note": ("device_info",),
    "order_refund": ("refund",),
    "review": ("review",),
    "warranty_note": ("warranty",),
    "it_usage": ("usage",),
    "repair": ("repair", "fault"),
    "order_delay": ("logistics", "logistics_complaint"),
    "complaint": ("fault", "complaint"),
    "coupon": ("promotion",),
    "tier": ("membership",),
    "address": ("address",),
    "courier": ("courier", "logistics"),
    "phone": ("contact",),
    "contact": ("contact_preference", "written_contact"),
    "texting": ("written_contact", "contact_preference"),
    "invoice": ("invoice",),
    "gift": ("gift",),
    "parcel": ("delivery_preference",),
    "stairs": ("building_access", "address"),
    "refund_to": ("refund_method", "refund"),
    "usage": ("usage", "fault"),
    "sealed": ("packaging",),
    "accessory": ("packaging",),
    "water": ("fault", "repair"),
    "policy": ("warranty", "repair", "return_exchange", "refund"),
    SMALLTALK: (),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text, its language, and its topic as the benchmark names it."""

    text: str
    lang: str
    topic: str


def of_benchmark(file: Path) -> tuple[Sentence, ...]:
    """Read the memories that the benchmark's generator wrote.

    Raises:
        KeyError: When a memory has no topic, language or text, or a topic that is not known.
        ValueError: When a line is no JSON.
    """
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return tuple(_known(Sentence(row["text"], row["lang"], row["topic"])) for row in rows)


def of_wordings() -> tuple[Sentence, ...]:
    """Return the sentences in other words."""
    lines = (line.partition("|") for line in WORDINGS.strip().splitlines())
    return tuple(_known(Sentence(text, language_of(text), topic)) for topic, _, text in lines)


def _known(sentence: Sentence) -> Sentence:
    if sentence.topic not in ACCEPTED:
        raise KeyError(sentence.topic)
    return sentence


def is_right(topic: str, found: Sequence[str]) -> bool:
    """Whether the topics found are right for a topic of the benchmark."""
    accepted = ACCEPTED[topic]
    return found[0] in accepted if found and accepted else not found and not accepted


def measure(sentences: Iterable[Sentence], lexicon: Lexicon) -> dict[str, Any]:
    """Return how many sentences were right, by topic and language, and what one took."""
    counts: dict[str, dict[str, list[int]]] = {}
    times: list[float] = []
    for sentence in sentences:
        start = time.perf_counter()
        found = lexicon.classify(sentence.text).topics
        times.append((time.perf_counter() - start) * 1000)
        count = counts.setdefault(sentence.topic, {}).setdefault(sentence.lang, [0, 0])
        count[0] += is_right(sentence.topic, found)
        count[1] += 1
    return {
        "topics": {
            topic: {
                lang: {"right": right, "of": of} for lang, (right, of) in sorted(by_lang.items())
            }
            for topic, by_lang in sorted(counts.items())
        },
        "right_share": {
            name: _share(counts, langs)
            for name, langs in (("all", LANGUAGES), ("en", ("en",)), ("zh", ("zh",)))
        },
        "smalltalk_share": _share(counts, LANGUAGES, only=SMALLTALK),
        "classify_p50_ms": round(percentile(times, 50), 3),
        "classify_p95_ms": round(percentile(times, 95), 3),
    }


def _share(
    counts: Mapping[str, Mapping[str, Sequence[int]]],
    langs: Sequence[str],
    only: str | None = None,
) -> float | None:
    """Return the share of right ones among those that have a topic, or of one topic."""
    chosen = [
        by_lang[lang]
        for topic, by_lang in counts.items()
        for lang in langs
        if lang in by_lang and (topic == only if only else topic != SMALLTALK)
    ]
    of = sum(count[1] for count in chosen)
    return round(sum(count[0] for count in chosen) / of, 4) if of else None


def table(name: str, found: Mapping[str, Any]) -> Table:
    """Return the figures of a set of sentences as a table."""
    made = Table(title=f"Topics, {name}", title_justify="left", title_style="bold")
    made.add_column("topic of the benchmark")
    for lang in LANGUAGES:
        made.add_column(f"{lang} right", justify="right")
        made.add_column("share", justify="right")
    last = list(found["topics"])[-1]
    for topic, by_lang in found["topics"].items():
        cells: list[str] = []
        for lang in LANGUAGES:
            count = by_lang.get(lang)
            cells += (
                [f"{count['right']}/{count['of']}", f"{count['right'] / count['of']:.0%}"]
                if count
                else ["", ""]
            )
        made.add_row(topic, *cells, end_section=topic == last)
    shares = found["right_share"]
    made.add_row(
        f"all but {SMALLTALK}: {shares['all']:.1%}",
        *(
            cell
            for lang in LANGUAGES
            for cell in ("", f"{shares[lang]:.1%}" if shares[lang] is not None else "")
        ),
        style="bold",
    )
    return made


def main(given: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.classification", description=__doc__
    )
    parser.add_argument(
        "memories", nargs="*", type=Path, help="memories.jsonl files of the after-sales benchmark"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="file for the figures")
    parser.add_argument("--wrong", action="store_true", help="show sentences with a wrong topic")
    arguments = parser.parse_args(given)
    lexicon = Lexicon(shipped_domain())
    console = Console()
    sets = {"other words": of_wordings()}
    for file in arguments.memories:
        sets[f"benchmark, {file.parent.name}"] = of_benchmark(file)
    results: dict[str, Any] = {}
    for name, sentences in sets.items():
        results[name] = measure(sentences, lexicon)
        console.print(table(name, results[name]))
        console.print(f"{results[name]['classify_p50_ms']} ms a text (p50)", highlight=False)
        if (share := results[name]["smalltalk_share"]) is not None:
            console.print(f"small talk without a topic: {share:.0%}", highlight=False)
        if arguments.wrong:
            _show_wrong(sentences, lexicon, console)
    text = json.dumps(results, ensure_ascii=False, indent=2) + "\n"
    arguments.output.write_text(text, encoding="utf-8")
    console.print(f"Figures written to {arguments.output.name}.", highlight=False)
    return 0


def _show_wrong(sentences: Iterable[Sentence], lexicon: Lexicon, console: Console) -> None:
    for sentence in dict.fromkeys(sentences):
        found = lexicon.topics(sentence.text)
        if not is_right(sentence.topic, found):
            said = ", ".join(found) or "none"
            line = f"{sentence.topic}: {sentence.text} -> {said}"
            console.print(line, highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
