"""The reranker for any cross-encoder that sentence-transformers runs; an optional extra.

The model is loaded and called in one thread of its own, a batch at a time: the event loop stays
free, several questions take turns, and a question that nobody waits for any more costs no more than
the batch that runs.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np

from ecphoria.embedding.library import (
    limited_threads,
    load_model,
    token_counter,
    token_limit,
    token_windows,
)
from ecphoria.embedding.text import windows
from ecphoria.errors import EcphoriaError, ModelUnavailable, RerankingFailed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

BATCH: Final = 8
# Of a model without a token limit.
UNLIMITED_CHARS: Final = 2_000
_CHARS_PER_TOKEN = 4  # first guess, English; corrected by counting
# A long question must leave room for what it is compared with.
_QUESTIONS_SHARE = 2

_Result = TypeVar("_Result")


class _Device(Protocol):
    type: str


class _CrossEncoder(Protocol):
    """The part of the library's model class used here; the library may not be installed."""

    max_seq_length: float | None
    num_labels: int

    @property
    def device(self) -> _Device: ...

    @property
    def model(self) -> object: ...

    @property
    def tokenizer(self) -> object: ...

    def predict(
        self,
        inputs: list[tuple[str, str]],
        *,
        activation_fn: object,
        batch_size: int,
        show_progress_bar: bool,
    ) -> ArrayLike: ...


class CrossEncoderReranker:
    """Scores with a cross-encoder, by name or from a local directory.

    A memory that is longer than the model reads is read in windows; its best one counts. Scores
    are the sigmoid of what the model says, whatever its own configuration makes of that.
    """

    def __init__(self, model: str, *, device: str | None = None) -> None:
        """Prepare the model; nothing is loaded yet.

        Args:
            model: Name on the model hub, or path of a local directory.
            device: E.g. `cpu` or `cuda`; chosen by the library if None.
        """
        directory = Path(model).expanduser()
        self._name = directory.resolve().name if directory.is_dir() else model
        self._load: Callable[[], _Model] = lambda: _Model(
            load_model("CrossEncoder", "reranker", model, device), model
        )
        self._model: _Model | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ecphoria-reranking")

    @property
    def name(self) -> str:
        """Name of the model, for people."""
        return self._name

    async def load(self) -> None:
        """Load the model now rather than at the first question; does nothing the second time.

        Raises:
            ModelUnavailable: When it cannot be loaded.
        """
        await self._run(self._loaded)

    async def scores(self, question: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Return how well each text answers, 0..1, in order; see `Reranker.scores`."""
        if not texts:
            return ()
        pairs = await self._run(lambda: self._loaded().pairs(question, texts))
        best = [0.0] * len(texts)
        for start in range(0, len(pairs), BATCH):
            batch = pairs[start : start + BATCH]
            found = await self._run(functools.partial(self._scored, batch))
            for (place, _), score in zip(batch, found, strict=True):
                best[place] = max(best[place], score)
        return tuple(best)

    async def close(self) -> None:
        """Wait for the batch that runs, then free the model. Calls that wait fail."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, wait=True)
        self._model = None

    async def _run(self, job: Callable[[], _Result]) -> _Result:
        def guarded() -> _Result:
            if self._closed:
                raise RerankingFailed(closed)
            try:
                return job()
            except EcphoriaError:
                raise
            except Exception as error:
                msg = f"the reranker {self._name} failed: {type(error).__name__}: {error}"
                raise RerankingFailed(msg) from error

        closed = f"the reranker {self._name} was closed"
        if self._closed:
            raise RerankingFailed(closed)
        return await asyncio.get_running_loop().run_in_executor(self._thread, guarded)

    def _loaded(self) -> _Model:
        if self._model is None:
            self._model = self._load()
        return self._model

    def _scored(self, batch: Sequence[tuple[int, tuple[str, str]]]) -> list[float]:
        found = self._loaded().scores([pair for _, pair in batch])
        if len(found) != len(batch) or not all(math.isfinite(score) for score in found):
            msg = f"the reranker {self._name} returned something that is no score"
            raise RerankingFailed(msg)
        return found


class _Model:
    def __init__(self, model: _CrossEncoder, name: str) -> None:
        if model.num_labels != 1:
            msg = f"{name} is no reranker: it has {model.num_labels} labels, not one"
            raise ModelUnavailable(msg)
        saved = getattr(getattr(model.model, "config", None), "architectures", None)
        if saved and type(model.model).__name__ not in saved:
            # an embedding model, say: the library gives it a head of random weights
            msg = f"{name} is no reranker: what is saved is {', '.join(saved)}, without a head"
            raise ModelUnavailable(msg)
        self._model = model
        self._sigmoid = importlib.import_module("torch").nn.Sigmoid()
        tokenizer: Any = getattr(model, "tokenizer", None)
        self._count = token_counter(tokenizer)
        self._max_tokens = token_limit(
            model.max_seq_length, getattr(tokenizer, "model_max_length", None)
        )

    def pairs(self, question: str, texts: Sequence[str]) -> list[tuple[int, tuple[str, str]]]:
        """Return what the model is to read: the place of a text, and the question with a window."""
        if self._max_tokens is None:
            cut = [windows(text, UNLIMITED_CHARS, UNLIMITED_CHARS // 10) for text in texts]
        else:
            most = self._max_tokens // _QUESTIONS_SHARE
            question = token_windows(question, most, most * _CHARS_PER_TOKEN, self._count)[0]
            # both counts have the special tokens, of which a pair has no more than two texts
            room = max(1, self._max_tokens - self._count([question])[0])
            cut = [
                token_windows(text, room, room * _CHARS_PER_TOKEN, self._count) for text in texts
            ]
        return [(place, (question, piece)) for place, pieces in enumerate(cut) for piece in pieces]

    def scores(self, pairs: list[tuple[str, str]]) -> list[float]:
        """Return the model's scores, 0..1."""
        with limited_threads(self._model.device.type):
            found = self._model.predict(
                pairs,
                activation_fn=self._sigmoid,
                batch_size=len(pairs),
                show_progress_bar=False,
            )
        scores: list[float] = np.asarray(found, dtype=np.float64).ravel().tolist()
        return scores
