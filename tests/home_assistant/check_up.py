"""`sottovoce up`: Home Assistant's integrations of Ollama and of Wyoming share one memory for a room."""

from answers import reading
from house import free_port
from model import NAME, Model
from report import table
from rooms import rooms
from sottovoce import Listening, Store

FACT, QUESTION = "My cat is called Minka.", "What is my cat called?"


async def what_is_said_one_way_is_known_the_other_way(house):
    async with rooms(house) as satellites:
        serve, wyoming = free_port(), free_port()
        settings = {
            "SOTTOVOCE__SERVE__ADDRESS": f"127.0.0.1:{serve}",
            "SOTTOVOCE__WYOMING__ADDRESSES": f"127.0.0.1:{wyoming}",
            "SOTTOVOCE__WYOMING__MAP": f"{satellites['kitchen'].entity}=named/kitchen",
            "SOTTOVOCE__UP__HEALTHADDRESS": f"127.0.0.1:{free_port()}",
        }
        with Model(reading) as model, Store(**model.environment()) as store:
            with Listening(store, "up", says=r"answering at (\S+)", **settings):
                typed, writing = await house.add_ollama(f"http://127.0.0.1:{serve}/s/kitchen", "Writing", f"{NAME}:latest")
                spoken = await house.add_wyoming(wyoming)
                speaking = await house.entity(spoken, "conversation")
                await house.say(writing, FACT)
                heard = await house.say(speaking, QUESTION, satellite_id=satellites["kitchen"].entity)
                assert FACT in heard.speech, heard
                await house.say(speaking, "The milk is in the fridge.", satellite_id=satellites["kitchen"].entity)
                read = await house.say(writing, "Where in the fridge is the milk?")
                assert "The milk is in the fridge." in read.speech, read
                table(("said through", "asked through", "answer"),
                      [("Ollama", "Wyoming", heard.speech), ("Wyoming", "Ollama", read.speech)])
                for entry in (typed, spoken):
                    await house.remove(entry)
            store.is_sound()
