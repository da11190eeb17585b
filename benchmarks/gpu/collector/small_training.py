"""A small transformer: its steps take some milliseconds, or long enough that the GPU is what they wait for."""

from __future__ import annotations

import torch  # type: ignore[import-not-found, unused-ignore]

_BATCH = 8


class SmallTraining:
    """Trains on random tokens. On a computer without a GPU it is much smaller, to try a script."""

    def __init__(self, *, is_larger: bool = False) -> None:
        torch.manual_seed(0)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        on_gpu = self.device == "cuda"
        size = (2048, 12, 8192, 1024) if is_larger else (1024, 8, 8192, 512)
        width, layers, words, context = size if on_gpu else (32, 1, 64, 8)
        self._tokens = torch.randint(words, (_BATCH, context), device=self.device)
        layer = torch.nn.TransformerEncoderLayer(width, 16, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self._model = torch.nn.Sequential(
            torch.nn.Embedding(words, width),
            torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
            torch.nn.Linear(width, words),
        ).to(self.device, torch.bfloat16 if on_gpu else torch.float32)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-4, fused=on_gpu)

    def step(self) -> float:
        """Train one step and return its loss, for which the CPU waits, as trainers do that print it."""
        self._optimizer.zero_grad(set_to_none=True)
        words = self._model(self._tokens)
        loss = torch.nn.functional.cross_entropy(words.flatten(0, 1).float(), self._tokens.flatten())
        loss.backward()
        self._optimizer.step()
        return float(loss.item())

    def wait(self) -> None:
        """Wait until the GPU has done everything."""
        if self.device == "cuda":
            torch.cuda.synchronize()
