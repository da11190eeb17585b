"""llm-lora@2 with the real TRL: what is learned of each kind of row, and that packed rows never see each other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.trainers.conftest import Trainer
from tests.trainers.llm_lora_scripts import (
    CHANGE_NEIGHBOUR,
    MAKE_MODEL,
    PROBE_MODELS,
    SHOW_LEARNED,
    STREAM_ROWS,
    TRAIN,
    run_script,
)
from tests.trainers.llm_lora_scripts import answer_of_script as answer

pytestmark = pytest.mark.trainer("TRL")

CHAT = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "yes?"},
    {"role": "user", "content": "when"},
    {"role": "assistant", "content": "noon"},
]
SHAREGPT = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yes?"}]
ROWS = {
    "text": {"text": "the train leaves"},
    "prompt": {"prompt": "when?", "completion": "at noon"},
    "instruction": {"instruction": "say it", "input": "now", "output": "noon"},
    "instruction alone": {"instruction": "say it", "output": "noon"},
    "chat": {"messages": CHAT},
    "sharegpt": {"conversations": SHAREGPT},
}
#: As most models have it: it does not say which words are the assistant's.
UNMARKED = (
    "{% for m in messages %}[{{ m.role[0] }}]{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[a]{% endif %}"
)
MARKED = (
    "{% for m in messages %}[{{ m.role[0] }}]{% if m.role == 'assistant' %}{% generation %}{{ m.content }}</s>"
    "{% endgeneration %}{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
)


@pytest.fixture(scope="module")
def base_model(trl: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    run_script(trl.python, MAKE_MODEL, folder)
    return folder


@pytest.fixture(scope="module")
def learned(trl: Trainer, base_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """For each chat template, the learned part of each kind of row."""
    folder = tmp_path_factory.mktemp("rows")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS.values()), encoding="utf-8")
    templates = {"none": None, "unmarked": UNMARKED, "marked": MARKED}
    shown = answer(trl.python, SHOW_LEARNED, base_model, folder, json.dumps(list(templates.values())))
    for rows in shown:
        for tokens, labels in rows:
            assert [label for label in labels if label != "▁"] != [], tokens
    return {
        template: dict(zip(ROWS, (labels.replace("▁", "") for _, labels in rows), strict=True))
        for template, rows in zip(templates, shown, strict=True)
    }


def test_of_a_text_all_is_learned_and_where_it_ends(learned: dict[str, dict[str, str]]) -> None:
    assert learned["none"]["text"] == "the train leaves</s>"


def test_of_prompts_and_instructions_only_the_answer_is_learned(learned: dict[str, dict[str, str]]) -> None:
    assert learned["none"]["prompt"] == "at noon</s>"
    assert learned["none"]["instruction"] == "noon</s>"
    assert learned["none"]["instruction alone"] == "noon</s>"


@pytest.mark.parametrize("template", ["none", "unmarked", "marked"])
def test_of_chats_every_answer_is_learned_and_nothing_that_was_asked(
    learned: dict[str, dict[str, str]], template: str
) -> None:
    assert learned[template]["chat"] == "yes?</s>noon</s>"
    assert learned[template]["sharegpt"] == "yes?</s>"


def test_the_loss_of_a_packed_row_does_not_depend_on_its_neighbour(
    trl: Trainer, base_model: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "rows.jsonl").write_text('{"text": "the train leaves at noon"}\n' * 16, encoding="utf-8")
    given = {"dataset": rows, "output": tmp_path / "out", "state": tmp_path / "state", "model": base_model}
    options = [f"--{name}={value}" for name, value in given.items()]
    found = answer(trl.python, CHANGE_NEIGHBOUR, *options, "--packing", "--gradient-checkpointing", "--context=64")
    assert found["apart"][0] == pytest.approx(found["alone"], abs=1e-5), "packed as if it were alone"
    assert found["apart"][1] == pytest.approx(found["apart"][0], abs=1e-6)
    assert abs(found["together"][1] - found["together"][0]) > 1e-3, "rows that are not kept apart would be noticed"


def test_a_model_that_cannot_keep_rows_apart_is_found_out(trl: Trainer, base_model: Path) -> None:
    assert answer(trl.python, PROBE_MODELS, base_model) == {"llama": True, "llama, eager": True, "mamba": False}


def test_rows_that_are_prepared_during_the_training_all_come_in_each_pass_whoever_reads_them(
    trl: Trainer, base_model: Path, tmp_path: Path
) -> None:
    texts = [f"{number:02d}" * (1 + number % 9) for number in range(23)]
    lines = [json.dumps({"text": text}) for text in texts]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = answer(trl.python, STREAM_ROWS, base_model, tmp_path)
    expected = sorted(f"{text}</s>" for text in texts)
    first, second = found["alone"][: len(texts)], found["alone"][len(texts) :]
    assert sorted(first) == sorted(second) == expected
    assert sorted(found["by two"]) == expected
    assert first not in (second, expected, found["other seed"]), "each pass and each seed has an order of its own"
    assert found["again"] == found["alone"]
    for lengths, tokens, labels in found["packs"]:
        assert lengths == tokens == labels <= 64
    mean = sum(tokens for _, tokens, _ in found["packs"]) / len(found["packs"])
    assert mean > 0.85 * 64, "packs that are nearly full"
    assert set(found["packed rows"]) == {str(2 * (1 + number % 9) + 1) for number in range(23)}


def test_a_training_whose_rows_are_prepared_by_workers_is_resumed_with_the_rows_that_follow(
    trl: Trainer, base_model: Path, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"prompt": "when? ", "completion": "at noon"}\n' * 6, encoding="utf-8")
    with (tmp_path / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": "the train leaves " * (1 + number % 5)}) + "\n" for number in range(20))
    given = {"dataset": tmp_path, "model": base_model, "rank": 2, "context": 96, "batch-size": 2, "workers": 2}
    words = [f"--{name}={value}" for name, value in given.items()] + ["--prepare=during", "--packing", "--dropout=0"]
    words += ["--schedule=constant_with_warmup", "--warmup-steps=0", "--learning-rate=0.01"]

    def losses(folder: str, steps: int) -> dict[int, str]:
        own = [f"--output={tmp_path / folder}", f"--state={tmp_path / folder}-state", f"--steps={steps}"]
        out = run_script(trl.python, TRAIN, *words, *own, "--save-every=4")
        return {int(step): loss for step, loss in re.findall(r"step (\d+)/\d+ loss: (\S+)", out)}

    whole = losses("whole", 8)
    assert list(whole) == list(range(1, 9))
    assert losses("parts", 4) == {step: whole[step] for step in range(1, 5)}
    assert losses("parts", 8) == {step: whole[step] for step in range(5, 9)}
