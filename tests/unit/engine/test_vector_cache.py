"""Vectors on disk: kept, shared, rebuilt, and never a reason to fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kebab_eval.engine.embedding import passage_vectors
from kebab_eval.engine.vector_cache import VectorCache, text_key


def cache_in(folder: Path | None) -> VectorCache:
    return VectorCache(folder, "counting", "1", 8)


def test_a_second_start_encodes_nothing_and_gives_the_same_bytes(tmp_path, embedder):
    texts = ["a", "b", "한글", "a"]
    cold = passage_vectors(embedder, texts, cache_in(tmp_path))
    assert embedder.passages == ["a", "b", "한글"]
    warm = passage_vectors(embedder, texts, cache_in(tmp_path))
    assert embedder.passages == ["a", "b", "한글"]
    assert cold.tobytes() == warm.tobytes()


def test_what_is_cached_already_does_not_change_the_rest(tmp_path, embedder):
    passage_vectors(embedder, ["b"], cache_in(tmp_path))
    mixed = passage_vectors(embedder, ["a", "b", "c"], cache_in(tmp_path))
    fresh = passage_vectors(embedder, ["a", "b", "c"], cache_in(None))
    assert mixed.tobytes() == fresh.tobytes()


def test_progress_counts_only_what_is_encoded(tmp_path, embedder):
    calls = []
    texts = [str(number) for number in range(70)]
    passage_vectors(embedder, texts[:3], cache_in(tmp_path))
    passage_vectors(embedder, texts, cache_in(tmp_path), lambda *at: calls.append(at))
    assert calls == [(0, 67), (32, 67), (64, 67), (67, 67)]
    passage_vectors(embedder, texts, cache_in(tmp_path), lambda *at: calls.append(at))
    assert len(calls) == 4


def test_an_interrupted_start_keeps_what_was_encoded(tmp_path, embedder):
    def stop(done: int, total: int) -> None:
        if done >= 32:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        passage_vectors(embedder, [str(n) for n in range(70)], cache_in(tmp_path), stop)
    assert len(cache_in(tmp_path)) == 32


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data.replace(b"counting", b"mounting"),
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: b"\0" * 100,
        lambda data: b"null\n" + data,
    ],
)
def test_a_damaged_file_is_built_anew(tmp_path, embedder, caplog, damage):
    good = passage_vectors(embedder, ["a", "b"], cache_in(tmp_path))
    path = cache_in(tmp_path).path
    path.write_bytes(damage(path.read_bytes()))
    again = passage_vectors(embedder, ["a", "b"], cache_in(tmp_path))
    assert again.tobytes() == good.tobytes()
    assert "damaged" in caplog.text
    assert len(cache_in(tmp_path)) == 2


def test_models_and_versions_are_kept_apart(tmp_path, embedder):
    passage_vectors(embedder, ["a"], cache_in(tmp_path))
    assert text_key("a") not in VectorCache(tmp_path, "counting", "2", 8)
    assert text_key("a") not in VectorCache(tmp_path, "other/model:x", "1", 8)


def test_two_processes_add_to_each_other(tmp_path):
    one, two = cache_in(tmp_path), cache_in(tmp_path)
    one.add([text_key("a")], np.ones((1, 8), np.float32))
    two.add([text_key("b")], np.ones((1, 8), np.float32))
    one.save()
    two.save()
    assert len(cache_in(tmp_path)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counting-1.vectors"]


def test_a_new_folder_hides_itself_from_git(tmp_path, embedder):
    passage_vectors(embedder, ["a"], cache_in(tmp_path / "new" / "cache"))
    assert (tmp_path / "new" / "cache" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path, embedder, caplog):
    (tmp_path / "file").write_text("in the way")
    rows = passage_vectors(embedder, ["a"], cache_in(tmp_path / "file" / "cache"))
    assert rows.shape == (1, 8)
    assert "cannot be" in caplog.text


def test_a_full_disk_is_a_warning_and_leaves_nothing_behind(
    tmp_path, embedder, caplog, monkeypatch
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    passage_vectors(embedder, ["a"], cache_in(tmp_path))
    assert "No space left on device" in caplog.text
    assert list(tmp_path.iterdir()) == []
