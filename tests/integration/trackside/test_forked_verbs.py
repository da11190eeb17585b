"""The server that forks the verbs of most tests: a verb in a fork does what one in a Python of its own does."""

from __future__ import annotations

import pytest

from tests.support.machines.trackside_bench import Bench, step

# The last one is no verb.
VERBS = [("hash", "plan.json", "nothing"), ("logs",), ("read", "nothing"), ("hash",), ("--help",), ("nonsense",)]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_verb_prints_and_returns_the_same_in_a_fork(job: Bench, words: tuple[str, ...]) -> None:
    job.plan(step("train", "true"))
    forked, alone = job.run(*words), job.run_alone(*words)
    assert (forked.returncode, forked.stdout, forked.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_a_verb_in_a_fork_reads_its_input_and_environment(job: Bench) -> None:
    job.environment["FROM_HOME"] = "a home"
    job.plan(step("train", "echo $FROM_HOME $TOKEN", secrets=["TOKEN"]))
    job.start(TOKEN="a token")
    job.until_finished()
    assert job.text() == "a home a token\n"


def test_without_its_archive_no_verb_runs(job: Bench) -> None:
    job.plan(step("train", "true"))
    (job.root / "trackside.pyz").rename(job.root / "elsewhere.pyz")
    for done in (job.run("hash", "plan.json"), job.run_alone("hash", "plan.json")):
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"can't open file" in done.stderr
    (job.root / "elsewhere.pyz").rename(job.root / "trackside.pyz")
