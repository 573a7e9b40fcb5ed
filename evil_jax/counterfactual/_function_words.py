"""Closed classes of English words. A word of one of these is not looked up in WordNet, which has nouns a, in, who, be.

The classes are those of any grammar of English, split where they differ in what may come next (_grammar.py).
"""


def words(text: str) -> frozenset[str]:
    """Words that blanks separate."""
    return frozenset(text.split())


_CLASSES = {
    'det': 'a an the every each no either neither whichever whatever',
    'dem': 'this that',
    'dems': 'these those',
    'poss': 'my your his her its their our whose',
    'pron': """
        i you he she it we they me him us them myself yourself himself herself itself ourselves yourselves themselves
        someone anyone everyone somebody anybody everybody something anything everything nothing nobody mine yours hers
        theirs ours oneself im youre theyre hes shes""",
    'there': 'there',
    'wh': 'what which',
    'who': 'who whom whoever',
    'how': 'how',
    'where': 'where when why whenever wherever',
    'num': """
        one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million zero
        first second third fourth fifth""",
    'quant': """
        many much more most few fewer fewest several some any all both other others another enough less least such same
        none various own""",
    'degree': 'very too so quite rather as extremely really fairly somewhat',
    'adv': """
        not never ever always often usually normally typically sometimes just also even still already yet now then here
        again well upside probably maybe perhaps possibly likely currently only almost nearly else instead actually
        definitely mostly mainly away together apart today tonight tomorrow yesterday soon once twice later
        simultaneously approximately ago anymore anywhere everywhere somewhere nowhere indoors outdoors
        upstairs downstairs""",
    'prep': """
        in on at of with into onto under above below behind beside beneath between among amongst near around through
        across along against toward towards upon off over out up down inside outside underneath within throughout per
        past besides amid atop via beyond aboard""",
    # A form in -ing behind these is a verb ("good for skiing"), behind the others often a noun ("of the building").
    'gerund': 'for by from without before after during until till since like unlike despite except about than',
    'to': 'to',
    'be': """
        is are was were be been being am isn't aren't wasn't weren't ain't isnt arent wasnt werent whats wheres whos
        hows theres thats""",
    'do': "do does did doing done don't doesn't didn't dont doesnt didnt",
    'have': "have has had having haven't hasn't hadn't havent hasnt hadnt",
    'modal': """
        can could will would shall should may might must ought cannot can't couldn't won't wouldn't shouldn't mustn't
        cant couldnt wont wouldnt shouldnt""",
    'and': 'and or but nor plus versus vs',
    'because': 'if because while whether although though unless whereas',
    'word': 'yes please okay ok oh hey etc',
}

CLASS = {word: name for name, members in _CLASSES.items() for word in members.split()}

NOUNS = words('can past inside outside may will might')  # behind a determiner: "a can", "the inside"
VERBS = words('like')  # where a verb is due: "do they like it"
