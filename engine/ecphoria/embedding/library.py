"""What both kinds of sentence-transformers models share: loading, threads, counting tokens.

The library is an optional extra, and importing it takes seconds: nothing here does at import.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from ecphoria.embedding.text import windows
from ecphoria.errors import ModelUnavailable

INSTALL = "pip install 'ecphoria[sentence-transformers]'"

# tokenizers say "none" with a huge number
NO_LIMIT = 1_000_000


def load_model(
    kind: Literal["SentenceTransformer", "CrossEncoder"], what: str, name: str, device: str | None
) -> Any:  # noqa: ANN401 - the library may not be installed
    """Return a model of the library, by name or from a local directory.

    Args:
        kind: The library's class.
        what: What the model is, for messages.
        name: Name on the model hub, or path of a local directory.
        device: E.g. `cpu` or `cuda`; chosen by the library if None.

    Raises:
        ModelUnavailable: When the package is missing, or the model cannot be loaded.
    """
    try:
        library = importlib.import_module("sentence_transformers")
        progress = importlib.import_module("transformers.utils.logging")
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "sentence_transformers":
            msg = f"the package sentence-transformers is not installed: `{INSTALL}`"
        else:
            msg = f"sentence-transformers cannot be imported ({error}): `{INSTALL}`"
        raise ModelUnavailable(msg) from error
    except OSError as error:  # a shared library of torch
        msg = f"sentence-transformers cannot be imported ({error}): `{INSTALL}`"
        raise ModelUnavailable(msg) from error
    path = Path(name).expanduser()
    if not path.is_dir() and (path.is_absolute() or name[:1] in {".", "~"} or path.exists()):
        msg = f"the {what} {name} cannot be loaded: there is no such directory"
        raise ModelUnavailable(msg)
    shows_bars = progress.is_progress_bar_enabled()
    progress.disable_progress_bar()  # it would be drawn across our own output
    try:
        return _load(library, kind, what, path if path.is_dir() else name, device)
    finally:
        if shows_bars:
            progress.enable_progress_bar()


def _load(library: ModuleType, kind: str, what: str, source: Path | str, device: str | None) -> Any:  # noqa: ANN401 - as above
    name = str(source)
    load = getattr(library, kind)
    try:
        model = load(name, device=device, local_files_only=True)
    except Exception as error:
        if isinstance(source, Path) or not isinstance(error, OSError):
            msg = f"the {what} {name} cannot be loaded: {_first_line(error)}"
            raise ModelUnavailable(msg) from error
    else:
        return model
    # Not in the local cache: now the hub may be asked.
    try:
        model = load(name, device=device)
    except Exception as error:
        msg = (
            f"the {what} {name} is neither in the local cache nor can it be downloaded: "
            f"{_first_line(error)}"
        )
        raise ModelUnavailable(msg) from error
    return model


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class _Threads:
    """How many models run on one thread now, and how many threads torch had before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = 0
        self.before = 0


_threads = _Threads()


@contextlib.contextmanager
def limited_threads(device: str) -> Iterator[None]:
    """Hold torch to one thread during a call on the CPU, unless the user chose a number.

    Several threads spin waiting for each other on a busy machine: measured on 2 cores at load 4, a
    question takes 135 ms (p95 800) to embed with two threads and 15 ms (p95 22) with one. Torch's
    setting is the whole process's, so it is put back, by the last of those that run at once.

    Args:
        device: Type of the model's device, e.g. ``cpu``.
    """
    if device != "cpu" or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    torch = importlib.import_module("torch")
    with _threads.lock:
        if not _threads.running:
            _threads.before = torch.get_num_threads()
        _threads.running += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _threads.lock:
            _threads.running -= 1
            if not _threads.running:
                torch.set_num_threads(_threads.before)


def token_limit(*limits: float | None) -> int | None:
    """Return the smallest limit that is one; None when there is none."""
    known = [n for n in limits if n is not None and math.isfinite(n) and 0 < n < NO_LIMIT]
    return int(min(known)) if known else None


def token_counter(tokenizer: object) -> Callable[[Sequence[str]], list[int]]:
    """Return what counts the tokens of texts, with the special ones."""
    if not callable(tokenizer):
        # no tokenizer makes more
        return lambda texts: [len(text.encode()) + 2 for text in texts]

    def count(texts: Sequence[str]) -> list[int]:
        encoded = tokenizer(list(texts), truncation=False, padding=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]

    return count


def token_windows(
    text: str, limit: int, max_chars: int, count: Callable[[Sequence[str]], list[int]]
) -> list[str]:
    """Cut a text into windows, overlapping by a tenth, that have no more tokens than allowed.

    Args:
        text: A clean text.
        limit: Most tokens of a window, by `count`.
        max_chars: First guess of how many characters that is.
        count: Counts the tokens of texts, with whatever is put before each.
    """
    pieces = windows(text, max_chars, max_chars // 10)
    found: list[str] = []
    for piece, tokens in zip(pieces, count(pieces), strict=True):
        if tokens <= limit or len(piece) == 1:
            found.append(piece)
        else:
            fewer = max(1, len(piece) * limit * 9 // (tokens * 10))
            found += token_windows(piece, limit, fewer, count)
    return found
