"""Gaussian hidden Markov model: likelihood, smoothing and one EM step.

Forward-backward with scaling, straight from L. R. Rabiner, "A tutorial on
hidden Markov models and selected applications in speech recognition" (1989),
equations 18-25 and 95-102. Daily returns (per cent), three market regimes.
"""
import numpy
from math import exp, log, pi, sqrt
from numpy import zeros

r = numpy.random.default_rng(4)
obs = numpy.r_[r.normal(0.1, 0.5, 25), r.normal(-0.6, 1.4, 15), r.normal(0.3, 0.8, 20)].tolist()
N = 3           # states
T = len(obs)


def gauss(x, m, s):
    return exp(-(x - m)**2 / (2 * s**2)) / (s * sqrt(2 * pi))


def transitions(stay):
    A = numpy.full((N, N), (1 - stay) / (N - 1))
    numpy.fill_diagonal(A, stay)
    return A


def emissions(mean, sd):
    b = zeros([N, T])
    for i in range(N):
        for t in range(T):
            b[i, t] = gauss(obs[t], mean[i], sd[i])
    return b


def forward(A, b, start):
    alpha = zeros([T, N])
    c = []
    # initialisation
    for i in range(N):
        alpha[0, i] = start[i] * b[i, 0]
    c.append(1.0 / sum(alpha[0]))
    alpha[0] *= c[0]
    # induction
    for t in range(1, T):
        for j in range(N):
            s = 0
            for i in range(N):
                s += alpha[t - 1, i] * A[i, j]
            alpha[t, j] = s * b[j, t]
        c.append(1.0 / sum(alpha[t]))
        alpha[t] *= c[t]
    loglik = -sum([log(ct) for ct in c])
    return alpha, c, loglik


def backward(A, b, c):
    beta = zeros([T, N])
    beta[T - 1] = c[T - 1]
    for t in range(T - 2, -1, -1):
        for i in range(N):
            for j in range(N):
                beta[t, i] += A[i, j] * b[j, t + 1] * beta[t + 1, j]
            beta[t, i] *= c[t]
    return beta


def reestimate(A, b, alpha, beta, c):
    """New transition matrix, means and standard deviations."""
    xi = zeros([N, N])
    weight = zeros(N)
    first = zeros(N)
    second = zeros(N)
    for t in range(T):
        g = [alpha[t, i] * beta[t, i] / c[t] for i in range(N)]
        for i in range(N):
            weight[i] += g[i]
            first[i] += g[i] * obs[t]
            second[i] += g[i] * obs[t]**2
        if t < T - 1:
            for i in range(N):
                for j in range(N):
                    xi[i, j] += alpha[t, i] * A[i, j] * b[j, t + 1] * beta[t + 1, j]
    A_new = numpy.array([xi[i] / sum(xi[i]) for i in range(N)])
    mean = first / weight
    sd = [sqrt(q - m * m) for q, m in zip(second / weight, mean)]
    return A_new, mean, sd


# three means, log standard deviations, logit of the probability to stay
POINT = numpy.array([0.05, -0.5, 0.35, -0.6, 0.3, -0.1, 2.2])
DECIDES = False


def main(p):
    A = transitions(1 / (1 + exp(-p[6])))
    b = emissions(p[0:3], [exp(v) for v in p[3:6]])
    alpha, c, loglik = forward(A, b, [1 / 3] * 3)
    return loglik


def outputs(p):
    A = transitions(1 / (1 + exp(-p[6])))
    b = emissions(p[0:3], [exp(v) for v in p[3:6]])
    alpha, c, loglik = forward(A, b, [1 / 3] * 3)
    beta = backward(A, b, c)
    A, mean, sd = reestimate(A, b, alpha, beta, c)
    return list(A.flatten()) + list(mean) + sd + [loglik]
