"""Dose-response bioassay: penalised logistic regression and the LD50.

A. Agresti, "Categorical Data Analysis", chapter 5; D. J. Finney, "Probit
Analysis". Fitted with a trust region Newton method.
"""
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, xlogy
from scipy.stats import chi2, norm

# deaths among groups of beetles under carbon disulphide (Bliss 1935)
GROUP_SIZE = np.array([59, 60, 62, 56, 63, 59, 62, 60])
DEATHS = np.array([6, 13, 18, 28, 52, 53, 61, 60])


class DoseResponse:
    def __init__(self, log_dose, n, k, ridge=0.0):
        self.centre = np.mean(log_dose)
        self.X = np.vstack([np.ones(len(log_dose)), log_dose - self.centre]).T
        self.n = n
        self.k = k
        self.ridge = ridge

    def objective(self, w):
        eta = self.X @ w
        nll = np.sum(self.n * np.logaddexp(0, eta) - self.k * eta)
        return nll + 0.5 * self.ridge * w[1]**2

    def gradient(self, w):
        g = self.X.T @ (self.n * expit(self.X @ w) - self.k)
        g[1] += self.ridge * w[1]
        return g

    def information(self, w):
        p = expit(self.X @ w)
        info = self.X.T @ ((self.n * p * (1 - p))[:, None] * self.X)
        info[1, 1] += self.ridge
        return info

    def fit(self):
        res = minimize(self.objective, np.array([0.5, 20]), jac=self.gradient,
                       hess=self.information, method='trust-exact', options={'gtol': 1e-9})
        self.w = res.x
        self.p = expit(self.X @ self.w)
        self.cov = np.linalg.inv(self.information(self.w))
        return self

    def lethal_dose(self, fraction=0.5):
        logit = np.log(fraction / (1 - fraction))
        return (logit - self.w[0]) / self.w[1] + self.centre

    def ld50_interval(self, level=0.95):
        """Delta method."""
        ld = self.lethal_dose()
        grad = np.array([-1 / self.w[1], self.w[0] / self.w[1]**2])
        se = np.sqrt(grad @ self.cov @ grad)
        z = norm.ppf(0.5 + level / 2)
        return ld - z * se, ld + z * se

    def deviance(self):
        fit_k = self.n * self.p
        dead = xlogy(self.k, self.k / fit_k)
        alive = xlogy(self.n - self.k, (self.n - self.k) / (self.n - fit_k))
        return 2 * np.sum(dead + alive)


POINT = np.array([49.06, 52.99, 56.91, 60.84, 64.76, 68.69, 72.61, 76.54, 0.02])   # mg/l, ridge
DECIDES = False


def main(p):
    model = DoseResponse(np.log10(p[:-1]), GROUP_SIZE, DEATHS, ridge=p[-1]).fit()
    return 10**model.lethal_dose(0.5)


def outputs(p):
    *dose, ridge = p
    model = DoseResponse(np.log10(dose), GROUP_SIZE, DEATHS, ridge).fit()
    dev = model.deviance()
    lo, hi = model.ld50_interval()
    return np.r_[model.w, lo, hi, dev, chi2.sf(dev, df=6), model.p, model.lethal_dose(0.9)]
