SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

CREATE TABLE public.exchange (
    id text NOT NULL,
    trace_id text NOT NULL,
    span_id text NOT NULL,
    service text NOT NULL,
    route text NOT NULL,
    question text,
    answer text,
    contexts jsonb NOT NULL,
    history jsonb NOT NULL,
    model text,
    prompt_version text,
    session text,
    "user" text,
    attributes jsonb NOT NULL,
    status text NOT NULL,
    error text,
    started_at timestamp with time zone NOT NULL,
    duration double precision NOT NULL,
    draw double precision NOT NULL,
    traced boolean NOT NULL,
    proxy double precision,
    sampling_probability double precision,
    sampling_reason text,
    capture_probability double precision DEFAULT '1'::double precision NOT NULL,
    proxy_probability double precision,
    erased_at timestamp with time zone
);

CREATE TABLE public.score (
    id bigint NOT NULL,
    exchange_id text NOT NULL,
    scorer text NOT NULL,
    fingerprint text NOT NULL,
    service text NOT NULL,
    route text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    sampling_probability double precision,
    value double precision NOT NULL,
    label text,
    explanation text,
    details jsonb NOT NULL,
    judge text,
    embedder text,
    input_tokens bigint,
    output_tokens bigint,
    cost double precision,
    latency double precision,
    scored_at timestamp with time zone,
    proxy double precision
);

CREATE TABLE public.scoring_task (
    id bigint NOT NULL,
    exchange_id text NOT NULL,
    scorer text NOT NULL,
    fingerprint text NOT NULL,
    state text NOT NULL,
    reason text,
    error text,
    attempts integer NOT NULL,
    first_pending_at timestamp with time zone NOT NULL,
    not_before timestamp with time zone,
    lease_owner text,
    lease_until timestamp with time zone,
    scored_as text,
    tries integer DEFAULT 0 NOT NULL
);

CREATE VIEW public.answers AS
 SELECT exchange.id AS exchange_id,
    exchange.trace_id,
    exchange.service,
    exchange.route,
    exchange.model,
    exchange.prompt_version,
    exchange.started_at,
    exchange.duration,
    exchange.question,
    exchange.answer,
    exchange.status,
    scoring_task.scorer,
    COALESCE(scoring_task.scored_as, scoring_task.fingerprint) AS fingerprint,
    scoring_task.state,
    scoring_task.reason,
    score.value,
    score.label,
    score.explanation,
    score.judge,
    score.cost,
    score.scored_at,
    ((1.0)::double precision / NULLIF(COALESCE(score.sampling_probability, exchange.sampling_probability), (0)::double precision)) AS weight
   FROM ((public.scoring_task
     JOIN public.exchange ON ((exchange.id = scoring_task.exchange_id)))
     LEFT JOIN public.score ON (((score.exchange_id = scoring_task.exchange_id) AND (score.scorer = scoring_task.scorer) AND (score.fingerprint = COALESCE(scoring_task.scored_as, scoring_task.fingerprint)))));

CREATE TABLE public.budget (
    day text NOT NULL,
    calls bigint NOT NULL,
    tokens double precision NOT NULL,
    usd double precision NOT NULL,
    picked bigint NOT NULL
);

CREATE TABLE public.calibration (
    id bigint NOT NULL,
    embedder text NOT NULL,
    scorer text NOT NULL,
    fingerprint text NOT NULL,
    floor double precision NOT NULL,
    high double precision NOT NULL,
    n integer NOT NULL,
    made_at timestamp with time zone NOT NULL
);

CREATE SEQUENCE public.calibration_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.calibration_id_seq OWNED BY public.calibration.id;

CREATE TABLE public.feedback (
    id text NOT NULL,
    exchange_id text NOT NULL,
    score double precision NOT NULL,
    comment text,
    "user" text,
    created_at timestamp with time zone NOT NULL,
    considered_at timestamp with time zone
);

CREATE TABLE public.germane_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE public.lease (
    name text NOT NULL,
    owner text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    cursor text,
    renewed_at timestamp with time zone
);

CREATE TABLE public.rate_limit (
    name text NOT NULL,
    arrival double precision NOT NULL,
    waited double precision NOT NULL,
    used_at timestamp with time zone NOT NULL
);

