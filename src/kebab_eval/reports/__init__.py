"""Pure renderers: a run goes in, a text comes out. No file is read or written here."""

from kebab_eval.reports.files import FORMATS, render, run_files

__all__ = ["FORMATS", "render", "run_files"]
