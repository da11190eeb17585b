"""The questions of `stationmaster init`. Each has a default, and an answer that is not valid is asked for again."""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import typer

from stationmaster.cli.person import Person, TerminalPerson, ask_until_valid
from stationmaster.errors import ConfigInvalid, UserError

if TYPE_CHECKING:
    from stationmaster.station.local.config_writer import ConfigWriter

Answers = dict[str, Any]
"""Settings by their dotted names."""


class Confidant(Person, Protocol):
    def secret(self, question: str) -> str:
        """What the person types, which is not shown. Raises typer.Abort or Exit if they leave."""


class TerminalConfidant(TerminalPerson):
    def secret(self, question: str) -> str:
        try:
            return getpass.getpass(question).strip()
        except EOFError:
            raise typer.Abort from None
        except KeyboardInterrupt:
            typer.echo("\naborted; nothing was changed", err=True)
            raise typer.Exit(130) from None


def ask_all(person: Confidant, writer: ConfigWriter, chosen: Answers, *, environ: Mapping[str, str]) -> Answers:
    """What was chosen before, and the answers; together they are valid."""
    person.tell(f"This writes {writer.path}. Enter takes the value in brackets; Ctrl-C aborts.")
    for subject in (_provider, _spending, _models, _notifications):
        found = _ask_until_together_valid(person, writer, chosen, subject, environ)
        chosen = {**found, **chosen}
    return chosen


Subject = Callable[[Confidant, Answers, Mapping[str, str]], Answers]


def _ask_until_together_valid(
    person: Confidant, writer: ConfigWriter, chosen: Answers, subject: Subject, environ: Mapping[str, str]
) -> Answers:
    """The answers about one subject, which may need each other; all of them again if they are not valid."""
    person.tell("")

    def read(answers: Answers) -> Answers:
        try:
            writer.settings_with({**answers, **chosen})
        except ConfigInvalid as problem:
            raise UserError(str(problem), hint="once more") from None
        return answers

    for _ in range(5):
        try:
            return read(subject(person, chosen, environ))
        except UserError as problem:
            person.tell(f"  {problem}" + (f" ({problem.hint})" if problem.hint else ""))
    raise UserError("no valid answers after 5 tries; nothing was written", hint="pass --set NAME=VALUE")


def _provider(person: Confidant, chosen: Answers, environ: Mapping[str, str]) -> Answers:
    answers: Answers = {}
    if "provider" not in chosen:
        places = {
            "loopback": "this computer",
            "vastai": "rented GPUs at Vast.ai",
            "ssh": "machines of your own, over SSH",
            "simulator": "a simulated Vast.ai on this computer, which costs nothing",
        }
        answers["provider"] = _choice(person, "Where should trainings run by default?", places, option="provider")
    provider = {**answers, **chosen}["provider"]
    if provider == "vastai":
        answers |= _vast_key(person, environ)
    if provider == "ssh" and "ssh.hosts" not in chosen:
        answers["ssh.hosts"] = [_own_machine(person)]
    return answers


def _vast_key(person: Confidant, environ: Mapping[str, str]) -> Answers:
    if any(environ.get(f"VASTAI_API_KEY{suffix}") for suffix in ("", "_FILE", "_COMMAND")):
        person.tell("The Vast.ai key stays in the environment (VASTAI_API_KEY).")
        return {}
    key = person.secret("Vast.ai API key, from https://cloud.vast.ai/manage-keys/ (hidden) [later]: ")
    return {"vastai.api_key": key} if key else {}


def _own_machine(person: Confidant) -> Answers:
    def read(text: str) -> Answers:
        found = re.fullmatch(r"(?:(?P<user>[^@\s]+)@)?(?P<address>[^@\s:]+)(?::(?P<port>\d+))?", text or "localhost")
        if found is None:
            raise UserError(f"{text} is not a machine", hint="write [USER@]HOST[:PORT]")
        machine: Answers = {name: value for name, value in found.groupdict().items() if value}
        return {**machine, "port": int(machine["port"])} if "port" in machine else machine

    return ask_until_valid(person, "Your machine, as [USER@]HOST[:PORT] [localhost]: ", read, option="ssh.hosts")


