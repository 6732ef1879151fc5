"""``odeint`` takes further arguments as SciPy (a tuple) and as JAX (one by one)."""

import numpy as np

from functrans.scipy.integrate import odeint

TIMES = np.linspace(0, 1, 3)


def test_a_tuple_by_position_is_scipys_args():
    def decay(y, t, a, b):
        return -a * b * y

    one_by_one = odeint(decay, 1.0, TIMES, 2.0, 0.5)
    np.testing.assert_allclose(one_by_one, np.exp(-TIMES), rtol=1e-6)
    np.testing.assert_array_equal(odeint(decay, 1.0, TIMES, (2.0, 0.5)), one_by_one)
    np.testing.assert_array_equal(
        odeint(lambda y, t, a: -a * y, 1.0, TIMES, (1.0,)), odeint(lambda y, t: -y, 1.0, TIMES)
    )


def test_a_tuple_stays_one_where_the_function_takes_one():
    def decay(y, t, rates):
        return -rates[0] * rates[1] * y

    result = odeint(decay, 1.0, TIMES, (2.0, 0.5))
    np.testing.assert_allclose(result, np.exp(-TIMES), rtol=1e-6)
