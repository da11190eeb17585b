"""What the script does on a host: which folder is taken, and what is never touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stationmaster.providers import own_machine_script

LABEL = "sm-ab12cd34-cats-1"


def asked(*roots: Path, **fields: Any) -> dict[str, Any]:
    known = {"roots": [str(root) for root in roots], "label": LABEL, "folder": "cats", "slots": 1, "facts": {}}
    return {**known, **fields}


def test_a_root_that_cannot_be_written_to_is_passed_over_for_the_next(tmp_path: Path) -> None:
    blocked, usable = tmp_path / "file" / "jobs", tmp_path / "home" / "jobs"
    (tmp_path / "file").write_text("")
    assert own_machine_script.create(asked(blocked, usable)) == {"created": True}
    assert (usable / "cats" / "tmp").is_dir()
    (machine,) = own_machine_script.survey(asked(blocked, usable))["machines"]
    assert (machine["job_root"], machine["folder"]) == (str(usable), str(usable / "cats"))


def test_the_usual_places_are_one_for_all_and_one_of_the_user_s_own() -> None:
    assert own_machine_script.DEFAULT_ROOTS == ("/opt/stationmaster/jobs", "~/.local/share/stationmaster/jobs")


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert own_machine_script.survey(asked(tmp_path / "jobs")) == {"machines": []}
    assert own_machine_script.describe(asked(tmp_path / "jobs")) == {"machine": None}
    assert list(tmp_path.iterdir()) == []


def test_a_folder_reached_by_a_link_is_no_machine_of_ours(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "jobs"
    own_machine_script.create(asked(elsewhere))
    root.mkdir()
    (root / "cats").symlink_to(elsewhere / "cats")
    assert own_machine_script.survey(asked(root)) == {"machines": []}
    assert own_machine_script.destroy(asked(root)) == {"destroyed": True}
    assert (elsewhere / "cats" / own_machine_script.DESCRIPTION).exists()


def test_what_a_cut_create_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".new-abc" / "tmp").mkdir(parents=True)
    assert own_machine_script.survey(asked(tmp_path)) == {"machines": []}
    own_machine_script.create(asked(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "cats"]
