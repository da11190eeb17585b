"""tiny-lora@1 when it is stopped, killed, or told to misbehave."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tests.support.jobs.tiny_lora_runs import LiveRun, saved, train, write_images

SLOWLY = "--seconds-per-step=0.02"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "images", count=6)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_asked_to_stop_it_saves_where_it_is(dataset: Path, output: Path, number: signal.Signals, status: int) -> None:
    with LiveRun(dataset, output, SLOWLY, "--steps=100000", "--save-every=100000") as run:
        run.wait_until(lambda: re.search(r"demo: .* [1-9]\d*/100000 ", run.log()))
        run.process.send_signal(number)
        assert run.ended() == status
    (name,) = saved(output)
    assert re.fullmatch(r"demo_\d{9}\.safetensors", name)
    assert load_file(output / name)["lora_B.weight"].any()
    assert "Job stopped" in run.log()


def test_asked_to_save_it_does_so_at_the_next_step_and_goes_on(dataset: Path, output: Path) -> None:
    with LiveRun(dataset, output, SLOWLY, "--steps=100000", "--save-every=100000") as run:
        for saves in (1, 2):
            step = run.wait_until(lambda: re.findall(r"demo: .* ([1-9]\d*)/100000 ", run.log()))
            run.process.send_signal(signal.SIGUSR1)
            run.wait_until(lambda: len(saved(output)) == saves)  # noqa: B023 (waited for here)
            assert int(saved(output)[-1][5:14]) >= int(step[-1])
        after = len(run.log())
        run.wait_until(lambda: re.search(r"demo: .* [1-9]\d*/100000 ", run.log()[after:]))
    assert "Job stopped" not in run.log()


def test_stopped_before_the_first_step_it_saves_nothing(dataset: Path, output: Path) -> None:
    with LiveRun(dataset, output, "--fault=stall", "--fault-at=1") as run:
        run.wait_until(lambda: _fault_shown(output))
        run.process.terminate()
        assert run.ended() == 143
    assert saved(output) == []


def test_killed_while_it_saves_at_every_step_it_leaves_only_whole_files(dataset: Path, output: Path) -> None:
    with LiveRun(dataset, output, "--steps=100000", "--save-every=1", "--sample-every=100000") as run:
        run.wait_until(lambda: len(saved(output)) == 4)
        run.process.kill()
        run.ended()
    assert saved(output)
    assert all(load_file(path) for path in output.glob("*.safetensors"))


def test_killed_in_the_middle_of_a_save_it_leaves_no_half_file(dataset: Path, output: Path) -> None:
    with LiveRun(dataset, output, "--fault=hang_saving", "--fault-at=30") as run:
        run.wait_until(lambda: list(output.glob(".demo_000000040.safetensors.*.partial")))
        run.process.kill()
        run.ended()
    assert run.log().endswith("\nSaving at step 40\n")
    assert saved(output) == ["demo_000000020.safetensors"]
    assert train(dataset, output).returncode == 0
    assert "demo.safetensors" in saved(output)
    assert not list(output.glob(".*.partial"))


def test_hanging_in_a_save_it_ends_on_term_without_a_file(dataset: Path, output: Path) -> None:
    with LiveRun(dataset, output, "--fault=hang_saving", "--fault-at=1") as run:
        run.wait_until(lambda: _fault_shown(output))
        run.process.terminate()
        assert run.ended() == 143
    assert saved(output) == []


def test_a_stall_stops_stepping_and_stays_alive(dataset: Path, output: Path) -> None:
    with LiveRun(dataset, output, "--fault=stall", "--fault-at=31") as run:
        run.wait_until(lambda: _fault_shown(output))
        assert run.process.poll() is None
        run.process.terminate()
        assert run.ended() == 143
    assert saved(output) == ["demo_000000020.safetensors", "demo_000000030.safetensors"]


def test_nan_is_printed_and_shown_as_zero_and_does_not_spoil_the_model(dataset: Path, output: Path) -> None:
    run = train(dataset, output, "--fault=nan", "--fault-at=51")
    assert run.returncode == 0
    assert run.stdout.count("loss is nan\n") == 10
    assert "60/60 " in run.stdout
    assert run.stdout.count("loss: 0.000e+00") >= 1
    assert abs(load_file(output / "demo.safetensors")["lora_A.weight"]).max() < 100


def test_out_of_memory_ends_with_the_text_of_a_gpu_trainer(dataset: Path, output: Path) -> None:
    run = train(dataset, output, "--fault=oom", "--fault-at=30")
    assert run.returncode == 1
    assert "Error running job: CUDA out of memory. Tried to allocate " in run.stdout
    assert " - 1 failure\n" in run.stdout
    assert run.stdout.rstrip().splitlines()[-1].startswith("torch.OutOfMemoryError: CUDA out of memory.")


def test_after_a_crash_the_next_try_goes_on_from_the_last_checkpoint(dataset: Path, output: Path) -> None:
    options = ("--fault=crash", "--fault-at=30", "--fault-tries=1")
    first, second = train(dataset, output, *options), train(dataset, output, *options)
    assert first.returncode == 1
    assert "Traceback (most recent call last)" in first.stdout
    assert second.returncode == 0
    assert f"#### IMPORTANT RESUMING FROM {output}/demo_000000020.safetensors ####\n" in second.stdout


def test_a_crash_without_a_number_of_tries_comes_every_time(dataset: Path, output: Path) -> None:
    options = ("--fault=crash", "--fault-at=30")
    assert [train(dataset, output, *options).returncode for _ in range(2)] == [1, 1]


def test_ignoring_term_it_goes_on_to_the_end(dataset: Path, output: Path) -> None:
    with LiveRun(dataset, output, SLOWLY, "--steps=30", "--fault=ignore_term", "--fault-at=2") as run:
        run.wait_until(lambda: _fault_shown(output))
        run.wait_until(lambda: re.search(r"demo: .* [1-9]\d*/30 ", run.log()))
        run.process.terminate()
        assert run.ended() == 0
    assert "demo.safetensors" in saved(output)


def test_slow_takes_longer_with_each_step(dataset: Path, output: Path) -> None:
    run = train(dataset, output, "--steps=20", "--fault=slow", "--fault-at=5", "--sample-every=1000")
    rates = [float(rate) for rate in re.findall(r"demo: .*?, +([\d.]+)it/s, lr", run.stdout.replace("\r", "\n"))]
    assert run.returncode == 0
    # 0.02 s x 1.15^15 = 0.163 s pass at least between the last two steps, whatever the machine does
    assert rates[-1] < 10


def _fault_shown(output: Path) -> bool:
    return (output / ".demo.faults").is_file()
