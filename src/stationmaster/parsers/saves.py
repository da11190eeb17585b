"""Checkpoints in a log: what was saved or is being saved."""

from __future__ import annotations

import re

from stationmaster.parsers.base import Saved, any_of
from stationmaster.parsers.lines import Line

_VERB = any_of(
    r"\b(?P<doing>sav(?:e|ing)|creating backup|writing|storing|exporting|dumping)\b",
    r"\b(?P<done>saved|successfully created|wrote|written|stored|exported|backed up)\b",
    r"(?P<done_in_chinese>已?保存)",
)
_HINTS = ("sav", "backup", "creat", "wr", "stor", "export", "dump", "backed", "保存")
_NO_SAVE = any_of(
    r"\b(?:copied|copying|remov\w+|delet\w+|load\w*|resum\w+|restor\w+|failed|fail|could not|cannot|can't|unable|error"
    r"|will be|would be|to be|not saved|won't|skip\w*|if you|every|interval|to save|don't save|not save|pruned"
    r"|download\w*|sav(?:ing|ed) (?:the )?batch)\b",
)
_OTHER_THINGS = any_of(
    r"\b(?:optimi[sz]er|scheduler|random[ _]states?|rng|scaler|sampler|tokenizer|config\w*|logs?|logging|histor\w+"
    r"|predict\w*|results?|metrics?|samples?|images?|plots?|figures?|video\w*|latents?|dataset|data|caches?|recipe|args"
    r"|arguments|hyper\w*|statistics|stats|summary|graph|curves?|csv|json|yaml|vocab\w*|memory|vram|time|space|profil\w*"
    r"|trace|train state|chat template|processor|generation|report|card|trainer state|code|wandb)\b",
)
_SURELY_A_MODEL = any_of(r"\b(?:checkpoint|trained model|model weights|lora weights)\b")
_MODEL_THINGS = any_of(
    r"check-?points?|\bckpts?\b|\bmodels?\b|\bweights\b|\badapters?\b|\blora\b|\bcurrent state\b|\bstate to\b",
    r"\bsnapshots?\b|\bbackup\b|\bnetwork\b|\bembeddings?\b|\bmerge|\bpipeline\b|\bunet\b|\bcontrolnet\b|\bparams\b",
    r"模型|权重|检查点",
)
_MODEL_FOLDER = any_of(r"check-?points?\b|\bckpts?\b|(?:^|[_/\\-])weights\b")
_WEIGHTS = any_of(r"\.(?:safetensors|ckpt|pth?|bin|pdparams|h5|hdf5|keras|gguf|msgpack|nemo|tar|pkl|npz|onnx|weights)$")
_OTHER_FILES = any_of(
    r"\.(?:jsonl?|txt|csv|tsv|png|jpe?g|webp|gif|log|ya?ml|toml|html?|npy|mp4|wav|parquet|md|pdf|svg|py|db|zip|xml|model)$",
    r"(?:^|[/\\])(?:optimizer|scheduler|scaler|random_states?|rng_state|recipe_state|training_args|tokenizer)[\w.-]*$",
    r"optim_states?\.pt$",
    r"-state[/\\]?$",
)
_PLACE = re.compile(r"(?:\b(?:to|in|into|at|as|under)\b:?|:|->|=>|[到至为]:?) +(?=\S)|：(?=\S)", re.IGNORECASE)
_QUOTED = re.compile(r"[`'\"]([^`'\"]{1,400})[`'\"]")
_IN_CALL = re.compile(r"\bpath=([^\s,()]+)")
_LABEL = any_of(
    r"(?:check-?point|model|weights|snapshot)s?\b.{0,20}?\b(?:at|for|after|of)\b:? +"
    r"(?P<label>(?:step|epoch|iter(?:ation)?)s?:? *\d+|\d+ (?:epochs?|iter(?:ation)?s?|steps?))",
)
_AFTERWARDS = ".,;:!)]=…"
_JOINTS = frozenset({"and", "at", "in", "to", "with", "for", "as", "on", "of", "after", "from"})
_FURTHER_WORDS = 3
_BRACKETS = re.compile(r"\([^()]*\)")
_ABSOLUTE = re.compile(r"[A-Za-z]:[\\/]|[/\\]")


