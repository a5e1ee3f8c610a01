#!/usr/bin/env python3
"""The documents behind the figures in docs/reference/dump-restore.md, as BSON on standard output:

    python3 docs/dump-restore-documents.py | bunko restore --db test --collection documents -

992,000 of them, or as many as the first argument says, and the same ones every time. Each is 884 bytes long:

    {_id: ObjectId, n: int, k: int, g: int, text: string of 830 characters}

A text is put together of pieces, four of five of them one of 300 sentences, as in records that programs write, and the
fifth a word out of many. So lz4 makes one byte of 3.9. Needs Python 3 and nothing else.
"""

import random
import struct
import sys

COUNT = 992_000
TEXT_CHARACTERS = 830
SENTENCES = 300
SENTENCES_SHARE = 0.8
SENTENCE_WORDS = (4, 8)
WORDS = 12_000
WORD_LETTERS = (3, 8)
LETTERS = "etaoinshrdlcumwfgypbvk"
INT32, STRING, OBJECT_ID = b"\x10", b"\x02", b"\x07"


def word(chance):
    return "".join(chance.choices(LETTERS, k=chance.randint(*WORD_LETTERS)))


def sentence(chance, words):
    return " ".join(chance.choices(words, k=chance.randint(*SENTENCE_WORDS))).capitalize() + ". "


def text(chance, sentences, words):
    """Cut off wherever it ends: all have one length."""
    characters = ""
    while len(characters) < TEXT_CHARACTERS:
        is_sentence = chance.random() < SENTENCES_SHARE
        characters += chance.choice(sentences) if is_sentence else chance.choice(words) + " "
    return characters[:TEXT_CHARACTERS]


def integer(name, value):
    return INT32 + name + b"\0" + struct.pack("<i", value)


def document(number, k, characters):
    # An ObjectId as drivers make them: seconds, a process, a counter.
    object_id = struct.pack(">I", 1_700_000_000 + number // 50_000) + b"bunko" + struct.pack(">I", number)[1:]
    body = OBJECT_ID + b"_id\0" + object_id
    body += integer(b"n", number) + integer(b"k", k) + integer(b"g", number % 100)
    body += STRING + b"text\0" + struct.pack("<i", len(characters) + 1) + characters.encode("ascii") + b"\0"
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    chance = random.Random(1)
    words = [word(chance) for _ in range(WORDS)]
    sentences = [sentence(chance, words) for _ in range(SENTENCES)]
    for number in range(count):
        sys.stdout.buffer.write(document(number, chance.randrange(COUNT), text(chance, sentences, words)))


if __name__ == "__main__":
    main()
