"""A folder that someone else wrote: its settings do nothing until the person trusts them, and nothing in it runs."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.config import load_settings
from stationmaster.errors import ConfigInvalid, StationmasterError
from stationmaster.settings.trusted_files import TrustedFiles
from stationmaster.station.local.trusting import FolderTrust
from tests.support.commands.cli_runs import QUICK, Home
from tests.support.jobs.local_world import write_pictures
from tests.support.waiting import until

MARK = "it-ran"
RESTRICTED = "STATIONMASTER_WORKER__SLOTS=3\n"
HOSTILE_VARIABLES = [
    f"VASTAI_API_KEY_COMMAND=touch {MARK}",
    "HF_TOKEN_FILE=/etc/passwd",
    "STATIONMASTER_HUB__URL=https://evil.example",
    "VASTAI_API_BASE_URL=https://evil.example/api/v0",
    "VASTAI_API_KEY_FILE=./key",
    "STATIONMASTER_VASTAI__ACCOUNTS__WORK__API_KEY=of-somebody-else",
    "STATIONMASTER_BUCKET__ENDPOINT=https://evil.example",
    "STATIONMASTER_NOTIFY__TELEGRAM_BASE_URL=https://evil.example",
    "STATIONMASTER_NOTIFY__MAIL__HOST=evil.example",
    "STATIONMASTER_HOME=./prepared",
    "STATIONMASTER_DATABASE_URL=postgresql://evil.example/x",
    "STATIONMASTER_SERVER=https://evil.example",
    "STATIONMASTER_PLAIN_HTTP_HOSTS=evil.example",
    "STATIONMASTER_CONFIG=./other.toml",
    "STATIONMASTER_RECIPES=./recipes",
    "STATIONMASTER_SSH__CONFIG_PATH=./ssh_config",
    'STATIONMASTER_SSH__HOSTS=[{"address": "-oProxyCommand=x"}]',
    "STATIONMASTER_SSH__ALLOW_UNVERIFIED=true",
    "STATIONMASTER_SERVE__HOST=0.0.0.0",
    "STATIONMASTER_SWEEP__ABANDON_AFTER=0",  # a worker serves all jobs of the home: their models would be lost
    "STATIONMASTER_METRICS__RETENTION=1s",
    "STATIONMASTER_LIMITS__DAILY_SPEND=0",
    "STATIONMASTER_NOTIFY__MUTED=silence",
    "STATIONMASTER_VASTAI__MAX_BID_PER_HOUR=100",
    "STATIONMASTER_VASTAI__VERIFIED_ONLY=false",
    "export STATIONMASTER_BOOTSTRAP__INSTALL_DRIVERS=true",
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path) as opened:
        yield opened


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The folder of a repository that the person has just cloned."""
    (tmp_path / "clone").mkdir()
    return tmp_path / "clone"


@pytest.mark.parametrize("line", HOSTILE_VARIABLES)
def test_a_dotenv_that_is_not_trusted_sets_nothing_that_needs_trust(home: Home, clone: Path, line: str) -> None:
    (clone / ".env").write_text(f"{line}\n")
    ran = home.run("jobs", cwd=clone)
    name = line.removeprefix("export ").partition("=")[0]
    error, hint = ran.err.splitlines()
    assert (ran.code, ran.out) == (3, "")
    assert error == f"error: {clone}/.env sets {name}, but is not trusted"
    assert hint == f"hint: settings can run commands: read it, then run `stationmaster trust {clone}/.env`"
    assert [path.name for path in clone.iterdir()] == [".env"]
    assert not home.path.exists()


