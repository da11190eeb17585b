"""The trainings of the exhibition: made up, but of the shape that real ones have.

Times are seconds before the moment at which the exhibition opens, so that pages say the same words whenever that is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stationmaster.model import Outcome, Reason, State
from stationmaster.money import MicroDollars

HOUR = 3600.0
DAY = 24 * HOUR
FLUX = "flux-lora@2"
SDXL = "sdxl-lora@2"
LLM = "llm-lora@2"
PROMPTS = "[trigger], a valley at dawn\n[trigger], a stormy sky\n[trigger], a quiet night\n[trigger], autumn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    name: str
    gib: float
    cents_per_hour: int
    region: str

    @property
    def price(self) -> MicroDollars:
        return MicroDollars(self.cents_per_hour * 10_000)


RTX_4090 = Card(name="RTX 4090", gib=24.0, cents_per_hour=31, region="Sweden, SE")
RTX_3090 = Card(name="RTX 3090", gib=24.0, cents_per_hour=20, region="Poland, PL")
RTX_3060 = Card(name="RTX 3060", gib=12.0, cents_per_hour=10, region="Texas, US")
A100 = Card(name="A100 PCIE", gib=80.0, cents_per_hour=98, region="Quebec, CA")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One training. It began to train `began` seconds ago and made `done` of its `steps`."""

    id: str
    name: str
    began: float = 0.0
    asked: float = 0.0  # seconds ago, of one that has not begun to train
    recipe: str = FLUX
    card: Card = RTX_4090
    steps: int = 2000
    done: int = 2000
    pace: float = 0.7  # steps per second, pauses not counted
    state: State = State.ENDED
    outcome: Outcome | None = Outcome.COMPLETED
    reason: Reason | None = Reason.FINISHED
    explanation: str | None = None
    owner: str | None = None
    trigger: str | None = "smland"
    retry_of: str | None = None
    images: int = 24
    parameters: dict[str, Any] = field(default_factory=dict)
    loss: tuple[float, float, float] = (0.52, 0.08, 0.022)  # at first, at last, its noise
    spike_at: int | None = None
    memory: float = 0.8  # of the GPU's, at the peak
    starved: bool = False  # whether the GPU often waits for data
    sample_seconds: float = 24.0
    stuck_for: float = 0.0  # seconds without progress
    quoted_hours: float = 1.0
    places: tuple[str, ...] = ()
    registered: bool = False

    @property
    def save_every(self) -> int:
        return int(self.parameters.get("save_every", 250))

    @property
    def sample_every(self) -> int:
        return int(self.parameters.get("sample_every", 500))

    @property
    def has_pictures(self) -> bool:
        return self.recipe != LLM


EXHIBITS = (
    Exhibit(
        id="hills-v3-4c1e",
        name="hills-v3",
        began=58 * 60,
        steps=4000,
        done=2480,
        pace=0.75,
        state=State.EXECUTING,
        outcome=None,
        reason=None,
        retry_of="hills-v2-91ab",
        parameters={"steps": 4000, "rank": 32, "batch_size": 1, "sample_every": 500, "learning_rate": 1e-4},
        loss=(0.52, 0.081, 0.02),
        spike_at=1310,
        memory=0.79,
        quoted_hours=1.6,
    ),
    Exhibit(
        id="poster-style-77d0",
        name="poster-style",
        began=71 * 60,
        recipe=SDXL,
        card=RTX_3090,
        steps=3000,
        done=1180,
        pace=0.34,
        state=State.EXECUTING,
        outcome=None,
        reason=None,
        owner="ann",
        trigger="posterart",
        parameters={"steps": 3000, "batch_size": 2, "sample_every": 500},
        loss=(0.21, 0.112, 0.012),
        memory=0.68,
        stuck_for=12 * 60,
        quoted_hours=2.6,
    ),
    Exhibit(
        id="night-skies-5e20",
        name="night-skies",
        asked=4 * 60,
        state=State.TRANSFERRING_DATA,
        outcome=None,
        reason=None,
        done=0,
        trigger="nightsky",
        parameters={"steps": 2000, "rank": 16},
    ),
    Exhibit(
        id="style-test-c8f3",
        name="style-test",
        asked=26 * 60,
        card=RTX_4090,
        state=State.PROVISIONING,
        outcome=None,
        reason=None,
        done=0,
        owner="ann",
        trigger="stylx",
        parameters={"steps": 1500},
        quoted_hours=0.8,
    ),
    Exhibit(
        id="hills-v2-91ab",
        name="hills-v2",
        began=5 * HOUR,
        steps=3000,
        done=3000,
        pace=0.55,
        retry_of="hills-v1-3d7f",
        parameters={"steps": 3000, "rank": 32, "batch_size": 2, "sample_every": 250, "learning_rate": 1e-4},
        loss=(0.52, 0.092, 0.018),
        memory=0.972,
        sample_seconds=120.0,
        quoted_hours=1.7,
        places=("home", "bucket", "hub"),
        registered=True,
    ),
    Exhibit(
        id="portraits-b601",
        name="portraits",
        began=9 * HOUR,
        recipe=SDXL,
        card=RTX_3060,
        steps=2000,
        done=214,
        pace=0.21,
        outcome=Outcome.FAILED,
        reason=Reason.STEP_FAILED,
        explanation="step train failed with exit code 1: torch.OutOfMemoryError: CUDA out of memory",
        trigger="ohwx person",
        images=18,
        parameters={"steps": 2000, "batch_size": 4, "resolution": 1024},
        loss=(0.19, 0.15, 0.014),
        memory=0.995,
        quoted_hours=7.0,
        places=(),
    ),
    Exhibit(
        id="support-tone-e2a9",
        name="support-tone",
        began=1.2 * DAY,
        recipe=LLM,
        card=A100,
        steps=1000,
        done=1000,
        pace=1.3,
        owner="ann",
        trigger=None,
        parameters={"steps": 1000, "batch_size": 8, "base_model": "Qwen/Qwen2.5-1.5B", "workers": 2},
        loss=(2.4, 1.31, 0.05),
        memory=0.42,
        starved=True,
        quoted_hours=0.5,
        places=("home", "bucket"),
    ),
    Exhibit(
        id="hills-v1-3d7f",
        name="hills-v1",
        began=2.1 * DAY,
        steps=2000,
        done=2000,
        pace=0.7,
        parameters={"steps": 2000, "rank": 16, "batch_size": 1, "sample_every": 500, "learning_rate": 4e-4},
        loss=(0.52, 0.127, 0.03),
        memory=0.77,
        quoted_hours=1.1,
        places=("home", "hub"),
    ),
    Exhibit(
        id="poster-draft-1f42",
        name="poster-draft",
        began=3.3 * DAY,
        recipe=SDXL,
        card=RTX_3090,
        steps=3000,
        done=1620,
        pace=0.5,
        outcome=Outcome.INCOMPLETE,
        reason=Reason.STOPPED_BY_USER,
        owner="ann",
        trigger="posterart",
        parameters={"steps": 3000, "batch_size": 1, "sample_every": 500},
        loss=(0.21, 0.124, 0.014),
        memory=0.56,
        quoted_hours=1.8,
        places=("home",),
    ),
    Exhibit(
        id="first-light-08cd",
        name="first-light",
        began=4.6 * DAY,
        steps=1500,
        done=1500,
        pace=0.7,
        trigger="firstlight",
        parameters={"steps": 1500, "rank": 16, "sample_every": 500},
        loss=(0.5, 0.11, 0.02),
        memory=0.78,
        quoted_hours=0.7,
        places=("home", "bucket"),
    ),
)
