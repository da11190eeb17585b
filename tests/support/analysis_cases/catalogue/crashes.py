"""Runs that ended by something other than memory: the named cause, or a signal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.catalogue.memory import oom_text
from tests.support.analysis_cases.configs import AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import Want, case_of, critical, further_memory, last_memory, log_error
from tests.support.analysis_cases.machines import RTX_3090, RTX_4090, SPARK, TWO_3090
from tests.support.analysis_cases.simulation import Simulation

NOT_OOM = (r"\boom\b", "out of memory")
_LAUNCHER = ("CalledProcessError", "ChildFailedError")


@dataclass(frozen=True)
class Crash:
    """An error, the advice that it asks for, and the words of its entry among the log's errors."""

    trainer: str
    error: str
    first: list[Want]
    words: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)


def _case(run: Simulation, kind: str, crash: Crash, why: str, **more: Any) -> Case:
    return case_of(
        run,
        kind,
        health="Critical",
        first=crash.first,
        must_not_say=NOT_OOM,
        errors=[log_error(kind, *crash.words, at=run.now, memory=last_memory(run))],
        noise=_LAUNCHER,
        why=why,
        **more,
    )


# ---------------------------------------------------------------- before the first step

_URL = "https://huggingface.co/black-forest-labs/FLUX.1-dev/resolve/main/transformer/config.json"


@each(
    gated_401=Crash(
        AI_TOOLKIT,
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-68f0)\n\n"
        f"Cannot access gated repo for url {_URL}.\n"
        "Access to model black-forest-labs/FLUX.1-dev is restricted. You must have access to it and be authenticated "
        "to access it. Please log in.",
        [critical("credentials.hf_token")],
        ("gated repo", "GatedRepoError"),
    ),
    gated_403=Crash(
        KOHYA,
        "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-68f0)\n\n"
        f"Cannot access gated repo for url {_URL}.\n"
        "Your request to access model black-forest-labs/FLUX.1-dev is awaiting a review from the repo authors.",
        [critical("credentials.hf_token")],
        ("gated repo", "GatedRepoError"),
    ),
    gated_os_error=Crash(
        AI_TOOLKIT,
        "OSError: You are trying to access a gated repo.\nMake sure to have access to it at "
        "https://huggingface.co/black-forest-labs/FLUX.1-dev.\n403 Client Error. (Request ID: Root=1-68f0)",
        [critical("credentials.hf_token")],
        ("gated repo",),
    ),
    unauthorised=Crash(
        AI_TOOLKIT,
        f"huggingface_hub.errors.HfHubHTTPError: 401 Client Error: Unauthorized for url: {_URL}",
        [critical("credentials.hf_token")],
        ("401 Client Error",),
    ),
    optimizer=Crash(
        AI_TOOLKIT,
        "ValueError: Unknown optimizer type adamw9bit",
        [critical(path_of(AI_TOOLKIT, "optimizer"))],
        ("Unknown optimizer",),
        {"optimizer": "adamw9bit"},
    ),
    optimizer_kohya=Crash(
        KOHYA,
        "AttributeError: module 'torch.optim' has no attribute 'AdamV8bit'",
        [critical(path_of(KOHYA, "optimizer"))],
        ("AdamV8bit",),
        {"optimizer": "AdamV8bit"},
    ),
    model=Crash(
        AI_TOOLKIT,
        "OSError: black-forest-labs/FLUX.1-dex is not a local folder and is not a valid model identifier listed on "
        "'https://huggingface.co/models'",
        [critical(path_of(AI_TOOLKIT, "model"))],
        ("is not a local folder", "valid model identifier"),
        {"model": "black-forest-labs/FLUX.1-dex"},
    ),
    model_404=Crash(
        AI_TOOLKIT,
        "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1-68f0)\n\n"
        "Repository Not Found for url: https://huggingface.co/api/models/some-one/none.",
        [critical(path_of(AI_TOOLKIT, "model"))],
        ("404 Client Error", "Repository Not Found"),
        {"model": "some-one/none"},
    ),
    model_kohya=Crash(
        KOHYA,
        'FileNotFoundError: No such file or directory: "models/sd_xl_bass_1.0.safetensors"',
        [critical(path_of(KOHYA, "model"))],
        ("No such file or directory",),
        {"model": "models/sd_xl_bass_1.0.safetensors"},
    ),
    data=Crash(
        AI_TOOLKIT,
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/clay_brid'",
        [critical(path_of(AI_TOOLKIT, "data"))],
        ("No such file or directory",),
        {"data": "data/clay_brid"},
    ),
    data_kohya=Crash(
        KOHYA,
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/clay_brid'",
        [critical(path_of(KOHYA, "data"))],
        ("No such file or directory",),
        {"data": "data/clay_brid"},
    ),
    driver=Crash(
        KOHYA,
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU "
        "driver by downloading and installing a new version",
        [critical("machine.driver")],
        ("driver on your system is too old",),
    ),
    driver_insufficient=Crash(
        AI_TOOLKIT,
        "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        [critical("machine.driver")],
        ("driver version is insufficient",),
    ),
    no_driver=Crash(
        AI_TOOLKIT,
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed "
        "a driver",
        [critical("machine.driver"), critical("machine.host")],
        ("Found no NVIDIA driver",),
    ),
    kernel=Crash(
        AI_TOOLKIT,
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
        "CUDA kernel errors might be asynchronously reported at some other API call",
        [critical("environment.torch")],
        ("no kernel image",),
    ),
    kernel_kohya=Crash(
        KOHYA,
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        [critical("environment.torch")],
        ("no kernel image",),
    ),
)
def failed_at_the_start(crash: Crash) -> Case:
    run = Simulation(crash.trainer, RTX_4090, crash.settings)
    run.log.loading(run.now)
    run.wait(45)
    run.snapshot()
    run.fail(crash.error)
    return _case(run, "start", crash, "It failed before the first step.")


