from __future__ import annotations

import hashlib
import json
from pathlib import Path

import structlog
from typer.testing import CliRunner, Result

from stationmaster.cli.commands import app
from stationmaster.errors import DatasetInvalid, UserError
from tests.support.jobs.dataset_pictures import good_set


def run(*arguments: object) -> Result:
    """A command, in this process."""
    done = CliRunner().invoke(app, ["dataset", *(str(argument) for argument in arguments)])
    structlog.reset_defaults()  # the command's standard error is closed by now
    return done


def test_a_good_set_is_good_to_train(tmp_path: Path) -> None:
    result = run("check", good_set(tmp_path), "--trigger", "smland")
    assert result.exit_code == 0
    assert result.output.splitlines()[0].startswith("10 images, 10 captions, 20 files, ")
    assert result.output.splitlines()[-1] == "good to train"


def test_errors_are_shown_with_their_remedy_and_end_in_exit_code_5(tmp_path: Path) -> None:
    (good_set(tmp_path) / "landscape_001.png").write_bytes(b"")
    result = run("check", tmp_path)
    assert isinstance(result.exception, DatasetInvalid)
    assert result.exception.exit_code == 5
    assert "error: image_empty\n  landscape_001.png: the file is empty\n  fix: " in result.output
    assert result.output.splitlines()[-1] == "not ready to train: 1 error, 0 warnings"


def test_many_problems_of_a_kind_are_summed_up(tmp_path: Path) -> None:
    for caption in list(good_set(tmp_path).glob("*.txt"))[:8]:
        caption.unlink()
    result = run("check", tmp_path)
    assert result.exit_code == 0
    assert "warning: caption_missing (8)" in result.output
    assert "… and 3 more" in result.output


def test_a_hostile_name_is_printed_as_text(tmp_path: Path) -> None:
    good_set(tmp_path)
    (tmp_path / "\x1b[31m[bold]x[red]\n.txt").write_text("x")
    result = run("check", tmp_path)
    assert "\x1b" not in result.output
    assert "  \\x1b[31m[bold]x[red]\\n.txt: " in result.output


def test_json_is_one_object_with_everything(tmp_path: Path) -> None:
    (good_set(tmp_path) / "landscape_001.png").write_bytes(b"")
    result = run("check", tmp_path, "--json")
    answer = json.loads(result.stdout)
    assert (answer["trainable"], answer["images"], answer["errors"]) == (False, 10, 1)
    assert answer["problems"][0]["code"] == "image_empty"
    assert isinstance(result.exception, DatasetInvalid)


def test_fix_writes_a_copy_and_says_what_it_did(tmp_path: Path) -> None:
    (good_set(tmp_path / "set") / ".DS_Store").write_bytes(b"x")
    result = run("check", tmp_path / "set", "--fix", tmp_path / "fixed")
    assert result.exit_code == 0
    assert "skipped .DS_Store (hidden)" in result.output
    assert len(list((tmp_path / "fixed").iterdir())) == 20


def test_pack_writes_archive_and_manifest(tmp_path: Path) -> None:
    good_set(tmp_path / "set")
    answer = json.loads(run("pack", tmp_path / "set", tmp_path / "set.tar", "--json").stdout)
    assert answer["sha256"] == hashlib.sha256((tmp_path / "set.tar").read_bytes()).hexdigest()
    manifest = json.loads((tmp_path / "set.tar.manifest.json").read_text())
    assert (manifest["fingerprint"], manifest["file_count"]) == (answer["fingerprint"], 20)


def test_pack_into_a_folder_names_the_archive_by_its_hash(tmp_path: Path) -> None:
    good_set(tmp_path / "set")
    (tmp_path / "out").mkdir()
    result = run("pack", tmp_path / "set", tmp_path / "out")
    (archive,) = (tmp_path / "out").glob("*.tar")
    assert f"sha256       {archive.stem}" in result.output


def test_check_and_pack_take_an_archive(tmp_path: Path) -> None:
    good_set(tmp_path / "set")
    first = json.loads(run("pack", tmp_path / "set", tmp_path / "1.tar", "--json").stdout)
    assert run("check", tmp_path / "1.tar").exit_code == 0
    assert json.loads(run("pack", tmp_path / "1.tar", tmp_path / "2.tar", "--json").stdout)["sha256"] == first["sha256"]


def test_a_text_dataset_is_checked_by_its_own_rules(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("".join(json.dumps({"text": f"row {n}"}) + "\n" for n in range(10)))
    result = run("check", tmp_path, "--kind", "text")
    assert result.exit_code == 0
    assert result.output.startswith("10 rows in 1 file, ")


def test_a_target_inside_the_dataset_is_refused(tmp_path: Path) -> None:
    result = run("pack", good_set(tmp_path), tmp_path / "set.tar")
    assert isinstance(result.exception, UserError)
