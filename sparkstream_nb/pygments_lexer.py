"""SiddhiQL for Pygments, as `siddhi`: pages that nbconvert and Sphinx make.

Pygments loads it where it looks for a lexer that it does not have itself, hence few imports.
"""

from __future__ import annotations

import re
from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from .lang.keywords import KEYWORDS, TYPES


class SiddhiLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """SiddhiQL, with the line `%%siddhi` of a notebook's cell."""

    name = "SiddhiQL"
    aliases: ClassVar[list[str]] = ["siddhi", "siddhiql"]
    filenames: ClassVar[list[str]] = ["*.siddhi"]
    flags = re.MULTILINE | re.IGNORECASE
    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"(%%?siddhi)(?![\w-])(.*)", bygroups(Keyword.Namespace, Name.Attribute)),
            (r"--.*", Comment.Single),
            (r"/\*", Comment.Multiline, "comment"),
            (r'"""(?:.|\n)*?"""', String),
            (r"'[^'\n]*'|\"[^\"\n]*\"", String),
            (r"\$\{\w+\}", Name.Variable.Magic),
            (r"@\s*[A-Za-z_]\w*(?:\s*:\s*[A-Za-z_]\w*)?", Name.Decorator),
            (r"\d+(?:\.\d+)?(?:e[-+]?\d+)?[lfd]?\b|\.\d+[fd]?", Number),
            (r"#window(?=\s*\.)", Keyword),
            (r"[A-Za-z_]\w*(?:\s*:\s*[A-Za-z_]\w*)?(?=\()(?<!\bnot)(?<!\bwith)(?<!\bin)", Name.Function),
            (words(TYPES, suffix=r"\b"), Keyword.Type),
            (r"(?:true|false|null)\b", Keyword.Constant),
            (words(tuple(sorted(KEYWORDS)), suffix=r"\b"), Keyword),
            (r"[#!]?[A-Za-z_]\w*|`[^`\n]*`", Name),
            (r"->|\.\.\.|[=!<>]=|[-+*/%<>=?!]", Operator),
            (r"[()\[\]{};,.:#]", Punctuation),
        ],
        "comment": [
            (r"[^*]+", Comment.Multiline),
            (r"\*/", Comment.Multiline, "#pop"),
            (r"\*", Comment.Multiline),
        ],
    }
