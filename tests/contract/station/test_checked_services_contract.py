"""What `doctor` finds out from services, real ones of a test: accounts, the clock, notification channels."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.simulator.harness import simulator_thread
from stationmaster.station.checks import CheckLevel
from stationmaster.station.local.station import LocalStation
from tests.support.jobs.local_world import LocalWorld
from tests.support.servers.messenger_server import MessengerServer
from tests.support.servers.smtp_server import SmtpServer
from tests.support.vast.simulated_vast import API_KEY, quick_settings

OpenWorld = Callable[..., LocalWorld]
OK, WARN, FAIL = CheckLevel
NOTIFY = "STATIONMASTER_NOTIFY__"


def found(world: LocalWorld, check: str, *, offline: bool = False) -> list[tuple[CheckLevel, str]]:
    results = world.station.checks.results(offline=offline)
    return [(result.level, result.detail) for result in results if result.check == check]


@pytest.fixture
def market(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings of an account at a simulated Vast.ai."""
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url:
        yield {
            "VASTAI_API_KEY": API_KEY,
            "VASTAI_API_BASE_URL": f"{url}/api/v0",
            "VASTAI_SSH_KEY_PATH": str(tmp_path / "keys" / "id_ed25519"),
            "STATIONMASTER_VASTAI__CALL_SPACING": "0",
        }


@pytest.fixture
def messengers() -> Iterator[MessengerServer]:
    with MessengerServer() as server:
        yield server
    assert server.received == []  # nothing is ever sent to a person


def test_an_account_is_asked_for_its_credit_and_the_time(open_world: OpenWorld, market: dict[str, str]) -> None:
    world = open_world(**market)
    ((level, account),) = found(world, "account")
    ((clock_level, clock),) = found(world, "clock")
    assert (level, account.startswith("vastai: key accepted, $"), account.endswith(" credit")) == (OK, True, True)
    assert (clock_level, clock.startswith("right: ")) == (OK, True)


def test_an_account_with_little_credit_is_a_warning(open_local_world: OpenWorld, market: dict[str, str]) -> None:
    world = open_local_world(**market, STATIONMASTER_NOTIFY__LOW_CREDIT="1000000")
    ((level, account),) = found(world, "account")
    assert (level, "less than notify.low_credit ($1000000.00)" in account) == (WARN, True)


def test_a_refused_key_is_a_failure_and_is_not_shown(open_local_world: OpenWorld, market: dict[str, str]) -> None:
    ((level, account),) = found(open_local_world(**{**market, "VASTAI_API_KEY": "planted-key"}), "account")
    assert (level, "planted" in account) == (FAIL, False)


@pytest.mark.parametrize(("provider", "level"), [("loopback", WARN), ("vastai", FAIL)])
def test_a_service_that_cannot_be_reached_is_a_failure_where_jobs_go_by_default(
    open_local_world: OpenWorld, market: dict[str, str], provider: str, level: CheckLevel
) -> None:
    world = open_local_world(**{**market, "VASTAI_API_BASE_URL": "http://127.0.0.1:9/api/v0", "DRIVER": provider})
    ((told, account),) = found(world, "account")
    assert (told, "cannot be reached" in account) == (level, True)
    ((clock_level, clock),) = found(world, "clock")
    assert (clock_level, clock) == (WARN, "not checked: no account's service told the time")


def test_offline_no_account_is_asked(open_world: OpenWorld) -> None:
    world = open_world(VASTAI_API_KEY="key", VASTAI_API_BASE_URL="http://127.0.0.1:9/api/v0")
    assert found(world, "account", offline=True) == [(OK, "vastai: key set, not checked (--offline)")]
    assert found(world, "clock", offline=True) == [(OK, "not checked (--offline)")]


