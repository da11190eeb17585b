"""`stationmaster dataset`: check a dataset before you spend money, or pack it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from stationmaster.cli.console import PrintableConsole
from stationmaster.cli.context import JsonOption, given_path, local_station_of, print_json, station_of
from stationmaster.cli.file_modes import as_the_person
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.cli.progress_lines import show_dataset
from stationmaster.station.datasets import (
    CaptionRule,
    DatasetKind,
    DatasetProblem,
    DatasetReport,
    DatasetRules,
    PackedDataset,
    parse_reference,
    shown,
)

app = CommandGroup(help="Check or pack a dataset before you spend money.")

_SHOWN_PER_CODE = 5
_DEFAULTS = DatasetRules()

SourceArgument = Annotated[
    str,
    typer.Argument(
        help="Folder, .tar or .zip file, s3://BUCKET/PREFIX, hf://datasets/OWNER/NAME[@REVISION].", show_default=False
    ),
]


@app.command("check")
def check_command(
    context: typer.Context,
    source: SourceArgument,
    recipe: Annotated[str | None, typer.Option(help="Apply the rules of this recipe instead.")] = None,
    kind: Annotated[DatasetKind, typer.Option(metavar="|".join(DatasetKind), help="Kind of dataset.")] = _DEFAULTS.kind,
    captions: Annotated[
        CaptionRule, typer.Option(metavar="|".join(CaptionRule), help="Whether images need captions.")
    ] = _DEFAULTS.captions,
    trigger: Annotated[str | None, typer.Option(help="Word that captions should contain.")] = None,
    min_images: Annotated[int, typer.Option(min=1, help="Minimum number of images.")] = _DEFAULTS.min_images,
    min_side: Annotated[
        int, typer.Option(min=1, help="Minimum length of the shorter side, in pixels.")
    ] = _DEFAULTS.min_side,
    control: Annotated[str | None, typer.Option(help="Subfolder with the paired control images.")] = None,
    min_rows: Annotated[
        int, typer.Option(min=1, help="Minimum number of rows of a text dataset.")
    ] = _DEFAULTS.min_rows,
    fix: Annotated[
        Path | None, typer.Option(parser=given_path, help="Write a repaired copy to this new folder.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a dataset; print each problem and how to fix it.

    Exit code 5 if training on it would waste money.

    Examples:

      stationmaster dataset check ./cats --trigger ohwx --captions required

      stationmaster dataset check ./pairs --recipe flux-kontext-lora@2

      stationmaster dataset check ./cats --fix ./cats-repaired

      stationmaster dataset check s3://pictures/cats
    """
    rules = DatasetRules(
        kind=kind,
        captions=captions,
        trigger=trigger,
        min_images=min_images,
        min_side=min_side,
        control_folder=control,
        min_rows=min_rows,
    )
    if recipe is not None:
        with station_of(context, wake=False) as asked:  # a server may have recipes that this computer does not
            rules = asked.datasets.rules_of(recipe, trigger=trigger)
    with local_station_of(context, wake=False) as station:
        datasets = station.datasets
        dataset = parse_reference(source)
        with show_dataset(dataset, hidden=as_json) as bars:
            if fix is None:
                report = datasets.check(dataset, rules, progress=bars.progress)
            else:
                with as_the_person():
                    report = datasets.repair(dataset, fix, rules, progress=bars.progress)
    if as_json:
        from stationmaster.station.wire.datasets import DatasetReportDocument

        print_json(DatasetReportDocument.of(report).model_dump(mode="json"))
    else:
        show(report_lines(report, repaired=fix))
    report.raise_for_errors()


@app.command("pack")
def pack_command(
    context: typer.Context,
    source: SourceArgument,
    target: Annotated[
        Path,
        typer.Argument(
            parser=given_path, help="File to write, or a folder (file name: its SHA-256).", show_default=False
        ),
    ],
    zstd: Annotated[bool, typer.Option("--zstd", help="Compress (needs the zstandard module).")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is not an archive.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a dataset as one reproducible tar file.

    The same content gives the same bytes on any machine. A manifest with every file's SHA-256 is written beside it.

    Examples:

      stationmaster dataset pack ./cats cats.tar

      stationmaster dataset pack ./cats ./archives/ --json
    """
    dataset = parse_reference(source)
    with (
        local_station_of(context, wake=False) as station,
        show_dataset(dataset, hidden=as_json) as bars,
        as_the_person(),
    ):
        packed = station.datasets.pack(
            dataset, target, zstd=zstd, force=force, progress=bars.progress, packing=bars.packing
        )
    if as_json:
        from stationmaster.station.wire.datasets import PackedDatasetDocument

        print_json(PackedDatasetDocument.of(packed).model_dump(mode="json"))
    else:
        show(packed_lines(packed))


def report_lines(report: DatasetReport, *, repaired: Path | None = None) -> Iterator[str]:
    """The report as text: contents, each kind of problem with its places and its fix, the verdict."""
    yield _summary(report)
    if repaired is not None:
        yield from (f"  {repair}" for repair in report.repairs)
        yield f"repaired copy: {shown(str(repaired))}"
    for _, group in groupby(sorted(report.problems, key=_kind_of), key=_kind_of):
        yield ""
        yield from _group_lines(list(group))
    yield ""
    yield _verdict(report)


def packed_lines(packed: PackedDataset) -> Iterator[str]:
    yield f"{shown(str(packed.path))}: {packed.files} files, {_size(packed.size)}"
    yield f"sha256       {packed.sha256}"
    yield f"fingerprint  {packed.fingerprint}"
    yield f"manifest     {shown(str(packed.manifest))}"


def show(lines: Iterator[str]) -> None:
    """Print the lines as they are: a file name is not markup, and colour only repeats what the text says."""
    console = PrintableConsole(soft_wrap=True)
    for line in lines:
        style = next((style for word, style in _STYLES.items() if line.startswith(word)), "")
        console.print(Text(line, style=style))


_STYLES = {"error": "red", "not ready": "red", "warning": "yellow", "good": "green"}


def _summary(report: DatasetReport) -> str:
    if report.rows:
        return f"{_count(report.rows, 'row')} in {_count(report.files, 'file')}, {_size(report.bytes)}"
    pictures = f"{_count(report.images, 'image')}, {_count(report.captions, 'caption')}"
    return f"{pictures}, {_count(report.files, 'file')}, {_size(report.bytes)}"


def _kind_of(problem: DatasetProblem) -> tuple[str, str]:
    return problem.severity.value, problem.code  # "error" sorts before "warning"


def _group_lines(problems: Sequence[DatasetProblem]) -> Iterator[str]:
    first = problems[0]
    yield f"{first.severity.value}: {first.code}" + (f" ({len(problems)})" if len(problems) > 1 else "")
    for problem in problems[:_SHOWN_PER_CODE]:
        yield f"  {shown(problem.path)}: {problem.message}" if problem.path else f"  {problem.message}"
    if len(problems) > _SHOWN_PER_CODE:
        yield f"  … and {len(problems) - _SHOWN_PER_CODE} more (--json lists all)"
    yield f"  fix: {first.fix}"


def _verdict(report: DatasetReport) -> str:
    warnings = _count(len(report.warnings), "warning")
    if report.errors:
        return f"not ready to train: {_count(len(report.errors), 'error')}, {warnings}"
    return f"good to train, {warnings}" if report.warnings else "good to train"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:,.1f} kB"
