"""structlog is imported and set up with the first event, and not before."""

from __future__ import annotations

import subprocess
import sys

import structlog

from stationmaster.event_log import configure_logging, get_logger

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


def test_where_structlog_is_there_already_it_is_set_up_at_once() -> None:
    done: list[str] = []
    configure_logging(lambda: done.append("now"))
    assert done == ["now"]
    with structlog.testing.capture_logs() as logs:
        get_logger("test").warning("machine.lost", job="job")
    assert logs == [{"event": "machine.lost", "job": "job", "log_level": "warning"}]
