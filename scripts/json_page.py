"""The reference page of what commands print with `--json`, made from the types of these documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from scripts.api_page import document_lines, in_cell
from stationmaster.cli import answers
from stationmaster.recipes.schema import Recipe
from stationmaster.station.wire.analysis import AnalysisDocument, ReportDocument
from stationmaster.station.wire.audit import AuditEntryDocument
from stationmaster.station.wire.checks import CheckDocument
from stationmaster.station.wire.comparison import ComparisonDocument
from stationmaster.station.wire.costs import BudgetDocument, CostsOverTimeDocument, PaidLineDocument
from stationmaster.station.wire.credits import (
    AccountChangeDocument,
    AccountDocument,
    EntryDocument,
    ProofDocument,
    RefundedDocument,
)
from stationmaster.station.wire.datasets import DatasetReportDocument, PackedDatasetDocument
from stationmaster.station.wire.history import LogDocument, LogMatchDocument
from stationmaster.station.wire.instances import SweepDocument
from stationmaster.station.wire.jobs import JobDocument
from stationmaster.station.wire.metrics import ImportedDocument
from stationmaster.station.wire.models import ModelDocument
from stationmaster.station.wire.notifications import DeliveryDocument, NoteDocument
from stationmaster.station.wire.offers import RankingDocument
from stationmaster.station.wire.overview import OverviewDocument
from stationmaster.station.wire.proposals import EstimateDocument, TermsDocument
from stationmaster.station.wire.recipes import RecipeProblemDocument
from stationmaster.station.wire.tokens import CreatedTokenDocument, SignInLinkDocument, TokenDocument
from stationmaster.station.wire.users import ListedUserDocument, UserDocument

ONE, LIST, LINES = "{}", "a list of {}", "one {} per line"


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command prints with `--json`."""

    command: str
    document: type[BaseModel]
    form: str = ONE
    #: With which options it prints this; empty: without any of those named for the same command.
    when: str = ""

    @property
    def title(self) -> str:
        return f"{self.command} {self.when}".strip()


PRINTED = (
    Printed("adopt", answers.SubmittedJob),
    Printed("adopt", TermsDocument, when="--dry-run"),
    Printed("analyze", AnalysisDocument),
    Printed("analyze", ReportDocument, when="FILE"),
    Printed("audit", AuditEntryDocument, LIST),
    Printed("cancel", answers.JobNote),
    Printed("compare", ComparisonDocument),
    Printed("costs", PaidLineDocument, LIST),
    Printed("costs", BudgetDocument, when="--budget"),
    Printed("costs", CostsOverTimeDocument, when="--over-time"),
    Printed("credits adjust", AccountChangeDocument),
    Printed("credits export", EntryDocument, LIST),
    Printed("credits grant", AccountChangeDocument),
    Printed("credits refund", RefundedDocument),
    Printed("credits show", AccountDocument, LIST),
    Printed("credits statement", EntryDocument, LIST),
    Printed("credits verify", ProofDocument),
    Printed("dataset check", DatasetReportDocument),
    Printed("dataset pack", PackedDatasetDocument),
    Printed("demo", answers.DemoResult),
    Printed("doctor", CheckDocument, LIST),
    Printed("estimate", EstimateDocument),
    Printed("init", answers.WrittenSettings),
    Printed("instances", SweepDocument),
    Printed("jobs", JobDocument, LIST),
    Printed("jobs prune", answers.PrunedJobs),
    Printed("jobs rm", answers.RemovedJob),
    Printed("keys check", answers.OwnKey),
    Printed("keys setup", answers.OwnKey),
    Printed("keys trust", answers.PinnedHostKey),
    Printed("logs", LogDocument, LINES),
    Printed("logs", LogMatchDocument, LINES, when="--grep"),
    Printed("logs", answers.ErrorLine, LINES, when="--errors"),
    Printed("metrics", answers.RunMetrics),
    Printed("metrics", answers.ExportedRows, when="--export"),
    Printed("metrics", ImportedDocument, when="--import"),
    Printed("metrics", answers.TableRows, when="--table"),
    Printed("models download", answers.CopiedFile),
    Printed("models list", ModelDocument, LIST),
    Printed("models publish", ModelDocument),
    Printed("models show", ModelDocument),
    Printed("monitor", answers.MonitorUpdate, LINES),
    Printed("monitor", answers.MonitorUpdate, when="--once"),
    Printed("notify inbox", NoteDocument, LIST),
    Printed("notify test", DeliveryDocument, LIST),
    Printed("offers", RankingDocument),
    Printed("parse", answers.ParsedLog),
    Printed("pull", answers.CopiedFiles),
    Printed("recipes lint", RecipeProblemDocument, LIST),
    Printed("recipes list", answers.RecipeLine, LIST),
    Printed("recipes new", answers.WrittenRecipe),
    Printed("recipes show", Recipe),
    Printed("replay", answers.ReplayedEvent, LINES),
    Printed("retry", answers.RetriedJob),
    Printed("retry", TermsDocument, when="--dry-run"),
    Printed("sample", answers.JobNote),
    Printed("sample", answers.AnsweredRequest, when="--wait"),
    Printed("save", answers.JobNote),
    Printed("save", answers.AnsweredRequest, when="--wait"),
    Printed("show", JobDocument),
    Printed("stop", answers.JobNote),
    Printed("store backup", answers.WrittenBackup),
    Printed("store check", answers.CheckedStore),
    Printed("store show", answers.ShownStore),
    Printed("sweep", SweepDocument),
    Printed("tokens create", CreatedTokenDocument),
    Printed("tokens link", SignInLinkDocument),
    Printed("tokens list", TokenDocument, LIST),
    Printed("tokens revoke", TokenDocument),
    Printed("train", answers.SubmittedJob),
    Printed("train", TermsDocument, when="--dry-run"),
    Printed("trust", answers.TrustedFile, LIST),
    Printed("trust", answers.ForgottenFile, LIST, when="--remove"),
    Printed("users add", UserDocument),
    Printed("users list", ListedUserDocument, LIST),
    Printed("users rm", answers.RemovedUser),
    Printed("users set", UserDocument),
    Printed("users show", UserDocument),
    Printed("watch", OverviewDocument, LINES),
    Printed("watch", OverviewDocument, when="--once"),
    Printed("watch", JobDocument, when="JOB"),
)
"""Every command that prints JSON.

A new one needs a line here, and a try in tests/acceptance/cli/test_json_contract.py.
"""

