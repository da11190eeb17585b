"""The scripts of llm-lora, as far as they need none of the libraries that they train with."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stationmaster.recipes.places import BUILTIN
from stationmaster.recipes.registry import find

FOLDER = BUILTIN / "llm-lora"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"llm_lora_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_checkpoint(folder: Path, step: int, state: str) -> Path:
    made = folder / f"checkpoint-{step}"
    made.mkdir(parents=True)
    (made / "trainer_state.json").write_text(state, encoding="utf-8")
    return made


def test_all_scripts_go_to_the_machine() -> None:
    assert sorted(find("llm-lora@2").recipe.files) == [each.name for each in SCRIPTS]


def test_the_check_of_the_machine_imports_what_the_training_imports() -> None:
    """It imports `training`, which reaches every script but those that run alone."""
    reached, queue = set(), ["check_machine"]
    while queue:
        name = queue.pop()
        if (FOLDER / f"{name}.py").exists() and name not in reached:
            reached.add(name)
            queue += imported_by(FOLDER / f"{name}.py")
    assert {each.stem for each in SCRIPTS} - reached == {"train", "packages"}


def imported_by(file: Path) -> list[str]:
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return names + [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]


def test_the_kernel_that_is_tried_has_no_annotations_which_triton_would_compile() -> None:
    tree = ast.parse((FOLDER / "loss_kernels.py").read_text(encoding="utf-8"))
    kernels = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.decorator_list]
    assert [kernel.name for kernel in kernels] == ["_add_one"]
    assert [argument.annotation for argument in kernels[0].args.args] == [None]


@pytest.mark.parametrize(
    ("row", "read"),
    [
        ({"text": "all of it"}, ("", "all of it")),
        ({"prompt": "why?", "completion": "so"}, ("why?", "so")),
        ({"instruction": "add", "input": "1 2", "output": "3"}, ("add\n1 2\n", "3")),
        ({"instruction": "add", "input": "", "output": "3"}, ("add\n", "3")),
        ({"instruction": "add", "output": "3"}, ("add\n", "3")),
        ({"prompt": "only", "text": "all of it"}, ("", "all of it")),
        ({"messages": [{"role": "user", "content": "hi"}]}, ([{"role": "user", "content": "hi"}], None)),
        ({"messages": [], "tools": [{"name": "add"}]}, ([], [{"name": "add"}])),
        (
            {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yes"}]},
            ([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}], None),
        ),
    ],
)
def test_every_form_that_the_dataset_check_accepts_is_read(
    tmp_path: Path, row: dict[str, object], read: tuple[object, ...]
) -> None:
    (tmp_path / "rows.jsonl").write_text(f"\ufeff{json.dumps(row)}\n\n", encoding="utf-8")
    assert list(script("rows").find_rows(tmp_path)) == [read]


def test_rows_are_read_in_order_from_both_kinds_of_file(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    for name, text in (("b.ndjson", "third"), ("a.jsonl", "first"), ("deeper/x.JSONL", "fourth"), ("a.txt", "never")):
        (tmp_path / name).write_text(json.dumps({"text": text}), encoding="utf-8")
    with (tmp_path / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps({"text": "second\u2028line"}, ensure_ascii=False) + "\n")
    texts = [row.answer for row in script("rows").find_rows(tmp_path)]
    assert texts == ["first", "second\u2028line", "third", "fourth"]


def test_rows_are_found_and_read_one_by_one_as_they_are_in_order(tmp_path: Path) -> None:
    lines = ['\ufeff{"text": "first"}', "", '{"text": "zwölf\u2028"}', '{"prompt": "why?", "completion": "so"}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "b.ndjson").write_text('  \n{"text": "last"}\n', encoding="utf-8")
    rows = script("rows")
    places = rows.find_places(tmp_path)
    assert [(place.file.name, place.number) for place in places] == [
        ("a.jsonl", 1), ("a.jsonl", 3), ("a.jsonl", 4), ("b.ndjson", 2),
    ]  # fmt: skip
    assert [rows.read_row(place) for place in reversed(places)] == list(rows.find_rows(tmp_path))[::-1]


def test_a_row_of_no_known_form_is_named_when_it_is_read_alone(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "good"}\n[1]\n', encoding="utf-8")
    rows = script("rows")
    _, bad = rows.find_places(tmp_path)
    with pytest.raises(ValueError, match=r"rows\.jsonl:2"):
        rows.read_row(bad)


@pytest.mark.parametrize("line", ["[1]", '{"question": "why?"}', '{"prompt": "why?"}'])
def test_a_row_of_no_known_form_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "rows.jsonl").write_text(f'{{"text": "good"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"rows\.jsonl:2"):
        list(script("rows").find_rows(tmp_path))


def test_the_newest_whole_checkpoint_is_resumed_from(tmp_path: Path) -> None:
    newest = script("checkpoints").newest_whole
    assert newest(tmp_path / "nothing") is None
    write_checkpoint(tmp_path, 90, '{"global_step": 90}')
    whole = write_checkpoint(tmp_path, 100, '{"global_step": 100}')
    write_checkpoint(tmp_path, 110, '{"global_st')
    (tmp_path / "checkpoint-120").mkdir()
    write_checkpoint(tmp_path, 130, '{"global_step": 90}')
    assert newest(tmp_path) == (whole, 100)


def test_the_machine_s_own_pytorch_stays(tmp_path: Path) -> None:
    site = tmp_path / "torch-2.11.0+cu130.dist-info"
    site.mkdir()
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0+cu130\n", encoding="utf-8")
    code = "import packages; print(packages.kept())"
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(FOLDER)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    found = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert found.stdout == "['torch==2.11.0+cu130']\n"


def test_a_python_that_the_system_manages_gets_its_packages_for_the_user_alone(tmp_path: Path) -> None:
    packages = script("packages")
    plain = packages.pip_command(tmp_path / "kept", is_managed=False)
    managed = packages.pip_command(tmp_path / "kept", is_managed=True)
    assert [word for word in managed if word not in plain] == ["--user", "--break-system-packages"]
    assert plain[-len(packages.REQUIREMENTS) :] == list(packages.REQUIREMENTS)
    assert packages.is_externally_managed() is False, "a virtual environment is never the system's"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGUSR1, 0)])
def test_before_the_first_step_it_ends_at_once_when_asked_and_a_wish_to_save_waits(
    number: signal.Signals, code: int
) -> None:
    program = (
        "import os, stop_requests; asked = stop_requests.Requests(); "
        f"os.kill(os.getpid(), {int(number)}); print(asked.save)"
    )
    environ = {**os.environ, "PYTHONPATH": str(FOLDER), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "True\n" if code == 0 else "")
