"""Says something to a persona and prints the answer: `talk.py MODE WORDS`, in a process of its own."""

import json
import os
import sys

from ovos_bus_client.session import Session
from ovos_persona import Persona

STORE = {"storage_root": os.environ["STORE"], "key_file": os.environ["KEY"]}
CONFIGS = {
    "memory": {
        "handlers": ["ovos-chat-openai-plugin"],
        "memory_module": "ovos-sottovoce-memory-plugin",
        "ovos-sottovoce-memory-plugin": STORE,
        "ovos-chat-openai-plugin": {
            "api_url": os.environ["MODEL"] + "/v1", "key": "none", "model": "llama3.2", "allow_system_prompts": True
        },
    },
    "chat": {
        "handlers": ["ovos-sottovoce-chat-plugin"],
        "memory_module": None,
        "ovos-sottovoce-chat-plugin": {**STORE, "base_url": os.environ["MODEL"]},
    },
}


def main(mode, words):
    persona = Persona("Iris", CONFIGS[mode])
    session = Session(os.environ.get("SESSION", "default"))
    answer = " ".join(persona.stream(persona.get_messages(words, session), session))
    persona.remember(words, answer, session)
    print(json.dumps(answer))


main(*sys.argv[1:])
