"""Anisotropic diffusion of a noisy image, edge strength by Sobel, threshold by Otsu.

P. Perona and J. Malik (1990); R. C. Gonzalez and R. E. Woods, "Digital Image Processing",
chapters 3 and 10.
"""
import numpy as np
from scipy import ndimage
from scipy.signal import convolve2d

SHAPE = (20, 20)


def phantom(radius, contrast):
    """A blurred disc and a bar on a ramp, with fixed noise."""
    yy, xx = np.mgrid[:SHAPE[0], :SHAPE[1]].astype(float)
    d = np.hypot(yy - 9.5, xx - 8.0)
    img = 0.3 + 0.01 * xx
    img += contrast / (1 + np.exp(2.5 * (d - radius)))
    img[3:17, 15:18] += 0.6 * contrast
    img += 0.05 * np.random.RandomState(8).normal(size=SHAPE)
    return img


def diffuse(img, kappa, step=0.2, sweeps=12, option=2):
    u = img.copy()
    flux = {1: lambda d: np.exp(-(d / kappa)**2) * d,
            2: lambda d: d / (1. + (d / kappa)**2)}[option]
    for _ in range(sweeps):
        # differences to the four neighbours, zero across the border
        dn = np.zeros_like(u)
        ds = np.zeros_like(u)
        de = np.zeros_like(u)
        dw = np.zeros_like(u)
        dn[1:] = u[:-1] - u[1:]
        ds[:-1] = u[1:] - u[:-1]
        de[:, :-1] = u[:, 1:] - u[:, :-1]
        dw[:, 1:] = u[:, :-1] - u[:, 1:]
        u += step * sum(map(flux, (dn, ds, de, dw)))
    return u


def sobel(u):
    kx = np.outer([1, 2, 1], [-1, 0, 1]) / 8.
    gx = convolve2d(u, kx, mode='valid')
    gy = convolve2d(u, kx.T, mode='valid')
    return np.sqrt(gx**2 + gy**2), np.arctan2(gy, gx)


def otsu(u, bins=32):
    """Histogram threshold that maximises the variance between the classes."""
    hist, edges = np.histogram(u, bins=bins)
    mids = (edges[1:] + edges[:-1]) / 2
    best, threshold = -1., None
    total = hist.sum()
    for k in range(1, bins):
        w0 = hist[:k].sum() / total
        w1 = 1 - w0
        if w0 == 0 or w1 == 0:
            continue
        m0 = np.average(mids[:k], weights=hist[:k])
        m1 = np.average(mids[k:], weights=hist[k:])
        between = w0 * w1 * (m0 - m1)**2
        if between > best:
            best, threshold = between, edges[k]
    return threshold


POINT = np.array([4.6, 0.5, 0.12])       # radius, contrast, kappa
DECIDES = True


def main(x):
    """Mean squared difference from a Gaussian-smoothed copy, in dB."""
    radius, contrast, kappa = x
    img = phantom(radius, contrast)
    u = diffuse(img, kappa)
    ref = ndimage.gaussian_filter(img, 1.0)
    return 10 * np.log10(np.mean((u - ref)**2))


def outputs(x):
    img = phantom(x[0], x[1])
    u = diffuse(img, x[2])
    mag, angle = sobel(u)
    t = otsu(u)
    mask = u > t
    labels, count = ndimage.label(mask)
    sizes = ndimage.sum(mask, labels, range(1, count + 1))
    inside = u[labels == 1 + np.argmax(sizes)]
    direction = np.sum(mag * np.cos(2 * angle)) / np.sum(mag)
    return np.array([t, mag.max(), inside.mean(), u[~mask].std(), direction])
