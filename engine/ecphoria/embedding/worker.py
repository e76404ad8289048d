"""What the adapters share: one thread for the model, windows for long texts, batches.

The model is loaded and called in one thread of its own. The event loop stays free, calls are
serialised (neither numpy's scratch buffers nor tokenizers are promised to be thread-safe), and
between two batches other callers get their turn, so a question never waits for a whole import.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from ecphoria.embedding.text import clean
from ecphoria.embedding.vectors import unit_vectors, weighted_means
from ecphoria.errors import EcphoriaError, EmbeddingFailed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ecphoria.embedding.vectors import Matrix
    from ecphoria.model import EmbeddingSpec, Vector


# Most characters in one call of the model: long windows would otherwise keep a question waiting
# for seconds (a batch of 32 windows of 640 characters holds the thread for about one).
CALL_CHARS = 4_096


class LoadedModel(Protocol):
    """A model in memory. Every call comes from the same thread."""

    @property
    def spec(self) -> EmbeddingSpec:
        """What the vectors are like."""
        ...

    def windows(self, text: str, *, query: bool) -> list[str]:
        """Cut a clean text into pieces that the model takes whole."""
        ...

    def encode(self, texts: list[str], *, query: bool) -> ArrayLike:
        """Embed pieces; one vector a piece, in order, of any length."""
        ...


_Result = TypeVar("_Result")
_Steps = Generator[None, None, list["Vector"]]


class WorkerEmbedder:
    """An `Embedder` that runs a model in a thread of its own."""

    def __init__(
        self,
        name: str,
        load: Callable[[], LoadedModel],
        *,
        batch: int,
        spec: EmbeddingSpec | None = None,
    ) -> None:
        """Remember how to load the model; nothing is loaded yet.

        Args:
            name: Name of the model, for messages and the thread.
            load: Loads the model; called once, in the worker thread.
            batch: Most pieces in one call of the model.
            spec: What the vectors are like, when that is known without the model.
        """
        self._spec = spec
        self._name = name
        self._load = load
        self._batch = batch
        self._model: LoadedModel | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ecphoria-embedding")

    @property
    def spec(self) -> EmbeddingSpec:
        """What the vectors are like.

        Raises:
            EmbeddingFailed: When the model is not loaded, since it alone knows.
        """
        if self._spec is None:
            msg = f"the embedding model {self._name} is not loaded"
            raise EmbeddingFailed(msg)
        return self._spec

    async def load(self) -> None:
        """Load the model now rather than at the first text; does nothing the second time.

        Raises:
            ModelUnavailable: When it cannot be loaded.
        """
        await self._run(self._loaded)

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Embed memories; one vector a text, in order.

        Raises:
            TextEmpty: When a text has nothing visible; the path names its index.
            ModelUnavailable: When the model cannot be loaded.
            EmbeddingFailed: When the model fails, or after `close`.
            InvalidVector: When it returns something that is no usable vector.
        """
        return await self._embed(list(texts), query=False)

    async def embed_query(self, text: str) -> Vector:
        """Embed one question; errors as for `embed_passages`."""
        return (await self._embed([text], query=True))[0]

    async def close(self) -> None:
        """Wait for the batch that runs, then free the model. Calls that wait fail."""
        self._closed = True
        # Not cancel_futures: that would look to the callers as if they had been cancelled.
        await asyncio.to_thread(self._thread.shutdown, wait=True)
        self._model = None

    async def _embed(self, texts: list[str], *, query: bool) -> list[Vector]:
        if not texts:
            return []
        steps = self._steps(texts, query=query)
        while True:
            vectors = await self._run(lambda: _advance(steps))
            if vectors is not None:
                return vectors

    async def _run(self, job: Callable[[], _Result]) -> _Result:
        def guarded() -> _Result:
            if self._closed:
                raise EmbeddingFailed(closed)
            return job()

        closed = f"the embedding model {self._name} was closed"
        if self._closed:
            raise EmbeddingFailed(closed)
        return await asyncio.get_running_loop().run_in_executor(self._thread, guarded)

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            self._model = self._load()
            self._spec = self._model.spec
        return self._model

    def _steps(self, texts: list[str], *, query: bool) -> _Steps:
        """Embed texts in the worker thread, pausing after every call of the model."""
        model = self._loaded()
        vectors: list[Vector] = []
        for first in range(0, len(texts), self._batch):
            if first:
                yield
            part = texts[first : first + self._batch]
            pieces: list[str] = []
            owners: list[int] = []
            for index, text in enumerate(part, first):
                cut = self._pieces(model, text, index, query=query)
                pieces += cut
                owners += [index] * len(cut)
            rows = []
            for start, end in _calls(pieces, self._batch):
                if start:
                    yield
                rows.append(self._encode(model, pieces[start:end], owners[start:end], query=query))
            found = np.concatenate(rows)
            if len(pieces) > len(part):
                means = weighted_means(found, owners, [float(len(piece)) for piece in pieces])
                indexes = range(first, first + len(part))
                found = unit_vectors(means, len(part), model.spec.dimension, indexes=indexes)
            vectors += found.tolist()
        return vectors

    @staticmethod
    def _pieces(model: LoadedModel, text: str, index: int, *, query: bool) -> list[str]:
        try:
            return model.windows(clean(text), query=query)
        except EcphoriaError as error:
            raise error.at(index) from error

    def _encode(
        self, model: LoadedModel, pieces: list[str], indexes: list[int], *, query: bool
    ) -> Matrix:
        try:
            raw = model.encode(pieces, query=query)
        except Exception as error:
            msg = (
                f"the embedding model {self._name} failed on texts {indexes[0]} to {indexes[-1]}: "
                f"{type(error).__name__}: {error}"
            )
            raise EmbeddingFailed(msg) from error
        return unit_vectors(raw, len(pieces), model.spec.dimension, indexes=indexes)


def _calls(pieces: list[str], batch: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of what goes into each call of the model."""
    start = chars = 0
    for end, piece in enumerate(pieces):
        if end > start and (end - start == batch or chars + len(piece) > CALL_CHARS):
            yield start, end
            start, chars = end, 0
        chars += len(piece)
    yield start, len(pieces)


def _advance(steps: _Steps) -> list[Vector] | None:
    # A StopIteration cannot travel through a future.
    try:
        next(steps)
    except StopIteration as done:
        result: list[Vector] = done.value
        return result
    return None
