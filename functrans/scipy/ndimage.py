"""``scipy.ndimage`` for plain and traced arrays: SciPy's names, signatures, results.

Here: the namespace. Not here: the functions (``ndimage_filters``, ``ndimage_interpolation``,
``ndimage_measurements``). Plain arguments go to SciPy itself.

Layer: ``scipy``.
"""

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.scipy.ndimage_filters import convolve as convolve
from functrans.scipy.ndimage_filters import convolve1d as convolve1d
from functrans.scipy.ndimage_filters import correlate as correlate
from functrans.scipy.ndimage_filters import correlate1d as correlate1d
from functrans.scipy.ndimage_filters import gaussian_filter as gaussian_filter
from functrans.scipy.ndimage_filters import gaussian_filter1d as gaussian_filter1d
from functrans.scipy.ndimage_filters import (
    gaussian_gradient_magnitude as gaussian_gradient_magnitude,
)
from functrans.scipy.ndimage_filters import gaussian_laplace as gaussian_laplace
from functrans.scipy.ndimage_filters import laplace as laplace
from functrans.scipy.ndimage_filters import maximum_filter as maximum_filter
from functrans.scipy.ndimage_filters import maximum_filter1d as maximum_filter1d
from functrans.scipy.ndimage_filters import median_filter as median_filter
from functrans.scipy.ndimage_filters import minimum_filter as minimum_filter
from functrans.scipy.ndimage_filters import minimum_filter1d as minimum_filter1d
from functrans.scipy.ndimage_filters import percentile_filter as percentile_filter
from functrans.scipy.ndimage_filters import prewitt as prewitt
from functrans.scipy.ndimage_filters import rank_filter as rank_filter
from functrans.scipy.ndimage_filters import sobel as sobel
from functrans.scipy.ndimage_filters import uniform_filter as uniform_filter
from functrans.scipy.ndimage_filters import uniform_filter1d as uniform_filter1d
from functrans.scipy.ndimage_interpolation import affine_transform as affine_transform
from functrans.scipy.ndimage_interpolation import map_coordinates as map_coordinates
from functrans.scipy.ndimage_interpolation import rotate as rotate
from functrans.scipy.ndimage_interpolation import shift as shift
from functrans.scipy.ndimage_interpolation import spline_filter as spline_filter
from functrans.scipy.ndimage_interpolation import spline_filter1d as spline_filter1d
from functrans.scipy.ndimage_interpolation import zoom as zoom
from functrans.scipy.ndimage_measurements import center_of_mass as center_of_mass
from functrans.scipy.ndimage_measurements import maximum as maximum
from functrans.scipy.ndimage_measurements import mean as mean
from functrans.scipy.ndimage_measurements import minimum as minimum
from functrans.scipy.ndimage_measurements import standard_deviation as standard_deviation
from functrans.scipy.ndimage_measurements import sum as sum
from functrans.scipy.ndimage_measurements import sum_labels as sum_labels
from functrans.scipy.ndimage_measurements import variance as variance

__all__ = _exported(globals())
__dir__ = _listing(__all__)
