"""Each kind of event as one English sentence, for people. Programs read the kind and the payload. Pure.

Old homes hold older payloads, and a machine may put anything into its texts: every key may be missing or hold another
type, and a sentence is always one line without control characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from stationmaster.durations import format_duration
from stationmaster.model import Desired, Outcome, Reason, Registering, Request, State
from stationmaster.printable import words_of

_VOWEL_SOUNDS = frozenset("AEFHILMNORSX")  # letters whose names begin with a vowel: an RTX, an H100
_SHORT_HASH = 12


class _Payload:
    """A payload whose keys are read without trust in their presence or type."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def text(self, key: str) -> str:
        """The value as one line; empty if it is missing or null."""
        value = self._values.get(key)
        return "" if value is None else words_of(str(value))

    def texts(self, key: str) -> list[str]:
        value = self._values.get(key)
        values = value if isinstance(value, list | tuple) else [] if value is None else [value]
        return [line for each in values if each is not None and (line := words_of(str(each)))]

    def number(self, key: str) -> float | None:
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None

    def is_true(self, key: str) -> bool:
        return self._values.get(key) is True

    def code(self, key: str) -> str:
        """A code such as STOPPED_BY_USER in words: stopped by user."""
        return self.text(key).replace("_", " ").lower()

    def progress(self, step: str = "step", total: str = "total_steps") -> str:
        """`step 100/400`; empty while the step is unknown."""
        done, whole = self.number(step), self.number(total)
        if done is None:
            return ""
        return f"step {done:.0f}" if whole is None else f"step {done:.0f}/{whole:.0f}"


_Sentence = Callable[[_Payload], str]


def sentence(kind: str, payload: Mapping[str, Any]) -> str:
    """What happened, in one sentence.

    >>> sentence("step", {"step": "train", "state": "failed", "try": 2, "tries": 2, "exit_code": 1})
    'Step train failed with exit code 1 on try 2 of 2.'
    >>> sentence("a_kind_of_newer_code", {"step": 3, "files": ["a", "b"]})
    'A kind of newer code: step 3, files a and b.'
    """
    write = SENTENCES.get(kind)
    return words_of(_unknown(kind, payload) if write is None else write(_Payload(payload)))


def _unknown(kind: str, payload: Mapping[str, Any]) -> str:
    read = _Payload(payload)
    facts = [f"{_in_words(key)} {_listed(read.texts(key))}" for key in payload if read.texts(key)]
    return _with_detail(_capital(_in_words(kind)) or "An event without a name", ", ".join(facts))


def _problem(lead: str) -> _Sentence:
    return lambda payload: _with_detail(lead, payload.text("problem"))


def _plain(text: str) -> _Sentence:
    return lambda _payload: text


def _submitted(payload: _Payload) -> str:
    what = " ".join(part for part in ("Submitted", payload.text("name")) if part)
    where = f" on {payload.text('provider')}" if payload.text("provider") else ""
    submitted = _with_detail(what, f"{payload.text('recipe')}{where}".strip())
    changes = payload.texts("changes")
    return f"{submitted} Changed after job {payload.text('retry_of')}: {', '.join(changes)}." if changes else submitted


_DESIRED = {
    Desired.RUN.value: "Run requested.",
    Desired.STOP.value: "Stop requested; the best checkpoint is kept.",
    Desired.CANCEL.value: "Cancel requested; the machine is released at once.",
    Desired.CANCEL_KEEP.value: "Cancel requested; the best checkpoint is fetched first.",
}


def _desired(payload: _Payload) -> str:
    wanted = payload.text("desired")
    return _DESIRED.get(wanted) or _with_detail("Requested", wanted)


def _asked(payload: _Payload) -> str:
    what = {Request.SAVE.value: "checkpoint", Request.SAMPLE.value: "samples"}.get(payload.text("for"))
    number = payload.number("number")
    again = f" (request {number:.0f})" if number is not None and number > 1 else ""
    return f"{_capital(what or payload.text('for') or 'something')} requested{again}."


_STATES = {
    State.QUEUED.value: "waiting for a worker",
    State.PROVISIONING.value: "getting a machine",
    State.TRANSFERRING_DATA.value: "sending the dataset",
    State.EXECUTING.value: "running the recipe's steps",
    State.FETCHING_RESULTS.value: "fetching the results",
    State.FINALIZING.value: "publishing the model",
    State.RELEASING.value: "releasing the machine",
}


