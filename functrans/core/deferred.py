"""What lower layers ask of higher ones.

Here: where it stands, each imported when it is first asked for. It is the one way up: that a loop
of chunks in a Jacobian is ``lax.scan``, that tracers have operators, that a ``Jaxpr`` prints
itself, that functions of plain code are rewritten; and code that few processes need, as what writes
programs to files. Beside the public names of ``functrans`` it is
the only place where an import of functrans is deferred. Not here: the functions.

Layer: ``core`` (it imports nothing else of functrans at once).
"""

from typing import Any

from functrans.namespaces import imported

_PLACES = {
    "argument_of": ("functrans.autograd.views", "argument_of"),
    "checked_report_path": ("functrans.debugging.explorer", "checked_path"),
    "call_twin": ("functrans.plain.entry", "call_twin"),
    "call_within": ("functrans.plain.entry", "call_within"),
    "conversion_error": ("functrans.conversion", "conversion_error"),
    "cost_page": ("functrans.debugging.memory", "cost_page"),
    "export_program": ("functrans.compiler.export", "export_program"),
    "framed_explorer": ("functrans.debugging.explorer", "framed_explorer"),
    "jacobian_of_sparsity": ("functrans.sparse.api", "jacobian_of_sparsity"),
    "library_error": ("functrans.conversion", "library_error"),
    "jaxpr_cost": ("functrans.debugging.costs", "program_cost"),
    "jaxpr_in_notebook": ("functrans.debugging.pages", "in_notebook"),
    "jaxpr_load": ("functrans.ir.serialize", "load"),
    "jaxpr_pretty": ("functrans.ir.printing", "pretty"),
    "jaxpr_reduce": ("functrans.ir.serialize", "reduce"),
    "jaxpr_save": ("functrans.ir.serialize", "save"),
    "jaxpr_structural_hash": ("functrans.ir.serialize", "structural_hash"),
    "jaxpr_to_dot": ("functrans.ir.printing", "to_dot"),
    "jaxpr_to_html": ("functrans.debugging.pages", "to_html"),
    "needs_twin": ("functrans.plain.decide", "needs_twin"),
    "operator_table": ("functrans.arrays.operators", "operator_table"),
    "primitives": ("functrans.tables", "BY_NAME"),
    "records": ("functrans.primitives.slicing", "RECORDS"),
    "scan": ("functrans.control.scanning", "scan"),
    "scipy_names": ("functrans.plain", "scipy_names"),
    "special_functions": ("functrans.scipy", "special"),
    "special_ufuncs": ("functrans.scipy.special_ufuncs", "TABLE"),
    "staged_remedy": ("functrans.conversion", "staged_remedy"),
    "tensor_view": ("functrans.autograd.views", "view"),
    "tensor_viewed_as": ("functrans.autograd.views", "viewed_as"),
    "write_report": ("functrans.debugging.explorer", "write_report"),
    "traced_note": ("functrans.conversion", "traced_note"),
    "tracer_methods": ("functrans.numpy.protocols", "tracer_methods"),
}
"""Module and name there, for every name that is asked for here."""


class _Deferred:
    """Its attributes are the names of ``_PLACES``; each is looked up once."""

    def __getattr__(self, name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"nothing is deferred under the name {name!r}")
        value = imported(*_PLACES[name])
        setattr(self, name, value)
        return value


deferred = _Deferred()
