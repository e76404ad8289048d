"""Run the scorer of the after-sales benchmark and read what it found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.answering import BadData

# As the scorer names them.
LANGUAGES: Final = ("all", "en", "zh")

Report = Mapping[str, Any]


def score(scorer: Path, questions: Path, answers: Path) -> Report:
    """Return the scorer's report of a file of answers.

    Raises:
        BadData: When it refuses them.
    """
    command = [sys.executable, str(scorer), str(questions), str(answers), "--json"]
    # the reader's own scorer, on files he named
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        msg = f"the scorer refuses {answers.name}: {done.stderr.strip()}"
        raise BadData(msg)
    report: Report = json.loads(done.stdout)
    return report


def solved(report: Report, group: str = "all", language: str = "all") -> float | None:
    """Return the share of solved questions of a type and a language, 0..1; None without any."""
    found = report["groups"].get(group, {}).get(language)
    return None if found is None else float(found["solve"])


def percent(share: float | None) -> str:
    """Return a share for a table."""
    return "-" if share is None else f"{share:.1%}"


def choose_lines(questions: Path, chosen: Collection[str], out: Path) -> None:
    """Copy the lines of some questions, by id: the scorer takes one without answer for unsolved."""
    with questions.open(encoding="utf-8") as lines, out.open("w", encoding="utf-8") as kept:
        kept.writelines(line for line in lines if json.loads(line)["id"] in chosen)
