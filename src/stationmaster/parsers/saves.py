"""Checkpoints in a log: what the text says was saved or is being saved."""

from __future__ import annotations

import re

from stationmaster.parsers.base import Saved
from stationmaster.parsers.lines import Line

_VERB = re.compile(
    r"\b(?:(?P<doing>sav(?:e|ing)|creating backup|writing|storing|exporting|dumping)|(?P<done>saved|successfully created|wrote|written|stored|exported|backed up))\b",
    re.IGNORECASE,
)
_NOT_A_SAVE = re.compile(
    r"\b(?:copied|copying|remov\w+|delet\w+|load\w*|resum\w+|restor\w+|failed|fail|could not|cannot|can't|unable|error|will be|would be|to be saved|not saved|won't|skip\w*|if you|every|interval"
    r"|to save|saves|best to|don't save|not save|pruned|download\w*|was not in top)\b",
    re.IGNORECASE,
)
_OTHER_THINGS = re.compile(
    r"\b(?:optimi[sz]er|scheduler|random[ _]states?|rng|scaler|sampler|tokenizer|config\w*|logs?|logging|histor\w+|predict\w*|results?|metrics?|samples?|images?|plots?|figures?|video\w*|latents?|dataset|data|cache|caches|outputs? of"
    r"|recipe|args|arguments|hyper\w*|statistics|stats|summary|graph|curves?|csv|json|yaml|vocab\w*|memory|vram|time|space|profil\w*|trace|train state|chat template|processor|generation|report|card|trainer state|code|wandb)\b",
    re.IGNORECASE,
)
_MODEL_THINGS = re.compile(
    r"check-?points?|ckpts?\b|models?\b|weights\b|adapters?\b|lora\b|\bcurrent state\b|\bstate to\b|^saved? state\b|snapshots?\b|backup\b|network\b|embeddings?\b|merge|pipeline\b|parameters to|gaussians\b|unet\b|controlnet\b|params\b",
    re.IGNORECASE,
)
_WEIGHTS = re.compile(
    r"\.(?:safetensors|ckpt|pth?|bin|pdparams|h5|hdf5|keras|gguf|msgpack|nemo|tar|pkl|npz|onnx|distcp|weights)$",
    re.IGNORECASE,
)
_OTHER_FILES = re.compile(
    r"\.(?:jsonl?|txt|csv|tsv|png|jpe?g|webp|gif|log|ya?ml|toml|html?|npy|mp4|wav|parquet|md|pdf|svg|py|db|zip|arrow|xml|ini|model)$"
    r"|(?:^|[/\\])(?:optimizer|scheduler|scaler|random_states?|rng_state|recipe_state|training_args|tokenizer)[\w.-]*$|optim_states?\.pt$|-state[/\\]?$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[`'\"]([^`'\"]{1,400})[`'\"]")
_IN_CALL = re.compile(r"\bpath=([^\s,()]+)")
_AFTER = re.compile(r"(?:\b(?:to|in|into|at|as|under)\b:?|:|->|=>) +(?P<path>\S.*)$", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:check-?point|model|weights|snapshot)s?\b.{0,20}?\b(?:at|for|after|of)\b:? +(?P<label>(?:step|epoch|iter(?:ation)?)s?:? *\d+|\d+ (?:epochs?|iter(?:ation)?s?|steps?))",
    re.IGNORECASE,
)
_PATH_SHAPE = re.compile(r"[/\\]")
_TRAILING = re.compile(r"(?:\.{3}|…)?[.,;:!)\]]*$")


def read_save(line: Line) -> Saved | None:
    """The checkpoint that a line names; None for optimizer states, pictures, removals and failed saves."""
    message = line.message
    if "sav" not in line.lower and "backup" not in line.lower and "creat" not in line.lower and "wr" not in line.lower:
        return None
    verb = _VERB.search(message)
    if not verb or _NOT_A_SAVE.search(message[: verb.start()]) or line.level in ("error", "critical"):
        return None
    rest = message[verb.end() :]
    path = _path_in(rest)
    done = verb["done"] is not None
    if path is None:
        label = _LABEL.search(message)
        return Saved(name=label["label"], done=done) if label else None
    words = message.replace(path, " ")
    if _NOT_A_SAVE.search(words[: verb.end() + 40]) or _OTHER_FILES.search(path):
        return None
    if _WEIGHTS.search(path) and not _is_other(words):
        return Saved(name=path, done=done)
    return Saved(name=path, done=done) if _MODEL_THINGS.search(words) and not _is_other(words) else None


def _is_other(words: str) -> bool:
    """Something beside the model is saved: judged by the word before the verb or the path."""
    return _OTHER_THINGS.search(re.sub(r"\([^()]*\)", " ", words)) is not None and not re.search(
        r"\b(?:checkpoint|trained model|model weights|lora weights)\b", words, re.IGNORECASE
    )


def _path_in(rest: str) -> str | None:
    """The path after the verb: in a call, in quotes, after a preposition, or the only thing that looks like one."""
    if found := _IN_CALL.search(rest):
        return found[1]
    for found in _QUOTED.finditer(rest):
        if _PATH_SHAPE.search(found[1]) or _WEIGHTS.search(found[1]):
            return found[1]
    after = None
    for after in re.finditer(r"(?:\b(?:to|in|into|at|as|under)\b:?|:|->|=>) +(?=\S)", rest, re.IGNORECASE):
        tail = rest[after.end() :]
        token = _token(tail)
        if token and (_PATH_SHAPE.search(token) or _WEIGHTS.search(token)):
            return token
    bare = rest.strip()
    if after is not None:
        token = _token(rest[after.end() :])
        is_name = (
            token is not None
            and " " not in rest[after.end() :].strip()
            and not token[0].isdigit()
            and not token.isdigit()
        )
        return token if is_name and len(token or "") > 1 else None
    token = _token(bare)
    return token if token and (_PATH_SHAPE.search(token) or _WEIGHTS.search(token)) else _last_path(bare)


def _last_path(text: str) -> str | None:
    words = [word for word in text.split(" ") if _PATH_SHAPE.search(word) or _WEIGHTS.search(_TRAILING.sub("", word))]
    return _TRAILING.sub("", words[-1]) or None if words else None


def _token(text: str) -> str | None:
    """The first word, or all words up to a weights file's ending when a folder has spaces in its name."""
    text = text.strip().lstrip("`'\"")
    first = _TRAILING.sub("", text.split(" ")[0].rstrip("`'\""))
    if " " in text and re.match(r"[A-Za-z]:[\\/]|[/\\]", text):
        whole = _TRAILING.sub("", text)
        if not _WEIGHTS.search(first) and _WEIGHTS.search(whole) and whole.count(":") <= 1 and "  " not in whole:
            return whole
    return first or None
