"""`doctor` looks at the bucket."""

from __future__ import annotations

import json
from pathlib import Path

import structlog
from typer.testing import CliRunner

from stationmaster.cli.commands import app
from tests.support.servers.s3_servers import S3Server


def bucket_finding(home: Path, **environ: str) -> dict[str, object] | None:
    done = CliRunner().invoke(app, ["--home", str(home), "doctor", "--json"], env=environ)
    structlog.reset_defaults()  # the command's standard error is closed by now
    return next((one for one in json.loads(done.stdout) if one["check"] == "bucket"), None)


def test_a_bucket_is_tried_and_none_is_not_missed(rclone: S3Server, tmp_path: Path) -> None:
    assert bucket_finding(tmp_path) is None
    found = bucket_finding(tmp_path, **rclone.environment())
    assert found is not None
    assert found["ok"] is True
    assert "s3://models/stationmaster" in str(found["detail"])


def test_a_wrong_key_is_told_with_a_hint_and_without_the_key(rclone: S3Server, tmp_path: Path) -> None:
    wrong = {**rclone.environment(), "STATIONMASTER_BUCKET__SECRET_KEY": "another-planted-key"}
    found = bucket_finding(tmp_path, **wrong)
    assert found is not None
    assert found["ok"] is False
    assert "bucket.secret_key" in str(found["hint"])
    assert "planted" not in str(found)
