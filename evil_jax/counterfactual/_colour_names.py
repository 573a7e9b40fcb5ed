"""The 148 named colours of CSS Color Module Level 4 (W3C), and the English words around colour names."""

from evil_jax.counterfactual._function_words import words

_TABLE = """
alice blue f0f8ff, antique white faebd7, aqua 00ffff, aquamarine 7fffd4, azure f0ffff, beige f5f5dc, bisque ffe4c4,
black 000000, blanched almond ffebcd, blue 0000ff, blue violet 8a2be2, brown a52a2a, burlywood deb887,
cadet blue 5f9ea0, chartreuse 7fff00, chocolate d2691e, coral ff7f50, cornflower blue 6495ed, cornsilk fff8dc,
crimson dc143c, cyan 00ffff, dark blue 00008b, dark cyan 008b8b, dark goldenrod b8860b, dark gray a9a9a9,
dark green 006400, dark grey a9a9a9, dark khaki bdb76b, dark magenta 8b008b, dark olive green 556b2f,
dark orange ff8c00, dark orchid 9932cc, dark red 8b0000, dark salmon e9967a, dark sea green 8fbc8f,
dark slate blue 483d8b, dark slate gray 2f4f4f, dark slate grey 2f4f4f, dark turquoise 00ced1, dark violet 9400d3,
deep pink ff1493, deep sky blue 00bfff, dim gray 696969, dim grey 696969, dodger blue 1e90ff, firebrick b22222,
floral white fffaf0, forest green 228b22, fuchsia ff00ff, gainsboro dcdcdc, ghost white f8f8ff, gold ffd700,
goldenrod daa520, gray 808080, green 008000, green yellow adff2f, grey 808080, honeydew f0fff0, hot pink ff69b4,
indian red cd5c5c, indigo 4b0082, ivory fffff0, khaki f0e68c, lavender e6e6fa, lavender blush fff0f5,
lawn green 7cfc00, lemon chiffon fffacd, light blue add8e6, light coral f08080, light cyan e0ffff,
light goldenrod yellow fafad2, light gray d3d3d3, light green 90ee90, light grey d3d3d3, light pink ffb6c1,
light salmon ffa07a, light sea green 20b2aa, light sky blue 87cefa, light slate gray 778899, light slate grey 778899,
light steel blue b0c4de, light yellow ffffe0, lime 00ff00, lime green 32cd32, linen faf0e6, magenta ff00ff,
maroon 800000, medium aquamarine 66cdaa, medium blue 0000cd, medium orchid ba55d3, medium purple 9370db,
medium sea green 3cb371, medium slate blue 7b68ee, medium spring green 00fa9a, medium turquoise 48d1cc,
medium violet red c71585, midnight blue 191970, mint cream f5fffa, misty rose ffe4e1, moccasin ffe4b5,
navajo white ffdead, navy 000080, old lace fdf5e6, olive 808000, olive drab 6b8e23, orange ffa500, orange red ff4500,
orchid da70d6, pale goldenrod eee8aa, pale green 98fb98, pale turquoise afeeee, pale violet red db7093,
papaya whip ffefd5, peach puff ffdab9, peru cd853f, pink ffc0cb, plum dda0dd, powder blue b0e0e6, purple 800080,
rebecca purple 663399, red ff0000, rosy brown bc8f8f, royal blue 4169e1, saddle brown 8b4513, salmon fa8072,
sandy brown f4a460, sea green 2e8b57, seashell fff5ee, sienna a0522d, silver c0c0c0, sky blue 87ceeb,
slate blue 6a5acd, slate gray 708090, slate grey 708090, snow fffafa, spring green 00ff7f, steel blue 4682b4,
tan d2b48c, teal 008080, thistle d8bfd8, tomato ff6347, turquoise 40e0d0, violet ee82ee, wheat f5deb3, white ffffff,
white smoke f5f5f5, yellow ffff00, yellow green 9acd32
"""

# Names with blanks ('deep sky blue'), as people write them, to red, green and blue, 0 to 255.
SPACED = {
    name: tuple(bytes.fromhex(code))
    for name, _, code in (row.strip().rpartition(' ') for row in _TABLE.replace('\n', ' ').split(','))
}

# The eleven basic colour terms of English (Berlin and Kay, 1969).
BASIC = ('black', 'white', 'red', 'green', 'yellow', 'blue', 'brown', 'purple', 'pink', 'orange', 'gray')

# Basic terms that people may call a colour by, where its name has none of them in it.
_CALLED = """
aqua blue green, aquamarine blue green, azure blue white, beige brown white yellow, bisque orange pink white,
almond orange white yellow, burlywood brown orange yellow, chartreuse green yellow, chocolate brown orange,
coral orange pink red, cornsilk white yellow, crimson pink red, cyan blue green, fuchsia pink purple,
firebrick brown red, gainsboro gray white, gold orange yellow, goldenrod brown orange yellow, grey gray,
honeydew green white, indigo blue purple, ivory white yellow, khaki brown green yellow,
lavender blue pink purple white, blush pink, lemon yellow, chiffon white, lime green yellow, linen white,
magenta pink purple, maroon brown purple red, mint green, cream white yellow, misty white, rose pink,
moccasin orange yellow brown, navy blue, old white, lace white, olive green yellow brown, orchid pink purple,
papaya orange white yellow, peach orange pink, peru brown orange, plum pink purple, rosy pink, salmon orange pink red,
sandy orange yellow, seashell pink white, sienna brown orange red, silver gray white, slate gray blue, smoke gray,
snow white, steel gray, tan brown yellow, teal blue green, thistle gray pink purple, tomato orange red,
turquoise blue green, violet pink purple, wheat brown yellow, midnight black
"""
_CALLED_BY_WORD = {word: tuple(terms) for word, *terms in (row.split() for row in _CALLED.split(','))}


