"""The memory of cards: what overflowed, when, and the first handle that is open."""

from __future__ import annotations

import math
from typing import Any

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.configs import ABSENT, AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import (
    Want,
    case_of,
    critical,
    fitting_batch,
    further_memory,
    last_memory,
    log_error,
    warning,
)
from tests.support.analysis_cases.machines import A6000, MAC, RTX_3060, RTX_3090, RTX_4090, SPARK, Machine
from tests.support.analysis_cases.simulation import Simulation

_LAST_OPTION = {"resolution": 512}
"""No handle on the card but a larger one."""


def oom_text(*, tried: str = "1.50 GiB", total: float = 24.0, free: str = "310.00 MiB", kind: str = "CUDA") -> str:
    return (
        f"torch.OutOfMemoryError: {kind} out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of "
        f"{total:.2f} GiB of which {free} is free. Process 913 has {total - 0.3:.2f} GiB memory in use. Of the "
        f"allocated memory {total - 1:.2f} GiB is allocated by PyTorch, and 310.20 MiB is reserved by PyTorch but "
        "unallocated. See documentation for Memory Management"
    )


def oom_error(run: Simulation) -> Want:
    return log_error("oom", "out of memory", "OOM during training step", at=run.now, memory=last_memory(run))


def overflowed(
    trainer: str,
    settings: dict[str, Any],
    *,
    base: float,
    level: float,
    machine: Machine = RTX_4090,
    tried: str = "1.50 GiB",
    steps: int = 120,
) -> Simulation:
    """Return a run that ends in the training with a full card."""
    run = Simulation(trainer, machine, settings)
    run.load(card=base)
    size = machine.card_gb[0]
    if steps:
        run.train(steps, card=level)
    run.overflow(card=size - 0.3)
    run.fail(oom_text(total=size, tried=tried))
    return run


def diagnosed(run: Simulation, kind: str, first: list[Want], why: str, **more: Any) -> Case:
    return case_of(
        run,
        kind,
        health="Critical",
        first=first,
        may=further_memory(run, "gpu" if run.machine.platform == "discrete" else "unified"),
        errors=[oom_error(run)],
        noise=["CalledProcessError"],
        why=why,
        **more,
    )


# ---------------------------------------------------------------- sampling and saving


@each(square={"sample_width": 1536, "sample_height": 1536}, wide={"sample_width": 2048})
def oom_in_sampling_only(settings: dict[str, Any]) -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, settings)
    run.load(card=13.0)
    run.train(250, card=19.2)
    run.begin_sampling()
    run.overflow(card=23.7)
    run.wait(4)
    run.fail(oom_text())
    width, height = run.config.get("sample_width"), run.config.get("sample_height")
    return diagnosed(run, "oom_sampling", _smaller_samples(width, height), "Training stays at 80 %.")


@case
def oom_in_the_baseline_samples() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"sample_width": 1792, "sample_height": 1792})
    run.load(card=13.0)
    run.log.text += "\nGenerating baseline samples before training\n"
    run.begin_sampling()
    run.overflow(card=23.7)
    run.fail(oom_text())
    return diagnosed(run, "oom_first_samples", _smaller_samples(1792, 1792), "Not one step was trained.")


@case
def high_in_sampling_only() -> Case:
    run = Simulation(AI_TOOLKIT, A6000, {"sample_width": 1536, "sample_height": 1536})
    run.load(card=24.0)
    for _ in range(2):
        run.train(300, card=36.0)
        run.sample(40, card=44.8)
    run.finish()
    return case_of(
        run,
        "high_sampling",
        health="Warning",
        first=_smaller_samples(1536, 1536),
        may=further_memory(run, "gpu"),
        why="Sampling reaches 93 %, training 75 %.",
    )


@case
def high_in_sampling_on_unified_memory() -> Case:
    run = Simulation(AI_TOOLKIT, SPARK, {"sample_width": 2048, "sample_height": 2048, "batch": 4})
    run.load(card=40.0)
    for _ in range(2):
        run.train(300, card=70.0)
        run.sample(40, card=105.0)
    run.finish()
    return case_of(
        run,
        "high_sampling_unified",
        health="Critical",
        first=_smaller_samples(2048, 2048),
        may=further_memory(run, "unified"),
        why="Sampling reaches 98 %, training 68 %.",
    )


