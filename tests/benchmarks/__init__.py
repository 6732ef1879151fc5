"""Benchmarks of functrans beside its peers; run with ``python -m tests.benchmarks``.

Nothing here is collected by pytest. ``README.md`` says how to run it and how to add a workload.
Layers, lowest first: ``record`` (what a workload is), ``libraries`` (the contenders' libraries),
``derive`` (contenders made from one formula), ``workloads`` (the workloads), ``worker`` (the
process of one contender), ``process`` (its handle in the parent), ``rounds`` and ``startup`` (what
is measured), ``agreement`` (are the results equal?), ``report`` (text, Markdown, JSON) and
``__main__`` (the command line).
"""
