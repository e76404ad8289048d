"""The embedder for any model that sentence-transformers runs; an optional extra."""

from __future__ import annotations

import hashlib
import importlib.metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ecphoria.embedding.library import (
    limited_threads,
    load_model,
    token_counter,
    token_limit,
    token_windows,
)
from ecphoria.embedding.text import break_words, windows
from ecphoria.embedding.worker import WorkerEmbedder
from ecphoria.errors import ConfigurationInvalid, ModelUnavailable
from ecphoria.model import EmbeddingSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

# Measured with all-MiniLM-L6-v2 on the English after-sales benchmark (340 questions): the median
# of a question and another memory of the same user is 0.11, their 99th percentile 0.70; of the
# memory that answers the median is 0.60, the 90th percentile 0.79. Other models lie elsewhere
# (E5 between 0.7 and 0.9): set ECPHORIA_EMBEDDING_UNRELATED and ECPHORIA_EMBEDDING_RELATED.
UNRELATED = 0.10
RELATED = 0.75

# Window of a model without a token limit; one with a limit is cut by counting its own tokens.
UNLIMITED_CHARS = 2_000
_CHARS_PER_TOKEN = 4  # first guess, English; corrected by counting

_WEIGHTS = {".safetensors", ".bin", ".json", ".txt", ".model"}
_SAMPLES = 64
_SAMPLE_BYTES = 4_096


class _Device(Protocol):
    type: str


class _SentenceTransformer(Protocol):
    """The part of the library's model class used here; the library may not be installed."""

    prompts: Mapping[str, str]
    max_seq_length: float | None

    @property
    def device(self) -> _Device: ...

    def __getitem__(self, index: int) -> object: ...

    def encode_query(
        self, inputs: list[str], *, prompt: str, batch_size: int, show_progress_bar: bool
    ) -> ArrayLike: ...

    def encode_document(
        self, inputs: list[str], *, prompt: str, batch_size: int, show_progress_bar: bool
    ) -> ArrayLike: ...

    def get_embedding_dimension(self) -> int | None: ...


class SentenceTransformersEmbedder(WorkerEmbedder):
    """Embeds with a sentence-transformers model, by name or from a local directory."""

    def __init__(
        self,
        model: str,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch: int = 32,
        device: str | None = None,
        unrelated: float | None = None,
        related: float | None = None,
    ) -> None:
        """Prepare the model; `load` must be awaited before `spec` is known.

        Args:
            model: Name on the model hub, or path of a local directory.
            query_prefix: Put before every question; the model's own `query` prompt if empty.
            passage_prefix: Put before every memory; the model's own `document` prompt if empty.
            batch: Texts in one call of the model.
            device: E.g. `cpu` or `cuda`; chosen by the library if None.
            unrelated: Cosine of relevance 0; that of all-MiniLM-L6-v2 if None.
            related: Cosine of relevance 1; that of all-MiniLM-L6-v2 if None.
        """

        def load() -> _Model:
            return _Model(
                load_model("SentenceTransformer", "embedding model", model, device),
                model,
                prefixes=(passage_prefix, query_prefix),
                anchors=(
                    UNRELATED if unrelated is None else unrelated,
                    RELATED if related is None else related,
                ),
            )

        super().__init__(model, load, batch=batch)


class _Model:
    def __init__(
        self,
        model: _SentenceTransformer,
        name: str,
        *,
        prefixes: tuple[str, str],
        anchors: tuple[float, float],
    ) -> None:
        self._model = model
        passage = prefixes[0] or model.prompts.get("document") or model.prompts.get("passage") or ""
        query = prefixes[1] or model.prompts.get("query") or ""
        self._prompts = (str(passage), str(query))
        tokenizer: Any = getattr(model[0], "tokenizer", None)
        self._count = token_counter(tokenizer)
        self._max_tokens = token_limit(
            model.max_seq_length, getattr(tokenizer, "model_max_length", None)
        )
        backend = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
        self._max_word: int | None = getattr(backend, "max_input_chars_per_word", None)
        if self._max_tokens is not None and max(self._count(self._prompts)) * 2 > self._max_tokens:
            msg = f"a prefix fills more than half of the {self._max_tokens} tokens {name} takes"
            raise ConfigurationInvalid(msg)
        directory = Path(name).expanduser()
        local = directory.is_dir()
        version = _file_fingerprint(directory) if local else _revision(model)
        if passage:
            # The prefix is part of every stored vector as the weights are.
            version += "+" + hashlib.sha256(passage.encode()).hexdigest()[:8]
        self.spec = EmbeddingSpec(
            model=directory.resolve().name if local else name,
            version=version,
            dimension=_dimension(model, name),
            unrelated=anchors[0],
            related=anchors[1],
        )

    def windows(self, text: str, *, query: bool) -> list[str]:
        """Cut so that the model's own tokenizer cuts nothing off."""
        if self._max_word is not None:
            text = break_words(text, self._max_word)
        if self._max_tokens is None:
            return windows(text, UNLIMITED_CHARS, UNLIMITED_CHARS // 10)
        prompt = self._prompts[query]
        return token_windows(
            text,
            self._max_tokens,
            self._max_tokens * _CHARS_PER_TOKEN,
            lambda pieces: self._count([prompt + piece for piece in pieces]),
        )

    def encode(self, texts: list[str], *, query: bool) -> ArrayLike:
        # These two also choose the right half of a model with two towers.
        encode = self._model.encode_query if query else self._model.encode_document
        with limited_threads(self._model.device.type):
            return encode(
                texts,
                prompt=self._prompts[query],
                batch_size=len(texts),
                show_progress_bar=False,
            )


def _dimension(model: _SentenceTransformer, name: str) -> int:
    dimension = model.get_embedding_dimension()
    if not dimension:
        msg = f"the embedding model {name} does not say how long its vectors are"
        raise ModelUnavailable(msg)
    return int(dimension)


def _file_fingerprint(directory: Path) -> str:
    """Return a hash that changes when the weights, the tokenizer or the pooling change.

    Small files are hashed whole; of large ones the size and samples spread over all of it, since
    training changes weights everywhere and reading gigabytes at every start would be slow.
    """
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        hidden = any(part.startswith(".") for part in relative.parts)
        if hidden or path.suffix not in _WEIGHTS or not path.is_file():
            continue
        size = path.stat().st_size
        digest.update(f"{relative.as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            if size <= _SAMPLES * _SAMPLE_BYTES:
                digest.update(file.read())
                continue
            for sample in range(_SAMPLES):
                file.seek((size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:16]


def _revision(model: _SentenceTransformer) -> str:
    commit = getattr(getattr(model, "config", None), "_commit_hash", None)
    if commit:
        return str(commit)
    return f"sentence-transformers-{importlib.metadata.version('sentence-transformers')}"