def _smaller_samples(width: int, height: int) -> list[Want]:
    return [
        critical(path_of(AI_TOOLKIT, "sample_width"), max=width - 1),
        critical(path_of(AI_TOOLKIT, "sample_height"), max=height - 1),
        critical(path_of(AI_TOOLKIT, "disable_sampling"), eq=True),
    ]


@each(
    ema=({"ema": True, "save_dtype": "float32"}, [critical(path_of(AI_TOOLKIT, "ema"), eq=False)]),
    dtype=(
        {"save_dtype": "float32"},
        [critical(path_of(AI_TOOLKIT, "save_dtype"), **{"in": ["float16", "fp16", "bf16", "bfloat16"]})],
    ),
    neither=({}, [critical("machine.gpu_memory_gb", min=25), critical("machine.memory_gb", min=25)]),
)
def oom_in_saving(given: tuple[dict[str, Any], list[Want]]) -> Case:
    settings, first = given
    run = Simulation(AI_TOOLKIT, RTX_4090, settings)
    run.load(card=13.0)
    run.train(250, card=19.2)
    run.begin_saving()
    run.overflow(card=23.7)
    run.fail(oom_text())
    return diagnosed(run, "oom_saving", first, "Training stays at 80 %; the card overflows while saving.")


@case
def system_memory_high_in_saving() -> Case:
    run = Simulation(KOHYA, RTX_3090, {"save_dtype": "float", "workers": 0})
    run.load(card=10.0, main=9.0)
    for _ in range(2):
        run.train(300, card=16.0)
        run.save(30, main=54.5)
    run.finish()
    return case_of(
        run,
        "high_saving_system",
        health="Warning",
        first=[critical(path_of(KOHYA, "save_dtype"), **{"in": ["fp16", "bf16"]})],
        may=further_memory(run, "system"),
        why="Saving in 32 bit fills the system's memory to 92 %.",
    )


@case
def killed_while_saving_without_a_handle() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_3090)
    run.load(card=10.0, main=9.0)
    run.train(250, card=16.0)
    run.begin_saving()
    run.main = 58.6
    run.wait(30)
    run.be_killed()
    return case_of(
        run,
        "killed_saving",
        health="Critical",
        first=[critical("machine.memory_gb", min=63)],
        may=further_memory(run, "system"),
        why="The system's memory is full while saving in 16 bit without EMA.",
    )


# ---------------------------------------------------------------- automatic batch sizes


@case
def raised_batch_overflows() -> Case:
    run = Simulation(AI_TOOLKIT, A6000, {"batch": 2, "ceiling": 12, "auto_batch": True})
    run.load(card=18.0)
    for batch in (2, 4, 8):
        run.train(100, card=18.0 + 2.9 * batch)
        run.change_batch(batch + 4 if batch == 8 else 2 * batch)
    run.overflow(card=47.6)
    run.fail(oom_text(total=48.0, tried="3.80 GiB"))
    return diagnosed(
        run,
        "batch_adjust",
        [critical(path_of(AI_TOOLKIT, "ceiling"), min=1, max=9)],
        "Eight ran at 86 %, nine is predicted to fit, twelve does not.",
        figures={"steps_completed": {"min": 290, "max": 301}},
    )


@case
def raised_batch_overflows_and_is_lowered_again() -> Case:
    run = Simulation(AI_TOOLKIT, A6000, {"batch": 2, "ceiling": ABSENT, "auto_batch": True})
    run.load(card=18.0)
    run.train(150, card=24.0)
    run.change_batch(4)
    run.train(150, card=30.0)
    run.change_batch(12)
    run.overflow(card=47.7)
    at = run.now
    run.log.text += (
        "\n\n################################################\n"
        "# OOM during training step, skipping batch 1/3 #\n"
        "################################################\n\n"
    )
    run.change_batch(4)
    run.train(300, card=30.0)
    run.finish()
    return case_of(
        run,
        "batch_adjust_survived",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "ceiling"), min=1, max=10)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "OOM during training step", at=at)],
        is_spoilt=True,
        why="Twelve overflowed; the trainer skipped the batch and went back to four.",
    )


