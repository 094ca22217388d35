SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

CREATE TABLE public.alert (
    id text NOT NULL,
    key text NOT NULL,
    rule text NOT NULL,
    type text CONSTRAINT alert_kind_not_null NOT NULL,
    labels jsonb NOT NULL,
    state text NOT NULL,
    severity text NOT NULL,
    cause text,
    message text NOT NULL,
    fingerprint text,
    value double precision,
    threshold double precision,
    "window" double precision,
    onset timestamp with time zone,
    body jsonb NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    fired_at timestamp with time zone,
    resolved_at timestamp with time zone,
    evaluated_at timestamp with time zone NOT NULL,
    notified_at timestamp with time zone,
    acknowledged_at timestamp with time zone,
    acknowledged_by text,
    resolve_reason text
);

CREATE TABLE public.alert_event (
    id text NOT NULL,
    alert_id text NOT NULL,
    at timestamp with time zone NOT NULL,
    type text CONSTRAINT alert_event_what_not_null NOT NULL,
    before text,
    after text NOT NULL,
    detail jsonb NOT NULL
);

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
    sampling_key double precision CONSTRAINT exchange_draw_not_null NOT NULL,
    traced boolean NOT NULL,
    proxy double precision,
    sampling_probability double precision,
    sampling_reason text,
    capture_probability double precision DEFAULT '1'::double precision NOT NULL,
    proxy_probability double precision,
    erased_at timestamp with time zone,
    span_holder text
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
    claims integer CONSTRAINT scoring_task_attempts_not_null NOT NULL,
    first_pending_at timestamp with time zone NOT NULL,
    not_before timestamp with time zone,
    lease_owner text,
    lease_until timestamp with time zone,
    scored_as text,
    retries integer DEFAULT 0 CONSTRAINT scoring_task_tries_not_null NOT NULL
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

CREATE TABLE public.archived_day (
    day timestamp with time zone NOT NULL,
    location text NOT NULL,
    state text NOT NULL,
    removed_before timestamp with time zone NOT NULL,
    manifest jsonb NOT NULL,
    dimensions jsonb NOT NULL,
    has_stale_files boolean NOT NULL,
    has_lowest boolean,
    labels bigint,
    written_at timestamp with time zone NOT NULL,
    verified_at timestamp with time zone,
    removed_at timestamp with time zone
);

CREATE TABLE public.archived_lowest (
    dimension text NOT NULL,
    day timestamp with time zone NOT NULL,
    service text NOT NULL,
    route text NOT NULL,
    scorer text NOT NULL,
    fingerprint text NOT NULL,
    entries bytea NOT NULL
);

CREATE TABLE public.baseline (
    id bigint NOT NULL,
    service text NOT NULL,
    scorer text NOT NULL,
    fingerprint text NOT NULL,
    scope text NOT NULL,
    version integer NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    since timestamp with time zone NOT NULL,
    until timestamp with time zone NOT NULL,
    n bigint NOT NULL,
    mean double precision,
    deviation double precision,
    numbers jsonb NOT NULL,
    model text,
    prompt_version text,
    created_at timestamp with time zone NOT NULL,
    accepted_by text
);

CREATE SEQUENCE public.baseline_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.baseline_id_seq OWNED BY public.baseline.id;

