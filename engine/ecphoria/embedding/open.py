"""Choose and open the embedder that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecphoria.errors import ConfigurationInvalid

if TYPE_CHECKING:
    from ecphoria.embedding.port import Embedder
    from ecphoria.settings import Settings

_ONLY_SENTENCE_TRANSFORMERS = (
    "embedding_model",
    "embedding_query_prefix",
    "embedding_passage_prefix",
    "embedding_device",
)


async def open_embedder(settings: Settings) -> Embedder:
    """Return the embedder of these settings; the caller closes it.

    The shipped model is loaded with the first text. A sentence-transformers model is loaded here,
    since it alone knows the dimension of its vectors.

    Raises:
        ConfigurationInvalid: When settings contradict each other.
        ModelUnavailable: When the package or the model is missing.
    """
    if settings.embedding_provider == "sentence-transformers":
        embedder = await _open_sentence_transformers(settings)
    else:
        embedder = _universal_sentence_encoder(settings)
    spec = embedder.spec
    if spec.unrelated >= spec.related:
        await embedder.close()
        msg = (
            f"ECPHORIA_EMBEDDING_UNRELATED ({spec.unrelated}) must be less than "
            f"ECPHORIA_EMBEDDING_RELATED ({spec.related})"
        )
        raise ConfigurationInvalid(msg)
    return embedder


def _universal_sentence_encoder(settings: Settings) -> Embedder:
    for name in _ONLY_SENTENCE_TRANSFORMERS:
        if getattr(settings, name):
            msg = (
                f"ECPHORIA_{name.upper()} has no effect on {settings.embedding_provider}: unset "
                "it, or set ECPHORIA_EMBEDDING_PROVIDER=sentence-transformers"
            )
            raise ConfigurationInvalid(msg)
    from ecphoria.embedding.universal_sentence_encoder import (  # noqa: PLC0415 - numpy
        UniversalSentenceEncoder,
    )

    return UniversalSentenceEncoder(
        batch=settings.embedding_batch,
        unrelated=settings.embedding_unrelated,
        related=settings.embedding_related,
    )


async def _open_sentence_transformers(settings: Settings) -> Embedder:
    if not settings.embedding_model:
        msg = "ECPHORIA_EMBEDDING_MODEL must name a model for sentence-transformers"
        raise ConfigurationInvalid(msg)
    from ecphoria.embedding.sentence_transformers import (  # noqa: PLC0415 - numpy
        SentenceTransformersEmbedder,
    )

    embedder = SentenceTransformersEmbedder(
        settings.embedding_model,
        query_prefix=settings.embedding_query_prefix,
        passage_prefix=settings.embedding_passage_prefix,
        batch=settings.embedding_batch,
        device=settings.embedding_device,
        unrelated=settings.embedding_unrelated,
        related=settings.embedding_related,
    )
    try:
        await embedder.load()
    except BaseException:
        await embedder.close()
        raise
    return embedder
