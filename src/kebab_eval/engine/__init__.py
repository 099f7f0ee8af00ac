"""The embedded search engine: a folder of Markdown notes in, ranked chunks out.

    corpus ─► chunking ─┬─► tokenizers ─► lexical ─┐
                        └─► embedding ─► vectors ──┴─► fusion ─► search

:mod:`~kebab_eval.engine.search` puts the parts together. Each kind of part has a registry: a
chunker in ``chunking.CHUNKERS``, a tokenizer in ``tokenizers.TOKENIZERS``, an encoder in
``embedding.EMBEDDERS``, a fusion method in ``fusion.METHODS``. This file imports nothing, so that a
part can be had alone.
"""
