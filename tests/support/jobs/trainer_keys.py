"""What each trainer's loader reads: every key with its place and type. A config may hold nothing else.

Places are dotted; `[]` stands for the items of a list. A key that ends in `!` must be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Number = (int, float)
Kinds = type | tuple[type, ...]

_PROCESS = "config.process[]"

AI_TOOLKIT: Mapping[str, Kinds] = {
    "job!": str,
    "config.name!": str,
    "meta.name": str,
    "meta.version": str,
    f"{_PROCESS}.type!": str,
    f"{_PROCESS}.sqlite_db_path": str,
    f"{_PROCESS}.training_folder!": str,
    f"{_PROCESS}.device": str,
    f"{_PROCESS}.training_seed": int,
    f"{_PROCESS}.trigger_word": str,
    f"{_PROCESS}.performance_log_every": int,
    f"{_PROCESS}.network.type!": str,
    f"{_PROCESS}.network.linear!": int,
    f"{_PROCESS}.network.linear_alpha!": int,
    f"{_PROCESS}.network.dropout": Number,
    f"{_PROCESS}.network.pretrained_lora_path": str,
    f"{_PROCESS}.save.dtype": str,
    f"{_PROCESS}.save.save_every!": int,
    f"{_PROCESS}.save.max_step_saves_to_keep": int,
    f"{_PROCESS}.save.save_format": str,
    f"{_PROCESS}.save.push_to_hub": bool,
    f"{_PROCESS}.datasets[].folder_path!": str,
    f"{_PROCESS}.datasets[].control_path": str,
    f"{_PROCESS}.datasets[].caption_ext": str,
    f"{_PROCESS}.datasets[].caption_dropout_rate": Number,
    f"{_PROCESS}.datasets[].shuffle_tokens": bool,
    f"{_PROCESS}.datasets[].cache_latents": bool,
    f"{_PROCESS}.datasets[].cache_latents_to_disk": bool,
    f"{_PROCESS}.datasets[].cache_text_embeddings": bool,
    f"{_PROCESS}.datasets[].num_workers": int,
    f"{_PROCESS}.datasets[].prefetch_factor": int,
    f"{_PROCESS}.datasets[].cache_latents_num_workers": int,
    f"{_PROCESS}.datasets[].resolution[]!": int,
    f"{_PROCESS}.train.batch_size!": int,
    f"{_PROCESS}.train.steps!": int,
    f"{_PROCESS}.train.gradient_accumulation_steps": int,
    f"{_PROCESS}.train.gradient_accumulation": int,
    f"{_PROCESS}.train.train_unet": bool,
    f"{_PROCESS}.train.train_text_encoder": bool,
    f"{_PROCESS}.train.gradient_checkpointing": bool,
    f"{_PROCESS}.train.noise_scheduler!": str,
    f"{_PROCESS}.train.timestep_type": str,
    f"{_PROCESS}.train.optimizer!": str,
    f"{_PROCESS}.train.lr!": Number,
    f"{_PROCESS}.train.dtype!": str,
    f"{_PROCESS}.train.skip_first_sample": bool,
    f"{_PROCESS}.train.disable_sampling": bool,
    f"{_PROCESS}.train.unload_text_encoder": bool,
    f"{_PROCESS}.train.cache_text_embeddings": bool,
    f"{_PROCESS}.train.ema_config.use_ema": bool,
    f"{_PROCESS}.train.ema_config.ema_decay": Number,
    f"{_PROCESS}.model.name_or_path!": str,
    f"{_PROCESS}.model.is_flux": bool,
    f"{_PROCESS}.model.arch": str,
    f"{_PROCESS}.model.quantize": bool,
    f"{_PROCESS}.model.qtype": str,
    f"{_PROCESS}.model.quantize_te": bool,
    f"{_PROCESS}.model.qtype_te": str,
    f"{_PROCESS}.model.low_vram": bool,
    f"{_PROCESS}.model.layer_offloading": bool,
    f"{_PROCESS}.model.compile": bool,
    f"{_PROCESS}.sample.sampler": str,
    f"{_PROCESS}.sample.sample_every": int,
    f"{_PROCESS}.sample.width": int,
    f"{_PROCESS}.sample.height": int,
    f"{_PROCESS}.sample.prompts[]": str,
    f"{_PROCESS}.sample.samples[].prompt": str,
    f"{_PROCESS}.sample.samples[].ctrl_img": str,
    f"{_PROCESS}.sample.samples[].width": int,
    f"{_PROCESS}.sample.samples[].height": int,
    f"{_PROCESS}.sample.neg": str,
    f"{_PROCESS}.sample.seed": int,
    f"{_PROCESS}.sample.walk_seed": bool,
    f"{_PROCESS}.sample.guidance_scale": Number,
    f"{_PROCESS}.sample.sample_steps": int,
    f"{_PROCESS}.logging.use_ui_logger": bool,
    f"{_PROCESS}.logging.log_every": int,
}

KOHYA_TRAINING: Mapping[str, Kinds] = {
    "pretrained_model_name_or_path!": str,
    "dataset_config!": str,
    "output_dir!": str,
    "output_name!": str,
    "save_model_as": str,
    "save_precision": str,
    "save_every_n_steps": int,
    "save_every_n_epochs": int,
    "save_state": bool,
    "save_last_n_steps": int,
    "save_last_n_steps_state": int,
    "console_log_simple": bool,
    "sample_prompts": str,
    "sample_every_n_steps": int,
    "sample_sampler": str,
    "network_module!": str,
    "network_dim!": int,
    "network_alpha": Number,
    "network_dropout": Number,
    "network_weights": str,
    "network_train_unet_only": bool,
    "max_train_steps!": int,
    "max_train_epochs": int,
    "learning_rate!": Number,
    "lr_scheduler": str,
    "lr_warmup_steps": int,
    "optimizer_type!": str,
    "mixed_precision!": str,
    "full_bf16": bool,
    "fp8_base": bool,
    "gradient_accumulation_steps": int,
    "gradient_checkpointing": bool,
    "sdpa": bool,
    "xformers": bool,
    "lowram": bool,
    "highvram": bool,
    "no_half_vae": bool,
    "cache_latents": bool,
    "cache_latents_to_disk": bool,
    "cache_text_encoder_outputs": bool,
    "vae_batch_size": int,
    "max_data_loader_n_workers": int,
    "persistent_data_loader_workers": bool,
    "seed": int,
}

KOHYA_DATASET: Mapping[str, Kinds] = {
    "general.caption_extension": str,
    "general.enable_bucket": bool,
    "general.bucket_no_upscale": bool,
    "general.min_bucket_reso": int,
    "general.max_bucket_reso": int,
    "datasets[].resolution!": int,
    "datasets[].batch_size!": int,
    "datasets[].subsets[].image_dir!": str,
    "datasets[].subsets[].num_repeats": int,
    "datasets[].subsets[].class_tokens": str,
    "datasets[].subsets[].caption_prefix": str,
}


def wrong_keys(data: Any, known: Mapping[str, Kinds]) -> list[str]:
    """What the trainer would not understand in `data`: keys that it does not read, wrong types, needed keys missing."""
    plain = {place.removesuffix("!"): kinds for place, kinds in known.items()}
    found = list(_leaves(data, ""))
    problems = [f"{place} is not read" for place, _ in found if place not in plain]
    problems += [
        f"{place} cannot be {value!r}" for place, value in found if place in plain and not _is(value, plain[place])
    ]
    there = {place for place, _ in found}
    return problems + [f"{place} is missing" for place in known if place.endswith("!") and place[:-1] not in there]


def _leaves(data: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, f"{place}.{key}" if place else key)
    elif isinstance(data, list):
        for value in data:
            yield from _leaves(value, f"{place}[]")
    else:
        yield place, data


def _is(value: Any, kinds: Kinds) -> bool:
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    return type(value) in wanted
