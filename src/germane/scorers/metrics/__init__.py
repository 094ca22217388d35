"""Built-in scorers, one module per scorer. Each module is named after its scorer.

Each module defines ``build(models, options, build_scorer)``, which returns the scorer for the options in
``scorer_options.<name>``. Pass a subclass of the scorer as ``build_scorer`` to build an instance of the subclass.
A new module needs no registration: :data:`germane.registry.BUILTIN_SCORER_NAMES` lists the modules in this folder.
"""

from __future__ import annotations
