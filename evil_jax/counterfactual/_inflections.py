"""English words that do not follow the rules of morphology.py. American forms where American and British differ."""

from evil_jax.counterfactual._function_words import words


def _rows(text: str) -> list[list[str]]:
    return [row.split() for row in text.replace('\n', ' ').split(',')]


PLURALS = dict(
    _rows("""
child children, man men, person people, foot feet, tooth teeth, goose geese, mouse mice, louse lice, ox oxen, die dice,
calf calves, half halves, hoof hooves, knife knives, leaf leaves, life lives, loaf loaves, scarf scarves, self selves,
sheaf sheaves, shelf shelves, thief thieves, wharf wharves, wife wives, wolf wolves, elf elves, dwarf dwarves, buffalo
buffaloes, cargo cargoes, domino dominoes, echo echoes, embargo embargoes, hero heroes, mango mangoes, mosquito
mosquitoes, potato potatoes, tomato tomatoes, tornado tornadoes, torpedo torpedoes, veto vetoes, volcano volcanoes,
alga algae, alumnus alumni, antenna antennae, bacterium bacteria, cactus cacti, criterion criteria, curriculum
curricula, datum data, focus foci, fungus fungi, genus genera, larva larvae, medium media, nebula nebulae, nucleus
nuclei, phenomenon phenomena, radius radii, spectrum spectra, stimulus stimuli, stratum strata, vertebra vertebrae,
appendix appendices, codex codices, matrix matrices, vertex vertices, axis axes, testis testes, chateau chateaux,
passerby passersby, passer-by passers-by, runner-up runners-up, looker-on lookers-on, jack-in-the-box
jack-in-the-boxes, stomach stomachs, monarch monarchs, patriarch patriarchs, matriarch matriarchs, epoch epochs, eunuch
eunuchs, loch lochs
""")
)
# Words that end like one of these have its plural: fireman, grandchild, titmouse, eyetooth, housewife, bookshelf.
PLURAL_ENDS = (
    'man',
    'child',
    'mouse',
    'tooth',
    'foot',
    'wife',
    'shelf',
    'knife',
    'wolf',
    'calf',
    'leaf',
    'loaf',
    'scarf',
)
REGULAR_MEN = words('ataman brahman caiman cayman german hetman human norman ottoman roman shaman talisman turkoman')

# One and many look the same.
UNCHANGED = words("""
aircraft barracks bison carp chassis cod corps crossroads deer elk gallows grouse headquarters hertz hovercraft
mackerel means moose offspring pike plankton reindeer rendezvous salmon series sheep shrimp spacecraft species squid
sweepstakes swine trout tuna watercraft wildebeest yen
""")
# Only plural, without the s that would show it (binoculars, trousers do).
ONLY_PLURAL = words('cattle livestock people police poultry vermin pantyhose')
# Plurals of which WordNet's entry means what people mean, although the singular is a common word.
OWN_SENSE = words('glasses jeans pants shorts')
# Singular, although their s looks like a plural's.
SINGULAR_S = words('lens summons mars')

# Cannot be counted. What is counted as well (a beer, two coffees, the lights) is not listed.
MASS = words("""
air alcohol anger apparel artwork asphalt attire bacon baggage beef blood bread broccoli butter cardboard cash celery
cereal chalk china clay clothing coal concrete corn cotton crockery cutlery denim dirt dough dust earthenware
electricity equipment evidence flatware foliage footgear footwear fun fur furniture garbage garlic gasoline gear
glassware gold graffiti grass gravel greenery hail hair happiness hardware headgear health heat herbage honey
information ink jewelry ketchup kitchenware knowledge leather lettuce lighting lightning linen luck luggage lumber
machinery mail makeup mayonnaise milk money moss mud music mustard neckwear news oxygen pasta pepper petroleum plastic
plywood pork pottery powder progress rain rice rubber rubbish rust salt sand scenery seafood seaweed silk silver
silverware sleet smoke snow soap software soil spaghetti spinach steam steel stemware straw sugar sunlight sunshine
tableware tennis terrain toast traffic transportation trash underwear vegetation velvet vinegar water weather wheat
wool yarn yoghurt yogurt
""")

