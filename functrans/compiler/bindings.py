"""Programs that leave Python as other tools see them: Fortran and CMake.

Here: ``fortran_text``, a module of Fortran that declares a function, and ``cmake_text``, what CMake
builds with it. Not here: C's header (``compiler.header``), files (``compiler.export``).

Layer: ``compiler``. Reference: ISO/IEC 1539-1:2018, clause 18, Interoperability with C.
"""

from __future__ import annotations

from functrans.compiler.interface import Interface, Leaf, c_names

_FORTRAN_TYPES = {
    "double": "real(c_double)", "float": "real(c_float)", "bool": "logical(c_bool)",
    "int8_t": "integer(c_int8_t)", "int16_t": "integer(c_int16_t)",
    "int32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)",
    "uint8_t": "integer(c_int8_t)", "uint16_t": "integer(c_int16_t)",
    "uint32_t": "integer(c_int32_t)", "uint64_t": "integer(c_int64_t)",
}  # fmt: skip
"""Types of C in Fortran, which has no integers without a sign."""
_LONGEST_LINE = 130


def fortran_text(interface: Interface) -> str:
    """A module of Fortran, ``<name>_interface``, with the function and names of its statuses.

    Fortran does not tell upper from lower case: names that differ in that only are numbered.
    """
    name = interface.name
    lines = [
        f"! The function {name} of {name}.h in Fortran.",
        "! Arrays are in C order: the first axis of an array in Python is the last one in Fortran.",
        f"module {name}_interface",
        "  use, intrinsic :: iso_c_binding",
        "  implicit none",
    ]
    numbers = [("int64", f"{name}_workspace_bytes", interface.text.workspace_bytes)]
    numbers += [("int32", text, status) for status, text in interface.statuses.items()]
    sizes = [row for matrix in interface.matrices for row in matrix.sizes]
    numbers += [("int64", macro, size) for macro, size in sizes]
    constants = interface.constants
    own = [*(text for _, text, _ in numbers), *(leaf.name for leaf in constants)]
    functions = [f"{name}{end}".lower() for end in ("", "_error_text", "_interface")]
    names = iter(c_names(list(map(str.lower, own)), "constant", functions))
    for kind, _, value in numbers:
        lines.append(f"  integer(c_{kind}_t), parameter :: {next(names)} = {value}_c_{kind}_t")
    lines += [
        f'  {_type(leaf)}, bind(c, name="{leaf.name}"), protected :: '
        f"{next(names)}({max(leaf.length, 1)})"
        for leaf in constants
    ]
    lines += ["  interface", *_function(interface)]
    lines += [
        f'    function {name}_error_text(status) bind(c, name="{name}_error_text") result(text)',
        "      import :: c_int32_t, c_ptr",
        "      integer(c_int32_t), value :: status",
        "      type(c_ptr) :: text",
        "    end function",
        "  end interface",
        f"end module {name}_interface",
    ]
    return "\n".join([*lines, ""])


def _function(interface: Interface) -> list[str]:
    """The interface of the function; its arguments have names that differ in more than case."""
    name, leaves = interface.name, interface.leaves
    names = c_names(
        [leaf.name.lower() for leaf in leaves], "arg", ("workspace", "status", name.lower())
    )
    lines = [f"    function {name}( &"]
    lines += [f"        {argument}, &" for argument in names]
    lines += [f'        workspace) bind(c, name="{name}") result(status)']
    lines += ["      import"]
    for number, (argument, leaf) in enumerate(zip(names, leaves, strict=True)):
        intent = "in" if number < len(interface.arguments) else "out"
        declared = f"      {_type(leaf)}, intent({intent}) :: {argument}(*)"
        lines.append(f"{declared}  ! {leaf.note}"[:_LONGEST_LINE])
    lines += [
        "      integer(c_int8_t) :: workspace(*)",
        "      integer(c_int32_t) :: status",
        "    end function",
    ]
    return lines


def _type(leaf: Leaf) -> str:
    return _FORTRAN_TYPES[leaf.c_type]


def cmake_text(interface: Interface, file: str) -> str:
    """What ``include(<name>.cmake)`` defines: a target of the function's name to link with.

    Args:
      interface: the function.
      file: name of the object file or shared library beside it.
    """
    name, place = interface.name, "${CMAKE_CURRENT_LIST_DIR}"
    is_object = file.endswith(".o")
    code = "IMPORTED_OBJECTS" if is_object else "IMPORTED_NO_SONAME TRUE IMPORTED_LOCATION"
    libraries = ["LAPACK::LAPACK"] if interface.text.routines else []
    linked = ";".join([*libraries, "$<$<NOT:$<PLATFORM_ID:Windows>>:m>"])
    properties = [
        f'{code} "{place}/{file}"',
        f'INTERFACE_INCLUDE_DIRECTORIES "{place}"',
        f'INTERFACE_LINK_LIBRARIES "{linked}"',
    ]
    lines = [
        f"# include({name}.cmake), then target_link_libraries(program PRIVATE {name});",
        "# CMake 3.18 or later.",
    ]
    if libraries:
        lines.append("find_package(LAPACK REQUIRED)")
    lines += [
        f"add_library({name} {'OBJECT' if is_object else 'SHARED'} IMPORTED GLOBAL)",
        f"set_target_properties({name} PROPERTIES",
        *(f"    {row}" for row in properties),
        ")",
        "",
    ]
    return "\n".join(lines)
