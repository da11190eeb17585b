"""A customer of the simulator for tests: plain HTTP, no code of the product's own client."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import httpx

from stationmaster.simulator.cloud import Pace
from stationmaster.simulator.server import SimulatorSettings
from tests.support.waiting import until

T = TypeVar("T")
API_KEY = "first-account-key"
_STRIKE_SECONDS = 3600.0  # by the simulator's clock
QUICK = Pace(created_seconds=0.0, loading_seconds=0.0, restart_seconds=0.0, ssh_seconds=0.0, log_seconds=0.0)


def quick_settings(home: Path, **changes: Any) -> SimulatorSettings:
    """No waiting, and a market that stays as it is, whatever the time of day."""
    values: dict[str, Any] = {"home": home, "api_key": API_KEY, "pace": QUICK}
    values |= {"rate_limit_scale": 0.0, "market_period_seconds": 0.0, **changes}
    return SimulatorSettings(**values)


class Customer:
    """Speaks to the API with one key."""

    def __init__(self, url: str, key: str = API_KEY) -> None:
        self.url = url
        self.key = key
        self.http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=150,
            verify=False,
            # A server closes a connection that was idle for some seconds. A request sent on it in that moment
            # fails, so each request here opens its own.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def close(self) -> None:
        self.http.close()

    def offers(self, **filters: Any) -> list[dict[str, Any]]:
        body = {"order": [["dph_total", "asc"]], **filters}
        return list(self.http.post("/api/v0/bundles/", json=body).json()["offers"])

    def create(self, offer_id: int | None = None, **fields: Any) -> httpx.Response:
        chosen = offer_id if offer_id is not None else self.offers()[0]["id"]
        body = {"client_id": "me", "image": "pytorch/pytorch:2.4", "disk": 10.0, "runtype": "ssh_direc ssh_proxy"}
        return self.http.put(f"/api/v0/asks/{chosen}/", json=body | fields)

    def rent(self, offer_id: int | None = None, **fields: Any) -> int:
        """A new instance's id."""
        answer = self.create(offer_id, **fields)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["new_contract"])

    def rent_running(self, **fields: Any) -> dict[str, Any]:
        """An instance that runs, as the single read shows it."""
        return self.wait_for(self.rent(**fields), "running")

    def read(self, instance_id: int) -> dict[str, Any] | None:
        shown: dict[str, Any] | None = self.http.get(f"/api/v0/instances/{instance_id}/").json()["instances"]
        return shown

    def listing(self, **query: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.http.get("/api/v1/instances/", params=query).json()
        return answer

    def listed(self) -> set[int]:
        return {int(instance["id"]) for instance in self.listing()["instances"]}

    def put(self, instance_id: int, **body: Any) -> httpx.Response:
        return self.http.put(f"/api/v0/instances/{instance_id}/", json=body)

    def destroy(self, instance_id: int) -> httpx.Response:
        return self.http.request("DELETE", f"/api/v0/instances/{instance_id}/", json={})

    def log(self, instance_id: int) -> str:
        """The container's log, by way of its result URL."""
        asked = self.http.put(f"/api/v0/instances/request_logs/{instance_id}/", json={}).json()
        return httpx.get(asked["result_url"], verify=False).text

    def credit(self) -> float:
        return float(self.http.get("/api/v0/users/current").json()["credit"])

    def charges(self) -> list[dict[str, Any]]:
        filters = '{"day": {"gte": 0, "lte": 99999999999}}'
        return list(self.http.get("/api/v0/charges/", params={"select_filters": filters}).json()["results"])

    def arm(self, kind: str, **fields: Any) -> None:
        answer = self.http.post("/simulator/faults", json={"kind": kind, **fields})
        assert answer.status_code == 200, answer.text

    def strike(self, kind: str, instance_id: int, **fields: Any) -> None:
        """Let a fault strike a machine now; it lasts until `end_strikes`, which nothing but a test decides."""
        before = len(self.struck(kind))
        self.arm(kind, instance_id=instance_id, seconds=_STRIKE_SECONDS, **fields)
        until(lambda: len(self.struck(kind)) > before, f"the fault {kind}")

    def end_strikes(self) -> None:
        self.advance(_STRIKE_SECONDS)

    def struck(self, kind: str) -> list[dict[str, Any]]:
        struck = self.http.get("/simulator/faults").json()["struck"]
        return [strike for strike in struck if strike["kind"] == kind]

    def advance(self, seconds: float) -> None:
        self.http.post("/simulator/clock", json={"advance_seconds": seconds})

    def truth(self, instance_id: int) -> dict[str, Any]:
        state = self.http.get("/simulator/state").json()
        return next(instance for instance in state["instances"] if instance["id"] == instance_id)

    def wait_for(self, instance_id: int, status: str) -> dict[str, Any]:
        """The instance once it shows this status."""

        def shown() -> dict[str, Any] | None:
            instance = self.read(instance_id)
            return instance if instance and instance["actual_status"] == status else None

        return until(shown, f"{status} of instance {instance_id}")
