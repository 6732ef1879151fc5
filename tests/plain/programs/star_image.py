"""Synthetic star image: centroid, aperture photometry and sharpness.

S. B. Howell, "Handbook of CCD Astronomy", chapter 5; edge filters from
R. C. Gonzalez and R. E. Woods, "Digital Image Processing".
"""
import numpy as np
import scipy.fft
from scipy import ndimage

SHAPE = (24, 24)
rng = np.random.default_rng(99)
NOISE = rng.normal(0.0, 0.4, SHAPE)
yy, xx = np.mgrid[0:SHAPE[0], 0:SHAPE[1]]


def moffat(flux, x0, y0, fwhm, beta=2.5):
    alpha = fwhm / (2 * np.sqrt(2**(1 / beta) - 1))
    r2 = (xx - x0)**2 + (yy - y0)**2
    return flux * (beta - 1) / (np.pi * alpha**2) * (1 + r2 / alpha**2)**(-beta)


def motion_blur(img, length=3):
    """Drift of the telescope along x, by the convolution theorem."""
    kernel = np.zeros(SHAPE)
    kernel[0, :length] = 1 / length
    spec = scipy.fft.rfft2(img) * scipy.fft.rfft2(kernel)
    return scipy.fft.irfft2(spec, s=SHAPE)


def render(stars, sky):
    img = np.zeros(SHAPE)
    for flux, x0, y0, fwhm in stars:
        img += moffat(flux, x0, y0, fwhm)
    img = motion_blur(img)
    img += sky
    img += NOISE
    return img


def aperture(x0, y0, radius):
    """Soft-edged circular mask."""
    mask = radius + 0.5 - np.hypot(xx - x0, yy - y0)
    np.clip(mask, 0, 1, out=mask)
    return mask


def photometry(img, x0=12, y0=11, radius=6):
    mask = aperture(x0, y0, radius)
    border = np.concatenate([img[0], img[-1], img[1:-1, 0], img[1:-1, -1]])
    background = border.mean()
    sub = img - background
    total = np.sum(mask * sub)
    xc = np.sum(mask * sub * xx) / total
    yc = np.sum(mask * sub * yy) / total
    mag = 25.0 - 2.5 * np.log10(total)
    return mag, xc, yc, background


def sharpness(img):
    """Tenengrad measure on the smoothed image."""
    smooth = ndimage.gaussian_filter(img, 1.0, mode='nearest')
    gx = ndimage.sobel(smooth, axis=1)
    gy = ndimage.sobel(smooth, axis=0)
    grad = np.sqrt(gx**2 + gy**2 + 1e-12)
    lap = ndimage.convolve(smooth, np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]]), mode='constant')
    return grad.mean(), lap.var()


POINT = np.array([5000.0, 11.7, 10.8, 3.2, 20.0])
DECIDES = False


def observe(p):
    flux, x0, y0, fwhm, sky = p
    return render([(flux, x0, y0, fwhm), (0.2 * flux, 17.0, 15.0, fwhm)], sky)


def main(p):
    mag, xc, yc, bg = photometry(observe(p))
    return mag


def outputs(p):
    img = observe(p)
    tenengrad, lap = sharpness(img)
    profile = img[11, 4:20:2]
    return np.array([*photometry(img), tenengrad, lap, *profile])
