"""Built-in scorers, one module per scorer. Each module is named after its scorer.

Each module defines one class with a method ``score`` and a class method ``build(models, options)``, which returns the
scorer for the options in ``scorer_options.<name>``.
A new module needs no registration: :data:`germane.registry.BUILTIN_SCORER_NAMES` lists the modules in this folder.
"""

from __future__ import annotations
