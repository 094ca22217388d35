"""JSON schemas of the receivers' requests, written from their published descriptions.

PagerDuty: the description of the Events API v2 in PagerDuty/api-schema (reference/events-v2/openapiv3.json), and the
limits from its guide: a summary of at most 1024 characters, a dedup_key of at most 255, a routing key of 32.
Alertmanager: ``postableAlerts`` in prometheus/alertmanager (api/v2/openapi.yaml); label names as in Prometheus.
Slack: docs.slack.dev/reference/block-kit: at most 50 blocks per message, 150 characters per header, 3000 per section
text, 10 fields of 2000 characters each, and 10 elements per context.
Teams: learn.microsoft.com, "Create incoming webhooks with Workflows" and the Adaptive Cards schema 1.4: at most 28 KB.
Discord: discord.com/developers/docs, resources "Webhook" and "Message": at most 10 embeds, 25 fields, and 6000
characters in all embeds; 256 characters per title and field name, 4096 per description, 1024 per field value, 2000
per content.
"""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

Schema = dict[str, Any]


def text(longest: int, **more: Any) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": longest, **more}


def an_object(required: Schema, **optional: Any) -> Schema:
    properties = {**required, **optional}
    return {"type": "object", "properties": properties, "required": sorted(required), "additionalProperties": False}


LINK = an_object({"href": text(2048, pattern="^https?://")}, text=text(1000))
PAGERDUTY: Schema = {
    **an_object(
        {"routing_key": text(32, minLength=32), "event_action": {"enum": ["trigger", "acknowledge", "resolve"]}},
        dedup_key=text(255),
        client=text(1000),
        client_url=text(2048, pattern="^https?://"),
        links={"type": "array", "items": LINK},
        payload=an_object(
            {
                "summary": text(1024),
                "source": text(1024),
                "severity": {"enum": ["critical", "error", "warning", "info"]},
            },
            timestamp={"type": "string", "format": "date-time"},
            component=text(1024),
            group=text(1024),
            **{"class": text(1024)},
            custom_details={"type": "object"},
        ),
    ),
    "if": {"properties": {"event_action": {"const": "trigger"}}},
    "then": {"required": ["payload"]},
    "else": {"required": ["dedup_key"]},
}

LABEL_SET: Schema = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
}
ALERTMANAGER: Schema = {
    "type": "array",
    "minItems": 1,
    "items": an_object(
        {"labels": {**LABEL_SET, "required": ["alertname"]}},
        annotations=LABEL_SET,
        startsAt={"type": "string", "format": "date-time"},
        endsAt={"type": "string", "format": "date-time"},
        generatorURL={"type": "string", "pattern": "^https?://"},
    ),
}


def plain(longest: int) -> Schema:
    kind = {"const": "plain_text"}
    return an_object({"type": kind, "text": text(longest)}, emoji={"type": "boolean"})


def marked(longest: int) -> Schema:
    return an_object({"type": {"const": "mrkdwn"}, "text": text(longest)}, verbatim={"type": "boolean"})


def either(longest: int) -> Schema:
    return {"oneOf": [plain(longest), marked(longest)]}


SECTION: Schema = {
    **an_object(
        {"type": {"const": "section"}},
        text=either(3000),
        fields={"type": "array", "minItems": 1, "maxItems": 10, "items": either(2000)},
    ),
    "anyOf": [{"required": ["text"]}, {"required": ["fields"]}],
}
CONTEXT = an_object(
    {"type": {"const": "context"}, "elements": {"type": "array", "minItems": 1, "maxItems": 10, "items": either(3000)}}
)
HEADER = an_object({"type": {"const": "header"}, "text": plain(150)})
SLACK = an_object(
    {
        "text": text(4000),
        "blocks": {"type": "array", "minItems": 1, "maxItems": 50, "items": {"oneOf": [HEADER, SECTION, CONTEXT]}},
    }
)


RUN = an_object(
    {"type": {"const": "TextRun"}, "text": text(28_000)},
    size={"enum": ["Small", "Default", "Medium", "Large", "ExtraLarge"]},
    weight={"enum": ["Default", "Lighter", "Bolder"]},
    isSubtle={"type": "boolean"},
)
TEXT_BLOCK = an_object({"type": {"const": "RichTextBlock"}, "inlines": {"type": "array", "minItems": 1, "items": RUN}})
OPEN_URL = an_object({"type": {"const": "Action.OpenUrl"}, "title": text(100), "url": text(2048, pattern="^https?://")})
ACTIONS = an_object({"type": {"const": "ActionSet"}, "actions": {"type": "array", "minItems": 1, "items": OPEN_URL}})
CONTAINER = an_object(
    {"type": {"const": "Container"}, "items": {"type": "array", "minItems": 1, "items": TEXT_BLOCK}},
    style={"enum": ["default", "emphasis", "good", "attention", "warning", "accent"]},
    separator={"type": "boolean"},
)
CARD = an_object(
    {
        "type": {"const": "AdaptiveCard"},
        "version": {"const": "1.4"},
        "body": {"type": "array", "minItems": 1, "items": {"oneOf": [TEXT_BLOCK, CONTAINER, ACTIONS]}},
    },
    msteams={"type": "object"},
    **{"$schema": {"const": "http://adaptivecards.io/schemas/adaptive-card.json"}},
)
TEAMS = an_object(
    {
        "type": {"const": "message"},
        "attachments": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": an_object(
                {"contentType": {"const": "application/vnd.microsoft.card.adaptive"}, "content": CARD},
                contentUrl={"type": "null"},
            ),
        },
    }
)
EMBED = an_object(
    {"title": text(256), "description": text(4096)},
    color={"type": "integer", "minimum": 0, "maximum": 0xFFFFFF},
    timestamp={"type": "string", "format": "date-time"},
    url=text(2048, pattern="^https?://"),
    fields={
        "type": "array",
        "maxItems": 25,
        "items": an_object({"name": text(256), "value": text(1024)}, inline={"type": "boolean"}),
    },
)
DISCORD = an_object(
    {
        "content": text(2000),
        "embeds": {"type": "array", "minItems": 1, "maxItems": 10, "items": EMBED},
        "allowed_mentions": an_object({"parse": {"type": "array", "maxItems": 0}}),
    }
)


def check(found: Any, schema: Schema) -> None:
    """Raise an error if a document violates a schema."""
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(found)
