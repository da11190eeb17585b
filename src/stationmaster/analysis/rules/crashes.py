"""Runs that an error or a signal ended, for another reason than memory: what to put right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stationmaster.analysis.facts.log_facts import LoggedError
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence, Severity
from stationmaster.analysis.rules.base import Finding, Group, find, number_of, value_of
from stationmaster.parsers.base import ErrorKind, Phase

_SHOWN = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A crash that its text names. `lever` is what mends it; `value` a new value where one is known."""

    rule: str
    pattern: re.Pattern[str]
    lever: Lever
    title: str
    action: str
    impact: str
    confidence: Confidence = Confidence.HIGH


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_SHARED_MEMORY = Cause(
    rule="crash_shared_memory",
    pattern=_any(
        r"bus error",
        r"out of shared memory",
        r"insufficient shared memory",
        r"unable to (?:open|mmap|allocate) shared memory",
    ),
    lever=Lever.MACHINE_SHM,
    title="A data loading worker ran out of shared memory",
    action="Give the container more shared memory (/dev/shm), or load data without workers.",
    impact="Workers hand batches over through shared memory; with enough of it they do not crash.",
)
_DISK_FULL = Cause(
    rule="crash_disk_full",
    pattern=_any(
        r"no space left on device", r"storagefull", r"\berrno 28\b", r"disk quota exceeded", r"\bdisk (?:is )?full\b"
    ),
    lever=Lever.MACHINE_DISK_SIZE,
    title="The disk was full",
    action="Take a machine with a larger disk.",
    impact="Saves succeed; nothing is lost at the end of the run.",
)
_OPTIMIZER = Cause(
    rule="crash_optimizer",
    pattern=_any(
        r"(?:unknown|invalid|unsupported|unrecognized) optimizer",
        r"optimizer .{0,60}(?:not (?:found|supported|recognized|implemented|available)|is unknown)",
        r"no (?:such )?optimizer",
        r"module '(?:bitsandbytes\.optim|torch\.optim|transformers\.optimization)[\w.]*' has no attribute",
    ),
    lever=Lever.OPTIMIZER,
    title="The trainer does not know the optimizer",
    action="Name an optimizer that the trainer has, for example adamw8bit.",
    impact="The training starts.",
)
_PICTURE = Cause(
    rule="crash_broken_picture",
    pattern=_any(
        r"cannot identify image file",
        r"unidentifiedimageerror",
        r"image file is truncated",
        r"truncated file read",
        r"broken (?:png|jpeg|data stream)",
        r"decompressionbomb",
    ),
    lever=Lever.DATASET,
    title="A picture of the dataset cannot be read",
    action="Remove or repair the broken picture; `stationmaster dataset check` finds all of them.",
    impact="The training does not stop at that picture.",
)