# ---------------------------------------------------------------- in the training


@each(
    illegal_access=Crash(
        AI_TOOLKIT,
        "RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be "
        "asynchronously reported at some other API call",
        [critical("machine.host")],
        ("illegal memory access",),
    ),
    launch_failure=Crash(
        KOHYA,
        "RuntimeError: CUDA error: unspecified launch failure",
        [critical("machine.host")],
        ("unspecified launch failure",),
    ),
    ecc=Crash(
        AI_TOOLKIT,
        "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered",
        [critical("machine.host")],
        ("uncorrectable ECC error",),
    ),
    device_assert=Crash(
        KOHYA,
        "RuntimeError: CUDA error: device-side assert triggered",
        [critical("machine.host")],
        ("device-side assert",),
    ),
    picture=Crash(
        KOHYA,
        "PIL.UnidentifiedImageError: cannot identify image file 'data/clay_bird/bedroom_012.jpg'",
        [critical(path_of(KOHYA, "data"))],
        ("cannot identify image file",),
    ),
    picture_cut=Crash(
        AI_TOOLKIT,
        "OSError: image file is truncated (37 bytes not processed)",
        [critical(path_of(AI_TOOLKIT, "data"))],
        ("image file is truncated",),
    ),
)
def failed_in_the_training(crash: Crash) -> Case:
    run = Simulation(crash.trainer, RTX_4090, crash.settings)
    run.load(card=10.0)
    run.train(300, card=17.6)
    if "assert" in crash.error:
        line = (
            "Indexing.cu:1290: indexSelectLargeIndex: block: [{0},0,0], thread: [{0},0,0] Assertion `i < n` failed.\n"
        )
        run.log.text += "\n" + "".join(line.format(place) for place in range(300))
    run.fail(crash.error)
    return _case(run, "fault", crash, "It failed in a step; the memory was steady.")


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def illegal_access_on_a_full_card(trainer: str) -> Case:
    run = Simulation(trainer, RTX_4090)
    run.load(card=10.0)
    run.train(300, card=21.0)
    run.fail("RuntimeError: CUDA error: an illegal memory access was encountered")
    crash = Crash(trainer, "", [critical("machine.host")], ("illegal memory access",))
    return _case(
        run,
        "illegal_access",
        crash,
        "87.5 % of the card is no reason for an illegal access.",
        may=[{**want, "severity": ["warning"]} for want in further_memory(run, "gpu")],
    )


