"""Pipecat's pipelines: what is stored of answers that are interrupted, fail or are withdrawn."""

import asyncio

import pytest

pytest.importorskip("pipecat", reason="pipecat-ai is not installed")

from pipecat.frames.frames import (  # noqa: E402
    EagerEndOfTurnCancelFrame,
    EndFrame,
    ErrorFrame,
    InterruptionFrame,
    LLMContextAssistantTurnFrame,
    LLMContextFrame,
    LLMTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline  # noqa: E402
from pipecat.pipeline.runner import PipelineRunner  # noqa: E402
from pipecat.pipeline.task import PipelineTask  # noqa: E402
from pipecat.processors.aggregators.llm_context import LLMContext  # noqa: E402
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor  # noqa: E402

import sottovoce  # noqa: E402
from sottovoce.pipecat import SottovoceLLM, SottovoceMemory  # noqa: E402


class Speaker(FrameProcessor):
    """Stands for the voice behind the model: notes what comes, and tells how much of it was spoken."""

    def __init__(self):
        super().__init__()
        self.frames, self.came = [], asyncio.Event()

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        self.frames.append(frame)
        if isinstance(frame, (LLMTextFrame, LLMContextFrame)):
            self.came.set()
        await self.push_frame(frame, direction)

    async def spoke(self, text):
        frame = LLMContextAssistantTurnFrame(text=text, timestamp="")
        await self.push_frame(frame, FrameDirection.UPSTREAM)


def _said(words, **options):
    return LLMContextFrame(LLMContext([{"role": "user", "content": words}]), **options)


def _run(processor, talk):
    """Runs `talk` beside a pipeline with the processor. Returns what came out of it."""

    async def main():
        speaker = Speaker()
        task = PipelineTask(Pipeline([processor, speaker]))
        running = asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))
        await talk(task, speaker)
        await task.queue_frame(EndFrame())
        await asyncio.wait_for(running, 20)
        return speaker.frames

    return asyncio.run(main())


def _tail(conversation):
    return [(message.role, message.content, message.cut_off) for message in conversation.tail()]


def test_of_an_interrupted_answer_what_was_spoken_is_stored(slow):
    async def talk(task, speaker):
        await task.queue_frame(_said("Count."))
        await speaker.came.wait()
        await task.queue_frame(InterruptionFrame())
        await asyncio.sleep(0.3)
        await speaker.spoke("On")

    _run(SottovoceLLM(slow), talk)
    assert _tail(slow) == [("user", "Count.", None), ("assistant", "On", "interrupted")]


def test_a_whole_answer_is_cut_to_what_was_spoken_of_it(conversation):
    async def talk(task, speaker):
        await task.queue_frame(_said("How is the weather?"))
        await asyncio.sleep(0.5)
        await task.queue_frame(InterruptionFrame())
        await asyncio.sleep(0.2)
        await speaker.spoke("It  is")

    _run(SottovoceLLM(conversation), talk)
    assert _tail(conversation)[1] == ("assistant", "It is", "interrupted")


def test_an_answer_of_which_nothing_was_spoken_is_not_stored(slow, conversation):
    async def talk(task, speaker):
        await speaker.spoke("Good morning.")
        await task.queue_frame(_said("Count."))
        await speaker.came.wait()
        await task.queue_frame(InterruptionFrame())
        await asyncio.sleep(0.3)

    _run(SottovoceLLM(slow), talk)
    assert _tail(slow) == [("user", "Count.", None)]


def test_a_model_that_cannot_be_reached_is_an_error_and_loses_no_utterance(options):
    with sottovoce.Store(**options, base_url="http://127.0.0.1:9") as store:
        conversation = store.conversation("dm/ann")
        errors = []

        async def talk(task, _speaker):
            task.add_event_handler("on_pipeline_error", lambda *args: errors.append(args))
            await task.queue_frame(_said("Hello?"))
            await asyncio.sleep(0.5)

        frames = _run(SottovoceLLM(conversation), talk)
        assert not any(isinstance(frame, LLMTextFrame) for frame in frames)
        assert _tail(conversation) == [("user", "Hello?", None)]


def test_an_utterance_that_was_not_ended_is_forgotten(slow):
    async def talk(task, speaker):
        await task.queue_frame(_said("Turn the", speculation=True))
        await asyncio.sleep(0.5)
        await task.queue_frame(EagerEndOfTurnCancelFrame())
        await asyncio.sleep(0.5)
        assert not any(isinstance(frame, LLMTextFrame) for frame in speaker.frames)

    _run(SottovoceLLM(slow), talk)
    assert _tail(slow) == []


def test_the_memory_gives_the_model_the_prompt_and_keeps_the_sessions_own_instructions(conversation):
    conversation.append("user", "My sister is called Ada.")
    conversation.append("assistant", "A fine name.")
    contexts = []

    async def talk(task, speaker):
        for words in ("Who is Ada?", "And her age?"):
            context = LLMContext([{"role": "system", "content": "Be brief."}, {"role": "user", "content": words}])
            contexts.append(context)
            speaker.came.clear()
            await task.queue_frame(LLMContextFrame(context))
            await speaker.came.wait()
            await speaker.spoke(f"About {words}")
            await asyncio.sleep(0.2)

    _run(SottovoceMemory(conversation), talk)
    first = contexts[0].get_messages()
    assert first[0] == {"role": "system", "content": "Be brief."}
    assert "My sister is called Ada." in str(first[1:]) and "Who is Ada?" in first[-1]["content"]
    assert [message["role"] for message in first].count("system") == 1
    assert _tail(conversation)[2:] == [
        ("user", "Who is Ada?", None), ("assistant", "About Who is Ada?", None),
        ("user", "And her age?", None), ("assistant", "About And her age?", None),
    ]


def test_the_memory_leaves_calls_of_tools_and_provisional_turns_alone(conversation):
    calls = LLMContext([{"role": "user", "content": "Light!"}, {"role": "tool", "content": "on", "tool_call_id": "1"}])
    provisional = LLMContext([{"role": "user", "content": "Turn"}])

    async def talk(task, speaker):
        await task.queue_frame(LLMContextFrame(calls))
        await task.queue_frame(LLMContextFrame(provisional, speculation=True))
        await asyncio.sleep(0.5)

    _run(SottovoceMemory(conversation), talk)
    assert len(calls.get_messages()) == 2 and calls.get_messages()[0]["content"] == "Light!"
    assert "Turn" in provisional.get_messages()[-1]["content"]
    assert _tail(conversation) == []


def test_an_interrupted_answer_of_another_model_is_marked(conversation):
    async def talk(task, speaker):
        await task.queue_frame(_said("Count."))
        await speaker.came.wait()
        await task.queue_frame(InterruptionFrame())
        await asyncio.sleep(0.2)
        await speaker.spoke("One, two")
        await asyncio.sleep(0.2)

    _run(SottovoceMemory(conversation), talk)
    assert _tail(conversation)[1] == ("assistant", "One, two", "interrupted")