def _called(spaced):
    parts = spaced.split()
    return frozenset(t for part in parts for t in _CALLED_BY_WORD.get(part, (part,) if part in BASIC else ()))


CALLED = {name.replace(' ', ''): _called(name) for name in SPACED}

# Two words that are more often something else than this name: white smoke is smoke, and 'is the yellow green?' asks.
TWO_WORDS = frozenset({
    'blue violet', 'green yellow', 'lavender blush', 'lemon chiffon', 'mint cream', 'misty rose', 'old lace',
    'orange red', 'papaya whip', 'peach puff', 'white smoke', 'yellow green',
})  # fmt: skip

# Things first: a colour only beside something that wears or is painted in it ('a salmon shirt').
THINGS = frozenset({
    'bisque', 'burlywood', 'chartreuse', 'chocolate', 'coral', 'cornsilk', 'firebrick', 'goldenrod', 'honeydew',
    'lime', 'linen', 'moccasin', 'olive', 'orchid', 'peru', 'plum', 'salmon', 'seashell', 'sienna', 'snow', 'thistle',
    'tomato', 'wheat',
})  # fmt: skip

# Colours and things: a colour wherever an adjective stands, a thing elsewhere ('an orange', 'the navy', 'a tan').
MIXED = frozenset({
    'gold', 'ivory', 'khaki', 'lavender', 'navy', 'orange', 'silver', 'tan', 'turquoise', 'violet', 'aqua', 'indigo',
})  # fmt: skip

# What THINGS are the colour of.
BEARERS = words("""
ball balloon bag backpack bed bike blanket boat blouse bow bus cap car carpet chair coat couch cup curtain curtains
cushion door dress eyes fabric frame furniture gloves gown hair hat helmet hoodie house jacket jersey kite lamp letters
motorcycle paint pants pillow plate purse robe room rug scarf shirt shirts shoe shoes shorts skirt sneakers sofa suit
suitcase sweater sweatshirt tablecloth tie tile tiles top towel train truck trunks umbrella uniform uniforms van vase
vest wall walls wallpaper
""")

# 'An orange slice', 'gold medal', 'navy ship': what makes the word before it the thing again.
THING_HEADS = words("""
juice slice slices peel peels tree trees wedge wedges half halves segment segments section sections soda zest
medal medals coin coins ring rings necklace chain bracelet jewelry mine ware ship ships officer uniform blossom
""")

# Their white, black or brown is of skin, and a counterfactual question does not play with it.
PEOPLE = words("""
adult adults baby babies boy boys boyfriend child children couple dude family father female females folks gentleman
gentlemen girl girls guy guys he human kid kids ladies lady male males man men mother people person persons she skin
they woman women
""")

DETERMINERS = words('a an any her his its my our some that the their these this those your')
BE = words('is are was were be')
# Stand before a colour name that is a noun: 'in red', 'the white of an egg', 'any blue', 'wearing black'.
BEFORE_NOUNS = DETERMINERS | words('as by dressed in much of on to wear wearing wears with')

_LIGHTS = '(?:traffic |street |stop )?(?:lights?|signals?)'
_PEOPLE = '(?:{})'.format('|'.join(sorted(PEOPLE)))
_SKIN = '(?:black|white|brown|yellow|red|tan)'
# Behind these a noun is a subject: 'is the sky blue' does not ask about sky blue.
BEFORE_SUBJECTS = words('the his her its their my your our is was are were')

# Fixed phrases, of which no part is a colour to exchange: regular expressions over lower case.
PROTECTED = (
    r'black[ -]?(?:and|&|n|in)[ -]?white',
    r'white[ -](?:and|&)[ -]black (?:photo|picture|image|photograph)s?',
    rf'(?:red|green|yellow|amber|orange) {_LIGHTS}',
    rf'{_LIGHTS} (?:is |are |turn |turned |turns )?(?:red|green|yellow|amber|orange)',
    r'(?:is|are|was|were) (?:the|this|that) lights? (?:red|green|yellow)(?! \w)',
    r'(?:polar|brown|black|white|grizzly) bears?',
    r'(?:blue|white|gray|grey|red|black) (?:jays?|whales?|sharks?|rhinos?|squirrels?)',
    r'red (?:hat|sox|cross|bull|carpet|velvet|meat|cabbage)|white (?:house|meat|sauce|flag)|yellow pages|old navy',
    r'(?:red|white|orange|green|black) (?:wines?|juice|teas?)',
    r'(?:red|green|black|white|yellow) (?:peppers?|onions?|beans?)',
    r'(?:brown|white|black) (?:rice|bread|sugar|chocolate|flour)',
    r'blue ?(?:jeans?|berry|berries)|black ?(?:berry|berries|smith|top)|(?:white|black) ?boards?',
    r'green ?(?:houses?|thumbs?)|olive (?:oil|branch)|silver ?ware|gold ?fish|ultra ?violet',
    r'snow (?:pants|suits?|shoes|hats?|jackets?|coats?|gloves|truck|house)',
    rf'{_SKIN}(?: and {_SKIN}| or {_SKIN})?(?: young| old| older| little| elderly)? {_PEOPLE}',
    rf'(?:is|are|was|were)(?: the| this| that| these| those| any)? {_PEOPLE} {_SKIN}(?: or {_SKIN})?\b(?! \w)',
)