#: The first that fits the fatal error: the more specific before the more general.
_CAUSES: tuple[Cause, ...] = (
    Cause(
        rule="crash_credentials",
        pattern=_any(
            r"gated ?repo",
            r"\b40[13] (?:client error|unauthorized|forbidden)",
            r"(?:status(?: code)?|http(?: error)?):? 40[13]\b",
            r"access to model .{0,120}is restricted",
            r"invalid (?:user|access|api|auth)\w* ?(?:token|key|credentials)",
            r"localtokennotfound",
            r"token is required",
        ),
        lever=Lever.HF_TOKEN,
        title="The Hub refused the model: it is gated, or the token is missing or not allowed",
        action="Accept the model's terms on the Hub and set a token (HF_READ_TOKEN) that may read it.",
        impact="The model can be downloaded; nothing was trained without it.",
    ),
    _SHARED_MEMORY,
    _DISK_FULL,
    Cause(
        rule="crash_driver",
        pattern=_any(
            r"nvidia driver on your system is too old",
            r"driver version is insufficient",
            r"no nvidia driver",
            r"cuda driver initialization failed",
            r"forward compatibility was attempted",
            r"unsupported (?:display driver|cuda version)",
            r"driver/library version mismatch",
        ),
        lever=Lever.MACHINE_DRIVER,
        title="The machine's GPU driver does not fit the trainer's CUDA",
        action="Take a machine with a newer driver.",
        impact="CUDA starts.",
    ),
    Cause(
        rule="crash_torch_build",
        pattern=_any(
            r"no kernel image",
            r"kernel image is invalid",
            r"is not compatible with the current pytorch",
            r"not compiled with cuda",
            r"compiled without cuda",
        ),
        lever=Lever.TORCH_VERSION,
        title="This build of PyTorch has no code for the GPU",
        action="Install a PyTorch that was built for this GPU's generation.",
        impact="The training can use the GPU.",
    ),
    Cause(
        rule="crash_cuda_fault",
        pattern=_any(
            r"illegal memory access",
            r"device-side assert",
            r"unspecified launch failure",
            r"misaligned address",
            r"illegal instruction was encountered",
            r"uncorrectable ecc",
            r"gpu (?:has fallen off|is lost)",
            r"cublas_status_(?!alloc)",
            r"cudnn_status|cudnn error|cusolver error",
            r"hardware stack error",
            r"watchdog caught collective|distbackenderror",
            r"nccl (?:error|operation|timeout|communicator)|nccl\w{0,20}error",
            r"\bcuda error\b(?!: out of memory)",
            r"hip error",
        ),
        lever=Lever.MACHINE_HOST,
        title="The GPU reported a fault",
        action="Try another machine: such faults are usually the host's hardware or driver.",
        impact="The same run on a sound machine does not stop there.",
        confidence=Confidence.MEDIUM,
    ),
    _OPTIMIZER,
    _PICTURE,
    Cause(
        rule="crash_network",
        pattern=_any(
            r"max retries exceeded",
            r"connection (?:reset|refused|aborted|timed out)",
            r"name or service not known|temporary failure in name resolution",
            r"localentrynotfounderror",
            r"readtimeout|connecttimeout",
        ),
        lever=Lever.MACHINE_NETWORK,
        title="The machine's network failed",
        action="Take a machine with a better network, or try again later.",
        impact="Downloads finish.",
        confidence=Confidence.MEDIUM,
    ),
)
_MISSING = _any(
    r"filenotfounderror",
    r"no such file or directory",
    r"notadirectoryerror",
    r"not a valid model identifier",
    r"is not a local folder",
    r"does not appear to have",
    r"(?:entry|repository|revision)notfounderror",
    r"404 client error",
    r"no file named",
    r"does(?: not|n't) exist",
    r"(?:could not|couldn't|cannot|can't|unable to) (?:find|locate|open|load)",
    r"not found",
    r"no (?:images?|data|training \w+|dataset) (?:\w+ ){0,3}found",
    r"no data found",
    r"(?:dataset|folder|image directory) .{0,60}is empty",
    r"no image(?:s)? in",
)
_DATA_WORDS = _any(
    r"\b(?:dataset|images?|train_data_dir|folder_path|captions?|pictures?)\b",
    r"\.(?:jpe?g|png|webp|txt)\b",
    r"\bno data found",
)
_MODEL_WORDS = _any(
    r"\b(?:model|unet|transformer|vae|text_encoder|checkpoint|tokenizer|pretrained)\b",
    r"\.(?:safetensors|ckpt|bin|pt)\b",
)


def crash_rules(facts: RunFacts) -> Iterator[Finding]:
    """Yield what ended the run, unless memory did."""
    if not facts.ending.failed:
        return
    if facts.ending.stalled:
        yield from (finding for finding in _stalled(facts) if finding is not None)
        return
    error = facts.log.cause
    if facts.ending.killed_for_memory or (error is not None and _is_memory(facts, error)):
        return
    if error is None and facts.gpu_refused_memory and facts.ending.signal is None:
        return  # an event has it, though the log does not
    found = _named(facts, error) if error is not None else None
    found = found or _by_signal(facts) or (_unnamed(facts, error) if error is not None else None)
    if found is None and not facts.memory_is_short:  # a full memory is the likelier reason for a crash without a word
        found = _without_a_word(facts)
    yield from (finding for finding in found or () if finding is not None)


def _is_memory(facts: RunFacts, error: LoggedError) -> bool:
    if error.kind is ErrorKind.OOM or facts.log.host_memory_refused:
        return True
    return error.kind is ErrorKind.KILLED and facts.ending.killed_for_memory


