#!/usr/bin/env python3
"""A stand-in for the kebab binary (wire v1) that refuses whatever the wire does not know.

It searches its corpus, a folder of Markdown notes named by KEBAB_STAND_IN_CORPUS, with this
project's own engine, by words alone. KEBAB_STAND_IN_FAULT names a misfortune.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FAULT = os.environ.get("KEBAB_STAND_IN_FAULT", "")
FLAGS: dict[str, set[str]] = {  # of each command: True flags and those with a value
    "search": {"--bulk", "--trace", "--json"},
    "ask": {"--json", "--multi-hop"},
    "schema": {"--json"},
    "list": {"--json"},
}
VALUES: dict[str, set[str]] = {
    "search": {"--mode", "--k", "--snippet-chars", "--lang", "--doc-id", "--path-glob", "--cursor"},
    "ask": {"--k", "--mode", "--temperature", "--seed"},
    "schema": set(),
    "list": set(),
}
BULK_FIELDS = {
    "query", "mode", "k", "trace", "lang", "doc_id", "path_glob", "snippet_chars", "max_tokens",
    "cursor",
}  # fmt: skip


def fatal(code: str, message: str, exit_code: int) -> None:
    error = {
        "schema_version": "error.v1",
        "code": code,
        "message": message,
        "details": None,
        "hint": "see the manual",
    }
    print(json.dumps(error), file=sys.stderr)
    sys.exit(exit_code)


def parsed(arguments: list[str]) -> tuple[str, list[str], dict[str, Any]]:
    options: dict[str, Any] = {}
    words: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word == "--config":
            options["config"] = left.pop(0)
        elif not words and not word.startswith("-"):
            words.append(word)
        elif words and word in FLAGS[words[0]]:
            options[word.lstrip("-")] = True
        elif words and word in VALUES[words[0]]:
            options[word.lstrip("-")] = left.pop(0)
        elif word.startswith("-"):
            fatal("config_invalid", f"unknown flag {word}", 2)
        else:
            words.append(word)
    if not words or words[0] not in FLAGS:
        fatal("config_invalid", "no such command", 2)
    return words[0], words[1:], options


def engine() -> Any:
    from kebab_eval.engine.corpus import read_corpus
    from kebab_eval.engine.search import Engine, EngineConfig

    return Engine(read_corpus(Path(os.environ["KEBAB_STAND_IN_CORPUS"])), EngineConfig())


def response(searcher: Any, item: dict[str, Any]) -> dict[str, Any]:
    k = int(item.get("k", 10))
    found = searcher.search(item["query"], "lexical", k, 50)
    hits = [
        {
            "rank": hit.rank,
            "score": hit.score,
            "score_kind": "bm25",
            "chunk_id": hit.chunk_id,
            "doc_id": f"id-of-{hit.doc_id}",
            "doc_path": hit.doc_id,
            "heading_path": [],
            "snippet": hit.snippet[: int(item.get("snippet_chars", 200))],
            "citation": {"kind": "line", "path": hit.doc_id, "uri": "", "start": 1, "end": 2},
            "retrieval": {
                "method": "lexical",
                "fusion_score": hit.score,
                "lexical_rank": hit.rank,
                "lexical_score": hit.score,
                "vector_rank": None,
            },
            "index_version": "i1",
            "chunker_version": "md-heading-v1",
            "indexed_at": "2026-11-30T00:00:00Z",
            "stale": False,
            "a_field_of_tomorrow": {"x": 1},
        }
        for hit in found.hits
    ]
    major = "v2" if FAULT == "major" else "v1"
    answer: dict[str, Any] = {
        "schema_version": f"search_response.{major}",
        "hits": list(reversed(hits)),  # the order is by rank, not by place
        "next_cursor": None,
        "truncated": False,
    }
    if item.get("trace"):
        lexical = [
            {
                "chunk_id": chunk,
                "doc_id": f"id-of-{searcher.document_of(chunk)}",
                "doc_path": searcher.document_of(chunk),
                "rank": rank,
                "score": score,
            }
            for rank, (chunk, score) in enumerate(found.channels["lexical"], 1)
        ]
        answer["trace"] = {
            "lexical": lexical,
            "vector": [],
            "rrf_inputs": [],
            "timing": {"lexical_ms": 2.0, "vector_ms": 0.0, "fusion_ms": 0.5, "total_ms": 7.5},
        }
    return answer


def bulk() -> None:
    lines = [line for line in sys.stdin.read().splitlines() if line.strip()]
    if len(lines) > 100:
        fatal("config_invalid", "at most 100 lines a call", 2)
    searcher = engine()
    for number, line in enumerate(lines):
        item = json.loads(line)
        unknown = sorted(set(item) - BULK_FIELDS)
        result: dict[str, Any] = {"schema_version": "bulk_search_item.v1", "query": item}
        if FAULT == "crash" and number == 2 and len(lines) > 1:
            sys.stdout.flush()
            os.abort()
        if FAULT == "half" and number == 2 and len(lines) > 1:
            print('{"schema_version": "bulk_sea', end="", flush=True)
            sys.exit(3)
        if FAULT == "fatal" and number == 2 and len(lines) > 1:
            sys.stdout.flush()
            fatal("model_unreachable", "the model went away", 3)
        if FAULT == "noise" and number == 1:
            print("WARN not json", flush=True)
            continue
        if unknown:
            error = {"code": "config_invalid", "message": f"unknown field {unknown[0]}"}
            result |= {"response": None, "error": {"schema_version": "error.v1", **error}}
        elif item["query"] == "refuse this":
            error = {"code": "generic", "message": "refused", "details": None, "hint": None}
            result |= {"response": None, "error": {"schema_version": "error.v1", **error}}
        else:
            result |= {"response": response(searcher, item), "error": None}
        print(json.dumps(result, ensure_ascii=False), flush=True)
    print(f"{len(lines)} queries", file=sys.stderr)


def main() -> None:
    command, words, options = parsed(sys.argv[1:])
    if FAULT == "hang" and command == "search":
        time.sleep(60)
    if command == "schema":
        if FAULT == "not_indexed":
            fatal("not_indexed", "nothing is indexed", 1)
        models = {
            "parser_version": "p1", "chunker_version": "md-heading-v1",
            "active_chunkers": ["md-heading-v1"], "embedding_version": "multilingual-e5-large",
            "prompt_template_version": "t3", "index_version": "i1", "corpus_revision": "c9",
        }  # fmt: skip
        print(json.dumps({
            "schema_version": "schema.v3" if FAULT == "schema" else "schema.v1",
            "kebab_version": "0.32.0", "models": models,
            "stats": {"doc_count": 3, "chunk_count": 5}, "more": [],
        }))  # fmt: skip
    elif command == "list":
        docs = [
            {"schema_version": "doc_summary.v1", "doc_id": f"id-of-{doc.doc_id}",
             "doc_path": doc.doc_id}
            for doc in engine().corpus.documents
        ]  # fmt: skip
        print(json.dumps(docs, ensure_ascii=False))
    elif command == "search" and options.get("bulk"):
        bulk()
    elif command == "search":
        item = {"query": words[0], "trace": options.get("trace"), "k": options.get("k", 10)}
        print(json.dumps(response(engine(), item), ensure_ascii=False))
    elif command == "ask":
        refused = "unknowable" in words[0]
        citation = {"kind": "line", "path": "pumps.md", "uri": "", "start": 1, "end": 2}
        print(json.dumps({
            "schema_version": "answer.v1",
            "answer": "" if refused else "Sixty bar [1].",
            "citations": [] if refused else [
                {"marker": "[1]", "citation": citation, "indexed_at": "", "stale": False}
            ],
            "grounded": not refused,
            "refusal_reason": "score_gate" if refused else None,
            "model": "m", "prompt_template_version": "t3", "retrieval": {},
            "usage": {"prompt_tokens": 11, "completion_tokens": 4}, "created_at": "",
        }))  # fmt: skip


if __name__ == "__main__":
    main()
