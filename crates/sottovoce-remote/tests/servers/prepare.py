"""Creates the bucket of moto and the container of Azurite, which the tests expect."""

import base64
import hashlib
import hmac
import sys
import urllib.request
from email.utils import formatdate

import boto3

moto, azurite = sys.argv[1:]
s3 = boto3.client(
    "s3",
    endpoint_url=f"http://127.0.0.1:{moto}",
    region_name="us-east-1",
    aws_access_key_id="any",
    aws_secret_access_key="any",
)
s3.create_bucket(Bucket="sync-tests")

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
date = formatdate(usegmt=True)
resource = "/devstoreaccount1/devstoreaccount1/sync-tests\nrestype:container"
signed = f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:2021-08-06\n{resource}"
digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
request = urllib.request.Request(
    f"http://127.0.0.1:{azurite}/devstoreaccount1/sync-tests?restype=container",
    method="PUT",
    headers={
        "x-ms-date": date,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey devstoreaccount1:{base64.b64encode(digest).decode()}",
    },
)
urllib.request.urlopen(request).close()
