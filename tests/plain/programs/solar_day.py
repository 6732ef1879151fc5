"""Sun hours and clear-sky irradiation of a tilted collector over one day.

J. A. Duffie and W. A. Beckman, "Solar Engineering of Thermal Processes", chapters 1 and 2.
"""
import math

import numpy as np
from scipy.integrate import quad

SOLAR_CONSTANT = 1361.0         # W/m2
DAY = 105


def declination(day):
    """Spencer's Fourier series, radians."""
    b = 2 * math.pi * (day - 1) / 365
    coefs = [(-0.399912, 0.070257), (-0.006758, 0.000907), (-0.002697, 0.00148)]
    delta = 0.006918
    for k, (c, s) in enumerate(coefs, start=1):
        delta += c * math.cos(k * b) + s * math.sin(k * b)
    return delta


def sunset_hour_angle(lat, delta):
    c = -math.tan(lat) * math.tan(delta)
    if c >= 1:
        return 0.0              # polar night
    elif c <= -1:
        return math.pi          # midnight sun
    return math.acos(c)


class Collector:
    def __init__(self, latitude, tilt, turbidity):
        if not -90 <= latitude <= 90:
            raise ValueError(f'latitude out of range: {latitude}')
        self.lat = math.radians(latitude)
        self.tilt = math.radians(tilt)
        self.tau = turbidity

    def cos_zenith(self, w, delta):
        return (math.sin(self.lat) * math.sin(delta)
                + math.cos(self.lat) * math.cos(delta) * math.cos(w))

    def cos_incidence(self, w, delta):
        # facing the equator
        eff = self.lat - self.tilt
        return math.sin(eff) * math.sin(delta) + math.cos(eff) * math.cos(delta) * math.cos(w)

    def components(self, w, delta):
        """Beam (normal) and diffuse (horizontal) irradiance, W/m2."""
        cz = self.cos_zenith(w, delta)
        if cz <= 0:
            return 0.0, 0.0
        zenith_deg = math.degrees(math.acos(cz))
        airmass = 1 / (cz + 0.50572 * (96.07995 - zenith_deg) ** -1.6364)
        g0 = SOLAR_CONSTANT * (1 + 0.033 * math.cos(2 * math.pi * DAY / 365))
        transmitted = math.exp(-self.tau * airmass)
        return g0 * transmitted, 0.3 * (1 - transmitted) * g0 * cz

    def beam(self, w, delta):
        return self.components(w, delta)[0] * max(0.0, self.cos_incidence(w, delta))

    def diffuse(self, w, delta):
        return self.components(w, delta)[1] * (1 + math.cos(self.tilt)) / 2

    def irradiance(self, w, delta):
        return self.beam(w, delta) + self.diffuse(w, delta)

    def daily(self):
        delta = declination(DAY)
        ws = sunset_hour_angle(self.lat, delta)
        # the plane loses the beam before sunset in summer
        wt = min(ws, sunset_hour_angle(self.lat - self.tilt, delta))
        opts = dict(args=(delta,), epsabs=1e-11, epsrel=1e-11)
        total = quad(self.beam, -wt, wt, **opts)[0] + quad(self.diffuse, -ws, ws, **opts)[0]
        return total * 12 / math.pi / 1000.0     # kWh/m2


POINT = np.array([47.4, 30.0, 0.28])     # latitude, tilt (degrees), optical depth
DECIDES = True


def main(x):
    return Collector(x[0], x[1], x[2]).daily()


def outputs(x):
    lat, tilt, tau = x
    col = Collector(lat, tilt, tau)
    delta = declination(DAY)
    ws = sunset_hour_angle(col.lat, delta)
    hourly = np.vectorize(col.irradiance, otypes=[float])
    noon, morning = hourly(np.array([0.0, -math.pi / 4]), delta)
    return np.array([col.daily(), 24 / math.pi * ws, noon, morning])
