"""A program as hosts write it. The type checkers read it; nobody runs it."""

import asyncio
from datetime import datetime, timezone

from sottovoce import Conversation, Message, ModelUnreachableError, SottovoceError, Store


def speak(text: str) -> bool:
    return bool(text)


def threads() -> list[Message]:
    with Store(storage_root="/var/lib/house", key_file="/etc/house.key", model="llama3.2", last_n=9) as store:
        kitchen: Conversation = store.conversation("named/kitchen", thread="breakfast")
        kitchen.prepare()
        with kitchen.ask("Good morning", speaker="Ann", metadata={"device": "k1"}, sentences=True) as answer:
            for sentence in answer:
                if not speak(sentence):
                    answer.spoken_up_to(12)
        if answer.report is not None and answer.report.time_to_first_token is not None:
            print(round(answer.report.time_to_first_token, 2))
        prompt = kitchen.hear("And the milk?")
        roles: list[object] = [message["role"] for message in prompt.messages]
        print(roles, [(entry.seq, entry.why) for entry in prompt.receipt.entries])
        kept: Message | None = kitchen.keep("It is in the fridge.", spoken_up_to=5)
        if kept is not None:
            kitchen.forget(kept.seq, range(1, 3))
        kitchen.append("system", "The door opens.", time=datetime.now(timezone.utc))
        kitchen.append("assistant", "", tool_calls=[{"id": "1", "name": "lamp", "arguments": {"on": True}}])
        print([found.message.content for found in kitchen.recall("milk")], kitchen.search("milk", 3))
        return kitchen.tail(5)


async def tasks() -> str:
    async with Store() as store:
        conversation = await store.conversation_async("dm/ann")
        try:
            async with await conversation.ask_async("Good morning") as answer:
                async for text in answer:
                    speak(text)
        except ModelUnreachableError as error:
            print(error.message, error.help)
        except SottovoceError:
            await (await conversation.retry_async()).read_async()
        await asyncio.wait_for(conversation.close_async(), 5)
        return conversation.tail(1)[-1].content


if __name__ == "__main__":
    threads()
    asyncio.run(tasks())
