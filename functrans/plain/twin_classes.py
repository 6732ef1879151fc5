"""Twins of classes of user code, and of their objects.

Here: ``twin_class``, ``twin_object`` and what was written to classes. Not here: ``twin`` of any
value, functions (``plain.twins``).

Layer: ``plain``.
"""

from __future__ import annotations

import abc
import enum
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from functrans.plain.kinds import class_of
from functrans.plain.memos import Memo, memo, memo_of_call
from functrans.plain.twins import (
    ATOMS,
    CONTAINERS,
    EMPTY,
    ORIGINAL,
    fill_of_containers,
    given_back,
    is_beside,
    is_laid_out_plainly,
    kept_classes,
    made_by_twins,
    makers_of_users,
    origin_of,
    original_of,
    twin,
)
from functrans.plain.users import is_user_module

# classes ------------------------------------------------------------------------------------------

_KEPT = frozenset(
    {
        "__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__slots__",
        "__init_subclass__", "__abstractmethods__", "__classcell__", "__subclasshook__",
        "__annotations__", "__static_attributes__", "__firstlineno__", "_abc_impl",
        "__getattribute__", "__parameters__", ORIGINAL,
    }
)  # fmt: skip
"""What a twin of a class does not copy."""


def twin_class(cls: type) -> type:
    """A class like a user's, whose members are twins; the class itself of others."""
    if ORIGINAL in cls.__dict__ or cls in made_by_twins or not _may_have_twin(cls):
        return cls
    if cls in memo().classes:
        known: type = memo().known(cls)
        return known
    result = kept_classes.get(cls)
    if result is None:
        result = _empty_twin(cls)
        if "<locals>" not in cls.__qualname__:
            kept_classes[cls] = result
    memo().note(cls, result)
    members = memo().classes[cls] = {}
    for base in cls.__mro__[1:]:  # whose members are looked at anew in each call, too
        twin(base)
    if is_beside(cls):
        for name in [*result.__dict__]:
            if name not in cls.__dict__ and name not in _KEPT and name not in _OF_OBJECTS:
                type.__delattr__(result, name)
    for name, value in list(cls.__dict__.items()):
        if name in _KEPT and not (name == "__init_subclass__" and is_beside(cls)):
            continue
        if isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            continue
        replaced = _member(value)
        if name in ("__array_ufunc__", "__array_function__") and callable(replaced):
            replaced = _told_by_numpy(replaced)
        before = result.__dict__.get(name, EMPTY)
        if _is_same_member(before, replaced):
            replaced = before
        members[name] = replaced
        if result.__dict__.get(name, EMPTY) is not replaced:
            type.__setattr__(result, name, replaced)
    for name in _OF_OBJECTS:
        if name not in cls.__dict__:
            members[name] = _inherited(cls, name)
            if result.__dict__.get(name, EMPTY) is not members[name]:
                type.__setattr__(result, name, members[name])
    read: Any = cls.__getattribute__
    if read is not object.__getattribute__:
        type.__setattr__(result, "__getattribute__", _of_outside(twin(read)))
    return result


def _is_same_member(before: Any, member: Any) -> bool:
    """Whether two properties, class or static methods are of the same functions."""
    kind = type(member)
    if kind is not type(before):
        return False
    if kind is property:
        return (before.fget, before.fset, before.fdel) == (member.fget, member.fset, member.fdel)
    return kind in (staticmethod, classmethod) and before.__func__ is member.__func__


