"""SEIR epidemic in three age groups with a contact matrix and a lockdown.

M. J. Keeling and P. Rohani, "Modeling Infectious Diseases in Humans and
Animals", chapter 3; R0 by the next generation matrix (Diekmann, Heesterbeek).
"""
import numpy as np
from scipy.integrate import odeint, simpson
from scipy.optimize import root

POPULATION = np.array([2.0e5, 5.5e5, 2.5e5])
CONTACTS = np.array([[8.0, 4.0, 1.0],
                     [3.0, 7.0, 1.5],
                     [0.8, 2.5, 2.0]])
FATALITY = [2e-5, 1e-3, 2e-2]
n_groups = 3


def closure(t, start, effect, width=3.0):
    """Smooth switch of the contact rate around day `start`."""
    return 1.0 - effect / (1.0 + np.exp(-(t - start) / width))


def seir(y, t, beta, sigma, gamma, effect):
    S, E, I, Rec = y.reshape(4, n_groups)
    force = beta * closure(t, 40.0, effect) * CONTACTS.dot(I / POPULATION)
    dy = np.empty((4, n_groups))
    dy[0] = -force * S
    dy[1] = force * S - sigma * E
    dy[2] = sigma * E - gamma * I
    dy[3] = gamma * I
    return dy.ravel()


def reproduction_number(beta, gamma):
    ngm = np.zeros((n_groups, n_groups))
    for i in range(n_groups):
        for j in range(n_groups):
            ngm[i, j] = beta * CONTACTS[i, j] * POPULATION[i] / POPULATION[j] / gamma
    # power iteration, the matrix is positive
    v = np.ones(n_groups)
    for _ in range(60):
        w = ngm @ v
        lam = np.sqrt(w @ w) / np.sqrt(v @ v)
        v = w / np.sum(w)
    return lam


def final_size(beta, gamma):
    """Attack rates without measures, from the implicit final size relation."""
    def gap(z):
        return 1 - z - np.exp(-beta / gamma * CONTACTS @ z)
    return root(gap, np.full(n_groups, 0.5), tol=1e-12).x


def epidemic(beta, latent_days, infectious_days, effect, seeds=20, days=120):
    sigma, gamma = 1 / latent_days, 1 / infectious_days
    y0 = np.zeros((4, n_groups))
    y0[0] = POPULATION
    y0[2, 1] += seeds
    y0[0, 1] -= seeds
    t = np.arange(0, days + 1, 2)
    sol = odeint(seir, y0.flatten(), t, args=(beta, sigma, gamma, effect),
                 rtol=1e-10, atol=1e-7)
    return t, sol.reshape(len(t), 4, n_groups), gamma


POINT = np.array([0.026, 4.0, 6.0, 0.55])
DECIDES = False


def main(p):
    t, y, gamma = epidemic(*p)
    deaths = sum(f * r for f, r in zip(FATALITY, y[-1, 3]))
    return deaths


def outputs(p):
    t, y, gamma = epidemic(*p)
    infected = y[:, 2].sum(axis=1)
    attack = y[-1, 3] / POPULATION
    person_days = simpson(infected, x=t)
    r0 = reproduction_number(p[0], gamma)
    return np.hstack([attack, infected[10::10], person_days, r0, final_size(p[0], gamma)])
