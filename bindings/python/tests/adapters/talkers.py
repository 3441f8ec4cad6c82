"""Says something by way of a framework and prints the answer: `talkers.py FRAMEWORK WORDS`, in a process of its own.

The store and the model server are what the environment says.
"""

import asyncio
import os
import sys

import sottovoce


def open_store():
    return sottovoce.Store(storage_root=os.environ["STORE"], key_file=os.environ["KEY"], base_url=os.environ["MODEL"])


async def pipecat_llm(conversation, words):
    from sottovoce.pipecat import SottovoceLLM

    return await _pipeline(lambda: [SottovoceLLM(conversation)], words)


async def pipecat_memory(conversation, words):
    from pipecat.services.ollama.llm import OLLamaLLMService
    from sottovoce.pipecat import SottovoceMemory

    def model():
        settings = OLLamaLLMService.Settings(model="llama3.2")
        return OLLamaLLMService(base_url=os.environ["MODEL"] + "/v1", settings=settings)

    return await _pipeline(lambda: [SottovoceMemory(conversation), model()], words)


async def _pipeline(processors, words):
    from pipecat.frames.frames import EndFrame, LLMMessagesAppendFrame
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.runner import PipelineRunner
    from pipecat.pipeline.task import PipelineTask
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair

    context = LLMContext()
    aggregators = LLMContextAggregatorPair(context)
    task = PipelineTask(Pipeline([aggregators.user(), *processors(), aggregators.assistant()]))
    said = [{"role": "user", "content": words}]
    await task.queue_frames([LLMMessagesAppendFrame(said, run_llm=True), EndFrame()])
    await PipelineRunner(handle_sigint=False).run(task)
    return context.messages[-1]["content"]


async def livekit(conversation, words):
    from livekit.agents import Agent, AgentSession
    from sottovoce.livekit import SottovoceLLM

    async with AgentSession(llm=SottovoceLLM(conversation)) as session:
        await session.start(Agent(instructions="Answer briefly."))
        result = await session.run(user_input=words)
        return result.expect.next_event(type="message").event().item.text_content


async def agents(conversation, words):
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI
    from sottovoce.agents import SottovoceSession

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=os.environ["MODEL"] + "/v1", api_key="none")
    model = OpenAIChatCompletionsModel(model="llama3.2", openai_client=client)
    agent = Agent(name="Iris", instructions="Answer briefly.", model=model)
    result = await Runner.run(agent, words, session=SottovoceSession(conversation))
    return result.final_output


async def main(framework, words):
    async with open_store() as store:
        print(await globals()[framework](store.conversation("dm/ann"), words))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