def _named(facts: RunFacts, error: LoggedError) -> Sequence[Finding | None] | None:
    text = f"{error.message}\n{(error.traceback or '').splitlines()[-1] if error.traceback else ''}"
    if _SHARED_MEMORY.pattern.search(text):
        return _shared_memory(facts, error)
    if _DISK_FULL.pattern.search(text):
        return _disk_full(facts, error)
    for cause in _CAUSES:
        if cause.pattern.search(text):
            return [_finding(facts, cause, error)]
    if _MISSING.search(text):
        return _missing(facts, error, text)
    return None


def _missing(facts: RunFacts, error: LoggedError, text: str) -> Sequence[Finding | None] | None:
    """A path of the config in the message tells which one it is; else the words do."""
    data, model = (str(value_of(facts, lever) or "") for lever in (Lever.DATASET, Lever.MODEL))
    is_data = bool(data) and data in text
    is_model = bool(model) and model in text
    if not is_data and not is_model:
        is_data = _DATA_WORDS.search(text) is not None
        is_model = not is_data and _MODEL_WORDS.search(text) is not None
    if not is_data and not is_model:
        return None
    what = "dataset" if is_data else "model"
    cause = Cause(
        rule=f"crash_missing_{what}",
        pattern=_MISSING,
        lever=Lever.DATASET if is_data else Lever.MODEL,
        title=f"The {what} was not found",
        action=f"Correct the path or name of the {what}; now it is `{data if is_data else model}`.",
        impact="The training starts.",
    )
    return [_finding(facts, cause, error)]


def _shared_memory(facts: RunFacts, error: LoggedError) -> Sequence[Finding | None]:
    now = facts.info_number("shm_size_gb")
    wanted = max(8, round((now or 0) * 4))
    workers = number_of(facts, Lever.WORKERS)
    first = _finding(facts, _SHARED_MEMORY, error, value=wanted)
    if not workers:
        return [first]
    second = find(
        facts,
        rule="crash_shared_memory_workers",
        severity=Severity.WARNING if _is_applicable(facts, Lever.WORKERS) else Severity.INFO,
        lever=Lever.WORKERS,
        value=0,
        title="Data loading workers need shared memory; without workers none is needed",
        action="Where /dev/shm cannot be made larger: set the number of workers to 0.",
        impact="The training does not use shared memory; loading takes part of each step.",
        group=Group.OTHER,
        evidence=_evidence(error),
        basis="workers hand batches over through shared memory",
        confidence=Confidence.HIGH,
    )
    return [first, second]