@case
def raised_batch_runs_above_90_percent() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 1, "ceiling": 6, "auto_batch": True})
    run.load(card=9.0)
    run.train(300, card=11.2)
    run.change_batch(6)
    run.train(300, card=22.4)
    run.finish()
    most = fitting_batch(run, need=22.4, batch=6)
    return case_of(
        run,
        "batch_adjust_high",
        health="Warning",
        first=[critical(path_of(AI_TOOLKIT, "ceiling"), min=1, max=most)],
        may=further_memory(run, "gpu"),
        why="Six fills the card to 93 %, without an overflow.",
    )


# ---------------------------------------------------------------- leaks


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def leak_at_the_samplings_ends_in_oom(trainer: str) -> Case:
    run = Simulation(trainer, RTX_4090, {"sample_every": 60, "batch": 2}, steps=2000)
    run.load(card=12.0)
    for place in range(11):
        run.train(60, card=15.0 + 0.72 * place)
        run.sample(12, card=15.4 + 0.72 * place)
    run.train(20, card=15.0 + 0.72 * 11)
    run.overflow(card=23.7)
    run.fail(oom_text())
    first = [critical(path_of(trainer, "sample_every"), min=120)]
    if trainer == AI_TOOLKIT:
        first.append(critical(path_of(AI_TOOLKIT, "disable_sampling"), eq=True))
    return diagnosed(run, "leak_sampling", first, "Every sampling leaves 0.7 GB behind.")


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def steady_leak_ends_in_oom(trainer: str) -> Case:
    run = Simulation(trainer, RTX_4090, {"batch": 4}, steps=2000)
    run.load(card=10.0)
    run.train(250, card=lambda progress: 14.0 + 3.0 * progress)
    run.save()
    run.train(250, card=lambda progress: 17.0 + 3.0 * progress)
    run.save()
    run.train(240, card=lambda progress: 20.0 + 3.2 * progress)
    run.overflow(card=23.7)
    run.fail(oom_text())
    return diagnosed(
        run,
        "leak_steady",
        [critical("environment.trainer"), critical(path_of(trainer, "save_every"), max=249)],
        "The level rises by a third of the card, evenly.",
    )


@each(low=(12.0, 18.0), high=(14.0, 21.0))
def leak_that_has_not_hurt_yet(levels: tuple[float, float]) -> Case:
    begin, end = levels
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=lambda progress: begin + (end - begin) * progress)
    run.finish()
    return case_of(
        run,
        "leak_early",
        health="Warning",
        first=[warning("environment.trainer"), warning(path_of(AI_TOOLKIT, "save_every"), max=249)],
        may=[{"severity": ["warning"], "path": "*"}] if end > 20.4 else [],
        why="The level rises in every quarter and would overflow a longer run.",
    )


@case
def leak_of_the_system_memory() -> Case:
    run = Simulation(KOHYA, RTX_3090, {"workers": 0})
    run.load(card=10.0, main=8.0)
    run.train(600, card=17.0, main=lambda progress: 10.0 + 48.6 * progress)
    run.be_killed()
    return case_of(
        run,
        "leak_system",
        health="Critical",
        first=[critical("environment.trainer"), critical(path_of(KOHYA, "save_every"), max=249)],
        may=further_memory(run, "system"),
        why="The main process grows until the kernel kills it.",
    )


@case
def growth_in_the_first_quarter_is_no_leak() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=lambda progress: 13.0 + 4.6 * min(1.0, progress / 0.2))
    run.finish()
    return case_of(run, "healthy_warm_up", health="Good", why="The level rises at first and then stays at 73 %.")


# ---------------------------------------------------------------- quantisation


@each(
    ai_toolkit=(AI_TOOLKIT, {"quantize": False}),
    absent=(AI_TOOLKIT, {"quantize": ABSENT}),
    kohya=(KOHYA, {}),
)
def weights_do_not_fit(given: tuple[str, dict[str, Any]]) -> Case:
    trainer, settings = given
    run = Simulation(trainer, RTX_4090, settings)
    run.log.loading(run.now)
    run.wait(40)
    for level in (6.0, 14.0, 21.0):
        run.cards = [level]
        run.wait(20)
    run.cards = [23.7]
    run.wait(20)
    run.fail(oom_text(tried="72.00 MiB"), is_orderly=False)
    return diagnosed(
        run,
        "no_quantisation_load",
        _quantised(trainer),
        "The card overflows while the weights go to it.",
        must_not=[critical(path_of(trainer, "batch"))],
    )


