"""`offers` at a simulated Vast.ai: what is wanted of machines is a setting, and what was left out is told."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.providers.vastai.ssh_keys import ensure_pair
from stationmaster.recipes.skeleton import write_skeleton
from stationmaster.simulator.harness import simulator_thread
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.vast.simulated_vast import API_KEY, quick_settings

_WORDS = ("offers", "--provider", "vastai", "--recipe", "flux-lora@2")


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("market")
    pair = ensure_pair(folder / "keys" / "id_ed25519")
    with simulator_thread(quick_settings(folder / "simulator", backend="paper", hosts=200)) as url:
        yield {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "STATIONMASTER_HOME": str(folder / "home"),
            "VASTAI_API_KEY": API_KEY,
            "VASTAI_API_BASE_URL": f"{url}/api/v0",
            "VASTAI_SSH_KEY_PATH": str(pair.private_path),
            "STATIONMASTER_VASTAI__CALL_SPACING": "0",
        }


def offered(environ: dict[str, str], **wishes: str) -> Any:
    given = {f"STATIONMASTER_VASTAI__{name}": value for name, value in wishes.items()}
    return answer_of(*_WORDS, "--json", environ={**environ, **given})


def country(offer: dict[str, Any]) -> str:
    return str(offer["region"]).rpartition(", ")[2]


def test_preferred_regions_come_first_in_their_order_among_equal_gpus(environ: dict[str, str]) -> None:
    found = offered(environ)["offers"]
    countries = list(dict.fromkeys(country(offer) for offer in found))
    last, first = countries[0], countries[-1]
    ordered = offered(environ, PREFERRED_REGIONS=f"{first},{last}", PREFERRED_GPUS="A100,4090")["offers"]
    of_one_gpu = [country(offer) for offer in ordered if "A100" in offer["gpu"]]
    places = {first: 0, last: 1}
    ranks = [places.get(each, 2) for each in of_one_gpu]
    assert ranks == sorted(ranks)
    assert len(ordered) == len(found), "a preference leaves nothing out"


def test_what_is_blocked_is_left_out_and_told(environ: dict[str, str]) -> None:
    best = offered(environ)["offers"][0]
    found = offered(environ, BLOCKED_REGIONS=country(best), BLOCKED_MACHINES=f"{best['machine_id']},1")
    assert all(country(offer) != country(best) for offer in found["offers"])
    reasons = {group["why"]: group["count"] for group in found["left_out_by_reason"]}
    assert reasons[f"machine {best['machine_id']} is blocked"] >= 1
    assert reasons[f"{country(best)} is blocked"] >= 1
    assert sum(reasons.values()) == len(found["left_out"])


def test_floors_and_switches_narrow_what_is_offered(environ: dict[str, str]) -> None:
    everything = offered(environ, VERIFIED_ONLY="false", MIN_RELIABILITY="0")["offers"]
    plain = offered(environ)["offers"]
    assert len(plain) < len(everything)
    reliable = offered(environ, MIN_RELIABILITY="0.99")["offers"]
    assert all(offer["reliability"] >= 0.99 for offer in reliable)
    assert len(reliable) < len(plain)
    housed = offered(environ, DATACENTER_ONLY="true")
    assert "not in a data centre" in {group["why"] for group in housed["left_out_by_reason"]}


def test_the_cuda_version_that_counts_is_the_higher_of_the_recipe_s_and_the_setting_s(
    environ: dict[str, str], tmp_path: Path
) -> None:
    ids = {}
    for name, cuda in (("any", ""), ("newest", ", cuda: 13.0")):
        recipe = write_skeleton(tmp_path / name)
        recipe.write_text(
            recipe.read_text().replace("gpus: 0, vram_gib: 0, disk_gib: 5", f"gpus: 1, disk_gib: 5{cuda}")
        )
        for least in ("12.0", "13.0"):
            own = {"STATIONMASTER_RECIPES": str(tmp_path), "STATIONMASTER_VASTAI__MIN_CUDA": least}
            words = ("offers", "--provider", "vastai", "--recipe", f"{name}@1", "--json")
            ids[name, least] = {offer["id"] for offer in answer_of(*words, environ={**environ, **own})["offers"]}
    assert set() < ids["newest", "12.0"] < ids["any", "12.0"]
    assert ids["newest", "12.0"] == ids["newest", "13.0"] == ids["any", "13.0"]


def test_one_line_for_each_reason(environ: dict[str, str]) -> None:
    said = stationmaster(*_WORDS, "--max-price", "0.30", environ=environ).stdout
    lines = [line for line in said.splitlines() if line.startswith("left out: ")]
    assert len({line.partition(" × ")[2].partition(" (")[0] for line in lines}) == len(lines)
    (above,) = [line for line in lines if "above the cap" in line]
    assert re.fullmatch(r"left out: \d+ × above the cap of \$0\.300 per hour \(from \$\d+\.\d\d\)", above)


def test_where_the_price_begins_can_be_read_when_nothing_fits(environ: dict[str, str]) -> None:
    said = stationmaster(*_WORDS, "--max-price", "0.001", environ=environ).stdout.splitlines()
    assert said[0] == "no offer fits"
    above = next(line for line in said if "above the cap of $0.001 per hour (from $0." in line)
    assert above.startswith("left out: ")
    assert said[-1].startswith("what helps: ")
    assert "submit with --max-price 0." in said[-1]


def test_how_many_offers_each_requirement_excludes_is_counted_when_nothing_fits(environ: dict[str, str]) -> None:
    """The search itself excludes small GPUs, so that only a wider one can count them."""
    own = {**environ, "STATIONMASTER_VASTAI__MIN_VRAM_GB": "4000"}
    none = answer_of(*_WORDS, "--max-price", "0.001", "--json", environ=own)["no_offer"]
    assert any("less than 4000 GiB of GPU memory" in reason for reason in none["reasons"])
    assert not any("--max-price" in remedy for remedy in none["remedies"]), "a higher price alone would not help"
