"""Secrets in texts that people see: replaced by as many stars.

Each pattern is for one way of writing: options, members of documents, parameters of addresses, headers, lines of
configuration files. `is_secret_name` tells for all of them which names belong to secrets. Two patterns need no name:
the part of an address before its `@`, and a word after `Basic` or `Bearer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import unquote

from .edit_distance import edit_distance

_REFERENCE = r"\$\{(?:sec|env):[^}]*\}"
_NAMES = (
    r"(?:password|passwd|pwd|pass[-_. ]?(?:phrase|code|word|key)|(?<!by)(?<!com)(?<!sur)pass(?![a-z])|secret|token"
    r"|credentials?|authorization|cookie|signature"
    r"|(?:api|access|account|private|shared|signing|encryption|master|hmac|auth|storage|subscription|ssh|keystore)"
    r"[-_. ]?key)"
)
_SECRET_NAME = re.compile(rf"(?i){_NAMES}")
_SECRET_WORDS = (
    "password", "passwd", "passphrase", "secret", "credential", "credentials", "token", "apikey", "authorization",
)  # fmt: skip
_OTHER_WORDS = frozenset(["taken", "woken"])
"""Words that are no misspelt word for a secret."""
_SHORT_SECRETS = frozenset(["jwt", "otp", "pass", "pin", "pw", "pwd", "pword", "pswd"])
_SECRET_PARAMETERS = frozenset(
    ["auth", "code", "hash", "hmac", "jwt", "key", "otp", "pin", "sas", "session", "sessionid", "sid", "sig", "sign"]
)
"""Names of parameters behind the `?` of an address, in small letters, that let people in as a password does."""
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_NAMED_USERS = _CONTAINERS | frozenset(
    {"hdfs", "ftp", "ftps", "sftp", "ssh", "git", "ldap", "ldaps", "postgres", "postgresql", "mysql", "mariadb"}
)
"""Schemes whose addresses have a user's or a container's name alone before the `@`, and not a token."""

_INNER_QUOTE = r"""['"](?![\s,;.:)\]}'"]|\Z)"""
"""A quote that does not end a value or an address, as more follows it."""
_QUOTED_OPTION = re.compile(
    r"(?m)(?<![\w.-])(?P<name>(?:(?:pass|api|access|private)[ \t]+)?[\w.-]++)(?P<is>['\"`]?\s*[=:]\s*[bfru]?)"
    rf"(?:(?P<long>\"\"\")(?P<lines>[\s\S]*?)(?:\"\"\"|\Z)|(?P<quote>['\"])(?!{_REFERENCE}(?:(?P=quote)|$))"
    r"(?P<value>.*?)(?:(?P=quote)(?![\w$!#%&*@\\^~])|$))"
)
"""An option with its value. A quote that is not closed, or that more follows, as a quote in the value that was meant to
be escaped, reaches to the end of the line, three to the end of all."""
_WITHOUT_SIGN = re.compile(
    r"""(?P<before>[(,]\s*(?P<name>[\w.-]++)[ \t]+)"""
    r"""(?:(?P<quote>['"])(?P<quoted>[^'"\n]*)|(?P<value>[^\s'",)=:-][^\s'",)=]*))"""
)
"""An option whose `=` was forgotten."""
_SECOND_PART = re.compile(r"""(?P<before>\*['"]\s*\+\s*['"])(?P<value>[^'"\n]*)""")
"""A further part of a value in stars, added to it as in other languages."""
_COMMENTED = re.compile(
    r"(?m)(?P<before>(?:^|\s)(?:--|//|/\*|#)[^\n]{0,200}?\b(?P<name>[\w.-]++)[ \t]*:[ \t]*)(?P<value>[^\s'\",;*]+)"
)
"""A pair in a comment."""
_PRIVATE_KEY = re.compile(r"(?P<before>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?P<value>[^-]+)")
_MEMBER = re.compile(
    r"""(?P<before>(?P<quote>['"])(?P<name>[\w.-]++)(?P=quote)\s*:\s*b?(?P<open>['"]))"""
    r"(?P<value>(?:\\.|(?!(?P=open))[^\\\n])*+)"
)
"""A member of a JSON document, or of a dict of Python's: a quote in its value is behind a backslash."""
_NUMBER = re.compile(r"""(?P<before>['"](?P<name>[\w.-]++)['"]\s*:\s*)(?P<value>-?\d[\w.+-]*)""")
_TUPLE = re.compile(
    r"""(?P<before>\(b?(?P<quote>['"])(?P<name>[\w.-]++)(?P=quote), b?['"])(?P<value>[^'"\n]*)(?=['"]\))"""
)
"""A header or an option as Python shows it in a list of pairs."""
_LINE = re.compile(
    r"(?m)^(?P<before>[ \t]*(?:- +)?(?P<name>[\w.-]++):[ \t]+)"
    r"(?P<value>[^\s'\"$\{\[|>&*#][^\s#]*)(?=[ \t]*(?:#.*)?\r?$)"
)
"""A line of a YAML file, with a value of one word."""
_ELEMENT = re.compile(r"(?P<before><(?:\w+:)?(?P<name>[\w.-]++)(?:\s[^<>]*)?>)(?P<value>[^<>]+)(?=</)")
_PARAMETER_NAME = re.compile(r"[?&](?P<name>[\w.%-]++)\s*=(?!=\s)\s*")
_PARAMETER = re.compile(rf"(?:[^&\s'\"]|{_INNER_QUOTE})+")
_PROPERTY_NAME = re.compile(r";\s?(?P<name>[\w.-]++(?: [\w.-]++)?)\s*=(?!=\s)\s*")
_PROPERTY = re.compile(rf"\{{[^}}\n]*\}}|(?:[^;\s'\"]|{_INNER_QUOTE})+")
_PLAIN_SECRET = re.compile(rf"(?i)(?P<before>(?<![?&;\w.-])[\w.-]*{_NAMES}\s*=(?!=\s)\s*)(?P<value>[^&;\s'\"]+)")
_HEADER_NAME = re.compile(r"(?<![\w-])(?P<name>[\w-]++)\s*:\s*")
_HEADER = re.compile(r"(?i)(?:(?:basic|bearer|digest|negotiate|token|apikey)\s+)?+(?!\$\{|\{\{[^{}]*\}\})[^\s'\",;]+")
"""The value of a header: a scheme, if any, and the word behind it, but no reference nor a placeholder."""
_COOKIES = re.compile(r"[^\r\n'\"]+")
_SCHEME_TOKEN = re.compile(r"(?P<before>\b(?i:basic|bearer|negotiate)[ \t]+)(?P<value>[\w+/=.~-]{6,})")
_TOKEN_SHAPES = tuple(
    re.compile(shape)
    for shape in (
        r"(?P<before>\b)(?P<value>eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*){1,3})",  # JSON web tokens
        r"(?P<before>\bhooks\.slack(?:-gov)?\.com/\w+/)(?P<value>[\w/-]+)",
        r"(?P<before>\bdiscord(?:app)?\.com/api/webhooks/\d+/)(?P<value>[\w-]+)",
        r"(?P<before>\bapi\.telegram\.org/bot)(?P<value>\d+:[\w-]+)",
        r"(?P<before>\bwebhook\.office\.com/\w+/)(?P<value>[\w@/.-]+)",
        r"(?P<before>\b)(?P<value>(?:gh[opsur]_|github_pat_|glpat-|xox[a-z]-|xapp-|[rs]k_live_|AKIA|ASIA)[\w-]{10,})",
    )
)
"""Secrets that are known by their shape, without a name: addresses of hooks, and tokens of well-known services."""
_LOGIN_NAMES = frozenset(["login", "auth", "userpass", "basic"])
"""Options whose value may be `USER:PASSWORD`."""
_LOGIN = re.compile(r"(?P<before>[^:\s/]+:)(?P<value>[^\s/][^\s]*)")
_ENGLISH = re.compile(r"[A-Za-z]?[a-z-]*\.?|[A-Z]+")
"""A word behind `Basic` or `Bearer` that is no token: `Basic authentication`, `Bearer TOKEN`."""
_PAIR = re.compile(r"(?<![\w.-])(?P<name>[\w.-]++)(?P<is>\s*:\s*)(?!\$\{|\{\{|//)(?P<value>[^,;\s'\"][^,;'\"]*)")
"""A pair `name:value` in the value of an option: a property of a client, or a header."""
_WORD = re.compile(rf"(?:[^\s'\"]|{_INNER_QUOTE})+")
"""Text around an address."""
_ORACLE = re.compile(r"(?i)\boracle:\w+:[^/@:]*/")
_SLASHES = re.compile(r"\\?/\\?/")
_BARE_USER = re.compile(r"(?:^|[=,(\['\"])(?!(?:mailto|\d+):)[\w.+%-]+:/?(?:[\w.+%-]+:)?(?!\Z)")
"""A user before the password of an address whose `//` is missing."""
_BARE_HOST = re.compile(r"[\w.-]+(?:[:/?,;)\]]|\Z)")
_USER = re.compile(r"(?P<scheme>[\w+.-]*:|)//(?P<user>[^/?#@:]+)@")
_TOKEN_USER = re.compile(r"(?P<scheme>(?:nats|tls):)//(?P<user>[^@:]+)@")


def mask_passwords(text: str) -> str:
    """`text` with the passwords in it replaced by as many stars: in options (`password='...'`), addresses, headers,
    documents. A reference (`password='${sec:NAME}'`) is none.

    A password may have `@`, `:` and `/` in it, so a word up to its last `@` is treated as one.
    """
    for pattern in (_MEMBER, _NUMBER, _TUPLE, _LINE, _ELEMENT):
        text = pattern.sub(_hide_named, text)
    text = _PRIVATE_KEY.sub(_hide, text)
    text = _SECOND_PART.sub(_hide, _QUOTED_OPTION.sub(_hide_value, text))
    text = _COMMENTED.sub(_hide_unquoted, _WITHOUT_SIGN.sub(_hide_unsigned, text))
    text = _hide_behind(text, _PARAMETER_NAME, _PARAMETER, _is_secret_parameter)
    text = _hide_behind(text, _PROPERTY_NAME, _PROPERTY, is_secret_name)
    text = _PLAIN_SECRET.sub(_hide, text)
    text = _hide_behind(text, _HEADER_NAME, _COOKIES, lambda name: name.lower().endswith("cookie"))
    text = _hide_behind(text, _HEADER_NAME, _HEADER, _is_secret_header)
    text = _SCHEME_TOKEN.sub(lambda m: m[0] if _ENGLISH.fullmatch(m["value"]) else _hide(m), text)
    for shape in _TOKEN_SHAPES:
        text = shape.sub(_hide, text)
    return mask_addresses(text)


def mask_addresses(text: str) -> str:
    """`text` with the passwords of addresses alone (`http://user:...@host`) replaced by as many stars."""
    return _WORD.sub(lambda m: _without_password(m[0]), text) if "@" in text else text


def _hide(match: re.Match[str]) -> str:
    """A match with its value in stars."""
    return match["before"] + _stars(match["value"])


def _stars(value: str) -> str:
    """A star for each character of `value`; references and placeholders stay as they are."""
    if re.fullmatch(_REFERENCE, value) or value.removeprefix("Bearer ") in ("TOKEN", "NAME", "VALUE"):
        return value
    return "\n".join("*" * len(line) for line in value.split("\n"))


def _hide_named(match: re.Match[str]) -> str:
    return _hide(match) if is_secret_name(match["name"]) else match[0]


def _hide_unquoted(match: re.Match[str]) -> str:
    """A match with its value in stars, if the name is a secret's and the value no English word."""
    return match[0] if _ENGLISH.fullmatch(match["value"]) else _hide_named(match)


def _hide_unsigned(match: re.Match[str]) -> str:
    if not match["quote"]:
        return _hide_unquoted(match)
    if not is_secret_name(match["name"]):
        return match[0]
    return f"{match['before']}{match['quote']}{_stars(match['quoted'])}"


def _hide_behind(text: str, name: re.Pattern[str], value: re.Pattern[str], is_secret: Callable[[str], bool]) -> str:
    """`text` with the values of secret names in stars: `name` is the beginning, `value` what follows it."""
    out, copied_until, at = [], 0, 0
    while (name_match := name.search(text, at)) is not None:
        at = name_match.end()
        if is_secret(name_match["name"]) and (value_match := value.match(text, at)) is not None:
            out += [text[copied_until:at], _stars(value_match[0])]
            copied_until = at = value_match.end()
    return "".join([*out, text[copied_until:]])


def _hide_value(option: re.Match[str]) -> str:
    """An option, its value in stars if a secret is meant."""
    group = "lines" if option["long"] else "value"
    value = option[group]
    if is_secret_name(option["name"]):
        masked_value = _stars(value)
    elif option["name"].lower() in _LOGIN_NAMES and _LOGIN.fullmatch(value):
        masked_value = _LOGIN.sub(_hide, value)
    else:
        masked_value = _mask_pairs(value)
    first, end = (i - option.start() for i in option.span(group))
    return option[0][:first] + masked_value + option[0][end:]


def _mask_pairs(value: str) -> str:
    """The value of an option, which may be a list of options itself: `sasl.jaas.config:x password="..."`."""
    value = _QUOTED_OPTION.sub(_hide_value, value)
    return _PAIR.sub(_hide_paired, value)


def _hide_paired(pair: re.Match[str]) -> str:
    return f"{pair['name']}{pair['is']}{'*' * len(pair['value'])}" if is_secret_name(pair["name"]) else pair[0]


@lru_cache(maxsize=1000)
def is_secret_name(name: str) -> bool:
    """True if a secret's option has this name, or is meant by it: `pasword` is misspelt."""
    if _SECRET_NAME.search(name):
        return True
    for word in re.split(r"[._-]", name.lower()):
        if word in _SHORT_SECRETS:
            return True
        for secret in () if word in _OTHER_WORDS else _SECRET_WORDS:
            limit = 2 if len(secret) > 7 else 1
            if edit_distance(word, secret, limit) is not None:
                return True
    return False


def _is_secret_parameter(name: str) -> bool:
    name = unquote(name)
    return name.lower() in _SECRET_PARAMETERS or is_secret_name(name)


def _is_secret_header(name: str) -> bool:
    name = name.lower()
    return edit_distance(name.removeprefix("proxy-"), "authorization", 2) is not None or (
        name.startswith("x-") and (is_secret_name(name) or "auth" in name.split("-"))
    )


def _without_password(word: str) -> str:
    """`word` with stars in the place of secrets before the `@` of its addresses: all between the `:` behind its first
    `//` and its last `@`, a token without a user, the password of `oracle:thin:USER/PASSWORD@HOST`.
    """
    address, at, rest = word.rpartition("@")
    if not at:
        return word
    oracle = _ORACLE.search(address)
    if oracle is not None:
        return f"{address[: oracle.end()]}{'*' * (len(address) - oracle.end())}{at}{rest}"
    word = _USER.sub(_hide_user, _TOKEN_USER.sub(_hide_user, word))
    address = word[: len(address)]
    slashes = _SLASHES.search(address)
    if slashes is not None:
        start = address.find(":", slashes.end()) + 1
    else:
        bare_user = _BARE_USER.search(address) if _BARE_HOST.match(rest) else None
        start = 0 if bare_user is None else bare_user.end()
    return f"{address[:start]}{'*' * (len(address) - start)}{at}{rest}" if start else word


def mask_server(text: str) -> str:
    """A text in the place of a server's address, with stars for all before its last `@` but the scheme."""
    text = mask_passwords(text)
    first = text.find("//") + 2 if "//" in text else 0
    at = text.rfind("@")
    return text if at < first else f"{text[:first]}{'*' * (at - first)}{text[at:]}"


def _hide_user(user: re.Match[str]) -> str:
    scheme = user["scheme"].rstrip(":").rpartition("+")[0] or user["scheme"].rstrip(":")
    if not scheme or scheme.lower() in _NAMED_USERS:
        return user[0]
    return f"{user['scheme']}//{'*' * len(user['user'])}@"


def masked_option(name: str | None, value: str) -> str:
    """The value of an option for display: stars if the option is a secret."""
    if name is not None and is_secret_name(name) and not re.fullmatch(_REFERENCE, value):
        return "*" * len(value)
    return mask_passwords(_mask_pairs(value))
