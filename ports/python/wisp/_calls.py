"""Explains wrong calls in one sentence: an argument that does not exist, and None where a value is required.

    explain_methods(Recommender)
    model.recommend([1], candidate={3})
    # TypeError: Recommender.recommend has no argument 'candidate'; allowed are history, k, exclude, candidates and
    # allow_seen; did you mean candidates?

Nothing is checked before a call has failed, so a correct call costs only one more Python call.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Any

from ._errors import Closed, InvalidArgument


def no_argument(called: str, name: str, names: Sequence[str]) -> TypeError:
    """The error for a keyword that a function does not have; `names` are those that it has."""
    allowed = f"allowed are {', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else f"allowed is {names[0]}"
    near = difflib.get_close_matches(name, names, n=1)
    question = f"; did you mean {near[0]}?" if near else ""
    return TypeError(f"{called} has no argument {name!r}; {allowed}{question}")


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature. The help of a method of the extension begins with it: "find(self, key: str) -> int | None"."""
    if inspect.isfunction(function):
        return inspect.signature(function)
    line = (function.__doc__ or "").partition("\n")[0]
    space: dict[str, Any] = {}
    exec(f"from __future__ import annotations\ndef {line}: ...", space)
    return inspect.signature(space[function.__name__])


def _names(function: Callable[..., Any], signature: inspect.Signature) -> list[str] | None:
    """The names of the arguments, including those of a TypedDict of options; None: any name is allowed."""
    names = [one.name for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    if len(names) < len(signature.parameters):
        options = typing.get_type_hints(function)[[*signature.parameters][-1]]
        if typing.get_origin(options) is not typing.Unpack:
            return None
        names += typing.get_type_hints(typing.get_args(options)[0])
    return [name for name in names if name not in ("self", "cls")] or ["none"]


class _Explained:
    """A function, its name in messages, and its arguments."""

    def __init__(self, function: Callable[..., Any], called: str) -> None:
        self.function = function
        self.called = called
        self.signature = _signature(function)

    def fault(self, args: tuple[Any, ...], given: dict[str, Any]) -> Exception | None:
        """The error that explains a failed call; None: this module cannot explain it."""
        names = _names(self.function, self.signature)
        unknown = [] if names is None else [name for name in given if name not in names]
        if names is not None and unknown:
            return no_argument(self.called, unknown[0], names)
        try:
            values = self.signature.bind(*args, **given).arguments
        except TypeError as wrong:  # for Python's own functions this is the exception that was raised
            return None if inspect.isfunction(self.function) else TypeError(f"{self.called}: {wrong}")
        for one in self.signature.parameters.values():
            if values.get(one.name, one) is None and "None" not in str(one.annotation):
                what = "is required" if one.default is one.empty else f"must not be; leave it out for {one.default!r}"
                return InvalidArgument(f"{self.called}: {one.name} is None, and {what}")
        return None

    def types(self, args: tuple[Any, ...], given: dict[str, Any]) -> TypeError:
        """The types that a method of the extension takes, and those that it was given, for its TypeError."""
        values = self.signature.bind(*args, **given).arguments
        told = ", ".join(f"{name}: {type(value).__name__}" for name, value in values.items() if name != "self")
        takes = ", ".join(str(one) for one in self.signature.parameters.values() if one.name != "self")
        return TypeError(f"{self.called} takes ({takes}); it was given ({told})")


def _explained(function: Callable[..., Any], called: str) -> Callable[..., Any]:
    known = _Explained(function, called)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except Closed:
            raise
        except (TypeError, InvalidArgument) as error:
            fault = known.fault(args, given)
            if isinstance(fault, InvalidArgument) and isinstance(error, TypeError):
                # In a Python function the error may come from somebody else's code that the call reached.
                fault = None if inspect.isfunction(function) else TypeError(str(fault))
            if fault is None and "incompatible function arguments" in str(error):
                fault = known.types(args, given)
            if fault is None:
                raise
        raise fault

    call.__signature__ = known.signature  # type: ignore[attr-defined]
    if not inspect.isfunction(function):
        call.__doc__ = (function.__doc__ or "").partition("\n")[2].lstrip()
    return call


def explain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with explanations; replaces it in the module that defines it."""
    said = _explained(function, function.__name__)
    setattr(sys.modules[function.__module__], function.__name__, said)
    return said


def explain_methods(of: type) -> None:
    """Adds explanations to all public methods of the class, inherited ones included."""
    for name in [name for name in dir(of) if name == "__init__" or not name.startswith("_")]:
        method = inspect.getattr_static(of, name)
        called = of.__name__ if name == "__init__" else f"{of.__name__}.{name}"
        if isinstance(method, classmethod):
            setattr(of, name, classmethod(_explained(method.__func__, called)))
        elif callable(method):
            setattr(of, name, _explained(method, called))
