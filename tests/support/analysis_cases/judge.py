"""Judges an analysis by a label: everything that is wrong with it, each in a sentence."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.analysis_cases.case import Label

Json = Mapping[str, Any]

_RANKS = {"critical": 0, "warning": 1, "info": 2}
_SERIOUS = ("ERROR", "CRITICAL", "FATAL")
_MOST_ENTRIES = 50  # more of them are a copy of the log
#: What the trainers do where the config is silent; an analysis may also leave it open.
_DEFAULTS: Mapping[str, Any] = {
    "train.batch_size": 1,
    "train.gradient_checkpointing": True,
    "train.lr": 1e-6,
    "train.dtype": "fp32",
    "train.ema_config.use_ema": False,
    "train.disable_sampling": False,
    "model.quantize": False,
    "datasets.resolution": 512,
    "datasets.cache_latents": False,
    "datasets.cache_latents_to_disk": False,
    "datasets.num_workers": 2,
    "save.save_every": 1000,
    "sample.sample_every": 100,
    "train_batch_size": 1,
    "gradient_checkpointing": False,
    "max_data_loader_n_workers": 8,
    "mixed_precision": "no",
    "fp8_base": False,
    "cache_latents": False,
    "cache_latents_to_disk": False,
}


def problems(answer: Json, label: Label) -> list[str]:
    """Return what is wrong with an analysis, as JSON, of the run that the label is for."""
    return [
        *_summary(answer["summary"], label),
        *_order(answer["recommendations"], label),
        *_alarms(answer["recommendations"], label),
        *_idle(answer["recommendations"], label),
        *_log(answer["log_errors"], label),
    ]


def _summary(summary: Json, label: Label) -> Iterator[str]:
    if summary["health_score"].casefold() != label["health_score"].casefold():
        yield f"health is {summary['health_score']}, not {label['health_score']}"
    if summary["training_completed"] is not label["training_completed"]:
        yield f"training_completed is {summary['training_completed']}"
    for key in ("steps_completed", "duration_minutes", "peak_memory_gb", "total_memory_gb"):
        if label[key] is not None and not _within(summary[key], label[key]):
            yield f"{key} is {summary[key]}, not {_span(label[key])}"


def _order(items: list[Json], label: Label) -> Iterator[str]:
    ranks = [_RANKS[item["severity"]] for item in items]
    if ranks != sorted(ranks):
        yield "the recommendations are not in the order of their severity"
    for item in items:
        if not all(isinstance(item[key], str) and item[key].strip() for key in ("title", "action", "impact")):
            yield f"{_shown(item)} has an empty title, action or impact"
    if label["first"] and not (items and any(_matches(items[0], want) for want in label["first"])):
        yield f"first is {_shown(items[0]) if items else 'nothing'}, not one of {label['first']}"
    for wanted in label["must_include"]:
        if not any(_matches(item, want) for item in items for want in wanted):
            yield f"there is none of {wanted}"


def _alarms(items: list[Json], label: Label) -> Iterator[str]:
    allowed = [*(label["first"] or []), *(want for wanted in label["must_include"] for want in wanted), *label["may"]]
    for place, item in enumerate(items):
        is_cause = place == 0 and label["first"]
        if item["severity"] != "info" and not is_cause and not any(_is_about(item, want) for want in allowed):
            yield f"{_shown(item)} is a false alarm"
        for bad in label["must_not"]:
            if _is_about(item, bad) and _fits(item["recommended_value"], bad.get("value", {})):
                yield f"{_shown(item)} is wrong here"
        for words in label["must_not_say"]:
            if item["severity"] != "info" and re.search(words, item["title"], re.IGNORECASE):
                yield f"the title {item['title']!r} names a cause that it was not"


def _idle(items: list[Json], label: Label) -> Iterator[str]:
    config = {_plain_path(path): value for path, value in label["config"].items()}
    for item in items:
        path = _plain_path(item["config_path"])
        if path not in config:
            default = _DEFAULTS.get(path.removeprefix("config.process."), item["current_value"])
            if item["current_value"] is not None and not _same(item["current_value"], default):
                yield f"{_shown(item)} gives {item['current_value']!r} as the default, which is {default!r}"
            continue
        if item["recommended_value"] is not None and _same(item["recommended_value"], config[path]):
            yield f"{_shown(item)} is set already"
        if not _same(item["current_value"], config[path]):
            yield f"{_shown(item)} gives {item['current_value']!r} as the value of now, which is {config[path]!r}"


def _log(entries: list[Json], label: Label) -> Iterator[str]:
    if len(entries) > _MOST_ENTRIES:
        yield f"there are {len(entries)} log errors"
    errors = [entry for entry in entries if entry["level"].upper() in _SERIOUS]
    for want in label["log_errors"]:
        found = [entry for entry in errors if _has_text(entry, want["any"])]
        if len(found) < want["min"]:
            yield f"no log error of kind {want['kind']}; there are {[entry['message'][:80] for entry in entries]}"
            continue
        for key, field in (("timestamp", "timestamp"), ("memory_gb", "memory_at_time_gb")):
            if key in want and not any(_within(entry[field], want[key]) for entry in found):
                yield f"{field} of {want['kind']} is {found[0][field]}, not {_span(want[key])}"
    for text in label["noise"]:
        if any(_has_text(entry, [text]) for entry in errors):
            yield f"a harmless line counts as an error: {text}"


def _matches(item: Json, want: Json) -> bool:
    return _is_about(item, want) and _fits(item["recommended_value"], want.get("value", {})) and _names_gb(item, want)


def _is_about(item: Json, want: Json) -> bool:
    paths = [want["path"]] if isinstance(want["path"], str) else want["path"]
    path = _plain_path(item["config_path"])
    is_there = any(fnmatch.fnmatchcase(path, _plain_path(pattern)) for pattern in paths)
    return is_there and ("severity" not in want or item["severity"] in want["severity"])


def _plain_path(path: str) -> str:
    """Leave out the index of the first of a list: a path without it is the same."""
    return re.sub(r"\[(0|\*|)\]", "", path)


def _fits(value: Any, rule: Json) -> bool:
    if "eq" in rule and not _same(value, rule["eq"]):
        return False
    if "in" in rule and not any(_same(value, choice) for choice in rule["in"]):
        return False
    if "min" in rule or "max" in rule:
        number = _largest(value)
        return number is not None and rule.get("min", -math.inf) <= number <= rule.get("max", math.inf)
    return True


def _names_gb(item: Json, want: Json) -> bool:
    text = f"{item['title']} {item['action']} {item['impact']}"
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
    return "gb" not in want or any(low <= number <= high for low, high in want["gb"] for number in numbers)


def _same(one: Any, other: Any) -> bool:
    one, other = _plain(one), _plain(other)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float | int) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-6)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _plain(value: Any) -> Any:
    """Return a text that holds a number or a truth value as what it holds."""
    if not isinstance(value, str):
        return value
    if value.casefold() in ("true", "false"):
        return value.casefold() == "true"
    try:
        return float(value)
    except ValueError:
        return value.casefold()


def _largest(value: Any) -> float | None:
    value = _plain(value)
    if isinstance(value, list):
        numbers = [_largest(each) for each in value]
        return max((number for number in numbers if number is not None), default=None)
    if isinstance(value, str) and re.fullmatch(r"[\d.]+([,x][\d.]+)*", value):
        return max(map(float, re.findall(r"[\d.]+", value)))
    return value if isinstance(value, float | int) and not isinstance(value, bool) else None


def _within(value: Any, span: Json) -> bool:
    low, high = _span(span)
    return isinstance(value, float | int) and not isinstance(value, bool) and low <= value <= high


def _span(span: Json) -> tuple[float, float]:
    if "value" in span:
        return span["value"] - span["tolerance"], span["value"] + span["tolerance"]
    return span["min"], span["max"]


def _has_text(entry: Json, texts: list[str]) -> bool:
    return any(text.casefold() in entry["message"].casefold() for text in texts)


def _shown(item: Json) -> str:
    return f"{item['severity']} {item['config_path']} -> {item['recommended_value']!r}"
