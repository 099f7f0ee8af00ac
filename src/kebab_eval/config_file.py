"""From config files, ``extends``, overrides and the environment to one :class:`Config`.

Every value remembers where it came from, so that each fault is told as ``file:line:column``, all of
them at once. Secrets (``${env:NAME}``) are resolved in memory only: the snapshot that is recorded
keeps the reference, and no message ever shows a resolved value.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kebab_eval.config import Config
from kebab_eval.config_tree import TYPED, Item, Tree, branch, merged_tree, not_unicode, where
from kebab_eval.errors import ConfigError, Fault, MetricError, nearest
from kebab_eval.metrics import default_registry
from kebab_eval.redaction import register
from kebab_eval.yaml_source import Node, parse_yaml, read_text

_ENV = re.compile(r"\$\{env:([^}]*)(\}?)")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# User and password of an address, unless they are a reference.
USER_INFO = re.compile(r"(?<=://)(?![^/?#\s]*\$\{env:)[^/?#\s]*@")
_PATH_KEYS = frozenset(
    {
        ("golden", "path"),
        ("golden", "qrels"),
        ("backend", "corpus"),
        ("backend", "cache"),
        ("backend", "document_ids"),
        ("backend", "config"),
        ("backend", "path"),
        ("backend", "source"),
        ("execution", "cache"),
    }
)
# Every record, link and report carries these, so that no secret can stand there.
_RECORDED = frozenset({("name",), ("experiment",), ("lever",), ("metrics", "primary")})

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A config ready to run.

    Attributes:
        config: the validated config, secrets resolved; never write it anywhere.
        snapshot: the same as plain data, secrets as ``${env:NAME}``, paths relative to the working
            directory where they lie below it. This is what is recorded.
        path: the config file.
        secrets: the resolved values, to be kept out of every text that leaves memory.
    """

    config: Config
    snapshot: Mapping[str, Any]
    path: Path
    secrets: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Reading:
    places: dict[KeyPath, str] = field(default_factory=dict)
    key_places: dict[KeyPath, str] = field(default_factory=dict)
    references: dict[KeyPath, str] = field(default_factory=dict)
    broken: set[KeyPath] = field(default_factory=set)
    """Where a fault is told already."""
    secrets: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)


def load_config(
    path: Path,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    defaults: Mapping[str, Any] | None = None,
) -> LoadedConfig:
    """Read a config file, what it extends, and the overrides on top.

    Args:
        overrides: ``key.path=value`` each, the value read as YAML; relative paths in them are taken
            from the working directory.
        environ: where ``${env:NAME}`` is looked up.
        defaults: plain data laid under the file, for values the command line fills in.

    Raises:
        ConfigError: with every fault that was found.
    """
    return _loaded(merged_tree(path, overrides), path, environ, defaults or {})


def load_recorded(path: Path, environ: Mapping[str, str] = os.environ) -> LoadedConfig:
    """Read the config of a record: resolved already, its paths from the working directory.

    Raises:
        ConfigError: with every fault, such as a reference to a variable that is not set any more.
    """
    root = parse_yaml(read_text(path, ConfigError, "config file"), str(path), ConfigError)
    if root is None or root.kind != "mapping":
        raise ConfigError(Fault(str(path), "a config is a mapping of keys to values"))
    tree = {key.value: Item(key.place, branch(value, Path())) for key, value in root.value}
    return _loaded(tree, path, environ, {})


def _loaded(
    tree: Tree, path: Path, environ: Mapping[str, str], defaults: Mapping[str, Any]
) -> LoadedConfig:
    reading = _Reading()
    data = _plain(tree, (), environ, reading)
    for key, value in defaults.items():
        data.setdefault(key, value)
    data.setdefault("name", path.stem)
    if not_unicode(data["name"]):
        message = "the name of the config file is not UTF-8; give the run a 'name'"
        raise ConfigError(Fault(str(path), message))
    config = _validated(data, reading, str(path))
    _check_names(data, reading, str(path))
    if config is None or reading.faults:
        faults = dict.fromkeys(reading.faults)
        raise ConfigError(sorted(faults, key=lambda fault: _sort_key(fault.place)))
    snapshot = _recordable(json.loads(config.model_dump_json()))
    _restore(snapshot, reading.references)
    return LoadedConfig(config, _relative(snapshot), path, frozenset(reading.secrets))


