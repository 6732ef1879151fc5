"""What is said of each function of elements in ``scipy.special``: domain, derivative, example.

Here: ``RECORDS`` by name, of which ``special_common`` makes docstrings. Not here: the functions
(``special`` and the modules beside it). The tests run all examples.

Layer: ``numpy``, ``scipy``.
"""

from typing import NamedTuple


class Record(NamedTuple):
    """A function of elements.

    Attributes:
      takes_complex: whether the last operand may be complex.
      domain: where it is defined.
      source: where the formula of the derivative is from.
      derivative: its formula.
      operands: of the example.
      value: the result there, in six digits.
      slope: the derivative in the last operand there.
    """

    takes_complex: bool
    domain: str
    source: str
    derivative: str
    operands: str
    value: str
    slope: str


# Three lines a function: name, domain and source; derivative; operands, value and slope of the
# example.
_TABLE = """\
gamma (complex) | not the poles 0, -1, -2, ... | DLMF 5.2.2
  gamma(z) psi(z)
  2.5 | 1.32934 | 0.934735
gammaln | not the poles 0, -1, -2, ... | DLMF 5.2.2
  psi(x)
  2.5 | 0.284683 | 0.703157
loggamma (complex) | not the poles; the cut is the negative axis | DLMF 5.2.2
  psi(z)
  2.5 | 0.284683 | 0.703157
rgamma (complex) | everywhere; 0 at the poles of gamma | DLMF 5.5.3
  -psi(z) rgamma(z), by reflection left of 1/2
  2.5 | 0.752253 | -0.528952
digamma (complex) | not the poles 0, -1, -2, ... | DLMF 5.15.1
  zeta(2, z); none of complex numbers
  2.5 | 0.703157 | 0.490358
psi (complex) | not the poles 0, -1, -2, ... | DLMF 5.15.1
  zeta(2, z); none of complex numbers
  2.5 | 0.703157 | 0.490358
gammasgn | not the poles | DLMF 5.2.1
  0
  -1.5 | 1 | 0
poch | z, z + m not poles of gamma | DLMF 5.2.5
  in z: y (psi(z + m) - psi(z)); in m: y psi(z + m)
  1.5, 2.5 | 6.77028 | 8.50426
binom | x not a negative integer | DLMF 1.2.6, 5.2.2
  in x: value (psi(x + 1) - psi(x - y + 1)); in y: value (psi(x - y + 1) - psi(y + 1))
  5.5, 2.0 | 12.375 | 5.76782
beta | positive a, b | DLMF 5.12.1
  in a: y (psi(a) - psi(a + b)); in b likewise
  1.5, 2.5 | 0.19635 | -0.108574
betaln | positive a, b | DLMF 5.12.1
  in a: psi(a) - psi(a + b); in b likewise
  1.5, 2.5 | -1.62786 | -0.552961
betainc | positive a, b; x in [0, 1] | DLMF 8.17
  in x: x**(a-1) (1-x)**(b-1) / beta(a, b); in a, b by series
  1.5, 2.5, 0.25 | 0.333333 | 1.65399
betaincc | positive a, b; x in [0, 1] | DLMF 8.17
  in x: -x**(a-1) (1-x)**(b-1) / beta(a, b); in a, b by series
  1.5, 2.5, 0.25 | 0.666667 | -1.65399
betaincinv | positive a, b; y in [0, 1] | DLMF 8.17
  of the equation betainc(a, b, x) = y: in y 1 / density(x)
  1.5, 2.5, 0.25 | 0.199369 | 0.613836
betainccinv | positive a, b; y in [0, 1] | DLMF 8.17
  of the equation betaincc(a, b, x) = y: in y -1 / density(x)
  1.5, 2.5, 0.25 | 0.53064 | -0.838245
gammainc | positive a; x >= 0 | DLMF 8.8.13
  in x: x**(a-1) exp(-x) / gamma(a); in a by series
  1.5, 2.0 | 0.738536 | 0.215964
gammaincc | positive a; x >= 0 | DLMF 8.8.14
  in x: -x**(a-1) exp(-x) / gamma(a); in a by series
  1.5, 2.0 | 0.261464 | -0.215964
gammaincinv | positive a; y in [0, 1] | DLMF 8.8.13
  of the equation gammainc(a, x) = y: in y 1 / density(x)
  1.5, 0.25 | 0.606266 | 2.08695
gammainccinv | positive a; y in [0, 1] | DLMF 8.8.14
  of the equation gammaincc(a, x) = y: in y -1 / density(x)
  1.5, 0.25 | 2.05417 | -4.82328
zetac | not the pole 1 | DLMF 25.2
  zeta'(x), by series
  2.5 | 0.341487 | -0.387342
erf (complex) | everywhere | DLMF 7.10.1
  2 / sqrt(pi) exp(-z**2)
  0.5 | 0.5205 | 0.878783
erfc (complex) | everywhere | DLMF 7.10.1
  -2 / sqrt(pi) exp(-z**2)
  0.5 | 0.4795 | -0.878783
erfcx (complex) | everywhere | DLMF 7.10.1, 7.12.1
  2 z erfcx(z) - 2 / sqrt(pi), far from 0 by its asymptotic series
  0.5 | 0.61569 | -0.512689
erfi (complex) | everywhere | DLMF 7.10.1
  2 / sqrt(pi) exp(z**2)
  0.5 | 0.614952 | 1.44887
erfinv | [-1, 1] | DLMF 7.17
  sqrt(pi) / 2 exp(erfinv(y)**2)
  0.5 | 0.476936 | 1.11258
erfcinv | [0, 2] | DLMF 7.17
  -sqrt(pi) / 2 exp(erfcinv(y)**2)
  0.5 | 0.476936 | -1.11258
dawsn (complex) | everywhere | DLMF 7.10.3, 7.12.1
  1 - 2 z dawsn(z), far from 0 by its asymptotic series
  0.5 | 0.424436 | 0.575564
fresnel (complex) | everywhere | DLMF 7.2.7, 7.2.8
  sin(pi z**2 / 2) and cos(pi z**2 / 2)
  0.5 | ['0.0647324', '0.492344'] | ['0.382683', '0.92388']
ndtr | everywhere | DLMF 7.10.1
  exp(-x**2 / 2) / sqrt(2 pi)
  0.5 | 0.691462 | 0.352065
ndtri | [0, 1] | DLMF 7.17
  sqrt(2 pi) exp(ndtri(y)**2 / 2)
  0.25 | -0.67449 | 3.14687
ndtri_exp | y <= 0 | DLMF 7.17
  sqrt(2 pi) exp(y + x**2 / 2) of the result x
  -2.0 | -1.10152 | 0.622265
log_ndtr | everywhere | DLMF 7.10.1
  the density over ndtr(x); left of 0 sqrt(2 / pi) / erfcx(-x / sqrt(2))
  -2.0 | -3.78318 | 2.37322
owens_t | everywhere | Owen (1956)
  in h: -exp(-h**2/2) erf(a h / sqrt(2)) / sqrt(8 pi); in a: exp(-h**2 (1+a**2) / 2) / (2 pi (1+a**2))
  0.5, 2.0 | 0.141581 | 0.0170379
wofz (complex) | everywhere | DLMF 7.10.2, 7.12.1
  2j / sqrt(pi) - 2 z wofz(z), far above the axis by its asymptotic series
  0.5 | 0.778801+0.478925j | -0.778801+0.649454j
voigt_profile | sigma, gamma >= 0 | DLMF 7.19
  of the real part of wofz
  0.5, 1.0, 2.0 | 0.129971 | -0.0461801
expit (complex) | everywhere | elementary calculus
  y (1 - y)
  0.5 | 0.622459 | 0.235004
logit | [0, 1] | elementary calculus
  1 / (x (1 - x))
  0.25 | -1.09861 | 5.33333
log_expit | everywhere | elementary calculus
  expit(-x)
  0.5 | -0.474077 | 0.377541
softplus | everywhere | elementary calculus
  expit(x)
  0.5 | 0.974077 | 0.622459
xlogy (complex) | y >= 0 | elementary calculus
  in x: log(y); in y: x / y
  0.5, 2.0 | 0.346574 | 0.25
xlog1py (complex) | y >= -1 | elementary calculus
  in x: log1p(y); in y: x / (1 + y)
  0.5, 2.0 | 0.549306 | 0.166667
entr | x >= 0; -inf below | elementary calculus
  -log(x) - 1
  0.5 | 0.346574 | -0.306853
rel_entr | x, y >= 0 | elementary calculus
  in x: log(x / y) + 1; in y: -x / y
  0.5, 2.0 | -0.693147 | -0.25
kl_div | x, y >= 0 | elementary calculus
  in x: log(x / y); in y: 1 - x / y
  0.5, 2.0 | 0.806853 | 0.75
exprel | everywhere | DLMF 13.4.1
  hyp1f1(2, 3, x) / 2
  0.5 | 1.29744 | 0.702557
boxcox | x > 0 | Box and Cox (1964)
  in x: x**(lmbda - 1); in lmbda: log(x)**2 exprel'(lmbda log(x))
  2.0, 0.5 | 0.828427 | 0.303662
boxcox1p | x > -1 | Box and Cox (1964)
  in x: (1 + x)**(lmbda - 1); in lmbda: log1p(x)**2 exprel'(lmbda log1p(x))
  2.0, 0.5 | 1.4641 | 0.877501
inv_boxcox | 1 + lmbda y > 0 | Box and Cox (1964)
  of the result x, in y: x / (1 + lmbda y); in lmbda: x y**2 (log1p(u) / u)' at u = lmbda y
  2.0, 0.5 | 4 | -3.09035
inv_boxcox1p | 1 + lmbda y > 0 | Box and Cox (1964)
  that of inv_boxcox
  2.0, 0.5 | 3 | -3.09035
cosm1 | everywhere | elementary calculus
  -sin(x)
  0.5 | -0.122417 | -0.479426
powm1 | x > 0, or integer y | elementary calculus
  in x: y x**(y - 1); in y: x**y log(x)
  2.0, 0.5 | 0.414214 | 0.980258
exp10 | everywhere | elementary calculus
  log(10) 10**x
  0.5 | 3.16228 | 7.28141
exp2 (complex) | everywhere | elementary calculus
  log(2) 2**x
  0.5 | 1.41421 | 0.980258
expm1 (complex) | everywhere | elementary calculus
  exp(x)
  0.5 | 0.648721 | 1.64872
log1p (complex) | x >= -1 | elementary calculus
  1 / (1 + x)
  0.5 | 0.405465 | 0.666667
cbrt | everywhere | elementary calculus
  1 / (3 cbrt(x)**2)
  8.0 | 2 | 0.0833333
round | everywhere | elementary calculus
  0
  1.6 | 2 | 0
radian | everywhere | elementary calculus
  pi / 180 per degree, 1/60 of it per minute, 1/3600 per second
  90.0, 30.0, 0.0 | 1.57952 | 4.84814e-06
sindg | everywhere | elementary calculus
  pi / 180 cosdg(x)
  30.0 | 0.5 | 0.015115
cosdg | everywhere | elementary calculus
  -pi / 180 sindg(x)
  60.0 | 0.5 | -0.015115
tandg | not 90 + 180 k | elementary calculus
  pi / 180 (1 + tandg(x)**2)
  30.0 | 0.57735 | 0.0232711
cotdg | not 180 k | elementary calculus
  -pi / 180 (1 + cotdg(x)**2)
  30.0 | 1.73205 | -0.0698132
tklmbda | where the quantile function reaches | Joiner and Rosenblatt (1971)
  of the equation quantile(p) = x: in x 1 / (p**(lmbda-1) + (1-p)**(lmbda-1))
  0.5, 0.25 | 0.645812 | 0.102361
kolmogorov | y >= 0 | DLMF 20.7.32
  of the series, or of its theta transform near 0
  1.0 | 0.27 | -1.07195
kolmogi | [0, 1] | DLMF 20.7.32
  1 / kolmogorov'(y) of the result y
  0.5 | 0.827574 | -0.635934
huber | delta >= 0 | elementary calculus
  in delta: abs(r) - delta outside, 0 inside; in r: r inside, delta sign(r) outside
  1.0, 2.0 | 1.5 | 1
pseudo_huber | delta >= 0 | elementary calculus
  with h = hypot(delta, r), in delta: (h - delta)**2 / h; in r: delta r / h
  1.0, 2.0 | 1.23607 | 0.894427
i0 | everywhere | DLMF 10.29.3
  i1(x)
  0.5 | 1.06348 | 0.257894
i1 | everywhere | DLMF 10.29.1
  (i0(x) + iv(2, x)) / 2
  0.5 | 0.257894 | 0.547695
i0e | everywhere | DLMF 10.29.3
  i1e(x) - sign(x) i0e(x)
  0.5 | 0.645035 | -0.488614
i1e | everywhere | DLMF 10.29.1
  (i0e(x) + ive(2, x)) / 2 - sign(x) i1e(x)
  0.5 | 0.156421 | 0.175773
j0 | everywhere | DLMF 10.6.3
  -j1(x)
  0.5 | 0.93847 | -0.242268
j1 | everywhere | DLMF 10.6.1
  (j0(x) - jv(2, x)) / 2
  0.5 | 0.242268 | 0.453933
y0 | x > 0 | DLMF 10.6.3
  -y1(x)
  0.5 | -0.444519 | 1.47147
y1 | x > 0 | DLMF 10.6.2
  y0(x) - y1(x) / x
  0.5 | -1.47147 | 2.49843
k0 | x > 0 | DLMF 10.29.3
  -k1(x)
  0.5 | 0.924419 | -1.65644
k1 | x > 0 | DLMF 10.29.2
  -k0(x) - k1(x) / x
  0.5 | 1.65644 | -4.2373
k0e | x > 0 | DLMF 10.29.3
  k0e(x) - k1e(x)
  0.5 | 1.52411 | -1.2069
k1e | x > 0 | DLMF 10.29.2
  k1e(x) - k0e(x) - k1e(x) / x
  0.5 | 2.73101 | -4.25512
jv (complex) | real v; of real z >= 0 unless v is an integer | DLMF 10.6.1
  in z: (jv(v-1, z) - jv(v+1, z)) / 2
  1.5, 2.0 | 0.491294 | 0.144546
jn (complex) | real n; of real z >= 0 unless n is an integer | DLMF 10.6.1
  in z: (jn(n-1, z) - jn(n+1, z)) / 2
  1, 2.0 | 0.576725 | -0.0644716
yv (complex) | real v; real z > 0, or complex z | DLMF 10.6.1
  in z: (yv(v-1, z) - yv(v+1, z)) / 2
  1.5, 2.0 | -0.395623 | 0.531503
yn (complex) | x > 0 | DLMF 10.6.1
  in x: (yn(n-1, x) - yn(n+1, x)) / 2
  1, 2.0 | -0.107032 | 0.563892
iv (complex) | real v; of real z >= 0 unless v is an integer | DLMF 10.29.1
  in z: (iv(v-1, z) + iv(v+1, z)) / 2
  1.5, 2.0 | 1.09947 | 1.22163
kv (complex) | real v; real z > 0, or complex z | DLMF 10.29.1
  in z: -(kv(v-1, z) + kv(v+1, z)) / 2
  1.5, 2.0 | 0.179907 | -0.254868
kn (complex) | x > 0 | DLMF 10.29.1
  in x: -(kn(n-1, x) + kn(n+1, x)) / 2
  1, 2.0 | 0.139866 | -0.183827
jve | real v and x | DLMF 10.6.1
  in x: (jve(v-1, x) - jve(v+1, x)) / 2
  1.5, 2.0 | 0.491294 | 0.144546
yve | real v; x > 0 | DLMF 10.6.1
  in x: (yve(v-1, x) - yve(v+1, x)) / 2
  1.5, 2.0 | -0.395623 | 0.531503
ive | real v and x | DLMF 10.29.1
  in x: (ive(v-1, x) + ive(v+1, x)) / 2 - sign(x) ive(v, x)
  1.5, 2.0 | 0.148798 | 0.0165324
kve (complex) | real v; real z > 0, or complex z | DLMF 10.29.1
  in z: kve(v, z) - (kve(v-1, z) + kve(v+1, z)) / 2
  1.5, 2.0 | 1.32934 | -0.553892
struve | real v and x | DLMF 11.4.24
  in x: (struve(v-1, x) - struve(v+1, x) + (x/2)**v / (sqrt(pi) gamma(v + 3/2))) / 2
  1.5, 2.0 | 0.450661 | 0.460979
modstruve | real v and x | DLMF 11.4.26
  in x: (modstruve(v-1, x) + modstruve(v+1, x) + (x/2)**v / (sqrt(pi) gamma(v + 3/2))) / 2
  1.5, 2.0 | 0.702846 | 1.03127
hankel1 (complex) | real v; z not 0 | DLMF 10.6.1
  in z: (hankel1(v-1, z) - hankel1(v+1, z)) / 2
  1.5, 2.0 | 0.491294-0.395623j | 0.144546+0.531503j
hankel2 (complex) | real v; z not 0 | DLMF 10.6.1
  in z: (hankel2(v-1, z) - hankel2(v+1, z)) / 2
  1.5, 2.0 | 0.491294+0.395623j | 0.144546-0.531503j
hankel1e (complex) | real v; z not 0 | DLMF 10.6.1
  in z: (hankel1e(v-1, z) - hankel1e(v+1, z)) / 2 - 1j hankel1e(v, z)
  1.5, 2.0 | -0.56419-0.282095j | 0.141047+0.211571j
hankel2e (complex) | real v; z not 0 | DLMF 10.6.1
  in z: (hankel2e(v-1, z) - hankel2e(v+1, z)) / 2 + 1j hankel2e(v, z)
  1.5, 2.0 | -0.56419+0.282095j | 0.141047-0.211571j
airy (complex) | everywhere | DLMF 9.2.1
  Ai', z Ai, Bi', z Bi
  0.5 | ['0.231694', '-0.224911', '0.854277', '0.544573'] | ['-0.224911', '0.115847', '0.544573', '0.427139']
airye | real; the first two for x >= 0 | DLMF 9.2.1
  those of airy, plus or minus sqrt(x) times the function
  0.5 | ['0.293277', '-0.284691', '0.674892', '0.430221'] | ['-0.0773129', '-0.0546685', '-0.047', '0.033234']
ber | everywhere | DLMF 10.61
  berp(x)
  0.5 | 0.999023 | -0.00781208
bei | everywhere | DLMF 10.61
  beip(x)
  0.5 | 0.0624932 | 0.249919
ker | x > 0 | DLMF 10.61
  kerp(x)
  0.5 | 0.855906 | -1.8198
kei | x >= 0 | DLMF 10.61
  keip(x)
  0.5 | -0.671582 | 0.333204
berp | everywhere | DLMF 10.61.3
  -bei(x) - berp(x) / x
  0.5 | -0.00781208 | -0.0468691
beip | everywhere | DLMF 10.61.3
  ber(x) - beip(x) / x
  0.5 | 0.249919 | 0.499186
kerp | x > 0 | DLMF 10.61.3
  -kei(x) - kerp(x) / x
  0.5 | -1.8198 | 4.31118
keip | x > 0 | DLMF 10.61.3
  ker(x) - keip(x) / x
  0.5 | 0.333204 | 0.189498
kelvin | x > 0; the first and third everywhere | DLMF 10.61.3
  those of ber, bei, ker, kei and of their derivatives
  0.5 | ['0.999023+0.0624932j', '0.855906-0.671582j', '-0.00781208+0.249919j', '-1.8198+0.333204j'] | ['-0.00781208+0.249919j', '-1.8198+0.333204j', '-0.0468691+0.499186j', '4.31118+0.189498j']
iti0k0 | x >= 0 | DLMF 10.43
  i0(x) and k0(x)
  0.5 | ['0.510515', '0.927103'] | ['1.06348', '0.924419']
itj0y0 | x >= 0 | DLMF 10.22
  j0(x) and y0(x)
  0.5 | ['0.489681', '-0.561795'] | ['0.93847', '-0.444519']
it2i0k0 | x >= 0 | DLMF 10.43
  (i0(x) - 1) / x and -k0(x) / x
  0.5 | ['0.0314953', '0.665751'] | ['0.126967', '-1.84884']
it2j0y0 | x >= 0 | DLMF 10.22
  (1 - j0(x)) / x and -y0(x) / x
  0.5 | ['0.031007', '0.269689'] | ['0.12306', '0.889037']
itstruve0 | everywhere | DLMF 11.7
  struve(0, x)
  0.5 | 0.0784796 | 0.309556
it2struve0 | everywhere | DLMF 11.7
  -struve(0, x) / x
  0.5 | 1.25542 | -0.619112
itmodstruve0 | everywhere | DLMF 11.7
  modstruve(0, x)
  0.5 | 0.0806901 | 0.327241
hyp0f1 (complex) | v not 0, -1, -2, ... | DLMF 16.3.1
  in z: hyp0f1(v + 1, z) / v
  1.5, 0.5 | 1.3683 | 0.809885
hyp1f1 (complex) | b not 0, -1, -2, ... | DLMF 13.3.15
  in x: a / b hyp1f1(a + 1, b + 1, x)
  0.5, 1.5, 2.0 | 2.36445 | 1.25615
hyp2f1 (complex) | c not 0, -1, -2, ...; of real z <= 1 | DLMF 15.5.1
  in z: a b / c hyp2f1(a + 1, b + 1, c + 1, z)
  0.5, 1.5, 2.0, 0.25 | 1.11173 | 0.535553
hyperu | x > 0 | DLMF 13.3.22
  in x: -a hyperu(a + 1, b + 1, x)
  0.5, 1.5, 2.0 | 0.707107 | -0.176777
wright_bessel | a, b, x >= 0 | Wright (1933)
  in x: wright_bessel(a, a + b, x)
  0.5, 1.5, 2.0 | 5.55343 | 4.04399
expn | n >= 0; x >= 0 | DLMF 8.19.13
  in x: -expn(n - 1, x)
  2, 0.5 | 0.326644 | -0.559774
exp1 (complex) | not 0; the cut is the negative axis | DLMF 6.2.1
  -exp(-z) / z
  0.5 | 0.559774 | -1.21306
expi (complex) | not 0 | DLMF 6.2.5
  exp(x) / x
  0.5 | 0.45422 | 3.29744
sici (complex) | everywhere; the second not at 0 | DLMF 6.2.9, 6.2.11
  sin(x) / x and cos(x) / x
  0.5 | ['0.493107', '-0.177784'] | ['0.958851', '1.75517']
shichi (complex) | everywhere; the second not at 0 | DLMF 6.2.15, 6.2.16
  sinh(x) / x and cosh(x) / x
  0.5 | ['0.506997', '-0.0527768'] | ['1.04219', '2.25525']
spence (complex) | of real z >= 0; the cut is the negative axis | DLMF 25.12.1
  log(z) / (1 - z)
  0.5 | 0.582241 | -1.38629
wrightomega (complex) | everywhere | Corless and Jeffrey (2002)
  y / (1 + y)
  0.5 | 0.766249 | 0.433828
elliprc | x >= 0; y not 0 | DLMF 19.18.4, 19.18.5
  by way of elliprd
  1.0, 2.0 | 0.785398 | -0.142699
elliprf | non-negative, at most one 0 | DLMF 19.18.1
  in x: -elliprd(y, z, x) / 6; in y, z likewise
  1.0, 2.0, 3.0 | 0.726946 | -0.04841
elliprd | x, y >= 0, at most one 0; z > 0 | DLMF 19.16.5
  by a complex step; further ones are refused
  1.0, 2.0, 3.0 | 0.29046 | -0.0946051
elliprg | non-negative | DLMF 19.16.3
  in z: elliprf(x, y, z) / 4 - z elliprd(x, y, z) / 12; in x, y likewise
  1.0, 2.0, 3.0 | 1.40185 | 0.109121
elliprj | x, y, z >= 0, at most one 0; p not 0 | DLMF 19.16.2
  by a complex step; further ones are refused
  1.0, 2.0, 3.0, 4.0 | 0.239848 | -0.0407453
ellipk | m < 1 | DLMF 19.25.1
  elliprd(0, 1, 1 - m) / 6
  0.5 | 1.85407 | 0.847213
ellipkm1 | p > 0 | DLMF 19.25.1
  -elliprd(0, 1, p) / 6
  0.5 | 1.85407 | -0.847213
ellipe | m <= 1 | DLMF 19.25.1
  -elliprd(0, 1 - m, 1) / 6
  0.5 | 1.35064 | -0.503431
ellipkinc | m sin(phi)**2 < 1 | DLMF 19.25.5
  in phi: 1 / sqrt(d), d = 1 - m sin(phi)**2; in m: sin(phi)**3 elliprd(cos(phi)**2, 1, d) / 6
  0.5, 0.25 | 0.505089 | 0.0209131
ellipeinc | m sin(phi)**2 <= 1 | DLMF 19.25.9
  in phi: sqrt(d), d = 1 - m sin(phi)**2; in m: -sin(phi)**3 elliprd(cos(phi)**2, d, 1) / 6
  0.5, 0.25 | 0.495002 | -0.020174
ellipj | m in [0, 1] | DLMF 22.13.1
  in u: cn dn, -sn dn, -m sn cn, dn; in m by that of ellipkinc at the amplitude
  0.5, 0.25 | ['0.475083', '0.879941', '0.971377', '0.495058'] | ['-0.0173503', '0.0093675', '-0.114056', '-0.0197176']
agm | operands of one sign | DLMF 19.8.5
  by way of elliprd, from pi / 2 / elliprf(0, a**2, b**2)
  1.0, 2.0 | 1.45679 | 0.425791
eval_jacobi (complex) | real x; n may be real | DLMF 18.9.15
  in x: (n + alpha + beta + 1) / 2 eval_jacobi(n - 1, alpha + 1, beta + 1, x)
  2, 0.5, 1.5, 0.25 | -0.703125 | 0.625
eval_gegenbauer (complex) | real x; n may be real | DLMF 18.9.19
  in x: 2 alpha eval_gegenbauer(n - 1, alpha + 1, x)
  2, 0.5, 0.25 | -0.40625 | 0.75
eval_legendre (complex) | real x; n may be real | DLMF 18.9.19
  in x: eval_gegenbauer(n - 1, 3/2, x)
  2, 0.25 | -0.40625 | 0.75
eval_chebyt (complex) | real x; n may be real | DLMF 18.9.21
  in x: n eval_chebyu(n - 1, x)
  2, 0.25 | -0.875 | 1
eval_chebyu (complex) | real x; n may be real | DLMF 18.9.19
  in x: 2 eval_gegenbauer(n - 1, 2, x)
  2, 0.25 | -0.75 | 2
eval_chebyc (complex) | real x; n may be real | DLMF 18.1.3
  that of 2 eval_chebyt(n, x / 2)
  2, 0.25 | -1.9375 | 0.5
eval_chebys (complex) | real x; n may be real | DLMF 18.1.3
  that of eval_chebyu(n, x / 2)
  2, 0.25 | -0.9375 | 0.5
eval_genlaguerre (complex) | real x; n may be real | DLMF 18.9.23
  in x: -eval_genlaguerre(n - 1, alpha + 1, x)
  2, 0.5, 0.25 | 1.28125 | -2.25
eval_laguerre (complex) | real x; n may be real | DLMF 18.9.23
  in x: -eval_genlaguerre(n - 1, 1, x)
  2, 0.25 | 0.53125 | -1.75
eval_hermite | real x; integer n >= 0 | DLMF 18.9.25
  in x: 2 n eval_hermite(n - 1, x)
  2, 0.25 | -1.75 | 2
eval_hermitenorm | real x; integer n >= 0 | DLMF 18.9.27
  in x: n eval_hermitenorm(n - 1, x)
  2, 0.25 | -0.9375 | 0.5
eval_sh_jacobi (complex) | real x; n may be real | DLMF 18.1.2
  that of eval_jacobi on [0, 1]
  2, 2.5, 1.5, 0.25 | -0.0132576 | -0.409091
eval_sh_legendre (complex) | real x; n may be real | DLMF 18.1.2
  that of eval_legendre(n, 2 x - 1)
  2, 0.25 | -0.125 | -3
eval_sh_chebyt (complex) | real x; n may be real | DLMF 18.1.2
  that of eval_chebyt(n, 2 x - 1)
  2, 0.25 | -0.5 | -4
eval_sh_chebyu (complex) | real x; n may be real | DLMF 18.1.2
  that of eval_chebyu(n, 2 x - 1)
  2, 0.25 | 0 | -8
lpmv | integer m; real v; x in [-1, 1] | DLMF 14.10.5
  in x: by the recurrence between degrees
  1, 2.0, 0.25 | -0.726184 | -2.71109
bdtr | 0 <= k <= n; p in [0, 1] | DLMF 8.17.5
  in p: that of betaincc(k + 1, n - k, p)
  2, 5, 0.25 | 0.896484 | -1.05469
bdtrc | 0 <= k <= n; p in [0, 1] | DLMF 8.17.5
  in p: that of betainc(k + 1, n - k, p)
  2, 5, 0.25 | 0.103516 | 1.05469
bdtri | 0 <= k < n; y in [0, 1] | DLMF 8.17.5
  in y: that of betainccinv(k + 1, n - k, y)
  2, 5, 0.25 | 0.640564 | -0.628797
nbdtr | k >= 0, n >= 1; p in [0, 1] | DLMF 8.17
  in p: that of betainc(n, k + 1, p)
  2, 5, 0.75 | 0.756409 | 2.07642
nbdtrc | k >= 0, n >= 1; p in [0, 1] | DLMF 8.17
  in p: that of betaincc(n, k + 1, p)
  2, 5, 0.75 | 0.243591 | -2.07642
nbdtri | k >= 0, n >= 1; y in [0, 1] | DLMF 8.17
  in y: that of betaincinv(n, k + 1, y)
  2, 5, 0.75 | 0.746926 | 0.477755
pdtr | k >= 0; m >= 0 | DLMF 8.4.10
  in m: that of gammaincc(k + 1, m)
  2, 0.5 | 0.985612 | -0.0758163
pdtrc | k >= 0; m >= 0 | DLMF 8.4.10
  in m: that of gammainc(k + 1, m)
  2, 0.5 | 0.0143877 | 0.0758163
pdtri | k >= 0; y in [0, 1] | DLMF 8.4.10
  in y: that of gammainccinv(k + 1, y)
  2, 0.5 | 2.67406 | -4.05525
pdtrik | p in [0, 1]; m > 0 | DLMF 8.8.14
  of the equation pdtr(k, m) = p with k real
  0.5, 4.0 | 3.32838 | 1.00124
chdtr | v > 0; x >= 0 | DLMF 8.8.13
  that of gammainc(v / 2, x / 2)
  2.0, 0.5 | 0.221199 | 0.3894
chdtrc | v > 0; x >= 0 | DLMF 8.8.14
  that of gammaincc(v / 2, x / 2)
  2.0, 0.5 | 0.778801 | -0.3894
chdtri | v > 0; p in [0, 1] | DLMF 8.8.14
  that of 2 gammainccinv(v / 2, p)
  2.0, 0.5 | 1.38629 | -4
chdtriv | p in (0, 1); x > 0 | DLMF 8.8.13
  of the equation chdtr(v, x) = p
  0.5, 2.0 | 2.6285 | 1.01757
gdtr | a, b > 0; x >= 0 | DLMF 8.8.13
  that of gammainc(b, a x)
  2.0, 1.5, 0.5 | 0.427593 | 0.830215
gdtrc | a, b > 0; x >= 0 | DLMF 8.8.14
  that of gammaincc(b, a x)
  2.0, 1.5, 0.5 | 0.572407 | -0.830215
gdtrix | a, b > 0; p in [0, 1] | DLMF 8.8.13
  that of gammaincinv(b, p) / a
  2.0, 1.5, 0.5 | 0.591493 | 1.32981
gdtria | p in [0, 1]; b, x > 0 | DLMF 8.8.13
  that of gammaincinv(b, p) / x
  0.5, 1.5, 2.0 | 0.591493 | -0.295747
gdtrib | a, x > 0; p in (0, 1) | DLMF 8.8.13
  of the equation gdtr(a, b, x) = p
  2.0, 0.5, 1.5 | 3.32674 | 2.00437
fdtr | dfn, dfd > 0; x >= 0 | DLMF 8.17
  that of betainc(dfn / 2, dfd / 2, dfn x / (dfd + dfn x))
  2.0, 3.0, 0.5 | 0.350481 | 0.487139
fdtrc | dfn, dfd > 0; x >= 0 | DLMF 8.17
  that of betaincc(dfn / 2, dfd / 2, dfn x / (dfd + dfn x))
  2.0, 3.0, 0.5 | 0.649519 | -0.487139
fdtri | dfn, dfd > 0; p in [0, 1] | DLMF 8.17
  of the equation fdtr(dfn, dfd, x) = p
  2.0, 3.0, 0.5 | 0.881102 | 3.1748
stdtr | df > 0 | DLMF 8.17
  in t: the density of Student's t; in df by way of betainc
  3.0, 0.5 | 0.674276 | 0.313181
stdtrit | df > 0; p in [0, 1] | DLMF 8.17
  of the equation stdtr(df, t) = p
  3.0, 0.75 | 0.764892 | 3.88536
stdtridf | p in (0, 1) | DLMF 8.17
  of the equation stdtr(df, t) = p
  0.75, 0.8 | 2.23101 | -15.8251
btdtria | p, x in (0, 1); b > 0 | DLMF 8.17
  of the equation betainc(a, b, x) = p
  0.5, 1.5, 0.5 | 1.5 | 4.80809
btdtrib | p, x in (0, 1); a > 0 | DLMF 8.17
  of the equation betainc(a, b, x) = p
  1.5, 0.5, 0.5 | 1.5 | -4.80809
nrdtrimn | p in (0, 1); std > 0 | elementary calculus
  in p: -std times that of ndtri; in std: -ndtri(p); in x: 1
  0.75, 2.0, 0.5 | -0.84898 | 1
nrdtrisd | p in (0, 1) | elementary calculus
  in mn: -1 / ndtri(p); in x: 1 / ndtri(p); in p by that of ndtri
  0.0, 0.75, 0.5 | 0.741301 | 1.4826
"""  # noqa: E501  # lines of results


def _read(table: str) -> dict[str, Record]:
    """The records of the table."""
    records = {}
    lines = iter(table.splitlines())
    for head, derivative, example in zip(lines, lines, lines, strict=True):
        name, domain, source = head.split(" | ")
        operands, value, slope = example.strip().split(" | ")
        takes_complex = name.endswith(" (complex)")
        records[name.removesuffix(" (complex)")] = Record(
            takes_complex, domain, source, derivative.strip(), operands, value, slope
        )
    return records


RECORDS = _read(_TABLE)
