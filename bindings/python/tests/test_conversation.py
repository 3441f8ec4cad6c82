import json
from datetime import datetime, timedelta, timezone

import pytest

import sottovoce
from sottovoce import InvalidError


def words(messages):
    return [message.content for message in messages]


def test_a_host_with_its_own_model_hears_and_keeps(conversation, model):
    prompt = conversation.hear("My sister is Ada.", speaker="Ben", metadata={"device": "kitchen"})
    assert prompt.utterance.seq == 1
    assert prompt.utterance.speaker == "Ben"
    assert [message["role"] for message in prompt.messages] == ["system", "user"]
    assert prompt.messages[-1]["content"].endswith("Ben] My sister is Ada.")
    assert conversation.keep("Noted.").seq == 2
    prompt = conversation.hear("Who is Ada?")
    assert [(entry.seq, entry.included) for entry in prompt.receipt.entries] == [(1, True), (2, True)]
    assert all(entry.why and entry.tokens > 0 for entry in prompt.receipt.entries)
    assert 0 < prompt.receipt.used_tokens <= prompt.receipt.budget_tokens
    assert not model.asked


def test_a_prompt_is_in_the_form_of_the_configured_protocol(options):
    call = {"id": "c1", "name": "lamp", "arguments": {"on": True}}
    for kind, is_text in [("ollama", False), ("openai", True)]:
        with sottovoce.Store(**options, kind=kind) as store:
            conversation = store.conversation(f"named/{kind}")
            conversation.hear("Light!")
            conversation.append("assistant", "", tool_calls=[call])
            conversation.append("tool", "done", tool_call_id="c1", metadata={"tool": "lamp"})
            message = conversation.tail(2)[0]
            assert message.tool_calls == [call]
            asked = [m for m in conversation.hear("Thanks").messages if m.get("tool_calls")]
            assert isinstance(asked[0]["tool_calls"][0]["function"]["arguments"], str) == is_text


@pytest.mark.parametrize(
    "how, stored, cut_off",
    [
        ({}, "Potatoes, äh, leeks", None),
        ({"spoken_up_to": 12}, "Potatoes, äh", "interrupted"),
        ({"spoken_up_to": 999}, "Potatoes, äh, leeks", None),
        ({"interrupted": True}, "Potatoes, äh, leeks", "interrupted"),
    ],
)
def test_only_what_was_spoken_is_kept(conversation, how, stored, cut_off):
    conversation.hear("What goes with leeks?")
    message = conversation.keep("Potatoes, äh, leeks", **how)
    assert (message.content, message.cut_off) == (stored, cut_off)


def test_nothing_is_kept_of_a_reply_that_nobody_heard(conversation):
    conversation.hear("What goes with leeks?")
    assert conversation.keep("Potatoes", spoken_up_to=0) is None
    assert len(conversation.tail()) == 1


def test_the_shown_prompt_is_not_stored(conversation):
    prompt = conversation.prompt("What goes with leeks?", speaker="Ben")
    assert prompt.utterance is None
    assert "leeks" in prompt.messages[-1]["content"]
    assert conversation.tail() == []


def test_json_items_come_back_unchanged(conversation):
    items = [{"type": "reasoning", "n": [1, None, "ü\u2028\n"]}, {"role": "user", "content": "x" * 10_000}]
    seqs = [
        conversation.append("assistant", "", metadata={"item": json.dumps(item)}).seq for item in items
    ]
    assert [json.loads(m.metadata["item"]) for m in conversation.tail(2)] == items
    assert [json.loads(conversation.get(seq).metadata["item"]) for seq in seqs] == items
    assert conversation.forget(seqs[0]) == [seqs[0]]
    assert conversation.get(seqs[0]) is None
    assert [m.seq for m in conversation.tail()] == [seqs[1]]


