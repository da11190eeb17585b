"""The SSH server of the back end `process`: key logins, commands as real processes, SFTP, forwarding."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from stationmaster.event_log import get_logger

log = get_logger("simulator")

USER = "root"
_CHUNK_BYTES = 64 * 1024
_CONTROL_TERMINAL = (
    "import fcntl,os,sys,termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineShell:
    """How a command runs on the machine: its folder, and its variables at that moment."""

    home: Path
    authorized_keys: tuple[Path, ...]
    variables: Callable[[], dict[str, str]]
    is_full: Callable[[], bool]
    wrapped: Callable[[list[str]], list[str]]
    """Returns the command line that runs a command, at that moment."""
    start: Callable[..., Awaitable[asyncio.subprocess.Process]]
    """Starts a process of the machine, as `asyncio.create_subprocess_exec` does."""


async def listen(shell: MachineShell, host_key: Path) -> asyncssh.SSHAcceptor:
    """Start an SSH server on a free port of this computer."""
    return await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=lambda: _Server(shell),
        server_host_keys=[str(host_key)],
        process_factory=lambda process: _serve(shell, process),
        sftp_factory=lambda channel: _Files(channel, shell),
        encoding=None,
        allow_scp=True,
        agent_forwarding=False,
        x11_forwarding=False,
        keepalive_interval=0,
        login_timeout=30,
        server_version="OpenSSH_9.2p1-simulated",
        kex_algs=["curve25519-sha256"],
        config=None,
    )


class _Server(asyncssh.SSHServer):
    def __init__(self, shell: MachineShell) -> None:
        self._shell = shell
        self._keys: asyncssh.SSHAuthorizedKeys | None = None

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Reads the key files at every login: onstart may have changed them."""
        if username != USER:
            return False
        offered = key.export_public_key().split()[1]
        return any(offered in line.split() for file in self._shell.authorized_keys for line in _key_lines(file))

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return True

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return listen_host in ("", "localhost", "127.0.0.1")


def _key_lines(file: Path) -> list[bytes]:
    try:
        return [line for line in file.read_bytes().splitlines() if not line.lstrip().startswith(b"#")]
    except OSError:
        return []


