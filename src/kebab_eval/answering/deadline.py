"""How long an answer may take, with its whole body: a server that drips would never end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from kebab_eval.errors import BackendError

Result = TypeVar("Result")


async def within(timeout_s: float, work: Awaitable[Result]) -> Result:
    """Return what work gives.

    Raises:
        BackendError: it was not done in time; asking again may help.
    """
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            return await work
    except TimeoutError:
        if not deadline.expired():
            raise
        message = f"timeout: no answer within {timeout_s:g} s"
        raise BackendError(message, retry=True) from None
