"""Small cross-encoders with random weights, in the files that real ones have."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import pytest

Kind = Literal["bert", "roberta", "deberta"]

TOKENS = 128
_LETTERS = [*"abcdefghijklmnopqrstuvwxyz?."]


def require_torch() -> None:
    """Skip the test that calls this where torch or sentence-transformers is not installed: Folio needs neither."""
    for name in ("torch", "sentence_transformers"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed: requirements.txt has it")


def save_cross_encoder(folder: Path, kind: Kind = "bert", labels: Sequence[str] = ("LABEL_0",)) -> Path:
    """Save a model of two layers that reads 128 tokens, a letter each; returns its folder.

    DeBERTa's has BERT's tokenizer. A test that needs one is skipped where torch is not installed.
    """
    require_torch()
    import torch
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertTokenizerFast,
        DebertaV2Config,
        DebertaV2ForSequenceClassification,
        RobertaConfig,
        RobertaForSequenceClassification,
        RobertaTokenizer,
    )

    folder.mkdir(parents=True)
    torch.manual_seed(1)
    common = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "id2label": dict(enumerate(labels)),
        "label2id": {name: number for number, name in enumerate(labels)},
        "initializer_range": 1.0,  # so that the scores differ
    }
    if kind != "roberta":
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_LETTERS, *(f"##{letter}" for letter in _LETTERS)]
        (folder / "vocab.txt").write_text("\n".join(vocabulary))
        sizes = {"vocab_size": len(vocabulary), "max_position_embeddings": TOKENS, **common}
        if kind == "bert":
            BertForSequenceClassification(BertConfig(**sizes)).save_pretrained(folder)
        else:
            deberta = DebertaV2Config(relative_attention=True, pos_att_type=["p2c", "c2p"], **sizes)
            DebertaV2ForSequenceClassification(deberta).save_pretrained(folder)
        BertTokenizerFast(vocab={word: at for at, word in enumerate(vocabulary)}).save_pretrained(folder)
        return folder
    from tokenizers.pre_tokenizers import ByteLevel

    words = ["<s>", "<pad>", "</s>", "<unk>", *sorted(ByteLevel.alphabet()), "<mask>"]
    roberta = RobertaConfig(
        vocab_size=len(words),
        max_position_embeddings=TOKENS + 2,  # the first two are never used
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        layer_norm_eps=1e-5,
        **common,
    )
    RobertaForSequenceClassification(roberta).save_pretrained(folder)
    RobertaTokenizer(vocab={word: at for at, word in enumerate(words)}, merges=[]).save_pretrained(folder)
    return folder