CREATE TABLE public.budget (
    day text NOT NULL,
    requests bigint CONSTRAINT budget_calls_not_null NOT NULL,
    tokens double precision NOT NULL,
    usd double precision NOT NULL,
    selected bigint CONSTRAINT budget_picked_not_null NOT NULL
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

CREATE TABLE public.detector (
    rule text NOT NULL,
    service text NOT NULL,
    scorer text NOT NULL,
    parameters text NOT NULL,
    baseline_id bigint NOT NULL,
    state jsonb NOT NULL,
    log_evidence double precision,
    seen_at timestamp with time zone,
    row_version bigint NOT NULL
);

CREATE TABLE public.detector_input (
    id bigint CONSTRAINT arrival_id_not_null NOT NULL,
    service text CONSTRAINT arrival_service_not_null NOT NULL,
    route text CONSTRAINT arrival_route_not_null NOT NULL,
    scorer text CONSTRAINT arrival_scorer_not_null NOT NULL,
    fingerprint text CONSTRAINT arrival_fingerprint_not_null NOT NULL,
    exchange_id text CONSTRAINT arrival_exchange_id_not_null NOT NULL,
    value double precision CONSTRAINT arrival_value_not_null NOT NULL,
    is_zero boolean CONSTRAINT arrival_zero_not_null NOT NULL,
    arrived_at timestamp with time zone CONSTRAINT arrival_arrived_at_not_null NOT NULL
);

CREATE SEQUENCE public.detector_input_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.detector_input_id_seq OWNED BY public.detector_input.id;

CREATE TABLE public.feedback (
    id text NOT NULL,
    exchange_id text NOT NULL,
    score double precision NOT NULL,
    comment text,
    "user" text,
    created_at timestamp with time zone NOT NULL,
    considered_at timestamp with time zone
);

CREATE TABLE public.forwarded_request (
    id bigint NOT NULL,
    signal text NOT NULL,
    payload bytea NOT NULL,
    size integer NOT NULL,
    due_at double precision NOT NULL,
    owner text,
    trace_id text,
    span_id text,
    exchange_id text,
    attributes jsonb
);

CREATE SEQUENCE public.forwarded_request_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.forwarded_request_id_seq OWNED BY public.forwarded_request.id;

CREATE TABLE public.germane_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE public.history_run (
    id text NOT NULL,
    kind text NOT NULL,
    since timestamp with time zone NOT NULL,
    until timestamp with time zone NOT NULL,
    selection jsonb NOT NULL,
    partition_size integer NOT NULL,
    partitions integer NOT NULL,
    exchanges bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone
);

CREATE TABLE public.job (
    process text NOT NULL,
    name text NOT NULL,
    every double precision,
    runs jsonb NOT NULL
);

CREATE TABLE public.lease (
    name text NOT NULL,
    owner text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    cursor text,
    renewed_at timestamp with time zone
);

CREATE TABLE public.marker (
    id text CONSTRAINT mark_id_not_null NOT NULL,
    name text CONSTRAINT mark_name_not_null NOT NULL,
    service text CONSTRAINT mark_service_not_null NOT NULL,
    at timestamp with time zone CONSTRAINT mark_at_not_null NOT NULL,
    attributes jsonb CONSTRAINT mark_attributes_not_null NOT NULL
);

CREATE TABLE public.notification (
    id text NOT NULL,
    channel text NOT NULL,
    event_ids jsonb NOT NULL,
    payload jsonb NOT NULL,
    idempotency_key text NOT NULL,
    status text NOT NULL,
    attempt integer NOT NULL,
    next_attempt_at timestamp with time zone,
    lease_owner text,
    http_status integer,
    error text,
    created_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone
);

CREATE TABLE public.partition (
    run_id text NOT NULL,
    number integer NOT NULL,
    first_at timestamp with time zone NOT NULL,
    first_id text NOT NULL,
    last_at timestamp with time zone NOT NULL,
    last_id text NOT NULL,
    exchanges integer NOT NULL,
    state text NOT NULL,
    attempts integer NOT NULL,
    lease_owner text,
    lease_until timestamp with time zone,
    error text,
    scored integer NOT NULL,
    failed integer NOT NULL,
    skipped integer NOT NULL,
    cost double precision,
    checksum text NOT NULL,
    remaining jsonb
);

CREATE TABLE public.rate_limit (
    name text NOT NULL,
    arrival double precision NOT NULL,
    waited double precision NOT NULL,
    used_at timestamp with time zone NOT NULL
);

CREATE TABLE public.received_span (
    trace_id text NOT NULL,
    key text NOT NULL,
    is_log boolean NOT NULL,
    service text NOT NULL,
    scope text NOT NULL,
    payload bytea NOT NULL
);

CREATE TABLE public.received_trace (
    trace_id text NOT NULL,
    due_at double precision,
    deadline double precision NOT NULL,
    wait double precision NOT NULL,
    spans integer NOT NULL,
    size integer NOT NULL,
    dropped integer NOT NULL,
    owner text,
    finished_at double precision,
    span_keys bytea
);

CREATE TABLE public.rollup (
    span integer NOT NULL,
    dimension text NOT NULL,
    start timestamp with time zone NOT NULL,
    service text NOT NULL,
    route text NOT NULL,
    scorer text NOT NULL,
    fingerprint text NOT NULL,
    label text NOT NULL,
    n bigint NOT NULL,
    n_zero bigint NOT NULL,
    sum_w double precision CONSTRAINT rollup_w_not_null NOT NULL,
    sum_w_zero double precision CONSTRAINT rollup_w_zero_not_null NOT NULL,
    sum_w2 double precision CONSTRAINT rollup_ww_not_null NOT NULL,
    sum_w2_zero double precision CONSTRAINT rollup_ww_zero_not_null NOT NULL,
    sum_wy double precision CONSTRAINT rollup_wy_not_null NOT NULL,
    sum_wy2 double precision CONSTRAINT rollup_wyy_not_null NOT NULL,
    sum_w2y double precision CONSTRAINT rollup_wwy_not_null NOT NULL,
    sum_w2y2 double precision CONSTRAINT rollup_wwyy_not_null NOT NULL,
    sum_w_low double precision CONSTRAINT rollup_w_low_not_null NOT NULL,
    sum_w_noncommittal double precision CONSTRAINT rollup_w_noncommittal_not_null NOT NULL,
    n_with_x bigint CONSTRAINT rollup_n_x_not_null NOT NULL,
    sum_w_with_x double precision CONSTRAINT rollup_w_x_not_null NOT NULL,
    sum_w2_with_x double precision CONSTRAINT rollup_ww_x_not_null NOT NULL,
    sum_wx double precision CONSTRAINT rollup_wx_not_null NOT NULL,
    sum_wy_with_x double precision CONSTRAINT rollup_wy_x_not_null NOT NULL,
    sum_wx2 double precision CONSTRAINT rollup_wxx_not_null NOT NULL,
    sum_wxy double precision CONSTRAINT rollup_wxy_not_null NOT NULL,
    sum_wy2_with_x double precision CONSTRAINT rollup_wyy_x_not_null NOT NULL,
    sum_w2x double precision CONSTRAINT rollup_wwx_not_null NOT NULL,
    sum_w2y_with_x double precision CONSTRAINT rollup_wwy_x_not_null NOT NULL,
    sum_w2x2 double precision CONSTRAINT rollup_wwxx_not_null NOT NULL,
    sum_w2xy double precision CONSTRAINT rollup_wwxy_not_null NOT NULL,
    latest timestamp with time zone NOT NULL,
    histogram bytea NOT NULL
);

CREATE TABLE public.rollup_count (
    span integer NOT NULL,
    dimension text NOT NULL,
    start timestamp with time zone NOT NULL,
    service text NOT NULL,
    route text NOT NULL,
    scorer text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    count bigint NOT NULL
);

CREATE TABLE public.rollup_dimension (
    name text NOT NULL
);

CREATE TABLE public.rollup_dirty_hour (
    id bigint CONSTRAINT rollup_due_id_not_null NOT NULL,
    hour timestamp with time zone CONSTRAINT rollup_due_hour_not_null NOT NULL
);

CREATE SEQUENCE public.rollup_dirty_hour_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.rollup_dirty_hour_id_seq OWNED BY public.rollup_dirty_hour.id;

CREATE TABLE public.rollup_proxy (
    span integer NOT NULL,
    dimension text NOT NULL,
    start timestamp with time zone NOT NULL,
    service text NOT NULL,
    route text NOT NULL,
    n bigint NOT NULL,
    sum_v double precision CONSTRAINT rollup_proxy_v_not_null NOT NULL,
    sum_v2 double precision CONSTRAINT rollup_proxy_vv_not_null NOT NULL,
    sum_vx double precision CONSTRAINT rollup_proxy_vx_not_null NOT NULL,
    sum_vx2 double precision CONSTRAINT rollup_proxy_vxx_not_null NOT NULL,
    sum_v2x double precision CONSTRAINT rollup_proxy_vvx_not_null NOT NULL,
    sum_v2x2 double precision CONSTRAINT rollup_proxy_vvxx_not_null NOT NULL
);

CREATE TABLE public.saved_view (
    name text NOT NULL,
    path text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text
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

CREATE TABLE public.silence (
    id text NOT NULL,
    matchers jsonb NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    created_by text,
    comment text
);

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

CREATE TABLE public.unreadable_trace (
    trace_id text NOT NULL,
    service text NOT NULL,
    scope text NOT NULL,
    reason text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    sampled_at timestamp with time zone NOT NULL,
    spans jsonb NOT NULL,
    spans_omitted integer NOT NULL
);

CREATE TABLE public.watched_trace (
    hour timestamp with time zone NOT NULL,
    service text NOT NULL,
    scope text NOT NULL,
    outcome text NOT NULL,
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

ALTER TABLE ONLY public.baseline ALTER COLUMN id SET DEFAULT nextval('public.baseline_id_seq'::regclass);

ALTER TABLE ONLY public.calibration ALTER COLUMN id SET DEFAULT nextval('public.calibration_id_seq'::regclass);

ALTER TABLE ONLY public.detector_input ALTER COLUMN id SET DEFAULT nextval('public.detector_input_id_seq'::regclass);

ALTER TABLE ONLY public.forwarded_request ALTER COLUMN id SET DEFAULT nextval('public.forwarded_request_id_seq'::regclass);

ALTER TABLE ONLY public.rollup_dirty_hour ALTER COLUMN id SET DEFAULT nextval('public.rollup_dirty_hour_id_seq'::regclass);

ALTER TABLE ONLY public.score ALTER COLUMN id SET DEFAULT nextval('public.score_id_seq'::regclass);

ALTER TABLE ONLY public.scoring_task ALTER COLUMN id SET DEFAULT nextval('public.scoring_task_id_seq'::regclass);

INSERT INTO public.alert VALUES ('a1', 'f1814fed1cfb222e7804d941eb7c7ae5', 'drop', 'drop', '{"scorer": "relevancy", "service": "shop"}', 'firing', 'critical', 'refusals_rising', 'NUL �, half a pair � and "quotes"; DROP TABLE alert; 👨‍👩 üß', 'f1', 0.5, 0.7, 86400, '2026-01-31 16:00:00+00', '{"shifts": [{"name": "search", "since": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "before": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "dimension": "route"}], "current": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "details": {"said": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "contributors": []}, "baseline": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"]}', '2026-01-31 18:00:00+00', '2026-01-31 19:00:00+00', NULL, '2026-01-31 20:00:00+00', '2026-01-31 19:00:00+00', '2026-02-01 11:00:00+00', 'ann', NULL);
INSERT INTO public.alert VALUES ('a4', '282a802bbf82c1153ab30a0dcbf87627', 'no_data', 'no_data', '{"scorer": "faithfulness", "service": "shop"}', 'pending', 'warning', NULL, '', NULL, NULL, NULL, NULL, NULL, '{"shifts": [], "current": null, "details": {}, "baseline": null, "exchange_ids": []}', '2026-02-01 12:00:00+00', NULL, NULL, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL);
INSERT INTO public.alert VALUES ('a2', '17f5a8723dc7786040531aa016b8e47d', 'mean_threshold', 'mean_threshold', '{"route": "ask", "scorer": "relevancy", "service": "café"}', 'resolved', 'warning', 'retrieval_worse', 'worse', NULL, NULL, NULL, NULL, NULL, '{"shifts": [], "current": null, "details": {}, "baseline": null, "exchange_ids": []}', '2026-01-28 18:00:00+00', '2026-01-28 18:00:00+00', '2026-01-29 04:00:00+00', '2026-01-29 04:00:00+00', NULL, NULL, NULL, 'recovered');
INSERT INTO public.alert VALUES ('a3', '17f5a8723dc7786040531aa016b8e47d', 'mean_threshold', 'mean_threshold', '{"route": "ask", "scorer": "relevancy", "service": "café"}', 'recovering', 'warning', 'retrieval_worse', 'worse', NULL, NULL, NULL, NULL, NULL, '{"shifts": [], "current": null, "details": {}, "baseline": null, "exchange_ids": []}', '2026-02-01 03:00:00+00', '2026-02-01 03:00:00+00', NULL, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL);

INSERT INTO public.alert_event VALUES ('a1 pending', 'a1', '2026-01-31 18:00:00+00', 'pending', NULL, 'pending', '{}');
INSERT INTO public.alert_event VALUES ('a1 fired', 'a1', '2026-01-31 19:00:00+00', 'fired', 'pending', 'firing', '{"by": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß"}');
INSERT INTO public.alert_event VALUES ('a1 acknowledged', 'a1', '2026-02-01 11:00:00+00', 'acknowledged', 'firing', 'firing', '{"by": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß"}');
INSERT INTO public.alert_event VALUES ('a2 fired', 'a2', '2026-01-28 18:00:00+00', 'fired', NULL, 'firing', '{}');
INSERT INTO public.alert_event VALUES ('a4 pending', 'a4', '2026-02-01 12:00:00+00', 'pending', NULL, 'pending', '{}');
INSERT INTO public.alert_event VALUES ('a2 resolved', 'a2', '2026-01-29 04:00:00+00', 'resolved', 'firing', 'resolved', '{"by": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß"}');
INSERT INTO public.alert_event VALUES ('a3 fired', 'a3', '2026-02-01 03:00:00+00', 'fired', NULL, 'firing', '{}');
INSERT INTO public.alert_event VALUES ('a3 recovering', 'a3', '2026-02-01 12:00:00+00', 'recovering', 'firing', 'recovering', '{"by": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß"}');

INSERT INTO public.baseline VALUES (2, 'shop', 'relevancy', 'f1', '', 2, 'active', 'accepted', '2026-01-17 12:00:00+00', '2026-01-31 12:00:00+00', 2400, 0.7124999999999999, 0.25, '{"keep": 0.999, "since": "2026-01-17T12:00:00+00:00", "until": "2026-01-31T12:00:00+00:00", "pooled": ["about"], "routes": {"ask": {"n": 600, "mean": 0.7124999999999999, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.75, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}, "search": {"n": 600, "mean": 0.7124999999999999, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.75, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}, "(other)": {"n": 600, "mean": 0.7124999999999999, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.75, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}, "ask/{id}": {"n": 600, "mean": 0.7124999999999999, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.75, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}}, "scores_per_day": 160.0, "committed_per_day": 152.0}', 'gpt-4o-mini', '7', '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.baseline VALUES (1, 'shop', 'relevancy', 'f1', '', 1, 'superseded', 'imported', '2026-01-17 12:00:00+00', '2026-01-31 12:00:00+00', 2400, 0.8312499999999999, 0.25, '{"keep": 0.999, "since": "2026-01-17T12:00:00+00:00", "until": "2026-01-31T12:00:00+00:00", "pooled": ["about"], "routes": {"ask": {"n": 600, "mean": 0.8312499999999999, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.875, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}, "search": {"n": 600, "mean": 0.8312499999999999, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.875, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}, "(other)": {"n": 600, "mean": 0.8312499999999999, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.875, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}, "ask/{id}": {"n": 600, "mean": 0.8312499999999999, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.875, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}}, "scores_per_day": 160.0, "committed_per_day": 152.0}', NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.baseline VALUES (3, 'café', 'relevancy', 'f1', '', 1, 'active', 'first', '2026-01-17 12:00:00+00', '2026-01-31 12:00:00+00', 2400, 0.475, 0.25, '{"keep": 0.999, "since": "2026-01-17T12:00:00+00:00", "until": "2026-01-31T12:00:00+00:00", "pooled": ["about"], "routes": {"ask": {"n": 600, "mean": 0.475, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.5, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}, "search": {"n": 600, "mean": 0.475, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.5, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}, "(other)": {"n": 600, "mean": 0.475, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.5, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}, "ask/{id}": {"n": 600, "mean": 0.475, "committed": 570, "deviation": 0.25, "zero_rate": 0.05, "zero_wander": 0.0078125, "committed_mean": 0.5, "scores_per_day": 40.0, "committed_wander": 0.015625, "committed_per_day": 38.0, "committed_deviation": 0.125}}, "scores_per_day": 160.0, "committed_per_day": 152.0}', 'gpt-4o-mini', '7', '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.baseline VALUES (4, 'shop', 'relevancy', 'f1', '{"tenant": "acme*"}', 1, 'learning', 'first', '2026-02-01 11:00:00+00', '2026-02-14 00:00:00+00', 0, NULL, NULL, '{}', NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.baseline VALUES (5, 'café', 'faithfulness', 'f2', '', 1, 'learning', 'first', '2026-02-01 12:00:00+00', '2026-02-15 12:00:00+00', 0, NULL, NULL, '{}', NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.baseline VALUES (6, 'shop', 'faithfulness', 'f2 served', '', 1, 'learning', 'first', '2026-02-01 12:00:00+00', '2026-02-15 12:00:00+00', 0, NULL, NULL, '{}', NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.baseline VALUES (7, 'shop', 'relevancy', 'f1 served', '', 1, 'learning', 'judge_changed', '2026-02-01 12:00:00+00', '2026-02-15 12:00:00+00', 0, NULL, NULL, '{}', NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.baseline VALUES (8, 'shop', 'faithfulness', 'f2', '', 1, 'learning', 'first', '2026-02-01 12:00:00+00', '2026-02-15 12:00:00+00', 0, NULL, NULL, '{}', NULL, NULL, '2026-02-01 12:00:00+00', NULL);

INSERT INTO public.budget VALUES ('2026-01-31', 7, 700, 0.25, 0);
INSERT INTO public.budget VALUES ('2026-02-01', 4, 600, 1, 2);

INSERT INTO public.calibration VALUES (1, 'e', 'relevancy', 'f1', 0.07, 0.2, 400, '2026-02-01 12:00:00+00');

INSERT INTO public.detector VALUES ('drop', 'café', 'faithfulness', '6e55169b872d2f00', 5, '{"limiter": null, "affected": [], "compared": [], "detector": null, "new_routes": {}, "improvement": null, "active_fingerprint": {"votes": 20, "fingerprint": "f2"}, "improvement_proposed": false}', NULL, '2026-02-01 12:00:00+00', 1);
INSERT INTO public.detector VALUES ('drop', 'café', 'relevancy', '6e55169b872d2f00', 3, '{"limiter": {"users": {"hour": 0, "counts": {}}, "traffic": {"ask": [40.0, 1769947200.0], "search": [40.0, 0.0], "(other)": [40.0, 0.0], "ask/{id}": [40.0, 0.0]}}, "affected": [], "compared": [], "detector": {"firing": null, "streams": [{"logs": [[null, null, null, null, null, null, null, null], [0.3078491091764507, 0.41682178192824393, 0.5549348546326947, 0.7247203180897742, 1.0090061738523255, 1.2528079404869796, 1.5231135098140698, 1.8156095043689722]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.3078491091764507, 0.41682178192824393, 0.5549348546326947, 0.7247203180897742, 1.0090061738523255, 1.2528079404869796, 1.5231135098140698, 1.8156095043689722]], "route": null, "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]], "numbers": "3341b13415b266b8"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "(other)", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "079750997e92a9ed"}, {"logs": [[null, null, null, null, null, null, null, null], [0.3512258902841417, 0.4722826773322464, 0.6237641901680251, 0.8074536972498126, 1.0090061738523255, 1.2528079404869796, 1.5231135098140698, 1.8156095043689722]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.3512258902841417, 0.4722826773322464, 0.6237641901680251, 0.8074536972498126, 1.0090061738523255, 1.2528079404869796, 1.5231135098140698, 1.8156095043689722]], "route": "ask", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]], "numbers": "079750997e92a9ed"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "ask/{id}", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "079750997e92a9ed"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "search", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "079750997e92a9ed"}], "threshold": 10.975071168816319}, "new_routes": {}, "improvement": {"firing": null, "streams": [{"logs": [[-0.11637133554508351, -0.17188621762323206, -0.2552912584339207, -0.3805702148470409, -2.201363819920487, -2.3025850762942324, -2.3025850762942324, -2.3025850762942324], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "rises": [[-0.11637133554508351, -0.17188621762323206, -0.2552912584339207, -0.3805702148470409, -2.201363819920487, -2.3025850762942324, -2.3025850762942324, -2.3025850762942324], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "route": null, "starts": [[1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]], "numbers": "3341b13415b266b8"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "(other)", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "0f4ee96277e5b5fc"}, {"logs": [[-0.2050309410081861, -0.30816687311134694, -0.46945486872431025, -0.7260759696509361, -2.201363819920487, -2.3025850762942324, -2.3025850762942324, -2.3025850762942324], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "rises": [[-0.2050309410081861, -0.30816687311134694, -0.46945486872431025, -0.7260759696509361, -2.201363819920487, -2.3025850762942324, -2.3025850762942324, -2.3025850762942324], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "route": "ask", "starts": [[1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]], "numbers": "0f4ee96277e5b5fc"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "ask/{id}", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "0f4ee96277e5b5fc"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "search", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "0f4ee96277e5b5fc"}], "threshold": 10.975071168816319}, "active_fingerprint": {"votes": 20, "fingerprint": "f1"}, "improvement_proposed": false}', -0.5157362675392085, '2026-02-01 12:00:00+00', 1);
INSERT INTO public.detector VALUES ('drop', 'shop', 'faithfulness', '6e55169b872d2f00', 6, '{"limiter": null, "affected": [], "compared": [], "detector": null, "new_routes": {}, "improvement": null, "active_fingerprint": {"votes": 19, "fingerprint": "f2 served"}, "improvement_proposed": false}', NULL, '2026-02-01 12:00:00+00', 1);
INSERT INTO public.detector VALUES ('drop', 'shop', 'relevancy', '6e55169b872d2f00', 2, '{"limiter": {"users": {"hour": 491652, "counts": {"40a56ec5": 1}}, "traffic": {"ask": [40.0, 0.0], "search": [40.0, 0.0], "(other)": [40.0, 0.0], "ask/{id}": [40.0, 1769947200.0]}}, "affected": [null], "compared": ["ask/{id}"], "detector": {"firing": {"onset": 1769875200.0, "recovery": [[8.289939906827271, 3.656553058633483, 1.351442737114395], [10.442487031763273, 5.267270919864546, 2.6912459511676996]], "contributors": [{"half": "zero", "route": "search"}, {"half": "zero", "route": null}]}, "streams": [{"logs": [[null, null, null, null, null, null, null, null], [3.7018710864753333, 4.374572961909647, 5.281179936844106, 6.457264066149513, 8.525208058684099, 10.358873379844663, 12.430844411508511, 14.702494599751594]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [2.462792873411605, 3.334574255425952, 4.439478837061557, 5.797762544718195, 8.072049390818604, 10.022463523895837, 12.18490807851256, 14.524876034951776]], "route": null, "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0]], "numbers": "396c07aba51b4bf7"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "(other)", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "444b7d8a3baa0b90"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "ask", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "444b7d8a3baa0b90"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "ask/{id}", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "444b7d8a3baa0b90"}, {"logs": [[null, null, null, null, null, null, null, null], [3.9645051951316637, 4.732175959975329, 5.750990849651401, 7.048639584497543, 8.525208058684099, 10.358873379844663, 12.430844411508511, 14.702494599751594]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [2.809807122273134, 3.77826141865797, 4.9901135213442, 6.4596295779985, 8.072049390818604, 10.022463523895837, 12.18490807851256, 14.524876034951776]], "route": "search", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0]], "numbers": "444b7d8a3baa0b90"}], "threshold": 10.975071168816319}, "new_routes": {}, "improvement": {"firing": null, "streams": [{"logs": [[-0.10850874379723786, -0.1600138102437089, -0.23710264656142266, -0.35227777635422614, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "rises": [[-0.10850874379723786, -0.1600138102437089, -0.23710264656142266, -0.35227777635422614, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "route": null, "starts": [[1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]], "numbers": "396c07aba51b4bf7"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "(other)", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "98c77391dfb5a028"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "ask", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "98c77391dfb5a028"}, {"logs": [[-0.19583516439479173, -0.2936945756428105, -0.4457901448515386, -0.6851499110305992, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "rises": [[-0.19583516439479173, -0.2936945756428105, -0.4457901448515386, -0.6851499110305992, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "route": "ask/{id}", "starts": [[1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]], "numbers": "98c77391dfb5a028"}, {"logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "route": "search", "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "numbers": "98c77391dfb5a028"}], "threshold": 10.975071168816319}, "active_fingerprint": {"votes": 20, "fingerprint": "f1"}, "improvement_proposed": false}', 11.125818064661248, '2026-02-01 12:00:00+00', 2);

INSERT INTO public.detector_input VALUES (7, 'café', 'ask', 'faithfulness', 'f2', '00000000000000000000000000000004', 0.5, false, '2026-02-01 12:00:00+00');
INSERT INTO public.detector_input VALUES (8, 'café', 'ask', 'relevancy', 'f1', '00000000000000000000000000000004', 0.5, false, '2026-02-01 12:00:00+00');

INSERT INTO public.exchange VALUES ('0000000000000000000000000000000b', '00000000000000000000000000000006', '000000000000000b', 'shop', 'search', 'two
lines	and   a separator', '10: two
lines	and   a separator', '[{"id": "page 10", "text": "two\nlines\tand   a separator", "score": 0.25}]', '[]', 'gpt-4o-mini', '7', NULL, NULL, '{"seats": 10, "share": 1.25, "trial": false, "tenant": "acme", "two\nlines\tand   a se": "two\nlines\tand   a separator"}', 'ok', NULL, '2026-02-01 01:59:59.98999+00', 0.625, 0.34375, false, NULL, NULL, NULL, 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000c', '00000000000000000000000000000006', '000000000000000c', 'shop', 'ask/{id}', 'السعر 👨‍👩‍👧 üß', '11: السعر 👨‍👩‍👧 üß', '[{"id": "page 11", "text": "السعر 👨‍👩‍👧 üß", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[{"role": "user", "content": "السعر 👨‍👩‍👧 üß"}]', NULL, '7', 's2', 'u3', '{"seats": 11, "share": 1.375, "trial": true, "tenant": "acme", "السعر 👨‍👩‍👧 üß": "السعر 👨‍👩‍👧 üß"}', 'error', 'ValueError: السعر 👨‍👩‍👧 üß', '2026-02-01 00:59:59.988989+00', 0.6875, 0.375, true, NULL, NULL, NULL, 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000001', '00000000000000000000000000000001', '0000000000000001', 'café', 'ask', 'How do I pay?', '0: How do I pay?', '[]', '[]', 'gpt-4o-mini', NULL, NULL, NULL, '{"seats": 0, "share": 0.0, "trial": false, "tenant": "acme", "How do I pay?": "How do I pay?"}', 'ok', NULL, '2026-02-01 12:00:00+00', 0, 0.03125, false, NULL, 0.5, 'sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000003', '00000000000000000000000000000002', '0000000000000003', 'shop', 'ask/{id}', 'two
lines	and   a separator', '2: two
lines	and   a separator', '[{"id": "page 2", "text": "two\nlines\tand   a separator", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[]', 'gpt-4o-mini', '7', 's2', 'u2', '{"seats": 2, "share": 0.25, "trial": false, "tenant": "acme", "two\nlines\tand   a se": "two\nlines\tand   a separator"}', 'ok', NULL, '2026-02-01 09:59:59.997998+00', 0.125, 0.09375, false, NULL, 0.5, 'sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000004', '00000000000000000000000000000002', '0000000000000004', 'café', 'ask', 'السعر 👨‍👩‍👧 üß', '3: السعر 👨‍👩‍👧 üß', '[]', '[{"role": "user", "content": "السعر 👨‍👩‍👧 üß"}]', NULL, '7', 's0', 'u3', '{"seats": 3, "share": 0.375, "trial": true, "tenant": "acme", "السعر 👨‍👩‍👧 üß": "السعر 👨‍👩‍👧 üß"}', 'error', 'ValueError: السعر 👨‍👩‍👧 üß', '2026-02-01 08:59:59.996997+00', 0.1875, 0.125, true, NULL, 0.5, 'sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000005', '00000000000000000000000000000003', '0000000000000005', 'shop', 'search', 'NUL � and half a pair �', '4: NUL � and half a pair �', '[{"id": "page 4", "text": "NUL � and half a pair �", "score": 0.25}]', '[]', 'gpt-4o-mini', NULL, 's1', 'u0', '{"seats": 4, "share": 0.5, "trial": false, "tenant": "acme", "NUL � and half a pai": "NUL � and half a pair �"}', 'ok', NULL, '2026-02-01 07:59:59.995996+00', 0.25, 0.15625, false, NULL, 0.5, 'sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000009', '00000000000000000000000000000005', '0000000000000009', 'shop', 'ask/{id}', 'How do I pay?', '8: How do I pay?', '[{"id": "page 8", "text": "How do I pay?", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[]', 'gpt-4o-mini', NULL, 's2', 'u0', '{"seats": 8, "share": 1.0, "trial": false, "tenant": "acme", "How do I pay?": "How do I pay?"}', 'ok', NULL, '2026-02-01 03:59:59.991992+00', 0.5, 0.28125, false, NULL, 0.5, 'sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000a', '00000000000000000000000000000005', '000000000000000a', 'café', 'ask', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', NULL, '[]', '[{"role": "user", "content": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}]', NULL, '7', 's0', 'u1', '{"seats": 9, "share": 1.125, "trial": true, "tenant": "acme", "It''s \"quoted\", 100 %": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}', 'ok', NULL, '2026-02-01 02:59:59.990991+00', 0.5625, 0.3125, true, NULL, 0.5, 'sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000006', '00000000000000000000000000000003', '0000000000000006', 'shop', 'ask/{id}', '', '5: ', '[{"id": "page 5", "text": "", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[{"role": "user", "content": ""}]', NULL, '7', NULL, NULL, '{"": "", "seats": 5, "share": 0.625, "trial": true, "tenant": "acme"}', 'ok', NULL, '2026-02-01 06:59:59.994995+00', 0.3125, 0.1875, true, NULL, 0.5, 'not_sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000007', '00000000000000000000000000000004', '0000000000000007', 'café', 'ask', '<script>alert(1)</script>', '6: <script>alert(1)</script>', '[]', '[]', 'gpt-4o-mini', '7', 's0', 'u2', '{"seats": 6, "share": 0.75, "trial": false, "tenant": "acme", "<script>alert(1)</sc": "<script>alert(1)</script>"}', 'ok', NULL, '2026-02-01 05:59:59.993994+00', 0.375, 0.21875, false, NULL, 0.5, 'sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000010', '00000000000000000000000000000008', '0000000000000010', 'café', 'ask', 'long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '15: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '[]', '[{"role": "user", "content": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}]', NULL, '7', NULL, NULL, '{"seats": 15, "share": 1.875, "trial": true, "tenant": "acme", "long long long long ": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}', 'error', 'ValueError: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '2026-01-31 20:59:59.984985+00', 0.9375, 0.5, true, NULL, NULL, 'budget', 0.75, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000011', '00000000000000000000000000000009', '0000000000000011', 'shop', 'search', 'How do I pay?', '16: How do I pay?', '[{"id": "page 16", "text": "How do I pay?", "score": 0.25}]', '[]', 'gpt-4o-mini', NULL, 's1', 'u0', '{"seats": 16, "share": 2.0, "trial": false, "tenant": "acme", "How do I pay?": "How do I pay?"}', 'ok', NULL, '2026-01-31 19:59:59.983984+00', 1, 0.53125, false, NULL, 0.75, 'always', 0.75, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000002', '00000000000000000000000000000001', '0000000000000002', 'shop', 'search', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '1: It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '[{"id": "page 1", "text": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */", "score": 0.25}]', '[{"role": "user", "content": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}]', NULL, '7', 's1', 'u1', '{"seats": 1, "share": 0.125, "trial": true, "tenant": "acme", "It''s \"quoted\", 100 %": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}', 'ok', NULL, '2026-02-01 10:59:59.998999+00', 0.0625, 0.0625, true, NULL, 0.5, 'sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000008', '00000000000000000000000000000004', '0000000000000008', 'shop', 'search', 'long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '7: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '[{"id": "page 7", "text": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ", "score": 0.25}]', '[{"role": "user", "content": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}]', NULL, '7', 's1', 'u3', '{"seats": 7, "share": 0.875, "trial": true, "tenant": "acme", "long long long long ": "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}', 'error', 'ValueError: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ', '2026-02-01 04:59:59.992993+00', 0.4375, 0.25, true, NULL, 0.5, 'sampled', 1, NULL, NULL, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000d', '00000000000000000000000000000007', '000000000000000d', 'café', 'ask', 'NUL � and half a pair �', '12: NUL � and half a pair �', '[]', '[]', 'gpt-4o-mini', NULL, 's0', 'u0', '{"seats": 12, "share": 1.5, "trial": false, "tenant": "acme", "NUL � and half a pai": "NUL � and half a pair �"}', 'ok', NULL, '2026-01-31 23:59:59.987988+00', 0.75, 0.40625, false, 0.25, NULL, 'candidate', 0.75, 0.5, NULL, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000e', '00000000000000000000000000000007', '000000000000000e', 'shop', 'search', '', '13: ', '[{"id": "page 13", "text": "", "score": 0.25}]', '[{"role": "user", "content": ""}]', NULL, '7', 's1', 'u1', '{"": "", "seats": 13, "share": 1.625, "trial": true, "tenant": "acme"}', 'ok', NULL, '2026-01-31 22:59:59.986987+00', 0.8125, 0.4375, true, 0.25, 0.375, 'suspicion', 0.75, 0.5, NULL, NULL);
INSERT INTO public.exchange VALUES ('0000000000000000000000000000000f', '00000000000000000000000000000008', '000000000000000f', 'shop', 'ask/{id}', '<script>alert(1)</script>', '14: <script>alert(1)</script>', '[{"id": "page 14", "text": "<script>alert(1)</script>", "score": 0.25}, {"id": null, "text": "", "score": null}]', '[]', 'gpt-4o-mini', '7', 's2', 'u2', '{"seats": 14, "share": 1.75, "trial": false, "tenant": "acme", "<script>alert(1)</sc": "<script>alert(1)</script>"}', 'ok', NULL, '2026-01-31 21:59:59.985986+00', 0.875, 0.46875, false, 0.25, 0.125, 'not_sampled', 0.75, 0.5, NULL, NULL);
INSERT INTO public.exchange VALUES ('00000000000000000000000000000012', '00000000000000000000000000000009', '0000000000000012', 'shop', 'ask/{id}', NULL, NULL, '[]', '[]', NULL, '7', 's2', 'u1', '{"seats": 17, "share": 2.125, "trial": true, "tenant": "acme", "It''s \"quoted\", 100 %": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}', 'ok', NULL, '2026-01-31 18:59:59.982983+00', 1.0625, 0.5625, true, -0.5, 0.75, 'always', 0.75, 1, '2026-02-01 12:00:00+00', NULL);

INSERT INTO public.feedback VALUES ('1', '11111111111111111111111111111111', 0.25, 'السعر 👨‍👩‍👧 üß', 'u1', '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.feedback VALUES ('9', '99999999999999999999999999999999', 0.25, 'السعر 👨‍👩‍👧 üß', 'u1', '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.feedback VALUES ('2', '00000000000000000000000000000002', 0.25, 'السعر 👨‍👩‍👧 üß', 'u1', '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.feedback VALUES ('16', '00000000000000000000000000000011', 0, 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', 'u2', '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00');

INSERT INTO public.germane_version VALUES ('0010');

INSERT INTO public.job VALUES ('idle', 'watch', 2, '[[1769947198000, 250], [1769947200000, 1500, "NUL � and half a pair �"]]');
INSERT INTO public.job VALUES ('idle', 'save', NULL, '[[1769947198000, 250]]');

INSERT INTO public.lease VALUES ('sampler', 'someone', '2026-02-01 13:00:00+00', 'the first interval', '2026-02-01 12:00:00+00');
INSERT INTO public.lease VALUES ('watcher', 'someone', '2026-02-01 13:00:00+00', NULL, '2026-02-01 12:00:00+00');

INSERT INTO public.marker VALUES ('1', 'index v42', 'shop', '2026-02-01 03:00:00+00', '{"by": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß"}');
INSERT INTO public.marker VALUES ('2', 'NUL �, half a pair � and "quotes"; DROP TABLE alert; 👨‍👩 üß', 'café', '2026-02-01 12:00:00+00', '{}');

INSERT INTO public.notification VALUES ('n2', 'oncall', '["a1 fired"]', '{"type": "escalated", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "cause": "refusals_rising", "onset": "2026-01-31T16:00:00+00:00", "state": "firing", "value": 0.5, "labels": {"scorer": "relevancy", "service": "shop"}, "shifts": [{"name": "search", "since": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "before": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "dimension": "route"}], "window": 86400.0, "current": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "details": {"said": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "contributors": []}, "message": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "baseline": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "fired_at": "2026-01-31T19:00:00+00:00", "severity": "critical", "starts_at": "2026-01-31T18:00:00+00:00", "threshold": 0.7, "fingerprint": "f1", "notified_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "resolve_reason": null, "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann"}]}', 'key of n2', 'waiting', 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.notification VALUES ('n3', 'slack', '["a1 fired"]', '{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "cause": "refusals_rising", "onset": "2026-01-31T16:00:00+00:00", "state": "firing", "value": 0.5, "labels": {"scorer": "relevancy", "service": "shop"}, "shifts": [{"name": "search", "since": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "before": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "dimension": "route"}], "window": 86400.0, "current": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "details": {"said": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "contributors": []}, "message": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "baseline": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "fired_at": "2026-01-31T19:00:00+00:00", "severity": "critical", "starts_at": "2026-01-31T18:00:00+00:00", "threshold": 0.7, "fingerprint": "f1", "notified_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "resolve_reason": null, "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann"}]}', 'key of n3', 'waiting', 1, '2026-02-01 13:00:00+00', 'away', NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.notification VALUES ('n4', 'hook', '["a1 fired"]', '{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "cause": "refusals_rising", "onset": "2026-01-31T16:00:00+00:00", "state": "firing", "value": 0.5, "labels": {"scorer": "relevancy", "service": "shop"}, "shifts": [{"name": "search", "since": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "before": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "dimension": "route"}], "window": 86400.0, "current": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "details": {"said": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "contributors": []}, "message": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "baseline": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "fired_at": "2026-01-31T19:00:00+00:00", "severity": "critical", "starts_at": "2026-01-31T18:00:00+00:00", "threshold": 0.7, "fingerprint": "f1", "notified_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "resolve_reason": null, "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann"}]}', 'key of n4', 'sent', 1, NULL, NULL, 200, NULL, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00');
INSERT INTO public.notification VALUES ('n5', 'pager', '["a1 fired"]', '{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "cause": "refusals_rising", "onset": "2026-01-31T16:00:00+00:00", "state": "firing", "value": 0.5, "labels": {"scorer": "relevancy", "service": "shop"}, "shifts": [{"name": "search", "since": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "before": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "dimension": "route"}], "window": 86400.0, "current": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "details": {"said": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "contributors": []}, "message": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "baseline": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "fired_at": "2026-01-31T19:00:00+00:00", "severity": "critical", "starts_at": "2026-01-31T18:00:00+00:00", "threshold": 0.7, "fingerprint": "f1", "notified_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "resolve_reason": null, "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann"}]}', 'key of n5', 'undelivered', 1, NULL, NULL, 400, 'NUL �, half a pair � and "quotes"; DROP TABLE alert; 👨‍👩 üß', '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00');
INSERT INTO public.notification VALUES ('n6', 'mail', '["a1 fired"]', '{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "cause": "refusals_rising", "onset": "2026-01-31T16:00:00+00:00", "state": "firing", "value": 0.5, "labels": {"scorer": "relevancy", "service": "shop"}, "shifts": [{"name": "search", "since": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "before": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "dimension": "route"}], "window": 86400.0, "current": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "details": {"said": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "contributors": []}, "message": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "baseline": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "fired_at": "2026-01-31T19:00:00+00:00", "severity": "critical", "starts_at": "2026-01-31T18:00:00+00:00", "threshold": 0.7, "fingerprint": "f1", "notified_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "resolve_reason": null, "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann"}]}', 'key of n6', 'waiting', 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.notification VALUES ('n1', 'oncall', '["a1 fired"]', '{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "cause": "refusals_rising", "onset": "2026-01-31T16:00:00+00:00", "state": "firing", "value": 0.5, "labels": {"scorer": "relevancy", "service": "shop"}, "shifts": [{"name": "search", "since": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "before": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "dimension": "route"}], "window": 86400.0, "current": {"n": 200, "mean": 0.5, "interval": [0.4, 0.6]}, "details": {"said": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "contributors": []}, "message": "NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß", "baseline": {"n": 2400, "mean": 0.75, "interval": [0.74, 0.76]}, "fired_at": "2026-01-31T19:00:00+00:00", "severity": "critical", "starts_at": "2026-01-31T18:00:00+00:00", "threshold": 0.7, "fingerprint": "f1", "notified_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "resolve_reason": null, "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann"}]}', 'key of n1', 'waiting', 1, '2026-02-01 12:00:05+00', NULL, 503, 'status 503', '2026-02-01 12:00:00+00', NULL);

INSERT INTO public.rate_limit VALUES ('requests', 1769947201, 0, '2026-02-01 12:00:00+00');
INSERT INTO public.rate_limit VALUES ('tokens', 1769947200.9, 0, '2026-02-01 12:00:00+00');

INSERT INTO public.rollup VALUES (3600, '', '2026-02-01 08:00:00+00', 'café', '', 'faithfulness', 'f2', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (3600, '', '2026-02-01 08:00:00+00', 'café', '', 'relevancy', 'f1', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (3600, 'route', '2026-02-01 08:00:00+00', 'café', 'ask', 'faithfulness', 'f2', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (3600, 'route', '2026-02-01 08:00:00+00', 'café', 'ask', 'relevancy', 'f1', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (3600, 'attributes.trial', '2026-02-01 08:00:00+00', 'café', 'ask', 'faithfulness', 'f2', 'true', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (3600, 'attributes.trial', '2026-02-01 08:00:00+00', 'café', 'ask', 'relevancy', 'f1', 'true', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (3600, 'model', '2026-02-01 08:00:00+00', 'café', 'ask', 'faithfulness', 'f2', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (3600, 'model', '2026-02-01 08:00:00+00', 'café', 'ask', 'relevancy', 'f1', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (3600, '', '2026-02-01 01:00:00+00', 'shop', '', 'mine', 'external', '', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (3600, 'route', '2026-02-01 01:00:00+00', 'shop', 'search', 'mine', 'external', '', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (3600, 'attributes.trial', '2026-02-01 01:00:00+00', 'shop', 'search', 'mine', 'external', 'false', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (3600, 'model', '2026-02-01 01:00:00+00', 'shop', 'search', 'mine', 'external', 'gpt-4o-mini', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (86400, '', '2026-02-01 00:00:00+00', 'café', '', 'faithfulness', 'f2', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'mine', 'external', '', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'search', 'mine', 'external', '', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (86400, '', '2026-02-01 00:00:00+00', 'café', '', 'relevancy', 'f1', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'café', 'ask', 'relevancy', 'f1', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'café', 'ask', 'faithfulness', 'f2', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (86400, 'attributes.trial', '2026-02-01 00:00:00+00', 'café', 'ask', 'relevancy', 'f1', 'true', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (86400, 'attributes.trial', '2026-02-01 00:00:00+00', 'café', 'ask', 'faithfulness', 'f2', 'true', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (86400, 'attributes.trial', '2026-02-01 00:00:00+00', 'shop', 'search', 'mine', 'external', 'false', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (86400, 'model', '2026-02-01 00:00:00+00', 'café', 'ask', 'relevancy', 'f1', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (86400, 'model', '2026-02-01 00:00:00+00', 'café', 'ask', 'faithfulness', 'f2', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (86400, 'model', '2026-02-01 00:00:00+00', 'shop', 'search', 'mine', 'external', 'gpt-4o-mini', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (3600, '', '2026-01-31 18:00:00+00', 'shop', '', 'faithfulness', 'f2', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (3600, '', '2026-01-31 18:00:00+00', 'shop', '', 'relevancy', 'f1', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (3600, 'route', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'f2', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (3600, 'route', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'f1', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (3600, 'attributes.trial', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'f2', 'true', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (3600, 'attributes.trial', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'f1', 'true', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (3600, 'model', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'f2', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (3600, 'model', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'f1', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'relevancy', 'f1', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'f1', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'f2', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'faithfulness', 'f2', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (86400, 'attributes.trial', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'f1', 'true', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (86400, 'attributes.trial', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'f2', 'true', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (86400, 'model', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'f1', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (86400, 'model', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'f2', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'f2', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'faithfulness', 'f2', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'mine', 'external', '', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'relevancy', 'f1', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'relevancy', 'f1', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'faithfulness', 'f2', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'mine', 'external', '', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'relevancy', 'f1', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'faithfulness', 'f2', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'f1', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (604800, 'attributes.trial', '2026-01-29 00:00:00+00', 'café', 'ask', 'faithfulness', 'f2', 'true', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (604800, 'attributes.trial', '2026-01-29 00:00:00+00', 'café', 'ask', 'relevancy', 'f1', 'true', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (604800, 'attributes.trial', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'f1', 'true', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (604800, 'attributes.trial', '2026-01-29 00:00:00+00', 'shop', 'search', 'mine', 'external', 'false', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (604800, 'attributes.trial', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'f2', 'true', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (604800, 'model', '2026-01-29 00:00:00+00', 'café', 'ask', 'faithfulness', 'f2', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');
INSERT INTO public.rollup VALUES (604800, 'model', '2026-01-29 00:00:00+00', 'shop', 'search', 'mine', 'external', 'gpt-4o-mini', 1, 0, 1, 0, 1, 0, -0.5, 0.25, -0.5, 0.25, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 01:59:59.98999+00', '\x00000000000000f03f');
INSERT INTO public.rollup VALUES (604800, 'model', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'f1', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (604800, 'model', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'f2', '', 1, 0, 1.3333333333333333, 0, 1.7777777777777777, 0, 1.6666666666666665, 2.083333333333333, 2.2222222222222223, 2.7777777777777777, 0, 0, 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 1.6666666666666665, 0.3333333333333333, -0.8333333333333333, 2.083333333333333, -0.8888888888888888, 2.2222222222222223, 0.4444444444444444, -1.1111111111111112, '2026-01-31 18:59:59.982983+00', '\x63555555555555f53f');
INSERT INTO public.rollup VALUES (604800, 'model', '2026-01-29 00:00:00+00', 'café', 'ask', 'relevancy', 'f1', '', 1, 0, 2, 0, 4, 0, 1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-02-01 08:59:59.996997+00', '\x320000000000000040');

INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 08:00:00+00', 'café', '', 'faithfulness', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 08:00:00+00', 'café', '', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 08:00:00+00', 'café', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 08:00:00+00', 'café', '', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 08:00:00+00', 'café', '', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 08:00:00+00', 'café', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 08:00:00+00', 'café', 'ask', 'faithfulness', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 08:00:00+00', 'café', 'ask', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 08:00:00+00', 'café', 'ask', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 08:00:00+00', 'café', 'ask', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 08:00:00+00', 'café', 'ask', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 08:00:00+00', 'café', 'ask', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 07:00:00+00', 'shop', '', 'faithfulness', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 07:00:00+00', 'shop', '', 'faithfulness', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 07:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 07:00:00+00', 'shop', '', 'relevancy', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 07:00:00+00', 'shop', '', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 07:00:00+00', 'shop', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 07:00:00+00', 'shop', 'search', 'faithfulness', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 07:00:00+00', 'shop', 'search', 'faithfulness', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 07:00:00+00', 'shop', 'search', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 07:00:00+00', 'shop', 'search', 'relevancy', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 07:00:00+00', 'shop', 'search', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 07:00:00+00', 'shop', 'search', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 06:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 06:00:00+00', 'shop', '', 'faithfulness', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 06:00:00+00', 'shop', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 06:00:00+00', 'shop', '', 'relevancy', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 06:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 06:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 06:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 06:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 05:00:00+00', 'café', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 05:00:00+00', 'café', '', 'faithfulness', 'skipped', 'missing_input', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 05:00:00+00', 'café', '', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 05:00:00+00', 'café', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 05:00:00+00', 'café', 'ask', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 05:00:00+00', 'café', 'ask', 'faithfulness', 'skipped', 'missing_input', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 05:00:00+00', 'café', 'ask', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 05:00:00+00', 'café', 'ask', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 04:00:00+00', 'shop', '', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 04:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 04:00:00+00', 'shop', '', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 04:00:00+00', 'shop', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 04:00:00+00', 'shop', 'search', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 04:00:00+00', 'shop', 'search', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 04:00:00+00', 'shop', 'search', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 04:00:00+00', 'shop', 'search', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 03:00:00+00', 'shop', '', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 03:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 03:00:00+00', 'shop', '', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 03:00:00+00', 'shop', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 03:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 03:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 03:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 03:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 02:00:00+00', 'café', '', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 02:00:00+00', 'café', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 02:00:00+00', 'café', '', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 02:00:00+00', 'café', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 02:00:00+00', 'café', 'ask', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 02:00:00+00', 'café', 'ask', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 02:00:00+00', 'café', 'ask', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 02:00:00+00', 'café', 'ask', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 01:00:00+00', 'shop', '', 'mine', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-02-01 01:00:00+00', 'shop', '', 'mine', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 01:00:00+00', 'shop', 'search', 'mine', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-02-01 01:00:00+00', 'shop', 'search', 'mine', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'café', '', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'café', '', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'café', '', 'faithfulness', 'seen', '', 3);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'café', '', 'faithfulness', 'skipped', 'missing_input', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'café', '', 'relevancy', 'pending', '', 2);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'café', '', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'café', '', 'relevancy', 'seen', '', 3);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'faithfulness', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'faithfulness', 'pending', '', 2);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 4);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'faithfulness', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'mine', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'mine', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'relevancy', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'relevancy', 'pending', '', 2);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'relevancy', 'seen', '', 4);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-02-01 00:00:00+00', 'shop', '', 'relevancy', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'café', 'ask', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'café', 'ask', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'café', 'ask', 'faithfulness', 'seen', '', 3);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'café', 'ask', 'faithfulness', 'skipped', 'missing_input', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'café', 'ask', 'relevancy', 'pending', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'café', 'ask', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'café', 'ask', 'relevancy', 'seen', '', 3);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'search', 'faithfulness', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'search', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'search', 'faithfulness', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'search', 'mine', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'search', 'mine', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'search', 'relevancy', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'search', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-02-01 00:00:00+00', 'shop', 'search', 'relevancy', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 23:00:00+00', 'café', '', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 23:00:00+00', 'café', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 23:00:00+00', 'café', '', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 23:00:00+00', 'café', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 23:00:00+00', 'café', 'ask', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 23:00:00+00', 'café', 'ask', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 23:00:00+00', 'café', 'ask', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 23:00:00+00', 'café', 'ask', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 22:00:00+00', 'shop', '', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 22:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 22:00:00+00', 'shop', '', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 22:00:00+00', 'shop', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 22:00:00+00', 'shop', 'search', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 22:00:00+00', 'shop', 'search', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 22:00:00+00', 'shop', 'search', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 22:00:00+00', 'shop', 'search', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 21:00:00+00', 'shop', '', 'faithfulness', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 21:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 21:00:00+00', 'shop', '', 'faithfulness', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 21:00:00+00', 'shop', '', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 21:00:00+00', 'shop', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 21:00:00+00', 'shop', '', 'relevancy', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 21:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 21:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 21:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 21:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 21:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 21:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 20:00:00+00', 'café', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 20:00:00+00', 'café', '', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 20:00:00+00', 'café', '', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 20:00:00+00', 'café', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 20:00:00+00', 'café', '', 'relevancy', 'skipped', 'budget', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 20:00:00+00', 'café', 'ask', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 20:00:00+00', 'café', 'ask', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 20:00:00+00', 'café', 'ask', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 20:00:00+00', 'café', 'ask', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 20:00:00+00', 'café', 'ask', 'relevancy', 'skipped', 'budget', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 19:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 19:00:00+00', 'shop', '', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 19:00:00+00', 'shop', '', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 19:00:00+00', 'shop', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 19:00:00+00', 'shop', '', 'relevancy', 'skipped', 'not_sampled', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 19:00:00+00', 'shop', 'search', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 19:00:00+00', 'shop', 'search', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 19:00:00+00', 'shop', 'search', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 19:00:00+00', 'shop', 'search', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 19:00:00+00', 'shop', 'search', 'relevancy', 'skipped', 'not_sampled', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 18:00:00+00', 'shop', '', 'faithfulness', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 18:00:00+00', 'shop', '', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 18:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 18:00:00+00', 'shop', '', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 18:00:00+00', 'shop', '', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, '', '2026-01-31 18:00:00+00', 'shop', '', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (3600, 'route', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'café', '', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'café', '', 'faithfulness', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'café', '', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'café', '', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'café', '', 'relevancy', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'café', '', 'relevancy', 'skipped', 'budget', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 4);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'faithfulness', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'relevancy', 'pending', '', 2);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'relevancy', 'seen', '', 4);
INSERT INTO public.rollup_count VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 'relevancy', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'café', 'ask', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'café', 'ask', 'faithfulness', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'café', 'ask', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'café', 'ask', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'café', 'ask', 'relevancy', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'café', 'ask', 'relevancy', 'skipped', 'budget', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'pending', '', 0);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'skipped', 'not_sampled', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'search', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'search', 'faithfulness', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'search', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'search', 'relevancy', 'pending', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'search', 'relevancy', 'seen', '', 2);
INSERT INTO public.rollup_count VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'search', 'relevancy', 'skipped', 'not_sampled', 0);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'faithfulness', 'pending', '', 2);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'faithfulness', 'seen', '', 5);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'faithfulness', 'skipped', 'missing_input', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'relevancy', 'pending', '', 3);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'relevancy', 'seen', '', 5);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 'relevancy', 'skipped', 'budget', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'faithfulness', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'faithfulness', 'pending', '', 3);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'faithfulness', 'seen', '', 8);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'faithfulness', 'skipped', 'not_sampled', 2);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'mine', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'mine', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'relevancy', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'relevancy', 'pending', '', 4);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'relevancy', 'seen', '', 8);
INSERT INTO public.rollup_count VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 'relevancy', 'skipped', 'not_sampled', 2);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'faithfulness', 'pending', '', 2);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'faithfulness', 'seen', '', 5);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'faithfulness', 'skipped', 'missing_input', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'relevancy', 'pending', '', 3);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'relevancy', 'seen', '', 5);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 'relevancy', 'skipped', 'budget', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'seen', '', 4);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'faithfulness', 'skipped', 'not_sampled', 2);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'pending', '', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'seen', '', 4);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 'relevancy', 'skipped', 'not_sampled', 2);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'faithfulness', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'faithfulness', 'pending', '', 2);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'faithfulness', 'seen', '', 4);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'faithfulness', 'skipped', 'filtered', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'mine', 'scored', '', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'mine', 'seen', '', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'relevancy', 'failed', 'unparsable', 1);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'relevancy', 'pending', '', 3);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'relevancy', 'seen', '', 4);
INSERT INTO public.rollup_count VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 'relevancy', 'skipped', 'not_sampled', 0);
INSERT INTO public.rollup_count VALUES (3600, '', '1970-01-01 00:00:00+00', 'shop', '', '', 'seen', '', 0);
INSERT INTO public.rollup_count VALUES (3600, 'route', '1970-01-01 00:00:00+00', 'shop', 'never', '', 'seen', '', 0);
INSERT INTO public.rollup_count VALUES (86400, '', '1970-01-01 00:00:00+00', 'shop', '', '', 'seen', '', 0);
INSERT INTO public.rollup_count VALUES (86400, 'route', '1970-01-01 00:00:00+00', 'shop', 'never', '', 'seen', '', 0);
INSERT INTO public.rollup_count VALUES (604800, '', '1970-01-01 00:00:00+00', 'shop', '', '', 'seen', '', 0);
INSERT INTO public.rollup_count VALUES (604800, 'route', '1970-01-01 00:00:00+00', 'shop', 'never', '', 'seen', '', 0);

INSERT INTO public.rollup_dimension VALUES ('attributes.trial');
INSERT INTO public.rollup_dimension VALUES ('model');

INSERT INTO public.rollup_dirty_hour VALUES (1, '2026-02-01 12:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (2, '2026-02-01 12:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (3, '2026-02-01 10:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (4, '2026-02-01 10:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (5, '2026-02-01 09:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (6, '2026-02-01 09:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (16, '2026-02-01 12:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (30, '2026-02-01 12:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (31, '2026-02-01 07:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (32, '2026-02-01 07:00:00+00');
INSERT INTO public.rollup_dirty_hour VALUES (33, '2026-02-01 09:00:00+00');

INSERT INTO public.rollup_proxy VALUES (3600, '', '2026-01-31 23:00:00+00', 'café', '', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (3600, 'route', '2026-01-31 23:00:00+00', 'café', 'ask', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (3600, '', '2026-01-31 22:00:00+00', 'shop', '', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (3600, 'route', '2026-01-31 22:00:00+00', 'shop', 'search', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (3600, '', '2026-01-31 21:00:00+00', 'shop', '', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (3600, 'route', '2026-01-31 21:00:00+00', 'shop', 'ask/{id}', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (3600, '', '2026-01-31 18:00:00+00', 'shop', '', 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 0.3333333333333333, -0.8888888888888888, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (3600, 'route', '2026-01-31 18:00:00+00', 'shop', 'ask/{id}', 1, 1.3333333333333333, 1.7777777777777777, -0.6666666666666666, 0.3333333333333333, -0.8888888888888888, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (86400, '', '2026-01-31 00:00:00+00', 'café', '', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (86400, '', '2026-01-31 00:00:00+00', 'shop', '', 3, 6.666666666666666, 16, 0.6666666666666666, 0.6666666666666666, 2.6666666666666665, 1.3333333333333333);
INSERT INTO public.rollup_proxy VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'café', 'ask', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'ask/{id}', 2, 4, 8.88888888888889, 0, 0.5, 0.8888888888888888, 0.8888888888888888);
INSERT INTO public.rollup_proxy VALUES (86400, 'route', '2026-01-31 00:00:00+00', 'shop', 'search', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (604800, '', '2026-01-29 00:00:00+00', 'café', '', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (604800, '', '2026-01-29 00:00:00+00', 'shop', '', 3, 6.666666666666666, 16, 0.6666666666666666, 0.6666666666666666, 2.6666666666666665, 1.3333333333333333);
INSERT INTO public.rollup_proxy VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'café', 'ask', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);
INSERT INTO public.rollup_proxy VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'ask/{id}', 2, 4, 8.88888888888889, 0, 0.5, 0.8888888888888888, 0.8888888888888888);
INSERT INTO public.rollup_proxy VALUES (604800, 'route', '2026-01-29 00:00:00+00', 'shop', 'search', 1, 2.6666666666666665, 7.111111111111111, 0.6666666666666666, 0.16666666666666666, 1.7777777777777777, 0.4444444444444444);

INSERT INTO public.score VALUES (1, '00000000000000000000000000000001', 'faithfulness', 'f2', 'café', 'ask', '2026-02-01 12:00:00+00', 0.5, -0.25, 'partly_relevant', 'How do I pay?', '{"requests": 3, "questions": [{"text": "How do I pay?", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 100, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (2, '00000000000000000000000000000001', 'relevancy', 'f1', 'café', 'ask', '2026-02-01 12:00:00+00', 0.5, -0.25, 'partly_relevant', 'How do I pay?', '{"requests": 3, "questions": [{"text": "How do I pay?", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 100, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (3, '00000000000000000000000000000002', 'faithfulness', 'f2 served', 'shop', 'search', '2026-02-01 10:59:59.998999+00', 0.5, 0, 'partly_relevant', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '{"requests": 3, "questions": [{"text": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 101, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (4, '00000000000000000000000000000002', 'relevancy', 'f1 served', 'shop', 'search', '2026-02-01 10:59:59.998999+00', 0.5, 0, 'partly_relevant', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '{"requests": 3, "questions": [{"text": "It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 101, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (5, '00000000000000000000000000000003', 'faithfulness', 'f2', 'shop', 'ask/{id}', '2026-02-01 09:59:59.997998+00', 0.5, 0.25, 'partly_relevant', 'two
lines	and   a separator', '{"requests": 3, "questions": [{"text": "two\nlines\tand   a separator", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 102, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (6, '00000000000000000000000000000003', 'relevancy', 'f1', 'shop', 'ask/{id}', '2026-02-01 09:59:59.997998+00', 0.5, 0.25, 'partly_relevant', 'two
lines	and   a separator', '{"requests": 3, "questions": [{"text": "two\nlines\tand   a separator", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 102, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (7, '00000000000000000000000000000004', 'faithfulness', 'f2', 'café', 'ask', '2026-02-01 08:59:59.996997+00', 0.5, 0.5, 'partly_relevant', 'السعر 👨‍👩‍👧 üß', '{"requests": 3, "questions": [{"text": "السعر 👨‍👩‍👧 üß", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 103, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (8, '00000000000000000000000000000004', 'relevancy', 'f1', 'café', 'ask', '2026-02-01 08:59:59.996997+00', 0.5, 0.5, 'partly_relevant', 'السعر 👨‍👩‍👧 üß', '{"requests": 3, "questions": [{"text": "السعر 👨‍👩‍👧 üß", "similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 103, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (9, '0000000000000000000000000000000b', 'mine', 'external', 'shop', 'search', '2026-02-01 01:59:59.98999+00', 1, -0.5, NULL, 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-02-01 12:00:00+00', NULL);
INSERT INTO public.score VALUES (10, '00000000000000000000000000000012', 'faithfulness', 'f2', 'shop', 'ask/{id}', '2026-01-31 18:59:59.982983+00', 0.75, 1.25, 'partly_relevant', NULL, '{"requests": 3, "questions": [{"similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 106, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', -0.5);
INSERT INTO public.score VALUES (11, '00000000000000000000000000000012', 'relevancy', 'f1', 'shop', 'ask/{id}', '2026-01-31 18:59:59.982983+00', 0.75, 1.25, 'partly_relevant', NULL, '{"requests": 3, "questions": [{"similarity": 0.5}]}', 'gpt-4o-mini', 'text-embedding-3-small', 106, 10, 0.0001, 0.5, '2026-02-01 12:00:00+00', -0.5);

INSERT INTO public.scoring_task VALUES (1, '00000000000000000000000000000001', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2', 0);
INSERT INTO public.scoring_task VALUES (2, '00000000000000000000000000000001', 'relevancy', 'f1', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f1', 0);
INSERT INTO public.scoring_task VALUES (3, '00000000000000000000000000000002', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2 served', 0);
INSERT INTO public.scoring_task VALUES (4, '00000000000000000000000000000002', 'relevancy', 'f1', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f1 served', 0);
INSERT INTO public.scoring_task VALUES (5, '00000000000000000000000000000003', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2', 0);
INSERT INTO public.scoring_task VALUES (7, '00000000000000000000000000000004', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2', 0);
INSERT INTO public.scoring_task VALUES (8, '00000000000000000000000000000004', 'relevancy', 'f1', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f1', 0);
INSERT INTO public.scoring_task VALUES (9, '00000000000000000000000000000005', 'faithfulness', 'f2', 'failed', 'unparsable', 'the judge said: NUL � and half a pair �', 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (11, '00000000000000000000000000000008', 'faithfulness', 'f2', 'pending', 'judge_timeout', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', 0, '2026-02-01 12:00:00+00', '2026-02-01 13:00:00+00', NULL, NULL, NULL, 1);
INSERT INTO public.scoring_task VALUES (12, '00000000000000000000000000000008', 'relevancy', 'f1', 'pending', 'judge_timeout', 'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */', 0, '2026-02-01 12:00:00+00', '2026-02-01 13:00:00+00', NULL, NULL, NULL, 1);
INSERT INTO public.scoring_task VALUES (15, '0000000000000000000000000000000a', 'faithfulness', 'f2', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 02:59:59.990991+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (16, '0000000000000000000000000000000a', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 02:59:59.990991+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (17, '00000000000000000000000000000006', 'faithfulness', 'f2', 'skipped', 'not_sampled', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (18, '00000000000000000000000000000006', 'relevancy', 'f1', 'skipped', 'not_sampled', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (19, '00000000000000000000000000000007', 'faithfulness', 'f2', 'skipped', 'missing_input', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (20, '00000000000000000000000000000007', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 05:59:59.993994+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (21, '0000000000000000000000000000000b', 'mine', 'external', 'done', NULL, NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (22, '0000000000000000000000000000000d', 'faithfulness', 'f2', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (23, '0000000000000000000000000000000d', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (28, '00000000000000000000000000000010', 'faithfulness', 'f2', 'skipped', 'filtered', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (30, '00000000000000000000000000000011', 'faithfulness', 'f2', 'skipped', 'filtered', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (24, '0000000000000000000000000000000e', 'faithfulness', 'f2', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (25, '0000000000000000000000000000000e', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (26, '0000000000000000000000000000000f', 'faithfulness', 'f2', 'skipped', 'not_sampled', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (27, '0000000000000000000000000000000f', 'relevancy', 'f1', 'skipped', 'not_sampled', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (29, '00000000000000000000000000000010', 'relevancy', 'f1', 'skipped', 'budget', NULL, 0, '2026-02-01 12:00:00+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (31, '00000000000000000000000000000011', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00', NULL, NULL, NULL, 0);
INSERT INTO public.scoring_task VALUES (32, '00000000000000000000000000000012', 'faithfulness', 'f2', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f2', 0);
INSERT INTO public.scoring_task VALUES (33, '00000000000000000000000000000012', 'relevancy', 'f1', 'done', NULL, NULL, 1, '2026-02-01 12:00:00+00', NULL, NULL, NULL, 'f1', 0);
INSERT INTO public.scoring_task VALUES (13, '00000000000000000000000000000009', 'faithfulness', 'f2', 'running', NULL, NULL, 1, '2026-02-01 12:00:00+00', '2026-02-01 13:00:00+00', 'running', '2026-02-01 13:00:00+00', NULL, 0);
INSERT INTO public.scoring_task VALUES (14, '00000000000000000000000000000009', 'relevancy', 'f1', 'running', NULL, NULL, 1, '2026-02-01 12:00:00+00', '2026-02-01 13:00:00+00', 'running', '2026-02-01 13:00:00+00', NULL, 0);
INSERT INTO public.scoring_task VALUES (6, '00000000000000000000000000000003', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00', NULL, NULL, 'f1', 0);
INSERT INTO public.scoring_task VALUES (10, '00000000000000000000000000000005', 'relevancy', 'f1', 'pending', NULL, NULL, 0, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00', NULL, NULL, '', 0);

INSERT INTO public.silence VALUES ('s1', '{"rule": "mean_threshold", "route": "ask*"}', '2026-02-01 11:00:00+00', '2026-02-01 13:00:00+00', 'ann', 'NUL �, half a pair � and "quotes"; DROP TABLE alert; 👨‍👩 üß');
INSERT INTO public.silence VALUES ('s2', '{}', '2026-02-01 13:00:00+00', '2026-02-01 21:00:00+00', NULL, NULL);

INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 10:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 08:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'failed', 'unparsable', 1);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 04:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 04:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 04:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 04:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 03:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 03:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 03:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 03:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 02:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 02:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 02:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 02:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 06:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 06:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'skipped', 'not_sampled', 1);
INSERT INTO public.tally VALUES ('2026-02-01 06:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 06:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'skipped', 'not_sampled', 1);
INSERT INTO public.tally VALUES ('2026-02-01 05:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 05:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'skipped', 'missing_input', 1);
INSERT INTO public.tally VALUES ('2026-02-01 05:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 05:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'skipped', 'queue_full', 7);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'skipped', 'queue_full', 7);
INSERT INTO public.tally VALUES ('1970-01-01 00:00:00+00', 'shop', 'never', '', '', 'seen', '', 0);
INSERT INTO public.tally VALUES ('2026-02-01 01:59:00+00', 'shop', 'search', 'mine', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 01:59:00+00', 'shop', 'search', 'mine', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 22:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 22:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 22:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 22:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 23:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 23:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 23:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 23:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'faithfulness', '2c0ae8fdd5e64532', 'skipped', 'filtered', 1);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'skipped', 'filtered', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 10);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 10);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'failed', 'unparsable', 0);
INSERT INTO public.tally VALUES ('2026-02-01 07:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 09:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'scored', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'skipped', 'not_sampled', 1);
INSERT INTO public.tally VALUES ('2026-01-31 21:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'skipped', 'not_sampled', 1);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 20:59:00+00', 'café', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'skipped', 'budget', 1);
INSERT INTO public.tally VALUES ('2026-01-31 19:59:00+00', 'shop', 'search', 'relevancy', '2c0ae8fdd5e64532', 'skipped', 'not_sampled', 0);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'faithfulness', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'pending', '', 0);
INSERT INTO public.tally VALUES ('2026-01-31 18:59:00+00', 'shop', 'ask/{id}', 'relevancy', '2c0ae8fdd5e64532', 'scored', '', 1);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'faithfulness', '2c0ae8fdd5e64532', 'skipped', 'exchange_limit', 3);
INSERT INTO public.tally VALUES ('2026-02-01 12:00:00+00', 'shop', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'skipped', 'exchange_limit', 3);
INSERT INTO public.tally VALUES ('2026-02-01 07:00:00+00', 'shop', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'seen', '', 2);
INSERT INTO public.tally VALUES ('2026-02-01 07:00:00+00', 'shop', 'ask', 'relevancy', '2c0ae8fdd5e64532', 'skipped', 'queue_full', 2);

INSERT INTO public.worker VALUES ('running', 'a', 1, 'café', '0.4.0', '{"relevancy": "f1", "faithfulness": "f2"}', 8, 1, NULL, '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00');
INSERT INTO public.worker VALUES ('idle', 'b', 2, 'café', '0.6.0', '{"relevancy": "f1", "faithfulness": "f2"}', 0, 0, 'NUL � and half a pair �', '2026-02-01 12:00:00+00', '2026-02-01 12:00:00+00');

SELECT pg_catalog.setval('public.baseline_id_seq', 8, true);

SELECT pg_catalog.setval('public.calibration_id_seq', 1, true);

SELECT pg_catalog.setval('public.detector_input_id_seq', 8, true);

SELECT pg_catalog.setval('public.forwarded_request_id_seq', 1, false);

SELECT pg_catalog.setval('public.rollup_dirty_hour_id_seq', 33, true);

SELECT pg_catalog.setval('public.score_id_seq', 11, true);

SELECT pg_catalog.setval('public.scoring_task_id_seq', 33, true);

ALTER TABLE ONLY public.alert_event
    ADD CONSTRAINT alert_event_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.alert
    ADD CONSTRAINT alert_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.archived_day
    ADD CONSTRAINT archived_day_pkey PRIMARY KEY (day);

ALTER TABLE ONLY public.archived_lowest
    ADD CONSTRAINT archived_lowest_pkey PRIMARY KEY (dimension, day, service, route, scorer, fingerprint);

ALTER TABLE ONLY public.baseline
    ADD CONSTRAINT baseline_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.budget
    ADD CONSTRAINT budget_pkey PRIMARY KEY (day);

ALTER TABLE ONLY public.calibration
    ADD CONSTRAINT calibration_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.detector_input
    ADD CONSTRAINT detector_input_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.detector
    ADD CONSTRAINT detector_pkey PRIMARY KEY (rule, service, scorer);

ALTER TABLE ONLY public.exchange
    ADD CONSTRAINT exchange_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.forwarded_request
    ADD CONSTRAINT forwarded_request_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.germane_version
    ADD CONSTRAINT germane_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY public.history_run
    ADD CONSTRAINT history_run_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (process, name);

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.marker
    ADD CONSTRAINT marker_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.notification
    ADD CONSTRAINT notification_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.partition
    ADD CONSTRAINT partition_pkey PRIMARY KEY (run_id, number);

ALTER TABLE ONLY public.rate_limit
    ADD CONSTRAINT rate_limit_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.received_span
    ADD CONSTRAINT received_span_pkey PRIMARY KEY (trace_id, key);

ALTER TABLE ONLY public.received_trace
    ADD CONSTRAINT received_trace_pkey PRIMARY KEY (trace_id);

ALTER TABLE ONLY public.rollup_count
    ADD CONSTRAINT rollup_count_pkey PRIMARY KEY (span, dimension, start, service, route, scorer, outcome, reason);

ALTER TABLE ONLY public.rollup_dimension
    ADD CONSTRAINT rollup_dimension_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.rollup_dirty_hour
    ADD CONSTRAINT rollup_dirty_hour_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.rollup
    ADD CONSTRAINT rollup_pkey PRIMARY KEY (span, dimension, start, service, route, scorer, fingerprint, label);

ALTER TABLE ONLY public.rollup_proxy
    ADD CONSTRAINT rollup_proxy_pkey PRIMARY KEY (span, dimension, start, service, route);

ALTER TABLE ONLY public.saved_view
    ADD CONSTRAINT saved_view_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.score
    ADD CONSTRAINT score_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.scoring_task
    ADD CONSTRAINT scoring_task_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.silence
    ADD CONSTRAINT silence_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.tally
    ADD CONSTRAINT tally_pkey PRIMARY KEY (minute, service, route, scorer, process, outcome, reason);

ALTER TABLE ONLY public.unreadable_trace
    ADD CONSTRAINT unreadable_trace_pkey PRIMARY KEY (trace_id);

ALTER TABLE ONLY public.baseline
    ADD CONSTRAINT uq_baseline UNIQUE (service, scorer, fingerprint, scope, version);

ALTER TABLE ONLY public.score
    ADD CONSTRAINT uq_score UNIQUE (exchange_id, scorer, fingerprint);

ALTER TABLE ONLY public.scoring_task
    ADD CONSTRAINT uq_scoring_task UNIQUE (exchange_id, scorer, fingerprint);

ALTER TABLE ONLY public.watched_trace
    ADD CONSTRAINT watched_trace_pkey PRIMARY KEY (hour, service, scope, outcome);

ALTER TABLE ONLY public.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (id);

CREATE INDEX ix_alert_event_alert_id ON public.alert_event USING btree (alert_id);

CREATE INDEX ix_alert_starts_at ON public.alert USING btree (starts_at);

CREATE INDEX ix_baseline_status ON public.baseline USING btree (status);

CREATE INDEX ix_calibration_made_at ON public.calibration USING btree (made_at);

CREATE INDEX ix_detector_input_exchange_id ON public.detector_input USING btree (exchange_id);

CREATE INDEX ix_exchange_candidate ON public.exchange USING btree (started_at) WHERE (sampling_reason = 'candidate'::text);

CREATE INDEX ix_exchange_proxy ON public.exchange USING btree (started_at, service, route, proxy, proxy_probability, capture_probability) WHERE (proxy IS NOT NULL);

CREATE INDEX ix_exchange_route ON public.exchange USING btree (route, started_at);

CREATE INDEX ix_exchange_started_at ON public.exchange USING btree (started_at);

CREATE INDEX ix_exchange_text ON public.exchange USING btree (started_at) WHERE (erased_at IS NULL);

CREATE INDEX ix_exchange_trace_id ON public.exchange USING btree (trace_id);

CREATE INDEX ix_exchange_unsampled ON public.exchange USING btree (started_at) WHERE (sampling_reason IS NULL);

CREATE INDEX ix_feedback_comment ON public.feedback USING btree (created_at) WHERE (comment IS NOT NULL);

CREATE INDEX ix_feedback_created_at ON public.feedback USING btree (created_at);

CREATE INDEX ix_feedback_exchange_id ON public.feedback USING btree (exchange_id);

CREATE INDEX ix_feedback_unconsidered ON public.feedback USING btree (created_at) WHERE (considered_at IS NULL);

CREATE INDEX ix_forwarded_request_due_at ON public.forwarded_request USING btree (due_at, size);

CREATE INDEX ix_forwarded_request_exchange_id ON public.forwarded_request USING btree (exchange_id) WHERE (exchange_id IS NOT NULL);

CREATE UNIQUE INDEX ix_forwarded_request_span ON public.forwarded_request USING btree (trace_id, span_id) WHERE (trace_id IS NOT NULL);

CREATE INDEX ix_marker_at ON public.marker USING btree (at);

CREATE INDEX ix_notification_created_at ON public.notification USING btree (created_at);

CREATE INDEX ix_notification_due ON public.notification USING btree (next_attempt_at) WHERE (next_attempt_at IS NOT NULL);

CREATE INDEX ix_received_trace_due_at ON public.received_trace USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX ix_received_trace_finished_at ON public.received_trace USING btree (finished_at) WHERE (finished_at IS NOT NULL);

CREATE INDEX ix_rollup_dirty_hour_hour ON public.rollup_dirty_hour USING btree (hour);

CREATE INDEX ix_score_started_at ON public.score USING btree (started_at, scorer, service, route, fingerprint, value, label, sampling_probability, proxy);

CREATE INDEX ix_score_value ON public.score USING btree (value, scorer, started_at, route);

CREATE INDEX ix_scoring_task_candidate ON public.scoring_task USING btree (scorer, fingerprint, first_pending_at) WHERE ((state = 'pending'::text) AND (not_before IS NULL));

CREATE INDEX ix_scoring_task_lease_owner ON public.scoring_task USING btree (lease_owner) WHERE (lease_owner IS NOT NULL);

CREATE INDEX ix_scoring_task_open ON public.scoring_task USING btree (scorer, fingerprint, not_before, first_pending_at) WHERE (not_before IS NOT NULL);

CREATE INDEX ix_scoring_task_state ON public.scoring_task USING btree (state, reason);

CREATE INDEX ix_silence_ends_at ON public.silence USING btree (ends_at);

CREATE INDEX ix_unreadable_trace_reason ON public.unreadable_trace USING btree (service, scope, reason, sampled_at);

CREATE INDEX ix_unreadable_trace_sampled_at ON public.unreadable_trace USING btree (sampled_at);

CREATE INDEX ix_worker_seen_at ON public.worker USING btree (seen_at);

CREATE UNIQUE INDEX uq_alert_open ON public.alert USING btree (key) WHERE (state <> 'resolved'::text);