@pytest.mark.parametrize("verb", [("train", "job.yaml"), ("doctor",), ("worker",), ("up",), ("sweeper", "--once")])
def test_no_command_runs_with_such_a_file(home: Home, clone: Path, verb: tuple[str, ...]) -> None:
    (clone / ".env").write_text(f"VASTAI_API_KEY_COMMAND=touch {MARK}\n")
    (clone / "job.yaml").write_text("recipe: tiny-lora@1\ndataset: .\n")
    ran = home.run(*verb, cwd=clone)
    assert (ran.code, "but is not trusted" in ran.err) == (3, True), ran.err
    assert not (clone / MARK).exists()


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("stationmaster.toml", b'recipes = ["./recipes"]\n', " sets recipes, but is not trusted"),
        ("stationmaster.yaml", b"hub: {url: https://evil.example}\n", " sets hub.url, but is not trusted"),
        ("stationmaster.yml", b"monitoring: {grace_period: 1}\n", " sets monitoring.grace_period, but is not trusted"),
        ("stationmaster.yml", b"vastai: {accounts: {a: {api_key: x}}}\n", " sets vastai.accounts, but is not trusted"),
        ("stationmaster.yaml", b"provider: ssh\nunheard: of\n", " sets unheard, but is not trusted"),
        ("stationmaster.yaml", b"a: &a [x]\n" + b"".join(b"b%d: &b%d [*a, *a]\n" % (n, n) for n in range(99)), ":"),
        ("stationmaster.yaml", b"\xff\xfe not text", ":"),
        ("stationmaster.yaml", b"[" * 10_000, ":"),
    ],
)
def test_a_config_file_that_is_not_trusted_sets_nothing_that_needs_trust(
    home: Home, clone: Path, name: str, content: bytes, problem: str
) -> None:
    (clone / name).write_bytes(content)
    ran = home.run("jobs", cwd=clone)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.splitlines()[0].startswith(f"error: {clone}/{name}{problem}")


def test_harmless_choices_and_keys_that_nothing_else_sets_need_no_trust(home: Home, clone: Path) -> None:
    (clone / ".env").write_text("STATIONMASTER_PROVIDER=ssh\nVASTAI_API_KEY=mine\n")
    (clone / "stationmaster.toml").write_text('log_level = "warning"\n[vastai]\nmin_vram_gb = 40\n')
    assert _provider(home, clone) == "ssh"
    settings = load_settings(dict(home.environ), folder=clone)
    assert settings.vastai.api_key is not None
    assert (settings.vastai.api_key.get_secret_value(), settings.vastai.min_vram_gb) == ("mine", 40)


def test_a_folder_does_not_replace_the_account_of_the_home_by_another(home: Home, clone: Path) -> None:
    home.path.mkdir(mode=0o700)
    (home.path / "config.toml").write_text('[vastai]\napi_key = "mine"\n')
    (clone / ".env").write_text("VASTAI_API_KEY=of-somebody-else\n")
    ran = home.run("jobs", cwd=clone)
    assert (ran.code, "sets vastai.api_key, but is not trusted" in ran.err) == (3, True), ran.err
    assert home.run("trust", cwd=clone).code == 0
    assert home.run("jobs", cwd=clone).code == 0
    mine = load_settings({**home.environ, "VASTAI_API_KEY": "also-mine"}, folder=clone).vastai.api_key
    assert mine is not None
    assert mine.get_secret_value() == "also-mine"


def test_a_folder_does_not_replace_the_account_of_a_folder_that_is_trusted(home: Home, clone: Path) -> None:
    """One worker serves all folders: the key of the last command that started one would be everybody's."""
    own = clone.parent / "own"
    own.mkdir()
    (own / ".env").write_text("VASTAI_API_KEY=mine\n")
    assert home.run("trust", cwd=own).code == 0
    (clone / ".env").write_text("VASTAI_API_KEY=of-somebody-else\n")
    ran = home.run("jobs", cwd=clone)
    assert (ran.code, "sets vastai.api_key, but is not trusted" in ran.err) == (3, True), ran.err
    assert home.run("jobs", cwd=own).code == 0


def test_a_dotenv_that_is_not_trusted_cannot_pass_another_secret_off_as_a_key(home: Home, clone: Path) -> None:
    """A key may be set without trust; but one that is taken from the environment is sent where its owner never did."""
    (clone / ".env").write_text("HF_READ_TOKEN=${CLOUD_SECRET}\n")
    ran = home.run("doctor", cwd=clone, CLOUD_SECRET="planted")
    assert (ran.code, "sets HF_READ_TOKEN, but is not trusted" in ran.err) == (3, True)
    assert "planted" not in ran.err + ran.out
    (clone / ".env").write_text("HF_READ_TOKEN=as-written\n")
    assert home.run("doctor", cwd=clone, CLOUD_SECRET="planted").code == 0


def test_a_huge_settings_file_is_refused_without_reading_it_all(home: Home, clone: Path) -> None:
    with (clone / "stationmaster.toml").open("wb") as file:
        file.truncate(50 << 30)
    ran = home.run("jobs", cwd=clone)
    assert (ran.code, "is too large for a settings file" in ran.err) == (3, True)


