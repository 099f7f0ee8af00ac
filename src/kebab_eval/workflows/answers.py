"""What a request and its config say of answers, settled before anything is asked or written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kebab_eval.config_file import LoadedConfig, load_config
from kebab_eval.errors import Fault, InputError, UsageError
from kebab_eval.metrics.answers import ANSWER_METRICS

_EXTRACTIVE = "answer.type=extractive"


def with_answers(config_path: Path, overrides: Sequence[str]) -> tuple[str, ...]:
    """Return the overrides that ``--with-rag`` makes of these: extractive where nothing answers.

    It stands before the others, so that they may turn its keys (``answer.sentences=1``).
    """
    keys = [override.partition("=")[0].strip() for override in overrides]
    pairs = list(zip(keys, overrides, strict=True))
    probe = [text for key, text in pairs if key == "answer.type" or not key.startswith("answer.")]
    try:
        named = load_config(config_path, probe).config.answer.type
    except InputError:
        return tuple(overrides)  # they are read again, and every fault of them is told
    if named != "none":
        return tuple(overrides)
    return (_EXTRACTIVE, *(text for key, text in pairs if key != "answer.type"))


def check_answers(loaded: LoadedConfig) -> None:
    """Hold that the key of a model is a reference, and that what is judged by answers has some.

    Raises:
        UsageError: it is not, or there are none.
    """
    faults = []
    recorded = loaded.snapshot["answer"]
    key = recorded.get("api_key")
    if key is not None and "${env:" not in key:
        faults.append(
            Fault(
                str(loaded.path),
                "answer.api_key: a key that stands in a config stands in every record; write "
                "${env:NAME}, or leave it out where the server wants none",
            )
        )
    primary = loaded.config.metrics.primary
    if primary in ANSWER_METRICS and recorded["type"] == "none":
        faults.append(
            Fault(
                str(loaded.path),
                f"metrics.primary: {primary} needs answers, and answer.type is none; set it, or "
                "ask with --with-rag",
            )
        )
    if faults:
        raise UsageError(faults)
