"""SPICE: `score` (tuples to a score, in Python), `files` (tuples on disk), `official` (the original parser and scorer).

`driver/` has the Java program that runs the original classes.
"""
