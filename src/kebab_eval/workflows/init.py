"""Writing the starting project: copied from the package, never over anything."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from kebab_eval.errors import Fault, RecordError, UsageError


def write_starter(folder: Path) -> list[Path]:
    """Write the starting project into a folder, which is made when absent.

    Returns:
        The files written, sorted.

    Raises:
        UsageError: files of these names are there already; all are listed and nothing is written.
        RecordError: the disk refused; what had been written is taken away again.
    """
    written: list[Path] = []
    with as_file(files("kebab_eval") / "starter") as starter:
        sources = sorted(path for path in starter.rglob("*") if path.is_file())
        targets = [folder / source.relative_to(starter) for source in sources]
        present = [target for target in targets if target.exists()]
        if present:
            raise UsageError(
                [Fault(str(path), "exists already; init overwrites nothing") for path in present]
            )
        try:
            for source, target in zip(sources, targets, strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                written.append(target)
                shutil.copyfile(source, target)
        except OSError as reason:
            for path in written:
                path.unlink(missing_ok=True)
            where = reason.filename or folder
            raise RecordError(f"{where}: cannot be written: {reason.strerror}") from reason
    return written
