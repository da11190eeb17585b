"""examples/object-store with a real S3 service: the dataset comes from the bucket, the model goes there."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands.example_runs import EXAMPLES, QUICK, Person
from tests.support.servers.s3_servers import S3Server, raw_client

EXAMPLE = EXAMPLES / "object-store"


def test_a_training_reads_from_and_writes_to_the_bucket(person: Person, pictures: Path, seaweed: S3Server) -> None:
    bucket = raw_client(seaweed)
    for path in pictures.iterdir():
        bucket.upload_file(str(path), seaweed.bucket, f"datasets/cats/{path.name}")
    for name, text in (("key", seaweed.access_key), ("secret", seaweed.secret_key)):
        (person.folder / name).write_text(f"{text}\n")
        (person.folder / name).chmod(0o600)
    settings = {
        "STATIONMASTER_CONFIG": str(EXAMPLE / "config.toml"),
        "STATIONMASTER_BUCKET__ENDPOINT": seaweed.endpoint,
        "STATIONMASTER_BUCKET__ACCESS_KEY_FILE": str(person.folder / "key"),
        "STATIONMASTER_BUCKET__SECRET_KEY_FILE": str(person.folder / "secret"),
    }
    ran = person.run(EXAMPLE / "train.sh", f"s3://{seaweed.bucket}/datasets/cats", *QUICK, environ=settings)
    assert ran.code == 0, ran.err
    address = ran.out.splitlines()[-1]
    key = address.removeprefix(f"s3://{seaweed.bucket}/")
    assert bucket.head_object(Bucket=seaweed.bucket, Key=key)["ContentLength"] > 0
