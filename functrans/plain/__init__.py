"""Code written for plain NumPy: its names stand for what traces while a function is traced.

Layer: ``plain`` (above numpy, scipy and transforms).
"""

from __future__ import annotations
