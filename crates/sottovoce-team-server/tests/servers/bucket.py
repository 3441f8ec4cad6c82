"""Moto's S3 with a bucket that outlasts SIGKILL: `bucket.py PORT FOLDER` serves the bucket `teams` at this port.

Moto keeps its objects in memory. Here each change is in a file of FOLDER before it is answered, and is made again at the next
start. A file `*.begun` is there while a change is in progress, so that one sees afterwards whether a kill met any.
"""

import io
import itertools
import pickle
import sys
import threading
from pathlib import Path

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import run_simple
from werkzeug.test import EnvironBuilder

port, folder = int(sys.argv[1]), Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
moto = DomainDispatcherApplication(create_backend_app)
lock = threading.Lock()


def apply(environ, body):
    """Has moto make a change again."""
    answered = []
    environ = {**environ, "wsgi.input": io.BytesIO(body), "wsgi.errors": sys.stderr}
    for part in moto(environ, lambda status, headers, error=None: answered.append(status)):
        del part
    assert answered[0][0] in "24", answered


def serve(environ, start_response):
    if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
        return moto(environ, start_response)
    begun = folder / f"{threading.get_ident()}.begun"
    begun.touch()
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    words = {name: value for name, value in environ.items() if isinstance(value, str)}
    with lock:
        change = folder / f"{next(numbers):08}"
        change.with_suffix(".part").write_bytes(pickle.dumps((words, body)))
        change.with_suffix(".part").rename(change.with_suffix(".change"))
        answer = list(moto({**environ, "wsgi.input": io.BytesIO(body)}, start_response))
    begun.unlink()
    return answer


bucket = EnvironBuilder(
    path="/teams",
    method="PUT",
    base_url=f"http://127.0.0.1:{port}",
    headers={"Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request"},
)
apply(bucket.get_environ(), b"")
changes = sorted(folder.glob("*.change"))
for change in changes:
    apply(*pickle.loads(change.read_bytes()))
numbers = itertools.count(len(changes))
for rest in [*folder.glob("*.begun"), *folder.glob("*.part")]:
    rest.unlink()
run_simple("127.0.0.1", port, serve, threaded=True, request_handler=MotoRequestHandler)
