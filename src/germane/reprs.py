"""Lists and objects in texts, as Python, pandas and NumPy write them to CSV files and spans."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final
from uuid import UUID

UNREADABLE: Final = object()
"""Stands for a value that a text represents without containing its data, such as the default ``repr`` of an object."""
_LITERAL: Final = r"""(?:'(?:[^'\\\n]|ESC)*+'|"(?:[^"\\\n]|ESC)*+")""".replace(
    "ESC", r"\\(?:[\\'\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"
)
"""The ``repr`` of a text."""
_NEXT: Final = r"(?=-?[\w'\"\[({.])"
_GAPS: Final = re.compile(rf"(b?{_LITERAL})(\s*{_NEXT})?|(?<=[\w.\])}}])\s+{_NEXT}")
"""Places of the commas that NumPy and pydantic omit. Without them, Python would join adjacent texts."""
_NO_REPR: Final = re.compile(r"['\"\\]|\d(?:and|else|for|i[fns]|not|or)")
"""What the ``repr`` of data does not contain outside of texts."""
_ADDRESS: Final = r"<(?:\w[^'\"\n]{1,120}? at 0x[0-9a-fA-F]+>*|\w+ '[^'<>]*'[^<>]*|built-in [^<>]*)>"
"""The default ``repr`` of objects, and that of classes, modules and functions."""
_ANGLED: Final = re.compile(rf"{_ADDRESS}|<[A-Z]\w* \[.*\]>\Z", re.DOTALL)
"""Such a ``repr`` as a whole, possibly with the items of the object, or one such as ``<Response [200]>``."""
_ANGLES: Final = re.compile(rf"({_LITERAL})|{_ADDRESS}|<[\w.]+: [^<>]*>|<(locals)>")
"""What is not valid Python outside of texts: such a ``repr``, enum members, and names of local classes."""
_BRACKETED: Final = re.compile(r"[\w.]*[\[({<].*[\])}>]|b(['\"]).*\1", re.DOTALL)
"""A collection, an object or bytes, possibly with the name of a class. Everything else is plain text."""
_FIELDS: Final = re.compile(r"(?:page_content|content|text)=(?:['\"]|\[\{)")
"""The form of pydantic models as text: their fields without the name of the class."""
_MODELS: Final = re.compile(rf"({_LITERAL})|(?:(, )|\A\[)(?={_FIELDS.pattern})")
"""The places between such models in a list."""
_BEGINNING: Final = re.compile(r"\[\s*['\"]|dict\(|\[?\s*(\{\s*['\"][^'\"\n]*['\"]\s*:|(?:\w+\.)*[A-Z]\w*\(\w+=)")
"""The beginning of a list of texts, of an object with named fields, or of a list of objects."""
_PANDAS: Final = re.compile(r"(?s).*\n(?:(?:Name: [^\n]*, |Length: \d+, )*dtype: \S+|Categories \(\d+, \w+\): [^\n]*)")
"""A series or an array of pandas as text."""
_COLLECTIONS: Final = re.compile(
    r"(?:\w+\.)?(?:Index|array|deque|frozenset|list|set|tuple|bytearray|defaultdict|mappingproxy|o?dict_\w+)"
)
"""Classes of collections. Other calls with a list, such as ``print(['a'])``, are code."""
_NUMPY_SCALARS: Final = re.compile(r"np\.(?:str_|bytes_|bool_?|(?:u?int|float|datetime|timedelta)\d+)")
_SCALARS: Final[Mapping[str, Callable[..., Any]]] = {
    "UUID": UUID,
    "Decimal": Decimal,
    "PosixPath": PurePosixPath,
    "WindowsPath": PureWindowsPath,
    "Timestamp": str,
    **{f"datetime.{kind.__name__}": kind for kind in (date, datetime, time, timedelta)},
}
_OPENING: Final = frozenset("[({")
_CLOSING: Final = frozenset("])}")
_INVALID: Final = (SyntaxError, ValueError, TypeError, MemoryError, RecursionError)


