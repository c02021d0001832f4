"""Backbones and heads: loading and saving them, pair, joint and ELECTRA models, embedders, evidence finders, encoders of others."""

from ..lazy import names_of

__getattr__ = names_of(__name__)
