"""``scipy.ndimage`` for plain and traced arrays: SciPy's names, signatures, results.

Here: the namespace. Not here: the functions (``ndimage_filters``, ``ndimage_interpolation``,
``ndimage_measurements``). Plain arguments go to SciPy itself.

Layer: ``scipy``.
"""

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.scipy.dispatch import later as _later

# isort: off
from functrans.scipy.ndimage_filters import (
    convolve as convolve, correlate as correlate,
    correlate1d as correlate1d, gaussian_filter as gaussian_filter,
    gaussian_filter1d as gaussian_filter1d,
    gaussian_gradient_magnitude as gaussian_gradient_magnitude,
    gaussian_laplace as gaussian_laplace, laplace as laplace, maximum_filter as maximum_filter,
    maximum_filter1d as maximum_filter1d, median_filter as median_filter,
    minimum_filter as minimum_filter, minimum_filter1d as minimum_filter1d,
    percentile_filter as percentile_filter, prewitt as prewitt, rank_filter as rank_filter,
    sobel as sobel, uniform_filter as uniform_filter, uniform_filter1d as uniform_filter1d,
)  # fmt: skip
from functrans.scipy.ndimage_interpolation import (
    affine_transform as affine_transform, map_coordinates as map_coordinates, rotate as rotate,
    shift as shift, spline_filter as spline_filter, spline_filter1d as spline_filter1d,
    zoom as zoom,
)  # fmt: skip
from functrans.scipy.ndimage_measurements import (
    center_of_mass as center_of_mass, maximum as maximum, mean as mean, minimum as minimum,
    sum as sum, sum_labels as sum_labels,
    variance as variance,
)  # fmt: skip
# isort: on

_BY_CODE = ("convolve1d", "standard_deviation")
"""What is traced by SciPy's own code."""

__getattr__ = _later("ndimage", _BY_CODE)
__all__ = _exported(globals(), _BY_CODE)
__dir__ = _listing(__all__)
_guard(globals(), __all__)