def test_the_ssh_key_is_needed_private_and_known_to_the_account(
    open_local_world: OpenWorld, market: dict[str, str]
) -> None:
    world, path = open_local_world(**market), Path(market["VASTAI_SSH_KEY_PATH"])
    ((level, detail),) = found(world, "key")
    assert (level, detail) == (FAIL, f"there is no SSH key at {path}")
    open_local_world(VASTAI_SSH_KEY_PATH=str(path)).station.keys.setup()  # with no account, so none gets it
    assert found(world, "key") == [(OK, f"ssh-ed25519 at {path}")]
    assert (WARN, "vastai does not have our SSH key: machines rented now would refuse the login") in found(
        world, "account"
    )
    world.station.keys.setup()
    assert [level for level, _ in found(world, "account")] == [OK]
    path.chmod(0o640)
    ((level, detail),) = found(world, "key")
    assert (level, "other users have rights" in detail) == (WARN, True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640  # a check changes nothing


def test_bots_are_asked_who_they_are_and_whether_they_know_the_chat(
    open_world: OpenWorld, messengers: MessengerServer
) -> None:
    people = {"TELEGRAM_ID": "4711", "OPERATORS__TELEGRAM_ID": "99", "DISCORD_ID": "12345678901234567"}
    world = open_world(**messengers.environ, **{f"{NOTIFY}{name}": value for name, value in people.items()})
    assert set(found(world, "channel")) == {
        (OK, "telegram 4711: bot @trains_bot may write to chat 4711; nothing was sent"),
        (FAIL, "telegram 99: Telegram refused: Bad Request: chat not found"),
        (OK, "discord 12345678901234567: bot trains; nothing was sent"),
    }
    assert {level for level, _ in found(world, "channel", offline=True)} == {OK}


def test_a_wrong_token_is_a_failure_and_is_not_shown(open_local_world: OpenWorld, messengers: MessengerServer) -> None:
    tokens = {f"{NOTIFY}{name}_BOT_TOKEN": "planted-secret" for name in ("TELEGRAM", "DISCORD")}
    told = found(open_local_world(**{**messengers.environ, **tokens}), "channel")
    assert [level for level, _ in told] == [FAIL, FAIL]
    assert "planted" not in str(told)


def test_addresses_of_webhooks_are_reached_without_a_request(
    open_local_world: OpenWorld, messengers: MessengerServer
) -> None:
    world = open_local_world(
        **{
            f"{NOTIFY}OPERATORS__SLACK_URL": f"{messengers.url}/slack/planted",
            f"{NOTIFY}OPERATORS__WEBHOOK_URL": "http://127.0.0.1:9/hook",
            f"{NOTIFY}OPERATORS__WEBHOOK_SECRET": "planted",
        }
    )
    told = found(world, "channel")
    assert told == [
        (OK, "slack 127.0.0.1: 127.0.0.1 answers; nothing was sent"),
        (WARN, "webhook 127.0.0.1: 127.0.0.1 cannot be reached: ConnectionRefusedError"),
    ]
    assert messengers.calls == []


def test_the_mail_server_is_logged_in_to(open_local_world: OpenWorld) -> None:
    with SmtpServer() as server:
        mail = {"HOST": "127.0.0.1", "PORT": str(server.port), "SECURITY": "none", "USER": "ann", "PASSWORD": "planted"}
        settings = {f"{NOTIFY}MAIL__{name}": value for name, value in mail.items()}
        world = open_local_world(**settings, **{f"{NOTIFY}EMAIL": "ann@example.org"})
        told = found(world, "channel")
    assert told == [(OK, f"email ann@example.org: 127.0.0.1:{server.port} accepts the login; nothing was sent")]
    assert (server.logins, server.mails) == (1, [])
    ((level, unreachable),) = found(world, "channel")
    assert (level, "cannot be reached" in unreachable) == (WARN, True)


def test_an_address_without_its_sender_is_a_warning(open_local_world: OpenWorld) -> None:
    told = found(open_local_world(**{f"{NOTIFY}TELEGRAM_ID": "4711"}), "channel", offline=True)
    assert told[0] == (
        WARN, "notify.telegram_id is set, but not notify.telegram_bot_token: no message is sent there",
    )  # fmt: skip


def test_a_database_that_does_not_answer_is_a_failure_and_the_other_checks_still_run(
    tmp_path: Path,
) -> None:
    environ = {"STATIONMASTER_HOME": str(tmp_path), "STATIONMASTER_DATABASE_URL": "postgresql://127.0.0.1:9/none"}
    settings = load_settings({**environ, "VASTAI_API_KEY": "key"}, folder=tmp_path)
    with closing(LocalStation(settings, environ)) as station:
        results = {result.check: result for result in station.checks.results()}
    assert (results["store"].level, results["store"].hint) == (
        FAIL, "check that the database is running and database_url is right",
    )  # fmt: skip
    assert results["account"].detail == "vastai: key set, not checked (the store cannot be opened)"
    assert results["trackside"].level is OK
