"""The house's `dataclass`: to a type checker the standard library's, but cheaper to load and to make objects of.

The standard library compiles six methods of each class while its module loads: 0.8 ms a class (Python 3.11 on a
Neoverse-N1), and the two processes of a crawl load 129 of them. Here `__init__` is compiled when the first object of a
class is made, and the other methods are shared. That frozen values do not change is for the type checker to see: to
set each field by `object.__setattr__` takes three times as long, and a page makes a dozen of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from functools import cache
    from operator import attrgetter

    _DEFAULT = "__default_{}".format
    """The name of a field's default, or of what makes one, beside the `__init__` that is compiled."""
    _NOT_GIVEN = object()

    def dataclass(*, frozen=False, slots=False, kw_only=False):
        """Return a decorator that makes a dataclass, which can be compared and shown, and hashed if it is frozen."""

        def decorated(cls):
            shared = {"__repr__": _shown, "__eq__": _equals, "__hash__": _hash if frozen else None}
            own = {name: method for name, method in shared.items() if name not in vars(cls)}
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            for name, method in own.items():
                setattr(made, name, method)
            made.__init__ = _init_later(made)
            return made

        return decorated

    def _init_later(cls):
        """Return an `__init__` that is replaced by the one for this class's fields when it is first called."""

        def __init__(self, *args, **values):
            cls.__init__ = init = _compiled_init(cls)
            init(self, *args, **values)

        return __init__

    def _compiled_init(cls):
        """Return the `__init__` that the standard library would write, less its annotations."""
        fields = dataclasses.fields(cls)
        scope = {"_NOT_GIVEN": _NOT_GIVEN}
        parameters, lines = {False: ["self"], True: []}, []
        for one in fields:
            has_factory = one.default_factory is not dataclasses.MISSING
            has_default = has_factory or one.default is not dataclasses.MISSING
            default = _DEFAULT(one.name)
            if has_default:
                scope[default] = one.default_factory if has_factory else one.default
            if one.init:
                written = f"{one.name}={'_NOT_GIVEN' if has_factory else default}" if has_default else one.name
                parameters[one.kw_only].append(written)
                made = f"{default}() if {one.name} is _NOT_GIVEN else {one.name}" if has_factory else one.name
                lines.append(f"self.{one.name} = {made}")
            elif has_default:
                lines.append(f"self.{one.name} = {default}{'()' if has_factory else ''}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        named = ["*", *parameters[True]] if parameters[True] else []
        body = "\n    ".join(lines or ["pass"])
        exec(f"def __init__({', '.join(parameters[False] + named)}):\n    {body}", scope)  # noqa: S102 - our own names
        init = scope["__init__"]
        init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        return init

    @cache
    def _values_of(cls):
        """Return what takes those values out of an object that are compared."""
        names = [one.name for one in dataclasses.fields(cls) if one.compare]
        return attrgetter(*names) if names else lambda _: ()

    def _equals(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = _values_of(self.__class__)
        return values(self) == values(other)

    def _hash(self):
        return hash(_values_of(self.__class__)(self))

    def _shown(self):
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"
