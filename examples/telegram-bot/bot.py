"""A Telegram bot for Stationmaster: propose a training, confirm its price, watch it, stop it.

It speaks the Telegram Bot API by long polling and Stationmaster's HTTP API, and stores nothing itself: kill it at any
time and start it again. Its settings are environment variables, see README.md.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

POLL_SECONDS = 30
LONGEST_TEXT = 4000  # Telegram accepts 4096 characters
OPTIONS = ("name", "trigger", "steps", "max_price", "max_hours", "max_spend", "id")
HELP = """/train RECIPE DATASET [steps=2000 trigger=ohwx max_spend=5 …]: show time and cost, then ask
  DATASET is upload:ID, s3://…, hf://… or photos: the photos that you sent me
/recipes: what can be trained
/jobs: jobs that have not ended
/status JOB, /stop JOB (keeps the model), /cancel JOB (discards it)
/newphotos: start a new set of photos; captions become the images' captions"""


class Refused(Exception):
    """The server refuses a request, or does not answer; the text is for the person."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    telegram_url: str
    telegram_token: str
    server: str
    token: str
    chats: frozenset[str]


class Station:
    """Stationmaster's API, as far as the bot uses it."""

    def __init__(self, url: str, token: str) -> None:
        self._client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=600.0)

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """The JSON that the server answers. Raises Refused with the problem and its hint."""
        try:
            answer = self._client.request(method, path, **options)
        except httpx.HTTPError as problem:
            raise Refused(f"Stationmaster does not answer: {problem}") from None
        if answer.is_success:
            return answer.json() if answer.content else None
        if answer.headers.get("content-type") != "application/problem+json":
            raise Refused(f"Stationmaster answers {answer.status_code}")
        problem_document = answer.json()
        hint = problem_document.get("hint")
        raise Refused(problem_document["detail"] + (f"\nHint: {hint}" if hint else ""))


class Telegram:
    def __init__(self, url: str, token: str) -> None:
        self._token = token
        self._client = httpx.Client(base_url=url.rstrip("/"), timeout=POLL_SECONDS + 30.0)

    def call(self, name: str, **values: Any) -> Any:
        """One method of the Bot API. Raises httpx.HTTPError."""
        answer = self._client.post(f"/bot{self._token}/{name}", json=values)
        if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            time.sleep(answer.json()["parameters"]["retry_after"])
            return self.call(name, **values)
        return answer.raise_for_status().json()["result"]

    def file(self, file_id: str) -> bytes:
        path = self.call("getFile", file_id=file_id)["file_path"]
        return self._client.get(f"/file/bot{self._token}/{path}").raise_for_status().content

    def say(self, chat: str, text: str, **more: Any) -> None:
        self.call("sendMessage", chat_id=chat, text=text[:LONGEST_TEXT], **more)


class Bot:
    def __init__(self, settings: Settings) -> None:
        self._chats = settings.chats
        self._telegram = Telegram(settings.telegram_url, settings.telegram_token)
        self._station = Station(settings.server, settings.token)
        self._next_update = 0

    def run(self) -> None:
        while True:
            try:
                self._poll()
            except httpx.HTTPError as problem:
                kind = type(problem).__name__  # its text has the address, which has the bot's token
                print(f"Telegram does not answer: {kind}", file=sys.stderr, flush=True)
                time.sleep(3)

    def _poll(self) -> None:
        """Answer what came in. An update that was not answered comes again: doing it twice changes nothing."""
        asked = {"offset": self._next_update, "timeout": POLL_SECONDS}
        for update in self._telegram.call("getUpdates", **asked, allowed_updates=["message", "callback_query"]):
            try:
                if "callback_query" in update:
                    self._pressed(update["callback_query"])
                elif "message" in update:
                    self._said(update["message"])
            except httpx.HTTPStatusError as problem:  # such as a person who has blocked the bot: go on without them
                print(f"Telegram refuses an answer: {problem.response.status_code}", file=sys.stderr, flush=True)
            self._next_update = update["update_id"] + 1

    def _said(self, message: dict[str, Any]) -> None:
        chat = str(message["chat"]["id"])
        if chat not in self._chats:
            return self._telegram.say(chat, f"This chat ({chat}) may not use this bot. Add it to TELEGRAM_CHATS.")
        try:
            if "photo" in message:
                return self._telegram.say(chat, self._take_photo(chat, message))
            command, *words = message.get("text", "").split() or [""]
            if command.partition("@")[0] == "/train":
                return self._propose(chat, words)
            return self._telegram.say(chat, self._answer(chat, command.partition("@")[0], words))
        except Refused as problem:
            return self._telegram.say(chat, f"Error: {problem}")

    def _answer(self, chat: str, command: str, words: list[str]) -> str:
        match command, words:
            case "/recipes", []:
                found = self._station.ask("GET", "/api/recipes")["items"]
                return "\n".join(f"{one['recipe']}: {one['title']}" for one in found)
            case "/jobs", []:
                jobs = self._station.ask("GET", "/api/jobs", params={"limit": 20})["items"]
                return "\n".join(job_line(job) for job in jobs) or "No job is running or waiting."
            case "/status", [job]:
                return job_text(self._station.ask("GET", job_path(job)))
            case (("/stop" | "/cancel"), [job]):
                answer = self._station.ask("POST", f"{job_path(job)}{command}")
                return f"{answer['id']}: {answer['note']}"
            case "/newphotos", []:
                return f"Send the photos of {self._start_photos(chat)['name']} now."
            case _:
                return HELP

    def _propose(self, chat: str, words: list[str]) -> None:
        if len(words) < 2 or any("=" not in word for word in words[2:]):
            raise Refused("write /train RECIPE DATASET, then options as name=value")
        given = dict(word.split("=", 1) for word in words[2:])
        options: dict[str, Any] = {name: value for name, value in given.items() if name in OPTIONS}
        if "max_hours" in options:
            options["max_hours"] = number(options["max_hours"])
        others = {name: value for name, value in given.items() if name not in OPTIONS}
        dataset = self._photos(chat)["reference"] if words[1] == "photos" else words[1]
        body = {"recipe": words[0], "dataset": dataset, **options, "parameters": others}
        proposal = self._station.ask("POST", "/api/proposals", json=body)
        yes = {"text": "Confirm", "callback_data": f"yes:{proposal['id']}"}
        no = {"text": "Decline", "callback_data": f"no:{proposal['id']}"}
        self._telegram.say(chat, terms_text(proposal["terms"]), reply_markup={"inline_keyboard": [[yes, no]]})

    def _pressed(self, query: dict[str, Any]) -> None:
        """A button of a proposal. Pressing it again, or a second person pressing it, makes no second job."""
        chat = str(query["message"]["chat"]["id"])
        choice, _, proposal = query["data"].partition(":")
        path = f"/api/proposals/{quote(proposal, safe='')}"
        if chat not in self._chats:
            return
        try:
            if choice == "yes":
                text = submitted_text(self._station.ask("POST", f"{path}/submit"))
            else:
                self._station.ask("DELETE", path)
                text = "Declined; nothing was submitted."
        except Refused as problem:
            text = f"Error: {problem}"
        self._telegram.say(chat, text)
        self._telegram.call("answerCallbackQuery", callback_query_id=query["id"])

    def _take_photo(self, chat: str, message: dict[str, Any]) -> str:
        """The file is named after the message: a photo that arrives twice is stored once."""
        upload = self._photos(chat, start=True)
        largest = max(message["photo"], key=lambda size: size["width"])
        base = f"/api/datasets/{upload['id']}/files/{message['message_id']:08}"
        found = self._station.ask("PUT", f"{base}.jpg", content=self._telegram.file(largest["file_id"]))
        if message.get("caption"):
            self._station.ask("PUT", f"{base}.txt", content=message["caption"].encode())
        problems = "".join(f"\nNote: {one['message']}" for one in found["problems"])
        return f"Added to {upload['name']}. Train on it: /train RECIPE photos{problems}"

    def _photos(self, chat: str, *, start: bool = False) -> Any:
        """The newest set of photos of a chat."""
        name = photos_name(chat)
        for upload in self._station.ask("GET", "/api/datasets", params={"limit": 200})["items"]:
            if upload["name"] == name:
                return upload
        if start:
            return self._start_photos(chat)
        raise Refused("there are no photos of this chat yet; send me some")

    def _start_photos(self, chat: str) -> Any:
        return self._station.ask("POST", "/api/datasets", json={"name": photos_name(chat)})