def test_times_are_aware_and_keep_their_offset(conversation):
    said = datetime(2025, 8, 24, 18, 36, 5, 123_000, timezone(timedelta(hours=5, minutes=30)))
    message = conversation.append("user", "Tea.", time=said)
    assert message.time == said
    assert message.time.utcoffset() == said.utcoffset()
    assert abs(conversation.append("user", "Now.").time - datetime.now(timezone.utc)) < timedelta(minutes=1)
    with pytest.raises(TypeError):
        conversation.append("user", "Naive.", time=datetime(2025, 8, 24))
    with pytest.raises(InvalidError):
        conversation.append("user", "Too early.", time=datetime.now(timezone.utc) + timedelta(days=2))


def test_threads_of_a_conversation_are_apart_and_one_object_serves_all(store):
    whole, trip = store.conversation("dm/ann"), store.conversation("dm/ann", thread="trip")
    for n in range(30):
        whole.append("user", f"whole {n}")
    trip.append("user", "first of the trip")
    for n in range(30, 90):
        whole.append("user", f"whole {n}")
    trip.append("user", "second of the trip")
    assert words(trip.tail(2)) == ["first of the trip", "second of the trip"]
    assert words(whole.tail(3)) == ["whole 87", "whole 88", "whole 89"]
    assert words(store.conversation("dm/ann", thread="trip").tail()) == words(trip.tail())
    assert words(trip.search("trip")) == ["second of the trip", "first of the trip"]
    assert (trip.thread, trip.tail(1)[0].thread) == ("trip", "trip")
    assert trip.tail(0) == []


def test_nothing_leaves_one_scope_for_another(store):
    ann, ben = store.conversation("dm/ann"), store.conversation("dm/ben")
    message = ann.append("user", "The safe's number is 4711.")
    assert ben.tail() == ben.search("safe") == ben.recall("What is the safe's number?") == []
    assert ben.get(message.seq) is None
    assert "4711" not in json.dumps(ben.hear("What is the safe's number?").messages)
    assert sorted(store.scopes()) == ["dm/ann", "dm/ben"]


def test_search_is_exact_and_recall_finds_other_words(conversation):
    conversation.append("user", "My sister Ada lives in Graz.", metadata={"speaker": "Ben"})
    conversation.append("user", "The bins go out on Thursday.")
    assert words(conversation.search("graz")) == ["My sister Ada lives in Graz."]
    assert words(conversation.search("speaker:Ben")) == ["My sister Ada lives in Graz."]
    found = conversation.recall("When do we put out the rubbish bins?", 1)
    assert words(hit.message for hit in found) == ["The bins go out on Thursday."]
    assert found[0].score > 0 and "bin" in " ".join(found[0].words)
    with pytest.raises(InvalidError):
        conversation.search("before:sometime")


def test_forgetting_takes_numbers_ranges_and_everything(conversation):
    for n in range(6):
        conversation.append("user", str(n))
    assert conversation.forget(1, range(3, 5)) == [1, 3, 4]
    assert conversation.forget(1) == conversation.forget() == conversation.forget(range(9, 9)) == []
    for wrong in [range(1, 9, 2), range(-2, 2)]:
        with pytest.raises(InvalidError):
            conversation.forget(wrong)
    with pytest.raises((OverflowError, TypeError)):
        conversation.forget(-1)
    assert conversation.forget_all() == [2, 5, 6]
    assert conversation.tail() == []


def test_what_was_stored_is_there_after_opening_again(options):
    with sottovoce.Store(**options) as store:
        store.conversation().append("user", "Tea at four.")
    with sottovoce.Store(**options) as store:
        assert words(store.conversation().tail()) == ["Tea at four."]
        assert store.scopes() == ["default"]


def test_answers_to_several_utterances_at_once_go_to_their_own(conversation):
    first, second = (conversation.hear(words) for words in ("One?", "Two?"))
    assert conversation.keep("Two.", to=second.utterance).content == "Two."
    assert conversation.keep("One, and more", spoken_up_to=4, to=first.utterance).cut_off == "interrupted"
    assert conversation.keep("nothing", spoken_up_to=0, to=first.utterance) is None
    conversation.forget(first.utterance.seq)
    with pytest.raises(sottovoce.ForgottenError):
        conversation.keep("One.", to=first.utterance)
