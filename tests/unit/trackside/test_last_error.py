"""What ended a try is read from the end of its log, and only what would come again is not tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from trackside.steps.last_error import find_last_error, read_last_error

FRAMES = """Traceback (most recent call last):
  File "/job/trainer/train_network.py", line 1310, in <module>
    trainer.train(args)
  File "/job/trainer/train_network.py", line 402, in train
    {code}
"""
WRAPPED_BY_ACCELERATE = """Traceback (most recent call last):
  File "/job/venv/bin/accelerate", line 8, in <module>
    sys.exit(main())
  File "/job/venv/lib/python3.11/site-packages/accelerate/commands/launch.py", line 1023, in simple_launcher
    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)
subprocess.CalledProcessError: Command '['/job/venv/bin/python', 'train_network.py', '--rank=8']' {end}.
"""
WRAPPED_BY_TORCHRUN = """W0821 12:00:01.100 77 torch/elastic/api.py:897] Sending process 81 closing signal SIGTERM
E0821 12:00:01.200 77 torch/distributed/elastic/api.py:869] failed (exitcode: {code}) local_rank: 0 (pid: 80)
Traceback (most recent call last):
  File "/job/venv/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-08-21_12:00:01
  rank      : 1 (local_rank: 1)
  exitcode  : -15 (pid: 81)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-08-21_12:00:00
  rank      : 0 (local_rank: 0)
  exitcode  : {code} (pid: 80)
  error_file: <N/A>
