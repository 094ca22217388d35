"""Shows what rules would have told over the stored history: by the code that watches, over what was there then."""

from __future__ import annotations

from germane.monitor.preview.preview import Episode, Preview, Replayed, Unreplayed, preview

__all__ = ["Episode", "Preview", "Replayed", "Unreplayed", "preview"]
