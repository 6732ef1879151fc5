"""Ranking of football teams: Davidson's Bradley-Terry model with ties, beside Elo and Colley.

R. R. Davidson (1970); D. R. Hunter (2004); A. N. Langville and C. D. Meyer, "Who's #1?".
"""
import math
from collections import defaultdict

import numpy as np
from scipy.optimize import minimize

RESULTS = """
Ajax Basel 2 1
Basel Celtic 0 0
Celtic Dukla 1 3
Dukla Ajax 1 1
Ajax Celtic 3 0
Basel Dukla 2 0
Elfsborg Ajax 0 2
Basel Elfsborg 1 1
Elfsborg Celtic 2 1
Dukla Elfsborg 4 2
Celtic Basel 1 2
Ajax Dukla 0 1
Elfsborg Basel 1 0
Celtic Ajax 2 2
"""


def parse(text):
    games = []
    for line in text.strip().splitlines():
        home, away, hg, ag = line.split()
        games.append((home, away, int(hg), int(ag)))
    return games


GAMES = parse(RESULTS)
TEAMS = sorted({g[0] for g in GAMES} | {g[1] for g in GAMES})
INDEX = {t: i for i, t in enumerate(TEAMS)}


def outcome(hg, ag):
    return 1.0 if hg > ag else 0.5 if hg == ag else 0.0


def elo(k, home_adv, start=1500.0):
    rating = defaultdict(lambda: start)
    for home, away, hg, ag in GAMES:
        diff = rating[home] + home_adv - rating[away]
        expected = 1 / (1 + 10 ** (-diff / 400))
        margin = math.log(abs(hg - ag) + 1) + 1
        change = k * margin * (outcome(hg, ag) - expected)
        rating[home] += change
        rating[away] -= change
    return rating


def probabilities(r, i, j, home_adv, nu):
    """Home win, draw, away win; r log strengths."""
    a, b = np.exp(r[i] + home_adv), np.exp(r[j])
    tie = nu * np.sqrt(a * b)
    total = a + b + tie
    return a / total, tie / total, b / total


def fit(home_adv, nu, prior):
    """Penalised maximum likelihood by Newton's method in a trust region."""
    def objective(r):
        f = 0.5 * prior * r @ r
        g = prior * r
        H = prior * np.eye(len(r))
        for home, away, hg, ag in GAMES:
            i, j = INDEX[home], INDEX[away]
            pw, pd, pl = probabilities(r, i, j, home_adv, nu)
            y = outcome(hg, ag)
            f -= math.log(pw if y == 1 else pd if y == 0.5 else pl)
            e = pw + 0.5 * pd
            var = pw + 0.25 * pd - e * e
            g[i] -= y - e
            g[j] += y - e
            H[i, i] += var; H[j, j] += var
            H[i, j] -= var; H[j, i] -= var
        return f, g, H
    res = minimize(lambda r: objective(r)[0], np.zeros(len(TEAMS)), method='trust-exact',
                   jac=lambda r: objective(r)[1], hess=lambda r: objective(r)[2],
                   options={'gtol': 1e-11})
    return res.x, res.fun


def colley(weight=1.0):
    n = len(TEAMS)
    C, b = 2 * np.eye(n), np.ones(n)
    for home, away, hg, ag in GAMES:
        i, j = INDEX[home], INDEX[away]
        w = weight if hg != ag else 1.0
        C[i, i] += w; C[j, j] += w
        C[i, j] -= w; C[j, i] -= w
        b[i] += w * (outcome(hg, ag) - 0.5)
        b[j] -= w * (outcome(hg, ag) - 0.5)
    return np.linalg.solve(C, b)


POINT = np.array([0.35, 0.9, 0.5, 24.0])     # home advantage, tie parameter, prior, Elo K
DECIDES = True


def main(x):
    """Mean squared error of the fitted expectations, plus the spread of the Elo ratings."""
    r, f = fit(*x[:3])
    rating = elo(x[3], 400 / math.log(10) * x[0])
    score = 0.0
    for home, away, hg, ag in GAMES:
        pw, pd, pl = probabilities(r, INDEX[home], INDEX[away], x[0], x[1])
        score += (outcome(hg, ag) - pw - pd / 2)**2
    spread = np.std([rating[t] for t in TEAMS])
    return score / len(GAMES) + spread / 400


def outputs(x):
    r, f = fit(*x[:3])
    rating = elo(x[3], 400 / math.log(10) * x[0])
    best = max(TEAMS, key=lambda t: r[INDEX[t]])
    table = sorted(rating.values(), reverse=True)
    return np.array([f, r[INDEX[best]], r.min(), table[0], table[-1], colley(x[1])[0]])