CREATE SEQUENCE public.score_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.score_id_seq OWNED BY public.score.id;

CREATE SEQUENCE public.scoring_task_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.scoring_task_id_seq OWNED BY public.scoring_task.id;

CREATE TABLE public.tally (
    minute timestamp with time zone NOT NULL,
    service text NOT NULL,
    route text NOT NULL,
    scorer text NOT NULL,
    process text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    count bigint NOT NULL
);

CREATE TABLE public.worker (
    id text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    service text NOT NULL,
    version text NOT NULL,
    scorers jsonb NOT NULL,
    concurrency integer NOT NULL,
    in_flight integer NOT NULL,
    problem text,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY public.calibration ALTER COLUMN id SET DEFAULT nextval('public.calibration_id_seq'::regclass);

ALTER TABLE ONLY public.score ALTER COLUMN id SET DEFAULT nextval('public.score_id_seq'::regclass);

ALTER TABLE ONLY public.scoring_task ALTER COLUMN id SET DEFAULT nextval('public.scoring_task_id_seq'::regclass);

INSERT INTO public.budget VALUES ('2026-01-31', 7, 700, 0.25, 0);
INSERT INTO public.budget VALUES ('2026-02-01', 4, 600, 1, 2);

INSERT INTO public.calibration VALUES (1, 'e', 'relevancy', 'f1', 0.07, 0.2, 400, '2026-02-01 12:00:00+00');

INSERT INTO public.exchange VALUES ('0000000000000000000000000000000b', '00000000000000000000000000000006', '000000000000000b', 'shop', 'search', 'two
lines	and   a separator', '10: two
lines	and   a separator', '[{"id": "page 10", "text": "two\nlines\tand   a separator", "score": 0.25}]', '[]', 'gpt-4o-mini', '7', NULL, NULL, '{"seats": 10, "share": 1.25, "trial": false, "tenant": "acme", "two\nlines\tand   a se": "two\nlines\tand   a separator"}', 'ok', NULL, '2026-02-01 01:59:59.98999+00', 0.625, 0.34375, false, NULL, NULL, NULL, 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000c', '00000000000000000000000000000006', '000000000000000c', 'shop', 'ask/{id}', 'السعر 👨‍👩‍👧 üß', '11: السعر 👨‍👩‍👧 üß', '[{"id": "page 11", "text": "السعر 👨‍👩‍👧 üß", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[{"role": "user", "text": "السعر 👨‍👩‍👧 üß"}]', NULL, '7', 's2', 'u3', '{"seats": 11, "share": 1.375, "trial": true, "tenant": "acme", "السعر 👨‍👩‍👧 üß": "السعر 👨‍👩‍👧 üß"}', 'error', 'ValueError: السعر 👨‍👩‍👧 üß', '2026-02-01 00:59:59.988989+00', 0.6875, 0.375, true, NULL, NULL, NULL, 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000001', '00000000000000000000000000000001', '0000000000000001', 'café', 'ask', 'How do I pay?', '0: How do I pay?', '[]', '[]', 'gpt-4o-mini', NULL, NULL, NULL, '{"seats": 0, "share": 0.0, "trial": false, "tenant": "acme", "How do I pay?": "How do I pay?"}', 'ok', NULL, '2026-02-01 12:00:00+00', 0, 0.03125, false, NULL, 0.5, 'drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000003', '00000000000000000000000000000002', '0000000000000003', 'shop', 'ask/{id}', 'two
lines	and   a separator', '2: two
lines	and   a separator', '[{"id": "page 2", "text": "two\nlines\tand   a separator", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[]', 'gpt-4o-mini', '7', 's2', 'u2', '{"seats": 2, "share": 0.25, "trial": false, "tenant": "acme", "two\nlines\tand   a se": "two\nlines\tand   a separator"}', 'ok', NULL, '2026-02-01 09:59:59.997998+00', 0.125, 0.09375, false, NULL, 0.5, 'drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000004', '00000000000000000000000000000002', '0000000000000004', 'café', 'ask', 'السعر 👨‍👩‍👧 üß', '3: السعر 👨‍👩‍👧 üß', '[]', '[{"role": "user", "text": "السعر 👨‍👩‍👧 üß"}]', NULL, '7', 's0', 'u3', '{"seats": 3, "share": 0.375, "trial": true, "tenant": "acme", "السعر 👨‍👩‍👧 üß": "السعر 👨‍👩‍👧 üß"}', 'error', 'ValueError: السعر 👨‍👩‍👧 üß', '2026-02-01 08:59:59.996997+00', 0.1875, 0.125, true, NULL, 0.5, 'drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000005', '00000000000000000000000000000003', '0000000000000005', 'shop', 'search', 'NUL � and half a pair �', '4: NUL � and half a pair �', '[{"id": "page 4", "text": "NUL � and half a pair �", "score": 0.25}]', '[]', 'gpt-4o-mini', NULL, 's1', 'u0', '{"seats": 4, "share": 0.5, "trial": false, "tenant": "acme", "NUL � and half a pai": "NUL � and half a pair �"}', 'ok', NULL, '2026-02-01 07:59:59.995996+00', 0.25, 0.15625, false, NULL, 0.5, 'drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000009', '00000000000000000000000000000005', '0000000000000009', 'shop', 'ask/{id}', 'How do I pay?', '8: How do I pay?', '[{"id": "page 8", "text": "How do I pay?", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[]', 'gpt-4o-mini', NULL, 's2', 'u0', '{"seats": 8, "share": 1.0, "trial": false, "tenant": "acme", "How do I pay?": "How do I pay?"}', 'ok', NULL, '2026-02-01 03:59:59.991992+00', 0.5, 0.28125, false, NULL, 0.5, 'drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000a', '00000000000000000000000000000005', '000000000000000a', 'café', 'ask', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', NULL, '[]', '[{"role": "user", "text": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}]', NULL, '7', 's0', 'u1', '{"seats": 9, "share": 1.125, "trial": true, "tenant": "acme", "It''s \"quoted\", 100 %": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}', 'ok', NULL, '2026-02-01 02:59:59.990991+00', 0.5625, 0.3125, true, NULL, 0.5, 'drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000006', '00000000000000000000000000000003', '0000000000000006', 'shop', 'ask/{id}', '', '5: ', '[{"id": "page 5", "text": "", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[{"role": "user", "text": ""}]', NULL, '7', NULL, NULL, '{"": "", "seats": 5, "share": 0.625, "trial": true, "tenant": "acme"}', 'ok', NULL, '2026-02-01 06:59:59.994995+00', 0.3125, 0.1875, true, NULL, 0.5, 'not_drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000007', '00000000000000000000000000000004', '0000000000000007', 'café', 'ask', '<script>alert(1)</script>', '6: <script>alert(1)</script>', '[]', '[]', 'gpt-4o-mini', '7', 's0', 'u2', '{"seats": 6, "share": 0.75, "trial": false, "tenant": "acme", "<script>alert(1)</sc": "<script>alert(1)</script>"}', 'ok', NULL, '2026-02-01 05:59:59.993994+00', 0.375, 0.21875, false, NULL, 0.5, 'drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000010', '00000000000000000000000000000008', '0000000000000010', 'café', 'ask', 'long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '15: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '[]', '[{"role": "user", "text": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}]', NULL, '7', NULL, NULL, '{"seats": 15, "share": 1.875, "trial": true, "tenant": "acme", "long long long long ": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}', 'error', 'ValueError: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '2026-01-31 20:59:59.984985+00', 0.9375, 0.5, true, NULL, NULL, 'budget', 0.75, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000011', '00000000000000000000000000000009', '0000000000000011', 'shop', 'search', 'How do I pay?', '16: How do I pay?', '[{"id": "page 16", "text": "How do I pay?", "score": 0.25}]', '[]', 'gpt-4o-mini', NULL, 's1', 'u0', '{"seats": 16, "share": 2.0, "trial": false, "tenant": "acme", "How do I pay?": "How do I pay?"}', 'ok', NULL, '2026-01-31 19:59:59.983984+00', 1, 0.53125, false, NULL, 0.75, 'always', 0.75, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000002', '00000000000000000000000000000001', '0000000000000002', 'shop', 'search', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '1: It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '[{"id": "page 1", "text": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */", "score": 0.25}]', '[{"role": "user", "text": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}]', NULL, '7', 's1', 'u1', '{"seats": 1, "share": 0.125, "trial": true, "tenant": "acme", "It''s \"quoted\", 100 %": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}', 'ok', NULL, '2026-02-01 10:59:59.998999+00', 0.0625, 0.0625, true, NULL, 0.5, 'drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000008', '00000000000000000000000000000004', '0000000000000008', 'shop', 'search', 'long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '7: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '[{"id": "page 7", "text": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ", "score": 0.25}]', '[{"role": "user", "text": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}]', NULL, '7', 's1', 'u3', '{"seats": 7, "share": 0.875, "trial": true, "tenant": "acme", "long long long long ": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}', 'error', 'ValueError: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '2026-02-01 04:59:59.992993+00', 0.4375, 0.25, true, NULL, 0.5, 'drawn', 1, NULL, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000d', '00000000000000000000000000000007', '000000000000000d', 'café', 'ask', 'NUL � and half a pair �', '12: NUL � and half a pair �', '[]', '[]', 'gpt-4o-mini', NULL, 's0', 'u0', '{"seats": 12, "share": 1.5, "trial": false, "tenant": "acme", "NUL � and half a pai": "NUL � and half a pair �"}', 'ok', NULL, '2026-01-31 23:59:59.987988+00', 0.75, 0.40625, false, 0.25, NULL, 'candidate', 0.75, 0.5, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000e', '00000000000000000000000000000007', '000000000000000e', 'shop', 'search', '', '13: ', '[{"id": "page 13", "text": "", "score": 0.25}]', '[{"role": "user", "text": ""}]', NULL, '7', 's1', 'u1', '{"": "", "seats": 13, "share": 1.625, "trial": true, "tenant": "acme"}', 'ok', NULL, '2026-01-31 22:59:59.986987+00', 0.8125, 0.4375, true, 0.25, 0.375, 'suspicion', 0.75, 0.5, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000f', '00000000000000000000000000000008', '000000000000000f', 'shop', 'ask/{id}', '<script>alert(1)</script>', '14: <script>alert(1)</script>', '[{"id": "page 14", "text": "<script>alert(1)</script>", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[]', 'gpt-4o-mini', '7', 's2', 'u2', '{"seats": 14, "share": 1.75, "trial": false, "tenant": "acme", "<script>alert(1)</sc": "<script>alert(1)</script>"}', 'ok', NULL, '2026-01-31 21:59:59.985986+00', 0.875, 0.46875, false, 0.25, 0.125, 'not_drawn', 0.75, 0.5, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000012', '00000000000000000000000000000009', '0000000000000012', 'shop', 'ask/{id}', NULL, NULL, '[]', '[]', NULL, '7', 's2', 'u1', '{"seats": 17, "share": 2.125, "trial": true, "tenant": "acme", "It''s \"quoted\", 100 %": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}', 'ok', NULL, '2026-01-31 18:59:59.982983+00', 1.0625, 0.5625, true, -0.5, 0.75, 'always', 0.75, 1, '2026-02-01 12:00:00+00');

INSERT INTO public.feedback VALUES ('1', '11111111111111111111111111111111', 0.25, 'السعر 👨‍👩‍👧 üß', 'u1', '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.feedback VALUES ('9', '99999999999999999999999999999999', 0.25, 'السعر 👨‍👩‍👧 üß', 'u1', '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.feedback VALUES ('2', '00000000000000000000000000000002', 0.25, 'السعر 👨‍👩‍👧 üß', 'u1', '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.feedback VALUES ('16', '00000000000000000000000000000011', 0, 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', 'u2', '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00');

INSERT INTO public.germane_version VALUES ('0004');

INSERT INTO public.lease VALUES ('sampler', 'someone', '2026-02-01 13:00:00+00', 'the first interval', '2026-02-01 12:00:00+00');

INSERT INTO public.rate_limit VALUES ('requests', 1769947201, 0, '2026-02-01 12:00:00+00');
INSERT INTO public.rate_limit VALUES ('tokens', 1769947200.9, 0, '2026-02-01 12:00:00+00');

INSERT INTO public.score VALUES (1, '00000000000000000000000000000001', 'faithfulness', 'f2', 'café', 'ask', '2026-02-01 12:00:00+00', 0.5, -0.25, 'partly', 'How do I pay?', '{"requests": 3, "questions": [{"text": "How do I pay?", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 100, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (2, '00000000000000000000000000000001', 'relevancy', 'f1', 'café', 'ask', '2026-02-01 12:00:00+00', 0.5, -0.25, 'partly', 'How do I pay?', '{"requests": 3, "questions": [{"text": "How do I pay?", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 100, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (3, '00000000000000000000000000000002', 'faithfulness', 'f2 served', 'shop', 'search', '2026-02-01 10:59:59.998999+00', 0.5, 0, 'partly', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '{"requests": 3, "questions": [{"text": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 101, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (4, '00000000000000000000000000000002', 'relevancy', 'f1 served', 'shop', 'search', '2026-02-01 10:59:59.998999+00', 0.5, 0, 'partly', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '{"requests": 3, "questions": [{"text": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 101, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (5, '00000000000000000000000000000003', 'faithfulness', 'f2', 'shop', 'ask/{id}', '2026-02-01 09:59:59.997998+00', 0.5, 0.25, 'partly', 'two
lines	and   a separator', '{"requests": 3, "questions": [{"text": "two\nlines\tand   a separator", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 102, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (6, '00000000000000000000000000000003', 'relevancy', 'f1', 'shop', 'ask/{id}', '2026-02-01 09:59:59.997998+00', 0.5, 0.25, 'partly', 'two
lines	and   a separator', '{"requests": 3, "questions": [{"text": "two\nlines\tand   a separator", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 102, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (7, '00000000000000000000000000000004', 'faithfulness', 'f2', 'café', 'ask', '2026-02-01 08:59:59.996997+00', 0.5, 0.5, 'partly', 'السعر 👨‍👩‍👧 üß', '{"requests": 3, "questions": [{"text": "السعر 👨‍👩‍👧 üß", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 103, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (8, '00000000000000000000000000000004', 'relevancy', 'f1', 'café', 'ask', '2026-02-01 08:59:59.996997+00', 0.5, 0.5, 'partly', 'السعر 👨‍👩‍👧 üß', '{"requests": 3, "questions": [{"text": "السعر 👨‍👩‍👧 üß", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 103, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (9, '0000000000000000000000000000000b', 'mine', 'recorded', 'shop', 'search', '2026-02-01 01:59:59.98999+00', 1, -0.5, NULL, 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (10, '00000000000000000000000000000012', 'faithfulness', 'f2', 'shop', 'ask/{id}', '2026-01-31 18:59:59.982983+00', 0.75, 1.25, 'partly', NULL, '{"requests": 3, "questions": [{"similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 106, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', -0.5);
INSERT INTO public.score VALUES (11, '00000000000000000000000000000012', 'relevancy', 'f1', 'shop', 'ask/{id}', '2026-01-31 18:59:59.982983+00', 0.75, 1.25, 'partly', NULL, '{"requests": 3, "questions": [{"similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 106, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', -0.5);

INSERT INTO public.scoring_task VALUES (1, '00000000000000000000000000000001', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2', 0);
INSERT INTO public.scoring_task VALUES (2, '00000000000000000000000000000001', 'relevancy', 'f1', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f1', 0);
INSERT INTO public.scoring_task VALUES (3, '00000000000000000000000000000002', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2 served', 0);
INSERT INTO public.scoring_task VALUES (4, '00000000000000000000000000000002', 'relevancy', 'f1', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f1 served', 0);
INSERT INTO public.scoring_task VALUES (5, '00000000000000000000000000000003', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2', 0);
INSERT INTO public.scoring_task VALUES (6, '00000000000000000000000000000003', 'relevancy', 'f1', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f1', 0);
INSERT INTO public.scoring_task VALUES (7, '00000000000000000000000000000004', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2', 0);
INSERT INTO public.scoring_task VALUES (8, '00000000000000000000000000000004', 'relevancy', 'f1', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f1', 0);
INSERT INTO public.scoring_task VALUES (9, '00000000000000000000000000000005', 'faithfulness', 'f2', 'failed', 'unparsable', 'the judge said: NUL � and half a pair �', 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (10, '00000000000000000000000000000005', 'relevancy', 'f1', 'failed', 'unparsable', 'the judge said: NUL � and half a pair �', 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (11, '00000000000000000000000000000008', 'faithfulness', 'f2', 'pending', 'judge_timeout', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', 0, '2026-02-01 12:00:00+00', '2026-02-01 13:00:00+00', NULL, NULL, NULL, 1);
INSERT INTO public.scoring_task VALUES (12, '00000000000000000000000000000008', 'relevancy', 'f1', 'pending', 'judge_timeout', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', 0, '2026-02-01 12:00:00+00', '2026-02-01 13:00:00+00', NULL, NULL, NULL, 1);
INSERT INTO public.scoring_task VALUES (15, '0000000000000000000000000000000a', 'faithfulness', 'f2', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 02:59:59.990991+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (16, '0000000000000000000000000000000a', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 02:59:59.990991+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (17, '00000000000000000000000000000006', 'faithfulness', 'f2', 'skipped', 'not_drawn', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (18, '00000000000000000000000000000006', 'relevancy', 'f1', 'skipped', 'not_drawn', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (19, '00000000000000000000000000000007', 'faithfulness', 'f2', 'skipped', 'missing_input', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (20, '00000000000000000000000000000007', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 05:59:59.993994+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (21, '0000000000000000000000000000000b', 'mine', 'recorded', 'done', NULL, NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (22, '0000000000000000000000000000000d', 'faithfulness', 'f2', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (23, '0000000000000000000000000000000d', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (28, '00000000000000000000000000000010', 'faithfulness', 'f2', 'skipped', 'filtered', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (30, '00000000000000000000000000000011', 'faithfulness', 'f2', 'skipped', 'filtered', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (24, '0000000000000000000000000000000e', 'faithfulness', 'f2', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (25, '0000000000000000000000000000000e', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (26, '0000000000000000000000000000000f', 'faithfulness', 'f2', 'skipped', 'not_drawn', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (27, '0000000000000000000000000000000f', 'relevancy', 'f1', 'skipped', 'not_drawn', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (29, '00000000000000000000000000000010', 'relevancy', 'f1', 'skipped', 'budget', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (31, '00000000000000000000000000000011', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (32, '00000000000000000000000000000012', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2', 0);
INSERT INTO public.scoring_task VALUES (33, '00000000000000000000000000000012', 'relevancy', 'f1', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f1', 0);
INSERT INTO public.scoring_task VALUES (13, '00000000000000000000000000000009', 'faithfulness', 'f2', 'running', NULL, NULL, 1, '2026-02-01 12:00:00+00', '2026-02-01 13:00:00+00', 'running', '2026-02-01 13:00:00+00', NULL, 0);
INSERT INTO public.scoring_task VALUES (14, '00000000000000000000000000000009', 'relevancy', 'f1', 'running', NULL, NULL, 1, '2026-02-01 12:00:00+00', '2026-02-01 13:00:00+00', 'running', '2026-02-01 13:00:00+00', NULL, 0);

INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'failed', 'unparsable', 1);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'failed', 'unparsable', 1);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 04:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 04:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 04:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 04:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 03:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 03:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 03:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 03:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 02:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 02:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 02:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 02:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 06:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 06:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'skipped', 'not_drawn', 1);
INSERT INTO public.tally VALUES ('2026-02-01 06:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 06:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'skipped', 'not_drawn', 1);
INSERT INTO public.tally VALUES ('2026-02-01 05:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 05:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'skipped', 'missing_input', 1);
INSERT INTO public.tally VALUES ('2026-02-01 05:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 05:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'skipped', 'queue_full', 7);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'relevancy', '5ad30ffc6ea14073', 'skipped', 'queue_full', 7);
INSERT INTO public.tally VALUES ('1970-01-01 00:00:00+00', 'shop', 'never', '', '', 'seen', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 01:59:00+00', 'shop', 'search', 'mine', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 01:59:00+00', 'shop', 'search', 'mine', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 22:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 22:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 22:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 22:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 23:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 23:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 23:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 23:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'faithfulness', '5ad30ffc6ea14073', 'skipped', 'filtered', 1);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'skipped', 'filtered', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 10);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 10);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'skipped', 'not_drawn', 1);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'skipped', 'not_drawn', 1);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'relevancy', '5ad30ffc6ea14073', 'skipped', 'budget', 1);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'relevancy', '5ad30ffc6ea14073', 'skipped', 'not_drawn', 0);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'relevancy', '5ad30ffc6ea14073', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'faithfulness', '5ad30ffc6ea14073', 'skipped', 'capture_limit', 3);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'relevancy', '5ad30ffc6ea14073', 'skipped', 'capture_limit', 3);

INSERT INTO public.worker VALUES ('running', 'a', 1, 'café', '0.4.0', '{"relevancy": "f1", "faithfulness": "f2"}', 8, 1, NULL, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00');
INSERT INTO public.worker VALUES ('idle', 'b', 2, 'café', '0.4.0', '{"relevancy": "f1", "faithfulness": "f2"}', 8, 0, 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00');

SELECT pg_catalog.setval('public.calibration_id_seq', 1, true);

SELECT pg_catalog.setval('public.score_id_seq', 11, true);

SELECT pg_catalog.setval('public.scoring_task_id_seq', 33, true);

ALTER TABLE ONLY public.budget
    ADD CONSTRAINT budget_pkey PRIMARY KEY (day);

ALTER TABLE ONLY public.calibration
    ADD CONSTRAINT calibration_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.exchange
    ADD CONSTRAINT exchange_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.germane_version
    ADD CONSTRAINT germane_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.rate_limit
    ADD CONSTRAINT rate_limit_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.score
    ADD CONSTRAINT score_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.scoring_task
    ADD CONSTRAINT scoring_task_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.tally
    ADD CONSTRAINT tally_pkey PRIMARY KEY (minute, service, route, scorer, process, outcome, reason);

ALTER TABLE ONLY public.score
    ADD CONSTRAINT uq_score UNIQUE (exchange_id, scorer, fingerprint);

ALTER TABLE ONLY public.scoring_task
    ADD CONSTRAINT uq_scoring_task UNIQUE (exchange_id, scorer, fingerprint);

ALTER TABLE ONLY public.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (id);

CREATE INDEX ix_calibration_made_at ON public.calibration USING btree (made_at);

CREATE INDEX ix_exchange_candidate ON public.exchange USING btree (started_at) WHERE (sampling_reason = 'candidate'::text);

CREATE INDEX ix_exchange_started_at ON public.exchange USING btree (started_at, route);

CREATE INDEX ix_exchange_text ON public.exchange USING btree (started_at) WHERE (erased_at IS NULL);

CREATE INDEX ix_exchange_unsampled ON public.exchange USING btree (started_at) WHERE (sampling_reason IS NULL);

CREATE INDEX ix_feedback_comment ON public.feedback USING btree (created_at) WHERE (comment IS NOT NULL);

CREATE INDEX ix_feedback_created_at ON public.feedback USING btree (created_at);

CREATE INDEX ix_feedback_exchange_id ON public.feedback USING btree (exchange_id);

CREATE INDEX ix_feedback_unconsidered ON public.feedback USING btree (created_at) WHERE (considered_at IS NULL);

CREATE INDEX ix_score_started_at ON public.score USING btree (started_at, scorer, service, route, fingerprint, value, label, sampling_probability);

CREATE INDEX ix_score_value ON public.score USING btree (value);

CREATE INDEX ix_scoring_task_candidate ON public.scoring_task USING btree (scorer, fingerprint, first_pending_at) WHERE ((state = 'pending'::text) AND (not_before IS NULL));

CREATE INDEX ix_scoring_task_lease_owner ON public.scoring_task USING btree (lease_owner) WHERE (lease_owner IS NOT NULL);

CREATE INDEX ix_scoring_task_open ON public.scoring_task USING btree (scorer, fingerprint, not_before, first_pending_at) WHERE (not_before IS NOT NULL);

CREATE INDEX ix_scoring_task_state ON public.scoring_task USING btree (state, reason);

CREATE INDEX ix_worker_seen_at ON public.worker USING btree (seen_at);
