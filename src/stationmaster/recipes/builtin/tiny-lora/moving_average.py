"""The moving average of the weights (EMA): smoother than the weights themselves, for the memory of a second copy."""

from __future__ import annotations

import numpy as np
from adapter import Adapter

_DECAY = 0.99
_PREFIX = "ema."


class MovingAverage:
    """Follows an adapter step by step; like many trainers' it copies the frozen weights of the base model as well."""

    def __init__(self, adapter: Adapter, frozen: np.ndarray, saved: dict[str, np.ndarray]) -> None:
        """`saved`: the tensors of the checkpoint that the training resumes from, with an average or without."""
        self.down = saved.get(_PREFIX + "lora_A.weight", adapter.down).copy()
        self.up = saved.get(_PREFIX + "lora_B.weight", adapter.up).copy()
        self.frozen = frozen.copy()

    def follow(self, adapter: Adapter) -> None:
        """Take in the weights after a step."""
        for average, weights in ((self.down, adapter.down), (self.up, adapter.up)):
            average += np.float32(1 - _DECAY) * (weights - average)

    def tensors(self) -> dict[str, np.ndarray]:
        """What a checkpoint needs for going on with this average."""
        return {_PREFIX + "lora_A.weight": self.down, _PREFIX + "lora_B.weight": self.up}

    def adapter(self, live: Adapter) -> Adapter:
        """The average as an adapter of its own: the finished model."""
        return Adapter(down=self.down, up=self.up, moments=live.moments, step=live.step)
