"""Packing: several rows of the dataset in one row of a batch, which must not see each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from examples import IGNORED
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

Batch = dict[str, Any]
Collator = Callable[[list[dict[str, Any]]], Batch]

_MULTIPLE = 64  # tokens; PyTorch copies attention masks of other widths for every head
_PROBED = 16  # tokens of each of the two rows that are tried


def attention_wanted(device: str) -> str | None:
    """The attention that is best for packed rows; None is the library's own choice, which is PyTorch's SDPA."""
    has_flash = device == "cuda" and transformers.utils.is_flash_attn_2_available()
    return "flash_attention_2" if has_flash else None


def packed_collator(model: Any, padding: int) -> Collator:
    """TRL's own, which joins the batch into one row, where flash attention makes that cheap; else PackedRows."""
    if "flash" in str(model.config._attn_implementation):
        collator: Collator = DataCollatorForLanguageModeling(padding, padding_free=True)
        return collator
    return PackedRows(padding)


class PackedRows:
    """Makes batches whose positions restart with each row of the dataset; transformers masks attention by that.

    TRL's own collator joins the whole batch into one row. Without a kernel for variable lengths, attention over it
    would cost the square of the batch size.
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
        batch["labels"][batch["position_ids"] == 0] = IGNORED  # else predicted from the row before
        return batch


def _filled(rows: list[list[int]], width: int, value: int) -> torch.Tensor:
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


def keeps_rows_apart(model: Any, collate: Collator) -> bool:
    """Whether a packed row's logits stay the same when its neighbour changes; tried out, because models differ."""
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
    with torch.no_grad():
        logits: torch.Tensor = model(**on_device, use_cache=False).logits
    return logits[0, _PROBED : 2 * _PROBED].float()
