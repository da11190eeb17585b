"""Settings: every source, which wins, and one clear line for what is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.config import SEED_NAMES, load_settings, monitoring_of, read_monitoring
from stationmaster.errors import ConfigInvalid
from stationmaster.settings import PROVIDERS, MonitoringSettings, Settings
from tests.support.trusted_settings import write_trusted


def settings(folder: Path, environ: dict[str, str] | None = None, **overrides: Any) -> Settings:
    """The settings of a home inside `folder`, started in `folder`."""
    variables = {"STATIONMASTER_HOME": str(folder / "home"), **(environ or {})}
    return load_settings(variables, overrides=overrides, folder=folder)


def refused(folder: Path, environ: dict[str, str]) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        settings(folder, environ)
    assert "\n" not in str(caught.value)
    return caught.value


def write_config(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_anything_the_defaults_of_the_table_hold(tmp_path: Path) -> None:
    found = settings(tmp_path)
    monitoring = found.monitoring
    assert (monitoring.poll_interval, monitoring.grace_period, monitoring.stall_detection.min_samples) == (60, 900, 4)
    assert monitoring.stall_detection.eta_convergence_threshold == 0.5
    assert monitoring.stall_detection.speed_drop_threshold == 0.5
    assert (monitoring.sample_interval_seconds, monitoring.memory_warning_threshold) == (5, 0.85)
    assert found.provider == "loopback"
    assert found.store_url == f"sqlite:///{tmp_path}/home/stationmaster.db"


@pytest.mark.parametrize("name", ["home/config.toml", "home/config.yaml", "home/config.yml", "stationmaster.toml"])
def test_a_config_file_is_found_in_the_home_or_the_folder(tmp_path: Path, name: str) -> None:
    text = "[worker]\nslots = 3\n" if name.endswith("toml") else "worker:\n  slots: 3\n"
    path = write_config(tmp_path, name, text)
    write_trusted(path, text, home=tmp_path / "home")
    assert settings(tmp_path).worker.slots == 3


def test_the_home_s_config_is_used_before_the_folder_s(tmp_path: Path) -> None:
    write_config(tmp_path, "home/config.toml", "[worker]\nslots = 3\n")
    write_config(tmp_path, "stationmaster.toml", "[worker]\nslots = 4\n")
    assert settings(tmp_path).worker.slots == 3


def test_each_source_beats_the_one_before_it(tmp_path: Path) -> None:
    assert settings(tmp_path).log_level == "INFO"
    explicit = write_config(tmp_path, "mine.toml", 'log_level = "DEBUG"\n')
    assert settings(tmp_path, {"STATIONMASTER_CONFIG": str(explicit)}).log_level == "DEBUG"
    variables = f"STATIONMASTER_CONFIG={explicit}\nSTATIONMASTER_LOG_LEVEL=WARNING\n"
    write_trusted(tmp_path / ".env", variables, home=tmp_path / "home")
    assert settings(tmp_path).log_level == "WARNING"
    environ = {"STATIONMASTER_LOG_LEVEL": "error"}
    assert settings(tmp_path, environ).log_level == "ERROR"
    assert settings(tmp_path, environ, log_level="debug").log_level == "DEBUG"
    assert settings(tmp_path, environ, log_level=None).log_level == "ERROR"


def test_our_own_names_beat_the_seeds(tmp_path: Path) -> None:
    found = settings(tmp_path, {"DRIVER": "local", "STATIONMASTER_PROVIDER": "loopback"})
    assert found.provider == "loopback"


def test_an_account_of_its_own_is_a_provider_too(tmp_path: Path) -> None:
    assert settings(tmp_path, {"DRIVER": "vastai:work"}).provider == "vastai:work"


@pytest.mark.parametrize("variable", sorted(SEED_NAMES))
def test_every_seed_name_sets_a_setting_that_exists(tmp_path: Path, variable: str) -> None:
    apart = {"VASTAI_PREFERRED_GPUS": "4090, A100", "DRIVER": "loopback", "VASTAI_API_BASE_URL": "http://localhost:7"}
    value = apart.get(variable, "7")
    found: Any = settings(tmp_path, {variable: value})
    before: Any = settings(tmp_path)
    for part in SEED_NAMES[variable].split("."):
        found, before = getattr(found, part), getattr(before, part)
    assert found is not None
    assert found != before or variable in ("DRIVER", "VASTAI_PREFERRED_GPUS")


def test_driver_loopback_chooses_this_computer(tmp_path: Path) -> None:
    write_config(tmp_path, "home/config.toml", 'provider = "vastai"\n')
    assert settings(tmp_path, {"DRIVER": "loopback"}).provider == "loopback"


def test_a_file_or_a_command_can_hold_a_secret(tmp_path: Path) -> None:
    secret = write_config(tmp_path, "token", "hf_from_file\n")
    found = settings(
        tmp_path,
        {"HF_TOKEN_FILE": str(secret), "STATIONMASTER_VASTAI__API_KEY_COMMAND": f"{sys.executable} -c 'print(42)'"},
    )
    assert found.hf_token is not None
    assert found.hf_token.get_secret_value() == "hf_from_file"
    assert found.vastai.api_key is not None
    assert found.vastai.api_key.get_secret_value() == "42"


def test_the_value_itself_beats_its_file_and_its_command(tmp_path: Path) -> None:
    given = {"HF_TOKEN": "plain", "HF_TOKEN_FILE": "/nowhere", "HF_TOKEN_COMMAND": "false"}
    found = settings(tmp_path, given).hf_token
    assert found is not None
    assert found.get_secret_value() == "plain"


def test_a_file_named_in_the_environment_beats_a_value_in_dotenv(tmp_path: Path) -> None:
    write_trusted(tmp_path / ".env", "HF_TOKEN=from_dotenv\n", home=tmp_path / "home")
    secret = write_config(tmp_path, "token", "from_environment")
    found = settings(tmp_path, {"HF_TOKEN_FILE": str(secret)}).hf_token
    assert found is not None
    assert found.get_secret_value() == "from_environment"


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    found = settings(
        tmp_path, {"HF_TOKEN": "hf_x", "VASTAI_API_KEY": "k_y", "STATIONMASTER_DATABASE_URL": "pg://p_z@h/d"}
    )
    for secret in ("hf_x", "k_y", "p_z"):
        assert secret not in repr(found)
        assert secret not in found.model_dump_json()


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"HF_TOKEN_FILE": "/nowhere/token"}, "HF_TOKEN_FILE: cannot read /nowhere/token"),
        ({"HF_TOKEN_COMMAND": "false"}, "HF_TOKEN_COMMAND failed"),
        ({"HF_TOKEN_COMMAND": "no-such-program-here"}, "HF_TOKEN_COMMAND failed"),
        ({"HF_TOKEN_COMMAND": "'unbalanced"}, "HF_TOKEN_COMMAND failed"),
    ],
)
def test_a_source_that_gives_nothing_is_told(tmp_path: Path, environ: dict[str, str], words: str) -> None:
    assert words in str(refused(tmp_path, environ))


def test_a_secret_that_is_no_text_is_told(tmp_path: Path) -> None:
    binary = tmp_path / "token"
    binary.write_bytes(b"\xff\xfe\x00")
    assert str(binary) in str(refused(tmp_path, {"HF_TOKEN_FILE": str(binary)}))


def test_what_a_failing_command_printed_stays_unsaid(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'import sys; print(\"s3cret\"); sys.exit(1)'"
    problem = refused(tmp_path, {"HF_TOKEN_COMMAND": command})
    assert "s3cret" not in str(problem) + str(problem.hint)


@pytest.mark.parametrize("variable", ["STATIONMASTER_PROVIDER", "STATIONMASTER_WORKER__SLOTS", "HF_TOKEN", "DRIVER"])
def test_an_empty_variable_counts_as_unset(tmp_path: Path, variable: str) -> None:
    write_config(tmp_path, "home/config.toml", 'provider = "vastai"\n[worker]\nslots = 3\n')
    found = settings(tmp_path, {variable: ""})
    assert (found.provider, found.worker.slots, found.hf_token) == ("vastai", 3, None)


def test_an_unknown_name_is_refused_with_the_nearest_known(tmp_path: Path) -> None:
    problem = refused(tmp_path, {"STATIONMASTER_WORKER__SLOT": "3"})
    assert "STATIONMASTER_WORKER__SLOT is not a setting" in str(problem)
    assert problem.hint == "did you mean `STATIONMASTER_WORKER__SLOTS`?"


def test_a_word_that_is_like_nothing_is_refused_with_a_place_to_look(tmp_path: Path) -> None:
    assert refused(tmp_path, {"STATIONMASTER_QQQQQQQ": "3"}).hint


def test_other_programs_variables_are_none_of_our_business(tmp_path: Path) -> None:
    others = {"MY_STATIONMASTER_X": "1", "PATH": "/bin", "STATIONMASTER_MACHINE": "sm-x"}
    assert settings(tmp_path, others) == settings(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("WORKER__SLOTS", "many", "worker.slots"),
        ("WORKER__SLOTS", "0", "worker.slots"),
        ("WORKER__LEASE", "soon", "worker.lease"),
        ("WORKER__RENEW", "1ms", "worker.renew"),
        ("WORKER__LOOK", "0", "worker.look"),
        ("WORKER__SWEEP", "0", "worker.sweep"),
        ("WORKER__LEASE", "6s", "worker"),
        ("MONITORING__STALL_DETECTION__MIN_SAMPLES", "2", "monitoring.stall_detection.min_samples"),
        ("VASTAI__MAX_BID_PER_HOUR", "0", "vastai.max_bid_per_hour"),
        ("VASTAI__MAX_BID_PER_HOUR", "cheap", "vastai.max_bid_per_hour"),
        ("VASTAI__PREFERRED_GPUS", ",", "vastai.preferred_gpus"),
        ("VASTAI__PREFERRED_GPUS", "[]", "vastai.preferred_gpus"),
        ("LOG_LEVEL", "chatty", "log_level"),
        ("LOG_CAP_BYTES", "-1", "log_cap_bytes"),
        ("WORKER__PER_PROVIDER", "two", "worker.per_provider"),
    ],
)
def test_a_wrong_value_is_named_in_one_line(tmp_path: Path, name: str, value: str, place: str) -> None:
    problem = refused(tmp_path, {f"STATIONMASTER_{name}": value})
    assert str(problem).startswith(f"{place}: ")
    assert problem.hint
    assert problem.exit_code == 3


def test_lists_and_tables_can_be_given_in_the_environment(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    found = settings(
        tmp_path,
        {
            "STATIONMASTER_VASTAI__PREFERRED_GPUS": '["4090"]',
            "STATIONMASTER_WORKER__PER_PROVIDER": json.dumps({"vastai": 2}),
            "STATIONMASTER_RECIPES": f"{one}:{two}",
            "VASTAI_MAX_BID_PER_HOUR": "0.35",
        },
    )
    assert found.vastai.preferred_gpus == ("4090",)
    assert found.vastai.max_bid_per_hour == 350_000
    assert found.worker.per_provider == {"vastai": 2}
    assert found.recipes == (one, two)


WRONG = [
    ({"DRIVER": "nope"}, f"provider: there is no provider nope; use one of: {', '.join(PROVIDERS)}"),
    ({"STATIONMASTER_LIMITS__READY": "0"}, "limits.ready: must be above 0"),
    ({"VASTAI_DEFAULT_DISK_GB": "inf"}, "vastai.default_disk_gb: must be a finite number"),
    ({"STATIONMASTER_BUCKET__ENDPOINT": "nope"}, "bucket.endpoint: must be a web address"),
    ({"STATIONMASTER_HUB__URL": "http://127.0.0.1:99999"}, "hub.url: must be a web address"),
    ({"STATIONMASTER_HUB__URL": "http://[::"}, "hub.url: must be a web address"),
    ({"STATIONMASTER_HUB__URL": "http://a..b"}, "hub.url: must be a web address"),
    ({"STATIONMASTER_NOTIFY__PAGE_URL": "ftp://x"}, "notify.page_url: must be a web address"),
    ({"STATIONMASTER_NOTIFY__OPERATORS__SLACK_URL": "sécret"}, "slack_url: must be a web address"),
    ({"STATIONMASTER_NOTIFY__DISCORD_BOT_TOKEN": "sécret"}, "discord_bot_token: must be printable ASCII"),
    ({"VASTAI_API_BASE_URL": "http://[::"}, "vastai.api_base_url: must be a web address"),
    ({"VASTAI_API_BASE_URL": "x"}, "vastai.api_base_url: must be a web address"),
    ({"VASTAI_API_KEY": "sécret"}, "vastai.api_key: must be printable ASCII"),
    ({"HF_TOKEN": "hf_sécret"}, "hf_token: must be printable ASCII"),
    ({"HF_TOKEN": "half a secret"}, "hf_token: must be printable ASCII"),
    ({"STATIONMASTER_NOTIFY__TELEGRAM_ID": "x"}, "notify.telegram_id: is not a Telegram chat"),
    ({"STATIONMASTER_NOTIFY__DISCORD_ID": "x"}, "notify.discord_id: is not a Discord user ID"),
    ({"STATIONMASTER_NOTIFY__EMAIL": "ann"}, "notify.email: is not an e-mail address"),
    ({"STATIONMASTER_NOTIFY__QUIET": "22:00-22:00"}, "notify.quiet: '22:00-22:00' is an empty span"),
    ({"VASTAI_SSH_KEY_PATH": "~nobody-here/x"}, "ssh_key_path: ~nobody-here/x names an unknown user"),
    ({"STATIONMASTER_RECIPES": "~nobody-here/x"}, "recipes: ~nobody-here/x names an unknown user"),
    ({"VASTAI_API_KEY_FILE": "~nobody-here/x"}, "VASTAI_API_KEY_FILE: ~nobody-here/x names an unknown user"),
    ({"STATIONMASTER_CONFIG": "~nobody-here/x"}, "STATIONMASTER_CONFIG names ~nobody-here/x"),
    ({"STATIONMASTER_SERVE__HOST": "a\udcff"}, "serve.host: contains characters that are not valid text"),
    ({"STATIONMASTER_SSH__HOSTS": "[" * 100_000}, "ssh.hosts: must be a list"),
    ({"STATIONMASTER_WORKER__SLOTS": "1.5"}, "worker.slots: must be a whole number"),
    ({"STATIONMASTER_LOG_LEVEL": "LOUD"}, "log_level: must be one of DEBUG, INFO, WARNING or ERROR"),
    ({"STATIONMASTER_LIMITS__FETCH": "99999999999d"}, "limits.fetch: a duration is at most a hundred years"),
]


@pytest.mark.parametrize(("environ", "words"), WRONG)
def test_a_value_that_no_service_could_use_is_refused_at_the_door(
    tmp_path: Path, environ: dict[str, str], words: str
) -> None:
    problem = refused(tmp_path, environ)
    assert words in str(problem)
    assert problem.hint
    assert "sécret" not in f"{problem} {problem.hint}"


WRONG_FILES = [
    ("yaml", "worker: {slots: 3}\nworker: {slots: 4}\n", "`worker` is given twice (line 2)", None),
    ("yaml", "a: " + "[" * 5000, "the file is nested too deeply", None),
    ("yaml", "a: &a 1\nb: *a\n", "aliases (*name) are not allowed", None),
    ("yaml", f"log_cap_bytes: {'9' * 6000}\n", "config.yaml: ", None),
    ("yaml", "home: 2020-99-99\n", "config.yaml: ", None),
    ("yaml", 'database_url: "a\\0b"\n', "database_url: contains characters that are not valid text", None),
    ("yaml", 'secrets: {"\\ud800": x}\n', "contains characters that are not valid text", None),
    ("toml", "[worker]\nslot = 3\n", "worker.slot is not a setting", "did you mean `worker.slots`?"),
    ("toml", "[[ssh.hosts]]\naddres = 'x'\n", "ssh.hosts.0", None),
    ("toml", "workr = 3\n", "workr is not a setting", "did you mean `worker`?"),
    ("toml", "worker = 3\n", "worker: must be a table of settings", None),
    ("toml", f"a = {'[' * 5000}", "config.toml: ", None),
    (
        "toml",
        "[monitoring]\ngrace_perid = 3\n",
        "monitoring.grace_perid is not a setting",
        "did you mean `monitoring.grace_period`?",
    ),
    ("toml", "[monitoring]\ngrace_period = []\n", "monitoring.grace_period: ", None),
]


@pytest.mark.parametrize(("kind", "text", "words", "hint"), WRONG_FILES)
def test_a_config_file_that_is_wrong_says_where(
    tmp_path: Path, kind: str, text: str, words: str, hint: str | None
) -> None:
    write_config(tmp_path, f"home/config.{kind}", text)
    problem = refused(tmp_path, {})
    assert words in str(problem)
    assert problem.hint
    assert "Input should" not in str(problem)
    assert hint in (None, problem.hint)


def test_a_folder_in_the_place_of_the_config_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "home" / "config.toml").mkdir(parents=True)
    assert "config.toml is not a file" in str(refused(tmp_path, {}))


def test_a_key_may_have_been_copied_with_its_line_break(tmp_path: Path) -> None:
    found = settings(tmp_path, {"HF_TOKEN": " hf_x\n"}).hf_token
    assert found is not None
    assert found.get_secret_value() == "hf_x"


@pytest.mark.parametrize(
    "text",
    ["worker: 3", "worker:\n- 1", "vastai: x", "vastai: [1]", "monitoring: 3", "1: 2", "worker: {1: 2}", "- a",
     "just words", "monitoring: {stallDetection: {1: 2}}", "monitoring: {gracePeriod: true}", "a: [",
     "worker: {slots: }", "monitoring: {pollInterval: 0}", "monitoring: {watch_interval: 0}",
     "monitoring: {stallDetection: 7}", "monitoring: {gracePeriod: .nan}", "recipes: 5", "\ta: b"],
)  # fmt: skip
def test_a_config_file_of_the_wrong_shape_is_one_clear_line(tmp_path: Path, text: str) -> None:
    write_config(tmp_path, "home/config.yaml", text)
    refused(tmp_path, {})
    refused(tmp_path, {"STATIONMASTER_WORKER__LOOK": "1s", "VASTAI_API_KEY": "k"})


@pytest.mark.parametrize("text", ["", "# nothing\n", "worker:\n", "worker: {}\n"])
def test_an_empty_file_or_section_says_nothing(tmp_path: Path, text: str) -> None:
    write_config(tmp_path, "home/config.yaml", text)
    assert settings(tmp_path, {"STATIONMASTER_WORKER__SLOTS": "5"}).worker.slots == 5


def test_a_config_file_that_is_no_text_is_one_clear_line(tmp_path: Path) -> None:
    write_config(tmp_path, "home/config.toml", "").write_bytes(b"\xff\xfe\x00")
    assert "config.toml" in str(refused(tmp_path, {}))


def test_a_dotenv_that_is_no_text_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00=1")
    assert ".env" in str(refused(tmp_path, {}))


def test_a_config_that_is_asked_for_must_be_there(tmp_path: Path) -> None:
    assert "which does not exist" in str(refused(tmp_path, {"STATIONMASTER_CONFIG": "/nowhere.toml"}))


def test_a_home_named_by_the_person_is_used_before_that_of_the_folder_s_config(tmp_path: Path) -> None:
    write_trusted(tmp_path / "stationmaster.toml", f'home = "{tmp_path}/elsewhere"\n', home=tmp_path / "home")
    assert settings(tmp_path).home == tmp_path / "home"


def test_a_home_of_a_person_who_does_not_exist_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="home"):
        load_settings({"STATIONMASTER_HOME": "~nobody-of-this-name/x"}, folder=tmp_path)


def test_a_relative_home_is_made_absolute_once(tmp_path: Path) -> None:
    assert load_settings({"STATIONMASTER_HOME": "here"}, folder=tmp_path).home == tmp_path / "here"


def test_the_milliseconds_of_a_job_s_block_are_read_as_such() -> None:
    block = {
        "gracePeriod": 900000,
        "pollInterval": 60000,
        "stallDetection": {
            "enabled": True,
            "minSamples": 4,
            "etaConvergenceThreshold": 0.5,
            "speedDropThreshold": 0.5,
        },
    }
    read = monitoring_of(read_monitoring(block), MonitoringSettings(grace_period=1.0, poll_interval=1.0))
    assert read == MonitoringSettings()


def test_our_own_names_in_a_job_s_block_are_seconds_or_durations() -> None:
    read = monitoring_of(read_monitoring({"grace_period": "15m", "poll_interval": 30}), MonitoringSettings())
    assert (read.grace_period, read.poll_interval) == (900, 30)


def test_what_a_job_does_not_say_stays_as_the_installation_has_it() -> None:
    ours = MonitoringSettings(poll_interval=7.0)
    read = monitoring_of(read_monitoring({"stallDetection": {"minSamples": 9}}), ours)
    assert (read.poll_interval, read.stall_detection.min_samples) == (7.0, 9)
    assert read.stall_detection.enabled


@given(
    st.dictionaries(
        st.one_of(st.sampled_from(["gracePeriod", "pollInterval", "stallDetection", "enabled"]), st.text(max_size=4)),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.integers() | st.text(max_size=4), inner),
            max_leaves=4,
        ),
        max_size=4,
    )
)
def test_any_block_is_read_or_refused_in_words(block: dict[str, Any]) -> None:
    try:
        read = read_monitoring(block)
    except ConfigInvalid:
        return
    assert isinstance(monitoring_of(read, MonitoringSettings()), MonitoringSettings)
