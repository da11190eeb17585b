"""The official client believes the simulator: what it sends is understood, what it prints is right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.vast.simulated_vast import Customer
from tests.support.waiting import until

ONSTART = 'echo "hello from onstart, $GREETING"'


@pytest.fixture(scope="module")
def key_pair(vastai: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key pair whose public half is on the account."""
    path = tmp_path_factory.mktemp("keys") / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", str(path)], check=True)
    said = vastai.says("create", "ssh-key", path.with_suffix(".pub").read_text().strip())
    assert "ssh-key created {'success': True" in said
    return path


@pytest.fixture(scope="module")
def rented(vastai: Any, key_pair: Path) -> int:
    """An instance made by the official client, running."""
    offers = vastai.raw("search", "offers", "num_gpus=1 reliability>0.99 direct_port_count>=1", "-o", "dph")
    arguments = ["--image", "pytorch/pytorch:2.4", "--disk", "40", "--ssh", "--direct", "--label", "job-a"]
    more = ["--env", "-e GREETING=world -p 8080:8080", "--onstart-cmd", ONSTART]
    answer = vastai.raw("create", "instance", str(offers[0]["id"]), *arguments, *more)
    assert answer["success"] is True
    assert len(answer["instance_api_key"]) == 64
    until(lambda: vastai.raw("show", "instance", str(answer["new_contract"]))["actual_status"] == "running")
    return int(answer["new_contract"])


def test_search_applies_filters_and_order_sent_as_text(vastai: Any) -> None:
    found = vastai.raw(
        "search", "offers", "gpu_name=RTX_4090 num_gpus>=2 gpu_ram>=20 geolocation in [US,CA]", "-o", "dph-"
    )
    everything = vastai.raw("search", "offers", "gpu_name=RTX_4090", "-o", "dph-")
    assert 0 < len(found) < len(everything)
    assert {offer["gpu_name"] for offer in found} == {"RTX 4090"}
    assert all(offer["num_gpus"] >= 2 and offer["geolocation"][-2:] in ("US", "CA") for offer in found)
    prices = [offer["dph_total"] for offer in everything]
    assert prices == sorted(prices, reverse=True)


def test_search_prints_a_table(vastai: Any) -> None:
    printed = vastai.says("search", "offers", "gpu_name=H100_SXM num_gpus=1")
    assert "$/hr" in printed
    assert "H100_SXM" in printed


def test_an_instance_is_shown_as_it_was_asked_for(vastai: Any, rented: int) -> None:
    shown = vastai.raw("show", "instance", str(rented))
    assert shown["label"] == "job-a"
    assert shown["image_uuid"] == "pytorch/pytorch:2.4"
    assert shown["image_runtype"] == "ssh_direc ssh_proxy"
    assert shown["extra_env"] == {"GREETING": "world", "-p 8080:8080": "1"}
    assert shown["disk_space"] == 40.0
    assert shown["intended_status"] == shown["cur_state"] == shown["next_state"] == "running"
    assert shown["status_msg"].startswith("success, running pytorch/pytorch_2.4")


def test_the_list_holds_it_and_label_and_status_filter_it(vastai: Any, rented: int) -> None:
    assert [row["id"] for row in vastai.raw("show", "instances")] == [rented]
    assert [row["id"] for row in vastai.raw("show", "instances", "--label", "job-a", "--status", "running")] == [rented]
    assert vastai.raw("show", "instances", "--label", "job-z") == []
    assert str(rented) in vastai.says("show", "instances", "-q")


def test_ssh_url_leads_to_a_login_on_the_machine(vastai: Any, rented: int, key_pair: Path) -> None:
    printed = vastai.says("ssh-url", str(rented)).strip()
    assert printed.startswith("ssh://root@127.0.0.1:")
    port = printed.rsplit(":", 1)[1]
    options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]
    command = ["ssh", "-F", "none", "-i", str(key_pair), *options, "-p", port, "root@127.0.0.1", "echo in; exit 7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert (done.returncode, done.stdout) == (7, "in\n")


def test_logs_are_fetched_from_the_result_url(vastai: Any, rented: int) -> None:
    assert "hello from onstart, world" in vastai.says("logs", str(rented), "--tail", "50")


def test_a_label_is_changed(vastai: Any, rented: int) -> None:
    assert vastai.says("label", "instance", str(rented), "job-b").strip() == f"label for {rented} set to job-b."
    assert vastai.raw("show", "instance", str(rented))["label"] == "job-b"
    vastai.says("label", "instance", str(rented), "job-a")


def test_keys_are_shown_attached_and_detached(vastai: Any, rented: int, key_pair: Path) -> None:
    text = key_pair.with_suffix(".pub").read_text().strip()
    shown = vastai.raw("show", "ssh-keys")
    assert [key["key"] for key in shown] == [text]
    attached = vastai.says("attach", "ssh", str(rented), text)
    assert "'success': True" in attached


def test_a_stopped_instance_reads_exited_and_starts_again(vastai: Any, rented: int) -> None:
    assert vastai.says("stop", "instance", str(rented)).strip() == f"stopping instance {rented}."
    stopped = vastai.raw("show", "instance", str(rented))
    assert (stopped["actual_status"], stopped["intended_status"]) == ("exited", "stopped")
    assert stopped["instance"]["gpuCostPerHour"] == 0
    assert stopped["instance"]["diskHour"] > 0
    assert vastai.says("start", "instance", str(rented)).strip() == f"starting instance {rented}."
    until(lambda: vastai.raw("show", "instance", str(rented))["actual_status"] == "running")


def test_charges_and_credit_are_shown(vastai: Any, rented: int) -> None:
    results = vastai.raw("show", "invoices-v1", "--charges")["results"]
    assert [row["source"] for row in results] == [f"instance-{rented}"]
    assert vastai.raw("show", "user")["credit"] < 100


def test_a_wrong_key_is_told_so(vastai: Any, rented: int) -> None:
    done = vastai.run("show", "instances", "--raw", key="nobody's key")
    assert json.loads(done.stderr) == {"error": True, "status_code": 401, "msg": "Invalid user key"}


def test_an_offer_that_was_taken_is_refused(vastai: Any, rented: int, customer: Customer) -> None:
    taken = customer.read(rented)
    assert taken is not None
    done = vastai.run("create", "instance", str(taken["machine_id"] * 1000), "--image", "x", "--raw")
    said = json.loads(done.stderr)
    assert said["status_code"] == 410
    assert "no_such_ask" in said["msg"]


def test_the_sdk_reads_the_same_machine(vastai: Any, rented: int) -> None:
    script = (
        "import json, sys; from vastai import VastAI; client = VastAI(api_key=sys.argv[2], server_url=sys.argv[1]);"
        "print(json.dumps({'ids': [row['id'] for row in client.show_instances()],"
        f"'one': client.show_instance(id={rented})['label'],"
        "'offers': len(client.search_offers(query='num_gpus=1', limit=3))}))"
    )
    assert vastai.python(script) == {"ids": [rented], "one": "job-a", "offers": 3}


def test_destroyed_is_gone_from_every_answer(vastai: Any, rented: int, customer: Customer) -> None:
    assert vastai.says("destroy", "instance", str(rented), "-y").strip() == f"destroying instance {rented}."
    assert vastai.says("show", "instances", "--raw").strip() == "[]"
    missing = vastai.run("show", "instance", str(rented))
    assert "not found or no longer exists" in missing.stdout + missing.stderr
    assert customer.truth(rented)["processes"] == []
