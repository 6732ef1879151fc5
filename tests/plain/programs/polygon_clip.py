"""Overlap of a building footprint with a plot: clipping, area, inertia, hull.

I. Sutherland and G. Hodgman, "Reentrant polygon clipping" (1974); J. O'Rourke,
"Computational Geometry in C", chapters 1 and 3.
"""
import numpy as np

PLOT = np.array([[0.0, 0.0], [10.0, 0.0], [11.0, 6.0], [6.0, 9.0], [0.0, 7.0]])


def cross2(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def line_intersection(p, q, a, b):
    sp = cross2(a, b, p)
    sq = cross2(a, b, q)
    t = sp / (sp - sq)
    return p + t * (q - p)


def clip(subject, clipper):
    """Both polygons counter-clockwise, the clipper convex."""
    output = list(subject)
    for k in range(len(clipper)):
        a, b = clipper[k], clipper[(k + 1) % len(clipper)]
        points, output = output, []
        for i, cur in enumerate(points):
            prev = points[i - 1]
            cur_in = cross2(a, b, cur) >= 0
            prev_in = cross2(a, b, prev) >= 0
            if cur_in:
                if not prev_in:
                    output.append(line_intersection(prev, cur, a, b))
                output.append(cur)
            elif prev_in:
                output.append(line_intersection(prev, cur, a, b))
        if not output:
            break
    return np.array(output)


def properties(poly):
    """Area, centroid and second moments about the centroid."""
    x, y = poly.T
    xn, yn = np.roll(x, -1), np.roll(y, -1)
    c = x * yn - xn * y
    area = c.sum() / 2
    cx = np.sum((x + xn) * c) / (6 * area)
    cy = np.sum((y + yn) * c) / (6 * area)
    ixx = np.sum((y**2 + y * yn + yn**2) * c) / 12 - area * cy**2
    iyy = np.sum((x**2 + x * xn + xn**2) * c) / 12 - area * cx**2
    return area, np.array([cx, cy]), ixx, iyy


def perimeter(poly):
    total = 0
    for i in range(len(poly)):
        total += np.hypot(*(poly[i] - poly[i - 1]))
    return total


def convex_hull(points):
    """Andrew's monotone chain."""
    pts = sorted(points.tolist())

    def half(seq):
        chain = []
        for q in seq:
            while len(chain) >= 2 and cross2(chain[-2], chain[-1], q) <= 0:
                chain.pop()
            chain.append(q)
        return chain[:-1]

    return np.array(half(pts) + half(reversed(pts)))


def distance_to_boundary(pt, poly):
    best = float('inf')
    for a, b in zip(poly, np.roll(poly, -1, axis=0)):
        s = np.dot(pt - a, b - a) / np.dot(b - a, b - a)
        s = min(max(s, 0.0), 1.0)
        best = min(best, np.linalg.norm(pt - (a + s * (b - a))))
    return best


def footprint(x, y, angle, width, depth, notch):
    """L-shaped building."""
    shape = np.array([[0, 0], [width, 0], [width, depth - notch], [width - notch, depth - notch],
                      [width - notch, depth], [0, depth]])
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return shape @ R.T + [x, y]


POINT = np.array([4.6, 0.7, 0.22, 6.6, 6.4, 2.3])
DECIDES = True


def main(p):
    return properties(clip(footprint(*p), PLOT))[0]


def outputs(p):
    house = footprint(*p)
    inside = clip(house, PLOT)
    area, centre, ixx, iyy = properties(inside)
    hull = convex_hull(np.vstack([house, PLOT[:2]]))
    return np.array([area, *centre, ixx, iyy, perimeter(inside), properties(hull)[0],
                     perimeter(hull), distance_to_boundary(centre, PLOT)])
