"""structlog is imported and set up with the first event, and not before."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args

import structlog

from stationmaster.event_log import LEVELS, configure_logging, get_logger
from stationmaster.settings import LogLevel

_FIRST_EVENT = """
import sys
from stationmaster.cli.logging import quiet_logging, service_logging
from stationmaster.event_log import get_logger

log = get_logger("test")
{setup}
print("structlog" in sys.modules)
log.info("too.small")
log.error("large.enough", size=3)
print("structlog" in sys.modules)
"""


def run(setup: str) -> tuple[str, str]:
    program = _FIRST_EVENT.format(setup=setup)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout, done.stderr


def test_a_command_that_people_run_tells_only_errors() -> None:
    out, err = run("quiet_logging()")
    assert out.split() == ["False", "True"]
    assert "large.enough" in err
    assert "too.small" not in err


def test_a_service_writes_json_lines() -> None:
    out, err = run("service_logging('INFO')")
    assert out.split() == ["False", "True"]
    first, second = err.splitlines()
    assert '"event": "too.small"' in first
    assert '"size": 3' in second


def test_debug_lines_are_made_only_for_a_service_that_asks_for_them() -> None:
    timed = "with log.timed('call.made', call='list'):\n    log.debug('seen', state='QUEUED')"
    for level, lines in (("INFO", 2), ("DEBUG", 4)):
        _, err = run(f"service_logging('{level}')\n{timed}")
        assert len(err.splitlines()) == lines, err
    seen, made = (json.loads(line) for line in err.splitlines()[:2])
    assert (seen["event"], seen["state"]) == ("seen", "QUEUED")
    assert (made["event"], made["call"], made["error"], made["seconds"] >= 0) == ("call.made", "list", None, True)


def test_a_call_that_fails_is_timed_and_named_without_its_message() -> None:
    failing = "try:\n    with log.timed('call.made'):\n        raise KeyError('secret')\nexcept KeyError:\n    pass"
    _, err = run(f"service_logging('DEBUG')\n{failing}")
    assert json.loads(err.splitlines()[0])["error"] == "KeyError"
    assert "secret" not in err


def test_the_levels_are_those_of_the_setting() -> None:
    assert get_args(LogLevel) == LEVELS


def test_where_structlog_is_there_already_it_is_set_up_at_once() -> None:
    done: list[str] = []
    configure_logging(lambda: done.append("now"))
    assert done == ["now"]
    with structlog.testing.capture_logs() as logs:
        get_logger("test").warning("machine.lost", job="job")
    assert logs == [{"event": "machine.lost", "job": "job", "log_level": "warning"}]
