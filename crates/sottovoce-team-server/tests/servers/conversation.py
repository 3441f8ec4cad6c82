"""Creates a conversation with some records for schemathesis. Prints its identifier and those of the member and the token."""

import json
import sys
import urllib.request

url, org, token = sys.argv[1:]


def call(method: str, path: str, body: object = None) -> dict:
    request = urllib.request.Request(
        f"{url}/api/v1/orgs/{org}{path}",
        json.dumps(body).encode() if body is not None else None,
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


conversation = call("POST", "/context/conversations", {})["id"]
records = [{"rid": f"{n:064x}", "kind": "message", "sealed": "AAAA"} for n in range(20)]
call("POST", f"/context/conversations/{conversation}/messages", {"records": records})
caller = call("GET", "")
print(conversation, caller["member"], caller["token"])
