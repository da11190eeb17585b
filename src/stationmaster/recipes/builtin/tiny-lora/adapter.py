"""The model: a fixed autoencoder of picture patches, and the low-rank adapter that is trained on top of it.

The base knows one thing about a patch of 4 x 4 pixels, its mean brightness, and shows it at half contrast: a grey and
blocky picture. The adapter adds B A [patch, caption] to that. Only A and B are trained; the base never changes.
"""

from __future__ import annotations

import dataclasses
import re
import zlib

import numpy as np

PATCH = 4
PATCH_VALUES = PATCH * PATCH * 3
CAPTION_VALUES = 32
BASE_NAME = "patch-mean-4"

_BASE_CONTRAST = 0.5
_FIRST_DECAY, _SECOND_DECAY, _TINY = 0.9, 0.99, 1e-10


def base_weights() -> np.ndarray:
    """The frozen weights: the projection of a patch on its mean brightness, at half contrast."""
    return np.full((PATCH_VALUES, PATCH_VALUES), _BASE_CONTRAST / PATCH_VALUES, dtype=np.float32)


def caption_values(caption: str) -> np.ndarray:
    """A caption as numbers: its words hashed into a few signed counts, of length 1 (or 0 without words)."""
    counts = np.zeros(CAPTION_VALUES, dtype=np.float32)
    for word in re.findall(r"\w+", caption.lower()):
        code = zlib.crc32(word.encode("utf-8"))
        counts[code % CAPTION_VALUES] += 1.0 if code & 0x10000 else -1.0
    length = float(np.linalg.norm(counts))
    return counts / np.float32(length) if length else counts


@dataclasses.dataclass
class Adapter:
    """The trained matrices, and what the optimizer remembers about each."""

    down: np.ndarray  # A: rank x (patch and caption values)
    up: np.ndarray  # B: patch values x rank
    moments: dict[str, np.ndarray]  # name -> array: first and second moment of both
    step: int = 0
    optimizer: str = "adam"
    gradient_norm: float | None = None  # of the last step; None if it changed nothing

    @classmethod
    def new(cls, rank: int, seed: int) -> Adapter:
        """An adapter that changes nothing yet: A is random, B is zero."""
        random = np.random.default_rng([seed, 0])
        down = random.normal(size=(rank, PATCH_VALUES + CAPTION_VALUES)) / np.sqrt(PATCH_VALUES)
        up = np.zeros((PATCH_VALUES, rank), dtype=np.float32)
        return cls(down=down.astype(np.float32), up=up, moments=_no_moments(rank))

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], step: int) -> Adapter:
        """The adapter of a checkpoint; without an optimizer's memory it begins a new one."""
        down, up = tensors["lora_A.weight"].copy(), tensors["lora_B.weight"].copy()
        moments = _no_moments(down.shape[0])
        for name in moments:
            moments[name] = tensors.get("optimizer." + name, moments[name]).copy()
        return cls(down=down, up=up, moments=moments, step=step)

    @property
    def rank(self) -> int:
        return int(self.down.shape[0])

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything that a checkpoint needs for going on exactly here."""
        kept = {"lora_A.weight": self.down, "lora_B.weight": self.up}
        kept.update({"optimizer." + name: moment for name, moment in self.moments.items()})
        return kept

    def reconstruct(self, patches: np.ndarray, captions: np.ndarray) -> np.ndarray:
        """The model's picture of each patch (rows)."""
        rebuilt: np.ndarray = patches @ base_weights()
        rebuilt += np.concatenate([patches, captions], axis=1) @ self.down.T @ self.up.T
        return rebuilt

    def loss(self, patches: np.ndarray, captions: np.ndarray) -> float:
        """The mean squared error over all values."""
        difference = (self.reconstruct(patches, captions) - patches).astype(np.float64)
        return float(np.mean(difference * difference))

    def train(self, patches: np.ndarray, captions: np.ndarray, learning_rate: float) -> float:
        """One step of gradient descent; returns the loss before it. A loss that is no number changes nothing."""
        joined = np.concatenate([patches, captions], axis=1)
        hidden = joined @ self.down.T
        difference = patches @ base_weights() + hidden @ self.up.T - patches
        loss = float(np.mean(difference.astype(np.float64) ** 2))
        self.step += 1
        self.gradient_norm = None
        if np.isfinite(loss):
            slope = difference * np.float32(2.0 / difference.size)
            up_gradient, down_gradient = slope.T @ hidden, (slope @ self.up).T @ joined
            self.gradient_norm = float(np.hypot(np.linalg.norm(up_gradient), np.linalg.norm(down_gradient)))
            self._descend("up", self.up, up_gradient, learning_rate)
            self._descend("down", self.down, down_gradient, learning_rate)
        return loss

    def _descend(self, name: str, weights: np.ndarray, gradient: np.ndarray, learning_rate: float) -> None:
        """Change the weights in place, by Adam or plainly along the gradient, which nothing bounds."""
        if self.optimizer == "sgd":
            weights -= np.float32(learning_rate) * gradient
            return
        first, second = self.moments["first." + name], self.moments["second." + name]
        first += np.float32(1 - _FIRST_DECAY) * (gradient - first)
        second += np.float32(1 - _SECOND_DECAY) * (gradient * gradient - second)
        mean = first / np.float32(1 - _FIRST_DECAY**self.step)
        spread = np.sqrt(second / np.float32(1 - _SECOND_DECAY**self.step))
        weights -= np.float32(learning_rate) * mean / (spread + np.float32(_TINY))


def _no_moments(rank: int) -> dict[str, np.ndarray]:
    shapes = {"up": (PATCH_VALUES, rank), "down": (rank, PATCH_VALUES + CAPTION_VALUES)}
    return {
        order + "." + name: np.zeros(shape, dtype=np.float32)
        for order in ("first", "second")
        for name, shape in shapes.items()
    }
