"""Converting a golden set: read in one format, written in another, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kebab_eval.errors import Fault, GoldenError, RecordError, UsageError
from kebab_eval.golden import LoadedGolden, load_golden
from kebab_eval.golden.losses import Losses
from kebab_eval.golden.references import resolve_documents
from kebab_eval.golden.write import WRITERS, write_golden
from kebab_eval.records import LEVELS, GoldenSet
from kebab_eval.workflows.golden_source import open_source


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was converted, where it went, and what was lost on the way."""

    golden: GoldenSet
    to: str
    paths: tuple[Path, ...]
    total_queries: int
    losses: Losses

    def to_json(self) -> dict[str, Any]:
        return {
            "input": self.golden.path,
            "from": self.golden.format,
            "to": self.to,
            "files": [str(path) for path in self.paths],
            "total_queries": self.total_queries,
            "losses": [loss.to_json() for loss in self.losses.kinds],
        }


def convert_golden(
    path: Path | None,
    to: str,
    output: Path,
    *,
    config_path: Path | None = None,
    given: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Conversion:
    """Convert a golden set, every level of it, and write it.

    Args:
        path: the golden set; None takes the config's.
        to: a key of :data:`kebab_eval.golden.write.WRITERS`.
        output: a file, or a folder for the formats of several files.
        config_path: its system's documents say what the references of a mapped set mean.
        given: fields of :class:`~kebab_eval.golden.ReadOptions` that the command line names; they
            win over the config.
        force: overwrite what is there.

    Raises:
        InputError: what is read is wrong, the format has no place for its ids, or the output is
            there already.
        RecordError: it could not be written; nothing is changed then.
    """
    _check_output(output, to)
    read = _read(path, config_path, given or {})
    written = write_golden(read.golden, to)
    targets = {name: output / name if name else output for name in written.files}
    if not force:
        faults = [
            Fault(str(target), "is there already; add --force to overwrite it")
            for target in targets.values()
            if target.exists()
        ]
        if faults:
            raise UsageError(faults)
    _write_all({targets[name]: text for name, text in written.files.items()})
    total = len(read.golden.queries) - written.left_out
    return Conversion(read.golden, to, tuple(targets.values()), total, written.losses)


def _read(path: Path | None, config_path: Path | None, given: Mapping[str, Any]) -> LoadedGolden:
    source = open_source(path, config_path)
    options = replace(source.options, **given) if given else source.options
    if given.get("format") is None and given.get("map") and options.format == "auto":
        options = replace(options, format="mapped")
    read = load_golden(source.path, source.min_relevance, LEVELS, options)
    if source.ids is not None:
        read, faults = resolve_documents(read, source.ids.docs)
        if faults:
            raise GoldenError(faults)
    return read


def _check_output(output: Path, to: str) -> None:
    endings = WRITERS[to].endings
    place = f"--output {output}"
    if endings and output.is_dir():
        raise UsageError(Fault(place, "is a folder; name a file"))
    if endings and output.suffix.lower() not in endings:
        said = ", ".join(endings)
        raise UsageError(Fault(place, f"{to} is written to a file that ends in {said}"))
    if not endings and output.exists() and not output.is_dir():
        raise UsageError(Fault(place, f"is a file; {to} is written to a folder"))
    if not output.parent.is_dir():
        raise UsageError(Fault(place, f"the folder {output.parent} does not exist"))


def _write_all(files: Mapping[Path, str]) -> None:
    """Write every file beside its place first, and move them there when all are whole."""
    made: list[Path] = []
    temporary = {path: path.with_name(f".{path.name}.tmp") for path in files}
    current = Path()
    try:
        for current, text in files.items():
            for folder in reversed([p for p in current.parents if not p.exists()]):
                folder.mkdir()
                made.append(folder)
            temporary[current].write_text(text, encoding="utf-8", newline="")
        for current, written in temporary.items():
            written.replace(current)
    except OSError as reason:
        for written in temporary.values():
            with suppress(OSError):
                written.unlink()
        for folder in reversed(made):
            if not any(folder.iterdir()):
                folder.rmdir()
        raise RecordError(f"{current}: cannot be written: {reason.strerror}") from reason
