"""A LoRA of a transformer with random weights, in plain PyTorch: prints its step and loss alone, no pace and no time.

python3 train.py OUTPUT NAME STEPS
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch  # type: ignore[import-not-found, unused-ignore]
from safetensors.torch import save_file  # type: ignore[import-not-found, unused-ignore]
from transformers import LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found, unused-ignore]

RANK, BATCH, CONTEXT, SAVE_EVERY = 16, 8, 1024, 100


class Lora(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """A frozen layer with a small trained one beside it."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        place = {"device": layer.weight.device, "dtype": layer.weight.dtype}
        self.down = torch.nn.Parameter(torch.randn(RANK, layer.in_features, **place) / layer.in_features**0.5)
        self.up = torch.nn.Parameter(torch.zeros(layer.out_features, RANK, **place))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.layer(values) + values @ self.down.T @ self.up.T


def main() -> None:
    output, name, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    output.mkdir(parents=True, exist_ok=True)
    assert torch.cuda.device_count() == 1, "the job sees exactly its GPU"
    print(f"training on {torch.cuda.get_device_name(0)}", flush=True)
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=32_000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=9,
                         num_attention_heads=16, num_key_value_heads=16)  # fmt: skip
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16).requires_grad_(False)
        for layer in model.model.layers:
            layer.self_attn.q_proj, layer.self_attn.v_proj = Lora(layer.self_attn.q_proj), Lora(layer.self_attn.v_proj)
    trained = {key: weight for key, weight in model.named_parameters() if weight.requires_grad}
    optimizer = torch.optim.AdamW(trained.values(), lr=1e-3)
    batch = torch.randint(0, 2000, (BATCH, CONTEXT), device="cuda")
    for step in range(1, steps + 1):
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}/{steps} loss: {loss.item():.4f}", flush=True)
        if step % SAVE_EVERY == 0 and step < steps:
            save_file({key: weight.detach() for key, weight in trained.items()}, output / f"{name}-{step}.safetensors")
    save_file({key: weight.detach() for key, weight in trained.items()}, output / f"{name}.safetensors")


if __name__ == "__main__":
    main()
