"""What advice can change: settings of a trainer, and the machine, software and credentials around it."""

from __future__ import annotations

from enum import StrEnum


class Lever(StrEnum):
    """A setting that every trainer has under a name of its own; a config or a recipe says where."""

    BATCH_SIZE = "batch_size"
    MAX_BATCH_SIZE = "max_batch_size"  # the ceiling of automatic batch sizes
    WORKERS = "workers"  # processes that load data
    CACHE_LATENTS = "cache_latents"
    PACKING = "packing"  # several short rows of text in one row of a batch
    GRADIENT_CHECKPOINTING = "gradient_checkpointing"
    EMA = "ema"
    QUANTIZE = "quantize"
    RESOLUTION = "resolution"
    LEARNING_RATE = "learning_rate"
    DTYPE = "dtype"
    HALF_VAE = "no_half_vae"
    OPTIMIZER = "optimizer"
    MODEL = "model"
    DATASET = "dataset"
    STEPS = "steps"
    SAVE_EVERY = "save_every"
    SAVE_DTYPE = "save_dtype"
    KEEP_SAVES = "keep_saves"
    SAMPLE_EVERY = "sample_every"
    SAMPLE_WIDTH = "sample_width"
    SAMPLE_HEIGHT = "sample_height"
    DISABLE_SAMPLING = "disable_sampling"

    # Around the trainer: their paths are the same everywhere.
    MACHINE_MEMORY = "machine.memory_gb"
    MACHINE_GPU_MEMORY = "machine.gpu_memory_gb"
    MACHINE_GPU = "machine.gpu"
    MACHINE_SHM = "machine.shm_gb"
    MACHINE_DISK_SIZE = "machine.disk_gb"
    MACHINE_DISK = "machine.disk"
    MACHINE_NETWORK = "machine.network"
    MACHINE_COOLING = "machine.cooling"
    MACHINE_POWER = "machine.power_limit_watts"
    MACHINE_DRIVER = "machine.driver"
    MACHINE_HOST = "machine.host"
    TRAINER_VERSION = "environment.trainer"
    TORCH_VERSION = "environment.torch"
    HF_TOKEN = "credentials.hf_token"

    @property
    def is_outside(self) -> bool:
        """Whether it belongs to the machine, the software or the credentials, not to the trainer's config."""
        return "." in self.value
