"""The embedder for any model that sentence-transformers runs; an optional extra."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ecphoria.embedding.text import break_words, windows
from ecphoria.embedding.worker import WorkerEmbedder
from ecphoria.errors import ConfigurationInvalid, ModelUnavailable
from ecphoria.model import EmbeddingSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from numpy.typing import ArrayLike

INSTALL = "pip install 'ecphoria[sentence-transformers]'"

# Measured with all-MiniLM-L6-v2 on the English after-sales benchmark (340 questions): the median
# of a question and another memory of the same user is 0.11, their 99th percentile 0.70; of the
# memory that answers the median is 0.60, the 90th percentile 0.79. Other models lie elsewhere
# (E5 between 0.7 and 0.9): set ECPHORIA_EMBEDDING_UNRELATED and ECPHORIA_EMBEDDING_RELATED.
UNRELATED = 0.10
RELATED = 0.75

# Window of a model without a token limit; one with a limit is cut by counting its own tokens.
UNLIMITED_CHARS = 2_000
_CHARS_PER_TOKEN = 4  # first guess, English; corrected by counting
_NO_LIMIT = 1_000_000  # tokenizers say "none" with a huge number

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
                _open(model, device),
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
        self._torch = importlib.import_module("torch")
        passage = prefixes[0] or model.prompts.get("document") or model.prompts.get("passage") or ""
        query = prefixes[1] or model.prompts.get("query") or ""
        self._prompts = (str(passage), str(query))
        self._tokenizer: Any = getattr(model[0], "tokenizer", None)
        self._max_tokens = _max_tokens(model, self._tokenizer)
        backend = getattr(getattr(self._tokenizer, "backend_tokenizer", None), "model", None)
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
        return self._fit(text, self._max_tokens * _CHARS_PER_TOKEN, self._prompts[query])

    def encode(self, texts: list[str], *, query: bool) -> ArrayLike:
        # These two also choose the right half of a model with two towers.
        encode = self._model.encode_query if query else self._model.encode_document
        with self._limited_threads():
            return encode(
                texts,
                prompt=self._prompts[query],
                batch_size=len(texts),
                show_progress_bar=False,
            )

    @contextlib.contextmanager
    def _limited_threads(self) -> Iterator[None]:
        """Hold torch to one thread during a call on the CPU, unless the user chose a number.

        Several threads spin waiting for each other on a busy machine: measured on 2 cores at
        load 4, a question takes 135 ms (p95 800) with two threads and 15 ms (p95 22) with one.
        Torch's setting is the whole process's, so it is put back.
        """
        if self._model.device.type != "cpu" or "OMP_NUM_THREADS" in os.environ:
            yield
            return
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(1)
        try:
            yield
        finally:
            self._torch.set_num_threads(before)

    def _fit(self, text: str, max_chars: int, prompt: str) -> list[str]:
        limit = self._max_tokens or _NO_LIMIT
        pieces = windows(text, max_chars, max_chars // 10)
        found: list[str] = []
        for piece, tokens in zip(pieces, self._count([prompt + p for p in pieces]), strict=True):
            if tokens <= limit or len(piece) == 1:
                found.append(piece)
            else:
                fewer = max(1, len(piece) * limit * 9 // (tokens * 10))
                found += self._fit(piece, fewer, prompt)
        return found

    def _count(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has, with the special ones."""
        if not callable(self._tokenizer):
            return [len(text.encode()) + 2 for text in texts]  # no tokenizer makes more
        encoded = self._tokenizer(list(texts), truncation=False, padding=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]


def _open(name: str, device: str | None) -> _SentenceTransformer:
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
        msg = f"the embedding model {name} cannot be loaded: there is no such directory"
        raise ModelUnavailable(msg)
    shows_bars = progress.is_progress_bar_enabled()
    progress.disable_progress_bar()  # it would be drawn across our own output
    try:
        return _load(library, path if path.is_dir() else name, device)
    finally:
        if shows_bars:
            progress.enable_progress_bar()


def _load(library: ModuleType, source: Path | str, device: str | None) -> _SentenceTransformer:
    name = str(source)
    model: _SentenceTransformer
    try:
        model = library.SentenceTransformer(name, device=device, local_files_only=True)
    except Exception as error:
        if isinstance(source, Path) or not isinstance(error, OSError):
            msg = f"the embedding model {name} cannot be loaded: {_first_line(error)}"
            raise ModelUnavailable(msg) from error
    else:
        return model
    # Not in the local cache: now the hub may be asked.
    try:
        model = library.SentenceTransformer(name, device=device)
    except Exception as error:
        msg = (
            f"the embedding model {name} is neither in the local cache nor can it be downloaded: "
            f"{_first_line(error)}"
        )
        raise ModelUnavailable(msg) from error
    return model


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _max_tokens(model: _SentenceTransformer, tokenizer: object) -> int | None:
    limits = (model.max_seq_length, getattr(tokenizer, "model_max_length", None))
    known = [n for n in limits if n is not None and math.isfinite(n) and 0 < n < _NO_LIMIT]
    return int(min(known)) if known else None


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
