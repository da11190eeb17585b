"""A trainer that counts from 0 after a resume: progress, readings and checkpoints go on where the last attempt was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stationmaster.control.results.declared_files import checkpoint_of
from stationmaster.control.states.executing.log_watch import read_log
from stationmaster.control.states.executing.status_intake import ExecutingView, status_write
from stationmaster.control.states.executing.training_events import checkpoint_step
from stationmaster.control.states.transferring.handler import step_offset
from stationmaster.model import Collected, Job, OutputFile, State, Watching
from stationmaster.recipes.registry import find
from stationmaster.recipes.schema import Recipe
from stationmaster.remote.status import LogPiece, Status, StepStatus
from stationmaster.series.table import table_of
from stationmaster.settings import MonitoringSettings
from tests.support.jobs.spine_values import job, spec, visit

SDXL, TINY = find("sdxl-lora@1").recipe, find("tiny-lora@1").recipe
LOG = b"\rsteps:  10%|#         | 100/1000 [03:20<30:00,  2.00s/it, avr_loss=0.0934]"
SAVED = Collected(
    attempt=1, path="output/x-step00001000.safetensors", size=1, mtime=0.0, sha256="0" * 64, location="/home/x",
    verified_at=1.0, step=1000,
)  # fmt: skip


def resumed() -> Job:
    made = job(state=State.EXECUTING, spec=replace(spec(), recipe="sdxl-lora@1", parameters={"steps": 2000}), attempt=2)
    return replace(made, watching=Watching(step_offset=step_offset(made, SAVED, SDXL)))


def status() -> Status:
    train = StepStatus(index=0, name="train", state="running", training=True, try_number=1, started_at=1.0)
    piece = LogPiece(stream="0.1", inode=1, start=0, end=len(LOG), data=LOG)
    return Status(
        wall=200.0, monotonic=200.0, boot_id="b", started=True, steps=(train,), log=(piece,), training_alive=True
    )


def test_progress_and_readings_go_on_from_the_checkpoint_s_step() -> None:
    seen = read_log(resumed(), status(), framework="kohya", monitoring=MonitoringSettings(), now=500.0)
    assert (seen.progress.step, seen.progress.total_steps) == (1100, 2000)
    assert seen.progress.eta_seconds == 1800
    assert [reading.step for reading in seen.readings] == [1100]


def test_the_second_look_goes_on_as_the_first() -> None:
    before = resumed()
    first = read_log(before, status(), framework="kohya", monitoring=MonitoringSettings(), now=500.0)
    after = replace(before, watching=first.watching, progress=first.progress)
    later = replace(status(), log=(replace(status().log[0], data=LOG.replace(b" 100/", b" 150/"), start=90, end=180),))
    seen = read_log(after, later, framework="kohya", monitoring=MonitoringSettings(), now=600.0)
    assert (seen.progress.step, seen.progress.total_steps) == (1150, 2000)


def test_a_further_try_of_a_resumed_attempt_counts_on_from_both() -> None:
    """Attempt 2 began at 1,000 by the weights alone; its second try began at its own state of step 250."""
    log = (
        "running training / 学習開始\n"
        "  total optimization steps / 学習ステップ数: 1000\n"
        "skipping 250 steps / 250ステップをスキップします\n"
        "\rsteps:  10%|█         | 75/750 [03:20<30:00,  2.67s/it, avr_loss=0.0934]"
    ).encode()
    piece = LogPiece(stream="0.2", inode=2, start=0, end=len(log), data=log)
    looked = replace(status(), log=(piece,))
    seen = read_log(resumed(), looked, framework="kohya", monitoring=MonitoringSettings(), now=500.0)
    assert (seen.progress.step, seen.progress.total_steps) == (1325, 2000)
    assert [reading.step for reading in seen.readings] == [1325]


def test_measured_steps_go_on_from_the_checkpoint_s_step() -> None:
    sent: dict[str, list[float]] = {"id": [1, 2], "step": [100, 101], "timestamp": [10.0, 11.0], "loss": [0.5, 0.4]}
    looked = replace(status(), log=(), series=(table_of("StepMetric", sent),))
    write = status_write(ExecutingView(visit=visit(resumed(), now=500.0), status=looked), looked)
    (block,) = write.series
    assert block.table().values("step") == [1100, 1101]
    assert (block.attempt, block.first_id, block.last_id) == (2, 1, 2)


@pytest.mark.parametrize(("framework", "begins"), [("kohya", True), ("hf-trainer", False), ("ai-toolkit", False)])
def test_it_is_known_whether_an_epoch_s_number_is_of_the_one_that_begins(framework: str, begins: bool) -> None:
    seen = read_log(job(), status(), framework=framework, monitoring=MonitoringSettings(), now=500.0)
    assert seen.names_beginning_epoch is begins


def test_checkpoints_bear_the_step_of_the_whole_training() -> None:
    file = OutputFile(path="output/cats-step00000250.safetensors", kind="checkpoint", size=1, mtime=0.0)
    assert checkpoint_of(resumed(), file, SDXL.outputs).step == 1250
    seen = replace(resumed().watching, outputs={file.path: (1, 0.0)})
    assert checkpoint_step(replace(resumed(), watching=seen), SDXL.outputs) == 1250


@pytest.mark.parametrize(("recipe", "offset"), [(SDXL, 1000), (TINY, None)])
def test_only_a_trainer_that_forgets_its_count_is_helped(recipe: Recipe, offset: int | None) -> None:
    assert step_offset(job(), SAVED, recipe) == offset
    assert step_offset(job(), None, recipe) is None