def _disk_full(facts: RunFacts, error: LoggedError) -> Sequence[Finding | None]:
    size = _disk_gb(facts)
    disk = _finding(facts, _DISK_FULL, error, value=None if size is None else round(size * 1.5 + 5))
    keep = number_of(facts, Lever.KEEP_SAVES)
    saves = len(facts.events_of_kind("save_end"))
    saving = error.phase is Phase.SAVING or saves > 0
    if not keep or keep < 3 or not saving:
        return [disk]
    fewer = max(1, min(int(keep), max(saves, 2)) // 2)
    kept = find(
        facts,
        rule="crash_disk_full_saves",
        severity=Severity.CRITICAL if keep >= 6 else Severity.INFO,
        lever=Lever.KEEP_SAVES,
        value=fewer,
        title=f"The disk was full at save {saves + 1}; up to {keep:.0f} are kept",
        action=f"Keep {fewer} saves on the machine instead of {keep:.0f}.",
        impact=f"Saves take the place of {fewer} at most; {saves} fitted.",
        group=Group.ENDED_THE_RUN,
        evidence=(*_evidence(error), Evidence(what="saves that fitted", value=saves)),
        basis="measured: the saves before the disk was full",
        confidence=Confidence.HIGH,
    )
    return [kept, _lowered(disk)] if keep >= 6 else [disk, kept]


def _by_signal(facts: RunFacts) -> Sequence[Finding | None] | None:
    if not (facts.ending.killed or facts.ending.signal is not None):
        return None
    signal = facts.ending.signal or 9
    pool = facts.system
    memory = "" if pool is None else f", with system memory at {pool.share * 100:.0f} % at most"
    return [
        find(
            facts,
            rule="crash_killed",
            severity=Severity.CRITICAL,
            lever=Lever.MACHINE_HOST,
            value=None,
            title=f"The training was ended by signal {signal}{memory}",
            action="Try another machine: something on this host ended the training, and it was not for memory.",
            impact="The same run on another host is not ended from outside.",
            group=Group.ENDED_THE_RUN,
            evidence=(
                Evidence(what="signal", value=signal),
                Evidence(
                    what="highest share of system memory",
                    value=None if pool is None else round(pool.share, 3),
                    threshold=0.95,
                ),
            ),
            basis="exit signal and memory samples",
            confidence=Confidence.MEDIUM,
        )
    ]


def _stalled(facts: RunFacts) -> Sequence[Finding | None]:
    return [
        find(
            facts,
            rule="crash_stalled",
            severity=Severity.CRITICAL,
            lever=Lever.MACHINE_HOST,
            value=None,
            title=f"The training stopped making progress after step {facts.steps_completed or 0} and was ended",
            action="Try another machine; if it stalls at the same step again, use another version of the trainer.",
            impact="The run reaches its last step.",
            group=Group.ENDED_THE_RUN,
            evidence=(Evidence(what="steps", value=facts.steps_completed, threshold=facts.total_steps),),
            basis="no new step for longer than the watch allows",
            confidence=Confidence.LOW,
        )
    ]


def _unnamed(facts: RunFacts, error: LoggedError) -> Sequence[Finding | None]:
    return [
        find(
            facts,
            rule="crash_unnamed",
            severity=Severity.CRITICAL,
            lever=Lever.TRAINER_VERSION,
            value=None,
            title=f"The trainer stopped with an error: {_short(error.message)}",
            action="Read the traceback; if the config is right, use another version of the trainer.",
            impact="Without that error the run goes on.",
            group=Group.ENDED_THE_RUN,
            evidence=_evidence(error),
            basis="the last error in the log",
            confidence=Confidence.LOW,
        )
    ]


def _without_a_word(facts: RunFacts) -> Sequence[Finding | None]:
    code = facts.ending.exit_code
    how = f"exit code {code}" if code is not None else "no exit code"
    return [
        find(
            facts,
            rule="crash_silent",
            severity=Severity.CRITICAL,
            lever=Lever.MACHINE_HOST,
            value=None,
            title=f"The run stopped in the middle without a word in its log ({how})",
            action="Try another machine, and look at the trainer's own output if it writes one elsewhere.",
            impact="A host that stays up lets the run finish.",
            group=Group.ENDED_THE_RUN,
            evidence=(
                Evidence(what="exit code", value=code),
                Evidence(what="steps", value=facts.steps_completed, threshold=facts.total_steps),
            ),
            basis="rows and log end before the last step",
            confidence=Confidence.LOW,
        )
    ]


def _finding(facts: RunFacts, cause: Cause, error: LoggedError, *, value: object = None) -> Finding | None:
    return find(
        facts,
        rule=cause.rule,
        severity=Severity.CRITICAL,
        lever=cause.lever,
        value=value,
        title=cause.title,
        action=cause.action,
        impact=cause.impact,
        group=Group.ENDED_THE_RUN,
        evidence=_evidence(error),
        basis="the error that ended the run",
        confidence=cause.confidence,
    )


def _lowered(finding: Finding | None) -> Finding | None:
    if finding is None:
        return None
    lowered = replace(finding.recommendation, severity=Severity.INFO)
    return Finding(recommendation=lowered, group=Group.OTHER)


def _evidence(error: LoggedError) -> tuple[Evidence, ...]:
    return (Evidence(what="error", value=_short(error.message)),)


def _short(message: str) -> str:
    return message if len(message) <= _SHOWN else f"{message[: _SHOWN - 1]}…"


def _disk_gb(facts: RunFacts) -> float | None:
    table = facts.tables.get("ResourceSample")
    sizes = [size for size in table.values("disk_total_gb") if size] if table is not None else []
    return max(sizes) if sizes else None


def _is_applicable(facts: RunFacts, lever: Lever) -> bool:
    """A recipe's own parameter can be changed where the machine cannot."""
    return facts.config is not None and facts.config.framework == "recipe" and facts.config.setting(lever) is not None