@each(middle=False, end=True)
def disk_is_full(at_the_end: bool) -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"keep_saves": 20})
    run.load(card=10.0)
    run.train(600 if at_the_end else 500, card=17.6)
    run.begin_saving()
    run.wait(5)
    run.fail("OSError: [Errno 28] No space left on device")
    first = [critical("machine.disk_gb"), critical(path_of(AI_TOOLKIT, "keep_saves"), max=19)]
    crash = Crash(AI_TOOLKIT, "", first, ("No space left on device",))
    figures = {"steps_completed": {"min": run.step - 1, "max": run.step + 1}}
    return _case(run, "disk_full", crash, "The disk is full while saving.", figures=figures, may=[_SAVES])


_SAVES: Want = {"severity": ["warning"], "path": ["config.process.save.*", "machine.disk*", "save_*"]}


@each(
    with_message='IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })',
    without_message="IoError(Os { code: 28, kind: StorageFull })",
)
def disk_is_full_in_kohya(reason: str) -> Case:
    run = Simulation(KOHYA, RTX_3090)
    run.load(card=10.0)
    run.train(250, card=17.6)
    run.begin_saving()
    run.wait(5)
    run.fail(f"safetensors_rust.SafetensorError: Error while serializing: {reason}")
    crash = Crash(KOHYA, "", [critical("machine.disk_gb"), critical("save_last_n_*")], ("StorageFull", "No space left"))
    return _case(run, "disk_full", crash, "The disk is full while saving.", may=[_SAVES])


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def shared_memory_is_too_small(trainer: str) -> Case:
    run = Simulation(trainer, replace(RTX_4090, limit_gb=62.0, memory_gb=251.0), {"workers": 4})
    run.info["shm_size_gb"] = "0.0625"
    run.load(card=10.0)
    run.train(40, card=17.6, worker_count=4, workers=6.0)
    run.log.text += (
        "\nERROR: Unexpected bus error encountered in worker. "
        "This might be caused by insufficient shared memory (shm).\n"
    )
    run.fail(
        "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that dataloader's "
        "workers are out of shared memory. Please try to raise your shared memory limit."
    )
    first = [critical("machine.shm_gb", min=0.1), critical(path_of(trainer, "workers"), eq=0)]
    return _case(run, "shm", Crash(trainer, "", first, ("bus error",)), "Shared memory is the container's default.")


@case
def bus_error_with_full_system_memory() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"workers": 4})
    run.load(card=10.0)
    run.train(200, card=17.6, worker_count=4, workers=51.5)
    run.fail("RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error.")
    first = [critical("machine.shm_gb"), critical(path_of(AI_TOOLKIT, "workers"), eq=0)]
    return _case(
        run,
        "shm_full",
        Crash(AI_TOOLKIT, "", first, ("Bus error",)),
        "A bus error is not out of memory, however full the memory is.",
        may=further_memory(run, "system"),
    )


@case
def disk_is_full_and_the_card_nearly() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"batch": 2})
    run.load(card=10.0)
    run.train(250, card=22.3)
    run.begin_saving()
    run.fail("OSError: [Errno 28] No space left on device")
    first = [critical("machine.disk_gb"), critical(path_of(AI_TOOLKIT, "keep_saves"), max=3)]
    return _case(
        run,
        "disk_full_high",
        Crash(AI_TOOLKIT, "", first, ("No space left on device",)),
        "What ended the run comes before memory above 90 %, which is advised on too.",
        must_include=[[critical(path_of(AI_TOOLKIT, "batch"), eq=1)]],
        may=[*further_memory(run, "gpu"), _SAVES],
    )


# ---------------------------------------------------------------- signals and other ends


@each(discrete=(AI_TOOLKIT, RTX_4090), unified=(KOHYA, SPARK), two=(KOHYA, TWO_3090))
def signal_9_at_half_memory(given: tuple[str, Any]) -> Case:
    trainer, machine = given
    run = Simulation(trainer, machine, {"workers": 2})
    run.load(card=10.0)
    run.train(300, card=16.0, worker_count=2, workers=3.0)
    run.be_killed()
    return case_of(
        run,
        "signal_9",
        health="Critical",
        first=[critical("machine.host")],
        must_not_say=NOT_OOM,
        why="The kernel had no reason to kill it: the host went away.",
    )