def _validated(data: Mapping[str, Any], reading: _Reading, source: str) -> Config | None:
    """Return the config, or None with every fault added that is not told yet."""
    try:
        return Config.model_validate_json(json.dumps(data))
    except ValidationError as invalid:
        errors = [_untagged(error) for error in invalid.errors()]
    for error in errors:
        location: KeyPath = error["loc"]
        if any(_on_one_branch(location, path) for path in reading.broken):
            continue
        if error["type"] == "too_short" and any(other["loc"][:-1] == location for other in errors):
            continue  # its items were left out because they are wrong themselves
        reading.faults.append(_explain(error, reading, source))
    return None


def _untagged(error: ErrorDetails) -> ErrorDetails:
    """Return an error with its location in the file: pydantic names the type of a section too."""
    location = error["loc"]
    if (
        len(location) > 1
        and location[0] in TYPED
        and location[1] in section_types(str(location[0]))
    ):
        location = (location[0], *location[2:])
    return {**error, "loc": location}


def section_types(section: str) -> dict[str, type[BaseModel]]:
    """Return type -> model of a section whose keys depend on its type."""
    tagged = get_args(Config.model_fields[section].annotation)
    models = [get_args(one)[0] for one in tagged if get_args(one)]  # each is Annotated[model, Tag]
    return {str(get_args(model.model_fields["type"].annotation)[0]): model for model in models}


def _on_one_branch(one: KeyPath, other: KeyPath) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _check_names(data: Mapping[str, Any], reading: _Reading, source: str) -> None:
    """Hold what the config names (its lever, its primary metric) against what there is."""
    lever = data.get("lever")
    if isinstance(lever, str) and lever not in config_keys() and ("lever",) not in reading.broken:
        hint = nearest(lever, config_keys())
        message = f"lever {lever!r} is no key of a config{hint}"
        reading.faults.append(Fault(reading.places.get(("lever",), source), message))
    section, path = data.get("metrics"), ("metrics", "primary")
    name = section.get("primary") if isinstance(section, Mapping) else None
    if not isinstance(name, str) or path in reading.broken:
        return
    place = reading.places.get(path, source)
    try:
        primary = default_registry().parse(name)
        if primary.level is None and primary.family.has_levels:
            raise MetricError(f"{name!r} needs a level: add _chunk or _doc")
    except MetricError as unknown:
        reading.faults += [
            Fault(place, f"metrics.primary: {fault.message} (as in ndcg_at_10_doc)")
            for fault in unknown.faults
        ]


