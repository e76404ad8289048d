"""Ask the after-sales questions as people also write them: how many fewer are solved?

The data is loaded once. The questions are asked as they are, then with a slip, with their parts in
another order, and with words of the trade in the other language (`variants.py`), each but once and
the same for a seed. With the generator at hand they are asked in other words, too: its own
sentences for the memories, those of `customer_phrasings.py` for the questions. A variant is
compared with the very questions that it varies. No more than 5 points may be lost.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks import customer_phrasings
from benchmarks.after_sales import (
    FILES,
    QUESTIONS,
    Question,
    ask_all,
    read_questions,
    sampled,
    served,
)
from benchmarks.answering import BadData, asking_parser, checked_arguments, in_stores
from benchmarks.report import plain_table
from benchmarks.scoring import LANGUAGES, Report, choose_lines, percent, score, solved
from benchmarks.variants import VARIANTS, varied

PLAIN: Final = "plain"
PARAPHRASE: Final = "paraphrase"
# Points that a variant may lose.
LIMIT: Final = 5.0
RESULTS: Final = "robustness.json"

# A set of phrases for the generator: its own, but for the questions.
_TEMPLATES: Final = """
import importlib.util


def _module(path):
    spec = importlib.util.spec_from_file_location("phrases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_told, _asked = _module({told!r}), _module({asked!r})
MEMORIES, VALUES = _told.MEMORIES, _told.VALUES
PRODUCT_WORDS, FAULT_WORDS = _told.PRODUCT_WORDS, _told.FAULT_WORDS
QUESTIONS = _asked.QUESTIONS
"""


def vary(questions: Sequence[Question], kind: str, seed: int) -> tuple[Question, ...]:
    """Return the variants of those questions that have one."""
    found = (
        replace(item, text=varied(kind, item.text, seed=seed, key=item.id)) for item in questions
    )
    return tuple(new for old, new in zip(questions, found, strict=True) if new.text != old.text)


def reworded(questions: Sequence[Question], other: Sequence[Question]) -> tuple[Question, ...]:
    """Return the questions in the words of another set that asks the same, by id."""
    texts = {item.id: item.text for item in other}
    found = (replace(item, text=texts[item.id]) for item in questions)
    return tuple(new for old, new in zip(questions, found, strict=True) if new.text != old.text)


def paraphrased(
    data: Path, generator: Path, made_with: str, directory: Path
) -> tuple[Question, ...]:
    """Let the generator make the same questions in other words; return all of them.

    Args:
        data: What is asked about.
        generator: The benchmark's `generate.py`.
        made_with: What it was called with to make that, e.g. `--seed 7 --users 60`.
        directory: Where it may write.

    Raises:
        BadData: When it fails, or when it does not make that data.
    """
    templates = directory / "templates.py"
    told = generator.resolve().with_name("templates.py")
    text = _TEMPLATES.format(told=str(told), asked=customer_phrasings.__file__)
    templates.write_text(text, encoding="utf-8")
    made = directory / PARAPHRASE
    command = [sys.executable, str(generator), *shlex.split(made_with)]
    command += ["--templates", str(templates), "--out", str(made)]
    # the reader's own generator
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        msg = f"the generator failed: {done.stderr.strip()}"
        raise BadData(msg)
    for name in FILES:
        if (made / name).read_bytes() != (data / name).read_bytes():
            msg = f"--made-with {made_with!r} makes another {name} than there is in {data}"
            raise BadData(msg)
    return read_questions(made)


def write_questions(source: Path, questions: Sequence[Question], out: Path) -> None:
    """Write questions with what the scorer knows of them, and with their own text."""
    texts = {item.id: item.text for item in questions}
    with source.open(encoding="utf-8") as lines, out.open("w", encoding="utf-8") as kept:
        for line in lines:
            row = json.loads(line)
            if row["id"] in texts:
                changed = row | {"text": texts[row["id"]]}
                kept.write(json.dumps(changed, ensure_ascii=False) + "\n")


def figures(before: Report, after: Report) -> dict[str, Any]:
    """Return what two reports of the same questions say: shares, and points lost.

    Args:
        before: Of the questions as they are.
        after: Of their variants.
    """
    found: dict[str, Any] = {"questions": after["groups"]["all"]["all"]["n"]}
    for language in LANGUAGES:
        was, is_ = solved(before, "all", language), solved(after, "all", language)
        lost = None if was is None or is_ is None else round(100 * (was - is_), 2)
        found[language] = {"before": was, "solved": is_, "lost": lost}
    found["types"] = {
        name: {"before": solved(before, name), "solved": solved(after, name)}
        for name, group in after["groups"].items()
        if group and name != "all"
    }
    return found


def robustness_table(asked: int, found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the table of what each variant loses, in all and by language."""
    title = f"{asked} questions, before and in variants; points lost"
    table = plain_table(title, "variant", "varied", "language", "before", "solved", "lost")
    for kind, each in found.items():
        for language in LANGUAGES:
            one = each[language]
            if one["lost"] is None:
                continue
            lost = f"{one['lost']:.1f}"
            table.add_row(
                *(kind, str(each["questions"])) if language == "all" else ("", ""),
                language,
                percent(one["before"]),
                percent(one["solved"]),
                f"[red]{lost}[/]" if one["lost"] > LIMIT else lost,
                end_section=language == LANGUAGES[-1],
            )
    return table


async def _run(arguments: argparse.Namespace, root: Path, console: Console) -> None:
    out: Path = arguments.answers_dir
    questions = sampled(read_questions(arguments.data), arguments.questions, arguments.seed)
    variants = {kind: vary(questions, kind, arguments.seed) for kind in arguments.variants}
    if arguments.generator is not None:
        made = paraphrased(arguments.data, arguments.generator, arguments.made_with, root)
        variants = {PARAPHRASE: reworded(questions, made)} | variants
    # of a few questions, none may have a word to exchange
    variants = {kind: asked for kind, asked in variants.items() if asked}
    for kind, asked in ((PLAIN, questions), *variants.items()):
        write_questions(arguments.data / QUESTIONS, asked, _file(out, kind, QUESTIONS))
    async with served(arguments.stores, root, arguments.data, console) as (_, client):
        for kind, asked in ((PLAIN, questions), *variants.items()):
            await ask_all(client, asked, _file(out, kind, "answers.jsonl"), console, kind)
    found = {
        kind: _compared(arguments.scorer, out, kind, asked) for kind, asked in variants.items()
    }
    plain = score(
        arguments.scorer, _file(out, PLAIN, QUESTIONS), _file(out, PLAIN, "answers.jsonl")
    )
    console.print(robustness_table(len(questions), found))
    console.print(
        f"as they are: {percent(solved(plain))} of {len(questions)} solved", highlight=False
    )
    results = {
        "stores": arguments.stores,
        "questions": len(questions),
        "seed": arguments.seed,
        "plain": plain,
        "variants": found,
    }
    (out / RESULTS).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    console.print(f"Questions, answers and {RESULTS} written to {out}.", highlight=False)


def _file(out: Path, kind: str, name: str) -> Path:
    return out / f"{kind}.{name}"


def _compared(scorer: Path, out: Path, kind: str, asked: Sequence[Question]) -> dict[str, Any]:
    """Score a variant, and the same questions as they are."""
    ids = {item.id for item in asked}
    same = [_file(out, f"{PLAIN}-as-{kind}", name) for name in (QUESTIONS, "answers.jsonl")]
    for file, name in zip(same, (QUESTIONS, "answers.jsonl"), strict=True):
        choose_lines(_file(out, PLAIN, name), ids, file)
    after = score(scorer, _file(out, kind, QUESTIONS), _file(out, kind, "answers.jsonl"))
    return figures(score(scorer, *same), after)


def main() -> int:
    """Run what the command line asks for."""
    parser = asking_parser(
        "python -m benchmarks.robustness",
        __doc__,
        "the benchmark's generator",
        answers="--answers-dir",
    )
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=tuple(VARIANTS),
        default=tuple(VARIANTS),
        help="default: all",
    )
    parser.add_argument("--questions", type=int, help="vary so many only (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="which slips (default: 1)")
    parser.add_argument("--generator", type=Path, help="generate.py, for questions in other words")
    parser.add_argument(
        "--made-with", help='what the data was made with, e.g. "--seed 7 --users 60"'
    )
    arguments = checked_arguments(parser, sys.argv[1:])
    if arguments.scorer is None:
        parser.error("--scorer: it takes the scorer to tell what is lost")
    if (arguments.generator is None) != (arguments.made_with is None):
        parser.error("--generator and --made-with go together")
    arguments.answers_dir.mkdir(parents=True, exist_ok=True)
    return in_stores(arguments, _run)


if __name__ == "__main__":
    sys.exit(main())
