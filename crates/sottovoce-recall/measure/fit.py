"""Fits what recall knows about the encoder's vectors, and writes ../data/fit.bin.

    fit.py VECTORS [CONVERSATIONS.jsonl...]

VECTORS holds a text's hash (8 bytes, FNV-1a) and its vector (384 numbers of 32 bits), as `evaluate --vectors` reads it.
Written are: the mean of questions, the mean of statements, a logistic layer that tells whether what was said tells
something, the mean of utterances, and two networks with one hidden layer: the gate, which tells whether an utterance
needs something of what was said before, and one that tells whether it goes on from the utterance before it. Fitted on the home corpus (`dev`,
`needs`, `idle`, `follow`) and up to 300 questions of each file of conversations. An utterance that goes on stands in
VECTORS by itself, and behind the one before it. `orders.py` has to run afterwards: it adds a third network. Prints how well it does on what it has not seen, in a
cross-validation."""

import json
import os
import random
import struct
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HIDDEN, EPOCHS, BATCH, FOLDS = 384, 32, 20, 128, 6
# Vectors of length one are brought to about one a number.
SCALE = 8.0
# The gate lets through what scores above this share of idle utterances.
QUIET = 0.9
# What is neither clearly asked nor ordered counts as telling something: what this adds to the layer's sum. Measured on
# what the ranker finds at home, and among statements alone.
LENIENT = 2.0
# An utterance goes on from another if it scores above this share of those that stand for themselves.
ALONE = 0.98


