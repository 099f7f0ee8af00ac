"""The ids that a system of one's own gives to the notes: a YAML mapping from path to id."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from pathlib import Path

from kebab_eval.errors import CorpusError, Fault, nearest
from kebab_eval.yaml_source import parse_yaml, read_text


def read_document_ids(path: Path, documents: Collection[str]) -> Mapping[str, str]:
    """Return path -> id for each document; one that the file does not name keeps its path.

    Args:
        documents: the paths of the corpus, NFC.

    Raises:
        CorpusError: with every entry that names no document, or an id that another one has.
    """
    source = str(path)
    root = parse_yaml(read_text(path, CorpusError, "document ids"), source, CorpusError)
    if root is None or root.kind != "mapping":
        raise CorpusError(Fault(source, "document ids are a mapping of path: id"))
    ids = {document: document for document in documents}
    owners: dict[str, str] = {}
    faults = []
    for key, value in root.value:
        document = unicodedata.normalize("NFC", key.value)
        if document not in ids:
            message = f"document {document!r} is not in the corpus{nearest(document, documents)}"
            faults.append(Fault(key.place, message))
            continue
        if value.kind != "scalar" or not value.value.strip():
            message = f"an id is a number or a text, found {value.describe()}"
            faults.append(Fault(value.place, message))
            continue
        name = unicodedata.normalize("NFC", value.value)
        if name in owners:
            message = f"id {name!r} is that of {owners[name]!r} already; ids are unique"
            faults.append(Fault(value.place, message))
        owners.setdefault(name, document)
        ids[document] = name
    unnamed = (document for document in documents if ids[document] == document)
    taken = sorted(document for document in unnamed if document in owners)
    faults += [
        Fault(source, f"id {document!r} is the path of a document that has no id here")
        for document in taken
        if owners[document] != document
    ]
    if faults:
        raise CorpusError(faults)
    return ids
