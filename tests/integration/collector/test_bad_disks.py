"""A disk that is full, or a folder that cannot be written to, costs the training nothing but its records."""

from __future__ import annotations

from pathlib import Path

from tests.support.capabilities import require
from tests.support.machines.recorded_training import RecordedTraining

ALL = "for step in range(1, 100_001): run.step(step, loss=0.5, lr=1e-4)\n"


def test_a_note_that_does_not_fit_on_the_disk_leaves_the_trainings_exit_code_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    training = RecordedTraining(tmp_path, database=tmp_path / "file" / "aitk_db.db")
    log_on_a_full_disk = ["/bin/sh", "-c", 'exec "$@" 2>/dev/full', "sh"]
    training.run(ALL + "run.close(); sys.exit(3)", exit_code=3, wrapper=log_on_a_full_disk, PYTHONUNBUFFERED="")


def test_a_folder_that_cannot_be_written_to_is_survived(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    training = RecordedTraining(tmp_path, database=tmp_path / "file" / "aitk_db.db")
    ended = training.run(ALL + "run.event('save_start'); run.close(); print('trained')")
    assert ended.stdout == "trained\n"
    lines = ended.stderr.splitlines()
    assert all(line.startswith("trackside: ") for line in lines), "no traceback"
    assert 1 <= len(lines) == len(set(lines)) <= 4, "each problem is noted once"


def test_a_folder_that_is_read_only_is_survived_and_stays_as_it_is(tmp_path: Path) -> None:
    require("own disk")
    # Root may write to any folder but those of a file system that is mounted so.
    training = RecordedTraining(tmp_path, database=Path("/mnt/aitk_db.db"))
    mounted = 'mount -t tmpfs -o ro tmpfs /mnt && exec "$@"'
    ended = training.run(ALL + "run.close(); print(os.listdir('/mnt'))", wrapper=_with_mount(mounted))
    assert ended.stdout == "[]\n"


def test_what_a_full_disk_refused_is_written_once_there_is_room(tmp_path: Path) -> None:
    """The soft limit on the size of files is the disk that is full: it can be lifted again."""
    training = RecordedTraining(tmp_path)
    training.run(
        """
        import resource, time
        run.step(1, loss=0.5)
        run.event("save_start")
        while not os.path.exists({database!r}) or os.path.getsize({database!r}) < 4096:
            time.sleep(0.01)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        for step in range(2, 60_001):
            run.step(step, loss=0.5)
        run.event("save_end")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        run.close()
        """.format(database=str(training.database))
    )
    assert training.recorded_steps() == list(range(1, 60_001))
    assert training.is_sound()


def test_a_disk_that_fills_up_neither_ends_the_training_nor_breaks_the_file(tmp_path: Path) -> None:
    """A write to mapped memory for which a disk has no room would end the process with SIGBUS."""
    require("own disk")
    training = RecordedTraining(tmp_path, database=Path("/mnt/aitk_db.db"))
    script = """
    import sqlite3
    recorded = 0
    with open("/mnt/checkpoint", "wb", buffering=0) as checkpoint:
        try:
            while True:
                checkpoint.write(bytes(65536))
        except OSError:
            pass
        for step in range(1, 50_001):
            run.step(step, loss=0.5)
        run.event("save_start")
        checkpoint.truncate(0)
        for step in range(50_001, 60_001):
            run.step(step, loss=0.5)
    run.close()
    connection = sqlite3.connect("/mnt/aitk_db.db")
    print(connection.execute("PRAGMA integrity_check").fetchone()[0])
    print(connection.execute("SELECT count(*), count(DISTINCT step), max(step) FROM StepMetric").fetchone())
    """
    mounted = 'mount -t tmpfs -o size=8m tmpfs /mnt && exec "$@"'
    ended = training.run(script, wrapper=_with_mount(mounted))
    assert ended.stdout.splitlines() == ["ok", "(60000, 60000, 60000)"]


def _with_mount(script: str) -> list[str]:
    """Return the command that runs another one with a file system of its own at /mnt."""
    return ["unshare", "--mount", "sh", "-c", script, "sh"]
