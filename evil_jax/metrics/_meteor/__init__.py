"""METEOR 1.5 in Python, on the resource files of the user's own copy of the original.

`normalise` (text to words), `lexicon` (stems, synonyms, function words), `paraphrases` (an index on disk), `block` and
`align` (words to an alignment), `formula` (statistics to a score), `workers` (many pairs, several processes), `jar`
(the original program itself).
"""