def test_a_trusted_file_is_used_until_it_changes(home: Home, clone: Path) -> None:
    dotenv = clone / ".env"
    dotenv.write_text(f"{RESTRICTED}STATIONMASTER_PROVIDER=ssh\nOTHER=1\n")
    trusted = home.run("trust", cwd=clone)
    names = "STATIONMASTER_WORKER__SLOTS, STATIONMASTER_PROVIDER"
    assert trusted.out == f"trusted until it changes: {dotenv}, which sets {names}\n"
    assert _provider(home, clone) == "ssh"
    dotenv.write_text(f"{RESTRICTED}STATIONMASTER_PROVIDER=simulator\n")
    refused = home.run("doctor", cwd=clone)
    assert (refused.code, refused.out) == (3, "")
    assert ".env sets STATIONMASTER_WORKER__SLOTS, but has changed since you trusted it" in refused.err
    assert home.run("trust", ".env", cwd=clone).code == 0
    assert _provider(home, clone) == "simulator"


def test_trust_ends_when_it_is_removed(home: Home, clone: Path) -> None:
    (clone / "stationmaster.toml").write_text("worker.slots = 3\n")
    assert home.run("trust", cwd=clone).code == 0
    assert home.run("jobs", cwd=clone).code == 0
    removed = home.run("trust", "--remove", "--json", cwd=clone)
    assert removed.json() == [{"path": f"{clone}/stationmaster.toml"}]
    assert home.run("jobs", cwd=clone).code == 3
    assert home.run("trust", "--remove", cwd=clone).out == "none of them was trusted\n"


def test_trust_is_for_one_path(home: Home, clone: Path) -> None:
    other = clone.parent / "other"
    other.mkdir()
    for folder in (clone, other):
        (folder / ".env").write_text(RESTRICTED)
    assert home.run("trust", cwd=clone).code == 0
    assert home.run("jobs", cwd=other).code == 3


def test_a_home_that_the_folder_chooses_cannot_vouch_for_the_folder(home: Home, clone: Path) -> None:
    """A repository may bring a prepared home along, with its own record of trust and its own config."""
    del home.environ["STATIONMASTER_HOME"]
    dotenv = clone / ".env"
    dotenv.write_text("STATIONMASTER_HOME=./prepared\n")
    FolderTrust({}, home=clone / "prepared", folder=clone).trust([dotenv])
    (clone / "prepared" / "config.toml").write_text('provider = "ssh"\n')
    ran = home.run("jobs", cwd=clone)
    assert (ran.code, "sets STATIONMASTER_HOME, but is not trusted" in ran.err) == (3, True)


def test_a_home_that_a_trusted_file_chooses_is_used_and_its_workers_trust_the_file_too(home: Home, clone: Path) -> None:
    del home.environ["STATIONMASTER_HOME"]
    (clone / ".env").write_text("STATIONMASTER_HOME=../home\n")
    (clone / "stationmaster.toml").write_text('provider = "ssh"\n')
    for name in (".env", "stationmaster.toml"):
        assert home.run("trust", name, cwd=clone).code == 0
    assert _provider(home, clone) == "ssh"
    assert home.path.is_dir()
    as_worker = home.run("--home", str(home.path), "doctor", "--json", cwd=clone)  # a worker is started with its home
    assert f"home {home.path}, provider ssh" in as_worker.out