@each(ai_toolkit=(AI_TOOLKIT, {"quantize": False, "batch": 2}), kohya=(KOHYA, {"batch": 2, "quantize": False}))
def weights_take_most_of_the_card(given: tuple[str, dict[str, Any]]) -> Case:
    trainer, settings = given
    run = overflowed(trainer, settings, base=16.8, level=21.9)
    return diagnosed(run, "no_quantisation_base", _quantised(trainer), "The weights alone take 70 %.")


@case
def weights_take_most_of_unified_memory() -> Case:
    run = Simulation(AI_TOOLKIT, SPARK, {"quantize": False})
    run.load(card=76.0)
    run.train(600, card=98.5)
    run.finish()
    return case_of(
        run,
        "no_quantisation_unified",
        health="Warning",
        first=_quantised(AI_TOOLKIT),
        may=further_memory(run, "unified"),
        why="The weights take 73 % of the memory, the whole 92 %.",
    )


@each(
    ai_toolkit=(AI_TOOLKIT, {"network": ABSENT, "quantize": False}),
    kohya=(KOHYA, {"network": ABSENT, "network_dim": ABSENT}),
)
def full_fine_tune_cannot_be_quantised(given: tuple[str, dict[str, Any]]) -> Case:
    trainer, settings = given
    run = Simulation(trainer, A6000, {**settings, "batch": 2})
    run.load(card=30.0)
    run.train(100, card=43.0)
    run.overflow(card=47.6)
    run.fail(oom_text(total=48.0))
    return diagnosed(
        run,
        "full_fine_tune",
        [critical(path_of(trainer, "batch"), eq=1)],
        "The base is 62 % and not quantised, but no adapter is trained: the batch is the first handle.",
        must_not=[{"path": ["config.process[0].model.quantize", "config.process[0].model.qtype", "fp8_base*"]}],
    )


def _quantised(trainer: str) -> list[Want]:
    first = [critical(path_of(trainer, "quantize"), eq=True)]
    if trainer == AI_TOOLKIT:
        first.append(critical(path_of(AI_TOOLKIT, "qtype")))
    return first


# ---------------------------------------------------------------- batch, checkpointing, EMA, resolution, a larger card


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def batch_overflows(trainer: str) -> Case:
    run = overflowed(trainer, {"batch": 6, "checkpointing": False}, base=8.0, level=21.0, tried="2.60 GiB")
    need = 23.7 + 2.6
    return diagnosed(
        run,
        "batch",
        [critical(path_of(trainer, "batch"), min=1, max=fitting_batch(run, need=need, batch=6))],
        "The batch comes before gradient checkpointing.",
    )


@case
def batch_of_unified_memory() -> Case:
    run = Simulation(AI_TOOLKIT, SPARK, {"batch": 8})
    run.load(card=34.0)
    run.train(600, card=103.5)
    run.finish()
    most = fitting_batch(run, need=run.peak_system, batch=8)
    return case_of(
        run,
        "batch_unified",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), min=1, max=most)],
        may=further_memory(run, "unified"),
        why="Batch 8 fills 97 % of the memory.",
    )


@case
def metal_out_of_memory() -> Case:
    run = Simulation(AI_TOOLKIT, MAC, {"batch": 4})
    run.load(card=18.0)
    run.train(100, card=44.0)
    run.overflow(card=49.5)
    run.fail(
        "RuntimeError: MPS backend out of memory (MPS allocated: 44.10 GB, other allocations: 5.35 GB, "
        "max allowed: 49.60 GB). Tried to allocate 1.25 GB on private pool."
    )
    return diagnosed(
        run,
        "oom_mps",
        [critical(path_of(AI_TOOLKIT, "batch"), min=1, max=3)],
        "Metal gives up at its own limit.",
    )


@case
def hip_out_of_memory() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"batch": 3})
    run.load(card=9.0)
    run.train(100, card=21.0)
    run.overflow(card=23.7)
    run.fail(oom_text(kind="HIP"))
    return diagnosed(
        run, "oom_hip", [critical(path_of(KOHYA, "batch"), min=1, max=2)], "ROCm prints HIP instead of CUDA."
    )


