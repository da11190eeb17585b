"""From `train --watch` to `jobs rm`: what the commands say of a job that ran well."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from tests.support.commands.cli_runs import QUICK, Home, Ran
from tests.support.waiting import until

Trained = tuple[Home, Ran]
REPORT = {"job_id", "health", "summary", "recommendations", "log_errors", "metrics_timeline", "notes"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[Trained]:
    """A home in which `train --watch` trained the job `done` to its end, and what the command said meanwhile.

    Its worker writes debug lines.
    """
    with Home(tmp_path_factory.mktemp("trained")) as opened:
        train = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--name", "cats", "--id", "done")
        yield opened, opened.run("--log-level", "debug", *train, "--watch", *QUICK)


def test_a_watched_training_tells_its_way_and_ends_with_zero(trained: Trained) -> None:
    home, ran = trained
    assert ran.code == 0, ran.err
    assert "cost   $0.00" in ran.out
    assert f"log {home.path / 'worker.log'}" in ran.out
    for word in ("job done submitted", "pid ", "COMPLETED"):
        assert word in ran.out
    lines = ran.out.splitlines()
    assert [line for line in lines if line and lines.count(line) > 1] == [], "in a pipe no line comes twice"


def test_the_end_of_a_watched_training_is_a_summary(trained: Trained) -> None:
    _, watched = trained
    told = [line for line in watched.out.splitlines() if line.startswith("EXECUTING")]
    assert len(told) == len(set(told))
    end = watched.out[watched.out.index("\nCOMPLETED: ") :]
    assert re.search(r"^loss      \d\.\d{4} → \d\.\d{4}  [▁▂▃▄▅▆▇█]+$", end, re.MULTILINE)
    for label in ("time", "cost", "model", "samples", "machine   destroyed", "analysis", "next"):
        assert f"\n{label}" in end
    assert "\n  stationmaster pull done ./" in end


def test_the_worker_told_every_decision_and_call_because_it_was_asked_for_debug_lines(trained: Trained) -> None:
    home, _ = trained
    log = (home.path / "worker.log").read_text()
    states = {each["state"] for each in _events(log, "visit.decided") if each["job"] == "done"}
    assert {"QUEUED", "PROVISIONING", "TRANSFERRING_DATA", "EXECUTING", "RELEASING"} <= states
    assert {each["call"] for each in _events(log, "provider.called")} == {"create", "destroy"}
    assert all(each["seconds"] >= 0 for each in _events(log, "visit.performed"))


def _events(log: str, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == name]


def test_every_step_was_recorded_beside_the_training_and_is_stored(trained: Trained) -> None:
    home, _ = trained
    steps = home.store.series.read("done", "StepMetric")[1]
    assert steps.values("step") == list(range(1, 21))
    assert None not in steps.values("loss")
    assert len(home.store.series.read("done", "MetricsSample")[1]) > 0
    events = home.store.series.read("done", "TrainingEvent")[1].values("event_type")
    assert {"training_start", "save_start", "save_end", "training_end"} <= set(events)
    facts = {row["key"]: row["value"] for row in home.store.series.read("done", "RunInfo")[1].rows()}
    assert facts["exit_code"] == "0"


def test_the_same_id_again_changes_nothing(trained: Trained, pictures: Path) -> None:
    home, _ = trained
    ran = home.run("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", "done", "--steps", "999")
    assert ran.code == 0
    assert "already exists" in ran.out
    steps = {job["id"]: job["parameters"]["steps"] for job in home.run("jobs", "--all", "--json").json()}
    assert steps["done"] == 20


def test_jobs_lists_what_runs_and_with_all_what_has_ended(trained: Trained) -> None:
    home, _ = trained
    assert "no running jobs" in home.run("jobs").out
    rows = [row.split()[:3] for row in home.run("jobs", "--all").out.splitlines()]
    assert rows[0] == ["ID", "NAME", "STATE"]
    assert ["done", "cats", "COMPLETED"] in rows


def test_show_tells_people_and_programs_the_same(trained: Trained) -> None:
    home, _ = trained
    words = home.run("show", "cats", "--events").out
    data = home.run("--json", "show", "done").json()
    assert "COMPLETED" in words
    assert "stage     completed (10 of 10)" in words
    assert "Training: 100%" in home.run("show", "cats", "--progress").out
    assert data["model"] in words
    assert "  Requesting a machine (label sm-" in words
    assert "  Step train finished.\n" in words
    assert (data["outcome"], data["reason"], data["state"]) == ("COMPLETED", "FINISHED", "ENDED")
    assert data["execution"] == {"provider": "loopback"}
    assert data["providerState"].keys() >= {"instanceId", "sshHost", "activeStep"}
    versions = [event["version"] for event in data["progressLog"] if event["kind"] != "heartbeat"]
    assert versions == list(range(1, len(versions) + 1))
    beats = [entry for entry in data["progressLog"] if entry["kind"] == "heartbeat"]
    assert {beat["step"] for beat in beats} <= {None, "check", "train"}
    assert beats
    assert beats[-1].keys() >= {"at", "step", "percent", "eta_seconds", "sentence"}
    assert (data["progress"]["step"], data["progress"]["percent"]) == (20, 100.0)
    assert (data["progress"]["steps_per_second"], data["progress"]["eta_seconds"], data["stage"]) == (
        None, None, "completed",
    )  # fmt: skip
    assert all(rental["state"] == "GONE" for rental in data["rentals"])


def test_every_step_and_event_that_the_training_recorded_is_here(trained: Trained) -> None:
    home, _ = trained
    (steps,) = home.store.series.read("done", "StepMetric").values()
    assert steps.values("step") == list(range(1, 21))
    assert None not in steps.values("loss")
    assert set(steps.values("batch_size")) == {4}
    (events,) = home.store.series.read("done", "TrainingEvent").values()
    kinds = [kind for kind in events.values("event_type") if kind != "image"]
    assert kinds == [
        *("sampling_start", "sampling_end", "training_start", "save_start", "save_end"),
        *("save_start", "save_end", "sampling_start", "sampling_end", "training_end"),
    ]


def test_logs_prints_what_the_trainer_printed_and_follow_ends_with_the_job(trained: Trained) -> None:
    home, _ = trained
    printed = home.run("logs", "done").out
    assert "20/20" in printed
    assert home.run("logs", "done", "--follow").out == printed


def test_lines_of_a_log_are_found(trained: Trained) -> None:
    home, _ = trained
    shown = home.run("logs", "done", "--grep", "LOSS").out.splitlines()
    found = [json.loads(line) for line in home.run("logs", "done", "--grep", "loss", "--json").out.splitlines()]
    assert found
    assert shown == [f"{one['attempt']}/{one['stream']}:{one['line']}: {one['text']}" for one in found]
    assert all("loss" in one["text"].lower() for one in found)
    assert home.run("logs", "done", "--grep", "no such text").out == ""
    refused = home.run("logs", "done", "--grep", "loss", "--follow")
    assert (refused.code, "--grep" in refused.err) == (2, True)


def test_logs_for_programs_has_the_same_text_piece_by_piece(trained: Trained) -> None:
    home, _ = trained
    pieces = [json.loads(line) for line in home.run("logs", "done", "--json").out.splitlines()]
    text = "".join(piece["text"] for piece in pieces)
    assert re.sub("\r\n?", "\n", text) == home.run("logs", "done").out  # the test's reader makes each \r a line's end
    assert [piece["seq"] for piece in pieces] == sorted(piece["seq"] for piece in pieces)
    assert {piece["attempt"] for piece in pieces} == {1}
    assert all(piece["start"] < piece["end"] for piece in pieces)
    assert home.run("--json", "logs", "done", "--follow").out.splitlines() == [
        json.dumps(piece, ensure_ascii=False) for piece in pieces
    ]


def test_watching_an_ended_job_answers_at_once(trained: Trained) -> None:
    home, _ = trained
    ran = home.run("watch", "done", "--json")
    assert (ran.code, ran.json()["outcome"]) == (0, "COMPLETED")
    quiet = home.run("watch", "done", "--quiet")
    assert quiet.out.strip().endswith(".safetensors")
    assert len(quiet.out.splitlines()) == 1


def test_pull_brings_a_model_that_opens(trained: Trained, tmp_path: Path) -> None:
    home, _ = trained
    files = [Path(name) for name in home.run("pull", "done", str(tmp_path / "out"), "--json").json()["files"]]
    model = next(file for file in files if file.name == "cats.safetensors")
    with safe_open(model, framework="numpy") as opened:
        assert list(opened.keys())
        assert "training_info" in opened.metadata()


def test_a_copy_prints_its_files_and_nothing_else_in_a_pipe(trained: Trained, tmp_path: Path) -> None:
    home, _ = trained
    copied = home.run("pull", "done", str(tmp_path / "model"))
    assert copied.code == 0
    assert all(line.startswith("note: ") for line in copied.err.splitlines()), "no bar, and no progress of a moment"
    assert all(Path(line).is_file() for line in copied.out.splitlines())


def test_its_analysis_is_shown_with_how_to_apply_the_changes(trained: Trained) -> None:
    home, watched = trained
    ran = home.run("analyze", "cats")
    assert ran.code == 0, ran.err
    first = ran.out.splitlines()[0]
    assert first.split()[0] in ("Good", "Warning")
    assert "20 of 20 steps" in first
    assert max(map(len, ran.out.splitlines()[:-1])) <= 80
    shown = home.run("show", "cats")
    assert f"  analysis  {first.split()[0]}" in shown.out
    assert f"\nanalysis  {first.split()[0]}" in watched.out
    found = home.run("show", "cats", "--json").json()
    assert found["health"] == first.split()[0].lower()
    if found["recommendation"] is not None:
        assert "stationmaster retry done --apply-recommendations" in ran.out


def test_the_json_of_its_analysis_is_the_report_and_nothing_else(trained: Trained) -> None:
    home, _ = trained
    found = home.run("analyze", "done", "--json").json()
    assert found.keys() == REPORT | {"attempt", "created_at", "is_stored"}
    assert found["summary"]["health_score"] == found["health"]
    assert found["summary"]["training_completed"] is True
    assert home.run("--json", "analyze", "done").json() == found


@pytest.mark.parametrize("verb", ["stop", "cancel"])
def test_to_want_the_end_of_what_has_ended_is_no_failure(trained: Trained, verb: str) -> None:
    home, _ = trained
    ran = home.run(verb, "done")
    assert (ran.code, "already COMPLETED" in ran.err) == (0, True)


def test_there_is_no_shell_on_a_machine_that_is_gone(trained: Trained) -> None:
    home, _ = trained
    ran = home.run("ssh", "done")
    assert ran.code == 7
    assert "no machine" in ran.err


def test_doctor_finds_nothing_wrong(trained: Trained) -> None:
    home, _ = trained
    ran = home.run("doctor", "--json")
    assert ran.code == 0, ran.out
    assert {finding["check"] for finding in ran.json()} >= {"version", "settings", "store", "worker", "disk"}
    assert "ExecStart=" in home.run("doctor", "--service").out


def test_a_dry_run_prints_the_commands_and_queues_nothing(trained: Trained, pictures: Path) -> None:
    home, _ = trained
    arguments = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", "dry", "--dry-run", *QUICK)
    words = home.run(*arguments, "--trigger", "two words").out
    assert "# train" in words
    assert "--steps=20" in words
    assert "'--trigger=two words'" in words
    steps = home.run(*arguments, "--json").json()["steps"]
    assert [step["name"] for step in steps] == ["check", "train"]
    assert home.run("show", "dry").code == 6


def test_a_job_file_gives_the_same_as_flags_and_flags_win(trained: Trained, pictures: Path, tmp_path: Path) -> None:
    home, _ = trained
    parameters = {"rank": 4}
    job = {"tool": "tiny-lora@1", "dataset": str(pictures), "name": "from file", "steps": 7, "parameters": parameters}
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(job))  # JSON is YAML
    planned = home.run("train", str(file), "--steps", "9", "--dry-run", "--json").json()
    assert (planned["name"], planned["parameters"]["steps"], planned["parameters"]["rank"]) == ("from file", 9, 4)


def test_a_dataset_beside_its_job_file_is_found_from_anywhere(trained: Trained, pictures: Path, tmp_path: Path) -> None:
    home, _ = trained
    (tmp_path / "images").symlink_to(pictures)
    (tmp_path / "job.yaml").write_text("recipe: tiny-lora@1\ndataset: images\n")
    ran = home.run("train", str(tmp_path / "job.yaml"), "--dry-run", "--json")
    assert ran.code == 0, ran.err
    assert ran.json()["images"] == 6


def test_recipes_can_be_listed_shown_and_checked(trained: Trained, tmp_path: Path) -> None:
    home, _ = trained
    listed = home.run("recipes", "list").out
    assert "tiny-lora@1" in listed
    assert "flux-lora@2" in listed
    assert "flux-lora@1" not in listed, "older versions only where they are asked for"
    assert {"flux-lora@1", "flux-lora@2"} <= {
        one["recipe"] for one in home.run("recipes", "list", "--all", "--json").json()
    }
    assert "seconds_per_step" in home.run("recipes", "show", "tiny-lora").out
    (tmp_path / "recipe.yaml").write_text("name: x\nversion: one\n")
    broken = home.run("recipes", "lint", str(tmp_path))
    assert broken.code == 4
    assert "recipe.yaml" in broken.out + broken.err


@pytest.fixture(scope="module")
def crashed(trained: Trained, pictures: Path) -> Ran:
    """What `train --watch --json` said of the job `crash`, in the same home."""
    home, _ = trained
    train = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", "crash", "--watch", "--json")
    return home.run(*train, *QUICK, "-p", "fault=crash", "-p", "fault_at=5")


def test_a_training_that_crashes_says_which_step_and_why_and_keeps_its_log(trained: Trained, crashed: Ran) -> None:
    home, _ = trained
    assert crashed.code == 41
    assert (crashed.json()["outcome"], crashed.json()["reason"]) == ("FAILED", "STEP_FAILED")
    quote = "RuntimeError: the fault `crash` was asked for at step 5"
    assert crashed.json()["explanation"] == f"step train failed with exit code 1 (try 2): {quote}"
    assert "the fault `crash` was asked for" in home.run("logs", "crash").out


def test_a_job_is_removed_only_when_somebody_says_yes(trained: Trained, crashed: Ran) -> None:
    home, _ = trained
    assert (home.path / "jobs" / "crash").is_dir()
    refused = home.run("jobs", "rm", "crash")
    assert (refused.code, "hint: pass --yes" in refused.err) == (2, True)
    assert home.run("jobs", "rm", "crash", "--yes", "--json").json() == {"id": "crash", "removed": True}
    assert not (home.path / "jobs" / "crash").exists()


def test_a_worker_with_nothing_left_to_do_goes(trained: Trained) -> None:
    home, _ = trained
    until(lambda: home.worker_pid() is None, what="the worker has gone by itself")
    assert "worker.left" in (home.path / "worker.log").read_text()


def test_copies_to_where_nothing_can_be_written_are_refused_with_a_hint(trained: tuple[Home, Ran]) -> None:
    home, _ = trained
    for command in (("pull", "done", "/proc/x"), ("models", "download", "cats", "/proc/x")):
        ran = home.run(*command)
        assert ran.code == 2, ran.err
        assert ran.err.splitlines()[1] == "hint: choose a folder that you can write to"