def read_repr(text: str) -> Any:
    """Return what a text represents in Python's or NumPy's syntax; None if it is plain text.

    Collections such as tuples, sets and arrays become lists, and objects with named fields become dicts with the name
    of the class as ``type``. A scalar such as a date becomes that scalar. Damaged collections, and objects whose fields
    are unknown, become :data:`UNREADABLE`.
    """
    text = text.strip()
    if text in {"set()", "frozenset()"}:
        return []
    if _ANGLED.match(text) or _PANDAS.fullmatch(text):
        return UNREADABLE
    source = _with_calls(text)
    bare = re.sub(_LITERAL, "", source)
    if _BRACKETED.fullmatch(source) and not _NO_REPR.search(bare):
        code = _ANGLES.sub(lambda found: found[1] or found[2] or "...", source)
        code = _GAPS.sub(lambda found: (found[1] or "") + ("" if found[1] and found[2] is None else ", "), code)
        try:
            node, *others = ast.parse(f"[{code}]", mode="eval").body.elts  # type: ignore[attr-defined]  # a list
            if not others:  # unlike in the plain text "(1), (2)"
                return _evaluate(node, is_cell=True)
        except _INVALID:
            pass
    beginning = _BEGINNING.match(source)
    still_open = _open_brackets(bare) if beginning else None
    return UNREADABLE if still_open or (still_open == 0 and beginning and beginning[1]) else None


def _with_calls(text: str) -> str:
    """Return a text with a call of ``dict`` around the fields of each pydantic model, alone or in a list."""
    if text[:1] == "[" and _FIELDS.match(text[1:]):
        return _MODELS.sub(lambda found: found[1] or (found[2] and "), dict(") or "[dict(", text)[:-1] + ")]"
    return f"dict({text})" if _FIELDS.match(text) else text


def _open_brackets(bare: str) -> int | None:
    """Return how many brackets are open where a text ends or was cut off; None if text follows the last bracket."""
    opened, is_closed = 0, False
    for character in re.split("['\"]", bare, maxsplit=1)[0]:
        if is_closed:
            return None
        opened += (character in _OPENING) - (character in _CLOSING)
        is_closed = character in _CLOSING and opened <= 0
    return opened


def _evaluate(node: ast.expr, *, is_cell: bool = False) -> Any:
    """Return the value of an expression. A whole cell is only evaluated if it is a collection or an object.

    Raises:
        ValueError: it is not data, but plain text in brackets, such as ``[a, b]``.
    """
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_evaluate(item) for item in items]
        case ast.Dict(keys=keys, values=values) if all(keys):
            return {ast.literal_eval(key): _evaluate(value) for key, value in zip(keys, values, strict=True) if key}
        case ast.Call(func=ast.Name() | ast.Attribute()):
            return _evaluate_call(node, ast.unparse(node.func), is_cell=is_cell)
        case ast.Constant(value=value) if value is ... or (is_cell and isinstance(value, bytes)):
            return UNREADABLE
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="datetime"))):  # a time zone
            return UNREADABLE
        case ast.Name(id="nan" | "NaT") if not is_cell:
            return None
        case ast.Constant() | ast.UnaryOp() if not is_cell:
            return ast.literal_eval(node)
    raise ValueError


def _evaluate_call(call: ast.Call, name: str, *, is_cell: bool) -> Any:
    """Return what a call represents: a collection, a scalar, an object, or nothing but code."""
    if call.args and _COLLECTIONS.fullmatch(name):  # such as ``deque([...], maxlen=3)``
        return _evaluate(call.args[-1], is_cell=True)
    if len(call.args) == 1 and _NUMPY_SCALARS.fullmatch(name):
        return _evaluate(call.args[0])
    fields = {field.arg: _evaluate(field.value) for field in call.keywords if field.arg}
    if name in _SCALARS:
        try:
            return _SCALARS[name](*map(ast.literal_eval, call.args), **fields)
        except (ValueError, TypeError, ArithmeticError):  # such as a time zone
            return UNREADABLE
    if name in {"dict", "namespace"}:
        return fields
    kind = name.rpartition(".")[2]
    # Classes are written in CapWords. Other calls, such as ``f(x)``, are code or formulas.
    has_data = bool(fields) or any(isinstance(argument, ast.Dict | ast.List) for argument in call.args)
    if not kind[0].isupper() or (is_cell and not has_data):
        raise ValueError
    return {"type": kind, **fields} if fields else UNREADABLE
