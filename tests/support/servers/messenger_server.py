"""Telegram, Discord, Slack and what webhooks and Apprise write to, on this computer; requests are checked as there."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TELEGRAM_TOKEN = "123456:telegram-secret"
DISCORD_TOKEN = "discord-secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message that arrived, as the person sees it, with the request that brought it."""

    service: str
    recipient: str
    text: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    document: Any
    headers: dict[str, str] = field(default_factory=dict)


TELEGRAM_BLOCKED = Answer(
    status=403,
    document={"ok": False, "error_code": 403, "description": "Forbidden: bot was blocked by the user"},
)
TELEGRAM_NO_CHAT = Answer(
    status=400, document={"ok": False, "error_code": 400, "description": "Bad Request: chat not found"}
)
DISCORD_CLOSED = Answer(status=403, document={"message": "Cannot send messages to this user", "code": 50007})


def telegram_busy(seconds: int) -> Answer:
    said = f"Too Many Requests: retry after {seconds}"
    document = {"ok": False, "error_code": 429, "description": said, "parameters": {"retry_after": seconds}}
    return Answer(status=429, document=document)


def discord_busy(seconds: float) -> Answer:
    document = {"message": "You are being rate limited.", "retry_after": seconds, "global": False}
    return Answer(status=429, document=document, headers={"Retry-After": str(int(seconds) + 1)})


