"""A WordNet of ten synsets, for tests of how its files are read."""

import pathlib

_NOUNS = """  1 This software and database is provided under the licence of WordNet 3.0 Copyright 2006 by nobody.
00000010 03 n 01 entity 0 001 ~ 00000020 n 0000 | that which is
00000020 05 n 02 animal 0 animate_being 0 004 @ 00000010 n 0000 ~ 00000030 n 0000 ~ 00000040 n 0000 ~ 00000050 n 0000 \
| a living dog; "an animate being | or a dog"
00000030 05 n 01 pet 0 002 @ 00000020 n 0000 ~ 00000050 n 0000 | a dog at home
00000040 05 n 01 hunter 0 001 @ 00000020 n 0000 | it hunts
00000050 05 n 02 dog 0 domestic_dog 0 003 @ 00000030 n 0000 @ 00000020 n 0000 ~i 00000060 n 0000 | it barks
00000060 18 n 01 Laika 0 002 @i 00000050 n 0000 ;u 00000040 n 0000 | a dog in space
"""
FILES = {
    'data.noun': _NOUNS,
    'data.verb': '00000010 38 v 01 dog 0 000 01 + 08 00 | go after\n',
    'data.adj': '00000010 00 a 01 big 0 002 & 00000020 a 0000 ! 00000030 a 0101 | of size\n'
    '00000020 00 s 01 huge(p) 0 001 & 00000010 a 0000 | of much size\n'
    '00000030 00 a 01 small 0 001 ! 00000010 a 0101 | of little size\n',
    'data.adv': '00000010 02 r 01 fast 0 000 | at speed\n',
    'noun.exc': 'men man\noxen ox\n',
    'verb.exc': 'ate eat\n',
    'adj.exc': 'better good well\n',
    'adv.exc': 'best well\n',
    'index.sense': 'animal%1:05:00:: 00000020 1 7\nanimate_being%1:05:00:: 00000020 1 0\nbig%3:00:00:: 00000010 1 9\n'
    'dog%1:05:00:: 00000050 2 1\ndog%1:05:01:: 00000030 1 42\ndog%2:38:00:: 00000010 1 2\n'
    'domestic_dog%1:05:00:: 00000050 1 0\nentity%1:03:00:: 00000010 1 5\nfast%4:02:00:: 00000010 1 3\n'
    'huge%5:00:00:big:00 00000020 1 4\nhunter%1:05:00:: 00000040 1 0\nlaika%1:18:00:: 00000060 1 0\n'
    'pet%1:05:00:: 00000030 1 0\nsmall%3:00:00:: 00000030 1 8\n',
}


def write(folder: pathlib.Path, **changed: str) -> pathlib.Path:
    """Writes the files; `changed` replaces contents, by names with _ for the point."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_bytes(changed.get(name.replace('.', '_'), text).encode())
    return folder