def test_the_record_of_trust_is_private_and_not_believed_where_others_could_write_it(home: Home, clone: Path) -> None:
    (clone / ".env").write_text(RESTRICTED)
    done = subprocess.run(
        ["sh", "-c", 'umask 000; exec "$@"', "sh", sys.executable, "-P", "-m", "stationmaster", "trust", "--json"],
        env=home.environ, cwd=clone, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (trusted,) = json.loads(done.stdout)
    assert trusted["settings"] == ["STATIONMASTER_WORKER__SLOTS"]
    record = home.path / "trusted.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert json.loads(record.read_text()) == {f"{clone}/.env": trusted["sha256"]}
    assert home.run("jobs", cwd=clone).code == 0
    record.chmod(0o622)
    assert TrustedFiles(home.path).digests() == {}


def test_a_dotenv_of_another_program_is_no_obstacle_and_has_no_effect(home: Home, clone: Path) -> None:
    (clone / ".env").write_text(
        f"PATH=/nowhere\nLD_PRELOAD={clone}/x.so\nHTTPS_PROXY=http://evil.example\nPYTHONPATH={clone}\nSECRET_KEY=x\n"
    )
    with_it, without = (home.run("doctor", "--json", cwd=folder).json() for folder in (clone, home.folder))
    assert f"read from {clone}/.env (has no settings)" in [check["detail"] for check in with_it]
    tools = [[check for check in checks if check["check"] in ("rsync", "ssh")] for checks in (with_it, without)]
    assert tools[0] == tools[1]


def test_a_file_that_the_person_names_needs_no_trust(home: Home, clone: Path) -> None:
    for name in ("mine.toml", "stationmaster.toml"):
        (clone / name).write_text('provider = "ssh"\nworker.slots = 3\n')
        ran = home.run("doctor", "--json", cwd=clone, STATIONMASTER_CONFIG=str(clone / name))
        assert "provider ssh" in ran.out


def test_the_home_s_config_is_refused_if_others_may_have_written_it(home: Home) -> None:
    home.path.mkdir()
    home.path.chmod(0o755)
    config = home.path / "config.toml"
    config.write_text('provider = "ssh"\n')
    config.chmod(0o644)
    environ = {"STATIONMASTER_HOME": str(home.path)}
    assert load_settings(environ, folder=home.folder).provider == "ssh"
    for file_mode, home_mode in ((0o664, 0o755), (0o646, 0o755), (0o600, 0o775), (0o600, 0o757)):
        config.chmod(file_mode)
        home.path.chmod(home_mode)
        with pytest.raises(ConfigInvalid, match=r"other users may change .*config\.toml"):
            load_settings(environ, folder=home.folder)
    home.path.chmod(0o700)
    config.chmod(0o666)
    assert load_settings(environ, folder=home.folder).provider == "ssh"  # nobody else can get there
    if os.geteuid() == 0:
        os.chown(config, 4321, -1)
        with pytest.raises(ConfigInvalid, match="other users may change"):
            load_settings(environ, folder=home.folder)


def test_a_job_file_cannot_carry_settings(home: Home, clone: Path) -> None:
    for line in ("hub: {url: https://evil.example}", "recipes: [./r]", "secrets: {A: b}", "ssh: {}", "hooks: ./x.py"):
        (clone / "job.yaml").write_text(f"recipe: tiny-lora@1\n{line}\n")
        ran = home.run("train", "job.yaml", "--dry-run", cwd=clone)
        assert (ran.code, f"{line.partition(':')[0]} is not an option" in ran.err) == (2, True), ran.err


def test_a_command_and_its_worker_import_nothing_from_the_folder(home: Home, clone: Path) -> None:
    """Python looks for modules in the current folder first, unless it is told not to."""
    for module in ("stationmaster", "typer", "json", "webbrowser", "sqlalchemy"):
        (clone / module).mkdir()
        (clone / module / "__init__.py").write_text(f"open({str(clone / MARK)!r}, 'w').close()\nraise SystemExit(99)\n")
    pictures = write_pictures(home.folder / "pictures")
    words = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", "a", "--yes", "--watch", *QUICK)
    ran = home.run_installed(*words, cwd=clone)
    assert ran.code == 0, ran.err
    assert not (clone / MARK).exists()
    until(lambda: home.worker_pid() is None, what="the worker has left")


@given(st.binary(max_size=200) | st.text(alphabet="STATIONMASTER_HKEN=\n'\"$ {}#\\x", max_size=80).map(str.encode))
def test_no_content_of_an_untrusted_file_becomes_a_setting(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        expected = load_settings({"STATIONMASTER_HOME": str(folder / "home")}, folder=folder)
        for name in (".env", "stationmaster.toml"):
            (folder / name).write_bytes(content)
            try:
                found = load_settings({"STATIONMASTER_HOME": str(folder / "home")}, folder=folder)
            except StationmasterError:
                continue
            finally:
                (folder / name).unlink()
            assert found == expected


def _provider(home: Home, folder: Path) -> str:
    details = [check["detail"] for check in home.run("doctor", "--json", cwd=folder).json()]
    return next(str(detail).partition("provider ")[2] for detail in details if detail.startswith("home "))