@case
def oom_in_the_log_alone() -> Case:
    run = Simulation(KOHYA, RTX_3060, {"batch": 2, "resolution": 768})
    run.load(card=5.0)
    run.train(200, card=9.4)
    run.fail("RuntimeError: CUDA error: out of memory")
    run.rows["TrainingEvent"].clear()
    return case_of(
        run,
        "oom_log_only",
        health="Critical",
        first=[critical(path_of(KOHYA, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now)],
        why="The samples never saw it; the log did.",
    )


@case
def oom_event_alone() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 2})
    run.load(card=9.0)
    run.train(300, card=18.4)
    run.overflow()
    run.train(300, card=18.4)
    run.finish()
    run.log.text = ""
    return case_of(
        run,
        "oom_event_only",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        is_spoilt=True,
        why="An event of the trainer, survived; there is no log.",
    )


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def larger_bucket_overflows(trainer: str) -> Case:
    resolution: Any = [512, 768, 1280] if trainer == AI_TOOLKIT else "1280,1280"
    run = Simulation(trainer, RTX_4090, {"batch": 4, "resolution": resolution})
    run.load(card=9.0)
    run.train(20, card=15.0)
    for place in (1, 2, 3):
        run.overflow(card=23.6)
        if trainer == KOHYA:
            break
        run.log.text += (
            "\n\n################################################\n"
            f"# OOM during training step, skipping batch {place}/3 #\n"
            "################################################\n\n"
        )
    aborted = "RuntimeError: OOM during training step 3 times in a row, aborting training"
    run.fail(aborted if trainer == AI_TOOLKIT else oom_text())
    return diagnosed(
        run,
        "batch_bucket",
        [
            critical(path_of(trainer, "batch"), min=1, max=3),
            critical(path_of(trainer, "resolution"), max=1279),
            critical("max_bucket_reso", max=1279),
        ],
        "Batch 4 fits the small buckets; the first large one does not fit.",
    )


@each(
    ai_toolkit=(AI_TOOLKIT, {"checkpointing": False, "ema": True}),
    kohya=(KOHYA, {"checkpointing": False}),
    absent=(KOHYA, {"checkpointing": ABSENT}),
)
def checkpointing_is_off(given: tuple[str, dict[str, Any]]) -> Case:
    trainer, settings = given
    run = overflowed(trainer, settings, base=9.0, level=22.8)
    first = [critical(path_of(trainer, "checkpointing"), eq=True)]
    return diagnosed(run, "checkpointing_oom", first, "Batch 1 is the smallest; checkpointing is off.")


@each(oom=True, high=False)
def ema_is_on(ends: bool) -> Case:
    if ends:
        run = overflowed(AI_TOOLKIT, {"ema": True}, base=12.0, level=22.9)
        first = [critical(path_of(AI_TOOLKIT, "ema"), eq=False)]
        return diagnosed(run, "ema_oom", first, "EMA comes before the resolution.")
    run = Simulation(AI_TOOLKIT, A6000, {"ema": True, "checkpointing": ABSENT})
    run.load(card=25.0)
    run.train(600, card=44.6)
    run.finish()
    return case_of(
        run,
        "ema_high",
        health="Warning",
        first=[critical(path_of(AI_TOOLKIT, "ema"), eq=False)],
        may=further_memory(run, "gpu"),
        why="At 93 %; checkpointing is on by default.",
    )


@each(
    several=(AI_TOOLKIT, [512, 768, 1024], 1024),
    one=(AI_TOOLKIT, 1024, 1024),
    kohya=(KOHYA, "1024,1024", 1024),
    pair=(KOHYA, "768,1344", 1344),
)
def resolution_is_the_handle(given: tuple[str, Any, int]) -> Case:
    trainer, resolution, largest = given
    run = overflowed(trainer, {"resolution": resolution}, base=11.0, level=22.9, tried="0.60 GiB")
    need = 23.7 + 0.6
    most = math.ceil(largest * math.sqrt((0.90 * 24 - 11) / (need - 11)))
    first = [critical(path_of(trainer, "resolution"), min=128, max=most)]
    return diagnosed(run, "resolution", first, "Batch 1, checkpointing on, no EMA: pictures are too large.")


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def nothing_is_left_but_a_larger_card(trainer: str) -> Case:
    run = overflowed(trainer, _LAST_OPTION, base=12.9, level=22.9, tried="0.60 GiB")
    return diagnosed(run, "larger_card", [critical("machine.gpu_memory_gb", min=25)], "All handles are used.")


