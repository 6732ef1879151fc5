"""Looking at programs: what they cost, pages of HTML, and where a NaN came from.

Layer: ``debugging``.
"""
