"""llm-lora@2 for real: TRL and peft train a tiny random model on the CPU, undisturbed, killed, stopped and resumed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stationmaster.delivery.safetensors_header import open_safetensors
from stationmaster.model import Job, Outcome
from stationmaster.providers.labelled_processes import processes_of
from tests.support.commands.cli_runs import Home
from tests.support.waiting import until
from tests.trainers.changed_recipes import changed_recipe
from tests.trainers.conftest import Trainer
from tests.trainers.llm_lora_scripts import MAKE_MODEL, QUIET, SCRIPTS, run_script
from tests.trainers.recorded_at_home import recorded

pytestmark = [pytest.mark.trainer("TRL"), pytest.mark.timeout(600)]

STEPS, SAVED = 120, 40
ENDLESS = 100_000
_LINE = re.compile(r"step (\d+)/(\d+) loss: ([\d.]+) lr: ([\d.e+-]+)")

Readings = dict[int, tuple[float, float]]
"""The loss and learning rate of each step."""


@pytest.fixture(scope="module")
def base_model(trl: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    run_script(trl.python, MAKE_MODEL, folder)
    return folder


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    folder = tmp_path / "rows"
    folder.mkdir()
    answers = ("the train leaves at noon", "a signal turns green")
    made = [{"prompt": f"question {number}: ", "completion": answers[number % 2]} for number in range(64)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    return folder


def for_a_cpu(said: dict[str, Any]) -> None:
    said["needs"] = {"gpus": 0, "disk_gib": 1}
    said["health"]["argv"].remove("--cuda")
    said["steps"][0]["backoff"] = ["1s"]


def settings(trl: Trainer, base_model: Path, **changed: object) -> dict[str, object]:
    given: dict[str, object] = {
        "base_model": base_model, "python": trl.python, "steps": STEPS, "save_every": SAVED, "warmup_steps": 4,
        "learning_rate": 0.02, "rank": 4, "alpha": 8, "context": 128,
    }  # fmt: skip
    return {**given, **changed}


def submit(home: Home, rows: Path, job_id: str, parameters: dict[str, object]) -> None:
    if not (home.folder / "recipes" / "llm-lora").exists():
        changed_recipe("llm-lora", home.folder / "recipes", for_a_cpu)
    words = [word for name, value in parameters.items() for word in ("-p", f"{name}={value}")]
    ran = home.run(
        *("train", "--recipe", "llm-lora@2", "--provider", "loopback", "--dataset", str(rows)),
        *("--name", "my words", "--id", job_id, "--yes", *words),
    )
    assert ran.code == 0, ran.err


def ended(home: Home, job_id: str) -> Job:
    home.run("watch", job_id)
    return home.job(job_id)


def readings_in(text: str) -> Readings:
    return {int(found[1]): (float(found[3]), float(found[4])) for found in _LINE.finditer(text)}


def on_machine(home: Home, pattern: str) -> list[Path]:
    return sorted((home.path / "machines").glob(f"**/{pattern}"))


def training_pid(home: Home) -> int:
    for machine in (home.path / "machines").iterdir():
        for pid in processes_of(machine.name):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if len(words) > 1 and words[1].endswith(b"/train.py"):
                return pid
    raise AssertionError("no training runs")


def test_a_training_that_is_killed_goes_on_as_if_it_had_not_been(
    home: Home, trl: Trainer, base_model: Path, rows: Path
) -> None:
    submit(home, rows, "whole", settings(trl, base_model))
    whole = ended(home, "whole")
    assert whole.outcome is Outcome.COMPLETED, (whole.explanation, home.run("logs", "whole").out[-3000:])
    assert (whole.progress.step, whole.progress.total_steps) == (STEPS, STEPS)
    log = home.run("logs", "whole").out
    undisturbed = readings_in(log)
    assert list(undisturbed) == list(range(1, STEPS + 1))
    assert undisturbed[STEPS][0] < undisturbed[1][0] / 2, "nothing was learned"
    assert "Packed them into" in log
    model = Path(whole.model.address or "")
    assert (open_safetensors(model).step, open_safetensors(model).has_nan) == (STEPS, False)
    config = json.loads((model.parent / "adapter_config.json").read_text(encoding="utf-8"))
    assert config == json.loads(open_safetensors(model).metadata["adapter_config"])
    assert (config["r"], config["lora_alpha"]) == (4, 8)
    check_parser(home, log)
    check_recorded(home, undisturbed)

    submit(home, rows, "killed", settings(trl, base_model))
    until(lambda: [path for path in on_machine(home, f"*-step{SAVED:08d}.safetensors") if "killed" in str(path)])
    os.kill(training_pid(home), signal.SIGKILL)
    killed = ended(home, "killed")
    assert killed.outcome is Outcome.COMPLETED, killed.explanation
    text = home.run("logs", "killed").out
    (resumed_at,) = re.findall(r"Resuming from checkpoint \S+checkpoint-\d+ at step (\d+)", text)
    again = readings_in(text.partition("Resuming from checkpoint")[2])
    assert list(again) == list(range(int(resumed_at) + 1, STEPS + 1))
    for step, (loss, rate) in again.items():
        assert abs(loss - undisturbed[step][0]) < 2e-3, step
        assert rate == undisturbed[step][1], step


def check_recorded(home: Home, logged: Readings) -> None:
    """Every step with the loss and the learning rate that were logged, its time, and its saves as events."""
    found = recorded(home, "whole")
    assert list(found.steps) == list(range(1, STEPS + 1))
    for step, row in found.steps.items():
        loss, rate = logged[step]
        assert row["loss"] == pytest.approx(loss, abs=1e-4), step
        assert row["learning_rate"] == pytest.approx(rate, rel=1e-3), step
        assert row["gradient_norm"] > 0
        assert row["batch_size"] == 4
        assert 0 < row["step_time_seconds"] < 30
    saves = [event for event in found.events if event[0] == "save_start"]
    assert saves == [("save_start", step) for step in range(SAVED, STEPS + 1, SAVED)]
    assert (found.events[0], found.events[-1]) == (("training_start", 0), ("training_end", STEPS))


def check_parser(home: Home, log: str) -> None:
    """The log says to our own parser what the trainer meant."""
    file = home.folder / "training.log"
    file.write_text(log, encoding="utf-8")
    found = home.run("parse", str(file), "--framework", "auto", "--json").json()
    step, (loss, rate) = STEPS, readings_in(log)[STEPS]
    assert (found["step"], found["total_steps"]) == (step, STEPS)
    assert (found["loss"], found["learning_rate"]) == (pytest.approx(loss), pytest.approx(rate))


def test_a_stopped_training_has_saved_and_is_resumed_at_its_step_on_a_new_machine(
    home: Home, trl: Trainer, base_model: Path, rows: Path
) -> None:
    submit(home, rows, "long", settings(trl, base_model, steps=ENDLESS, save_every=ENDLESS, learning_rate=0.001))
    until(lambda: home.job("long").progress.step, what="the first step")
    assert home.run("stop", "long").code == 0
    stopped = ended(home, "long")
    assert stopped.outcome is Outcome.INCOMPLETE
    model = Path(stopped.model.address or "")
    step = open_safetensors(model).step
    assert step is not None
    assert 0 < step < ENDLESS
    last = max(readings_in(home.run("logs", "long").out))
    assert last - 10 <= step <= last + 10, "the newest state was saved, but for steps that are not logged"

    assert home.run("retry", "long", "--resume", "--id", "again", "--yes").code == 0
    until(lambda: readings_in(home.run("logs", "again").out), what="a step of the resumed training")
    assert home.run("cancel", "again", "--yes").code == 0
    text = home.run("logs", "again").out
    assert f"at step {step}; the optimizer starts anew" in text
    first, (_, rate) = next(iter(readings_in(text).items()))
    assert step < first <= step + 10
    assert rate == pytest.approx(0.001, rel=0.01), "the warmup is not repeated"


@pytest.mark.parametrize("how", [[], ["--workers=2"], ["--workers=2", "--prepare=during"]], ids="-".join)
def test_asked_by_signals_it_saves_and_trains_on_or_saves_and_stops(
    trl: Trainer, base_model: Path, rows: Path, tmp_path: Path, how: list[str]
) -> None:
    output, state = tmp_path / "output", tmp_path / "state"
    given = {"dataset": rows, "output": output, "state": state, "model": base_model, "rank": 4, "context": 128}
    words = [trl.python, str(SCRIPTS / "train.py"), *(f"--{name}={value}" for name, value in given.items())]
    words += ["--packing", f"--steps={ENDLESS}", f"--save-every={ENDLESS}", *how]
    log, environ = tmp_path / "log", {**os.environ, **QUIET}
    with log.open("w") as out, subprocess.Popen(words, stdout=out, env=environ, start_new_session=True) as process:
        try:
            until(lambda: readings_in(log.read_text()), what="the first step")
            os.killpg(process.pid, signal.SIGUSR1)  # as trackside does: its workers get it too
            (saved,) = until(lambda: list(output.glob("*.safetensors")), what="a checkpoint on request")
            until(lambda: max(readings_in(log.read_text())) > step_in(saved) + 10, what="it trains on")
            os.killpg(process.pid, signal.SIGTERM)
            assert process.wait(60) == 128 + signal.SIGTERM
        finally:
            process.kill()
    first, last = sorted(output.glob("*.safetensors"))
    assert open_safetensors(last).step == step_in(last) > step_in(first)
    folder = state / f"checkpoint-{step_in(last)}"
    assert {"optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"} <= {
        each.name for each in folder.iterdir()
    }


def step_in(path: Path) -> int:
    return int(path.stem.rpartition("step")[2])
