"""The same causes in other words: what libraries print when a file, a driver or a card fails."""

from __future__ import annotations

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.catalogue.crashes import NOT_OOM
from tests.support.analysis_cases.catalogue.workers import no_workers
from tests.support.analysis_cases.configs import AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import Want, case_of, critical, further_memory, log_error
from tests.support.analysis_cases.machines import RTX_4090
from tests.support.analysis_cases.simulation import Simulation

_HOST = "machine.host"


def _failed(trainer: str, error: str, first: list[Want], *, words: str, steps: int = 0, before: str = "") -> Case:
    run = Simulation(trainer, RTX_4090)
    if steps:
        run.load(card=10.0)
        run.train(steps, card=17.6)
    else:
        run.log.loading(run.now)
        run.wait(50)
        run.snapshot()
    run.log.text += before
    run.fail(error)
    return case_of(
        run,
        "wording",
        health="Critical",
        first=first,
        may=[{"severity": ["critical", "warning"], "path": ["machine.*", "environment.*"]}],
        must_not_say=NOT_OOM,
        errors=[log_error("crash", words, at=run.now)],
        noise=["CalledProcessError"],
        why=error.partition("\n")[0],
    )


@each(
    misaligned="RuntimeError: CUDA error: misaligned address",
    instruction="torch.AcceleratorError: CUDA error: an illegal instruction was encountered",
    timed_out="RuntimeError: CUDA error: the launch timed out and was terminated",
    cublas="RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(...)`",
    cudnn="RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
    unknown="RuntimeError: CUDA error: unknown error",
)
def other_faults_of_a_card(error: str) -> Case:
    return _failed(KOHYA, error, [critical(_HOST)], words=error.partition(": ")[2], steps=200)


@each(
    combination="RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display "
    "driver / cuda driver combination",
    too_old="RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",
    initialization="RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
)
def drivers(error: str) -> Case:
    return _failed(AI_TOOLKIT, error, [critical("machine.driver"), critical(_HOST)], words="driver")


@case
def card_that_torch_does_not_know() -> Case:
    return _failed(
        AI_TOOLKIT,
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        [critical("environment.torch")],
        words="no kernel image",
        before="UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current "
        "PyTorch installation.\n",
    )


@each(
    ai_toolkit=(AI_TOOLKIT, "Unknown optimizer type prodigy9", "ValueError: Unknown optimizer type prodigy9"),
    kohya=(KOHYA, "has no attribute", "AttributeError: module 'torch.optim' has no attribute 'Prodigy9'"),
)
def optimizers(given: tuple[str, str, str]) -> Case:
    trainer, words, error = given
    run = Simulation(trainer, RTX_4090, {"optimizer": "Prodigy9" if trainer == KOHYA else "prodigy9"})
    run.load(card=10.0)
    run.fail(error)
    return case_of(
        run,
        "wording",
        health="Critical",
        first=[critical(path_of(trainer, "optimizer"))],
        must_not_say=NOT_OOM,
        errors=[log_error("crash", words, at=run.now)],
        why="The weights are loaded when the optimizer is made.",
    )


@each(
    folder=(
        AI_TOOLKIT,
        "model",
        "OSError: black-forest-labs/FLUX.1-dev does not appear to have a file named config.json.",
    ),
    weights=(
        AI_TOOLKIT,
        "model",
        "OSError: Error no file named diffusion_pytorch_model.safetensors found in directory "
        "black-forest-labs/FLUX.1-dev.",
    ),
    entry=(
        KOHYA,
        "model",
        "FileNotFoundError: [Errno 2] No such file or directory: 'models/sd_xl_base_1.0.safetensors'",
    ),
    no_images=(
        KOHYA,
        "data",
        "ValueError: No data found. Please verify arguments (train_data_dir must be the parent of folders with images)",
    ),
    no_images_ai_toolkit=(AI_TOOLKIT, "data", "ValueError: No images found in data/clay_bird"),
    no_folder=(KOHYA, "data", "FileNotFoundError: [Errno 2] No such file or directory: 'data/clay_bird/meta.json'"),
    broken_stream=(AI_TOOLKIT, "data", "OSError: broken data stream when reading image file"),
    unidentified=(
        AI_TOOLKIT,
        "data",
        "PIL.UnidentifiedImageError: cannot identify image file '/workspace/data/clay_bird/nan_bread.webp'",
    ),
)
def missing_and_broken_files(given: tuple[str, str, str]) -> Case:
    trainer, setting, error = given
    words = error.partition(": ")[2][:30]
    return _failed(trainer, error, [critical(path_of(trainer, setting))], words=words)


@each(
    launcher=(
        "Traceback (most recent call last):\nsubprocess.CalledProcessError: Command '['python', 'train_network.py']' "
        "died with <Signals.SIGKILL: 9>.\n",
        "1",
    ),
    torchrun=(
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \ntrain_network.py FAILED\n"
        "  exitcode  : -9 (pid: 912)\n  traceback : Signal 9 (SIGKILL) received by PID 912\n",
        "1",
    ),
    shell=("train.sh: line 3:   912 Killed                  accelerate launch train_network.py\n", "137"),
)
def kills_in_other_words(given: tuple[str, str]) -> Case:
    text, code = given
    run = Simulation(KOHYA, RTX_4090, {"workers": 6})
    run.load(card=10.0)
    run.train(300, card=15.0, worker_count=6, workers=lambda progress: 53.0 * progress)
    run.log.text += "\n" + text
    run.be_killed()
    run.info["exit_code"] = code
    del run.info["exit_signal"]
    return case_of(
        run,
        "killed_words",
        health="Critical",
        first=[no_workers(run)],
        may=further_memory(run, "system"),
        why="A launcher or the shell reports the kernel's signal 9 at 99 % of the memory.",
    )


@each(launcher="died with <Signals.SIGKILL: 9>.", torchrun="  traceback : Signal 9 (SIGKILL) received by PID 912")
def kills_at_half_memory_in_other_words(text: str) -> Case:
    run = Simulation(KOHYA, RTX_4090)
    run.load(card=10.0)
    run.train(300, card=15.0)
    run.log.text += f"\n{text}\n"
    run.be_killed()
    run.info["exit_code"] = "1"
    del run.info["exit_signal"]
    return case_of(
        run,
        "killed_words_half",
        health="Critical",
        first=[critical(_HOST)],
        must_not_say=NOT_OOM,
        why="Signal 9 without full memory.",
    )
