"""`stationmaster jobs prune`: nothing without --force, then exactly what was listed."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands.cli_runs import Home
from tests.support.jobs.stored_jobs import put_trained


def test_a_dry_run_lists_and_force_deletes_what_it_listed(tmp_path: Path) -> None:
    with Home(tmp_path) as home:
        assert home.run("jobs").code == 0
        put_trained(home.store, "failed")
        put_trained(home.store, "done")
        with home.store.database.write() as connection:
            connection.exec_driver_sql("DELETE FROM checkpoints WHERE job_id = 'failed'")
        (home.path / "jobs" / "failed").mkdir(parents=True)
        dry = home.run("jobs", "prune", "--older-than", "0s")
        assert (dry.code, dry.out.splitlines()[-1]) == (
            0, "1 job(s) with 0.0 kB of files would be deleted: pass --force",
        )  # fmt: skip
        assert "note: kept 1 job(s): its model is stored nowhere else\nhint: --with-models" in dry.err
        assert home.run("jobs", "prune", "--older-than", "0s", "--quiet").out == "failed\n"
        assert (home.path / "jobs" / "failed").exists()
        assert home.run("jobs", "prune", "--older-than", "1d").out == "no job to delete\n"
        done = home.run("jobs", "prune", "--older-than", "0s", "--force", "--json").json()
        assert (done["removed"], [job["id"] for job in done["jobs"]]) == (True, ["failed"])
        assert [job["id"] for job in done["kept"]] == ["done"]
        assert not (home.path / "jobs" / "failed").exists()
        assert [job["id"] for job in home.run("jobs", "--all", "--json").json()] == ["done"]
        gone = home.run("jobs", "prune", "--older-than", "0s", "--with-models", "--force")
        assert gone.out.splitlines()[-1] == "deleted 1 job(s), 0.0 kB of files"
        wrong = home.run("jobs", "prune", "--older-than", "soon")
        assert (wrong.code, wrong.err.startswith("error: --older-than: ")) == (2, True)
