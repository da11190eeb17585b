"""Launchers: how one script becomes one process per GPU."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.recipes.schema import Recipe


def launched(recipe: Recipe, command: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """A Python and its script, with the recipe's launcher between them."""
    python, *script = command
    return (python, *_launcher(recipe), *options, *script)


def _launcher(recipe: Recipe) -> tuple[str, ...]:
    """One machine here; a provider that has clusters says to each node which one it is."""
    processes = max(1, recipe.needs.gpus)
    if recipe.launcher == "torchrun":
        return ("-m", "torch.distributed.run", "--standalone", "--nnodes=1", f"--nproc_per_node={processes}")
    several = ("--multi_gpu",) if processes > 1 else ()
    return ("-m", "accelerate.commands.launch", f"--num_processes={processes}", "--num_machines=1", *several)
