"""Fuzzers: random cases of several kinds, judged, minimised and kept; ``python -m tests.fuzz``."""