@case
def memory_was_full_long_before_the_kill() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"workers": 0})
    run.load(card=10.0)
    run.train(100, card=16.0)
    run.save(25, main=55.0)
    run.train(200, card=16.0)
    run.be_killed()
    return case_of(
        run,
        "signal_9_late",
        health="Critical",
        first=[critical("machine.host")],
        may=further_memory(run, "system"),
        must_not_say=NOT_OOM,
        why="In the last minute the system's memory was at 15 %; it was at 93 % while saving, which comes later.",
    )


@case
def exit_code_137_without_a_signal() -> Case:
    run = Simulation(KOHYA, RTX_3090)
    run.load(card=10.0)
    run.train(300, card=18.0)
    run.be_killed()
    del run.info["exit_signal"]
    return case_of(
        run,
        "exit_137",
        health="Critical",
        first=[critical("machine.host")],
        must_not_say=NOT_OOM,
        why="137 is signal 9.",
    )


_AROUND: Want = {"severity": ["critical", "warning"], "path": ["machine.*", "environment.*"]}


@each(
    segmentation_fault=("", 11, ()),
    terminated=("", 15, ()),
    unknown=("KeyError: 'double_blocks.0.img_attn.qkv.weight'", 0, ("double_blocks",)),
    nccl=(
        "torch.distributed.DistBackendError: [Rank 0] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=812, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.",
        0,
        ("Watchdog caught collective",),
    ),
)
def crash_without_a_named_cause(given: tuple[str, int, tuple[str, ...]]) -> Case:
    error, signal, words = given
    run = Simulation(KOHYA, RTX_4090)
    run.load(card=10.0)
    run.train(300, card=17.6)
    if signal:
        run.be_killed(signal=signal)
    else:
        run.fail(error)
    return case_of(
        run,
        "crash",
        health="Critical",
        may=[_AROUND],
        must_not_say=NOT_OOM,
        errors=[log_error("crash", *words, at=run.now)] if words else [],
        noise=_LAUNCHER,
        why="It ended without a cause that can be named, and is not complete.",
    )


@each(interrupt=(AI_TOOLKIT, 2), terminate=(KOHYA, 15), kill=(AI_TOOLKIT, 9))
def stopped_by_the_user(given: tuple[str, int]) -> Case:
    trainer, signal = given
    run = Simulation(trainer, RTX_4090)
    run.load(card=10.0)
    run.train(300, card=17.6)
    if signal == 2:
        run.log.text += (
            '\nTraceback (most recent call last):\n  File "run.py", line 1, in <module>\nKeyboardInterrupt\n'
        )
    run.be_stopped(signal=signal)
    return case_of(
        run,
        "stopped",
        health="Good",
        noise=["KeyboardInterrupt"],
        must_not_say=NOT_OOM,
        why="The user ended it on purpose: not completed, and nothing is wrong.",
    )


@case
def oom_behind_a_launchers_traceback() -> Case:
    run = Simulation(KOHYA, TWO_3090, {"batch": 2})
    run.load(card=9.0)
    run.train(100, card=21.0)
    run.overflow(card=23.7)
    cause = oom_text()
    frames = "".join(f"[rank1]: {line}\n" for line in f"Traceback (most recent call last):\n{cause}".split("\n"))
    run.log.text += (
        f"\n{frames}E1101 10:00:00.000000 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) "
        "local_rank: 1 (pid: 812) of binary: /usr/bin/python\n"
    )
    run.fail("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \ntrain_network.py FAILED")
    return case_of(
        run,
        "oom_launcher",
        health="Critical",
        first=[critical(path_of(KOHYA, "batch"), eq=1)],
        may=further_memory(run, "gpu"),
        errors=[log_error("oom", "out of memory", at=run.now)],
        noise=_LAUNCHER,
        why="The cause is the first traceback, not the launcher's.",
    )