WITHOUT_JSON: dict[str, str] = {
    "completion": "prints a script",
    "serve": "runs until you stop it",
    "simulator": "runs until you stop it",
    "ssh": "opens a shell",
    "sweeper": "runs until you stop it",
    "up": "runs until you stop it",
    "worker": "runs until you stop it",
}
"""The commands that print no JSON, and why."""

_INTRODUCTION = """\
# JSON

`--json`, before or after the command, prints JSON on standard output and nothing else there. This page is made from
the code. Commands differ in what they print; every document has a table of its fields below.

- Names are stable: fields are added, never renamed or removed. Ignore those that you do not know.
- Names are in snake_case, except a few that other programs expect: `providerState` with its fields, `progressLog`, and
  `isStalling`, `currentStep`, `totalSteps` of `replay`.
- Times are ISO 8601 in UTC. Unknown values are `null`. A measured number that is not finite is the text `NaN`,
  `Infinity` or `-Infinity`. Money is in dollars, or in whole micro-dollars where the name ends in `_micros`.
- Errors go to standard error as one line and a `hint:`; the [exit code](exit-codes.md) is for programs.
- States, outcomes and reasons are explained in [states](states.md).
- The [HTTP API](api.md) answers the same documents. Only lists differ: it answers pages,
  `{"items": […], "next": …}`."""


def json_page(made: str) -> str:
    """The page; `made` is the line that says how it was made."""
    lines = [
        made,
        _INTRODUCTION,
        "",
        "## Commands",
        "",
        "| command | prints |",
        "|---|---|",
        *_command_rows(),
        "",
        "Without `--json`: " + "; ".join(f"`{name}` ({why})" for name, why in WITHOUT_JSON.items()) + ".",
        "",
        "## Documents",
        *(line for name, schema in documents().items() for line in document_lines(name, schema)),
    ]
    return "\n".join(lines) + "\n"


def documents() -> dict[str, dict[str, Any]]:
    """The JSON schema of every document that a command prints, by its name, with those inside of it."""
    kinds = dict.fromkeys(each.document for each in PRINTED if each.document is not Recipe)
    _, described = models_json_schema([(kind, "serialization") for kind in kinds])
    return dict(sorted(described["$defs"].items()))


def _command_rows() -> Iterator[str]:
    for each in PRINTED:
        yield f"| `{each.title}` | {in_cell(each.form.format(_link(each.document)))} |"


def _link(document: type[BaseModel]) -> str:
    if document is Recipe:
        return "the [recipe](recipe.schema.json)"
    return f"[{document.__name__}](#{document.__name__.lower()})"