async def _serve(shell: MachineShell, process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Run the command; send its exit code or signal after its output has ended."""
    arguments = ["/bin/bash", "-c", process.command] if process.command else ["/bin/bash"]
    try:
        if process.term_type:
            await _serve_terminal(shell, process, arguments)
        else:
            await _serve_pipes(shell, process, arguments)
    except (BrokenPipeError, ConnectionError, asyncssh.Error):
        pass  # the caller disconnected; as with any sshd the command continues
    except OSError as problem:
        process.stderr.write(f"{problem}\n".encode())
        process.exit(126)
    except Exception:  # top of a session: an error must not end the caller's other sessions
        log.exception("ssh.session_failed", command=process.command)
        process.exit(255)
    finally:
        await process.wait_closed()


async def _serve_pipes(shell: MachineShell, process: asyncssh.SSHServerProcess[bytes], arguments: list[str]) -> None:
    stdin_read, stdin_write = os.pipe()
    stdout_read, stdout_write = os.pipe()
    stderr_read, stderr_write = os.pipe()
    near = (stdin_write, stdout_read, stderr_read)
    child = await _start(shell, process, arguments, (stdin_read, stdout_write, stderr_write), near, {})
    async with _writing(stdin_write) as stdin, _reading(stdout_read) as stdout, _reading(stderr_read) as stderr:
        feeding = asyncio.create_task(_feed(process, stdin))
        try:
            await asyncio.gather(_drain(stdout, process.stdout), _drain(stderr, process.stderr))
            _exit(process, await child.wait())
        finally:
            feeding.cancel()


async def _serve_terminal(shell: MachineShell, process: asyncssh.SSHServerProcess[bytes], arguments: list[str]) -> None:
    near, far = os.openpty()
    _set_size(far, process.term_size)
    variables = {"TERM": str(process.term_type)}
    with_terminal = [sys.executable, "-I", "-S", "-c", _CONTROL_TERMINAL, *arguments]
    child = await _start(shell, process, with_terminal, (far, os.dup(far), os.dup(far)), (near,), variables)
    async with _writing(os.dup(near)) as stdin, _reading(near) as stdout:
        feeding = asyncio.create_task(_feed(process, stdin))
        try:
            await _drain(stdout, process.stdout)
            _exit(process, await child.wait())
        finally:
            feeding.cancel()


async def _start(
    shell: MachineShell,
    process: asyncssh.SSHServerProcess[bytes],
    arguments: list[str],
    descriptors: tuple[int, int, int],
    near: tuple[int, ...],
    variables: dict[str, str],
) -> asyncio.subprocess.Process:
    """Start the command with these three descriptors; if that fails, the near ends are closed too."""
    stdin, stdout, stderr = descriptors
    try:
        return await shell.start(
            *shell.wrapped(arguments),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=shell.home,
            env=shell.variables() | _accepted_variables(process) | variables,
            start_new_session=True,
        )
    except OSError:
        for descriptor in near:
            os.close(descriptor)
        raise
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


@contextlib.asynccontextmanager
async def _reading(descriptor: int) -> AsyncIterator[asyncio.StreamReader]:
    """The near end of a pipe; closed when the caller is gone, so that a writing command gets an error."""
    reader = asyncio.StreamReader(limit=_CHUNK_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        yield reader
    finally:
        transport.close()


@contextlib.asynccontextmanager
async def _writing(descriptor: int) -> AsyncIterator[asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(descriptor, "wb", buffering=0)
    )
    try:
        yield asyncio.StreamWriter(transport, protocol, None, loop)
    finally:
        if not transport.is_closing():  # EOF was sent: aborting again would raise
            transport.abort()


async def _drain(reader: asyncio.StreamReader, writer: asyncssh.SSHWriter[bytes]) -> None:
    """Copy until the end of the pipe; a terminal whose last process is gone ends with an error."""
    while True:
        try:
            chunk = await reader.read(_CHUNK_BYTES)
        except OSError:
            return
        if not chunk:
            return
        writer.write(chunk)
        await writer.drain()


async def _feed(process: asyncssh.SSHServerProcess[bytes], stdin: asyncio.StreamWriter) -> None:
    """Send the caller's input until it ends or the command closes its stdin."""
    while True:
        try:
            chunk = await process.stdin.read(_CHUNK_BYTES)
        except (asyncssh.TerminalSizeChanged, asyncssh.BreakReceived, asyncssh.SignalReceived):
            continue
        except (asyncssh.Error, ConnectionError):
            chunk = b""
        try:
            if not chunk:
                stdin.write_eof()
                return
            stdin.write(chunk)
            await stdin.drain()
        except OSError:
            return


def _set_size(terminal: int, size: tuple[int, int, int, int]) -> None:
    columns, rows, width, height = size
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, width, height))


def _accepted_variables(process: asyncssh.SSHServerProcess[bytes]) -> dict[str, str]:
    """The caller's variables that an sshd accepts by default."""
    sent = {_text(name): _text(value) for name, value in process.env.items()}
    return {name: value for name, value in sent.items() if name == "LANG" or name.startswith("LC_")}


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _exit(process: asyncssh.SSHServerProcess[bytes], status: int) -> None:
    if status < 0:
        process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
    else:
        process.exit(status)


class _Files(asyncssh.SFTPServer):
    """SFTP on real paths; relative paths start at the machine's home, and writes fail on a full disk."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], shell: MachineShell) -> None:
        super().__init__(channel)
        self._shell = shell

    def map_path(self, path: bytes) -> bytes:
        return os.path.normpath(os.fsencode(self._shell.home / os.fsdecode(path)))

    def write(self, file_obj: object, offset: int, data: bytes) -> int | Awaitable[int]:
        if self._shell.is_full():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(file_obj, offset, data)

    def mkdir(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> None:
        if self._shell.is_full():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().mkdir(path, attrs)


def new_host_key(path: Path) -> None:
    """Write an ed25519 key pair to `path` and `path`.pub, readable only by its owner."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    key = asyncssh.generate_private_key("ssh-ed25519", comment="root@machine")
    key.write_private_key(str(path))
    key.write_public_key(f"{path}.pub")
    path.chmod(0o600)
