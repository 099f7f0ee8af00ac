"""What a system says of itself when it is opened: its version, how much it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kebab_eval.backends.base import Param
from kebab_eval.backends.http_responses import shown_address
from kebab_eval.backends.json_paths import find_one
from kebab_eval.errors import BackendError
from kebab_eval.redaction import redact

_MAX_BYTES = 1_000_000
_MAX_TIMEOUT_S = 10.0


def learn(
    asked: Mapping[str, Mapping[str, str]],
    headers: Mapping[str, str],
    auth: tuple[str, str] | None,
    verify_tls: bool,
    timeout_s: float,
) -> dict[str, Param]:
    """Ask a system for its versions; what it refuses to say is left out.

    Args:
        asked: an address -> a name of the snapshot -> the path to its value in the answer.

    Raises:
        BackendError: the system cannot be reached.
    """
    import httpx

    found: dict[str, Param] = {}
    try:
        with httpx.Client(
            verify=verify_tls,
            trust_env=False,
            timeout=min(timeout_s, _MAX_TIMEOUT_S),
            headers={"User-Agent": "kebab-eval", "Accept": "application/json", **headers},
            auth=auth,
        ) as client:
            for address, names in asked.items():
                data = _asked(client, address)
                for name, path in names.items():
                    value = _param(find_one(data, path))
                    if value is not None:
                        found[name] = value
    except (httpx.ConnectError, httpx.TimeoutException) as reason:
        said = " ".join(redact(str(reason)).split()) or type(reason).__name__
        where = shown_address(next(iter(asked)))
        raise BackendError(f"the system cannot be reached at {where} ({said[:200]})") from reason
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError):
        return found  # it is there; what it is will show when it is searched
    return found


def _asked(client: Any, address: str) -> Any:
    """Return the JSON of an answer, None where there is none."""
    with client.stream("GET", address) as response:
        if response.status_code != 200:
            return None
        body = b""
        for part in response.iter_bytes():
            body += part
            if len(body) > _MAX_BYTES:
                return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _param(value: Any) -> Param:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if abs(value) < 1e15 else None
    if not isinstance(value, str):
        return None
    text = " ".join(redact(value).split())[:100]
    return "".join(c for c in text if c.isprintable()) or None
