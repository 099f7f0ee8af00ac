#!/usr/bin/env python3
"""A stand-in for the kebab binary (wire v1) that refuses whatever the wire does not know.

It searches a folder of Markdown notes with this project's own engine. Environment:

    KEBAB_STAND_IN_CORPUS   the folder; fixtures/corpus when unset
    KEBAB_STAND_IN_LOG      a file that each start is written to: process id and arguments
    KEBAB_STAND_IN_FAULT    misfortunes, by commas: ``crash:2`` is one after two answers of a batch

Misfortunes of a batch (never of a single query): ``crash``, ``half`` (half a line), ``fatal``
(error.v1), ``stall`` (hangs with a child that holds its pipes), ``skip``, ``noise``, ``backwards``,
``item-major``. Of every search: ``dies``, ``hang``, ``major``, ``truncated``, ``untraced``,
``code`` (exit code 3 after all), ``gossip`` (repeats the environment), ``plain`` (an error in
words). Of every start: ``slow``. Of ``schema``: ``not-indexed``, ``schema-major``,
``schema-noise``, ``schema-hang``. Of ``ask``: ``no-model``. Of ``inspect``: ``no-chunk``.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any, NoReturn

CORPUS = os.environ.get(
    "KEBAB_STAND_IN_CORPUS", str(Path(__file__).parents[2] / "fixtures" / "corpus")
)
FAULTS = dict(
    fault.partition(":")[::2] for fault in os.environ.get("KEBAB_STAND_IN_FAULT", "").split(",")
)
NUMBER, TEXT, MODES = int, str, ("lexical", "vector", "hybrid")
GLOBAL: dict[str, Any] = {"--json": True, "--config": TEXT}
SEARCH_FLAGS = {
    "--mode": MODES, "--k": NUMBER, "--trace": True, "--snippet-chars": NUMBER, "--lang": TEXT,
    "--doc-id": TEXT, "--path-glob": TEXT, "--cursor": TEXT, "--bulk": True,
}  # fmt: skip
ASK_FLAGS = {
    "--k": NUMBER, "--mode": MODES, "--temperature": float, "--seed": NUMBER, "--multi-hop": True,
}  # fmt: skip
# Each command: its flags, and how many words stand behind it.
COMMANDS: dict[tuple[str, ...], tuple[dict[str, Any], int]] = {
    ("search",): (SEARCH_FLAGS, 1),
    ("ask",): (ASK_FLAGS, 1),
    ("schema",): ({}, 0),
    ("list", "docs"): ({}, 0),
    ("fetch", "chunk"): ({}, 1),
    ("fetch", "doc"): ({}, 1),
    ("inspect", "chunk"): ({}, 1),
}
BULK_FIELDS: dict[str, Any] = {
    "query": str, "mode": str, "k": int, "trace": bool, "lang": str, "doc_id": str,
    "path_glob": str, "snippet_chars": int, "max_tokens": int, "cursor": str,
}  # fmt: skip
CHUNKER, INDEX, DATE = "md-heading-v1", "fts5-v9", "2026-11-30T00:00:00Z"


def error(code: str, message: str, hint: str | None = None) -> dict[str, Any]:
    return {
        "schema_version": "error.v1",
        "code": code,
        "message": message,
        "details": {},
        "hint": hint,
    }


def fatal(code: str, message: str, hint: str | None = None) -> NoReturn:
    """End as a fatal error does: one line on stderr, in words without ``--json``."""
    sys.stdout.flush()
    as_json = "--json" in sys.argv
    print(json.dumps(error(code, message, hint)) if as_json else message, file=sys.stderr)
    sys.exit(2)


def count(fault: str, usual: int = 1) -> int:
    return int(FAULTS[fault] or usual)


def parsed(arguments: list[str]) -> tuple[tuple[str, ...], list[str], dict[str, Any]]:
    """Return command, words and options, or end: no flag is known but those of the command."""
    options: dict[str, Any] = {}
    words: list[str] = []
    given: list[tuple[str, str | None]] = []
    left = list(arguments)
    every = {**GLOBAL, **SEARCH_FLAGS, **ASK_FLAGS}
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            words.append(word)
        elif word not in every:
            fatal("config_invalid", f"unexpected argument {word!r}")
        elif every[word] is True:
            given.append((word, None))
        elif not left or left[0].startswith("-"):
            fatal("config_invalid", f"{word} needs a value")
        else:
            given.append((word, left.pop(0)))
    command = next((name for name in COMMANDS if tuple(words[: len(name)]) == name), None)
    if command is None:
        fatal("config_invalid", f"no such command: {words[:2]}")
    flags, wanted = COMMANDS[command]
    words = words[len(command) :]
    for flag, value in given:
        kind = {**GLOBAL, **flags}.get(flag)
        if kind is None or flag in options:
            fatal("config_invalid", f"unexpected argument {flag!r}")
        try:
            options[flag] = (
                True if value is None else value if kind in (TEXT, MODES) else kind(value)
            )
        except ValueError:
            fatal("config_invalid", f"{flag}: {value!r}")
        if kind is MODES and value not in MODES:
            fatal("config_invalid", f"{flag}: {value!r}")
    if len(words) != (0 if "--bulk" in options else wanted):
        fatal("config_invalid", f"{' '.join(command)} takes {wanted} words, not {words}")
    if "--config" in options and not Path(options["--config"]).is_file():
        fatal("config_invalid", f"no config file {options['--config']}", "run kebab init")
    return command, words, options


class Index:
    """The engine, and what kebab calls things."""

    def __init__(self) -> None:
        from kebab_eval.engine.corpus import read_corpus
        from kebab_eval.engine.search import Engine, EngineConfig

        folder = Path(CORPUS)
        cache = folder.parent / ".kebab_eval_cache"
        cache_or_none = cache if cache.is_dir() else None
        self.engine = Engine(read_corpus(folder), EngineConfig(cache=cache_or_none))

    def response(self, item: dict[str, Any]) -> dict[str, Any]:
        mode, k = item.get("mode", "hybrid"), item.get("k", 10)
        if FAULTS.keys() & {"dies"}:
            os.abort()
        found = self.engine.search(item["query"], mode, k, 50)
        hits = [self.hit(hit, mode, item.get("snippet_chars", 60)) for hit in found.hits]
        answer: dict[str, Any] = {
            "schema_version": f"search_response.{'v2' if 'major' in FAULTS else 'v1'}",
            "hits": list(reversed(hits[:1] if "truncated" in FAULTS else hits)),  # order by rank
            "next_cursor": "more",
            "truncated": "truncated" in FAULTS,
            "a_field_of_tomorrow": [1],
        }
        if item.get("trace") and "untraced" not in FAULTS:
            answer["trace"] = {
                channel: [
                    {**self.names(chunk_id), "rank": rank, "score": score}
                    for rank, (chunk_id, score) in enumerate(found.channels.get(channel, ()), 1)
                ]
                for channel in ("lexical", "vector")
            }
            answer["trace"]["rrf_inputs"] = []
            answer["trace"]["timing"] = {
                "lexical_ms": 2, "vector_ms": 0, "fusion_ms": 1, "total_ms": 7,
            }  # fmt: skip
        return answer

    def names(self, chunk_id: str) -> dict[str, Any]:
        doc = self.engine.document_of(chunk_id)
        return {"chunk_id": chunk_id, "doc_id": doc_id(doc), "doc_path": doc}

    def hit(self, hit: Any, mode: str, snippet_chars: int) -> dict[str, Any]:
        citation = {
            "schema_version": "citation.v1", "kind": "line", "path": hit.doc_id,
            "uri": f"{hit.doc_id}#L1-L2", "start": 1, "end": 2,
        }  # fmt: skip
        kind = {} if hit.score_kind == "rrf" else {"score_kind": hit.score_kind}
        retrieval = {"method": mode, "fusion_score": hit.score, "vector_rank": None}
        return {
            "schema_version": "search_hit.v1",
            **self.names(hit.chunk_id),
            "rank": hit.rank,
            "score": hit.score,
            **kind,
            "heading_path": [],
            "snippet": f"{hit.snippet[:snippet_chars]}…",
            "citation": citation,
            "retrieval": {**retrieval, **hit.channels},
            "index_version": INDEX,
            "chunker_version": CHUNKER,
            "indexed_at": DATE,
            "stale": False,
            "a_field_of_tomorrow": {"x": 1},
        }


def doc_id(path: str) -> str:
    return hashlib.blake2s(unicodedata.normalize("NFC", path).encode(), digest_size=16).hexdigest()


def hang() -> NoReturn:
    """Hang as a program does that has started others: they hold its pipes."""
    sys.stdout.flush()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    time.sleep(60)
    sys.exit(3)


def bulk() -> None:
    lines = [line for line in sys.stdin.read().split("\n") if line.strip()]
    if len(lines) > 100:
        fatal("config_invalid", f"queries: max 100 items, got {len(lines)}")
    try:
        items = [json.loads(line) for line in lines]
    except ValueError as reason:
        fatal("config_invalid", f"stdin ndjson: {reason}")
    faults = FAULTS if len(lines) > 1 else {}
    index = Index()
    printed = [bulk_line(index, item, number) for number, item in enumerate(items)]
    if "backwards" in faults:
        printed.reverse()
    for number, line in enumerate(printed):
        if "crash" in faults and number == count("crash"):
            sys.stdout.flush()
            os.abort()
        if "half" in faults and number == count("half"):
            print(line[: len(line) // 2], end="", flush=True)
            sys.exit(3)
        if "fatal" in faults and number == count("fatal"):
            fatal("model_not_pulled", "the model went away", "pull it")
        if "stall" in faults and number == count("stall"):
            hang()
        if "skip" in faults and number == count("skip"):
            continue
        if "noise" in faults:
            print("WARN onnxruntime: no such provider\n\n[1, 2]", flush=True)
            print("half a thought", file=sys.stderr)
        print(line, flush=True)
    failed = sum('"response": null' in line for line in printed)
    print(
        f"bulk_summary: total={len(lines)} succeeded={len(lines) - failed} failed={failed}",
        file=sys.stderr,
    )


def bulk_line(index: Index, item: Any, number: int) -> str:
    major = "v2" if "item-major" in FAULTS and number == count("item-major") else "v1"
    result: dict[str, Any] = {
        "schema_version": f"bulk_search_item.{major}",
        "query": item,
        "response": None,
        "error": None,
    }
    wrong = "a line is an object" if not isinstance(item, dict) else wrong_item(item)
    if wrong:
        result["error"] = error("invalid_input", wrong)
    elif item["query"] == "refuse this":
        result["error"] = error("retrieval_error", "refused\x1b[31m\nfor good")
    else:
        result["response"] = index.response(item)
    return json.dumps(result, ensure_ascii=False)


def wrong_item(item: dict[str, Any]) -> str:
    for name, value in item.items():
        if name not in BULK_FIELDS or type(value) is not BULK_FIELDS[name]:
            return f"{name}: {value!r}"
    if not item.get("query", "").strip():
        return "query is empty"
    return "" if item.get("mode", "hybrid") in MODES else "mode"


def search(words: list[str], options: dict[str, Any]) -> None:
    if "hang" in FAULTS:
        hang()
    if "gossip" in FAULTS:
        fatal("generic", f"asked by {dict(os.environ)}")
    if "plain" in FAULTS:
        print("thread 'main' panicked\nat a loss", file=sys.stderr)
        sys.exit(101)
    if "--bulk" in options:
        bulk()
    else:
        item = {
            name.lstrip("-").replace("-", "_"): value
            for name, value in options.items()
            if name in SEARCH_FLAGS
        }
        item["query"] = words[0]
        if wrong := wrong_item(item):
            fatal("invalid_input", wrong)
        print(json.dumps(Index().response(item), ensure_ascii=False))
    if "code" in FAULTS:
        sys.exit(3)


def ask(query: str) -> None:
    if "no-model" in FAULTS:
        fatal("model_not_pulled", "gemma is missing", "ollama pull gemma")
    refused = "unknowable" in query
    citation = {"kind": "line", "path": "pumps.md", "uri": "pumps.md#L1", "start": 1, "end": 2}
    cited = {"marker": "[1]", "citation": citation, "indexed_at": DATE, "stale": False}
    print(json.dumps({
        "schema_version": "answer.v1",
        "answer": "Nothing is known of it." if refused else "Sixty bar [1].",
        "citations": [] if refused else [cited],
        "grounded": not refused,
        "refusal_reason": "score_gate" if refused else None,
        "model": {"id": "gemma", "provider": "ollama"}, "prompt_template_version": "rag-v4",
        "retrieval": {"asked": query},
        "usage": {"prompt_tokens": 11, "completion_tokens": 4, "latency_ms": 5}, "created_at": DATE,
    }))  # fmt: skip
    sys.exit(1 if refused else 0)  # a refusal is no error, and no success


def schema() -> None:
    if "schema-hang" in FAULTS:
        hang()
    if "not-indexed" in FAULTS:
        fatal("not_indexed", "nothing is indexed", "run kebab ingest")
    if "schema-noise" in FAULTS:
        print("<html>it works</html>")
        return
    models = {
        "parser_version": "p1", "chunker_version": CHUNKER,
        "active_chunkers": ["pdf-page-v1", CHUNKER], "embedding_version": "multilingual-e5-large",
        "prompt_template_version": "rag-v4", "index_version": "v1", "corpus_revision": 7,
    }  # fmt: skip
    print(json.dumps({
        "schema_version": "schema.v3" if "schema-major" in FAULTS else "schema.v1",
        "kebab_version": "0.32.0", "models": models,
        "stats": {"doc_count": 3, "chunk_count": 5, "asset_count": 3}, "wire": {},
    }))  # fmt: skip


def documents() -> None:
    paths = [path.relative_to(CORPUS).as_posix() for path in sorted(Path(CORPUS).rglob("*.md"))]
    print(json.dumps(
        [{"schema_version": "doc_summary.v1", "doc_id": doc_id(p), "doc_path": p} for p in paths]
    ))  # fmt: skip


def chunk(what: str, chunk_id: str) -> None:
    index = Index()
    found = next((one for one in index.engine.chunks if one.chunk_id == chunk_id), None)
    if found is None or "no-chunk" in FAULTS:
        fatal("not_indexed", f"no chunk {chunk_id}")
    print(json.dumps({
        "schema_version": what, **index.names(chunk_id), "heading_path": [], "text": found.text,
        "source_spans": [], "chunker_version": CHUNKER,
    }))  # fmt: skip


def main() -> None:
    if "KEBAB_STAND_IN_LOG" in os.environ:
        with Path(os.environ["KEBAB_STAND_IN_LOG"]).open("a", encoding="utf-8") as log:
            log.write(json.dumps([os.getpid(), *sys.argv[1:]]) + "\n")
    command, words, options = parsed(sys.argv[1:])
    if "slow" in FAULTS:
        time.sleep(float(FAULTS["slow"] or 1))
    if "--json" not in options:
        print("words for people, which nobody parses")
    elif command == ("search",):
        search(words, options)
    elif command == ("ask",):
        ask(words[0])
    elif command == ("schema",):
        schema()
    elif command == ("list", "docs"):
        documents()
    elif command == ("fetch", "doc"):
        fatal("generic", "no test needs it")
    else:
        kind = "fetch_result.v1" if command[0] == "fetch" else "chunk_inspection.v1"
        chunk(kind, words[0])


if __name__ == "__main__":
    main()
