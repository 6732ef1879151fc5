"""SciPy-shaped functions that can be traced.

Here: ``special``, as far as statistics and machine learning need it. More of SciPy is planned.

Layer: ``numpy``, ``scipy``.
"""

from functrans.scipy import special as special
