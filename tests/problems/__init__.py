"""Test problems of optimisation: functions, starting points and known minima."""

from problems.cutest import CUTEST as CUTEST
from problems.mgh import MGH as MGH
from problems.record import Problem as Problem
