"""What every Remote promises, held against this computer, the machine in memory and a real sshd."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from stationmaster.errors import CommandFailed, FalseAnswer, FalseFile, TransferFailed, Unreachable
from stationmaster.remote.base import check
from tests.support.asynchronous_tests import asynchronous, names_in, until
from tests.support.machines.machine_bench import Bench

ODD_WORDS = ["two words", "it's", 'a "quote"', "new\nline", "grüße ☃", "$HOME `id` \\", "*", "", "-x", "a=b", ";", "'"]
EVERY_BYTE = bytes(range(256)) * 40


@asynchronous
async def test_arguments_arrive_exactly_as_given(bench: Bench) -> None:
    async with bench.remote() as remote:
        done = await remote.run(bench.program("arguments", *ODD_WORDS), timeout=150)
    assert done.exit_status == 0
    assert done.stdout.decode().split("\0")[:-1] == ODD_WORDS


@asynchronous
async def test_input_and_output_carry_every_byte(bench: Bench) -> None:
    async with bench.remote() as remote:
        done = await remote.run(bench.program("copy"), input=EVERY_BYTE, timeout=150)
    assert (done.exit_status, done.stdout) == (0, EVERY_BYTE)


@pytest.mark.parametrize("given", [None, b""])
@asynchronous
async def test_without_input_a_command_reads_the_end_at_once(bench: Bench, given: bytes | None) -> None:
    async with bench.remote() as remote:
        done = await remote.run(bench.program("copy"), input=given, timeout=150)
    assert (done.exit_status, done.stdout) == (0, b"")


@asynchronous
async def test_a_big_input_goes_through(bench: Bench) -> None:
    data = b"0123456789abcdef" * (2**21 // 16)
    async with bench.remote() as remote:
        done = await remote.run(bench.program("copy"), input=data, timeout=150, most_bytes=len(data))
    assert done.stdout == data


@pytest.mark.parametrize("size", [1, 100_000])  # the second is more than a pipe holds
def test_a_command_that_leaves_its_input_unread_is_no_error_now_or_later(
    bench: Bench, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    @asynchronous
    async def run() -> None:
        async with bench.remote() as remote:
            for _ in range(10):
                done = await remote.run(bench.program("fail", "3"), input=b"x" * size, timeout=150)
                assert (done.exit_status, done.stdout) == (3, b"out\n")

    gc.collect()  # what earlier tests left
    caplog.clear()
    run()
    gc.collect()  # an error that nobody took is logged when its future is collected
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@asynchronous
async def test_five_megabytes_of_output_come_whole(bench: Bench) -> None:
    async with bench.remote() as remote:
        done = await remote.run(bench.program("big", "5000000"), timeout=150, most_bytes=5_000_000)
    assert (done.exit_status, len(done.stdout), set(done.stdout)) == (0, 5_000_000, {ord("x")})


@asynchronous
async def test_more_output_than_was_agreed_is_a_false_answer_and_the_machine_can_be_asked_again(bench: Bench) -> None:
    async with bench.remote() as remote:
        with pytest.raises(FalseAnswer, match="more than 4,999,999 bytes"):
            await remote.run(bench.program("big", "5000000"), timeout=150, most_bytes=4_999_999)
        assert (await remote.run(bench.program("big", "10"), timeout=150)).stdout == b"x" * 10


@pytest.mark.parametrize("said", [1, 299_999, 300_001])
@asynchronous
async def test_a_file_of_another_size_than_was_agreed_leaves_nothing_here(
    bench: Bench, tmp_path: Path, said: int
) -> None:
    (tmp_path / "here").write_bytes(b"x" * 300_000)
    (tmp_path / "home").mkdir()
    async with bench.remote() as remote:
        await remote.push(tmp_path / "here", f"{bench.folder}/x")
        with pytest.raises(FalseFile, match=f"{said:,} were reported"):
            await remote.pull(f"{bench.folder}/x", tmp_path / "home" / "back", size=said)
    assert names_in(tmp_path / "home") == []


@pytest.mark.parametrize("status", [0, 1, 3, 255])
@asynchronous
async def test_exit_status_output_and_errors_are_told_apart(bench: Bench, status: int) -> None:
    async with bench.remote() as remote:
        done = await remote.run(bench.program("fail", str(status)), timeout=150)
    assert (done.exit_status, done.stdout, done.stderr) == (status, b"out\n", b"err\n")


@asynchronous
async def test_a_command_ended_by_a_signal_has_the_status_a_shell_would_give(bench: Bench) -> None:
    async with bench.remote() as remote:
        done = await remote.run(bench.program("killed"), timeout=150)
    assert done.exit_status == 128 + 9


@asynchronous
async def test_a_program_that_is_not_there_is_a_failure_not_an_unknown(bench: Bench) -> None:
    async with bench.remote() as remote:
        done = await remote.run(bench.program("no-such-program"), timeout=150)
    assert done.exit_status == 127


@asynchronous
async def test_check_raises_with_what_the_command_said(bench: Bench) -> None:
    async with bench.remote() as remote:
        assert await check(remote, bench.program("fail", "0"), timeout=150) == b"out\n"
        with pytest.raises(CommandFailed, match=r"status 4.*err"):
            await check(remote, bench.program("fail", "4"), timeout=150)


@asynchronous
async def test_environment_variables_reach_the_command(bench: Bench) -> None:
    value = "it's $HOME; a\nb ☃"
    async with bench.remote() as remote:
        done = await remote.run(bench.program("environment", "ODD"), env={"ODD": value, "OTHER": ""}, timeout=150)
    assert done.stdout.decode() == value


@asynchronous
async def test_past_its_time_limit_a_command_is_unknown(bench: Bench) -> None:
    async with bench.remote() as remote:
        with pytest.raises(Unreachable, match=r"did not answer within 0\.3 s"):
            await remote.run(bench.program("slow"), timeout=0.3)
        assert (await remote.run(bench.program("fail", "0"), timeout=150)).exit_status == 0


@asynchronous
async def test_commands_run_side_by_side(bench: Bench) -> None:
    async with bench.remote() as remote:
        calls = [remote.run(bench.program("arguments", str(n)), timeout=150) for n in range(40)]
        answers = [done.stdout for done in await asyncio.gather(*calls)]
    assert answers == [f"{n}\0".encode() for n in range(40)]


@asynchronous
async def test_a_stream_yields_output_that_never_ends_a_line(bench: Bench) -> None:
    async with bench.remote() as remote, remote.stream(bench.program("trickle"), timeout_idle=20) as stream:
        chunks = [chunk async for chunk in stream]
        assert b"".join(chunks) == b"one\rtwo\r"
        assert len(chunks) == 2
        if bench.kind != "fake":  # the machine in memory streams only commands that end well
            assert (stream.exit_status, stream.stderr) == (3, b"oops\n")


@asynchronous
async def test_leaving_a_stream_closes_its_input_so_that_the_command_ends(bench: Bench) -> None:
    async with bench.remote() as remote:
        async with remote.stream(bench.program("endless"), timeout_idle=20) as stream:
            pid = int(await anext(aiter(stream)))
            assert bench.is_running(pid)
            assert stream.exit_status is None
        await until(lambda: not bench.is_running(pid), what=f"the end of process {pid}")


@asynchronous
async def test_a_silent_stream_is_given_up_after_its_idle_limit(bench: Bench) -> None:
    async with bench.remote() as remote:
        assert (await remote.run(bench.program("fail", "0"), timeout=150)).exit_status == 0
        async with remote.stream(bench.program("endless"), timeout_idle=4) as stream:
            chunks = aiter(stream)
            await anext(chunks)
            with pytest.raises(Unreachable, match=r"did not answer within 4 s"):
                await anext(chunks)
        assert (await remote.run(bench.program("fail", "0"), timeout=150)).exit_status == 0


@asynchronous
async def test_a_command_that_closes_its_output_and_lives_on_is_given_up_too(bench: Bench) -> None:
    async with bench.remote() as remote, remote.stream(bench.program("mute"), timeout_idle=4) as stream:
        with pytest.raises(Unreachable, match=r"did not answer within 4 s"):
            assert [chunk async for chunk in stream] == []


@asynchronous
async def test_a_stream_of_a_program_that_is_not_there_ends_with_127(bench: Bench) -> None:
    async with bench.remote() as remote, remote.stream(bench.program("no-such-program")) as stream:
        assert [chunk async for chunk in stream if chunk] == []
        assert stream.exit_status == 127


@pytest.mark.parametrize("name", ["plain", "deep/er/file", "two words", 'it\'s "odd"', "new\nline", "grüße ☃"])
@asynchronous
async def test_a_file_goes_there_and_comes_back(bench: Bench, tmp_path: Path, name: str) -> None:
    here, back, there = tmp_path / "here", tmp_path / "new" / "folder" / "back", f"{bench.folder}/{name}"
    here.write_bytes(EVERY_BYTE)
    async with bench.remote() as remote:
        await remote.push(here, there)
        found = await remote.stat(there)
        await remote.pull(there, back, size=len(EVERY_BYTE))
    assert back.read_bytes() == EVERY_BYTE
    assert found is not None
    assert (found.size, found.is_dir) == (len(EVERY_BYTE), False)


@asynchronous
async def test_an_empty_file_is_a_file(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    async with bench.remote() as remote:
        await remote.push(tmp_path / "here", f"{bench.folder}/empty")
        await remote.pull(f"{bench.folder}/empty", tmp_path / "back", size=0)
    assert (tmp_path / "back").read_bytes() == b""


@asynchronous
async def test_a_push_replaces_the_whole_file(bench: Bench, tmp_path: Path) -> None:
    there = f"{bench.folder}/model"
    async with bench.remote() as remote:
        for content in (b"a long first content", b"short"):
            (tmp_path / "here").write_bytes(content)
            await remote.push(tmp_path / "here", there)
        await remote.pull(there, tmp_path / "back", size=5)
    assert (tmp_path / "back").read_bytes() == b"short"


@asynchronous
async def test_progress_ends_at_the_whole_size(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"x" * 300_000)
    sent: list[tuple[int, int]] = []
    fetched: list[tuple[int, int]] = []
    async with bench.remote() as remote:
        await remote.push(tmp_path / "here", f"{bench.folder}/x", progress=lambda *moved: sent.append(moved))
        await remote.pull(
            f"{bench.folder}/x", tmp_path / "back", size=300_000, progress=lambda *moved: fetched.append(moved)
        )
    for moves in (sent, fetched):
        assert moves[-1] == (300_000, 300_000)
        assert moves == sorted(moves)


@asynchronous
async def test_a_file_that_is_not_there_cannot_be_pulled(bench: Bench, tmp_path: Path) -> None:
    async with bench.remote() as remote:
        with pytest.raises(TransferFailed):
            await remote.pull(f"{bench.folder}/none", tmp_path / "back", size=1)
    assert names_in(tmp_path) == ["machine"]


@asynchronous
async def test_a_pull_to_where_nothing_can_be_written_fails_as_a_transfer(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    async with bench.remote() as remote:
        await remote.push(tmp_path / "here", f"{bench.folder}/file")
        for target in (tmp_path / "here" / "below", tmp_path / "folder"):
            with pytest.raises(TransferFailed):
                await remote.pull(f"{bench.folder}/file", target, size=1)


@asynchronous
async def test_a_local_file_that_is_not_there_cannot_be_pushed(bench: Bench, tmp_path: Path) -> None:
    async with bench.remote() as remote:
        with pytest.raises(TransferFailed):
            await remote.push(tmp_path / "none", f"{bench.folder}/there")
        assert await remote.stat(f"{bench.folder}/there") is None


@asynchronous
async def test_a_folder_is_not_overwritten_by_a_file(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"x")
    async with bench.remote() as remote:
        await remote.push(tmp_path / "here", f"{bench.folder}/folder/inside")
        with pytest.raises(TransferFailed):
            await remote.push(tmp_path / "here", f"{bench.folder}/folder")
        assert await remote.stat(f"{bench.folder}/folder/inside") is not None


@asynchronous
async def test_stat_tells_files_folders_and_nothing_apart(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"123")
    async with bench.remote() as remote:
        await remote.push(tmp_path / "here", f"{bench.folder}/sub/file")
        folder = await remote.stat(f"{bench.folder}/sub")
        file = await remote.stat(f"{bench.folder}/sub/file")
        assert folder is not None
        assert folder.is_dir
        assert file is not None
        assert (file.size, file.is_dir) == (3, False)
        assert await remote.stat(f"{bench.folder}/sub/none") is None
        assert await remote.stat(f"{bench.folder}/sub/file/below") is None


@asynchronous
async def test_a_forwarded_port_leads_to_the_machine(bench: Bench) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, bench.remote() as remote, remote.forward(server.sockets[0].getsockname()[1]) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello\n")
        assert await reader.read() == b"HELLO\n"
        writer.close()
        await writer.wait_closed()
