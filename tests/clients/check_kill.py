"""What outlives a server that is killed."""

import signal
import time

from model import Model
from sottovoce import ERAS, Store
from wire import Wire


async def what_was_said_outlives_a_server_that_is_killed_while_the_model_answers():
    for era in ERAS:
        with Model(pieces=["It is ", "raining"], stall_after=1) as model, Store(**model.environment()) as store:
            with Wire(store, era) as wire:
                made = wire.call("context-manage", action="create", name="Mira", systemPrompt="You are Mira.")
                context = made["structuredContent"]["contextId"]
                wire.request("tools/call", name="context-chat", arguments={"contextId": context, "message": "Rain?"})
                assert model.stalled.wait(10)
                wire.process.send_signal(signal.SIGKILL)
                assert wire.process.wait(10) == -signal.SIGKILL
            assert store.messages(context)[0] == ("user", "Rain?")
            store.is_sound()
            model.go_on.set()
            with Wire(store, era) as wire:
                answer = wire.call("context-chat", contextId="Mira", message="And now?")
                assert answer["structuredContent"]["response"] == "It is raining", answer
                assert wire.close() == 0
            held = store.messages(context)
            assert ("user", "Rain?") == held[0] and held[-2:] == [("user", "And now?"), ("assistant", "It is raining")], held
            asked = [message["content"] for message in model.asked[-1]["messages"]]
            assert any("Rain?" in words for words in asked), asked
            store.is_sound()


async def a_client_that_goes_while_the_model_answers_leaves_what_had_come():
    for era in ERAS:
        with Model(pieces=["It is ", "raining"], stall_after=1) as model, Store(**model.environment()) as store:
            with Wire(store, era) as wire:
                made = wire.call("context-manage", action="create", name="Mira", systemPrompt="You are Mira.")
                context = made["structuredContent"]["contextId"]
                wire.request("tools/call", name="context-chat", arguments={"contextId": context, "message": "Rain?"})
                assert model.stalled.wait(10)
                # Clients kill a server that takes much longer.
                assert wire.close() == 0
            assert store.messages(context) == [("user", "Rain?"), ("assistant", "It is ")]
            store.is_sound()


async def a_server_that_is_told_to_end_while_the_model_answers_keeps_what_had_come():
    for era in ERAS:
        with Model(pieces=["It is ", "raining"], stall_after=1) as model, Store(**model.environment()) as store:
            with Wire(store, era) as wire:
                made = wire.call("context-manage", action="create", name="Mira", systemPrompt="You are Mira.")
                context = made["structuredContent"]["contextId"]
                call = wire.request("tools/call", name="context-chat", arguments={"contextId": context, "message": "Rain?"})
                assert model.stalled.wait(10)
                time.sleep(0.3)  # What the model sent is on its way.
                wire.process.terminate()
                assert "are stored" in wire.answer(call)["result"]["content"][0]["text"]
                assert wire.process.wait(5) in (0, 130)
            assert store.messages(context) == [("user", "Rain?"), ("assistant", "It is ")]
            store.is_sound()
