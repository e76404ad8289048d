"""Hypothesis on a busy machine: a slow example is no fault."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unit", deadline=None)
settings.load_profile("unit")