_ADOPTED_STATES = {
    State.PROVISIONING.value: "finding a place on the machine of the training",
    State.TRANSFERRING_DATA.value: "sending what watches the training",
    State.EXECUTING.value: "watching the training",
    State.RELEASING.value: "leaving the machine, or releasing it as agreed",
}


def _state(payload: _Payload) -> str:
    state, attempt = payload.text("to"), payload.number("attempt")
    words = _STATES.get(state, "")
    if payload.is_true("adopted") and state in _ADOPTED_STATES:
        return f"Now {state}: {_ADOPTED_STATES[state]}."
    if state == State.PROVISIONING and attempt is not None:
        words = f"{words} for attempt {attempt:.0f}"
    return _with_detail(f"Now {state or 'in an unknown state'}", words)


def _outcome(payload: _Payload) -> str:
    outcome, reason = payload.text("outcome"), payload.code("reason")
    because = f" ({reason})" if reason and outcome != Outcome.COMPLETED else ""
    return _with_detail(f"The job ended as {outcome or 'unknown'}{because}", payload.text("explanation"))


def _attempt_failed(payload: _Payload) -> str:
    reason = payload.code("reason")
    return _with_detail("Gave up this attempt" + (f" ({reason})" if reason else ""), payload.text("explanation"))


def _rental_requested(payload: _Payload) -> str:
    if payload.is_true("adopted"):
        return f"Going to the machine of the training (label {payload.text('label')})."
    return _with_note("Requesting a machine", "label", payload.text("label"))


def _rental_held(payload: _Payload) -> str:
    if payload.is_true("adopted"):
        return f"Has its place on the machine of the training ({payload.text('provider_id')})."
    gpu, region, price = payload.text("gpu"), payload.text("region"), payload.number("price_per_hour_usd")
    if payload.text("provider") == "loopback":
        return f"Has {_with_article(gpu)} of this computer." if gpu else "Has its place on this computer."
    parts = ["Rented", _with_article(gpu) if gpu else "a machine"]
    parts += [f"in {region}"] if region else []
    parts += [f"for ${price:.2f}/h"] if price else []
    return _with_note(" ".join(parts), "instance", payload.text("provider_id"))


def _surplus_found(payload: _Payload) -> str:
    return _with_note(
        "Destroying a surplus machine that carries this job's label", "instance", payload.text("provider_id")
    )


def _machine_started(payload: _Payload) -> str:
    return _with_note("Started the stopped machine again", "instance", payload.text("provider_id"))


def _rental_gone(payload: _Payload) -> str:
    return _with_note("The provider confirmed that the machine is gone", "label", payload.text("label"))


def _waiting_for_offer(payload: _Payload) -> str:
    agreed, offered = payload.text("agreed"), payload.text("offered")
    lead = "Waiting for an offer within what you agreed to" + (f" ({agreed})" if agreed else "")
    told = _punctuated(f"{lead}; the best other offer is {offered}" if offered else lead)
    if reasons := payload.texts("reasons"):
        told = f"{told} Left out: {'; '.join(reasons)}."
    if remedies := payload.texts("remedies"):
        told = f"{told} What helps: {', or '.join(remedies)}."
    return told


def _other_offer(payload: _Payload) -> str:
    why = payload.text("why") or "is not available"
    gpu, price, agreed = payload.text("gpu"), payload.number("price_per_hour_usd"), payload.text("agreed")
    machine = _with_article(gpu) if gpu else "another machine"
    at = f" for ${price:.3f}/h" if price else ""
    within = f" ({agreed})" if agreed else ""
    lead = f"The offer that you confirmed ({payload.text('confirmed')}) {why}"
    return f"{lead}, so {machine}{at} is rented instead, within what you agreed to{within}."


def _waiting_for_turn(payload: _Payload) -> str:
    return _with_detail("Waiting for its turn", payload.text("reason"))


def _create_unanswered(payload: _Payload) -> str:
    lead = "The provider's answer to the rental was lost, so its machines are searched before another request"
    return _with_detail(lead, payload.text("problem"))


def _machine_checked(payload: _Payload) -> str:
    gpus, free = payload.texts("gpus"), payload.number("disk_free_gib")
    facts = [_listed(gpus) or "no GPU"]
    facts += [f"driver {payload.text('driver')}"] if payload.text("driver") else []
    facts += [f"CUDA {payload.text('cuda')}"] if payload.text("cuda") else []
    facts += [f"{free:g} GiB of disk free"] if free is not None else []
    missing = f"; missing: {_listed(payload.texts('missing'))}" if payload.texts("missing") else ""
    return _with_detail("Checked the machine", ", ".join(facts) + missing)


