"""Earlier runs of a recipe on a GPU correct its own estimate; offers are compared by hours on the same card."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.estimate import GPU_FACTORS, Estimate, estimate, scaling
from stationmaster.model import FinishedRun, Offer, Quote, Requirements
from stationmaster.money import from_dollars
from stationmaster.providers.fake import FakeProvider
from stationmaster.recipes.parameters import resolve
from stationmaster.station.local.proposing.quoting import Work, quote_work
from tests.support.jobs.recipe_texts import small_recipe

ON_A_4090 = ("fixed: 1m", "fixed: 1m, seconds_per_image: 0.5, reference_gpu: RTX 4090, spread: 0.2")
RECIPE = small_recipe(ON_A_4090)
STEPS = resolve(RECIPE, {"steps": 20})
MODEL_SECONDS = 60 + 5 + 40  # fixed, ten images, twenty steps
DATASET_BYTES = 1024**3
RATE = from_dollars("0.36")


def run(ratio: float, *, gpu: str | None = "RTX 4090") -> FinishedRun:
    """A run that took so much of what the model says of it."""
    return FinishedRun(parameters=STEPS, images=10, gpu=gpu, seconds=MODEL_SECONDS * ratio)


def estimated(*past: FinishedRun, gpu: str = "RTX 4090", start_seconds: float = 0.0) -> Estimate:
    return estimate(
        RECIPE, STEPS, images=10, gpu=gpu, rate_per_hour=RATE, start_seconds=start_seconds, past=past
    )  # fmt: skip


def test_three_runs_on_the_same_gpu_correct_the_hours_by_their_median() -> None:
    result = estimated(run(1.4), run(1.5), run(3.0))
    assert result.past_runs == 3
    assert result.expected_hours * 3600 == pytest.approx(MODEL_SECONDS * 1.5)
    assert result.low_hours * 3600 == pytest.approx(MODEL_SECONDS * 1.5 * 0.9)
    assert result.high_hours * 3600 == pytest.approx(MODEL_SECONDS * 3.0)
    assert "3 earlier runs: 1.50 times" in result.notes[0]


def test_the_provider_s_own_time_is_not_corrected() -> None:
    result = estimated(run(2.0), run(2.0), run(2.0), start_seconds=180.0)
    assert result.expected_hours * 3600 == pytest.approx(180 + MODEL_SECONDS * 2)


def test_too_few_runs_or_runs_on_another_gpu_change_nothing() -> None:
    plain = estimated()
    assert estimated(run(2.0), run(2.0)) == plain
    assert estimated(*[run(2.0, gpu="RTX 3090")] * 5) == plain


def test_runs_of_quite_another_length_change_nothing() -> None:
    """A short trial spends most of its time on loading, so its ratio is not that of a long training."""
    long = {"steps": 100_000}
    short_runs = [run(0.5)] * 3
    plain = estimate(RECIPE, long, images=10, gpu="RTX 4090", rate_per_hour=RATE)
    assert estimate(RECIPE, long, images=10, gpu="RTX 4090", rate_per_hour=RATE, past=short_runs) == plain


def test_a_run_whose_parameters_the_recipe_does_not_know_is_left_out() -> None:
    strange = FinishedRun(parameters={}, images=10, gpu="RTX 4090", seconds=1.0)
    assert estimated(run(2.0), run(2.0), strange).past_runs == 0


@given(st.lists(st.floats(min_value=1e-6, max_value=1e6), min_size=3, max_size=20))
def test_low_is_never_above_expected_nor_expected_above_high(ratios: list[float]) -> None:
    result = estimated(*(run(ratio) for ratio in ratios))
    assert 0 < result.low_hours <= result.expected_hours <= result.high_hours
    assert result.low_cost <= result.expected_cost <= result.high_cost


def test_hours_on_the_reference_card_and_those_that_no_card_changes() -> None:
    hours = scaling(RECIPE, STEPS, images=10, start_seconds=180.0)
    assert hours.on_reference * 3600 == pytest.approx(180 + MODEL_SECONDS)
    assert hours.fixed * 3600 == pytest.approx(180 + 65)


def test_work_that_no_gpu_makes_shorter_is_fixed_altogether() -> None:
    hours = scaling(small_recipe(), resolve(small_recipe(), {}), images=3)
    assert hours.fixed == hours.on_reference > 0


def test_the_high_figure_allows_for_a_machine_that_is_slow_to_come(tmp_path: Path) -> None:
    quote = quoted(Market(), tmp_path)
    slow_start = 600 + DATASET_BYTES / 1e6
    assert quote.hours_high * 3600 > slow_start + 65 + 40 * GPU_FACTORS["RTX 3090"]
    assert quote.hours_expected * 3600 < slow_start


class Market(FakeProvider):
    """One slow card, and a note of what was looked for."""

    asked: Requirements | None = None

    async def offers(self, want: Requirements) -> list[Offer]:
        self.asked = want
        return [Offer(id="1", provider="fake", price_per_hour=RATE, gpu="RTX 3090", gpus=1)]


def quoted(market: Market, home: Path) -> Quote:
    work = Work(recipe=RECIPE, parameters=STEPS, images=10, dataset_bytes=DATASET_BYTES)
    return quote_work(work, market, past_runs=lambda _recipe: (), home=home).quote


def test_offers_are_asked_for_with_hours_on_the_reference_card_and_quoted_on_their_own(tmp_path: Path) -> None:
    market = Market()
    quote = quoted(market, tmp_path)
    assert market.asked is not None
    beside = 180 + DATASET_BYTES / 4e6  # the machine's boot and release, and the dataset's way
    assert market.asked.hours * 3600 == pytest.approx(beside + MODEL_SECONDS)
    assert quote.gpu == "RTX 3090"
    assert quote.hours_expected * 3600 == pytest.approx(beside + 65 + 40 * GPU_FACTORS["RTX 3090"])
    assert quote.reference_hours == market.asked.hours, "a later look at the market compares by the same"


def test_disk_and_traffic_are_part_of_what_is_asked_for(tmp_path: Path) -> None:
    market = Market()
    quote = quoted(market, tmp_path)
    assert market.asked is not None
    assert quote.disk_gib == market.asked.disk_gib == RECIPE.needs.disk_gib
    assert quote.traffic_gib == market.asked.traffic_gib == 1 + RECIPE.needs.disk_gib / 2
