"""Host keys that a person has confirmed."""

from __future__ import annotations

import stat
import subprocess
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.remote.known_hosts import fingerprint, pin_key, pinned_keys

hosts = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True)
ports = st.none() | st.integers(1, 65535)
keys = st.from_regex(r"ssh-ed25519 [A-Za-z0-9+/]{8,68}", fullmatch=True)


@given(st.lists(st.tuples(hosts, ports, keys), min_size=1, max_size=6))
def test_the_key_pinned_last_is_a_host_s_only_key_and_others_keep_theirs(
    pins: list[tuple[str, int | None, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "home", "known_hosts")
        expected: dict[tuple[str, int], str] = {}
        for host, port, key in pins:
            pin_key(file, host, port, key)
            expected[host, port or 22] = key
        for (host, port), key in expected.items():
            assert pinned_keys(file, host, port) == (key,)


def test_nobody_else_can_write_the_file_and_a_comment_of_the_key_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    pin_key(file, "box", None, "ssh-ed25519 AAAA root@box")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "box ssh-ed25519 AAAA\n"


def test_comments_and_broken_lines_say_nothing(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text("# box ssh-ed25519 AAAA\n\nbox\nbox ssh-ed25519 BBBB note\n")
    assert pinned_keys(file, "box", 22) == ("ssh-ed25519 BBBB",)
    assert pinned_keys(tmp_path / "missing", "box", None) == ()


def test_a_fingerprint_is_the_one_that_openssh_prints(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    public = tmp_path / "key.pub"
    said = subprocess.run(["ssh-keygen", "-lf", str(public)], capture_output=True, text=True, check=True).stdout
    assert fingerprint(public.read_text()) == said.split()[1]
    assert fingerprint("nonsense") == "unreadable"