def _logged_in(payload: _Payload) -> str:
    return f"Logged in to {payload.text('host') or 'the machine'}."


def _host_key_unverified(payload: _Payload) -> str:
    return f"Could not verify the host key of {payload.text('host') or 'the machine'}."


def _installing(payload: _Payload) -> str:
    return f"Installing {_listed(payload.texts('parts')) or 'what is missing'} on the machine."


def _installed(payload: _Payload) -> str:
    return f"Installed {_listed(payload.texts('parts')) or 'what was missing'} on the machine."


def _machine_parked(payload: _Payload) -> str:
    seconds = payload.number("abandon_seconds")
    then = "" if seconds is None else f" Without your decision it is destroyed in {format_duration(seconds)}."
    return _with_detail("Stopped the machine with the model on its disk", payload.text("problem")) + then


def _disk_unwritable(payload: _Payload) -> str:
    lead = _with_detail("The machine's disk takes nothing more", payload.text("problem"))
    then = "The results are fetched all the same; if the machine's guard stops it early, it is started again for that."
    return f"{lead} {then}"


_CLEANUPS = {
    "done": "The recipe cleaned up the machine",
    "unreachable": "Could not reach the machine to clean it up",
    "impossible": "The machine could not be cleaned up",
}


def _cleanup(payload: _Payload) -> str:
    lead = _CLEANUPS.get(payload.text("state"), "The recipe's cleanup of the machine failed")
    failed = payload.texts("failed")
    if failed:
        lead = f"{lead} ({_listed(failed)})"
    return _with_detail(lead, payload.text("problem") or payload.text("tail"))


def _data(how: str) -> _Sentence:
    def write(payload: _Payload) -> str:
        sha256 = payload.text("sha256")
        short = f"{sha256[:_SHORT_HASH]}…" if len(sha256) > _SHORT_HASH else sha256
        facts = [_size(payload.number("bytes")), f"SHA-256 {short}" if sha256 else ""]
        return _with_detail(how, ", ".join(fact for fact in facts if fact))

    return write


def _transfer(payload: _Payload) -> str:
    done, total = payload.number("bytes"), payload.number("total")
    rate, left = payload.number("bytes_per_second"), payload.number("eta_seconds")
    facts = [f"{_size(done)} of {_size(total)}"] if done is not None and total is not None else []
    facts += [f"{_size(rate)}/s"] if rate else []
    facts += [f"{format_duration(left)} left"] if left is not None else []
    return _with_detail(_capital(payload.text("way")) or "Transferring", ", ".join(facts))


def _resumed(payload: _Payload) -> str:
    step, attempt = payload.number("step"), payload.number("from_attempt")
    what = "a checkpoint" if step is None else f"the checkpoint of step {step:.0f}"
    return f"Resuming from {what}" + ("." if attempt is None else f" of attempt {attempt:.0f}.")


def _step(payload: _Payload) -> str:
    name, state = payload.text("step"), payload.text("state")
    number, tries, code = payload.number("try"), payload.number("tries"), payload.number("exit_code")
    words = f"Step {name} {_STEP_STATES.get(state, state or 'changed')}"
    if state == "failed":
        words += f" with exit code {code:.0f}" if code is not None else "; its exit code is unknown"
    if number is not None and (number > 1 or (state == "failed" and tries is not None and tries > 1)):
        words += f" on try {number:.0f}" + (f" of {tries:.0f}" if tries is not None else "")
    return _punctuated(words)


_STEP_STATES = {"running": "started", "done": "finished", "failed": "failed", "stopped": "was stopped"}


def _training_started(payload: _Payload) -> str:
    attempt = payload.number("attempt")
    return "Training started" + (f" (attempt {attempt:.0f})." if attempt is not None and attempt > 1 else ".")


def _milestone(payload: _Payload) -> str:
    percent, loss, left = payload.number("percent"), payload.number("loss"), payload.number("eta_seconds")
    facts = [payload.progress()] if payload.progress() else []
    facts += [f"loss {loss:.4g}"] if loss is not None else []
    facts += [f"about {format_duration(left)} left"] if left is not None else []
    return _with_detail("Reached a milestone" if percent is None else f"Reached {percent:g}%", ", ".join(facts))


