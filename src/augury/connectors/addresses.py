"""Addresses of sources and sinks, and the table that says which module speaks which scheme.

    [type=]scheme://[user[:password]@]host[:port]/path[?option=value&…]

A path without a scheme is a file or a folder, `-` is standard input or output. `${NAME}` is a variable of the environment,
`${file:PATH}` the content of a file: a secret that is given so, or as a password, is never shown.
"""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from augury.core.clock import read_duration
from augury.core.errors import RunError, nearest

GROUP = "augury.connectors"
_TYPED = re.compile(r"([A-Za-z_]\w*)=(.+)", re.DOTALL)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_REFERENCE = re.compile(r"\$\{(file:)?([^}]+)\}")
_SECRET_OPTIONS = ("password", "secret", "token", "key_password")
_HIDDEN = "***"
_SECRETS: set[str] = set()
Options = TypeVar("Options")


@dataclass(frozen=True)
class Connector:
    """A row of the table: the module of a scheme, and the extra that installs what it needs."""

    module: str
    extra: str = ""
    reads: bool = True
    writes: bool = True


_HERE = "augury.connectors"
CONNECTORS: dict[str, Connector] = {
    "file": Connector(f"{_HERE}.growing_files"),
    **dict.fromkeys(("s3", "gs", "abfs", "memory"), Connector(f"{_HERE}.growing_files", "files")),
    "-": Connector(f"{_HERE}.standard_streams"),
    "kafka": Connector(f"{_HERE}.kafka", "kafka"),
    **dict.fromkeys(("http", "https"), Connector(f"{_HERE}.webhooks", "http")),
    "listen": Connector(f"{_HERE}.webhooks", writes=False),
    **dict.fromkeys(("redis", "rediss"), Connector(f"{_HERE}.redis_streams", "redis")),
    "nats": Connector(f"{_HERE}.nats_streams", "nats"),
    **dict.fromkeys(("delta", "delta+s3", "delta+gs", "delta+abfs"), Connector(f"{_HERE}.delta_tables", "delta")),
    "notify": Connector(f"{_HERE}.notifications", "notify", reads=False),
    **dict.fromkeys(("mqtt", "mqtts"), Connector(f"{_HERE}.mqtt", "mqtt")),
    **dict.fromkeys(("postgres", "postgresql"), Connector(f"{_HERE}.postgres", "postgres")),
}


@cache
def connectors() -> Mapping[str, Connector]:
    """All schemes, those of third parties included."""
    others = {entry.name: Connector(entry.value) for entry in entry_points(group=GROUP)}
    return {**others, **CONNECTORS}


@dataclass(frozen=True)
class Address:
    """Where events come from or answers go to. `type` is that of events that name none; `rest` is host and path."""

    text: str = field(repr=False)
    scheme: str
    rest: str
    type: str | None = None
    host: str = ""
    path: str = ""
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def parse(text: str) -> Address:
        typed = _TYPED.fullmatch(text)
        type, plain = (typed[1], typed[2]) if typed and not Path(text).exists() else (None, text)
        match = _SCHEME.fullmatch(plain)
        if match is None:
            scheme = "-" if plain == "-" else "file"
            path, _, query = plain.partition("?") if not Path(plain).exists() else (plain, "", "")
            return Address(text, scheme, path, type, path=path, options=_options(query))
        scheme = match[1].lower()
        if scheme not in connectors():
            close = nearest(scheme, [name for name in connectors() if name != "-"])
            known_schemes = ", ".join(sorted(name for name in connectors() if name != "-"))
            hint = f"did you mean `{close}://`?" if close else f"the schemes are {known_schemes}"
            raise RunError(f"unknown scheme `{scheme}://`", hint=hint)
        rest, _, query = match[2].partition("?")
        authority, slash, path = rest.partition("/")
        login, _, host = authority.rpartition("@")
        user, _, password = login.partition(":")
        if password and not _REFERENCE.fullmatch(password):
            _SECRETS.add(password)
            _SECRETS.add(unquote(password))
        return Address(
            text, scheme, _expanded(host + slash + path), type, _expanded(host), _expanded(slash + path),
            unquote(_expanded(user)), unquote(_expanded(password)), _options(query),
        )  # fmt: skip

    def __str__(self) -> str:
        """The address as it may be shown: without what is secret."""
        return redacted(self.text)

    @property
    def name(self) -> str:
        """The address without its options and without what is secret: what names a source or a sink on disk."""
        plain = self.rest if self.scheme in ("file", "-") else f"{self.scheme}://{self.rest}"
        return redacted(f"{self.type}={plain}" if self.type else plain)

    def named(self, what: str, example: str) -> str:
        """The path, which names a topic or a stream on a host; an address without one or the other is refused."""
        path = self.path.strip("/")
        if not path or not self.host:
            raise RunError(f"{self} names no {what}", hint=f"write it as {example}")
        return path

    def read(self, kind: builtins.type[Options], others: bool = False) -> Options:
        """The options as a frozen dataclass, whose defaults say of what type each is; `others` are refused, or left alone."""
        defaults: dict[str, Any] = {f.name.replace("_", "-"): f.default for f in fields(kind)}  # type: ignore[arg-type]
        values: dict[str, object] = {}
        for name, text in self.options.items():
            if name not in defaults and others:
                continue
            if name not in defaults:
                close = nearest(name, defaults)
                hint = (
                    f"did you mean `{close}`?" if close else f"the options are {', '.join(sorted(defaults)) or 'none'}"
                )
                raise RunError(f"{self}: unknown option `{name}`", hint=hint)
            values[name.replace("-", "_")] = self._value(name, text, defaults[name])
        return kind(**values)

    def _value(self, name: str, text: str, default: object) -> object:
        try:
            match default:
                case bool():
                    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
                case int():
                    return int(text)
                case float():
                    return read_duration(text) / 1e6 if not text.replace(".", "").isdigit() else float(text)
            return text
        except (ValueError, KeyError):
            meant = {bool: "true or false", int: "a whole number", float: "a duration such as 10s"}[
                builtins.type(default)
            ]
            raise RunError(f"{self}: the option `{name}` is {meant}, not {text!r}") from None


def _options(query: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in query.split("&") if part)
    options = {name: unquote(_expanded(value)) for name, _, value in pairs}
    for name, value in options.items():
        if value and name.replace("-", "_").endswith(_SECRET_OPTIONS):
            _SECRETS.add(value)
    return options


def _expanded(text: str) -> str:
    """The text with the values of `${NAME}` and `${file:PATH}`, which are secrets from then on."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            try:
                secret = Path(match[2]).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise RunError(f"the secret {match[0]} cannot be read: {error.strerror}") from None
        elif (variable := os.environ.get(match[2])) is not None:
            secret = variable
        else:
            raise RunError(
                f"the environment has no variable `{match[2]}`", hint=f"export {match[2]}=… before the start"
            )
        if len(secret) > 2:
            _SECRETS.add(secret)
        return secret

    return _REFERENCE.sub(value, text)


def hide(secret: str) -> None:
    """A text that is never shown."""
    if len(secret) > 2:
        _SECRETS.add(secret)


def redacted(text: object) -> str:
    """A text without the secrets that addresses have named."""
    result = str(text)
    for secret in sorted(_SECRETS, key=len, reverse=True):
        result = result.replace(secret, _HIDDEN)
    return result
