"""A process that gevent has patched: every verb on the local disk and on S3 by obstore; fsspec says what does not work.

Some Airflow workers are patched so (`celery worker --pool gevent`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import boto3
import pytest

from tests.io.moto_server import moto_server

pytest.importorskip("gevent")

PATCHED = """
import gevent.monkey
gevent.monkey.patch_all()
import functools, json, sys
import gevent
import lance_core
sys.path.insert(0, sys.argv[1])
from memory_verbs import _verbs, make
from lance_core.errors import LanceError

options = json.loads(sys.argv[3])
for name in ("dataset", "write_dataset"):
    setattr(lance_core, name, functools.partial(getattr(lance_core, name), storage_options=options))

def work(uri):
    make(uri, 200, is_searched=True)
    version, ended = lance_core.dataset(uri).version, {}
    for name, verb in _verbs().items():
        if name == "validate" and options:
            continue  # a job, which takes its options elsewhere
        lance_core.dataset(uri, version=version).restore()
        try:
            verb(uri)
            ended[name] = "ok"
        except LanceError as error:
            ended[name] = f"{type(error).__name__}: {error}"
    return ended

both = [gevent.spawn(work, uri) for uri in sys.argv[2].split(",")]
gevent.joinall(both, raise_error=True)
print(json.dumps([one.value for one in both]))
"""


def patched(uris: list[str], options: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Every verb on two tables, by two greenlets of one process."""
    security = Path(__file__).parents[1] / "security"
    command = [sys.executable, "-c", PATCHED, str(security), ",".join(uris), json.dumps(options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-3000:]
    one, other = json.loads(done.stdout.splitlines()[-1])
    assert len(one) > 25
    assert {*one.values(), *other.values()} == {"ok"}, (one, other)


def test_every_verb_works_on_the_local_disk(tmp_path: Path) -> None:
    check(patched([str(tmp_path / "one.lance"), str(tmp_path / "other.lance")], {}))


def on_s3(engine: str) -> subprocess.CompletedProcess[str]:
    with moto_server() as endpoint:
        client = boto3.client(
            "s3", endpoint_url=endpoint, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1"
        )
        client.create_bucket(Bucket="patched")
        options = {
            "aws_access_key_id": "key", "aws_secret_access_key": "secret", "aws_region": "us-east-1",
            "aws_endpoint": endpoint, "allow_http": "true", "store_engine": engine,
        }  # fmt: skip
        return patched(["s3://patched/one.lance", "s3://patched/other.lance"], options)


def test_every_verb_works_on_s3_by_obstore() -> None:
    check(on_s3("obstore"))


def test_fsspec_is_refused_on_s3_with_the_cure() -> None:
    done = on_s3("fsspec")
    assert done.returncode
    assert "UnsupportedFeatureError" in done.stderr.splitlines()[-1]
    assert "gevent" in done.stderr.splitlines()[-1]
    assert "obstore" in done.stderr.splitlines()[-1]