def _recordable(value: Any) -> Any:
    """Write 60.0 as 60, as a person would, and an address without its user and password."""
    if isinstance(value, dict):
        return {key: _recordable(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_recordable(child) for child in value]
    if isinstance(value, str):
        return USER_INFO.sub("", value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain(
    tree: Tree, at: KeyPath, environ: Mapping[str, str], reading: _Reading
) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, item in tree.items():
        path, value = (*at, key), item.value
        reading.key_places[path] = item.key_place
        if isinstance(value, dict):
            data[key] = _plain(value, path, environ, reading)
            reading.places[path] = item.key_place
        else:
            data[key] = _value(value.node, path, value.folder, environ, reading)
            if path == ("golden",) and isinstance(data[key], str):
                # The short form: a path where the long form has a mapping.
                reading.places[(*path, "path")] = where(value.node)
                data[key] = {"path": _path(data[key], value.node, path, value.folder, reading)}
    return data


def _value(
    node: Node, path: KeyPath, folder: Path, environ: Mapping[str, str], reading: _Reading
) -> Any:
    reading.places[path] = where(node)
    if node.kind == "mapping":
        for key, _ in node.value:
            reading.key_places[(*path, key.value)] = where(key)
        return {
            key.value: _value(child, (*path, key.value), folder, environ, reading)
            for key, child in node.value
        }
    if node.kind == "list":
        return [
            _value(child, (*path, index), folder, environ, reading)
            for index, child in enumerate(node.value)
        ]
    value = node.python()
    if isinstance(value, str) and "${" in value:
        value = _resolve(value, node, path, environ, reading)
    if isinstance(value, str) and (path in _PATH_KEYS or (path[0] == "suites" and len(path) == 2)):
        return _path(value, node, path, folder, reading)
    return value


def _path(value: str, node: Node, path: KeyPath, folder: Path, reading: _Reading) -> str:
    """Return a path as the working directory sees it; an empty one would be the folder itself."""
    if path in reading.broken:
        return ""
    joined = os.path.normpath(folder / value)
    key = ".".join(map(str, path))
    if not value:
        message = f"{key} must not be empty"
    elif "\0" in value:
        message = f"{key} must be a path, which holds no NUL"
    elif not_unicode(joined):
        message = f"{key}: the path leads through a name that is not UTF-8"
    else:
        return joined
    reading.faults.append(Fault(where(node), message))
    reading.broken.add(path)
    return ""


def _resolve(
    text: str, node: Node, path: KeyPath, environ: Mapping[str, str], reading: _Reading
) -> str:
    def look_up(match: re.Match[str]) -> str:
        name = match.group(1)
        if not match.group(2) or not _ENV_NAME.match(name):
            return fault(f"{match.group(0)} names no environment variable; write ${{env:NAME}}")
        if path in _RECORDED:
            key = ".".join(map(str, path))
            return fault(f"{key} takes no environment reference: every record shows it")
        found = environ.get(name)
        if found is None:
            message = f"environment variable {name} is not set; export it, or change the value here"
            return fault(message)
        if not_unicode(found):
            return fault(f"environment variable {name} is not UTF-8; export it anew")
        if found:
            reading.secrets.add(found)
            register(found, f"${{env:{name}}}")
        return found

    def fault(message: str) -> str:
        reading.faults.append(Fault(where(node), message))
        reading.broken.add(path)
        return ""

    resolved = _ENV.sub(look_up, text)
    if resolved != text:
        reading.references[path] = text
    return resolved


def _restore(snapshot: Any, references: Mapping[KeyPath, str]) -> None:
    for path, text in references.items():
        holder = snapshot
        for step in path[:-1]:
            holder = holder[step]
        if isinstance(holder[path[-1]], dict):  # the short form of golden
            holder[path[-1]]["path"] = text
        else:
            holder[path[-1]] = USER_INFO.sub("", text)


def _relative(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Write paths relative to the working directory: a record holds no machine's folders."""
    for section, key in _PATH_KEYS:
        holder = snapshot.get(section)
        if isinstance(holder, dict) and holder.get(key):
            holder[key] = portable_path(holder[key])
    for suite, value in snapshot.get("suites", {}).items():
        snapshot["suites"][suite] = portable_path(value)
    return snapshot


def portable_path(path: str | Path) -> str:
    """Return a path as a record may hold it: POSIX, relative to the working directory."""
    text = str(path)
    if "${env:" in text:
        return text
    absolute = Path(os.path.abspath(text))
    return Path(os.path.relpath(absolute)).as_posix()


def _explain(error: ErrorDetails, reading: _Reading, source: str) -> Fault:
    """Say a pydantic error in the words of the file: the key, what was found, what is allowed."""
    location: KeyPath = error["loc"]
    kind, context = error["type"], error.get("ctx", {})
    key = ".".join(str(step) for step in location)
    place = reading.places.get(location) or _nearest_place(location, reading, source)
    if kind == "extra_forbidden":
        place = reading.key_places.get(location, place)
        return Fault(place, f"unknown key {key!r}{_did_you_mean(location)}")
    if kind == "missing":
        return Fault(place, f"key {key!r} is missing")
    secret = any(_on_one_branch(location, path) for path in reading.references)
    found = "" if secret else f", found {_shown(error['input'])}"
    if kind == "union_tag_invalid":
        place = reading.places.get((*location, "type"), place)
        tags = context.get("expected_tags", "")
        found = _shown(error["input"].get("type"))
        return Fault(place, f"{key}.type must be one of {tags}, found {found}")
    if kind == "value_error":
        return Fault(
            _last_written(location, reading, source) or place, f"{key}: {context['error']}"
        )
    allowed = {
        "literal_error": f"must be one of {context.get('expected', '')}",
        "string_pattern_mismatch": "must be one line without control characters or outer blanks",
        "string_too_long": f"must be at most {context.get('max_length')} characters long",
        "too_short": "must hold at least one item",
        "too_long": f"must hold at most {context.get('max_length')} items",
        "string_too_short": "must not be empty",
        "float_type": "must be a number",
        "int_type": "must be a whole number",
        "string_type": "must be text (put it in quotes)",
        "bool_type": "must be true or false",
        "path_type": "must be a path",
        "dict_type": "must be a mapping of keys to values",
        "model_type": "must be a mapping of keys to values",
        "model_attributes_type": "must be a mapping of keys to values",
        "tuple_type": "must be a list",
    }.get(kind)
    if allowed is None and secret:
        allowed = "holds a value that is not allowed here"  # pydantic's own words may quote it
    if allowed is None:
        said = error["msg"]
        allowed = "must " + said.removeprefix("Input should ") if said.startswith("Input") else said
    return Fault(place, f"{key} {allowed}{found}")


def _last_written(location: KeyPath, reading: _Reading, source: str) -> str | None:
    """Return the place in a section that decided last: the command line, else the file itself."""
    inside = [at for path, at in reading.places.items() if path[: len(location)] == location]
    by_option = [place for place in inside if place.startswith("-S ")]
    in_file = [place for place in inside if place.startswith(f"{source}:")]
    return next(iter([*by_option, *in_file]), None)


def _nearest_place(location: KeyPath, reading: _Reading, source: str) -> str:
    for length in range(len(location) - 1, 0, -1):
        if location[:length] in reading.places:
            return reading.places[location[:length]]
    return source


def _shown(value: Any) -> str:
    text = USER_INFO.sub("", json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:57] + "..."


def _did_you_mean(location: KeyPath) -> str:
    """Name the nearest allowed key, at this level first, then anywhere in the config."""
    model: Any = Config
    for step in location[:-1]:
        info = model.model_fields.get(step) if _is_section(model) else None
        model = info.annotation if info else None
    word = str(location[-1])
    if _is_section(model):
        near = nearest(word, model.model_fields)
        if near:
            return near
        allowed = ", ".join(sorted(model.model_fields))
        elsewhere = [path for path in config_keys() if path.rsplit(".", 1)[-1] == word]
        return f" (did you mean {elsewhere[0]!r}?)" if elsewhere else f"; allowed here: {allowed}"
    return ""


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def config_keys(model: type[BaseModel] = Config, prefix: str = "") -> list[str]:
    """Return every dotted key that a config may hold, in the order of the models."""
    keys: list[str] = []
    for name, info in model.model_fields.items():
        if prefix == "" and name in TYPED and (types := section_types(name)):
            for section in types.values():
                keys += [k for k in config_keys(section, f"{name}.") if k not in keys]
        elif _is_section(info.annotation):
            keys += config_keys(cast("type[BaseModel]", info.annotation), f"{prefix}{name}.")
        else:
            keys.append(prefix + name)
    return keys


def _sort_key(place: str) -> tuple[str, int, int]:
    source, *numbers = place.rsplit(":", 2)
    line, column = (int(n) if n.isdecimal() else 0 for n in [*numbers, "0", "0"][:2])
    return source, line, column
