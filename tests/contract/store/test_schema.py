"""The schema brings itself up to date, and a store that cannot be used says why."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from stationmaster.errors import ConfigInvalid, StoreError, StoreNewer
from stationmaster.store.engine import Database
from stationmaster.store.schema import HEAD, migrate, whole_metadata
from stationmaster.store.store import Store
from tests.support.jobs.spine_values import spec


def installation_of(url: str) -> str:
    database = Database(url)
    try:
        return Store(database).installation_id
    finally:
        database.close()


def change(url: str, *statements: str) -> None:
    """What somebody else did to the database."""
    database = Database(url)
    try:
        with database.write() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))
    finally:
        database.close()


def test_a_fresh_store_is_whole_and_keeps_its_id(url: str) -> None:
    first = installation_of(url)
    assert len(first) == 8
    assert first.isalnum()
    assert installation_of(url) == first


def test_the_migrations_make_exactly_the_tables_that_the_queries_use(url: str) -> None:
    with closing(Database(url)) as database:
        with database.write() as connection:
            migrate(connection)
        with database.read() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, whole_metadata()) == []
            migrated = description_of(connection)
        with database.write() as connection:
            for table in migrated:
                connection.execute(sa.text(f"DROP TABLE {table}"))
        with closing(Store(database)), database.read() as connection:
            assert description_of(connection) == migrated  # a fresh store is made without them


def description_of(connection: sa.Connection) -> dict[str, Any]:
    """All that a database tells of its tables."""
    seen = sa.inspect(connection)
    return {
        table: {
            "columns": [{**column, "type": str(column["type"])} for column in seen.get_columns(table)],
            "primary key": seen.get_pk_constraint(table),
            "foreign keys": seen.get_foreign_keys(table),
            "unique": sorted(seen.get_unique_constraints(table), key=str),
            "indexes": sorted(_index_description(index) for index in seen.get_indexes(table)),
            "checks": sorted(map(str, seen.get_check_constraints(table))),
        }
        for table in seen.get_table_names()
    }


def _index_description(index: Any) -> str:
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}
    return str({**index, "dialect_options": options})


def test_the_newest_migration_is_the_one_that_the_code_names() -> None:
    config = Config()
    config.set_main_option("script_location", "stationmaster:store/migrations")
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


@pytest.mark.parametrize("lost", ["events", "rentals", "installation", "alembic_version"])
def test_a_half_created_store_is_completed(url: str, lost: str) -> None:
    store = Store(Database(url))
    store.jobs.submit(spec("kept"))
    store.close()
    change(url, f"DROP TABLE {lost}")
    store = Store(Database(url))
    try:
        assert store.jobs.get("kept").id == "kept"
        assert store.jobs.submit(spec("new")).created
        assert len(store.installation_id) == 8
    finally:
        store.close()


def test_a_store_with_nothing_but_an_empty_version_is_completed(url: str) -> None:
    change(url, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    assert len(installation_of(url)) == 8


def test_a_store_that_lost_its_id_gets_a_new_one(url: str) -> None:
    first = installation_of(url)
    change(url, "DELETE FROM installation")
    assert installation_of(url) != first


def test_a_store_of_newer_code_is_refused_with_a_hint_and_left_alone(url: str) -> None:
    installation_of(url)
    change(url, "UPDATE alembic_version SET version_num = '9999'", "DROP TABLE alerts")
    with pytest.raises(StoreNewer, match="schema 9999") as caught:
        installation_of(url)
    assert "upgrade" in str(caught.value.hint)
    database = Database(url)
    try:
        with database.read() as connection:
            assert "alerts" not in sa.inspect(connection).get_table_names()
    finally:
        database.close()


def test_a_store_opened_by_many_threads_at_once_has_one_id(url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(installation_of, [url] * 4))) == 1


_OPEN_IN_THREE_PROCESSES = """
import os, sys
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
children = []
for _ in range(3):  # forks: each would import the same for most of a second
    children.append(os.fork())
    if children[-1] == 0:
        store = Store(Database(sys.argv[1]))
        os.write(1, f"{store.installation_id}\\n".encode())
        store.close()
        os._exit(0)
sys.exit(sum(os.waitpid(child, 0)[1] for child in children) != 0)
"""


def test_a_store_opened_by_several_processes_at_once_has_one_id(url: str) -> None:
    opened = [sys.executable, "-c", _OPEN_IN_THREE_PROCESSES, url]
    done = subprocess.run(opened, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    first, *others = done.stdout.splitlines()
    assert others == [first, first]


def test_sqlite_waits_while_another_process_writes(tmp_path: Path) -> None:
    store = Store(Database(f"sqlite:///{tmp_path}/store.db"))
    other = Database(f"sqlite:///{tmp_path}/store.db")
    try:
        with ThreadPoolExecutor(1) as threads:
            with other.write():
                submitted = threads.submit(store.jobs.submit, spec("a"))
                assert store.jobs.listed(with_ended=True) == []  # readers are never kept waiting
                assert not submitted.done()
            assert submitted.result(timeout=150).created
    finally:
        other.close()
        store.close()


def test_an_error_of_the_driver_itself_is_one_of_the_store(tmp_path: Path) -> None:
    """The tables of a new store are made with the driver's own cursor; the disk may be full."""
    database = Database(f"sqlite:///{tmp_path}/store.db")
    try:
        with pytest.raises(StoreError, match="does not answer: no such table"), database.write() as connection:
            connection.connection.cursor().execute("INSERT INTO nowhere VALUES (1)")
    finally:
        database.close()


def test_readers_cannot_write(tmp_path: Path) -> None:
    store = Store(Database(f"sqlite:///{tmp_path}/store.db"))
    try:
        with pytest.raises(StoreError, match="readonly"), store.database.read() as connection:
            connection.execute(sa.text("DELETE FROM jobs"))
    finally:
        store.close()


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/export /mnt/shared nfs4 rw 0 0
tmpfs /mnt/shared/fast tmpfs rw 0 0
user@host: /home/me/my\\040files fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "refused"),
    [("/mnt/shared", True), ("/mnt/shared/deep/down", True), ("/mnt/shared/fast/x", False), ("/mnt/sharedx", False),
     ("/home/me/my files/x", True), ("/home/me", False)],
)  # fmt: skip
def test_a_file_on_a_network_file_system_is_refused(tmp_path: Path, folder: str, refused: bool) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    url = f"sqlite:///{folder}/store.db"
    if refused:
        with pytest.raises(ConfigInvalid, match="network file system") as caught:
            Database(url, mounts=mounts)
        assert "STATIONMASTER_HOME" in str(caught.value.hint)
    else:
        Database(url, mounts=mounts).close()


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql://host/db", "sqlite://", "postgresql:/", "://", "postgresql://[::1", "oracle://x"]
)
def test_a_url_that_cannot_be_used_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        installation_of(url)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there_is_a_store_that_does_not_answer() -> None:
    with pytest.raises(StoreError) as caught:
        installation_of("postgresql://nobody:s3cret@127.0.0.1:1/none")
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_file_that_is_no_database_is_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("this is a letter to my aunt, " * 100)
    with pytest.raises(StoreError) as caught:
        installation_of(f"sqlite:///{tmp_path}/store.db")
    assert "not a database" in str(caught.value)


def test_a_folder_in_the_place_of_the_file_is_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "store.db").mkdir()
    with pytest.raises(StoreError):
        installation_of(f"sqlite:///{tmp_path}/store.db")
