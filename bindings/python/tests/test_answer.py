import gc
import threading
import time

import pytest

import sottovoce
from conftest import Model
from sottovoce import BusyError, InvalidError, ModelError, ModelUnreachableError


def said(conversation):
    return [(message.role, message.content, message.cut_off) for message in conversation.tail()]


def test_an_answer_is_iterated_stored_and_reported(conversation, model):
    answer = conversation.ask("How is it?", speaker="Ben", metadata={"device": "kitchen"})
    assert answer.utterance.metadata == {"device": "kitchen", "speaker": "Ben"}
    assert list(answer) == ["It is ", "fine."]
    assert list(answer) == []
    assert (answer.text, answer.interrupted) == ("It is fine.", False)
    assert answer.message.seq == 2
    report = answer.report
    assert (report.prompt_tokens, report.answer_tokens, report.truncated) == (12, 4, False)
    assert 0 <= report.time_to_first_token <= report.whole_time < 60
    assert report.receipt.used_tokens > 0
    assert said(conversation) == [("user", "How is it?", None), ("assistant", "It is fine.", None)]
    assert len(model.asked) == 1


def test_sentences_come_whole(options):
    with Model(pieces=["Dr. Lee ", "sleeps. It", " is late."]) as model:
        with sottovoce.Store(**options, base_url=model.url) as store:
            answer = store.conversation().ask("Where is the doctor?", sentences=True)
            assert list(answer) == ["Dr. Lee sleeps. ", "It is late."]


def interrupt_by_dropping(answer):
    del answer
    gc.collect()


@pytest.mark.parametrize(
    "interrupt",
    [lambda answer: answer.close(), lambda answer: answer.__exit__(None, None, None), interrupt_by_dropping],
    ids=["close", "with", "drop"],
)
def test_whoever_stops_listening_interrupts(slow, interrupt):
    def speak():
        answer = slow.ask("Count.")
        assert next(answer) == "One. "
        interrupt(answer)

    speak()
    slow.close()
    assert said(slow)[1:] == [("assistant", "One. ", "interrupted")]


def test_another_thread_interrupts_and_the_loop_ends(slow):
    answer, taken = slow.ask("Count."), []
    speaker = threading.Thread(target=lambda: taken.extend(answer))
    speaker.start()
    while not answer.text:
        time.sleep(0.01)
    message = answer.spoken_up_to(3)
    speaker.join(10)
    assert not speaker.is_alive()
    assert taken == ["One. "]
    assert (message.content, message.cut_off, answer.interrupted) == ("One", "interrupted", True)
    assert said(slow)[1:] == [("assistant", "One", "interrupted")]


def test_less_was_heard_of_a_whole_answer(conversation):
    answer = conversation.ask("How is it?")
    assert answer.read() == "It is fine."
    assert answer.spoken_up_to(5).content == "It is"
    assert said(conversation)[1:] == [("assistant", "It is", "interrupted")]
    with pytest.raises(InvalidError):
        answer.spoken_up_to(2)


def test_nobody_heard_anything(slow):
    answer = slow.ask("Count.")
    assert answer.spoken_up_to(0) is None
    assert (answer.interrupted, answer.message) == (True, None)
    assert len(slow.tail()) == 1


def test_closing_the_conversation_or_the_store_ends_an_answer_in_progress(options, slow_model):
    with sottovoce.Store(**options, base_url=slow_model.url) as store:
        conversation = store.conversation()
        answer = conversation.ask("Count.")
        next(answer)
        conversation.close()
        assert said(conversation)[1:] == [("assistant", "One. ", "interrupted")]
        second = conversation.ask("Again.")
        next(second)
    with pytest.raises(sottovoce.ClosedError):
        conversation.tail()
    assert second.interrupted
    assert list(second) == []
    with sottovoce.Store(**options) as store:
        assert said(store.conversation())[3:] == [("assistant", "One. ", "interrupted")]


def test_off_the_record_nothing_is_stored(conversation):
    answer = conversation.ask("A secret.", off_record=True)
    assert answer.read() == "It is fine."
    assert answer.utterance is answer.message is None
    assert conversation.tail() == []


def test_without_a_model_server_the_utterance_is_kept_and_asked_again(options, model):
    with sottovoce.Store(**options, base_url="http://127.0.0.1:9") as store:
        answer = store.conversation().ask("How is it?")
        with pytest.raises(ModelUnreachableError) as raised:
            answer.read()
        assert isinstance(raised.value, ConnectionError)
        assert "ollama serve" in raised.value.help
        assert not answer.interrupted
    with sottovoce.Store(**options, base_url=model.url) as store:
        conversation = store.conversation()
        assert conversation.retry().read() == "It is fine."
        assert [role for role, _, _ in said(conversation)] == ["user", "assistant"]
        with pytest.raises(InvalidError):
            conversation.retry()


def test_an_empty_answer_is_an_error_of_the_model(options):
    with Model(pieces=[]) as model, sottovoce.Store(**options, base_url=model.url) as store:
        with pytest.raises(ModelError) as raised:
            store.conversation().ask("How is it?").read()
        assert not isinstance(raised.value, ModelUnreachableError)
        assert "empty" in raised.value.message


def test_a_second_turn_waits_or_is_refused(options, slow_model):
    with sottovoce.Store(**options, base_url=slow_model.url, refuse_when_busy=True) as store:
        conversation = store.conversation()
        answer = conversation.ask("Count.")
        with pytest.raises(BusyError):
            conversation.ask("Me too.")
        answer.close()
        assert next(conversation.ask("Now?")) == "One. "


def test_an_answer_to_an_utterance_that_was_forgotten_meanwhile_is_not_stored(conversation):
    prompt = conversation.hear("Forget this.")
    assert conversation.forget(prompt.utterance.seq) == [prompt.utterance.seq]
    with pytest.raises(sottovoce.ForgottenError):
        conversation.keep("Never mind.")
    assert conversation.tail() == []


def test_preparing_asks_nothing(conversation, model):
    conversation.prepare()
    assert conversation.tail() == [] and not model.asked and model.bodies
