"""Opening a golden set as a config or a command names it, with what its system holds."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend, ItemIds
from kebab_eval.config import GoldenSource
from kebab_eval.config_file import LoadedConfig, load_config
from kebab_eval.errors import Fault, GoldenError, UsageError
from kebab_eval.golden import LoadedGolden, ReadOptions, check_ids, load_golden
from kebab_eval.golden.anchors import resolve_spans
from kebab_eval.golden.load import in_file_order
from kebab_eval.golden.references import resolve_documents
from kebab_eval.records import LEVELS, Level, Listing


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """Where a golden set is, how it is to be read, and what the system of its config holds.

    Without a config there is no system: ``listing``, ``ids`` and ``loaded`` are None.
    """

    path: Path
    options: ReadOptions
    min_relevance: float | None = None
    levels: Collection[Level] = LEVELS
    loaded: LoadedConfig | None = None
    listing: Listing | None = None
    ids: ItemIds | None = None

    def read(self) -> LoadedGolden:
        """Return the checked set.

        Raises:
            GoldenError: with every fault of the file.
        """
        return load_golden(self.path, self.min_relevance, self.levels, self.options)


def open_source(
    path: Path | None,
    config_path: Path | None = None,
    overrides: Sequence[str] = (),
    format: str | None = None,  # noqa: A002  # the word of the command line
) -> OpenedSource:
    """Return where a golden set is; with a config, also what its system lists.

    Args:
        path: the golden file; None takes the config's.
        format: a golden format by name; None takes the config's, or finds out.

    Raises:
        InputError: neither is given, or the config or its corpus is wrong.
    """
    if config_path is None:
        if path is None:
            raise UsageError("name a golden set, or a config that names one with --config")
        return OpenedSource(path, ReadOptions(format=format or "auto"))
    loaded = load_config(config_path, overrides)
    source = loaded.config.golden
    options = read_options(source)
    if path is not None and path != source.path and source.format == "auto":
        options = ReadOptions()
    if format is not None:
        options = replace(options, format=format)
    backend = open_backend(loaded.config)
    try:
        return OpenedSource(
            path or source.path,
            options,
            source.min_relevance,
            source.levels,
            loaded,
            backend.list_chunks(),
            backend.item_ids(),
        )
    finally:
        asyncio.run(backend.close())


def held_against(read: LoadedGolden, backend: Backend) -> LoadedGolden:
    """Return a golden set with its spans resolved to the chunks of a system.

    Every id that it names is held against what the system has. Where the system lists no chunks,
    the spans stay unresolved until there are hits to find them in.

    Raises:
        GoldenError: with every id and every span that is not to be found.
    """
    known = backend.item_ids()
    faults: list[Fault] = []
    if known is not None:
        read, faults = resolve_documents(read, known.docs)
        try:
            if not faults:
                check_ids(read, known.chunks, known.docs)
        except GoldenError as unknown:
            faults += unknown.faults
    listing = backend.list_chunks() if any(q.spans for q in read.golden.queries) else None
    if listing is not None:
        golden, lost = resolve_spans(read.golden, listing)
        read = replace(read, golden=golden)
        told = {fault.place for fault in faults}  # a document that is not there has no quotes
        faults += [fault for fault in lost if fault.place not in told]
    if faults:
        raise GoldenError(in_file_order(faults))
    return read


def read_options(source: GoldenSource) -> ReadOptions:
    """Return how a config says that its golden set is to be read."""
    return ReadOptions(source.format, source.map, source.qrels, source.split)


def read_golden(source: GoldenSource) -> LoadedGolden:
    """Return the golden set of a config, checked.

    Raises:
        GoldenError: with every fault of the file.
    """
    read = load_golden(source.path, source.min_relevance, source.levels, read_options(source))
    if source.version is None:
        return read
    return replace(read, golden=replace(read.golden, version=source.version))