def _spending(person: Confidant, chosen: Answers, environ: Mapping[str, str]) -> Answers:
    if not str(chosen.get("provider", "")).startswith("vastai"):
        return {}
    questions = {
        "vastai.max_bid_per_hour": ("Highest price of a machine, in dollars per hour", 4.5),
        "limits.daily_spend": ("Daily spending limit, in dollars; 0 means no limit", 0),
    }
    return {
        name: _number(person, question, default, option=name)
        for name, (question, default) in questions.items()
        if name not in chosen
    }


def _models(person: Confidant, chosen: Answers, environ: Mapping[str, str]) -> Answers:
    if any(name.startswith(("hub.", "bucket.")) for name in chosen):
        return {}
    places = {
        "here": "only on this computer",
        "hub": "also to the Hugging Face Hub, as private repositories",
        "bucket": "also to a bucket: Cloudflare R2, Amazon S3 or another S3-compatible service",
    }
    place = _choice(person, "Where should finished models go?", places, option="hub.publish")
    if place == "hub":
        token = person.secret("Hugging Face token with write access (hidden): ")
        return {"hub.publish": True, "hf_token": token}
    if place == "bucket":
        return _bucket(person)
    return {}


def _bucket(person: Confidant) -> Answers:
    answers: Answers = {
        "bucket.name": person.answer("Name of the bucket: "),
        "bucket.endpoint": person.answer("URL of its service, e.g. https://ACCOUNT.r2.cloudflarestorage.com: "),
        "bucket.access_key": person.secret("Access key ID (hidden): "),
        "bucket.secret_key": person.secret("Secret access key (hidden): "),
    }
    return {name: value for name, value in answers.items() if value}


def _notifications(person: Confidant, chosen: Answers, environ: Mapping[str, str]) -> Answers:
    if any(name.startswith("notify.") for name in chosen):
        return {}
    ways = {
        "inbox": "only in `stationmaster notify inbox`",
        "telegram": "Telegram, through a bot of yours",
        "discord": "Discord, through a bot of yours",
        "email": "e-mail",
    }
    match _choice(person, "How should you be notified?", ways, option="notify.telegram_id"):
        case "telegram":
            return {
                "notify.telegram_bot_token": person.secret("Token of the bot, from @BotFather (hidden): "),
                "notify.telegram_id": person.answer("Your Telegram chat, by number or @name: "),
            }
        case "discord":
            return {
                "notify.discord_bot_token": person.secret("Token of the bot (hidden): "),
                "notify.discord_id": person.answer("Your Discord user ID: "),
            }
        case "email":
            return _mail(person)
    return {}


def _mail(person: Confidant) -> Answers:
    address = person.answer("Your e-mail address: ")
    answers: Answers = {
        "notify.email": address,
        "notify.mail.host": person.answer("Host name of the SMTP server: "),
        "notify.mail.sender": person.answer(f"Sender address [{address}]: ") or address,
        "notify.mail.user": person.answer("Login user at the server [no login]: "),
    }
    if answers["notify.mail.user"]:
        answers["notify.mail.password"] = person.secret("Password of that user (hidden): ")
    return {name: value for name, value in answers.items() if value}


def _choice(person: Confidant, question: str, choices: Mapping[str, str], *, option: str) -> str:
    """One of the choices, by number or name; the first is the default."""
    names: Sequence[str] = tuple(choices)
    person.tell(question)
    for number, (name, meaning) in enumerate(choices.items(), start=1):
        person.tell(f"  {number}  {name:<{max(map(len, names))}}  {meaning}")

    def read(text: str) -> str:
        wanted = text.lower() or "1"
        if wanted.isdecimal() and 0 < int(wanted) <= len(names):
            return names[int(wanted) - 1]
        if wanted in names:
            return wanted
        raise UserError(f"{text} is not one of them", hint=f"type a number from 1 to {len(names)}, or a name")

    return ask_until_valid(person, "Choice [1]: ", read, option=f"--set {option}=…")


def _number(person: Confidant, question: str, default: float, *, option: str) -> float:
    def read(text: str) -> float:
        try:
            return float(text) if text else default
        except ValueError:
            raise UserError(f"{text} is not a number") from None

    return ask_until_valid(person, f"{question} [{default:g}]: ", read, option=f"--set {option}=…")
