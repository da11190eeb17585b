"""Before anything is rented: secrets are set, gated models can be had, and the recipe's own hooks agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.errors import DatasetInvalid, RecipeInvalid, SecretRefused, UserError
from stationmaster.recipes.reading import read_recipe
from stationmaster.recipes.registry import lint
from stationmaster.station.local.proposing.gates import check_tokens
from stationmaster.station.proposals import Terms, TrainRequest
from tests.support.jobs.recipe_jobs import MODEL, RecipeWorld, scripted
from tests.support.servers.hub_server import HUB_TOKEN, HUB_USER, HubServer

GATED = 'gated: [{repository: "{{ parameters.note }}", file: model_index.json}]\n'
SECRET = "    secrets: [HF_TOKEN]\n"


def preview(tmp_path: Path, recipe: str, *, parameters: dict[str, object] | None = None, **environ: str) -> Terms:
    with RecipeWorld(tmp_path, recipe, **environ) as world:
        request = TrainRequest(recipe="scripted@1", dataset=world.pictures, parameters=parameters or {}, name="x")
        return world.station.proposals.check(request)


def gated(tmp_path: Path, repository: str, url: str, **environ: str) -> Terms:
    environ = {"STATIONMASTER_HUB__URL": url, **environ}
    return preview(tmp_path, scripted(more=GATED), parameters={"note": repository}, **environ)


@pytest.fixture(scope="module")
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        server.add_repo("owner/open", {"model_index.json": b"{}"}, granted=frozenset({HUB_USER}))
        server.add_repo("owner/closed", {"model_index.json": b"{}"}, granted=frozenset())
        server.add_repo("owner/public", {"model_index.json": b"{}"})
        server.add_repo("owner/bare", {"README.md": b"x"}, granted=frozenset({HUB_USER}))
        yield server


def test_a_model_that_the_token_may_read_is_no_obstacle(hub: HubServer, tmp_path: Path) -> None:
    assert gated(tmp_path / "a", "owner/open", hub.url, HF_TOKEN=HUB_TOKEN).notes == ()
    assert gated(tmp_path / "b", "owner/bare", hub.url, HF_TOKEN=HUB_TOKEN).notes == (), "only that file is missing"
    assert gated(tmp_path / "c", "/models/on the machine", hub.url).notes == ()


@pytest.mark.parametrize(
    ("repository", "token", "said", "hint"),
    [
        ("owner/closed", HUB_TOKEN, "HF_TOKEN has no access to it", "accept the licence at {url}/owner/closed"),
        ("owner/open", "", "the Hub refuses it without HF_TOKEN", "set HF_READ_TOKEN; accept the licence at"),
        ("owner/open", "hf_wrong", "the Hub rejects HF_TOKEN", "create a new token and set HF_READ_TOKEN"),
        ("owner/none", HUB_TOKEN, "the Hub has no such model, or it is private", "correct the model's name"),
    ],
)
def test_a_model_that_is_refused_is_refused_before_anything_is_rented(
    hub: HubServer, tmp_path: Path, repository: str, token: str, said: str, hint: str
) -> None:
    with pytest.raises(UserError) as refused:
        gated(tmp_path, repository, hub.url, **({"HF_TOKEN": token} if token else {}))
    assert str(refused.value) == f"scripted@1 needs {repository}, but {said}"
    assert hint.format(url=hub.url) in (refused.value.hint or "")
    assert "hf_" not in f"{refused.value}{refused.value.hint}"


def test_a_hub_that_does_not_answer_is_a_note_and_no_refusal(hub: HubServer, tmp_path: Path) -> None:
    (note,) = gated(tmp_path / "a", "owner/open", "http://127.0.0.1:9", HF_TOKEN=HUB_TOKEN).notes
    assert note == "access to owner/open could not be checked: ConnectError"
    hub.refuse("HEAD /owner/open", 503)
    (note,) = gated(tmp_path / "b", "owner/open", hub.url, HF_TOKEN=HUB_TOKEN).notes
    assert note == "access to owner/open could not be checked: the Hub answers 503"


def test_a_secret_that_nobody_set_is_missed_before_anything_is_rented(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs the secret HF_TOKEN, which is not set"):
        preview(tmp_path / "a", scripted(step=SECRET))
    preview(tmp_path / "b", scripted(step=SECRET), HF_TOKEN="hf_planted")
    own = SECRET.replace("HF_TOKEN", "WANDB_API_KEY")
    with pytest.raises(UserError) as missing:
        preview(tmp_path / "c", scripted(step=own))
    assert missing.value.hint == "put WANDB_API_KEY into the setting `secrets`"
    preview(tmp_path / "d", scripted(step=own), STATIONMASTER_SECRETS='{"WANDB_API_KEY": "planted"}')


OPENS_A_MODEL = scripted("echo token=${HF_TOKEN:-none}\n" + MODEL, more=GATED, step=SECRET)


@pytest.mark.parametrize(
    ("model", "token"), [("/models/flux", ""), ("/models/flux", HUB_TOKEN), ("owner/public", "")], ids=str
)
def test_a_secret_is_neither_missed_nor_sent_where_nothing_gated_is_downloaded(
    hub: HubServer, tmp_path: Path, model: str, token: str
) -> None:
    environ = {"STATIONMASTER_HUB__URL": hub.url, **({"HF_TOKEN": token} if token else {})}
    with RecipeWorld(tmp_path, OPENS_A_MODEL, **environ) as world:
        job_id = world.submit(parameters={"note": model})
        world.work_until_ended(job_id)
        log = b"".join(chunk.data for _, chunk in world.station.logs.of_job(job_id))
        assert (world.station.jobs.view(job_id).shown, b"token=none" in log) == ("COMPLETED", True)
        assert [step.secrets for step in world.station.jobs.plan(job_id).steps] == [()]


def test_a_secret_for_a_gated_model_is_missed_also_while_the_hub_does_not_answer(
    hub: HubServer, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="needs owner/open, but the Hub refuses it without HF_TOKEN"):
        preview(tmp_path / "a", OPENS_A_MODEL, parameters={"note": "owner/open"}, STATIONMASTER_HUB__URL=hub.url)
    silent = {"STATIONMASTER_HUB__URL": "http://127.0.0.1:9"}
    with pytest.raises(UserError, match="needs the secret HF_TOKEN, which is not set"):
        preview(tmp_path / "b", OPENS_A_MODEL, parameters={"note": "owner/public"}, **silent)


def token_checked(hub: HubServer, tmp_path: Path, provider: str, **environ: str) -> tuple[str, ...]:
    settings = load_settings({"STATIONMASTER_HUB__URL": hub.url, **environ}, folder=tmp_path)
    recipe = read_recipe(scripted(step=SECRET), file="recipe.yaml")
    return check_tokens(recipe, settings, provider=provider)


def test_a_token_that_may_write_is_refused_for_a_rented_machine_when_the_job_is_submitted(
    hub: HubServer, tmp_path: Path
) -> None:
    with pytest.raises(SecretRefused, match="HF_TOKEN may write to the Hub") as refused:
        token_checked(hub, tmp_path, "vastai:work", HF_TOKEN=HUB_TOKEN)
    assert "set HF_READ_TOKEN to it" in str(refused.value.hint)
    with pytest.raises(SecretRefused, match="the Hub does not accept HF_TOKEN: it answers 401"):
        token_checked(hub, tmp_path, "vastai", HF_TOKEN="hf_wrong")
    hub.read_only_tokens.add("hf_reader")
    hub.users["hf_reader"] = HUB_USER
    assert token_checked(hub, tmp_path, "vastai", HF_TOKEN=HUB_TOKEN, HF_READ_TOKEN="hf_reader") == ()
    for own in ("ssh", "loopback"):
        assert token_checked(hub, tmp_path, own, HF_TOKEN=HUB_TOKEN) == ()


def test_a_hub_that_cannot_be_asked_about_a_token_is_a_note(hub: HubServer, tmp_path: Path) -> None:
    hub.refuse("GET /api/whoami-v2", 503)
    (note,) = token_checked(hub, tmp_path, "vastai", HF_TOKEN=HUB_TOKEN)
    assert note == "could not check whether HF_TOKEN is read-only: HTTPStatusError"


def test_several_machines_need_a_provider_that_has_them(tmp_path: Path) -> None:
    recipe = scripted(more="nodes: 2\nlauncher: torchrun\n").replace("shell: |", "argv: [python3, train.py]\n    #")
    recipe = recipe[: recipe.index("    #")]
    with pytest.raises(UserError, match="trains on 2 machines, but loopback offers 1"):
        preview(tmp_path, recipe)


def hooked(tmp_path: Path, hooks: str, **parameters: object) -> Terms:
    with RecipeWorld(tmp_path, scripted(more="hooks: hooks.py\n"), PLANTED="hf_planted") as world:
        (world.recipe_folder / "hooks.py").write_text(hooks, encoding="utf-8")
        return world.station.proposals.check(
            TrainRequest(recipe="scripted@1", dataset=world.pictures, parameters=parameters, name="x")
        )


def test_hooks_derive_parameters_from_the_dataset_and_warn(tmp_path: Path) -> None:
    hooks = """
