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
    """A module of Fortran, ``<name>_interface``, with the function and names of its statuses."""
    name = interface.name
    lines = [
        f"! The function {name} of {name}.h in Fortran.",
        "! Arrays are in C order: the first axis of an array in Python is the last one in Fortran.",
        f"module {name}_interface",
        "  use, intrinsic :: iso_c_binding",
        "  implicit none",
        f"  integer(c_int64_t), parameter :: {name}_workspace_bytes = "
        f"{interface.text.workspace_bytes}_c_int64_t",
    ]
    for status, text in interface.statuses.items():
        lines.append(f"  integer(c_int32_t), parameter :: {text.lower()} = {status}_c_int32_t")
    for macro, size in (row for matrix in interface.matrices for row in matrix.sizes):
        lines.append(f"  integer(c_int64_t), parameter :: {macro.lower()} = {size}_c_int64_t")
    for leaf in interface.constants:
        shape = max(leaf.length, 1)
        lines.append(
            f'  {_type(leaf)}, bind(c, name="{leaf.name}"), protected :: '
            f"{leaf.name.lower()}({shape})"
        )
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
    names = c_names([leaf.name.lower() for leaf in leaves], "arg", ("workspace", "status"))
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