============================================================
"""
BAR = "\rsteps:   1%|          | {step}/1000 [00:{step:02d}<15:00,  1.10it/s, avr_loss=0.0{step}]"


def traceback_of(exception: str, code: str = "unknown()") -> str:
    return FRAMES.replace("{code}", code) + exception + "\n"


CANNOT_PASS = {
    "a check of the trainer": "AssertionError: max_train_steps should be greater than initial step",
    "a check without words": "AssertionError",
    "a key": "KeyError: 'network_dim'",
    "an argument": "TypeError: AdamW.__init__() got an unexpected keyword argument 'weight_decouple'",
    "an attribute": "AttributeError: module 'numpy' has no attribute 'float_'",
    "a package": "ModuleNotFoundError: No module named 'torchaudio'",
    "a library": "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "a name": "NameError: name 'accelerator' is not defined",
    "a key that is called timeout": "KeyError: 'timeout'",
    "torch without CUDA": "AssertionError: Torch not compiled with CUDA enabled",
    "no driver": "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
    "a driver that does not begin": "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
    "no GPU": "RuntimeError: No CUDA GPUs are available",
    "an old driver": "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",
    "CUDA newer than the driver": "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
    "another card": "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "yaml": "yaml.scanner.ScannerError: mapping values are not allowed here",
    "toml": "toml.decoder.TomlDecodeError: Invalid date or number (line 3 column 1 char 20)",
    "pydantic": "pydantic_core._pydantic_core.ValidationError: 2 validation errors for TrainConfig",
    "kohya's dataset": "voluptuous.error.MultipleInvalid: extra keys not allowed @ data['datasets'][0]['keep']",
    "hydra": "omegaconf.errors.ConfigAttributeError: Key 'stepz' is not in struct",
    "a config that is not there": "FileNotFoundError: [Errno 2] No such file or directory: '/job/config/train.yaml'",
    "a setting that is needed": "ValueError: name_or_path must be specified",
    "a setting that is not known": "ValueError: Unknown optimizer type: adamz",
    "a licence": "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-6; 2c)",
    "no token": "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://hub.example/api/x",
    "no such model": "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1-6)",
    "a full disk": "OSError: [Errno 28] No space left on device",
    "weights of another model": "RuntimeError: Error(s) in loading state_dict for UNet2DConditionModel:",
}
MAY_PASS = {
    "a lost connection": "requests.exceptions.ConnectionError: ('Connection aborted.', RemoteDisconnected('x'))",
    "a name server": "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
    "a slow answer": "httpx.ReadTimeout: The read operation timed out",
    "a server with trouble": "huggingface_hub.errors.HfHubHTTPError: 503 Server Error: Service Unavailable for url: x",
    "too many requests": "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: x",
    "a refusal for now": "requests.exceptions.HTTPError: 403 Client Error: rate limit exceeded for url: x",
    "no Hub": "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them",
    "nothing in the cache": "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate",
    "NCCL": "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, unhandled system error",
    "GPU memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "memory": "MemoryError",
    "a loader that was killed": "RuntimeError: DataLoader worker (pid(s) 4242) exited unexpectedly",
    "a hiccup of the GPU": "RuntimeError: CUDA error: unspecified launch failure",
    "a loss that is no number": "ValueError: loss is nan at step 120",
    "a gradient that is no number": "ValueError: the gradient norm must be positive, got nan",
    "a value in the middle": "ValueError: Sample larger than population or is negative",
    "an interrupt": "KeyboardInterrupt",
    "nobody knows": "RuntimeError: the fault `crash` was asked for at step 30",
}


@pytest.mark.parametrize("exception", CANNOT_PASS.values(), ids=CANNOT_PASS.keys())
def test_an_error_that_comes_at_every_try_cannot_pass(exception: str) -> None:
    assert find_last_error("loading\n" + traceback_of(exception), exit_code=1) == (exception, True)


@pytest.mark.parametrize("exception", MAY_PASS.values(), ids=MAY_PASS.keys())
def test_an_error_that_may_be_gone_at_the_next_try_may_pass(exception: str) -> None:
    assert find_last_error("loading\n" + traceback_of(exception), exit_code=1) == (exception, False)


@pytest.mark.parametrize("exception", ["KeyError: 'rank'", "RuntimeError: nobody knows"])
def test_launchers_only_tell_that_their_child_failed(exception: str) -> None:
    child = BAR.format(step=0) + traceback_of(exception)
    expected = (exception, exception.startswith("KeyError"))
    by_accelerate = WRAPPED_BY_ACCELERATE.format(end="returned non-zero exit status 1")
    assert find_last_error(child + by_accelerate, exit_code=1) == expected
    ranked = child + "".join(f"[rank0]: {line}\n" for line in child.strip().splitlines())
    assert find_last_error(ranked + WRAPPED_BY_TORCHRUN.format(code=1), exit_code=1) == expected


def test_processes_that_print_at_the_same_time_are_read_apart() -> None:
    by_rank = [traceback_of(f"KeyError: 'of {rank}'").splitlines() for rank in (0, 1)]
    together = "".join(f"[rank0]: {first}\n[rank1]: {second}\n" for first, second in zip(*by_rank, strict=True))
    assert find_last_error(together, exit_code=1) == ("KeyError: 'of 1'", True)


def test_a_launcher_with_a_very_long_command_is_understood() -> None:
    wrapped = WRAPPED_BY_ACCELERATE.format(end="returned non-zero exit status 1").replace("--rank", "--x=1 " * 5000)
    assert find_last_error(traceback_of("KeyError: 'rank'") + wrapped, exit_code=1) == ("KeyError: 'rank'", True)


def test_a_traceback_that_was_caught_long_before_a_kill_is_not_the_cause() -> None:
    caught = "xformers is not there, going on without it\n" + traceback_of("KeyError: 'flash'")
    training = "".join(BAR.format(step=step) for step in range(1, 60))
    assert find_last_error(caught + training, exit_code=1) == (None, False)
    by_accelerate = WRAPPED_BY_ACCELERATE.format(end="died with <Signals.SIGKILL: 9>")
    killed = find_last_error(caught + training + by_accelerate, exit_code=1)
    assert killed == ("a process of the step was killed by SIGKILL", False)
    by_torchrun = WRAPPED_BY_TORCHRUN.format(code=-9)
    assert find_last_error(caught + by_torchrun, exit_code=1) == ("a process of the step was killed by signal 9", False)
    assert find_last_error(caught, exit_code=137) == (None, False)
    wrapped = WRAPPED_BY_ACCELERATE.format(end="returned non-zero exit status 137")
    assert not find_last_error(caught + wrapped, exit_code=1).cannot_pass


@pytest.mark.parametrize(
    "after",
    [
        "epoch 1, loss: 0.31\n",
        "model saved\n",
        "loading\n" * 50,
        "terminate called after throwing an instance of 'c10::DistBackendError'\n  what(): NCCL was aborted\n",
    ],
)
def test_what_follows_a_caught_traceback_keeps_it_from_being_the_cause(after: str) -> None:
    assert not find_last_error(traceback_of("KeyError: 'flash'") + after, exit_code=1).cannot_pass


@pytest.mark.parametrize(
    "after",
    [
        BAR.format(step=7) + "\n",
        "cat:   1%|          | 7/1000 [00:07<15:00,  1.10it/s, lr: 1.0e-04 loss: 3.1e-01]\n",
        "wandb: Run summary:\nwandb:      loss 0.31\n",
        "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n"
        + traceback_of("RuntimeError: can only test a child process"),
        "[rank0]:[W821 ProcessGroupNCCL.cpp:1496] Warning: destroy_process_group() was not called before exit\n",
    ],
)
def test_what_a_program_says_at_its_end_does_not_hide_the_cause(after: str) -> None:
    log = BAR.format(step=7) + traceback_of("KeyError: 'caption'") + after
    assert find_last_error(log, exit_code=1) == ("KeyError: 'caption'", True)


def test_an_exception_that_ended_only_a_thread_ends_nothing() -> None:
    thread = "Exception in thread Thread-3 (upload):\n" + traceback_of("KeyError: 'run'")
    assert not find_last_error(thread, exit_code=1).cannot_pass


HANDLED = "\nDuring handling of the above exception, another exception occurred:\n\n"
CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"


@pytest.mark.parametrize(
    ("first", "link", "last", "cannot_pass"),
    [
        ("requests.exceptions.ConnectionError: reset", HANDLED, "UnboundLocalError: cannot access 'job'", False),
        ("KeyError: 'cached'", HANDLED, "RuntimeError: CUDA error: unspecified launch failure", False),
        ("ModuleNotFoundError: No module named 'x'", CAUSED, "RuntimeError: Failed to import model", True),
        ("KeyError: 'model'", HANDLED, "UnboundLocalError: cannot access local variable 'job'", True),
        ("torch.OutOfMemoryError: CUDA out of memory", HANDLED, "TypeError: 'NoneType' is not iterable", False),
    ],
)
def test_a_chain_of_exceptions_is_judged_as_a_whole(first: str, link: str, last: str, cannot_pass: bool) -> None:
    chained = traceback_of(first) + link + traceback_of(last)
    assert find_last_error(chained, exit_code=1) == (last, cannot_pass)


def test_a_loader_s_own_traceback_is_the_cause() -> None:
    outer = traceback_of("KeyError: Caught KeyError in DataLoader worker process 0.")
    inner = "Original " + traceback_of("KeyError: 'caption'")
    assert find_last_error(outer + inner, exit_code=1) == ("KeyError: 'caption'", True)


def test_arguments_that_are_not_understood_cannot_pass() -> None:
    usage = "usage: train.py [-h]\n" + "                [--option-with-a-name NAME]\n" * 300
    error = "train.py: error: unrecognized arguments: --ranks=8"
    assert find_last_error(usage + error + "\n", exit_code=2) == (error, True)
    by_accelerate = WRAPPED_BY_ACCELERATE.format(end="returned non-zero exit status 2")
    assert find_last_error(usage + error + "\n" + by_accelerate, exit_code=1) == (error, True)
    assert not find_last_error("cc: error: linker failed\n", exit_code=1).cannot_pass


def test_a_script_that_cannot_be_read_cannot_pass() -> None:
    log = '  File "/job/recipe/train.py", line 3\n    for x in\n            ^\nSyntaxError: invalid syntax\n'
    assert find_last_error(log, exit_code=1) == ("SyntaxError: invalid syntax", True)


@pytest.mark.parametrize(
    ("log", "code", "said", "cannot_pass"),
    [
        (
            "Cloning into 'trainer'...\nfatal: unable to access 'https://host.example/x/': Could not resolve host: x\n",
            128,
            "fatal: unable to access 'https://host.example/x/': Could not resolve host: x",
            False,
        ),
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'\n"
            "ERROR: Could not find a version that satisfies the requirement torch==2.6.0 (from versions: none)\n"
            "ERROR: No matching distribution found for torch==2.6.0\n",
            1,
            "ERROR: No matching distribution found for torch==2.6.0",
            False,
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n\n",
            1,
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            True,
        ),
        (
            "Error response from daemon: manifest for a/b:c not found: manifest unknown\n",
            1,
            "Error response from daemon: manifest for a/b:c not found: manifest unknown",
            True,
        ),
        ("sh: 1: git: not found\n", 127, "sh: 1: git: not found", True),
        ("E: Failed to fetch, connection timed out\nsh: 1: git: not found\n", 127, "sh: 1: git: not found", False),
        ("Usage: tool [OPTIONS]\n\nError: No such option: --ranks\n", 2, "Error: No such option: --ranks", True),
        ("working\nstill working\n", 3, None, False),
        ("", 1, None, False),
    ],
)
def test_programs_that_end_without_a_traceback(log: str, code: int, said: str | None, cannot_pass: bool) -> None:
    assert find_last_error(log, exit_code=code) == (said, cannot_pass)


def test_a_traceback_drawn_in_a_box_is_read() -> None:
    log = (
        "╭───────────── Traceback (most recent call last) ─────────────╮\n"
        "│ /job/trainer/train.py:402 in train                          │\n"
        "│ ❱ 402 │   rank = config['rank']                             │\n"
        "╰─────────────────────────────────────────────────────────────╯\n"
        "KeyError: 'rank'\n"
    )
    assert find_last_error(log, exit_code=1) == ("KeyError: 'rank'", True)


def test_the_error_is_one_short_line_without_control_characters() -> None:
    log = traceback_of("\x1b[31mKeyError\x1b[0m: 'a\tb\x07" + "x" * 5000 + "'")
    text = find_last_error(log, exit_code=1).text
    assert text is not None
    assert text.startswith("KeyError: 'a b xxx")
    assert (len(text), text[-1]) == (400, "…")


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    long_ago = traceback_of("KeyError: 'old'")
    log.write_bytes(long_ago.encode() + b"x\n" * 100_000)
    assert read_last_error(str(log), exit_code=1) == (None, False)
    log.write_bytes(b"\xff\x00\n" * 100_000 + traceback_of("KeyError: 'new'").encode())
    assert read_last_error(str(log), exit_code=1) == ("KeyError: 'new'", True)
    assert read_last_error(str(tmp_path / "none"), exit_code=1) == (None, False)