def hash_of(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def vectors_of(path):
    rows = np.fromfile(path, dtype=np.uint8).reshape(-1, 8 + 4 * WIDTH)
    keys = rows[:, :8].copy().view("<u8").ravel()
    return dict(zip(keys.tolist(), rows[:, 8:].copy().view("<f4")))


def lines(name):
    with open(f"{HERE}/home/{name}.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def questions_of(path):
    with open(path, encoding="utf-8") as file:
        asked = [asked["q"] for line in file for asked in json.loads(line)["qas"] if asked["ev"] and asked["cat"] != "adversarial"]
    return random.Random(1).sample(asked, min(300, len(asked)))


def shares(wanted):
    """A weight for each example, with which both classes weigh the same."""
    return np.where(wanted, 0.5 / wanted.sum(), 0.5 / (~wanted).sum()) * len(wanted)


def logistic(examples, wanted, strength=3.0):
    """Newton's method for a logistic layer with a quadratic penalty."""
    inputs, share = np.hstack([examples, np.ones((len(examples), 1))]), shares(wanted)
    weights, penalty = np.zeros(inputs.shape[1]), np.full(inputs.shape[1], 1 / strength)
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


def network(examples, wanted, seed):
    """One hidden layer of rectified units, fitted by Adam with dropout."""
    draw, share = np.random.default_rng(seed), shares(wanted)
    parts = [
        draw.normal(0, WIDTH**-0.5, (WIDTH, HIDDEN)), np.zeros(HIDDEN),
        draw.normal(0, HIDDEN**-0.5, HIDDEN), np.zeros(1),
    ]
    first, second = [np.zeros_like(part) for part in parts], [np.zeros_like(part) for part in parts]
    step = 0
    for epoch in range(EPOCHS):
        order, rate = draw.permutation(len(examples)), 0.002 * (1 - epoch / EPOCHS) + 1e-5
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            inputs = examples[chosen]
            inputs = inputs * (draw.random(inputs.shape) > 0.3) / 0.7
            before = inputs @ parts[0] + parts[1]
            kept = (draw.random(before.shape) > 0.3) / 0.7
            hidden = np.maximum(before, 0) * kept
            chance = 1 / (1 + np.exp(-(hidden @ parts[2] + parts[3])))
            error = share[chosen] * (chance - wanted[chosen]) / len(chosen)
            back = np.outer(error, parts[2]) * kept * (before > 0)
            slopes = [
                inputs.T @ back + 3e-4 * parts[0], back.sum(0),
                hidden.T @ error + 3e-4 * parts[2], np.array([error.sum()]),
            ]
            step += 1
            for part, slope, one, two in zip(parts, slopes, first, second):
                one += 0.1 * (slope - one)
                two += 0.001 * (slope**2 - two)
                part -= rate * (one / (1 - 0.9**step)) / (np.sqrt(two / (1 - 0.999**step)) + 1e-8)
    return parts


def scores(parts, examples):
    return np.maximum(examples @ parts[0] + parts[1], 0) @ parts[2] + parts[3]


def away(examples, mean):
    """The directions from a mean."""
    examples = examples - mean
    return examples / np.linalg.norm(examples, axis=1, keepdims=True) * SCALE


def numbered(parts):
    """The part that each example is of."""
    return np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def report(what, scores, which, names):
    for number, name in enumerate(names):
        if (which == number).any():
            print(f"{name}: {100 * (scores[which == number] > 0).mean():.1f} % {what}")


def flat(network):
    return np.concatenate([(network[0].T * SCALE).ravel(), *network[1:]])


def main():
    known = vectors_of(sys.argv[1])

    def of(texts):
        return np.array([known[hash_of(text.replace("\n", " "))] for text in texts], dtype=np.float64)

    statements = lines("dev")
    told = of([row["statement"] for row in statements])
    asked = of([question for row in statements for question in row["questions"]])
    needs = of([row["utterance"] for row in lines("needs")])
    idle = of([row["utterance"] for row in lines("idle")])
    follow = lines("follow")
    going_on = [row for row in follow if row["follows"]]
    both = of([f"{row['earlier']} {row['utterance']}" for row in going_on])
    both_need = np.array([row["needs"] for row in going_on])
    public = of([question for path in sys.argv[2:] for question in questions_of(path)]) if sys.argv[2:] else asked[:0]

    # The questions of a statement are left out together.
    groups = np.repeat(np.arange(len(statements)), [len(row["questions"]) for row in statements])
    parts = [asked, needs, public, idle, told, both[both_need], both[~both_need]]
    mean = np.vstack(parts).mean(0)
    examples, which = away(np.vstack(parts), mean), numbered(parts)
    wanted = np.isin(which, (0, 1, 2, 5))
    fold = np.random.default_rng(1).integers(0, FOLDS, len(examples))
    fold[which == 0], fold[which == 4] = groups % FOLDS, np.arange(len(told)) % FOLDS
    unseen = np.zeros(len(examples))
    for left in range(FOLDS):
        unseen[fold == left] = scores(network(examples[fold != left], wanted[fold != left], left), examples[fold == left])
    threshold = np.quantile(unseen[which == 3], QUIET)
    names = ["questions at home", "needs", "public questions", "idle", "statements", "needs after another", "idle after another"]
    report("need something of what was said before", unseen - threshold, which, names)

    gate = network(examples, wanted, FOLDS)
    # The scores of what a network has seen are stretched; the threshold is of what it has not seen.
    gate[3] = gate[3] - threshold

    parts = [
        of([row["utterance"] for row in going_on]), of([row["utterance"] for row in follow if not row["follows"]]),
        asked, needs, idle,
    ]
    examples, which = away(np.vstack(parts), mean), numbered(parts)
    unseen, fold = np.zeros(len(examples)), np.random.default_rng(2).integers(0, FOLDS, len(examples))
    for left in range(FOLDS):
        unseen[fold == left] = scores(network(examples[fold != left], which[fold != left] == 0, left), examples[fold == left])
    # Some of the idle ones go on from something.
    threshold = np.quantile(unseen[np.isin(which, (1, 2, 3))], ALONE)
    names = ["what goes on", "what stands for itself after another", "questions at home", "needs", "idle"]
    report("go on from what was said before", unseen - threshold, which, names)
    goes_on = network(examples, which == 0, FOLDS)
    goes_on[3] = goes_on[3] - threshold

    tell = logistic(np.vstack([told, asked, needs, idle]) * SCALE, np.arange(len(told) + len(asked) + len(needs) + len(idle)) < len(told))
    tell[:-1] *= SCALE
    tell[-1] += LENIENT
    numbers = np.concatenate([asked.mean(0), told.mean(0), tell, mean, flat(gate), flat(goes_on)])
    with open(f"{HERE}/../data/fit.bin", "wb") as out:
        out.write(struct.pack(f"<{len(numbers)}f", *numbers))


if __name__ == "__main__":
    main()