def heartbeat_sentence(step: str | None, percent: float | None, eta_seconds: float | None) -> str:
    """How far a job was when its machine answered; it is no event.

    >>> heartbeat_sentence("train", 45.2, 720.0)
    'Step train: 45.2%, about 12m left.'
    >>> heartbeat_sentence(None, None, None)
    'The machine answered.'
    """
    facts = [f"{percent:g}%"] if percent is not None else []
    facts += [f"about {format_duration(eta_seconds)} left"] if eta_seconds is not None else []
    if step is None and not facts:
        return "The machine answered."
    return _with_detail("Training" if step is None else f"Step {words_of(step)}", ", ".join(facts))


def _epoch_ended(payload: _Payload) -> str:
    epoch, where = payload.number("epoch"), payload.progress()
    return ("An epoch" if epoch is None else f"Epoch {epoch:g}") + " completed" + (f" at {where}." if where else ".")


def _stall_flagged(payload: _Payload) -> str:
    where, minutes = payload.progress("currentStep", "totalSteps"), payload.number("grace_minutes")
    if minutes is None:
        minutes = payload.number("graceMinutes")  # as older versions stored it
    then = (
        " The training keeps running: stopping on stalls is off."
        if minutes is None
        else f" The training is stopped in {minutes:g} minutes unless progress resumes."
    )
    return _with_detail("Stall detected" + (f" at {where}" if where else ""), payload.text("reason")) + then


def _stall_cleared(payload: _Payload) -> str:
    where = payload.progress("currentStep", "totalSteps")
    return "The stall is over" + (f" at {where}." if where else ".")


def _stall_expired(payload: _Payload) -> str:
    return _with_detail("The stall lasted through the grace period, so the training is stopped", payload.text("reason"))


def _terminated(payload: _Payload) -> str:
    reason, step = payload.code("reason"), payload.number("checkpointStep")
    kept = "no checkpoint was saved" if step is None else f"the last checkpoint is of step {step:.0f}"
    return f"Stopped the training{f' ({reason})' if reason else ''}; {kept}."


_REACTIONS = {"stop": " The training is stopped.", "alert": " The training keeps running.", "note": ""}


def _anomaly(payload: _Payload) -> str:
    name = payload.text("anomaly").replace("_", " ")
    found = _with_detail(f"Anomaly{f' ({name})' if name else ''}", payload.text("evidence"))
    return found + _REACTIONS.get(payload.text("reaction"), "")


def _health_failed(payload: _Payload) -> str:
    return _punctuated(_capital(payload.text("problem")) or "The recipe's health check failed")


def _stop_without_effect(payload: _Payload) -> str:
    return "The training did not stop when asked; its files are fetched and the machine is released."


def _save_asked(payload: _Payload) -> str:
    reason = payload.code("reason")
    return "Asked the training to save before it stops" + (f" ({reason})." if reason else ".")


def _request_ended(made: str, not_made: str) -> _Sentence:
    def write(payload: _Payload) -> str:
        files, state, problem = payload.texts("files"), payload.code("state"), payload.text("problem")
        if not files:
            return _with_detail(f"{not_made}{f' ({state})' if state else ''}", problem)
        return _with_detail(made, _listed(files)) + (f" Problem: {_punctuated(problem)}" if problem else "")

    return write


def _checkpoint_safe(payload: _Payload) -> str:
    step, facts = payload.number("step"), [payload.text("path"), _size(payload.number("size"))]
    what = "Fetched a checkpoint" if step is None else f"Fetched the checkpoint of step {step:.0f}"
    broken = " It contains NaN values." if payload.is_true("nan") else ""
    return _with_detail(what, ", ".join(fact for fact in facts if fact)) + broken


def _samples_collected(payload: _Payload) -> str:
    count, step = payload.number("count"), payload.number("step")
    what = "Fetched samples" if count is None else f"Fetched {count:.0f} sample{'' if count == 1 else 's'}"
    return _punctuated(what if step is None else f"{what}, up to step {step:.0f}")


def _model_safe(payload: _Payload) -> str:
    where, size = payload.text("location"), _size(payload.number("size"))
    return f"Saved the model{f' to {where}' if where else ''}{f' ({size})' if size else ''}."


def _model_broken(payload: _Payload) -> str:
    path = payload.text("path")
    return _with_detail(f"The model file{f' {path}' if path else ''} is broken", payload.text("problem"))


def _files_refused(payload: _Payload) -> str:
    count, files = payload.number("count"), payload.texts("files")
    number = f"{len(files) if count is None else count:.0f}"
    what = "1 file" if number == "1" else f"{number} files"
    return _with_detail(f"Ignored {what} that the recipe does not declare", ", ".join(files))


