"""Fits what recall knows about the encoder's vectors, and writes ../data/fit.bin.

    fit.py VECTORS

VECTORS holds a text's hash (8 bytes, FNV-1a) and its vector (384 numbers of 32 bits), as `evaluate --vectors` reads it.
Four parts are written: the mean of questions, the mean of statements, and two logistic layers on a vector, each with a
bias. The first tells whether an utterance needs something of what was said before; the second whether what was said
tells something. Fitted on the development half of the home corpus only; prints how well each does in a cross-validation
that leaves out whole languages."""

import json
import os
import struct
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
STRENGTH = 3.0


def hash_of(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def vectors_of(path):
    rows = np.fromfile(path, dtype=np.uint8).reshape(-1, 8 + 4 * 384)
    keys = rows[:, :8].copy().view("<u8").ravel()
    return dict(zip(keys.tolist(), rows[:, 8:].copy().view("<f4")))


def lines(name):
    with open(f"{HERE}/home/{name}.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def logistic(examples, wanted, strength=STRENGTH):
    """Newton's method for a logistic layer with a quadratic penalty, both classes weighing the same."""
    inputs = np.hstack([examples, np.ones((len(examples), 1))])
    share = np.where(wanted, 0.5 / wanted.sum(), 0.5 / (~wanted).sum()) * len(wanted)
    weights = np.zeros(inputs.shape[1])
    penalty = np.full(inputs.shape[1], 1 / strength)
    penalty[-1] = 0
    for _ in range(30):
        chance = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (share * (chance - wanted)) + penalty * weights
        curve = (inputs * (share * chance * (1 - chance))[:, None]).T @ inputs + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def left_out(examples, wanted, groups):
    """What each example scores with a layer that has not seen its language."""
    scores = np.zeros(len(wanted))
    for group in sorted(set(groups)):
        here = np.array([other == group for other in groups])
        weights = logistic(examples[~here], wanted[~here])
        scores[here] = examples[here] @ weights[:-1] + weights[-1]
    return scores


def main():
    known = vectors_of(sys.argv[1])
    def of(texts):
        return np.array([known[hash_of(text.replace("\n", " "))] for text in texts], dtype=np.float64)
    statements, idle, needs = lines("dev"), lines("idle"), lines("needs")
    told = of([row["statement"] for row in statements])
    questions = of([question for row in statements for question in row["questions"]])
    idle_vectors = of([row["utterance"] for row in idle])
    need_vectors = of([row["utterance"] for row in needs])
    languages = [row["language"] for row in statements]
    asked_languages = [row["language"] for row in statements for _ in row["questions"]]
    idle_languages = [row["language"] for row in idle]
    need_languages = [row["language"] for row in needs]
    asked = np.vstack([questions, need_vectors])

    # Each vector has length one before anything else is done; directions are told from the mean of all.
    gate_examples = np.vstack([asked, idle_vectors, told])
    gate_wanted = np.r_[np.ones(len(asked), bool), np.zeros(len(idle) + len(told), bool)]
    gate_groups = asked_languages + need_languages + idle_languages + languages
    tell_examples = np.vstack([told, asked, idle_vectors])
    tell_wanted = np.r_[np.ones(len(told), bool), np.zeros(len(asked) + len(idle), bool)]
    tell_groups = languages + asked_languages + need_languages + idle_languages
    for name, examples, wanted, groups in (
        ("needs", gate_examples, gate_wanted, gate_groups), ("tells", tell_examples, tell_wanted, tell_groups)
    ):
        scores = left_out(examples * 8, wanted, groups)
        print(f"{name}: {100 * (scores[wanted] > 0).mean():.1f} % of those that do, {100 * (scores[~wanted] > 0).mean():.1f} % of the others")
    gate = logistic(gate_examples * 8, gate_wanted)
    tell = logistic(tell_examples * 8, tell_wanted)
    gate[:-1] *= 8
    tell[:-1] *= 8
    numbers = np.concatenate([asked.mean(0), told.mean(0), gate, tell])
    with open(f"{HERE}/../data/fit.bin", "wb") as out:
        out.write(struct.pack(f"<{len(numbers)}f", *numbers))


if __name__ == "__main__":
    main()
