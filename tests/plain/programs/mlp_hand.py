"""Two-layer perceptron with back-propagation written out, momentum and weight decay.

C. M. Bishop, "Pattern Recognition and Machine Learning", section 5.3.
"""
import numpy as np


def make_moons(n=24, noise=0.15, seed=5):
    rng = np.random.RandomState(seed)
    t = np.linspace(0, np.pi, n // 2)
    upper = np.c_[np.cos(t), np.sin(t)]
    lower = np.c_[1 - np.cos(t), 0.5 - np.sin(t)]
    X = np.vstack([upper, lower]) + noise * rng.randn(n, 2)
    y = np.hstack([np.zeros(n // 2), np.ones(n // 2)]).astype(int)
    return X, y


def one_hot(y, k):
    out = np.zeros((y.size, k))
    out[np.arange(y.size), y] = 1
    return out


def softmax(a):
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class MLP:
    def __init__(self, sizes, scale=1.0, seed=0):
        rng = np.random.RandomState(seed)
        self.W = [scale * rng.randn(m, n) / np.sqrt(m) for m, n in zip(sizes[:-1], sizes[1:])]
        self.b = [np.zeros(n) for n in sizes[1:]]
        self.vel = [np.zeros_like(w) for w in self.W]
        self.velb = [np.zeros_like(b) for b in self.b]

    def forward(self, X):
        self.acts = [X]
        for i, (W, b) in enumerate(zip(self.W, self.b)):
            a = self.acts[-1].dot(W) + b
            last = i == len(self.W) - 1
            self.acts.append(softmax(a) if last else np.tanh(a))
        return self.acts[-1]

    def loss(self, X, T, decay=0.0):
        P = self.forward(X)
        return -np.sum(T * np.log(P)) / len(X) + 0.5 * decay * sum((W**2).sum() for W in self.W)

    def backward(self, T, decay):
        delta = (self.acts[-1] - T) / len(T)
        grads = []
        for i in reversed(range(len(self.W))):
            grads.append((self.acts[i].T.dot(delta) + decay * self.W[i], delta.sum(axis=0)))
            if i > 0:
                delta = delta.dot(self.W[i].T) * (1 - self.acts[i]**2)
        return grads[::-1]

    def train(self, X, T, rate, momentum, decay, epochs=30):
        history = []
        for epoch in range(epochs):
            history.append(self.loss(X, T, decay))
            for i, (gW, gb) in enumerate(self.backward(T, decay)):
                self.vel[i] *= momentum
                self.vel[i] -= rate * gW
                self.velb[i] *= momentum
                self.velb[i] -= rate * gb
                self.W[i] += self.vel[i]
                self.b[i] += self.velb[i]
            # halve the rate when the loss grows
            if epoch > 0 and history[-1] > history[-2]:
                rate *= 0.5
        return history


def confusion(pred, y, k):
    C = np.zeros((k, k), dtype=int)
    for p, t in zip(pred, y):
        C[t, p] += 1
    return C


X, Y = make_moons()
XV, YV = make_moons(n=40, noise=0.2, seed=11)
POINT = np.array([0.6, 0.7, 0.01, 1.2])        # rate, momentum, decay, scale of the start
DECIDES = True


def fit(p):
    rate, momentum, decay, scale = p
    net = MLP([2, 5, 2], scale)
    history = net.train(X, one_hot(Y, 2), rate, momentum, decay)
    return net, history


def main(p):
    """Cross entropy of the validation set."""
    net, _ = fit(p)
    return net.loss(XV, one_hot(YV, 2))


def outputs(p):
    net, history = fit(p)
    P = net.forward(XV)
    C = confusion(P.argmax(axis=1), YV, 2)
    brier = np.mean((P[:, 1] - YV)**2)
    norm = np.sqrt(sum(np.linalg.norm(W)**2 for W in net.W))
    return np.array([history[-1], brier, P[0, 0], norm, C.trace() / C.sum() * P[3, 0]])