def read_save(line: Line) -> Saved | None:
    """The checkpoint that a line names; None for optimizer states, pictures, removals and failed saves."""
    if line.level in ("error", "critical") or not any(hint in line.lower for hint in _HINTS):
        return None
    verb = _VERB.search(line.message)
    if not verb or _NO_SAVE.search(line.message[: verb.end() + 40]):
        return None
    is_done = verb["doing"] is None
    path = _path_in(line.message[verb.end() :]) or (_path_before(line.message[: verb.start()]) if is_done else None)
    if path is None:
        label = _LABEL.search(line.message)
        return Saved(name=label["label"], done=is_done) if label else None
    return Saved(name=path, done=is_done) if _is_model(path, line.message.replace(path, " ")) else None


def _is_model(path: str, words: str) -> bool:
    if _OTHER_FILES.search(path):
        return False
    if _OTHER_THINGS.search(_BRACKETS.sub(" ", words)) and not _SURELY_A_MODEL.search(words):
        return False
    return any(
        pattern.search(text) for pattern, text in ((_WEIGHTS, path), (_MODEL_THINGS, words), (_MODEL_FOLDER, path))
    )


def _path_in(text: str) -> str | None:
    """The path after the verb: in a call, in quotes, after a preposition, or what looks like one."""
    if found := _IN_CALL.search(text):
        return found[1]
    if quoted := next((found[1] for found in _QUOTED.finditer(text) if _looks_like_path(found[1])), None):
        return quoted
    places = [text[found.end() :] for found in _PLACE.finditer(text)]
    for place in places:
        path = _first_path(place)
        if path and _looks_like_path(path):
            return path
    if places:
        return _bare_name(places[-1])
    words = [word.rstrip(_AFTERWARDS) for word in text.split(" ")]
    return _first_path(text) if _looks_like_path(_first_path(text)) else next(filter(_looks_like_path, words), None)


def _path_before(text: str) -> str | None:
    """The file in `Model: "out/1.pth" saved`."""
    words = [word.lstrip("`'\"").rstrip("`'\"" + _AFTERWARDS) for word in text.split(" ")[-3:]]
    return next((word for word in words if _WEIGHTS.search(word)), None)


def _looks_like_path(text: str | None) -> bool:
    return text is not None and ("/" in text or "\\" in text or _WEIGHTS.search(text) is not None)


def _bare_name(text: str) -> str | None:
    """A folder's name standing alone at the end, as in `saving checkpoint to out-char`."""
    name = _first_path(text)
    alone = name is not None and " " not in text.strip() and len(name) > 1 and not name[0].isdigit()
    return name if alone else None


def _first_path(text: str) -> str | None:
    """The first word, or all words up to a weights file's ending when a folder has spaces in its name."""
    text = text.strip().lstrip("`'\"")
    first = text.split(" ")[0].rstrip("`'\"" + _AFTERWARDS)
    whole = text.rstrip(_AFTERWARDS)
    may_go_on = not _WEIGHTS.search(first) and _ABSOLUTE.match(text) and "  " not in whole
    if may_go_on and (_WEIGHTS.search(whole) or _goes_on(whole.split(" ")[1:])):
        return whole
    return first or None


def _goes_on(words: list[str]) -> bool:
    """Whether these words are the rest of a path with a space in a folder's name."""
    if not 0 < len(words) <= _FURTHER_WORDS or any(word.lower() in _JOINTS or "(" in word for word in words):
        return False
    last = words[-1]
    return ("/" in last or "\\" in last) and not _ABSOLUTE.match(last)
