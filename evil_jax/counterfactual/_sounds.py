"""How words begin when they are spoken: what decides between a and an. American: an herb."""

import re

# Spelled letter by letter although they have vowels.
_SPELLED = re.compile(r'(?:abc|ac|atm|ceo|emt|eu|fbi|id|ipa|led|mlb|mri|nba|suv|ufo|uk|us|usa|usb|uv)s?$')
# Names of letters that begin with a vowel: an F.
_AN_LETTERS = 'aefhilmnorsx'
_SILENT_H = re.compile(r'hour|honest|honou?r|heir|herb(?:s|al)?\b')
# Begins with a vowel that sounds like the beginning of you or of one.
_CONSONANT_SOUND = re.compile(
    r'eu|ewe|ouija|once\b|one(?:s|self)?\b|u(?:ni(?![nm]|d(?!i))|nanim|[bcfgkrst][aeiou](?!ter\b))(?!sher)'
)


def begins_with_vowel(word: str) -> bool:
    """Whether a word, a number or letters that are spelled out begin with the sound of a vowel."""
    word = word.lower()
    if word[0].isdecimal():
        number = re.match(r'[\d,]+', word)[0].replace(',', '')
        return number[0] == '8' or (number[:2] in ('11', '18') and len(number) % 3 == 2)
    start = re.match(r'\w+', word)[0]
    if len(start) == 1 or _SPELLED.match(start) or (len(start) <= 4 and not re.search('[aeiouy]', start)):
        return start[0] in _AN_LETTERS
    if start[0] == 'h':
        return bool(_SILENT_H.match(word))
    return start[0] in 'aeiou' and not _CONSONANT_SOUND.match(word)
