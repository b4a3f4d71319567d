"""Our own `dataclass`: to a type checker the standard library's, but cheaper to load and to create objects of.

The standard library compiles six methods of each class while its module loads: 0.8 ms per class (Python 3.11 on
a Neoverse-N1), and the two processes of a crawl load 129 of them. Here `__init__` is compiled when the first
object of a class is created, and the other methods are shared. Only the type checker enforces that frozen
values do not change: setting each field by `object.__setattr__` takes three times as long, and a page creates a
dozen of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from functools import cache
    from operator import attrgetter

    def dataclass(*, frozen=False, slots=False, kw_only=False):
        """Return a decorator that makes a dataclass with `==` and `repr`, and a hash if it is frozen."""

        def decorated(cls):
            shared = {"__repr__": _shown, "__eq__": _equals, "__hash__": _hash if frozen else None}
            own = {name: method for name, method in shared.items() if name not in vars(cls)}
            # Without a docstring the standard library writes one, which takes 0.4 ms.
            cls.__doc__ = cls.__doc__ or cls.__qualname__
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            for name, method in own.items():
                setattr(made, name, method)
            made.__init__ = _init_later(made, slots=slots)
            return made

        return decorated

    def _init_later(cls, *, slots):
        """Return an `__init__` that compiles the standard library's for these fields when it is first called."""

        def __init__(self, *args, **values):
            fields = [(one.name, one.type, one) for one in dataclasses.fields(cls)]
            extra = {"__doc__": cls.__doc__} | ({"__post_init__": None} if hasattr(cls, "__post_init__") else {})
            model = dataclasses.make_dataclass(
                cls.__qualname__, fields, namespace=extra, repr=False, eq=False, match_args=False, slots=slots
            )
            cls.__init__ = model.__init__
            cls.__init__(self, *args, **values)

        return __init__

    @cache
    def _values_of(cls):
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
