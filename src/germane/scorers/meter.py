"""What judge and embedder took so far."""

from __future__ import annotations

from dataclasses import dataclass

from germane.scorers.protocols import Reply


@dataclass
class Meter:
    """What the judge and the embedder of one process took so far. What a server does not tell counts as nothing."""

    requests: int = 0
    """Asked of the judge, those without a reply included. A request that was shared is one."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """US dollars, as far as prices are known."""
    embedding_requests: int = 0
    """Asked of the embedder; one holds the texts of many exchanges."""
    embedding_tokens: int = 0

    def count(self, reply: Reply) -> None:
        """Add what a reply of the judge took."""
        self.input_tokens += reply.input_tokens or 0
        self.output_tokens += reply.output_tokens or 0
        self.cost += reply.cost or 0.0