# Base: past, participle. With a prefix, they do the same: overrun, rebuild, misunderstand.
VERBS = {
    base: (past, participle)
    for base, past, participle in _rows("""
arise arose arisen, awake awoke awoken, bear bore borne, beat beat beaten, become became become, befall befell
befallen, beget begot begotten, begin began begun, behold beheld beheld, bend bent bent, beset beset beset, bet bet
bet, bid bid bid, bind bound bound, bite bit bitten, bleed bled bled, blow blew blown, break broke broken, breed bred
bred, bring brought brought, broadcast broadcast broadcast, build built built, burst burst burst, buy bought bought,
cast cast cast, catch caught caught, choose chose chosen, cling clung clung, come came come, cost cost cost, creep
crept crept, cut cut cut, deal dealt dealt, dig dug dug, do did done, draw drew drawn, drink drank drunk, drive drove
driven, eat ate eaten, fall fell fallen, feed fed fed, feel felt felt, fight fought fought, find found found, flee fled
fled, fling flung flung, fly flew flown, forbid forbade forbidden, forget forgot forgotten, forgive forgave forgiven,
forsake forsook forsaken, freeze froze frozen, get got gotten, give gave given, go went gone, grind ground ground, grow
grew grown, hang hung hung, have had had, hear heard heard, hide hid hidden, hit hit hit, hold held held, hurt hurt
hurt, inlay inlaid inlaid, inset inset inset, keep kept kept, kneel knelt knelt, know knew known, lay laid laid, lead
led led, leave left left, lend lent lent, let let let, lie lay lain, light lit lit, lose lost lost, make made made,
mean meant meant, meet met met, mow mowed mown, offset offset offset, partake partook partaken, pay paid paid, put put
put, quit quit quit, read read read, rid rid rid, ride rode ridden, ring rang rung, rise rose risen, run ran run, say
said said, see saw seen, seek sought sought, sell sold sold, send sent sent, set set set, sew sewed sewn, shake shook
shaken, shed shed shed, shine shone shone, shoot shot shot, show showed shown, shrink shrank shrunk, shut shut shut,
sing sang sung, sink sank sunk, sit sat sat, slay slew slain, sleep slept slept, slide slid slid, sling slung slung,
slink slunk slunk, slit slit slit, sow sowed sown, speak spoke spoken, speed sped sped, spend spent spent, spin spun
spun, spit spat spat, split split split, spread spread spread, spring sprang sprung, stand stood stood, steal stole
stolen, stick stuck stuck, sting stung stung, stink stank stunk, strew strewed strewn, stride strode stridden, strike
struck struck, string strung strung, strive strove striven, sublet sublet sublet, swear swore sworn, sweep swept swept,
swell swelled swollen, swim swam swum, swing swung swung, take took taken, teach taught taught, tear tore torn, tell
told told, think thought thought, throw threw thrown, thrust thrust thrust, tread trod trodden, upset upset upset, wake
woke woken, waylay waylaid waylaid, wear wore worn, weave wove woven, weep wept wept, win won won, wind wound wound,
withdraw withdrew withdrawn, withhold withheld withheld, withstand withstood withstood, wring wrung wrung, write wrote
written
""")
}
PREFIXES = ('fore', 'inter', 'mis', 'out', 'over', 're', 'un', 'under', 'up')
REGULAR_VERBS = words('relay')  # that look like an irregular one with a prefix

# Verbs of several syllables whose last consonant is doubled: admitted, but visited.
DOUBLED = words("""
abet abhor abut acquit admit allot annul aver befit befog beget begin beset bestir commit compel concur confer control
corral debar debug defer degas demur deter disbar disinter dispel distil eavesdrop embed emit enrol equip excel expel
extol forbid forget fulfil handicap hobnob horsewhip humbug imbed impel incur infer input inset instal instil inter
intermit kidnap leapfrog nonplus occur offset omit patrol permit prefer program propel quickstep rebel rebut recap
recur refer refit regret remit repel rerun reset resubmit sandbag sidestep sublet submit transfer transmit wiretap
zigzag
""")
