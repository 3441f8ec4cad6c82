"""Standard output holds the protocol and nothing else; standard error nobody's words."""

import json

from model import Model
from sottovoce import ERAS, Store
from wire import Wire

WORDS = ["Heliotrope", "Marjoram", "Tamarisk", "Bryony", "Sorrel"]


def _are_protocol(lines):
    assert lines
    for line in lines:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0" and line.endswith(b"\n"), line


async def output_is_nothing_but_the_protocol_and_errors_hold_nobodys_words():
    for era in ERAS:
        for arguments in ((), ("--verbose",)):
            with Model(pieces=["Tama", "risk."]) as model, Store(**model.environment()) as store:
                with Wire(store, era, *arguments) as wire:
                    made = wire.call("context-manage", action="create", name="Heliotrope", systemPrompt="You are Marjoram.")
                    context = made["structuredContent"]["contextId"]
                    answer = wire.call("context-chat", contextId=context, message="Bryony?")
                    assert answer["structuredContent"]["response"] == "Tamarisk.", answer
                    wire.call("context-remember", contextId=context, content="Sorrel")
                    wire.call("context-search", query="Sorrel")
                    assert wire.call("context-manage", action="get", contextId="Sorrel")["isError"]
                    assert wire.call("context-manage", action="Sorrel")["isError"]
                    assert "error" in wire.ask("tools/call", name="Sorrel", arguments={})
                    assert "error" in wire.ask("resources/read", uri="Sorrel://Sorrel")
                    assert "error" in wire.ask("no/such/method")
                    wire.send(b'{"jsonrpc": "2.0", "id": 99, "method": "Sorrel"\n')
                    wire.send(b'["Sorrel"]\n')
                    wire.send(b'\xff\xfe Sorrel\n')
                    assert wire.ask("tools/list")["result"]["tools"]
                    assert wire.close() == 0
                _are_protocol(wire.lines)
                found = [word for word in WORDS if word.encode() in wire.errors]
                assert not found, (found, wire.errors)
                if arguments:
                    assert wire.errors, "what --verbose says goes to standard error"


async def a_model_that_fails_and_a_key_that_is_wrong_leave_output_to_the_protocol():
    for era in ERAS:
        with Store() as store:
            with Wire(store, era, "--verbose") as wire:
                made = wire.call("context-manage", action="create", name="Heliotrope", systemPrompt="You are Marjoram.")
                context = made["structuredContent"]["contextId"]
                assert wire.call("context-chat", contextId=context, message="Bryony?")["isError"]
                assert wire.close() == 0
            _are_protocol(wire.lines)
            assert not [word for word in WORDS if word.encode() in wire.errors], wire.errors
            (store.folder / "key").write_text("not a key")
            assert store.run("mcp", code=4, input="") == ""


async def a_client_that_goes_before_it_begins_is_no_failure():
    with Store() as store:
        assert store.run("mcp", input="") == ""
