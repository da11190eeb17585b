"""Results over HTTP: downloads that go on where they broke off, small pictures, charts that are free to ask again."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from stationmaster.delivery.verified_write import partial_path
from stationmaster.errors import NotFound, TransferFailed
from stationmaster.model import Place, TrainedModel
from stationmaster.station.http.station import HttpStation
from tests.support.jobs.served_files import JOB, FilesWorld, address

MODEL = bytes(range(256)) * 5000


def picture(width: int = 640, height: int = 480) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (width, height), (10, 90, 200)).save(made, "PNG")
    return made.getvalue()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilesWorld]:
    with FilesWorld(tmp_path_factory.mktemp("files")) as opened:
        row = opened.put("output/model.safetensors", MODEL, kind="checkpoint", step=20)
        opened.put("output/sample.png", picture())
        for slug, owner in (("anns-1", "ann"), ("bobs-1", "bob"), ("mine-1", None)):
            opened.store.models.put(model_at(slug, owner, str(row.location)))
        yield opened


def model_at(slug: str, owner: str | None, location: str) -> TrainedModel:
    return TrainedModel(
        slug=slug,
        job_id=f"job-of-{slug}",
        name="cats",
        recipe="tiny-lora@1",
        file_name="cats.safetensors",
        sha256=hashlib.sha256(MODEL).hexdigest(),
        size=len(MODEL),
        complete=True,
        created_at=1000.0,
        owner=owner,
        details={"loss": float("nan")},
        places=(Place(kind="home", address=location),),
    )


def test_the_list_tells_what_can_be_downloaded_and_shown(world: FilesWorld) -> None:
    world.put("output/away.safetensors", b"x", kind="checkpoint", location="hf://me/cats/away.safetensors")
    with world.client() as client:
        items = {each["path"]: each for each in client.get(f"/api/jobs/{JOB}/artifacts").json()["items"]}
        away = client.get(address("output/away.safetensors"))
    assert items["output/model.safetensors"] == {
        "attempt": 1,
        "path": "output/model.safetensors",
        "kind": "checkpoint",
        "size": len(MODEL),
        "step": 20,
        "sha256": hashlib.sha256(MODEL).hexdigest(),
        "verified": True,
        "is_available": True,
        "is_image": False,
        "prompt": None,
        "prompt_number": None,
        "loss": None,
    }
    assert items["output/sample.png"]["is_image"]
    assert not items["output/away.safetensors"]["is_available"]
    assert (away.status_code, away.json()["hint"]) == (404, "it is at hf://me/cats/away.safetensors")


def test_a_download_is_whole_conditional_or_one_range(world: FilesWorld) -> None:
    path, etag = address("output/model.safetensors"), f'"{hashlib.sha256(MODEL).hexdigest()}"'
    with world.client() as client:
        whole = client.get(path)
        assert (whole.status_code, whole.content, whole.headers["etag"]) == (200, MODEL, etag)
        part = client.get(path, headers={"Range": "bytes=100-199", "If-Range": etag})
        assert (part.status_code, part.content) == (206, MODEL[100:200])
        assert part.headers["content-range"] == f"bytes 100-199/{len(MODEL)}"
        other = client.get(path, headers={"Range": "bytes=100-199", "If-Range": '"another"'})
        assert (other.status_code, len(other.content)) == (200, len(MODEL))
        same = client.get(path, headers={"If-None-Match": etag})
        assert (same.status_code, same.content) == (304, b"")
        head = client.head(path)
        assert (head.status_code, head.headers["content-length"], head.content) == (200, str(len(MODEL)), b"")


def test_each_attempt_has_its_own_file_and_the_last_one_is_the_default(world: FilesWorld) -> None:
    for attempt in (1, 2):
        world.put("output/again.bin", b"attempt %d" % attempt, attempt=attempt)
    with world.client() as client:
        assert client.get(address("output/again.bin")).content == b"attempt 2"
        assert client.get(address("output/again.bin"), params={"attempt": 1}).content == b"attempt 1"
        assert client.get(address("output/again.bin"), params={"attempt": 3}).status_code == 404
    file = world.station.artifacts.file(JOB, "output/again.bin", attempt=1)
    assert (file.whole(), b"".join(file.read(2, 5))) == (b"attempt 1", b"tem")


def test_an_interrupted_pull_goes_on_behind_what_is_there(world: FilesWorld, tmp_path: Path) -> None:
    goal = tmp_path / "attempt-1" / "output" / "model.safetensors"
    world.put("output/again.bin", b"attempt 2", attempt=2)
    goal.parent.mkdir(parents=True)
    part = partial_path(goal, hashlib.sha256(MODEL).hexdigest())
    part.write_bytes(MODEL[:1000])
    assert goal in world.station.artifacts.pull(JOB, tmp_path)
    assert goal.read_bytes() == MODEL
    assert not part.exists()
    part.write_bytes(b"damaged" * 10)
    goal.unlink()
    with pytest.raises(TransferFailed, match="changed: it"):
        world.station.artifacts.pull(JOB, tmp_path)
    assert (goal.exists(), part.exists()) == (False, False)


def test_a_thumbnail_is_made_once_and_goes_with_its_job(world: FilesWorld) -> None:
    row = world.put("output/sample.png", picture())
    path = address(row.path, below="thumbnails")
    with world.client() as client:
        small = client.get(path, params={"width": 64})
        with Image.open(io.BytesIO(small.content)) as shown:
            assert (shown.format, shown.size) == ("WEBP", (64, 48))
        assert small.headers["cache-control"] == "private, no-cache"
        kept = world.settings.home / "thumbnails" / JOB / f"{row.sha256}-64.webp"
        assert kept.read_bytes() == small.content
        lasting = client.get(path, params={"width": 64, "sha256": str(row.sha256)})
        assert "immutable" in lasting.headers["cache-control"]
        assert client.get(path, params={"sha256": "0" * 64}).status_code == 404
        again = client.get(path, params={"width": 64}, headers={"If-None-Match": small.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        for width in (8, 2000):
            assert client.get(path, params={"width": width}).status_code == 422
    assert world.station.artifacts.thumbnail(JOB, row.path, width=64).data == small.content


def test_what_another_owns_is_not_found_by_any_of_its_names(world: FilesWorld) -> None:
    places = [
        f"/api/jobs/{JOB}/artifacts",
        address("output/model.safetensors"),
        address("output/sample.png", below="thumbnails"),
        f"/api/jobs/{JOB}/metrics",
        f"/api/jobs/{JOB}/analysis",
        "/api/models/anns-1",
        "/api/models/anns-1/file",
        "/api/models/job-of-anns-1",
    ]
    with world.client("bob") as bob, world.client("ann") as ann:
        for place in places:
            assert bob.get(place).status_code == 404, place
        assert ann.get(address("output/model.safetensors")).content == MODEL
        assert [each["slug"] for each in bob.get("/api/models").json()["items"]] == ["bobs-1"]
        assert bob.get("/api/models/cats").json()["slug"] == "bobs-1", "a name that others use too is theirs"
        assert bob.get("/api/models", params={"owner": "ann"}).json()["items"] == []
        assert bob.get("/api/instances/vastai/1/metrics").status_code == 403
    station = HttpStation(world.urls[0], world.tokens["bob"])
    try:
        assert station.models.find("cats").slug == "bobs-1"
        with pytest.raises(NotFound, match="no model anns-1"):
            station.models.find("anns-1")
    finally:
        station.close()


def test_models_come_by_pages_and_their_weights_verified(world: FilesWorld, tmp_path: Path) -> None:
    with world.client() as client:
        first = client.get("/api/models", params={"limit": 2}).json()
        assert [each["slug"] for each in first["items"]] == ["anns-1", "bobs-1"]
        rest = client.get("/api/models", params={"limit": 2, "after": first["next"]}).json()
        assert ([each["slug"] for each in rest["items"]], rest["next"]) == (["mine-1"], None)
        assert client.get("/api/models", params={"after": "not a cursor"}).status_code == 400
        assert client.get("/api/models/mine-1").json()["details"] == {"loss": "NaN"}
        part = client.get("/api/models/mine-1/file", headers={"Range": "bytes=-4"})
        assert (part.status_code, part.content) == (206, MODEL[-4:])
    models = world.station.models
    assert [model.slug for model in models.listed(limit=1, after=(1000.0, "anns-1"))] == ["bobs-1"]
    assert models.download("mine-1", tmp_path / "new").read_bytes() == MODEL
    world.store.models.put(model_at("gone-1", None, str(tmp_path / "nowhere")))
    with pytest.raises(NotFound, match=r"cats\.safetensors is not on this computer any more"):
        models.download("gone-1", tmp_path)
    world.store.models.remove("gone-1")


CSV = b"step,loss,score\n" + b"".join(b"%d,%f,%d\n" % (step, 1 / step, step) for step in range(1, 301))


def test_a_file_is_imported_drawn_asked_again_for_free_and_exported(world: FilesWorld, tmp_path: Path) -> None:
    base = f"/api/jobs/{JOB}/metrics"
    with world.client("ann") as client:
        before = client.get(base)
        stored = client.post(f"{base}/import", params={"name": "run.csv"}, content=CSV)
        assert (stored.status_code, stored.json()["rows"]) == (200, 600)
        assert client.get(base).headers["etag"] != before.headers["etag"]
        chart = client.get(f"{base}/series", params={"name": ["loss", "score"], "columns": 10})
        for series in chart.json()["series"]:
            assert (series["count"], series["exact"], len(series["x"])) == (300, False, len(series["y"]))
            assert len(series["x"]) <= 20
        assert client.get(f"{base}/series", headers={"If-None-Match": chart.headers["etag"]}).status_code == 304
        near = client.get(f"{base}/series", params={"name": "loss", "start": 10, "end": 12}).json()["series"][0]
        assert (near["x"], near["y"]) == ([10, 11, 12], [0.1, 0.090909, 0.083333])
        numbers = client.get(f"{base}/summary").json()
        assert (numbers["first_step"], numbers["last_step"]) == (1, 300)
        page = client.get(f"{base}/rows/StepMetric", params={"limit": 200}).json()
        rest = client.get(f"{base}/rows/StepMetric", params={"limit": 200, "after": page["next"]}).json()
        assert (page["columns"]["step"] + rest["columns"]["step"], rest["next"]) == ([*range(1, 301)], None)
        for format in ("csv", "json", "db", "parquet"):
            file = client.get(f"{base}/export", params={"format": format})
            assert (file.status_code, file.headers["content-type"]) == (200, "application/octet-stream")
            assert int(file.headers["stationmaster-rows"]) >= 300
            assert file.headers["content-disposition"].startswith(f'attachment; filename="{JOB}.{format}"')
    table = world.station.metrics.rows(JOB, "StepMetric")
    assert table == world.local.metrics.rows(JOB, "StepMetric")
    assert world.station.metrics.summary(JOB) == world.local.metrics.summary(JOB)
    assert world.station.metrics.series(JOB) == world.local.metrics.series(JOB)
    assert world.station.metrics.version(JOB) == world.local.metrics.version(JOB)
    world.station.metrics.export(JOB, tmp_path / "run.csv")
    world.local.metrics.export(JOB, tmp_path / "local.csv")
    assert (tmp_path / "run.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()
    with pytest.raises(NotFound):
        world.station.metrics.export(JOB, tmp_path / "no.csv", table="GpuSample")
    assert {path.name for path in tmp_path.iterdir()} == {"run.csv", "local.csv"}, "no half a file is left"


def test_a_second_import_is_seen_at_once_though_it_has_as_many_values(world: FilesWorld, tmp_path: Path) -> None:
    seen = []
    for loss in (b"0.5", b"0.7", b"0.9"):
        (tmp_path / "run.csv").write_bytes(b"step,loss\n1," + loss + b"\n")
        world.local.metrics.import_files(JOB, tmp_path / "run.csv")
        (drawn,) = world.station.metrics.series(JOB, ["loss"])
        seen.append((drawn.points.y, world.station.metrics.version(JOB)))
        assert world.station.metrics.summary(JOB).series[0].last == float(loss)
    assert [values for values, _ in seen] == [[0.5], [0.7], [0.9]]
    assert len({version for _, version in seen}) == 3


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ({"start": 5, "end": 1}, 400),
        ({"start": "nan"}, 422),
        ({"end": "1e400"}, 422),
        ({"columns": 0}, 422),
        ({"columns": 5001}, 422),
        ({"axis": "hours"}, 422),
        ({"name": "no such series"}, 404),
        ({"name": "a\0b"}, 404),
    ],
)
def test_a_question_about_series_that_makes_no_sense_is_refused(
    world: FilesWorld, parameters: dict[str, str | int], status: int
) -> None:
    with world.client() as client:
        answer = client.get(f"/api/jobs/{JOB}/metrics/series", params=parameters)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


@pytest.mark.parametrize("name", ["../run.csv", "/etc/passwd", "a\0b.csv", "..", "x" * 201, "a\\b", ""])
def test_an_imported_file_s_name_is_a_name_and_no_path(world: FilesWorld, name: str) -> None:
    with world.client() as client:
        answer = client.post(f"/api/jobs/{JOB}/metrics/import", params={"name": name}, content=CSV)
    assert answer.status_code in (400, 422)


def test_what_holds_no_series_is_refused_by_the_name_that_its_sender_gave(world: FilesWorld) -> None:
    with world.client() as client:
        answer = client.post(f"/api/jobs/{JOB}/metrics/import", params={"name": "notes.txt"}, content=b"hello")
        packed = client.post(
            f"/api/jobs/{JOB}/metrics/import", params={"name": "folder", "folder": True}, content=b"not a tar"
        )
    assert (answer.status_code, answer.json()["detail"]) == (400, "notes.txt is none of the files that hold series")
    assert packed.status_code == 400
    assert "/tmp" not in packed.text
