"""Several short rows in one long one: how the model is kept from looking across, and whether it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from examples import IGNORED
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

Batch = dict[str, Any]
Collator = Callable[[list[dict[str, Any]]], Batch]

_MULTIPLE = 64  # of tokens: a mask of such a width goes to the attention kernel as it is
_PROBED = 16  # tokens of each of the two rows that are tried


def attention_wanted(device: str) -> str | None:
    """The attention that is best for packed rows; None is the library's own choice, which is PyTorch's SDPA."""
    has_flash = device == "cuda" and transformers.utils.is_flash_attn_2_available()
    return "flash_attention_2" if has_flash else None


def packed_collator(model: Any, padding: int) -> Collator:
    """TRL's own, which makes one long row of a batch, where a kernel takes no more time and room for that."""
    if "flash" in str(model.config._attn_implementation):
        collator: Collator = DataCollatorForLanguageModeling(padding, padding_free=True)
        return collator
    return PackedRows(padding)


class PackedRows:
    """Makes batches in which positions begin anew with each row: from that, transformers masks the others.

    Unlike TRL's own batches, packed rows stay below each other: without a kernel of variable lengths, one long row
    takes the square of the batch's size.
    """

    def __init__(self, padding: int) -> None:
        self._padding = padding

    def __call__(self, packs: list[dict[str, Any]]) -> Batch:
        longest = max(len(pack["input_ids"]) for pack in packs)
        width = -(-longest // _MULTIPLE) * _MULTIPLE
        positions = [[place for length in pack["seq_lengths"] for place in range(length)] for pack in packs]
        batch = {
            "input_ids": _filled([pack["input_ids"] for pack in packs], width, self._padding),
            "labels": _filled([pack["labels"] for pack in packs], width, IGNORED),
            "position_ids": _filled(positions, width, 0),
        }
        batch["labels"][batch["position_ids"] == 0] = IGNORED  # else foretold from the row before
        return batch


def _filled(rows: list[list[int]], width: int, value: int) -> torch.Tensor:
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


@torch.no_grad()
def keeps_rows_apart(model: Any, collate: Collator) -> bool:
    """Whether a row's results stay the same when its neighbour changes: tried, for models differ."""
    was_training = model.training
    model.eval()
    results = [_second_row(model, collate, first) for first in (range(1, _PROBED + 1), range(_PROBED, 0, -1))]
    model.train(was_training)
    difference, size = (results[0] - results[1]).abs().max(), results[0].abs().max()
    return bool(difference <= 1e-3 * size)


def _second_row(model: Any, collate: Collator, first: range) -> torch.Tensor:
    tokens = [token % model.config.get_text_config().vocab_size for token in (*first, *range(1, _PROBED + 1))]
    batch = collate([{"input_ids": tokens, "labels": tokens, "seq_lengths": [_PROBED, _PROBED]}])
    del batch["labels"]
    on_device = {name: each.to(model.device) if torch.is_tensor(each) else each for name, each in batch.items()}
    logits: torch.Tensor = model(**on_device, use_cache=False).logits
    return logits[0, _PROBED : 2 * _PROBED].float()
