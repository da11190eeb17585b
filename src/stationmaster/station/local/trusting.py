"""Trust in settings files of the current folder: recorded in the home, bound to their content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stationmaster.config import home_of_person, load_settings, names_set_in
from stationmaster.errors import ConfigInvalid, NotFound, UserError
from stationmaster.settings.config_files import DOTENV, config_candidates, folder_files, is_folder_file
from stationmaster.settings.trusted_files import TrustedFiles, digest_of, read_settings_file

_NAMES_HINT = "settings are read from .env and stationmaster.toml (or .yaml, .yml) in the current folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """A settings file in a folder, and what it sets."""

    path: Path
    sha256: str
    names: tuple[str, ...]  # of the settings, as they are written in the file


class FolderTrust:
    """What the person trusts, as recorded in the home that no file in the folder can choose."""

    def __init__(self, environ: Mapping[str, str], *, home: Path | None, folder: Path) -> None:
        """Raises ConfigInvalid."""
        self._environ = environ
        self._given_home = home
        self._folder = folder
        self._trusted = TrustedFiles(home_of_person(environ, home=home, folder=folder))

    def trust(self, paths: Sequence[Path]) -> list[SettingsFile]:
        """Trust these files, by default all of the folder that set something, with the content that they have now.

        Raises NotFound if there is none, UserError for other files, ConfigInvalid for one that cannot be read.
        """
        found = [_described(path) for path in self._chosen(paths)]
        if not paths:
            found = [file for file in found if file.names]
        if not found:
            raise NotFound(f"no file in {self._folder} has settings", hint=_NAMES_HINT)
        self._trusted.trust({file.path: file.sha256 for file in found})
        for folder in {file.path.parent for file in found}:
            self._carry_over(folder)
        return found

    def forget(self, paths: Sequence[Path]) -> list[Path]:
        """Trust these files no longer, by default all of the folder. Returns those that were trusted."""
        chosen = [self._folder / path for path in paths] or [
            path for path in map(Path, self._trusted.digests()) if path.parent == self._folder.resolve()
        ]
        for path in chosen:
            for record in self._further_records(path.parent):
                record.forget(path)
        return [path for path in chosen if self._trusted.forget(path)]

    def _chosen(self, paths: Sequence[Path]) -> list[Path]:
        chosen = [self._folder / path for path in paths]
        for path in chosen:
            if not is_folder_file(path):
                raise UserError(f"{path} is no settings file of a folder", hint=_NAMES_HINT)
            if not path.is_file():
                raise NotFound(f"there is no file {path}", hint=_NAMES_HINT)
        return chosen or folder_files(self._folder)

    def _carry_over(self, folder: Path) -> None:
        """Record the trust in the home that the folder's files choose, too: workers are started with that home."""
        known = {Path(path): digest for path, digest in self._trusted.digests().items()}
        for record in self._further_records(folder):
            record.trust({path: digest for path, digest in known.items() if path.parent == folder.resolve()})

    def _further_records(self, folder: Path) -> list[TrustedFiles]:
        try:
            settings = load_settings(self._environ, overrides={"home": self._given_home}, folder=folder)
        except ConfigInvalid:  # another file there is still to be trusted
            return []
        other = TrustedFiles(settings.home)
        return [] if other.record == self._trusted.record else [other]


def files_in_use(environ: Mapping[str, str], home: Path, folder: Path) -> Iterator[str]:
    """Each file that the settings were read from, and why it is trusted."""
    if named := environ.get("STATIONMASTER_CONFIG"):
        yield f"{named} (named by STATIONMASTER_CONFIG)"
    config = None if named else next((path for path in config_candidates(home, folder) if path.is_file()), None)
    if config is not None and config.parent == home:
        yield f"{config} (in the home)"
    trusted = TrustedFiles(home_of_person(environ, home=home, folder=folder))
    for path in folder_files(folder):
        if path == config or path.name == DOTENV:
            yield f"{path} ({_standing(_described(path), trusted)})"


def _standing(file: SettingsFile, trusted: TrustedFiles) -> str:
    if not file.names:
        return "has no settings"
    return "trusted" if trusted.knows(file.path, file.sha256) else "not trusted; has no settings that need it"


def _described(path: Path) -> SettingsFile:
    try:
        content = read_settings_file(path)
    except OSError as problem:
        raise ConfigInvalid(f"{path}: {problem.strerror or problem}", hint="check that you may read it") from None
    return SettingsFile(path=path, sha256=digest_of(content), names=tuple(names_set_in(path, content)))
