"""The calls that the server whose tools these are was recorded with give at least what it gave."""

import json
from pathlib import Path

import mcp_types as T
from mcp import MCPError

from sottovoce import WAYS, Store, client

RECORDED = json.loads((Path(__file__).parent / "original.json").read_text())["calls"]


async def _answers(_, params):
    words = params.messages[-1].content.text
    if "refused" in words:
        return T.ErrorData(code=-1, message="User rejected sampling request")
    says = '{"temp": 19, "unit": "C"}' if "JSON" in words else "Canned answer: 19 °C in Zürich."
    return T.CreateMessageResult(role="assistant", content=T.TextContent(text=says), model="canned-1", stop_reason="endTurn")


def _here(given, ids):
    """The same call with the ids that were given here."""
    if isinstance(given, dict):
        return {name: _here(value, ids) for name, value in given.items()}
    if isinstance(given, list):
        return [_here(value, ids) for value in given]
    return ids.get(given, given) if isinstance(given, str) else given


def _lacks(answer, wanted, place="answer"):
    """What is not as it was in the original."""
    if isinstance(wanted, dict):
        if not isinstance(answer, dict):
            yield f"{place} is no object"
            return
        for name, kind in wanted.items():
            if name not in answer:
                yield f"{place}.{name} is missing"
            else:
                yield from _lacks(answer[name], kind, f"{place}.{name}")
    elif isinstance(wanted, list):
        if not isinstance(answer, list) or (wanted and not answer):
            yield f"{place} is no list, or an empty one"
        for kind in wanted:
            for number, item in enumerate(answer):
                yield from _lacks(item, kind, f"{place}[{number}]")
    else:
        kinds = {"string": str, "boolean": bool, "number": (int, float)}
        if not isinstance(answer, kinds[wanted]) or isinstance(answer, bool) != (wanted == "boolean"):
            yield f"{place} is not of the kind {wanted}"


async def _call(c, request, ids):
    try:
        result = await c.call_tool(request["name"], _here(request["arguments"], ids))
    except MCPError as error:
        return None, str(error)
    return (None if result.is_error else result.structured_content), result.content[0].text


async def recorded_calls_give_at_least_what_the_original_gave():
    for era, transport in WAYS:
        ids, found = {}, []
        with Store(SOTTOVOCE__MCP__PREFERSAMPLING="always") as store:
            async with client(store, era, transport, sampling_callback=_answers) as c:
                for number, recorded in enumerate(RECORDED):
                    if "skipped" in recorded:
                        continue
                    answer, text = await _call(c, recorded["request"], ids)
                    where = f"{number} {json.dumps(recorded['request'])}"
                    if recorded.get("error"):
                        found += [f"{where}: is no error: {text}"] if answer is not None else []
                        continue
                    if answer is None:
                        found.append(f"{where}: {text}")
                        continue
                    found += [f"{where}: {lack}" for lack in _lacks(answer, recorded["answer"])]
                    if theirs := recorded.get("gives"):
                        ids[theirs] = answer.get("contextId") or answer["preset"]["id"]
                    for theirs, preview in recorded.get("gives_messages", {}).items():
                        ids[theirs] = next(m["id"] for m in answer["conversations"] if m["preview"] == preview)
        assert not found, "\n".join(found)
