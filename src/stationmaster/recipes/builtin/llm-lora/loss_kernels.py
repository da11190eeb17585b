"""TRL computes the loss with Triton kernels, which need a C compiler and Python's headers on the machine."""

from __future__ import annotations

import torch
from transformers.utils import is_triton_available
from trl.kernels import chunked_logprob

if is_triton_available():
    import triton
    import triton.language as tl

    # Triton compiles annotations of arguments too, and fails at those that are none of its own.
    @triton.jit  # type: ignore[untyped-decorator]
    def _add_one(numbers) -> None:  # type: ignore[no-untyped-def]
        tl.store(numbers, tl.load(numbers) + 1)


def avoid_triton_if_it_fails() -> None:
    """Have TRL compute the loss in PyTorch where Triton cannot compile; slower, but it trains."""
    if is_triton_available() and (problem := _compile_problem()):
        print(f"Triton cannot compile here, so the loss is computed without it: {problem}", flush=True)
        # TRL has no setting for this; it reads the value whenever it computes a loss.
        chunked_logprob._TRITON_AVAILABLE = False


def _compile_problem() -> str | None:
    number = torch.zeros(1, device="cuda")
    try:
        _add_one[(1,)](number)
    except Exception as error:  # noqa: BLE001 - whatever it is, the loss is computed without Triton
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None