def _files_left_out(payload: _Payload) -> str:
    count, most, cap = payload.number("count"), payload.number("most_files"), _size(payload.number("cap_bytes"))
    limits = " and ".join(limit for limit in (f"{most:,.0f} files" if most is not None else "", cap) if limit)
    what = "1 file" if count == 1 else f"{'Some' if count is None else f'{count:,.0f}'} files"
    return f"Left out {what}" + (f": at most {limits} are downloaded." if limits else ".")


def _thinned(payload: _Payload) -> str:
    what, most = payload.text("what"), payload.number("most")
    limit = "" if most is None else f" than the {most:,.0f} that are kept of a job"
    return f"The machine sends more {what or 'rows'}{limit}; from here on only some of them are recorded."


def _file_false(payload: _Payload) -> str:
    return _with_detail("Left out a file that is not what the machine reported", payload.text("problem"))


_NOT_DELIVERED = {
    "hub": "Could not upload the model to the Hub",
    "bucket": "Could not upload the model to the bucket",
    "hub from home": "Could not upload the local model to the Hub",
    "bucket from home": "Could not upload the local model to the bucket",
    "samples": "Could not publish the samples",
    "card": "Could not publish the model card",
}
_PLACES = {"hub": "the Hub", "bucket": "the bucket"}


def _delivery_failed(payload: _Payload) -> str:
    place = payload.text("place")
    lead = _NOT_DELIVERED.get(place, "Could not publish" + (f" to {place}" if place else ""))
    return _with_detail(lead, payload.text("problem"))


def _published(payload: _Payload) -> str:
    place = payload.text("place")
    to = f" to {_PLACES.get(place, place)}" if place else ""
    return _with_detail(f"Published the model{to}", payload.text("location"))


def _samples_published(payload: _Payload) -> str:
    return _with_detail("Published samples", _listed(payload.texts("samples")))


def _card_published(payload: _Payload) -> str:
    where = payload.text("repository")
    return "Published the model card" + (f" in {where}." if where else ".")


def _catalogued(payload: _Payload) -> str:
    model, note = payload.text("model"), payload.text("note")
    return _punctuated(
        f"Added the model to the catalogue{f' as {model}' if model else ''}{f' ({note})' if note else ''}"
    )


_REGISTRATIONS = {
    Registering.DONE.value: "Registered the model",
    Registering.STARTED.value: "Registering the model: the service is downloading it",
    Registering.DUE.value: "Could not register the model yet",
    Registering.NO.value: "Did not register the model",
}


def _registration(payload: _Payload) -> str:
    lead = _REGISTRATIONS.get(payload.text("state"), "The model's registration changed")
    return _with_detail(lead, payload.text("note").removeprefix("not registered: "))


def _analysed(payload: _Payload) -> str:
    health, first = payload.text("health"), payload.text("first")
    lead = f"Analysed the training (health: {health})" if health else "Analysed the training"
    return _with_detail(lead, first) if first else f"{lead}; nothing to change."


def _settled(payload: _Payload) -> str:
    attempt = payload.number("attempt")
    lead = "Settled the credits" + (f" of attempt {attempt:.0f}" if attempt is not None else "")
    return _with_detail(lead, payload.text("said"))


def _alert(payload: _Payload) -> str:
    return _with_detail("Alert", payload.text("message") or payload.text("alert"))


def _attached(payload: _Payload) -> str:
    pid = payload.number("pid")
    who = "a training whose process is not known" if pid is None else f"the training with process id {pid:.0f}"
    where = f" on {payload.text('target')}" if payload.text("target") else ""
    unknown = payload.texts("unknown")
    return f"Watches {who}{where}." + (f" Not known: {' '.join(unknown)}" if unknown else "")


def _adopted_ended(payload: _Payload) -> str:
    if payload.text("reason") == Reason.FINISHED.value:
        return "The training's process is gone; its newest model is whole, so it counts as finished."
    return _with_detail("The training counts as failed", payload.text("explanation"))