def _told_by_numpy(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that NumPy calls with its function, which is what its name is in twins."""

    @functools.wraps(method)
    def call(self: Any, function: object, *args: object, **kwargs: object) -> Any:
        return method(self, twin(function), *args, **kwargs)

    return call


def give_back_members(cls: type, members: dict[str, Any]) -> None:
    """Write to a class what was written to its twin."""
    own = memo().known(cls)
    gone = [name for name in members if name not in own.__dict__] if is_beside(cls) else []
    for name in gone:
        if name in cls.__dict__:
            delattr(cls, name)
    for name, value in list(own.__dict__.items()):
        if name not in _KEPT and members.get(name, EMPTY) is not value:
            setattr(cls, name, given_back(value))
            memo().written.append((cls, name))
            delattr(own, name)


def _is_same(self: Any, other: object) -> bool:
    return True if origin_of(self) is origin_of(other) else NotImplemented


def _hash(self: Any) -> int:
    return object.__hash__(origin_of(self))


_OF_OBJECTS: dict[str, Any] = {"__eq__": _is_same, "__hash__": _hash}
"""What every class has of ``object``: objects from outside and their twins are the same."""


def _inherited(cls: type, name: str) -> Callable[..., Any]:
    """What the twin of a class inherits under one of these names."""
    owner = next(base for base in cls.__mro__ if name in base.__dict__)
    return _OF_OBJECTS[name] if owner is object else twin_class(owner).__dict__[name]


def _hookless(base: type) -> Any:
    """A class whose hook for subclasses does nothing, and whose objects lie as those of another do.

    It stands before the bases of a class that is being made, and they take its place; for that
    Python asks that the first of them adds the same to objects, over the same class. Where there is
    more in objects than a ``__dict__`` and weak references, it decides by itself how they lie.
    """
    over: type = base.__base__ or object
    adds = [
        f"__{name}__"
        for name in ("dict", "weakref")
        if getattr(base, f"__{name}offset__") and not getattr(over, f"__{name}offset__")
    ]
    hook = classmethod(lambda cls, **_: None)
    namespace = {"__slots__": adds, "__init_subclass__": hook}
    if over is object or _holds_more(base):
        return type("_Hookless", (), namespace)
    result = type("_Hookless", (_hookless(over),), namespace)
    type.__dict__["__bases__"].__set__(result, (over,))
    return result


def _holds_more(cls: type) -> bool:
    """Whether objects of a class have slots or memory of C's."""
    while cls is not object:
        slots = cls.__dict__.get("__slots__", ())
        slots = {slots} if isinstance(slots, str) else set(slots)
        if not cls.__flags__ & _IS_HEAP_TYPE or slots - {"__dict__", "__weakref__"}:
            return True
        cls = cls.__base__ or object
    return False


_IS_HEAP_TYPE = 1 << 9
"""Set in the flags of a class that a statement made: ``Py_TPFLAGS_HEAPTYPE``."""


def _empty_twin(cls: type) -> type:
    """A twin of a class without its members; making it runs no hook of the user's.

    It is a class beside the class, of the twins of its bases: the program sees no class that it has
    not made. Where objects have slots, or memory of C's, it is a subclass, since no object can
    change between classes that lie beside each other there. It then looks for attributes in the
    class, the twin of its first base, that base, and so on: so ``super()`` in a method, whose
    ``__class__`` stays the class, goes on to the twin of the base.
    """
    namespace: dict[str, Any] = {
        ORIGINAL: cls,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    meta: Any = type(cls)
    if is_beside(cls):
        bases = tuple([twin_class(base) for base in cls.__bases__ if base is not object])
        namespace["__annotations__"] = inspect.get_annotations(cls)
        meta = _class_of_twins(meta)
    else:
        bases = (cls, *(other for base in cls.__bases__ if (other := twin_class(base)) is not base))
        namespace["__slots__"] = ()
    has_hook = any("__init_subclass__" in base.__dict__ for base in cls.__mro__[:-1])
    first = (_hookless(bases[0]),) if has_hook and bases else ()
    result: Any = type.__new__(meta, cls.__name__, (*first, *bases), namespace)
    if first:
        type.__dict__["__bases__"].__set__(result, bases)
    abstract = getattr(cls, "__abstractmethods__", None)
    if abstract:
        result.__abstractmethods__ = abstract
    return result


@functools.lru_cache(maxsize=64)
def _class_of_twins(kind: type) -> type:
    """The class of twins of classes that lie beside them, by the class of these.

    A twin is equal to the class, so that tables find it, and has the instances and subclasses that
    the class has.
    """
    own: dict[str, Any] = {"__module__": __name__}
    for name, function in _OF_CLASSES.items():
        theirs = getattr(kind, name)
        if theirs in (getattr(type, name), getattr(abc.ABCMeta, name)):
            own[name] = function
    if getattr(kind, "register", None) is abc.ABCMeta.register:
        own["register"] = _register
    if kind.__call__ is not type.__call__:
        own["__call__"] = _called_by_metaclass(kind)
    return type(kind)("Twins", (kind,), own)


def _is_same_class(cls: type, other: object) -> bool:
    return original_of(cls) is original_of(other)


def _hash_of_class(cls: type) -> int:
    return type.__hash__(original_of(cls))


def _has_instance(cls: type, instance: object) -> bool:
    return type.__instancecheck__(cls, instance) or _has_subclass(cls, type(instance))


def _has_subclass(cls: type, other: type) -> bool:
    original = original_of(cls)
    if type.__subclasscheck__(cls, other) or original is cls:
        return type.__subclasscheck__(cls, other)
    return issubclass(original_of(other), original)


def _register(cls: type, subclass: type) -> type:
    original: Any = original_of(cls)
    original.register(original_of(subclass))
    return subclass


def _subclasses(cls: type) -> list[type]:
    return list(map(twin_class, type.__subclasses__(original_of(cls))))


_OF_CLASSES: dict[str, Any] = {
    "__eq__": _is_same_class,
    "__hash__": _hash_of_class,
    "__instancecheck__": _has_instance,
    "__subclasscheck__": _has_subclass,
    "__subclasses__": _subclasses,
}


def _called_by_metaclass(kind: Any) -> Callable[..., Any]:
    def call(cls: type, *args: object, **kwargs: object) -> Any:
        return twin(kind.__call__(cls, *args, **kwargs))

    return call


def _may_have_twin(cls: type) -> bool:
    if not is_user_module(cls.__module__) or getattr(cls, "_is_protocol", False):
        return False
    meta = type(cls)
    if meta is not type and meta is not abc.ABCMeta and not is_user_module(meta.__module__):
        return False  # a library's way of making classes
    return not issubclass(cls, (enum.Enum, BaseException, tuple, type))


def _member(value: Any) -> Any:
    """The twin of what stands in a class: functions, static and class methods, properties."""
    kind = type(value)
    if kind in (staticmethod, classmethod):
        function = _member(value.__func__)
        return value if function is value.__func__ else kind(function)
    if kind is property:
        read, write, delete = (f and _member(f) for f in (value.fget, value.fset, value.fdel))
        return property(read, write, delete, value.__doc__)
    if kind is functools.singledispatchmethod:
        return _DispatchingMethod(value)
    if kind is functools.cached_property:
        result: Any = functools.cached_property(_member(value.func))
        result.attrname = value.attrname
        return result
    replaced = value if kind in ATOMS else twin(value)
    is_bound = type(replaced) is types.FunctionType and not hasattr(kind, "__get__")
    return staticmethod(replaced) if is_bound else replaced  # functions of C are no methods


# objects ------------------------------------------------------------------------------------------


def twin_object(value: object) -> Any:
    """An object that shares the attributes of another one, whose class is the twin of its class."""
    cls = type(value)
    if ORIGINAL in cls.__dict__ or cls.__module__ == "builtins":
        return value
    theirs = twin_class(cls)
    slots = slots_of(cls)
    if theirs is cls or not (slots or hasattr(value, "__dict__")):
        return value
    base = next((base for base in CONTAINERS if isinstance(value, base)), object)
    result: Any
    try:
        result = base.__new__(theirs)
    except TypeError:  # a class of C's below it, whose memory cannot be shared
        return value
    if base is not object:
        fill_of_containers[base](value, result)
    if hasattr(value, "__dict__"):
        object.__setattr__(result, "__dict__", value.__dict__)
    if slots:
        _write_slots(slots, result, value, lambda content: content)
        memo().slotted.append((value, result))
    read: Any = theirs.__getattribute__
    if read is object.__getattribute__:
        type.__setattr__(theirs, "__getattribute__", _of_outside(read))
    memo().objects.append(value)
    return result


def give_back_classes(memo: Memo) -> None:
    """Let objects from outside be of the classes that they were given: ``self.__class__ = C``."""
    for value in memo.objects:
        kind = original_of(type(memo.known(value)))
        if kind is not type(value):
            object.__setattr__(value, "__class__", kind)


def slots_of(cls: type) -> list[Any]:
    """The slots of objects of a user's class."""
    if is_laid_out_plainly(cls):
        return []
    return [
        member
        for base in original_of(cls).__mro__
        if base.__dict__.get("__slots__")
        for member in base.__dict__.values()
        if isinstance(member, types.MemberDescriptorType)
    ]


def _write_slots(
    slots: list[Any], target: object, source: object, change: Callable[[Any], Any]
) -> None:
    """Let an object have in its slots what another one has, changed where it is something else."""
    for slot in slots:
        if not _holds(slot, source):
            if _holds(slot, target):
                slot.__delete__(target)
            continue
        content = slot.__get__(source)
        if not _holds(slot, target) or slot.__get__(target) is not content:
            slot.__set__(target, change(content))


def _holds(slot: Any, owner: object) -> bool:
    try:
        slot.__get__(owner)
    except AttributeError:
        return False
    return True


def give_back_slots(memo: Memo) -> None:
    """Write to objects with slots what was written to those of their twins."""
    for value, own in memo.slotted:
        _write_slots(slots_of(type(value)), value, own, given_back)


def change_attributes(value: object, change: Callable[[Any], Any]) -> None:
    """Change what an object of a user's class holds, in its dictionary and its slots.

    Args:
      value: the object.
      change: gives of each what is to be there; of the dictionary that itself, changed.
    """
    if hasattr(value, "__dict__"):
        change(value.__dict__)
    for slot in slots_of(type(value)):
        if _holds(slot, value):
            content = slot.__get__(value)
            new = change(content)
            if new is not content:
                slot.__set__(value, new)


def _of_outside(read: Callable[[Any, str], Any]) -> Callable[..., Any]:
    """How a twin of a class reads attributes: what objects from outside hold are twins, too.

    Args:
      read: how the class reads them.
    """

    def attribute(self: Any, name: str) -> Any:
        value = read(self, name)
        kind = type(value)
        if kind in ATOMS or (kind is types.MethodType and value.__self__ is self):
            return value
        known = memo_of_call.get()
        if known is None or known.origin(self) is None or name == "__dict__":
            return value
        return twin(value)

    return attribute


class _DispatchingMethod(functools.singledispatchmethod):  # type: ignore[type-arg]  # of any result
    """``functools.singledispatchmethod``, likewise."""

    def __init__(self, method: Any) -> None:
        self.dispatcher, self.func = method.dispatcher, method.func

    def __get__(self, instance: object, cls: Any = None) -> Any:
        """The method, bound."""

        def call(*args: object, **kwargs: object) -> Any:
            found = self.dispatcher.dispatch(original_of(class_of(args[0])))
            return _member(found).__get__(instance, cls)(*args, **kwargs)

        return functools.update_wrapper(call, self.func)


makers_of_users.update({"class": twin_class, "object": twin_object})