print("not an answer")
def parameters(parameters, dataset):
    return {"steps": dataset["images"] * 100, "note": parameters["note"] + "!"}
def check(parameters, dataset):
    yield "warning: %d steps are few" % parameters["steps"]
"""
    seen = hooked(tmp_path, hooks, note="it's $(id)")
    assert dict(seen.parameters) == {"steps": 600, "note": "it's $(id)!"}
    assert "600 steps are few" in seen.notes


@pytest.mark.parametrize(
    ("hooks", "error", "said"),
    [
        ("def check(p, d): return ['no picture is square', 'b']", DatasetInvalid, "no picture is square; 1 more"),
        ("def parameters(p, d): return {'steps': 'many'}", UserError, "parameter steps of scripted@1: 'many'"),
        ("def parameters(p, d): return {'stepz': 1}", UserError, "has no parameter `stepz`"),
        ("def check(p, d): return 1 / 0", RecipeInvalid, "hooks.py: ZeroDivisionError"),
        ("import os\ndef check(p, d): os.write(os.open('x', 66), b'x')", RecipeInvalid, "OSError"),
        ("import os\ndef check(p, d): return sorted(os.environ)", DatasetInvalid, "LANG"),
        ("def check(p, d): return [b'x' * 10**10]", RecipeInvalid, "MemoryError"),
    ],
)
def test_hooks_that_object_or_fail_stop_the_request_with_one_line(
    tmp_path: Path, hooks: str, error: type[UserError], said: str
) -> None:
    with pytest.raises(error) as raised:
        hooked(tmp_path, hooks)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "planted" not in str(raised.value)


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        (None, "there is no file hooks.py beside the recipe"),
        ("def (", "cannot be read as Python"),
        ("x = 1", "defines none of check, parameters"),
    ],
)
def test_lint_names_what_is_wrong_with_hooks_without_running_them(tmp_path: Path, hooks: str | None, said: str) -> None:
    world = RecipeWorld(tmp_path, scripted(more="hooks: hooks.py\n"))
    if hooks is not None:
        (world.recipe_folder / "hooks.py").write_text(hooks, encoding="utf-8")
    (problem,) = lint(world.recipe_folder)
    assert said in problem.message
    assert (problem.field, dataclasses.is_dataclass(problem)) == ("hooks", True)


def test_hooks_never_go_to_the_machine(tmp_path: Path) -> None:
    with RecipeWorld(tmp_path, scripted("ls {{ recipe.dir }} || true; exit 1", more="hooks: hooks.py\n")) as world:
        (world.recipe_folder / "hooks.py").write_text("def check(p, d): return []", encoding="utf-8")
        job_id = world.submit()
        world.work_until_ended(job_id)
        log = b"".join(chunk.data for _, chunk in world.station.logs.of_job(job_id))
    assert b"hooks.py" not in log
