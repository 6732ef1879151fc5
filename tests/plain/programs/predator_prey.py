"""Plankton food chain and an age structured fish stock.

J. D. Murray, "Mathematical Biology I", chapter 3 (Holling type II predation);
H. Caswell, "Matrix Population Models", chapter 2 (Leslie matrix).
"""
import numpy as np


class Community:
    """Base class: integrates the rates of a subclass with classical RK4."""

    def __init__(self, initial):
        self.state = np.array(initial, dtype=float)
        self.t = 0.0

    def rates(self, y):
        raise NotImplementedError

    def advance(self, dt):
        y = self.state
        k1 = self.rates(y)
        k2 = self.rates(y + 0.5 * dt * k1)
        k3 = self.rates(y + 0.5 * dt * k2)
        k4 = self.rates(y + dt * k3)
        self.state = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        self.t += dt

    def run(self, t_end, n):
        dt = t_end / n
        out = np.zeros((n + 1, self.state.size))
        out[0] = self.state
        for i in range(n):
            self.advance(dt)
            out[i + 1] = self.state
        return out


class LotkaVolterra(Community):
    def __init__(self, growth, attack, efficiency, death, initial=(1.0, 0.5)):
        super().__init__(initial)
        self.growth = growth
        self.attack = attack
        self.efficiency = efficiency
        self.death = death

    def intake(self, prey):
        return self.attack * prey

    def prey_growth(self, prey):
        return self.growth * prey

    def rates(self, y):
        prey, pred = y
        eaten = self.intake(prey) * pred
        return np.array([self.prey_growth(prey) - eaten,
                         self.efficiency * eaten - self.death * pred])


class RosenzweigMacArthur(LotkaVolterra):
    def __init__(self, *args, capacity=2.5, handling=0.4, **kwargs):
        super().__init__(*args, **kwargs)
        self.capacity = capacity
        self.handling = handling

    def intake(self, prey):
        return super().intake(prey) / (1 + self.attack * self.handling * prey)

    def prey_growth(self, prey):
        return super().prey_growth(prey) * (1 - prey / self.capacity)


def leslie(survival, fecundity):
    n = len(fecundity)
    L = np.zeros((n, n))
    L[0, :] = fecundity
    L[np.arange(1, n), np.arange(n - 1)] = survival
    return L


def fish_stock(food, years=8):
    """Recruitment follows the zooplankton of the year."""
    ages = np.array([100, 60, 30, 10], dtype=float)
    totals = np.zeros(years)
    for year, z in enumerate(food[:years]):
        L = leslie([0.5, 0.65, 0.4], np.array([0, 0.8, 1.6, 2.0]) * z / (0.5 + z))
        ages = L @ ages
        totals[year] = ages.sum()
    return ages, totals


POINT = np.array([1.1, 0.9, 0.55, 0.35, 3.0])
DECIDES = False


def main(p):
    model = RosenzweigMacArthur(p[0], p[1], p[2], p[3], capacity=p[4])
    out = model.run(20.0, 200)
    return float(out[:, 1].mean())


def outputs(p):
    *rates, cap = p
    out = RosenzweigMacArthur(*rates, capacity=cap).run(20.0, 200)
    simple = LotkaVolterra(*rates).run(5.0, 50)
    ages, totals = fish_stock(np.fromiter((out[25 * k, 1] for k in range(1, 9)), float))
    return np.r_[out[-1], simple[-1], np.log(ages), np.log(totals), out[:, 0].std()]
