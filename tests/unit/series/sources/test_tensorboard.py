"""Event files that TensorBoard's own libraries wrote (tests/fixtures/series/make.py), whole, cut off and damaged."""

from __future__ import annotations

import pytest

from stationmaster.series.sources.tables import tables_of
from stationmaster.series.sources.tensorboard import are_events, read_event_files, read_events
from tests.support.programs import ROOT

FILES = ROOT / "tests" / "fixtures" / "series"
NAME = "events.out.tfevents.1700000000.host"
SIMPLE = (FILES / "tensorboardx" / NAME).read_bytes()
TENSORS = (FILES / "tensors" / NAME).read_bytes()


def test_simple_values_become_columns_and_values_of_their_own() -> None:
    steps, values = tables_of(read_events(SIMPLE))
    assert steps.values("step") == list(range(20))
    assert steps.values("timestamp") == [1_700_000_000.0 + 2 * step for step in range(20)]
    assert steps.values("loss")[3] == pytest.approx(1 / 4)
    assert steps.values("learning_rate")[10] == pytest.approx(5e-5)
    assert steps.values("gradient_norm")[1] == pytest.approx(1.5)
    assert set(values.values("name")) == {"loss/average"}
    assert values.values("value")[3] == pytest.approx(1.5 / 4)


def test_a_loss_of_nan_is_unknown() -> None:
    assert tables_of(read_events(SIMPLE))[0].values("loss")[7] is None


def test_scalars_as_tensors_of_every_type() -> None:
    steps, values = tables_of(read_events(TENSORS))
    assert steps.values("loss")[1] == pytest.approx(1 / 2)
    assert steps.values("learning_rate")[10] == pytest.approx(5e-5)
    assert steps.values("batch_size") == list(range(4, 24))
    assert values.where("name", "signed").values("value") == [-float(step) for step in range(20)]
    assert values.where("name", "half").values("value") == [1.0] * 20


def test_texts_and_vectors_are_no_scalars() -> None:
    assert {scalar.name for scalar in read_events(TENSORS).scalars} == {
        "epoch_loss", "learning_rate", "batch_size", "signed", "half",
    }  # fmt: skip


@pytest.mark.parametrize("cut", range(1, 200, 7))
def test_a_record_that_is_cut_off_costs_only_itself(cut: int) -> None:
    whole, found = read_events(SIMPLE), read_events(SIMPLE[:-cut])
    assert found.scalars == whole.scalars[: len(found.scalars)]
    assert len(found.scalars) >= len(whole.scalars) - 1 - cut // 40
    assert found.notes in ((), ("the last record is cut off",))


def test_a_damaged_record_is_left_out_and_noted() -> None:
    place = SIMPLE.index(b"train/grad_norm")
    found = read_events(SIMPLE[:place] + b"X" + SIMPLE[place + 1 :])
    assert found.notes == ("a damaged record was left out",)
    assert len(found.scalars) == len(read_events(SIMPLE).scalars) - 1


def test_after_a_damaged_length_nothing_is_believed() -> None:
    found = read_events(SIMPLE[:400] + bytes(100) + SIMPLE[500:])
    assert "damaged at byte" in found.notes[-1]


def test_files_of_one_folder_continue_each_other() -> None:
    found = read_event_files({f"a/{NAME}.1": SIMPLE, f"a/{NAME}.2": TENSORS})
    assert {scalar.name for scalar in found.scalars} >= {"loss/current", "epoch_loss"}


def test_runs_in_several_folders_are_kept_apart_by_name() -> None:
    found = read_event_files({f"a/{NAME}": SIMPLE, f"b/{NAME}": SIMPLE, NAME: TENSORS})
    assert {scalar.name for scalar in found.scalars} >= {"a/lr/unet", "b/lr/unet", "learning_rate"}


def test_the_same_step_again_replaces_the_first() -> None:
    steps = tables_of(read_event_files({"1": TENSORS, "2": TENSORS}))[0]
    assert steps.values("step") == list(range(20))


def test_an_event_file_is_known_by_its_first_bytes() -> None:
    assert are_events(SIMPLE[:64])
    assert not are_events(b"step,loss\n1,0.5\n")
    assert not are_events(b"")
