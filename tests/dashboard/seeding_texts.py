"""Questions and answers of the sample application: the documentation of Harbour, a fictional document store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """A question, its answer and page, and the questions that a judge would generate from the answer alone."""

    page: str
    asked: str
    answer: str
    reads_as: tuple[str, str, str]
    route: str


ASK, SEARCH, SUPPORT = "ask", "docs-search", "support/eu"

TOPICS = (
    Topic(
        "keys/rotate",
        "How do I rotate an API key?",
        "Open Settings, then Keys, and press Rotate next to the key. The old key works for another 24 hours, so that "
        "you can roll out the new one without an outage.",
        (
            "How can I rotate an API key?",
            "How long does an old API key work after I rotate it?",
            "Where do I find the button that rotates a key?",
        ),
        ASK,
    ),
    Topic(
        "regions",
        "Which regions can store EU data?",
        "Frankfurt (eu-central) and Dublin (eu-west) keep documents and backups within the European Union. The region "
        "is chosen when a collection is created and cannot be changed later.",
        (
            "Which regions keep data in the EU?",
            "Where are documents of European customers stored?",
            "Can the region of a collection be changed later?",
        ),
        SEARCH,
    ),
    Topic(
        "errors/E4012",
        "What does error E4012 mean?",
        "E4012 means that a document is larger than 16 MB. Split it, or store the attachment in a bucket and keep only "
        "its address in the document.",
        (
            "What is the meaning of error E4012?",
            "What should I do when a document is larger than 16 MB?",
            "How do I store a large attachment?",
        ),
        SEARCH,
    ),
    Topic(
        "limits/search",
        "Is there a rate limit for search?",
        "Yes: 100 requests per second for each key. Above it the server answers 429 and says in Retry-After how many "
        "seconds to wait.",
        (
            "What is the rate limit of the search endpoint?",
            "How many search requests per second may one key send?",
            "What does the server answer above the rate limit?",
        ),
        SEARCH,
    ),
    Topic(
        "backups",
        "How long are backups kept?",
        "Backups are taken every night and kept for 35 days. On the Team plan you can restore a single collection to "
        "any minute of the last seven days.",
        (
            "How long does Harbour keep backups?",
            "How often are backups taken?",
            "Can I restore a single collection?",
        ),
        SUPPORT,
    ),
    Topic(
        "billing/cancel",
        "How do I cancel my subscription?",
        "Open Billing and choose Cancel plan. You keep access until the end of the month that is paid for, and can "
        "export everything for 30 days after that.",
        (
            "How can I cancel my plan?",
            "How long do I keep access after cancelling?",
            "Can I export my data after I cancelled?",
        ),
        SUPPORT,
    ),
    Topic(
        "export/bulk",
        "Does the API support bulk export?",
        "Yes. POST /v2/exports starts a job that writes a collection as compressed JSON lines; the job's address tells "
        "when the file is ready and for how long it stays there.",
        (
            "Can I export a whole collection with the API?",
            "How do I start a bulk export?",
            "In which format is a bulk export written?",
        ),
        SEARCH,
    ),
    Topic(
        "webhooks/retries",
        "How often is a webhook retried?",
        "A webhook that does not answer with 2xx is tried again for 24 hours, after 1, 5, 30 and 120 minutes and then "
        "every four hours. After that it is listed under Failed deliveries.",
        (
            "How many times is a failed webhook tried again?",
            "What happens when a webhook does not answer with 2xx?",
            "Where do I see failed webhook deliveries?",
        ),
        ASK,
    ),
    Topic(
        "sso",
        "How do I turn on single sign-on?",
        "Single sign-on is part of the Business plan. Under Settings, Identity, upload your provider's SAML metadata "
        "and test the login with one account before you require it for all.",
        (
            "How can I set up single sign-on?",
            "Which plan includes SAML login?",
            "Where do I upload the metadata of my identity provider?",
        ),
        ASK,
    ),
    Topic(
        "index/rebuild",
        "Why are new documents missing from search results?",
        "New documents can be searched after the index has been refreshed, usually within five seconds. While an index "
        "is being rebuilt it can take up to ten minutes; the collection's page shows how far it is.",
        (
            "Why does search not find documents that I just added?",
            "How long does it take until new documents can be searched?",
            "Where do I see the progress of an index rebuild?",
        ),
        SEARCH,
    ),
    Topic(
        "invoices",
        "Where do I find my invoices?",
        "All invoices are listed under Billing, Invoices, as PDF files. An additional address for invoices can be "
        "given there too.",
        (
            "Where can I download invoices?",
            "How do I have invoices sent to another address?",
            "In which format are invoices available?",
        ),
        SUPPORT,
    ),
    Topic(
        "queries/joins",
        "Can I join two collections in one query?",
        "Not directly. Use include to fetch referenced documents in the same request, up to two levels deep, or build "
        "a view that is updated when either collection changes.",
        (
            "Does Harbour support joins between collections?",
            "How do I fetch referenced documents in one request?",
            "How deep may included references be?",
        ),
        ASK,
    ),
    Topic(
        "retention/logs",
        "How long are audit logs kept?",
        "Audit logs are kept for 400 days and can be streamed to your own bucket. They name the key, the address and "
        "the collection of every write.",
        (
            "For how long does Harbour keep audit logs?",
            "Can audit logs be streamed to a bucket?",
            "What does an audit log entry contain?",
        ),
        SUPPORT,
    ),
    Topic(
        "sdk/timeouts",
        "How do I set a timeout in the Python client?",
        "Pass timeout=5.0 to Client, or to a single call, in seconds. The default is 30 seconds, of which at most ten "
        "go into connecting.",
        (
            "How can I change the timeout of the Python client?",
            "What is the client's default timeout?",
            "Can a timeout be given for a single call?",
        ),
        ASK,
    ),
)

REFUSALS = (
    "I'm sorry, I don't have information about that in the documentation.",
    "I could not find anything about this in the provided pages.",
    "I don't know.",
)
ASIDES = (
    (
        "Harbour was founded in 2015 and has offices in Berlin and Lisbon. More than 4,000 teams build on it.",
        (
            "When was Harbour founded?",
            "Where are the offices of Harbour?",
            "How many teams use Harbour?",
        ),
    ),
    (
        "Thank you for your question! Pricing depends on the plan; see the pricing page for the latest offer.",
        (
            "How much does Harbour cost?",
            "Where do I find the prices?",
            "What does the price depend on?",
        ),
    ),
)
"""Answers that address none of the questions."""


def topics_of(route: str) -> tuple[Topic, ...]:
    """Return the topics of the questions on a route."""
    return tuple(topic for topic in TOPICS if topic.route == route)