class MessengerServer:
    """Use as a context manager. `troubles` are answers given, once each, before requests are looked at."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.wrong: list[str] = []
        services = ("telegram", "discord", "slack", "webhook", "apprise")
        self.troubles: dict[str, list[Answer]] = {service: [] for service in services}
        self.calls: list[str] = []
        self.after_receiving: Callable[[Received], None] = lambda _message: None
        self.answered_buttons: list[str] = []
        self._known: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._updates: list[dict[str, Any]] = []
        self._files: dict[str, bytes] = {}
        self._news = threading.Condition()
        self._is_closing = False

    def __enter__(self) -> MessengerServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                raw = self.rfile.read(length)
                answer = outer._answer(self.path, {k.lower(): v for k, v in self.headers.items()}, raw)
                body = (
                    answer.document.encode()
                    if isinstance(answer.document, str)
                    else json.dumps(answer.document).encode()
                )
                self.send_response(answer.status)
                for name, value in {"Content-Length": str(len(body)), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                """A file that somebody sent to the bot, or who the bot is."""
                if self.path == "/discord/api/v10/users/@me":
                    known = self.headers["Authorization"] == f"Bot {DISCORD_TOKEN}"
                    document = {"id": "1", "username": "trains"} if known else {"message": "401: Unauthorized"}
                    return self._send(200 if known else 401, json.dumps(document).encode())
                prefix = f"/telegram/file/bot{TELEGRAM_TOKEN}/"
                body = outer._files.get(self.path.removeprefix(prefix)) if self.path.startswith(prefix) else None
                return self._send(404 if body is None else 200, body or b"")

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._news:
            self._is_closing = True
            self._news.notify_all()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def apprise_url(self) -> str:
        """This server as Apprise writes it."""
        return f"json://{self.url.removeprefix('http://')}/apprise/ops"

    @property
    def environ(self) -> dict[str, str]:
        """Settings that lead every message here."""
        return {
            "STATIONMASTER_NOTIFY__TELEGRAM_BASE_URL": f"{self.url}/telegram",
            "STATIONMASTER_NOTIFY__TELEGRAM_BOT_TOKEN": TELEGRAM_TOKEN,
            "STATIONMASTER_NOTIFY__DISCORD_BASE_URL": f"{self.url}/discord/api/v10",
            "STATIONMASTER_NOTIFY__DISCORD_BOT_TOKEN": DISCORD_TOKEN,
        }

    def write_to_bot(self, chat: int, text: str) -> None:
        """A person writes to the bot."""
        self._update("message", {"message_id": len(self._updates) + 1, "chat": {"id": chat}, "text": text})

    def send_photo_to_bot(self, chat: int, photo: bytes, caption: str) -> None:
        """A person sends a photo; Telegram offers it in two sizes."""
        number = len(self._updates) + 1
        self._files[f"photos/{number}.jpg"] = photo
        sizes = [{"file_id": "small", "width": 90}, {"file_id": str(number), "width": 1280}]
        message = {"message_id": number, "chat": {"id": chat}, "photo": sizes, "caption": caption}
        self._update("message", message)

    def press_button(self, chat: int, data: str) -> None:
        """A person presses a button below one of the bot's messages."""
        query = {"id": f"press-{len(self._updates)}", "message": {"chat": {"id": chat}}, "data": data}
        self._update("callback_query", query)

    def buttons(self) -> list[dict[str, str]]:
        """The buttons below the last message that has some."""
        with self._lock:
            keyboards = [each.body["reply_markup"] for each in self.received if "reply_markup" in each.body]
        return [button for row in keyboards[-1]["inline_keyboard"] for button in row]

    def _update(self, kind: str, content: dict[str, Any]) -> None:
        with self._news:
            self._updates.append({"update_id": len(self._updates) + 1, kind: content})
            self._news.notify_all()

    def _updates_from(self, offset: int, *, seconds: float) -> list[dict[str, Any]]:
        """What the bot has not confirmed yet; waits for the first."""

        def pending() -> list[dict[str, Any]]:
            return [update for update in self._updates if update["update_id"] >= offset]

        with self._news:
            self._news.wait_for(lambda: self._is_closing or pending(), timeout=seconds)
            return pending()

    def texts(self, service: str = "telegram") -> list[str]:
        with self._lock:
            return [message.text for message in self.received if message.service == service]

    def _answer(self, path: str, headers: dict[str, str], raw: bytes) -> Answer:
        service = path.split("/")[1]
        body = json.loads(raw)
        with self._lock:
            self.calls.append(path)
            if self.troubles[service]:
                return self.troubles[service].pop(0)
        return {
            "telegram": self._telegram,
            "discord": self._discord,
            "slack": self._slack,
            "webhook": self._webhook,
            "apprise": self._apprise,
        }[service](path, headers, body)

    def _telegram(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        address, _, method = path.rpartition("/")
        if address != f"/telegram/bot{TELEGRAM_TOKEN}":
            return Answer(status=401, document={"ok": False, "error_code": 401, "description": "Unauthorized"})
        if method == "getMe":
            return Answer(status=200, document={"ok": True, "result": {"id": 7, "username": "trains_bot"}})
        if method == "getChat":
            known_chat = body["chat_id"] == "4711"
            return Answer(status=200, document={"ok": True, "result": {"id": 4711}}) if known_chat else TELEGRAM_NO_CHAT
        if method == "getUpdates":
            found = self._updates_from(body["offset"], seconds=body["timeout"])
            return Answer(status=200, document={"ok": True, "result": found})
        if method == "getFile":
            place = f"photos/{body['file_id']}.jpg"
            return Answer(status=200, document={"ok": True, "result": {"file_path": place}})
        if method == "answerCallbackQuery":
            self.answered_buttons.append(body["callback_query_id"])
            return Answer(status=200, document={"ok": True, "result": True})
        if method != "sendMessage":
            return Answer(status=404, document={"ok": False, "error_code": 404, "description": "Not Found"})
        known: dict[str, type] = {"parse_mode": str, "link_preview_options": dict, "reply_markup": dict}
        self._check("telegram", body, {"chat_id": str, "text": str}, known)
        text = body["text"]
        if body.get("parse_mode") == "HTML":
            if re.search(r"<(?!/?(?:b|i|u|s|a|code|pre)\b)|&(?!(?:lt|gt|amp|quot|#\d+);)", text):
                said = "Bad Request: can't parse entities: Unsupported start tag"
                return Answer(status=400, document={"ok": False, "error_code": 400, "description": said})
            text = html.unescape(re.sub(r"</?(?:b|i|u|s|a|code|pre)>", "", text))
        if len(text.encode("utf-16-le")) // 2 > 4096:
            said = "Bad Request: message is too long"
            return Answer(status=400, document={"ok": False, "error_code": 400, "description": said})
        self._keep("telegram", body["chat_id"], text, headers, body)
        return Answer(status=200, document={"ok": True, "result": {"message_id": len(self.received), "text": text}})

    def _discord(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        if headers.get("authorization") != f"Bot {DISCORD_TOKEN}":
            return Answer(status=401, document={"message": "401: Unauthorized", "code": 0})
        if not headers.get("user-agent", "").startswith("DiscordBot ("):
            self.wrong.append("discord: no User-Agent of a bot")
        if path == "/discord/api/v10/users/@me/channels":
            self._check("discord", body, {"recipient_id": str}, {})
            return Answer(status=200, document={"id": f"dm-{body['recipient_id']}", "type": 1})
        found = re.fullmatch(r"/discord/api/v10/channels/dm-(\w+)/messages", path)
        if not found:
            return Answer(status=404, document={"message": "Unknown Channel", "code": 10003})
        self._check("discord", body, {"content": str, "allowed_mentions": dict}, {"nonce": str, "enforce_nonce": bool})
        if len(body["content"]) > 2000 or len(body["nonce"]) > 25:
            return Answer(status=400, document={"message": "Invalid Form Body", "code": 50035})
        text = re.sub(r"\\([^\w\s]|_)", r"\1", body["content"])
        if not self._is_repeated("discord", body["nonce"]):
            self._keep("discord", found[1], text, headers, body)
        return Answer(status=200, document={"id": f"m-{body['nonce']}", "content": body["content"]})

    def _slack(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        self._check("slack", body, {"text": str}, {"mrkdwn": bool})
        self._keep("slack", path, html.unescape(body["text"]), headers, body)
        return Answer(status=200, document="ok")

    def _webhook(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        if not self._is_repeated("webhook", headers["idempotency-key"]):
            self._keep("webhook", path, body["text"], headers, body)
        return Answer(status=204, document="")

    def _apprise(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        """What the notification library posts to an address that begins with json://."""
        self._keep("apprise", path, f"{body['title']}\n\n{body['message']}", headers, body)
        return Answer(status=200, document="")

    def _check(self, service: str, body: dict[str, Any], needed: dict[str, type], allowed: dict[str, type]) -> None:
        for name, kind in needed.items():
            if not isinstance(body.get(name), kind):
                self.wrong.append(f"{service}: {name} is {body.get(name)!r}")
        for name, value in body.items():
            if name not in needed and not isinstance(value, allowed.get(name, ())):
                self.wrong.append(f"{service}: {name} is not known so")

    def _is_repeated(self, service: str, key: str) -> bool:
        with self._lock:
            is_known = (service, key) in self._known
            self._known.add((service, key))
            return is_known

    def _keep(self, service: str, recipient: str, text: str, headers: dict[str, str], body: dict[str, Any]) -> None:
        message = Received(service=service, recipient=recipient, text=text, headers=headers, body=body)
        with self._lock:
            self.received.append(message)
        self.after_receiving(message)
