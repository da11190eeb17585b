"""What a log says was saved."""

from __future__ import annotations

import pytest

from stationmaster.parsers.lines import read_line
from stationmaster.parsers.saves import read_save


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Saved checkpoint to output/a/a_000000500.safetensors", "output/a/a_000000500.safetensors"),
        ("saving checkpoint: D:/x/model\\Zenny.safetensors", "D:/x/model\\Zenny.safetensors"),
        ("saving checkpoint to out-char", "out-char"),
        ("Saving checkpoint at 3 epochs", "3 epochs"),
        ("Saving checkpoint at step 40...", "step 40"),
        ("Training completed! Saving trained model to ./outputs/lora-out.", "./outputs/lora-out"),
        (
            "Epoch 0, global step 25: 'val_loss' reached 0.77 (best 0.77), saving model to '/a/b.ckpt' as top 1",
            "/a/b.ckpt",
        ),
        ("Merge process complete. Saved to `/home/me/model`", "/home/me/model"),
        ("Checkpoint successfully created at: Checkpoint(filesystem=local, path=/mnt/c_1)", "/mnt/c_1"),
        ("Creating Backup D:\\w\\backup\\2026-backup-507", "D:\\w\\backup\\2026-backup-507"),
        ("Saving /home/my models/final v2.safetensors", "/home/my models/final v2.safetensors"),
        ("saving checkpoint at iteration     300 to checkpoints/gpt", "checkpoints/gpt"),
        (
            "[Torch] Saving ckpt/global_step4/mp_rank_00_model_states.pt...",
            "ckpt/global_step4/mp_rank_00_model_states.pt",
        ),
        ('Model : "./saved_model/1_model.pth" saved.', "./saved_model/1_model.pth"),
        ("=> saving checkpoint 'runs/best.pth.tar'", "runs/best.pth.tar"),
        ("Saving checkpoints for 1000 into /tmp/m/model.ckpt.", "/tmp/m/model.ckpt"),
    ],
)
def test_a_checkpoint_is_named_as_printed(line: str, name: str) -> None:
    saved = read_save(read_line(line))
    assert saved is not None
    assert saved.name == name


@pytest.mark.parametrize(
    "line",
    [
        "Saved optimizer to output/a/optimizer.pt",
        "Scheduler state saved in out/checkpoint-500/scheduler.bin",
        "Removing old save: output/a/a_000000250.safetensors",
        "Copied checkpoint to Google Drive: /content/drive/x.pt",
        "Checkpoints will be saved to /work by HardDiskBackend.",
        "Configuration saved in out/model_index.json",
        "Training history saved to results/training_history.json",
        "Saving prediction results to out/generated_predictions.jsonl",
        "New best model saved with val_loss=0.0011",
        "Recipe checkpoint of size 0.1 GB saved to /out/recipe_state.pt",
        "Could not save optimizer",
        "Failed to save checkpoint to /out/a.pt",
        "deleting to save memory.",
        "Saved image to samples/1.png",
        "Loaded checkpoint, saved earlier, from out/a.pt",
        "save_every: 500",
    ],
)
def test_what_is_no_checkpoint_is_not_listed(line: str) -> None:
    assert read_save(read_line(line)) is None
