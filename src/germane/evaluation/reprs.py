"""Lists and objects in a text cell, as Python, pandas and NumPy write them to CSV files."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import Any, Final

from germane import sanitize
from germane.errors import UsageError

_BRACKETED: Final = re.compile(r"[\w.]*[\[({<].*[\])}>]", re.DOTALL)
"""A collection or an object, possibly with the name of its class. Everything else is plain text."""
_DEFAULT_REPR: Final = re.compile(r"<[\w.]+(?:: [^<>]*| object at 0x\w+)>")
"""The form of enum members, and of objects without a form of their own. It is not valid Python."""
_FIELDS: Final = re.compile(r"(?:page_content|content|text)=(['\"]).*\1(?: \w+=|$)", re.DOTALL)
"""The form of pydantic models as text: their fields without the name of the class."""
_DAMAGED: Final = re.compile(r"\[\s*(?:\{\s*)?['\"](?:[^\]]*|[^\]]*['\"}]\s*\])")
"""A list of texts or objects that is cut off, or whose quotation marks do not match."""
_PANDAS: Final = re.compile(r"(?:<\w+Array>\n)?.*\n(?:Name: .*, )?(?:Length: \d+, )?dtype: \S+", re.DOTALL)
"""A series or an array of pandas as text."""
_COLLECTIONS: Final = frozenset(
    {
        "Index",
        "array",
        "deque",
        "dict_keys",
        "dict_values",
        "frozenset",
        "list",
        "odict_keys",
        "odict_values",
        "set",
        "tuple",
    }
)
"""Classes of collections. Other calls with a list, such as ``print(['a'])``, are code."""
_WORDS: Final = frozenset({"None", "nan", "NaT", "True", "False", "..."})
_OPENING: Final = frozenset("[({")
_CLOSING: Final = frozenset("])}")
_LAYOUT: Final = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.ENDMARKER)
_INVALID: Final = (SyntaxError, ValueError, MemoryError, RecursionError, tokenize.TokenError)


def parse_repr(text: str, column: str) -> Any:
    """Return the list or dict that a text represents in Python's or NumPy's syntax; None if it is plain text.

    Tuples, sets, arrays and other collections become lists.

    Raises:
        UsageError: the text represents an object, or contains one.
    """
    text = text.strip()
    if text in {"set()", "frozenset()"}:
        return []
    is_object = (_FIELDS.match(text) or _PANDAS.fullmatch(text)) is not None
    for source in (text, _DEFAULT_REPR.sub("...", text)) if _BRACKETED.fullmatch(text) else ():
        try:
            return _evaluate(ast.parse(_with_commas(source), mode="eval").body, is_cell=True)
        except _INVALID:
            continue
        except TypeError:
            is_object = True
            break
    if is_object or _DAMAGED.fullmatch(text):
        what = "the Python representation of an object" if is_object else "a damaged list"
        raise UsageError(
            f"has {what} in its {column}: {sanitize.line(text, 60)}; write the texts as a JSON list of strings"
        )
    return None


def _with_commas(text: str) -> str:
    """Add the commas that NumPy omits between items. Without them, Python would join adjacent strings."""
    parts, opened, previous = list[str](), list[str](), ""
    for kind, token, *_ in tokenize.generate_tokens(io.StringIO(text).readline):
        if kind in _LAYOUT:
            continue
        if kind == tokenize.ERRORTOKEN and not token.isspace():  # an error in itself since Python 3.12
            raise SyntaxError
        is_value = kind in {tokenize.STRING, tokenize.NUMBER} or token in _WORDS
        begins_item = is_value or token in _OPENING or (kind == tokenize.NAME and previous == "bracket")
        if previous and begins_item and opened[-1:] == ["["]:
            parts.append(",")
        if token in _OPENING:
            opened.append(token)
        elif token in _CLOSING:
            del opened[-1:]
        previous = "value" if is_value else "bracket" if token in _CLOSING else ""
        parts.append(token)
    return " ".join(parts)


def _evaluate(node: ast.expr, *, is_cell: bool = False) -> Any:
    """Return the value of an expression. A whole cell is only evaluated if it is a collection.

    Raises:
        ValueError: it is not data, but plain text in brackets, such as ``[a, b]``.
        TypeError: it contains an object, or NumPy's ``...`` in place of items.
    """
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_evaluate(item) for item in items]
        case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
            return {ast.literal_eval(key): _evaluate(value) for key, value in zip(keys, values, strict=True) if key}
        # A collection with its class, such as ``array([...], dtype=object)`` or ``deque([...], maxlen=3)``.
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[items]) if name in _COLLECTIONS:
            return _evaluate(items, is_cell=True)
        # NumPy's scalars, such as ``np.str_('a')``.
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np")), args=[value], keywords=[]) if not is_cell:
            return _evaluate(value)
        # Classes are written in CapWords. Other calls, such as ``f(x)``, are code or formulas.
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), keywords=keywords):
            is_class = name[0].isupper() or ast.unparse(node).startswith("datetime.")
            raise TypeError if is_class and (keywords or not is_cell) else ValueError
        case ast.Constant(value=value) if value is ...:
            raise TypeError
        case ast.Name(id="nan" | "NaT") if not is_cell:
            return None
        case ast.Constant() | ast.UnaryOp() if not is_cell:
            return ast.literal_eval(node)
    raise ValueError
