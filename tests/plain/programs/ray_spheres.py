"""Small ray tracer: spheres over a checkered plane, Phong shading, shadows and reflections.

P. Shirley and S. Marschner, "Fundamentals of Computer Graphics", chapter 4.
"""
import math

import numpy as np

EPS = 1e-6


def normalize(v):
    return v / np.linalg.norm(v)


def reflect(d, n):
    return d - 2 * np.dot(d, n) * n


class Sphere:
    def __init__(self, center, radius, color, mirror=0.2):
        self.center = np.asarray(center, dtype=float)
        self.radius = radius
        self.color = np.asarray(color, dtype=float)
        self.mirror = mirror

    def intersect(self, o, d):
        oc = o - self.center
        b = np.dot(oc, d)
        c = np.dot(oc, oc) - self.radius**2
        disc = b * b - c
        if disc < 0:
            return None
        for t in (-b - math.sqrt(disc), -b + math.sqrt(disc)):
            if t > EPS:
                return t
        return None

    def normal(self, p):
        return normalize(p - self.center)

    def color_at(self, p):
        return self.color


class Floor:
    mirror = 0.1

    def __init__(self, y=-1.0):
        self.y = y

    def intersect(self, o, d):
        if abs(d[1]) < EPS:
            return None
        t = (self.y - o[1]) / d[1]
        return t if t > EPS else None

    def normal(self, p):
        return np.array([0.0, 1.0, 0.0])

    def color_at(self, p):
        check = (math.floor(p[0]) + math.floor(p[2])) % 2
        return np.array([0.9, 0.9, 0.9]) if check else np.array([0.2, 0.2, 0.3])


def closest(scene, o, d):
    hits = [(t, obj) for obj in scene for t in [obj.intersect(o, d)] if t is not None]
    return min(hits, key=lambda h: h[0]) if hits else (None, None)


def trace(scene, light, o, d, depth=2):
    t, obj = closest(scene, o, d)
    if obj is None:
        return np.array([0.4, 0.6, 0.9]) * (0.5 + 0.5 * d[1])
    p = o + t * d
    n = obj.normal(p)
    color = 0.1 * obj.color_at(p)
    to_light = light - p
    dist = np.linalg.norm(to_light)
    l = to_light / dist
    ts, _ = closest(scene, p + EPS * n, l)
    if ts is None or ts > dist:
        power = 30.0 / dist**2
        color += power * max(np.dot(n, l), 0) * obj.color_at(p)
        color += power * 0.5 * max(np.dot(reflect(-l, n), -d), 0)**20
    if depth > 0 and obj.mirror > 0:
        bounced = trace(scene, light, p + EPS * n, reflect(d, n), depth - 1)
        color = (1 - obj.mirror) * color + obj.mirror * bounced
    return color


def render(x, w=6, h=4):
    light = np.array([x[0], x[1], -3.0])
    scene = [Sphere([0.0, 0.0, 3.0], x[2], [0.9, 0.2, 0.2], x[3]),
             Sphere([1.4, -0.4, 2.2], 0.6, [0.2, 0.8, 0.3]), Floor()]
    eye = np.array([0.0, 0.3, -2.0])
    img = np.zeros((h, w, 3))
    for j in range(h):
        for i in range(w):
            d = normalize(np.array([(i + 0.5) / w * 2 - 1, 0.55 - (j + 0.5) / h * 1.2, 1.5]))
            img[j, i] = trace(scene, light, eye, d)
    return img


POINT = np.array([-1.5, 3.2, 0.95, 0.3])       # light x and y, radius, mirror
DECIDES = True


def main(x):
    """Luminance of the picture, Rec. 709 weights."""
    return np.mean(render(x) @ np.array([0.2126, 0.7152, 0.0722]))


def outputs(x):
    img = render(x)
    return np.hstack([img.mean(axis=(0, 1)), img[1, 2, 0], img[2, 4, 1]])
