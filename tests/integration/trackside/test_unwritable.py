"""The verbs on a machine where nothing can be written: each does its work and says what it could not leave there."""

from __future__ import annotations

from pathlib import Path

from tests.support.machines.trackside_bench import Bench, bench, build_source_pyz, step, until_dead


def limit_files(job: Bench, kibibytes: int) -> None:
    """From now on no verb can write a file beyond that size: EFBIG."""
    job.command = ["/bin/sh", "-c", f'ulimit -S -f {kibibytes * 2}; exec "$@"', "sh", *job.command]
    job.end_serving()


def test_compiled_code_that_does_not_fit_is_left_out_and_the_next_call_works(tmp_path: Path) -> None:
    with bench(tmp_path / "job", pyz=build_source_pyz(tmp_path)) as job:
        job.plan(step("train", "true", training=True))
        job.start()
        job.until_finished()
        for path in job.own.rglob("*.pyc"):
            path.unlink()
        limit_files(job, 4)
        for _ in range(2):  # the first one compiles
            assert job.call("inventory")["outputs"] == []
        assert [*job.own.rglob("*.pyc")], "small modules fit"
        assert [*job.own.rglob("*.pyc.*")] == []


def test_a_visit_is_recorded_on_a_full_disk_in_the_room_of_the_one_before(small_disk: Path, pyz: Path) -> None:
    with bench(small_disk / "job", pyz=pyz, is_forked=True) as job:
        job.plan(step("train", "true", training=True))
        job.start()
        job.until_finished()
        job.status(None, "--alone", "100")
        with (small_disk / "filler").open("wb", buffering=0) as file:
            file.write(bytes(16 * 2**20))  # as much of it as there is room for
        seen = job.status(None, "--alone", "7")
        assert (small_disk / ".guard").read_text().split()[0] == "7"
        assert "unwritten" not in seen
        assert seen["finished"]["result"] == "done"


def test_a_step_is_stopped_though_the_stop_cannot_be_recorded(tmp_path: Path, pyz: Path) -> None:
    with bench(tmp_path / "job", pyz=pyz) as job:
        job.plan(step("train", "sleep 600", training=True))
        job.start()
        pid = job.until_running()["pid"]
        limit_files(job, 0)
        answer = job.call("stop", "--grace", "1")
        until_dead(pid)
        assert "File too large" in answer["unwritten"]
        assert "File too large" in job.status(None, "--alone", "100")["unwritten"]
