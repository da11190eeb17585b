"""A whole rental as a person sees it: the command line against `stationmaster simulator`, and nothing left anywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.worker.background import running_worker
from stationmaster.model import Outcome, State
from tests.support.capabilities import require
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server, stationmaster
from tests.support.commands.json_documents import assert_documented
from tests.support.jobs.local_world import write_pictures
from tests.support.vast.official_vast import OfficialClient
from tests.support.vast.simulator_service import ACCOUNT_KEY, Service, simulator_service
from tests.support.waiting import until

_NOBODY = 65534
_OPEN_FOLDERS = "demo-of-a-test-"  # beginning of their names
_SIGN_IN = re.compile(r"http://127\.0\.0\.1:\d+/sign-in\?next=/jobs/\w+#\S+")
_QUICK = ("-p", "steps=20", "-p", "seconds_per_step=0", "-p", "save_every=10", "-p", "sample_every=20")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with simulator_service(tmp_path_factory.mktemp("rental")) as service:
        yield service


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures") / "set")


@pytest.fixture
def official(service: Service, tmp_path: Path) -> Iterator[OfficialClient]:
    with closing(OfficialClient(service.url, ACCOUNT_KEY, tmp_path)) as client:
        yield client


def test_a_whole_rental_ends_with_a_model_at_home_and_no_machine_or_key_left(
    service: Service, pictures: Path, official: OfficialClient
) -> None:
    """The destroy lies for a while, so that the machine can be searched after all is done."""
    short = service.run("train", *_tiny(pictures), "--max-hours", "0.001", "--dry-run")
    assert "the time limit is below the estimate" in short.stdout
    with closing(service.customer()) as customer:
        customer.arm("lying_destroy", times=1000)
        done = service.run("train", *_tiny(pictures), "--id", "whole", "--json")
        assert done.returncode == 0, done.stderr
        service.until(lambda: service.job("whole").outcome is Outcome.COMPLETED, "the end of the training")
        machine = service.until(lambda: service.alive(), "the machine")[0]
        assert _places_of(service, machine, ACCOUNT_KEY) == []
        assert _places_of(service, machine, _private_key(service)) == []
        customer.http.delete("/simulator/faults")
        service.until(lambda: service.job("whole").state is State.ENDED, "the release")
    assert service.alive() == []
    assert official.raw("show", "instances") == []
    shown = _view(service, "whole")
    assert Path(shown["model"]).is_file()
    assert shown["cost_usd"] > 0


def test_what_is_offered_rented_and_swept_can_be_seen(service: Service, pictures: Path) -> None:
    offered = service.answer("offers", "--json")
    prices = [offer["job_cost_usd"] for offer in offered["offers"]]
    assert prices
    assert prices == sorted(prices)
    with closing(service.customer()) as customer:
        stranger = customer.rent_running(label="somebody-else")["id"]
        other = customer.rent_running(label="sm-otherone-job-1")["id"]
        listed = {row["instance"]: row for row in service.answer("instances", "--json")["machines"]}
        assert listed[str(stranger)]["act"] == "leave"
        assert "otherone" in listed[str(other)]["why"]
        assert service.run("sweep", "--force").returncode == 0
        assert {machine["id"] for machine in service.alive()} == {stranger, other}, "a sweep touched what is not ours"
        assert service.run("sweep", "--all").returncode == 2, "nobody was asked, and it was not said how many"
        assert service.run("sweep", "--all", "--count", "0").returncode == 0
        assert service.run("sweep", "--installation", "otherone", "--count", "2").returncode == 2
        assert {machine["id"] for machine in service.alive()} == {stranger, other}
        assert service.run("sweep", "--installation", "otherone", "--count", "1").returncode == 0
        assert {machine["id"] for machine in service.alive()} == {stranger}
        assert service.run("sweep", "--all", "--include-foreign", "--count", "1").returncode == 0
    assert service.alive() == []


def test_a_forced_sweep_ends_a_machine_of_ours_that_no_rental_names(service: Service) -> None:
    label = f"sm-{_installation(service)}-nobody-1"
    with closing(service.customer()) as customer:
        leak = customer.rent_running(label=label)["id"]
        told = service.answer("sweep", "--json")["machines"]
        assert [(row["instance"], row["act"]) for row in told] == [(str(leak), "alert")]
        assert [machine["id"] for machine in service.alive()] == [leak]
        hurry = {"STATIONMASTER_SWEEP__GRACE": "0"}
        service.until(lambda: _swept(service, hurry) and not service.alive(), "its end, by the provider's own word")
    assert service.alive() == []


def test_a_sweep_of_everything_cancels_what_it_ends(service: Service, pictures: Path) -> None:
    slow = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--yes", "-p", "seconds_per_step=1")
    assert service.run(*slow, "--id", "swept").returncode == 0
    service.until(lambda: service.job("swept").state is State.EXECUTING, "the training")
    assert service.run("sweep", "--all", "--count", "1").returncode == 0
    service.until(lambda: service.job("swept").state is State.ENDED, "the end of a job whose machine was taken away")
    assert (service.job("swept").outcome, service.alive()) == (Outcome.CANCELLED, [])
    service.until(lambda: running_worker(service.home) is None, "the leave of the worker")


def test_a_retry_asks_before_it_rents_and_up_takes_it_to_its_end_in_one_process(service: Service) -> None:
    refused = service.run("retry", "whole", "--id", "second")
    assert (refused.returncode, "stdin is not a terminal" in refused.stderr) == (2, True)
    process = subprocess.Popen(
        [command_server().own_command, "up", "--port", "0"],
        env=service.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        up = service.until(lambda: running_worker(service.home), "the worker")  # else `retry` starts one
        assert service.run("retry", "whole", "--id", "second", "--yes").returncode == 0
        service.until(lambda: service.job("second").state is State.ENDED, "the end of the job")
        assert running_worker(service.home) == up
    finally:
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
    assert (service.job("second").outcome, service.job("second").spec.retry_of) == (Outcome.COMPLETED, "whole")
    assert service.alive() == []


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Not in pytest's own folder: another session that starts takes away everybody else's right to pass through it."""
    with tempfile.TemporaryDirectory(prefix=_OPEN_FOLDERS, ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("who", ["us", "nobody"])
def test_a_demo_changes_nothing_outside_its_home(who: str, open_folder: Path) -> None:
    if who == "nobody":
        require("another user")
    person = open_folder / who
    home = person / "station"
    for folder in (person, home):
        folder.mkdir()
    environ = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(person),
        "STATIONMASTER_HOME": str(home),
        "STATIONMASTER_WORKER__LINGER": "0",
        "TMPDIR": str(person),
    }
    demo = ["demo", "--steps", "3", "--pace", "0"]
    command = [command_server().own_command, *demo]
    if who == "nobody":
        installed = [sys.executable, "-m", "stationmaster", *demo, "--json"]
        command = _as_nobody(installed, open_folder, person, home)
    before = _listing(person, except_for=home)
    owned_before = _owned_by(_NOBODY) if who == "nobody" else set()
    done = subprocess.run(command, env=environ, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if who == "nobody":
        _check_result(json.loads(done.stdout))
    else:
        _check_page_of_a_pipe(done.stdout)
    _until_its_worker_left(home)
    assert _listing(person, except_for=home) == before
    if who == "nobody":
        assert _owned_by(_NOBODY) <= owned_before


def _check_result(result: dict[str, Any]) -> None:
    assert result["machines_left"] == 0
    assert_documented("demo", result)


def _check_page_of_a_pipe(printed: str) -> None:
    """It ends with the training, as nobody could press Ctrl-C."""
    assert "COMPLETED" in printed
    assert len(_SIGN_IN.findall(printed)) == 1, "while it trains"
    assert "Ctrl-C" not in printed
    assert "stationmaster up --open" in printed


@pytest.fixture(scope="module")
def poor_account(service: Service) -> None:
    """An account without credit beside the other one, and a key pair for both."""
    with closing(service.customer()) as customer:
        customer.http.post("/simulator/accounts", json={"name": "poor", "api_key": "poor-account", "credit": 0})
    assert stationmaster("keys", "setup", environ=service.environ).returncode == 0


@pytest.mark.usefixtures("poor_account")
@pytest.mark.parametrize(
    ("environ", "code", "cause", "next_command"),
    [
        ({"VASTAI_API_KEY": "not-the-key"}, 21, "key", "VASTAI_API_KEY"),
        ({"VASTAI_API_KEY": "poor-account"}, 21, "credit", "cloud.vast.ai/billing"),
        ({"VASTAI_API_BASE_URL": "http://127.0.0.1:9/api/v0"}, 20, "cannot be reached", "stationmaster doctor"),
        ({"VASTAI_MAX_BID_PER_HOUR": "0.001"}, 2, "no offer of vastai fits", "stationmaster offers"),
    ],
    ids=["bad key", "no credit", "unreachable", "no offers"],
)
def test_what_hinders_a_rental_is_one_line_and_the_next_command(
    service: Service, pictures: Path, environ: dict[str, str], code: int, cause: str, next_command: str
) -> None:
    given = {"VASTAI_API_KEY": ACCOUNT_KEY, "VASTAI_API_BASE_URL": f"{service.url}/api/v0", **environ}
    words = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--provider", "vastai", "--yes")
    done = service.run(*words, STATIONMASTER_VASTAI__CALL_SPACING="0", **given)
    said = done.stderr.strip().splitlines()
    assert done.returncode == code, done.stderr
    assert len(said) == 2, done.stderr
    assert said[0].startswith("error: ")
    assert cause in said[0]
    assert said[1].startswith("hint: ")
    assert next_command in said[1]
    assert ACCOUNT_KEY not in done.stderr


def test_no_offer_names_what_excluded_offers_and_only_what_helps(service: Service, pictures: Path) -> None:
    words = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--max-price", "0.001", "--yes")
    said = service.run(*words).stderr
    assert re.search(r"\d+ × above the cap of \$0\.001 per hour \(from \$0\.\d+ per hour\)", said)
    assert "submit with --max-price 0." in said
    assert "market" in said
    assert "PREFERRED_GPUS" not in said, "a preference excludes nothing"


def _tiny(pictures: Path) -> tuple[str, ...]:
    return ("--recipe", "tiny-lora@1", "--dataset", str(pictures), "--yes", *_QUICK)


def _view(service: Service, job: str) -> dict[str, Any]:
    found: dict[str, Any] = service.answer("show", job, "--json")
    return found


def _swept(service: Service, environ: dict[str, str]) -> bool:
    assert service.run("sweep", "--force", **environ).returncode == 0
    return not service.store.rentals.not_gone()  # it is not enough that the machine is gone: we must know it


def _installation(service: Service) -> str:
    return service.store.installation_id


def _private_key(service: Service) -> str:
    return (
        (service.home / "simulator" / "id_ed25519").read_text().splitlines()[3]
    )  # the lines before are the same for every key


def _places_of(service: Service, machine: dict[str, Any], secret: str) -> list[str]:
    """Files of the machine, and environments and arguments of its processes, in which the secret stands."""
    needle = secret.encode()
    root = service.home / "simulator" / "machines" / str(machine["id"])
    assert root.is_dir()
    found = [str(path) for path in root.rglob("*") if path.is_file() and needle in path.read_bytes()]
    assert machine["processes"]
    for pid in machine["processes"]:
        for name in ("environ", "cmdline"):
            try:
                if needle in Path(f"/proc/{pid}/{name}").read_bytes():
                    found.append(f"{name} of {pid}")
            except OSError:
                continue  # it has ended
    return found


def _as_nobody(command: list[str], folder: Path, *own: Path) -> list[str]:
    """The command as a plain user, who sees this Python even where it lies in root's own folder."""
    for path in own:
        os.chown(path, _NOBODY, _NOBODY)
    user = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", *command]
    if not sys.base_prefix.startswith("/root/"):
        return user
    python, aside = sys.base_prefix, folder / "python"
    aside.mkdir()
    script = (
        f'mount --bind "{python}" "{aside}" && mount -t tmpfs -o mode=755 none /root && mkdir -p "{python}" '
        f'&& mount --bind "{aside}" "{python}" && exec "$@"'
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh", *user]


def _until_its_worker_left(home: Path) -> None:
    until(lambda: running_worker(home) is None, "the background worker's leave")


def _owned_by(user: int) -> set[str]:
    """What a user has in the folders that everybody may write to, except for homes of demos, ours or of another run."""
    homes = f"{tempfile.gettempdir()}/{_OPEN_FOLDERS}*"
    here = ["/tmp", "/var/tmp", "/dev/shm", "-path", homes, "-prune", "-o", "-user", str(user), "-print"]
    return set(subprocess.run(["find", *here], capture_output=True, text=True, check=False).stdout.splitlines())


def _listing(person: Path, *, except_for: Path) -> dict[str, int]:
    """Everything that the demo might touch outside its home, with when it changed last."""
    found = {}
    for root in (person, Path("/opt"), Path("/workspace"), Path("/etc/ssh")):
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if Path(folder, name) != except_for]
            for name in files:
                path = Path(folder, name)
                found[str(path)] = path.lstat().st_mtime_ns
            found[folder] = 0
    return found
