"""Open the reranker that the settings name, if any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ecphoria.reranking.port import Reranker
    from ecphoria.settings import Settings


async def open_reranker(settings: Settings) -> Reranker | None:
    """Return the reranker of these settings, loaded; None without one. The caller closes it.

    Raises:
        ModelUnavailable: When the package or the model is missing, or it is no cross-encoder.
    """
    if settings.reranker is None:
        return None
    from ecphoria.reranking.sentence_transformers import (  # noqa: PLC0415 - numpy
        CrossEncoderReranker,
    )

    _, _, model = settings.reranker.partition(":")
    reranker = CrossEncoderReranker(model, device=settings.reranker_device)
    try:
        await reranker.load()
    except BaseException:
        await reranker.close()
        raise
    return reranker
