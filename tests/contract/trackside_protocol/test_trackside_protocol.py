"""What home may expect of trackside, held against the real one and the fake one, so that the fake cannot lie."""

from __future__ import annotations

import asyncio
import hashlib
import io
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, aclosing
from pathlib import Path

import pytest

from stationmaster.errors import CommandFailed, TransferFailed
from stationmaster.remote.fake_run import safetensors_bytes
from stationmaster.remote.host import Host
from stationmaster.remote.pyz import build_pyz
from stationmaster.remote.status import Since, Status
from stationmaster.remote.transfer import pull_verified, push_verified
from tests.support.asynchronous_tests import asynchronous
from tests.support.machines.protocol_bench import ProtocolBench, fake_bench, plan, real_bench
from tests.support.waiting import pause_seconds

Make = Callable[[str], ProtocolBench]


@pytest.fixture(params=["real", "fake"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """A job whose training behaves as named."""
    kind = real_bench if request.param == "real" else fake_bench
    made: list[ProtocolBench] = []
    with ExitStack() as stack:

        def make_one(training: str) -> ProtocolBench:
            made.append(stack.enter_context(kind(tmp_path, training)))
            return made[-1]

        yield make_one
        for bench in made:
            asyncio.run(end(bench.host))


async def end(host: Host) -> None:
    try:
        await host.stop(0)
    except CommandFailed:
        pass  # no plan was ever put there


async def until_status(host: Host, condition: Callable[[Status], bool], *, seconds: float = 150.0) -> Status:
    async with asyncio.timeout(seconds):
        while True:
            began = time.monotonic()
            status = await host.status()
            if condition(status):
                return status
            await asyncio.sleep(pause_seconds(time.monotonic() - began))


async def until_finished(host: Host) -> Status:
    return await until_status(host, lambda status: status.finished is not None)


def states(status: Status) -> list[tuple[str, str, int]]:
    return [(step.name, step.state, step.try_number) for step in status.steps]


@asynchronous
async def test_without_a_plan_nothing_can_be_asked_but_files(make: Make) -> None:
    bench = make("ends well")
    await bench.host.install(build_pyz(bench.local / "pyz"))
    for call in (bench.host.start, bench.host.status, bench.host.stop, bench.host.inventory):
        with pytest.raises(CommandFailed, match=r"plan\.json"):
            await call()
    assert await bench.host.hash(["nothing"]) == {"nothing": None}


@asynchronous
async def test_a_plan_that_was_not_started_is_pending(make: Make) -> None:
    bench = make("ends well")
    await bench.prepare()
    status = await bench.host.status()
    assert (status.started, status.finished, status.supervisor.alive) == (False, None, False)
    assert states(status) == [("check", "pending", 0), ("train", "pending", 0), ("report", "pending", 0)]
    assert status.disk is not None
    assert status.boot_id


@asynchronous
async def test_a_plan_runs_to_its_end_and_every_step_once(make: Make) -> None:
    bench = make("ends well")
    await bench.prepare()
    for _ in range(3):
        assert (await bench.host.start()).started
    status = await until_finished(bench.host)
    assert status.finished is not None
    assert (status.finished.result, status.finished.step) == ("done", None)
    assert states(status) == [("check", "done", 1), ("train", "done", 1), ("report", "done", 1)]
    assert [step.exit_code for step in status.steps] == [0, 0, 0]
    assert [step.training for step in status.steps] == [False, True, False]
    assert all(step.started_at and step.ended_at and step.started_at <= step.ended_at for step in status.steps)
    assert (status.training_alive, status.needs_secrets) == (False, ())
    await bench.host.start()
    assert [bench.starts_of(name) for name in ("check", "train", "report")] == [1, 1, 1]


@asynchronous
async def test_a_failed_try_is_followed_by_another(make: Make) -> None:
    bench = make("fails once")
    await bench.prepare()
    await bench.host.start()
    status = await until_finished(bench.host)
    assert status.finished is not None
    assert status.finished.result == "done"
    assert states(status)[1] == ("train", "done", 2)
    assert bench.starts_of("train") == 2


@asynchronous
async def test_when_all_tries_failed_the_plan_has_failed_and_says_where(make: Make) -> None:
    bench = make("fails always")
    await bench.prepare()
    await bench.host.start()
    status = await until_finished(bench.host)
    assert status.finished is not None
    assert (status.finished.result, status.finished.step, status.finished.exit_code) == ("failed", "train", 3)
    assert states(status) == [("check", "done", 1), ("train", "failed", 2), ("report", "pending", 0)]
    assert (status.steps[1].failure, status.steps[1].exit_code, status.steps[1].exit_known) == ("exit", 3, True)
    assert (status.steps[1].error, status.steps[1].cannot_pass) == (None, False)
    await bench.host.start()
    assert bench.starts_of("train") == 2


@asynchronous
async def test_an_error_that_cannot_pass_is_tried_once_and_told(make: Make) -> None:
    bench = make("cannot pass")
    await bench.prepare()
    await bench.host.start()
    status = await until_finished(bench.host)
    assert states(status) == [("check", "done", 1), ("train", "failed", 1), ("report", "pending", 0)]
    assert (status.steps[1].failure, status.steps[1].error) == ("exit", "KeyError: rank")
    assert [step.cannot_pass for step in status.steps] == [False, True, False]
    assert bench.starts_of("train") == 1


@asynchronous
async def test_a_stopped_plan_stays_stopped(make: Make) -> None:
    bench = make("goes on")
    await bench.prepare()
    await bench.host.start()
    running = await until_status(bench.host, lambda status: status.training_alive and len(status.outputs) > 0)
    assert states(running) == [("check", "done", 1), ("train", "running", 1), ("report", "pending", 0)]
    assert running.steps[1].pid
    assert running.supervisor.alive
    for _ in range(2):
        stopped = await bench.host.stop(5)
        assert stopped.finished is not None
        assert (stopped.finished.result, stopped.finished.step) == ("stopped", "train")
        assert states(stopped) == [("check", "done", 1), ("train", "stopped", 1), ("report", "pending", 0)]
        assert (stopped.training_alive, stopped.steps[1].failure, stopped.steps[1].signal) == (False, "stopped", 15)
    again = await bench.host.start()
    assert again.finished == stopped.finished
    assert bench.starts_of("train") == 1


@asynchronous
async def test_a_killed_supervisor_costs_nothing_but_the_next_step_until_it_is_started_again(
    make: Make, tmp_path: Path
) -> None:
    bench = make("waits for a sign")
    await bench.prepare()
    await bench.host.start()
    bench.kill_supervisor(await until_status(bench.host, lambda status: status.training_alive))
    alone = await until_status(bench.host, lambda status: not status.supervisor.alive)
    assert (alone.training_alive, states(alone)[1]) == (True, ("train", "running", 1))
    await bench.host.remote.push(tmp_path / "model", bench.host.path("sign"))
    trained = await until_status(bench.host, lambda status: status.steps[1].state == "done")
    assert (states(trained)[2], trained.finished) == (("report", "pending", 0), None)
    assert (trained.steps[1].exit_known, trained.steps[1].exit_code) == (True, 0)
    await bench.host.start()
    status = await until_finished(bench.host)
    assert states(status) == [("check", "done", 1), ("train", "done", 1), ("report", "done", 1)]
    assert [bench.starts_of(name) for name in ("check", "train", "report")] == [1, 1, 1]


@asynchronous
async def test_a_plan_stopped_before_its_start_never_starts(make: Make) -> None:
    bench = make("ends well")
    await bench.prepare()
    await bench.host.stop(1)
    status = await bench.host.start()
    assert status.finished is not None
    assert (status.finished.result, status.finished.step) == ("stopped", None)
    assert [step.state for step in status.steps] == ["pending"] * 3


@asynchronous
async def test_a_step_waits_for_its_secrets(make: Make) -> None:
    bench = make("ends well")
    await bench.prepare(steps=plan("ends well", secrets=("HF_TOKEN",))["steps"])
    assert (await bench.host.start()).needs_secrets == ("HF_TOKEN",)
    waiting = await until_status(bench.host, lambda status: status.steps[0].state == "done")
    assert states(waiting)[1] == ("train", "pending", 0)
    assert (waiting.finished, waiting.needs_secrets) == (None, ("HF_TOKEN",))
    assert (await bench.host.start({"HF_TOKEN": "hf_secret"})).needs_secrets == ()
    status = await until_finished(bench.host)
    assert states(status)[1] == ("train", "done", 1)
    assert "hf_secret" not in await bench.host.logs()


@asynchronous
async def test_the_log_is_read_once_in_pieces_that_fit_together(make: Make) -> None:
    bench = make("says much")
    await bench.prepare()
    await bench.host.start()
    await until_finished(bench.host)
    since, pieces, rounds = Since(), dict[str, bytes](), 0
    while (status := await bench.host.status(since, max_bytes=30_000)).log:
        for piece in status.log:
            mark = since.log.get(piece.stream)
            assert piece.start == (0 if mark is None else mark.offset)
            assert not piece.restarted
            pieces[piece.stream] = pieces.get(piece.stream, b"") + piece.data
        since, rounds = since.after(status), rounds + 1
        assert status.more or not (await bench.host.status(since)).log
    assert rounds > 2
    assert len(pieces["1.1"]) > 50_000
    assert "".join(pieces[stream].decode() for stream in sorted(pieces)) == await bench.host.logs()
    assert pieces["1.1"].decode() == await bench.host.logs(step=1)


@asynchronous
async def test_rows_of_the_training_come_once_and_all_of_them_by_the_end(make: Make) -> None:
    bench = make("ends well")
    await bench.prepare()
    await bench.host.start()
    since, read = Since(), dict[str, list[int]]()
    while True:
        status = await bench.host.status(since)
        for table, last in status.series_read.items():
            read.setdefault(table, []).append(last)
        since = since.after(status)
        if status.finished is not None and not status.more:
            break
    assert read
    for ids in read.values():
        assert ids == sorted(set(ids)), "each answer begins after the one before"
    assert (await bench.host.status(since)).series_read == {}
    assert (await bench.host.status()).series_read == {table: ids[-1] for table, ids in read.items()}


@asynchronous
async def test_outputs_are_listed_hashed_and_come_home_whole(make: Make, tmp_path: Path) -> None:
    bench = make("ends well")
    await bench.prepare()
    await bench.host.start()
    status = await until_finished(bench.host)
    listed = {output.path: output for output in status.outputs}
    inventory = {output.path: output for output in (await bench.host.inventory()).files}
    assert listed.keys() == inventory.keys()
    model, expected = inventory["output/cat.safetensors"], safetensors_bytes(100)
    assert (model.kind, model.size, model.sha256) == ("checkpoint", len(expected), hashlib.sha256(expected).hexdigest())
    assert listed["output/cat.safetensors"].sha256 is None
    hashed = await bench.host.hash([model.path, "output/none"])
    assert hashed["output/none"] is None
    assert hashed[model.path] is not None
    target = await pull_verified(bench.host, model.path, tmp_path / "home" / "cat.safetensors", hashed[model.path])
    assert target.read_bytes() == expected


@asynchronous
async def test_following_tells_everything_until_the_end(make: Make) -> None:
    bench = make("ends well")
    await bench.prepare()
    await bench.host.start()
    text: dict[str, bytes] = {}
    async with aclosing(bench.host.follow(interval_seconds=0.02)) as statuses:
        async for status in statuses:
            for piece in status.log:
                assert piece.start == 0 or piece.stream in text
                text[piece.stream] = text.get(piece.stream, b"") + piece.data
            if status.finished is not None and not status.more:
                break
    assert b"Running 1 job" in text["1.1"]


def archive_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@asynchronous
async def test_a_recipe_without_a_way_to_save_or_clean_up_says_so_and_nothing_runs_afterwards(make: Make) -> None:
    bench = make("goes on")
    await bench.prepare()
    await bench.host.start()
    assert (await bench.host.save("a")).state == "impossible"
    assert (await bench.host.cleanup(0)).state == "nothing"
    status = await until_finished(bench.host)
    assert status.finished is not None
    assert status.finished.result == "stopped"
    assert status.health is None


@asynchronous
async def test_an_archive_is_unpacked_once_and_only_the_right_one(make: Make, tmp_path: Path) -> None:
    bench = make("ends well")
    await bench.prepare()
    archive = tmp_path / "dataset.tar"
    archive.write_bytes(archive_of({"one.txt": b"1", "sub/two.txt": b"22"}))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    await push_verified(bench.host, archive, "dataset.tar", sha256)
    with pytest.raises(TransferFailed, match=sha256):
        await bench.host.unpack("dataset.tar", "dataset", "0" * 64)
    assert await bench.host.remote.stat(bench.host.path("dataset/one.txt")) is None
    first = await bench.host.unpack("dataset.tar", "dataset", sha256)
    second = await bench.host.unpack("dataset.tar", "dataset", sha256)
    assert (first.files, first.already, second.files, second.already) == (2, False, 2, True)
    found = await bench.host.hash(["dataset/one.txt", "dataset/sub/two.txt"])
    assert [file and file.size for file in found.values()] == [1, 2]
    with pytest.raises(CommandFailed):
        await bench.host.unpack("none.tar", "other", sha256)


@asynchronous
async def test_a_kept_archive_is_there_for_a_later_job_and_only_under_its_own_hash(make: Make, tmp_path: Path) -> None:
    bench = make("ends well")
    await bench.prepare()
    archive = tmp_path / "dataset.tar"
    archive.write_bytes(archive_of({"one.txt": b"1"}))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert not await bench.host.take_cached_archive("dataset.tar", sha256, room_bytes=0)
    await push_verified(bench.host, archive, "dataset.tar", sha256)
    await bench.host.cache_archive("dataset.tar", sha256, most_bytes=10**9, most_seconds=3600)
    assert not await bench.host.take_cached_archive("dataset.tar", sha256, room_bytes=0)  # it is there already
    assert not await bench.host.take_cached_archive("another.tar", "0" * 64, room_bytes=0)
    assert await bench.host.take_cached_archive("another.tar", sha256, room_bytes=0)
    found = await bench.host.hash(["another.tar"])
    assert found["another.tar"] is not None
    assert found["another.tar"].sha256 == sha256