def photos_name(chat: str) -> str:
    return f"photos-{chat}"


def job_path(job: str) -> str:
    return f"/api/jobs/{quote(job, safe='')}"


def job_line(job: dict[str, Any]) -> str:
    percent = job["progress"]["percent"]
    return f"{job['id']} {job['name']}: {job['shown']}" + ("" if percent is None else f" {percent:g} %")


def job_text(job: dict[str, Any]) -> str:
    progress = job["progress"]
    lines = [job_line(job), f"{job['recipe']} on {job['execution']['provider']}, ${job['cost_usd']:.2f} so far"]
    if progress["step"] is not None:
        loss = "" if progress["loss"] is None else f", loss {progress['loss']}"
        lines.append(f"step {progress['step']} of {progress['total_steps'] or '?'}{loss}")
    lines += [str(job[name]) for name in ("explanation", "recommendation", "model") if job[name]]
    return "\n".join(lines)


def terms_text(terms: dict[str, Any]) -> str:
    quote_, limits = terms["quote"], terms["limits"]
    hours, cost = quote_["hours"], quote_["cost_usd"]
    machine = f"{terms['provider']}, {quote_['gpu'] or 'no GPU'} at ${quote_['price_per_hour_usd']:.3f}/h"
    return "\n".join(
        [
            f"{terms['name']}: {terms['recipe']}, {terms['images'] or terms['rows']} examples",
            f"Machine: {machine}",
            f"Time: {hours['expected']:.1f} h (between {hours['low']:.1f} and {hours['high']:.1f})",
            f"Cost: ${cost['expected']:.2f} (between ${cost['low']:.2f} and ${cost['high']:.2f})",
            f"Limit: {limits['max_hours']:.1f} h and ${limits['max_spend_usd']:.2f}",
            *(f"Note: {note}" for note in terms["notes"]),
        ]
    )


def submitted_text(submitted: dict[str, Any]) -> str:
    job = submitted["job"]["id"]
    said = "submitted" if submitted["created"] else "was submitted already"
    notes = "".join(f"\nNote: {note}" for note in submitted["notes"])
    return f"Job {job} {said}. /status {job}{notes}"


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refused(f"{text} is not a number") from None


def settings_of_environment() -> Settings:
    try:
        return Settings(
            telegram_url=os.environ.get("TELEGRAM_API_URL", "https://api.telegram.org"),
            telegram_token=os.environ["TELEGRAM_BOT_TOKEN"],
            server=os.environ["STATIONMASTER_SERVER"],
            token=os.environ["STATIONMASTER_TOKEN"],
            chats=frozenset(os.environ["TELEGRAM_CHATS"].replace(",", " ").split()),
        )
    except KeyError as missing:
        sys.exit(f"error: {missing.args[0]} is not set; see README.md")


if __name__ == "__main__":
    try:
        Bot(settings_of_environment()).run()
    except KeyboardInterrupt:
        pass  # the usual way to end it
