"""A cross-encoder small enough for tests: real files, random weights, any text by characters."""

from __future__ import annotations

MAX_TOKENS = 64
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_SIGNS = "电池坏了吗屏幕修好保期多长订单在哪里退款?.,。？，"


def make(directory, *, labels=1, nan=False):
    """Write one; return its directory.

    Args:
        directory: Where to; it is made.
        labels: Of a reranker one.
        nan: Make weights of which no score comes.
    """
    # the library takes a while to import, and few tests need it
    import torch  # noqa: PLC0415
    from transformers import (  # noqa: PLC0415
        BertConfig,
        BertForSequenceClassification,
        BertTokenizerFast,
    )

    directory.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_LETTERS, *_SIGNS]
    words += [f"##{letter}" for letter in _LETTERS]
    vocabulary = directory / "vocab.txt"
    vocabulary.write_text("\n".join(words), encoding="utf-8")
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = BertForSequenceClassification(
            BertConfig(
                vocab_size=len(words),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=MAX_TOKENS,
                num_labels=labels,
                # far from 0, so that scores differ
                initializer_range=0.5,
            )
        )
    if nan:
        torch.nn.init.constant_(model.classifier.weight, float("nan"))
    model.save_pretrained(directory)
    BertTokenizerFast(str(vocabulary), model_max_length=MAX_TOKENS).save_pretrained(directory)
    return directory