SENTENCES: Mapping[str, _Sentence] = {
    "submitted": _submitted,
    "desired": _desired,
    "asked": _asked,
    "alert": _alert,
    "state": _state,
    "outcome": _outcome,
    "attempt_failed": _attempt_failed,
    "tripped": _problem("Internal error in Stationmaster, retrying"),
    "unreachable": _problem("The machine does not answer"),
    # renting
    "rental_requested": _rental_requested,
    "rental_held": _rental_held,
    "surplus_found": _surplus_found,
    "waiting_for_offer": _waiting_for_offer,
    "waiting_for_turn": _waiting_for_turn,
    "other_offer": _other_offer,
    "create_refused": _problem("The provider refused the offer"),
    "create_unanswered": _create_unanswered,
    "machine_checked": _machine_checked,
    "logged_in": _logged_in,
    "host_key_unverified": _host_key_unverified,
    "installing": _installing,
    "installed": _installed,
    "machine_started": _machine_started,
    "machine_parked": _machine_parked,
    "disk_unwritable": _disk_unwritable,
    # sending
    "data_verified": _data("Verified the dataset on the machine"),
    "data_pulled": _data("The machine downloaded the dataset"),
    "data_already_there": _data("The machine already had the dataset"),
    "resumed": _resumed,
    "transfer": _transfer,
    "transfer_failed": _problem("Could not send the files to the machine"),
    "secret_held_back": _problem("Waiting to send a secret"),
    # training
    "attached": _attached,
    "adopted_ended": _adopted_ended,
    "step": _step,
    "training_started": _training_started,
    "milestone": _milestone,
    "epoch_ended": _epoch_ended,
    "stall_flagged": _stall_flagged,
    "stall_cleared": _stall_cleared,
    "terminate": _stall_expired,
    "terminated": _terminated,
    "anomaly": _anomaly,
    "health_failed": _health_failed,
    "health_well": _plain("The recipe's health check passes again."),
    "log_thinned": _plain(
        "The log comes too fast to read every line; errors, checkpoints and the latest lines are still read."
    ),
    "stop_failed": _problem("Could not stop it, retrying"),
    "machine_fault": _problem("The machine's answers are false; its files are fetched and it is avoided from now on"),
    "thinned": _thinned,
    "stop_without_effect": _stop_without_effect,
    "save_asked": _save_asked,
    "save_ended": _request_ended("The training saved a checkpoint", "The training saved no checkpoint"),
    "sample_ended": _request_ended("The training made samples", "The training made no samples"),
    "checkpoint_safe": _checkpoint_safe,
    "samples_collected": _samples_collected,
    "collect_failed": _problem("Could not fetch a checkpoint"),
    # fetching and publishing
    "files_refused": _files_refused,
    "files_left_out": _files_left_out,
    "file_false": _file_false,
    "fetch_failed": _problem("Could not fetch the results, retrying"),
    "results_incomplete": _problem("Not all results were fetched"),
    "model_safe": _model_safe,
    "model_broken": _model_broken,
    "delivery_failed": _delivery_failed,
    "published": _published,
    "samples_published": _samples_published,
    "card_published": _card_published,
    "catalogued": _catalogued,
    "registration": _registration,
    "analysed": _analysed,
    "analysis_failed": _problem("Could not analyse the training"),
    # releasing
    "cleanup": _cleanup,
    "destroy_failed": _problem("Could not destroy the machine, retrying"),
    "rental_gone": _rental_gone,
    "machine_left": _plain("The machine is left as it was; only what watched the training was removed."),
    "relabel_failed": _problem("Could not give the machine its own label back, retrying"),
    "settled": _settled,
}
"""Every kind of event that is written."""


def _in_words(name: str) -> str:
    return words_of(name.replace("_", " "))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _punctuated(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _with_detail(lead: str, detail: str) -> str:
    return _punctuated(f"{lead}: {detail}" if detail else lead)


def _with_note(lead: str, name: str, value: str) -> str:
    return f"{lead} ({name} {value})." if value else f"{lead}."


def _with_article(name: str) -> str:
    """
    >>> _with_article("RTX 4090"), _with_article("Tesla T4"), _with_article("2 x H100")
    ('an RTX 4090', 'a Tesla T4', '2 x H100')
    """
    first = name.split(" ")[0]
    if first.isdigit():
        return name
    vowel = first[:1] in _VOWEL_SOUNDS if first.upper() == first else first[:1].upper() in "AEIOU"
    return f"{'an' if vowel else 'a'} {name}"


def _listed(items: list[str]) -> str:
    """
    >>> _listed(["a", "b", "c"]), _listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def _size(number: float | None) -> str:
    """
    >>> _size(2240), _size(122880000), _size(None)
    ('2.2 kB', '122.9 MB', '')
    """
    if number is None:
        return ""
    for unit, amount in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(number) >= amount:
            return f"{number / amount:,.1f} {unit}"
    return f"{number:.0f} bytes"