@case
def full_fine_tune_needs_a_larger_card() -> Case:
    run = Simulation(KOHYA, RTX_4090, {**_LAST_OPTION, "network": ABSENT, "network_dim": ABSENT})
    run.load(card=15.0)
    run.train(50, card=22.9)
    run.overflow(card=23.7)
    run.fail(oom_text())
    return diagnosed(
        run,
        "full_fine_tune_card",
        [critical("machine.gpu_memory_gb", min=25)],
        "A full fine-tune at batch 1, 512 pixels, with checkpointing.",
        must_not=[{"path": "fp8_base*"}],
    )


# ---------------------------------------------------------------- survived, 85 to 90 %, thresholds


@case
def oom_that_was_survived() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 2})
    run.load(card=9.0)
    run.train(300, card=20.0)
    run.overflow(card=23.6)
    at = run.now
    run.log.text += (
        "\n\n################################################\n"
        "# OOM during training step, skipping batch 1/3 #\n"
        "################################################\n\n"
    )
    run.train(300, card=20.0)
    run.finish()
    return case_of(
        run,
        "oom_survived",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "OOM during training step", at=at, memory=(19.5, 24.1))],
        is_spoilt=True,
        why="One batch was skipped and the run ended well.",
    )


@each(
    checkpointing=(KOHYA, {"checkpointing": False, "batch": 2}, "checkpointing"),
    resolution=(AI_TOOLKIT, {"batch": 2, "ema": True}, "resolution"),
    kohya_resolution=(KOHYA, {"batch": 2}, "resolution"),
    batch=(AI_TOOLKIT, {"batch": 2, **_LAST_OPTION}, "batch"),
    ema=(AI_TOOLKIT, {"ema": True, **_LAST_OPTION}, "ema"),
)
def stable_between_85_and_90_percent(given: tuple[str, dict[str, Any], str]) -> Case:
    trainer, settings, handle = given
    run = Simulation(trainer, RTX_4090, settings)
    run.load(card=9.0)
    run.train(600, card=21.0)
    run.finish()
    values: dict[str, dict[str, Any]] = {
        "checkpointing": {"eq": True},
        "resolution": {"max": 1023},
        "batch": {"max": 1},
        "ema": {"eq": False},
    }
    return case_of(
        run,
        "high_stable",
        health="Warning",
        first=[warning(path_of(trainer, handle), **values[handle])],
        may=[{**want, "severity": ["warning"]} for want in further_memory(run, "gpu")],
        why="Stable at 87.5 %.",
    )


@case
def stable_at_87_percent_with_nothing_to_change() -> Case:
    run = Simulation(KOHYA, RTX_4090, _LAST_OPTION)
    run.load(card=9.0)
    run.train(600, card=21.0)
    run.finish()
    return case_of(
        run,
        "high_stable_no_handle",
        health="Warning",
        may=[{**want, "severity": ["warning"]} for want in further_memory(run, "gpu")],
        why="Health is a warning by the share alone.",
    )


@each(
    lower=((0.70, 0.88), 0.78, "Warning", "warning"),
    lower_critical=((0.70, 0.86), 0.875, "Critical", "warning"),
    higher=((0.93, 0.98), 0.915, "Good", None),
    higher_critical=((0.93, 0.98), 0.955, "Warning", "critical"),
    between=((0.80, 0.92), 0.935, "Critical", "critical"),
)
def thresholds_of_the_config(given: tuple[tuple[float, float], float, str, str | None]) -> Case:
    (low, high), share, health, severity = given
    settings = {"warning": low, "critical": high, "checkpointing": False}
    run = Simulation(AI_TOOLKIT, RTX_4090, settings)
    run.load(card=9.0)
    run.train(600, card=24.0 * share)
    run.finish()
    advice = {**warning(path_of(AI_TOOLKIT, "checkpointing"), eq=True), "severity": [severity]}
    return case_of(
        run,
        "thresholds",
        health=health,
        first=None if severity is None else [advice],
        may=[] if severity is None else further_memory(run, "gpu"),
        why=f"{share:.0%} with thresholds of {low} and {high}.",
    )
