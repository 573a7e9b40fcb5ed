"""Odd texts and what the original METEOR says of them."""

# candidate, references, score by the Java program (pycocoevalcap 1.2; test_meteor_jar asks it again).
ODD = {
    'both empty': ('', [''], 0.0),
    'empty candidate': ('', ['a dog'], 0.0),
    'empty reference': ('a dog', [''], 0.0),
    'one word': ('dog', ['dog'], 1.0),
    'one other word': ('dog', ['cat'], 0.0),
    'only punctuation': ('.', ['.'], 1.0),
    'tabs': ('a\tdog\t\truns', ['a dog runs'], 1.0),
    'control characters': ('\x00a dog\x1f', ['a dog'], 1.0),
    'non-ASCII': ('Ein Hündchen läuft – schnell 😀', ['ein hündchen LÄUFT - schnell 😀'], 1.0),
    'wide blanks': ('a\u00a0dog\u3000runs', ['a dog runs'], 1.0),
    'Greek letters stand alone': ('ΟΔΟΣ', ['οδος'], 0.3887662972078962),
    'one hash in Java': ('an', ['c0'], 1.0),
    'capital I': ('I live in Istanbul', ['i LIVE IN ISTANBUL'], 1.0),
    'line breaks': ('a dog\nruns\r\nfast', ['a dog runs fast'], 1.0),
    'separator': ('a ||| dog|||', ['|||a dog'], 1.0),
    'nothing but separators': ('||| |||', ['a dog'], 0.0),
    'half a surrogate pair': ('\ud83d dog', ['\ufffd dog'], 1.0),
    'an empty one among references': ('a dog', ['', 'a dog'], 1.0),
    'words that hide dots': ('a DOTMULTI dog DOTDOTMULTI runs', ['a . dog .. runs'], 1.0),
    'abbreviations': ('the U.S. women e.g. Dr. Who', ['The US women eg dr. who'], 1.0),
}
