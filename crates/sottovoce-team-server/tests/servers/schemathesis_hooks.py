"""What schemathesis has to know: most requests name what exists, and none takes the caller's own rights away."""

import os

import schemathesis

ORG, CONVERSATION, MEMBER, TOKEN = os.environ["TEAM"].split()


def is_rare(value) -> bool:
    return str(value).endswith(("0", "1"))


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    for name, real in (("org", ORG), ("conversation", CONVERSATION), ("member", MEMBER)):
        if path_parameters and name in path_parameters and not is_rare(path_parameters[name]):
            path_parameters[name] = real
    if path_parameters and "artifact" in path_parameters and not is_rare(path_parameters["artifact"]):
        # Few, so that one is read that was written.
        path_parameters["artifact"] = "0" * 31 + str(path_parameters["artifact"])[-1:]
    return path_parameters


@schemathesis.hook
def filter_case(context, case):
    parameters = case.path_parameters or {}
    if case.method == "DELETE" and (
        MEMBER in parameters.values()
        or TOKEN in parameters.values()
        or (CONVERSATION in parameters.values() and "artifact" not in parameters and "member" not in parameters)
    ):
        return False
    # The caller keeps the grant of the conversation.
    if case.method == "PUT" and MEMBER in parameters.values() and case.body in ({"level": "read"}, {"level": "write"}):
        return False
    wait = str((case.query or {}).get("wait", 0))
    return not wait.isdigit() or int(wait) <= 1 or int(wait) > 55
