BEGIN TRANSACTION;
CREATE TABLE alert ( id TEXT NOT NULL, "key" TEXT NOT NULL, rule TEXT NOT NULL, type TEXT NOT NULL, labels JSON NOT NULL, state TEXT NOT NULL, severity TEXT NOT NULL, cause TEXT, message TEXT NOT NULL, fingerprint TEXT, value FLOAT, threshold FLOAT, window FLOAT, onset DATETIME, body JSON NOT NULL, starts_at DATETIME NOT NULL, fired_at DATETIME, resolved_at DATETIME, evaluated_at DATETIME NOT NULL, notified_at DATETIME, acknowledged_at DATETIME, acknowledged_by TEXT, resolve_reason TEXT, PRIMARY KEY (id) );
INSERT INTO "alert" VALUES('a1','f1814fed1cfb222e7804d941eb7c7ae5','drop','drop','{"service": "shop", "scorer": "relevancy"}','firing','critical','refusals_rising','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','f1',0.5,0.7,86400.0,'2026-01-31 16:00:00.000000','{"current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "shifts": [{"dimension": "route", "name": "ask", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000000"], "details": {"contributors": [], "said": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}}','2026-01-31 18:00:00.000000','2026-01-31 19:00:00.000000',NULL,'2026-01-31 20:00:00.000000','2026-01-31 19:00:00.000000','2026-02-01 11:00:00.000000','ann',NULL);
INSERT INTO "alert" VALUES('a2','f1814fed1cfb222e7804d941eb7c7ae5','drop','drop','{"service": "shop", "scorer": "relevancy"}','resolved','critical','refusals_rising','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','f1',0.5,0.7,86400.0,'2026-01-31 16:00:00.000000','{"current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "shifts": [{"dimension": "route", "name": "ask", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000000"], "details": {"contributors": [], "said": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}}','2026-01-28 18:00:00.000000','2026-01-31 19:00:00.000000','2026-01-29 04:00:00.000000','2026-01-31 20:00:00.000000','2026-01-31 19:00:00.000000','2026-02-01 11:00:00.000000','ann','recovered');
CREATE TABLE alert_event ( id TEXT NOT NULL, alert_id TEXT NOT NULL, at DATETIME NOT NULL, type TEXT NOT NULL, "before" TEXT, "after" TEXT NOT NULL, detail JSON NOT NULL, PRIMARY KEY (id) );
INSERT INTO "alert_event" VALUES('a1 fired','a1','2026-02-01 12:00:00.000000','fired','pending','firing','{"by": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}');
INSERT INTO "alert_event" VALUES('a2 fired','a2','2026-02-01 12:00:00.000000','fired','pending','resolved','{"by": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}');
CREATE TABLE archived_day ( day DATETIME NOT NULL, location TEXT NOT NULL, state TEXT NOT NULL, removed_before DATETIME NOT NULL, manifest JSON NOT NULL, dimensions JSON NOT NULL, has_stale_files BOOLEAN NOT NULL, has_lowest BOOLEAN, labels BIGINT, written_at DATETIME NOT NULL, verified_at DATETIME, removed_at DATETIME, PRIMARY KEY (day) ) WITHOUT ROWID ;
INSERT INTO "archived_day" VALUES('2026-01-30 00:00:00.000000','/archive','verified','2026-01-30 00:00:00.000000','{"version": 1, "day": "2026-01-30", "created_at": "2026-02-01T12:00:00+00:00", "revision": "0.1.0", "has_text": true, "files": {"exchange": {"name": "exchange.parquet", "rows": 1, "size": 100, "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "content": "0000000000000000"}}}','["model"]',0,1,2,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
CREATE TABLE archived_lowest ( dimension TEXT NOT NULL, day DATETIME NOT NULL, service TEXT NOT NULL, route TEXT NOT NULL, scorer TEXT NOT NULL, fingerprint TEXT NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (dimension, day, service, route, scorer, fingerprint) ) WITHOUT ROWID ;
INSERT INTO "archived_lowest" VALUES('','2026-01-30 00:00:00.000000','shop','','relevancy','f1',X'0001');
CREATE TABLE baseline ( id INTEGER NOT NULL, service TEXT NOT NULL, scorer TEXT NOT NULL, fingerprint TEXT NOT NULL, scope TEXT NOT NULL, version INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, since DATETIME NOT NULL, until DATETIME NOT NULL, n BIGINT NOT NULL, mean FLOAT, deviation FLOAT, numbers JSON NOT NULL, model TEXT, prompt_version TEXT, created_at DATETIME NOT NULL, accepted_by TEXT, PRIMARY KEY (id), CONSTRAINT uq_baseline UNIQUE (service, scorer, fingerprint, scope, version) );
INSERT INTO "baseline" VALUES(1,'shop','relevancy','f1','',1,'superseded','imported','2026-01-17 12:00:00.000000','2026-01-31 12:00:00.000000',600,0.7125,0.25,'{"since": "2026-01-17T12:00:00+00:00", "until": "2026-01-31T12:00:00+00:00", "scores_per_day": 40.0, "committed_per_day": 38.0, "keep": 0.999, "routes": {"ask": {"n": 600, "mean": 0.7125, "deviation": 0.25, "committed": 570, "committed_mean": 0.75, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "(other)": {"n": 600, "mean": 0.7125, "deviation": 0.25, "committed": 570, "committed_mean": 0.75, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}}, "pooled": ["about"]}',NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "baseline" VALUES(2,'shop','relevancy','f1','',2,'active','accepted','2026-01-17 12:00:00.000000','2026-01-31 12:00:00.000000',600,0.7125,0.25,'{"since": "2026-01-17T12:00:00+00:00", "until": "2026-01-31T12:00:00+00:00", "scores_per_day": 40.0, "committed_per_day": 38.0, "keep": 0.999, "routes": {"ask": {"n": 600, "mean": 0.7125, "deviation": 0.25, "committed": 570, "committed_mean": 0.75, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "(other)": {"n": 600, "mean": 0.7125, "deviation": 0.25, "committed": 570, "committed_mean": 0.75, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}}, "pooled": ["about"]}','gpt-4o-mini','7','2026-02-01 12:00:00.000000','ann');
CREATE TABLE budget ( day TEXT NOT NULL, requests BIGINT NOT NULL, tokens FLOAT NOT NULL, usd FLOAT NOT NULL, selected BIGINT NOT NULL, PRIMARY KEY (day) );
INSERT INTO "budget" VALUES('2026-01-31',7,700.0,0.25,0);
INSERT INTO "budget" VALUES('2026-02-01',2,300.0,0.5,0);
CREATE TABLE calibration ( id INTEGER NOT NULL, embedder TEXT NOT NULL, scorer TEXT NOT NULL, fingerprint TEXT NOT NULL, floor FLOAT NOT NULL, topic_floor FLOAT NOT NULL, n INTEGER NOT NULL, made_at DATETIME NOT NULL, PRIMARY KEY (id) );
INSERT INTO "calibration" VALUES(1,'e','relevancy','f1',0.07,0.2,400,'2026-02-01 12:00:00.000000');
CREATE TABLE detector ( rule TEXT NOT NULL, service TEXT NOT NULL, scorer TEXT NOT NULL, parameters TEXT NOT NULL, baseline_id BIGINT NOT NULL, state JSON NOT NULL, log_evidence FLOAT, seen_at DATETIME, row_version BIGINT NOT NULL, PRIMARY KEY (rule, service, scorer) );
INSERT INTO "detector" VALUES('drop','shop','relevancy','p1',2,'{"active_fingerprint": {"fingerprint": "f1", "votes": 20}}',2.5,'2026-01-31 20:00:00.000000',1);
CREATE TABLE detector_input ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, service TEXT NOT NULL, route TEXT NOT NULL, scorer TEXT NOT NULL, fingerprint TEXT NOT NULL, exchange_id TEXT NOT NULL, value FLOAT NOT NULL, is_zero BOOLEAN NOT NULL, arrived_at DATETIME NOT NULL );
INSERT INTO "detector_input" VALUES(1,'shop','search/{id}','faithfulness','f2 served','00000000000000000000000000000001',0.0625,0,'2026-02-01 12:00:00.000000');
INSERT INTO "detector_input" VALUES(2,'shop','search/{id}','relevancy','f1 served','00000000000000000000000000000001',0.0625,0,'2026-02-01 12:00:00.000000');
INSERT INTO "detector_input" VALUES(3,'shop','ask','faithfulness','f2','00000000000000000000000000000000',0.0,1,'2026-02-01 12:00:00.000000');
INSERT INTO "detector_input" VALUES(4,'shop','ask','relevancy','f1','00000000000000000000000000000000',0.0,1,'2026-02-01 12:00:00.000000');
CREATE TABLE exchange ( id TEXT NOT NULL, trace_id TEXT NOT NULL, span_id TEXT NOT NULL, service TEXT NOT NULL, route TEXT NOT NULL, question TEXT, answer TEXT, contexts JSON NOT NULL, history JSON NOT NULL, model TEXT, prompt_version TEXT, session TEXT, user TEXT, attributes JSON NOT NULL, status TEXT NOT NULL, error TEXT, started_at DATETIME NOT NULL, duration FLOAT NOT NULL, sampling_key FLOAT NOT NULL, traced BOOLEAN NOT NULL, capture_probability FLOAT DEFAULT '1' NOT NULL, proxy FLOAT, proxy_probability FLOAT, sampling_probability FLOAT, sampling_reason TEXT, erased_at DATETIME, span_holder TEXT, PRIMARY KEY (id) );
INSERT INTO "exchange" VALUES('00000000000000000000000000000000','00000000000000000000000000000000','0000000000000000','shop','ask','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','0: two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','[{"text":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */","id":"page 0","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}]','gpt-4o-mini','7','s0','u0','{"tenant":"acme","trial":false,"seats":0,"two\nlines, ''a'' \"quot":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}','ok',NULL,'2026-02-01 12:00:00.000000',0.0,0.03125,0,0.75,NULL,NULL,0.5,'sampled',NULL,'ended');
INSERT INTO "exchange" VALUES('00000000000000000000000000000001','00000000000000000000000000000001','0000000000000001','shop','search/{id}','السعر 👨‍👩‍👧 üß  ','1: السعر 👨‍👩‍👧 üß  ','[{"text":"السعر 👨‍👩‍👧 üß  ","id":"page 1","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":"السعر 👨‍👩‍👧 üß  "}]','gpt-4o-mini','7','s1','u1','{"tenant":"acme","trial":true,"seats":1,"السعر 👨‍👩‍👧 üß  ":"السعر 👨‍👩‍👧 üß  "}','ok',NULL,'2026-02-01 10:59:59.998999',0.0625,0.0625,1,0.75,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000002','00000000000000000000000000000002','0000000000000002','shop','ask','NUL � and half a pair �; <script>alert(1)</script>','2: NUL � and half a pair �; <script>alert(1)</script>','[{"text":"NUL � and half a pair �; <script>alert(1)</script>","id":"page 2","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":"NUL � and half a pair �; <script>alert(1)</script>"}]','gpt-4o-mini','7','s2','u2','{"tenant":"acme","trial":false,"seats":2,"NUL � and half a pai":"NUL � and half a pair �; <script>alert(1)</script>"}','ok',NULL,'2026-02-01 09:59:59.997998',0.125,0.09375,0,0.75,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000003','00000000000000000000000000000003','0000000000000003','shop','search/{id}','','3: ','[{"text":"","id":"page 3","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":""}]','gpt-4o-mini','7','s0','u3','{"tenant":"acme","trial":true,"seats":3,"":""}','error','ValueError: ','2026-02-01 08:59:59.996997',0.1875,0.125,1,0.75,NULL,NULL,0.5,'not_sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000004','00000000000000000000000000000004','0000000000000004','shop','ask','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','4: two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','[{"text":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */","id":"page 4","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}]','gpt-4o-mini','7','s1','u0','{"tenant":"acme","trial":false,"seats":4,"two\nlines, ''a'' \"quot":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}','ok',NULL,'2026-02-01 07:59:59.995996',0.25,0.15625,0,0.75,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000005','00000000000000000000000000000005','0000000000000005','shop','search/{id}','السعر 👨‍👩‍👧 üß  ','5: السعر 👨‍👩‍👧 üß  ','[{"text":"السعر 👨‍👩‍👧 üß  ","id":"page 5","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":"السعر 👨‍👩‍👧 üß  "}]','gpt-4o-mini','7','s2','u1','{"tenant":"acme","trial":true,"seats":5,"السعر 👨‍👩‍👧 üß  ":"السعر 👨‍👩‍👧 üß  "}','ok',NULL,'2026-02-01 06:59:59.994995',0.3125,0.1875,1,0.75,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000006','00000000000000000000000000000006','0000000000000006','shop','ask','NUL � and half a pair �; <script>alert(1)</script>','6: NUL � and half a pair �; <script>alert(1)</script>','[{"text":"NUL � and half a pair �; <script>alert(1)</script>","id":"page 6","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":"NUL � and half a pair �; <script>alert(1)</script>"}]','gpt-4o-mini','7','s0','u2','{"tenant":"acme","trial":false,"seats":6,"NUL � and half a pai":"NUL � and half a pair �; <script>alert(1)</script>"}','ok',NULL,'2026-02-01 05:59:59.993994',0.375,0.21875,0,0.75,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000007','00000000000000000000000000000007','0000000000000007','shop','search/{id}','','7: ','[{"text":"","id":"page 7","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":""}]','gpt-4o-mini','7','s1','u3','{"tenant":"acme","trial":true,"seats":7,"":""}','ok',NULL,'2026-02-01 04:59:59.992993',0.4375,0.25,1,0.75,0.25,0.5,NULL,'candidate',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000008','00000000000000000000000000000008','0000000000000008','shop','ask','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','8: two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','[{"text":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */","id":"page 8","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}]','gpt-4o-mini','7','s2','u0','{"tenant":"acme","trial":false,"seats":8,"two\nlines, ''a'' \"quot":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}','ok',NULL,'2026-02-01 03:59:59.991992',0.5,0.28125,0,0.75,0.25,0.5,0.125,'not_sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000009','00000000000000000000000000000009','0000000000000009','shop','search/{id}',NULL,NULL,'[]','[]','gpt-4o-mini','7','s0','u1','{"tenant":"acme","trial":true,"seats":9,"السعر 👨‍👩‍👧 üß  ":"السعر 👨‍👩‍👧 üß  "}','ok',NULL,'2026-02-01 02:59:59.990991',0.5625,0.3125,1,0.75,-0.5,1.0,0.75,'always','2026-02-01 12:00:00.000000',NULL);
CREATE TABLE feedback ( id TEXT NOT NULL, exchange_id TEXT NOT NULL, score FLOAT NOT NULL, comment TEXT, user TEXT, created_at DATETIME NOT NULL, considered_at DATETIME, PRIMARY KEY (id) );
INSERT INTO "feedback" VALUES('label 0','00000000000000000000000000000000',0.25,'السعر 👨‍👩‍👧 üß  ','u1','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
INSERT INTO "feedback" VALUES('label 3','00000000000000000000000000000003',0.25,'السعر 👨‍👩‍👧 üß  ','u1','2026-02-01 12:00:00.000000',NULL);
CREATE TABLE forwarded_request ( id INTEGER NOT NULL, signal TEXT NOT NULL, payload BLOB NOT NULL, size INTEGER NOT NULL, due_at FLOAT NOT NULL, lease_owner TEXT, trace_id TEXT, span_id TEXT, exchange_id TEXT, attributes JSON, PRIMARY KEY (id) );
INSERT INTO "forwarded_request" VALUES(1,'traces',X'0072657175657374',8,1769947200.0,NULL,NULL,NULL,NULL,'null');
INSERT INTO "forwarded_request" VALUES(2,'traces',X'0072657175657374',8,1769947200.0,'away','11111111111111111111111111111111','2222222222222222','00000000000000000000000000000000','{"score": 0.5}');
CREATE TABLE germane_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT germane_version_pkc PRIMARY KEY (version_num));
INSERT INTO "germane_version" VALUES('0.1.0');
CREATE TABLE history_run ( id TEXT NOT NULL, kind TEXT NOT NULL, since DATETIME NOT NULL, until DATETIME NOT NULL, selection JSON NOT NULL, partition_size INTEGER NOT NULL, partitions INTEGER NOT NULL, exchanges BIGINT NOT NULL, created_at DATETIME NOT NULL, finished_at DATETIME, PRIMARY KEY (id) );
INSERT INTO "history_run" VALUES('done','rescore','2026-02-01 09:00:00.000000','2026-02-01 13:00:00.000000','{"scorers": {"faithfulness": "f2", "relevancy": "f1"}, "route": null, "below": null, "failed": null, "everything": false, "requested_at": "2026-02-01T12:00:00+00:00"}',1,3,3,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
INSERT INTO "history_run" VALUES('begun','rescore','2026-02-01 09:00:00.000000','2026-02-01 13:00:00.000000','{"scorers": {"faithfulness": "f2", "relevancy": "f1"}, "route": null, "below": null, "failed": null, "everything": false, "requested_at": "2026-02-01T12:00:00+00:00"}',1,3,3,'2026-02-01 12:00:00.000000',NULL);
CREATE TABLE job ( process TEXT NOT NULL, name TEXT NOT NULL, every FLOAT, runs JSON NOT NULL, PRIMARY KEY (process, name) );
INSERT INTO "job" VALUES('running','watch',2.0,'[[1769943600000, 250], [1769947200000, 1500, "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"]]');
CREATE TABLE lease ( name TEXT NOT NULL, owner TEXT NOT NULL, expires_at DATETIME NOT NULL, cursor TEXT, renewed_at DATETIME, PRIMARY KEY (name) );
INSERT INTO "lease" VALUES('sampler','someone','2026-02-01 13:00:00.000000','the first interval','2026-02-01 12:00:00.000000');
INSERT INTO "lease" VALUES('watcher','someone','2026-02-01 13:00:00.000000',NULL,'2026-02-01 12:00:00.000000');
CREATE TABLE marker ( id TEXT NOT NULL, name TEXT NOT NULL, service TEXT NOT NULL, at DATETIME NOT NULL, attributes JSON NOT NULL, PRIMARY KEY (id) );
INSERT INTO "marker" VALUES('1','v42','shop','2026-02-01 03:00:00.000000','{"by":"two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}');
CREATE TABLE notification ( id TEXT NOT NULL, channel TEXT NOT NULL, event_ids JSON NOT NULL, payload JSON NOT NULL, idempotency_key TEXT NOT NULL, status TEXT NOT NULL, attempt INTEGER NOT NULL, due_at DATETIME, lease_owner TEXT, http_status INTEGER, error TEXT, created_at DATETIME NOT NULL, settled_at DATETIME, PRIMARY KEY (id) );
INSERT INTO "notification" VALUES('sent','sent','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "ask", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000000"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}}]}','key of sent','sent',1,NULL,NULL,200,NULL,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
INSERT INTO "notification" VALUES('refused','refused','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "ask", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000000"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}}]}','key of refused','undelivered',1,NULL,NULL,400,'two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
INSERT INTO "notification" VALUES('busy','busy','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "ask", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000000"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}}]}','key of busy','waiting',1,'2026-02-01 12:00:05.000000',NULL,503,'status 503','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "notification" VALUES('claimed','claimed','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "ask", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000000"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}}]}','key of claimed','waiting',1,'2026-02-01 13:00:00.000000','away',NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "notification" VALUES('waiting','waiting','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "ask", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000000"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "two\nlines, ''a'' \"quote\", 100 % \\escaped\\ /* $1 :name %s */"}}]}','key of waiting','waiting',0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
CREATE TABLE partition ( run_id TEXT NOT NULL, number INTEGER NOT NULL, first_at DATETIME NOT NULL, first_id TEXT NOT NULL, last_at DATETIME NOT NULL, last_id TEXT NOT NULL, exchanges INTEGER NOT NULL, attempts INTEGER NOT NULL, due_at DATETIME, lease_owner TEXT, error TEXT, scored INTEGER NOT NULL, failed INTEGER NOT NULL, skipped INTEGER NOT NULL, cost FLOAT, checksum TEXT NOT NULL, remaining JSON, PRIMARY KEY (run_id, number) );
INSERT INTO "partition" VALUES('done',0,'2026-02-01 09:59:59.997998','00000000000000000000000000000002','2026-02-01 09:59:59.997998','00000000000000000000000000000002',1,1,NULL,NULL,NULL,0,0,0,NULL,'0',NULL);
INSERT INTO "partition" VALUES('done',1,'2026-02-01 10:59:59.998999','00000000000000000000000000000001','2026-02-01 10:59:59.998999','00000000000000000000000000000001',1,1,NULL,NULL,NULL,0,0,0,NULL,'0',NULL);
INSERT INTO "partition" VALUES('done',2,'2026-02-01 12:00:00.000000','00000000000000000000000000000000','2026-02-01 12:00:00.000000','00000000000000000000000000000000',1,1,NULL,NULL,NULL,0,0,0,NULL,'0',NULL);
INSERT INTO "partition" VALUES('begun',0,'2026-02-01 09:59:59.997998','00000000000000000000000000000002','2026-02-01 09:59:59.997998','00000000000000000000000000000002',1,1,'2026-02-01 13:00:00.000000','away','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */',1,0,0,0.5,'12','[["00000000000000000000000000000000", "relevancy"]]');
INSERT INTO "partition" VALUES('begun',1,'2026-02-01 10:59:59.998999','00000000000000000000000000000001','2026-02-01 10:59:59.998999','00000000000000000000000000000001',1,0,'2026-02-01 12:00:00.000000',NULL,NULL,0,0,0,NULL,'0',NULL);
INSERT INTO "partition" VALUES('begun',2,'2026-02-01 12:00:00.000000','00000000000000000000000000000000','2026-02-01 12:00:00.000000','00000000000000000000000000000000',1,0,'2026-02-01 12:00:00.000000',NULL,NULL,0,0,0,NULL,'0',NULL);
CREATE TABLE rate_limit ( name TEXT NOT NULL, arrival FLOAT NOT NULL, waited FLOAT NOT NULL, used_at DATETIME NOT NULL, PRIMARY KEY (name) );
INSERT INTO "rate_limit" VALUES('requests',1769947201.0,0.0,'2026-02-01 12:00:00.000000');
INSERT INTO "rate_limit" VALUES('tokens',1769947200.9,0.0,'2026-02-01 12:00:00.000000');
CREATE TABLE received_span ( trace_id TEXT NOT NULL, "key" TEXT NOT NULL, is_log BOOLEAN NOT NULL, service TEXT NOT NULL, scope TEXT NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (trace_id, "key") );
INSERT INTO "received_span" VALUES('00000000000000000000000000000002','0000000000000002',0,'shop','scope',X'00017370616E');
INSERT INTO "received_span" VALUES('00000000000000000000000000000003','0000000000000003',0,'shop','scope',X'00017370616E');
CREATE TABLE received_trace ( trace_id TEXT NOT NULL, due_at FLOAT, deadline FLOAT NOT NULL, wait FLOAT NOT NULL, spans INTEGER NOT NULL, size INTEGER NOT NULL, dropped INTEGER NOT NULL, lease_owner TEXT, finished_at FLOAT, span_keys BLOB, PRIMARY KEY (trace_id) );
INSERT INTO "received_trace" VALUES('00000000000000000000000000000001',NULL,0.0,0.0,1,6,0,NULL,1769947200.0,X'0000000000000001');
INSERT INTO "received_trace" VALUES('00000000000000000000000000000002',1769950800.0,1769947800.0,0.0,1,6,0,'away',NULL,NULL);
INSERT INTO "received_trace" VALUES('00000000000000000000000000000003',1769947260.0,1769947800.0,60.0,1,6,0,NULL,NULL,NULL);
CREATE TABLE rollup ( span INTEGER NOT NULL, dimension TEXT NOT NULL, start DATETIME NOT NULL, service TEXT NOT NULL, route TEXT NOT NULL, scorer TEXT NOT NULL, fingerprint TEXT NOT NULL, label TEXT NOT NULL, n BIGINT NOT NULL, n_zero BIGINT NOT NULL, sum_w FLOAT NOT NULL, sum_w_zero FLOAT NOT NULL, sum_w2 FLOAT NOT NULL, sum_w2_zero FLOAT NOT NULL, sum_wy FLOAT NOT NULL, sum_wy2 FLOAT NOT NULL, sum_w2y FLOAT NOT NULL, sum_w2y2 FLOAT NOT NULL, sum_w_low FLOAT NOT NULL, sum_w_noncommittal FLOAT NOT NULL, n_with_x BIGINT NOT NULL, sum_w_with_x FLOAT NOT NULL, sum_w2_with_x FLOAT NOT NULL, sum_wx FLOAT NOT NULL, sum_wy_with_x FLOAT NOT NULL, sum_wx2 FLOAT NOT NULL, sum_wxy FLOAT NOT NULL, sum_wy2_with_x FLOAT NOT NULL, sum_w2x FLOAT NOT NULL, sum_w2y_with_x FLOAT NOT NULL, sum_w2x2 FLOAT NOT NULL, sum_w2xy FLOAT NOT NULL, latest DATETIME NOT NULL, histogram BLOB NOT NULL, PRIMARY KEY (span, dimension, start, service, route, scorer, fingerprint, label) ) WITHOUT ROWID ;
INSERT INTO "rollup" VALUES(3600,'','2026-02-01 02:00:00.000000','shop','','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'','2026-02-01 02:00:00.000000','shop','','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'model','2026-02-01 02:00:00.000000','shop','search/{id}','faithfulness','f2','gpt-4o-mini',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'model','2026-02-01 02:00:00.000000','shop','search/{id}','relevancy','f1','gpt-4o-mini',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'route','2026-02-01 02:00:00.000000','shop','search/{id}','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'route','2026-02-01 02:00:00.000000','shop','search/{id}','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'model','2026-02-01 00:00:00.000000','shop','search/{id}','faithfulness','f2','gpt-4o-mini',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'model','2026-02-01 00:00:00.000000','shop','search/{id}','relevancy','f1','gpt-4o-mini',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'model','2026-01-29 00:00:00.000000','shop','search/{id}','faithfulness','f2','gpt-4o-mini',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'model','2026-01-29 00:00:00.000000','shop','search/{id}','relevancy','f1','gpt-4o-mini',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,0.75,0.421875,1.0,0.5625,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,0.75,3.33333333333333314829e-01,-0.375,0.421875,-8.88888888888888839545e-01,1.0,4.44444444444444419772e-01,-0.5,'2026-02-01 02:59:59.990991',X'38555555555555F53F');
CREATE TABLE rollup_count ( span INTEGER NOT NULL, dimension TEXT NOT NULL, start DATETIME NOT NULL, service TEXT NOT NULL, route TEXT NOT NULL, scorer TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (span, dimension, start, service, route, scorer, outcome, reason) ) WITHOUT ROWID ;
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','shop','','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','shop','','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','shop','','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','shop','','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 04:00:00.000000','shop','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 04:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 04:00:00.000000','shop','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 04:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 06:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 06:00:00.000000','shop','','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 06:00:00.000000','shop','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 06:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','shop','','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','shop','','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','shop','search/{id}','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','shop','search/{id}','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','shop','search/{id}','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','shop','search/{id}','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','shop','search/{id}','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','shop','search/{id}','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 04:00:00.000000','shop','search/{id}','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 04:00:00.000000','shop','search/{id}','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 04:00:00.000000','shop','search/{id}','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 04:00:00.000000','shop','search/{id}','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 06:00:00.000000','shop','search/{id}','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 06:00:00.000000','shop','search/{id}','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 06:00:00.000000','shop','search/{id}','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 06:00:00.000000','shop','search/{id}','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','ask','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','ask','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','ask','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','ask','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','shop','search/{id}','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','shop','search/{id}','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','shop','search/{id}','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','shop','search/{id}','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','pending','',2);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','seen','',6);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','skipped','not_sampled',2);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','relevancy','pending','',3);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','relevancy','seen','',6);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','relevancy','skipped','not_sampled',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask','faithfulness','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask','relevancy','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','faithfulness','seen','',4);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','relevancy','pending','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','relevancy','seen','',4);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','pending','',2);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','seen','',6);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','skipped','not_sampled',2);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','pending','',3);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','seen','',6);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','skipped','not_sampled',2);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask','faithfulness','seen','',2);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask','relevancy','seen','',2);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','faithfulness','seen','',4);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','relevancy','pending','',2);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','relevancy','seen','',4);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}','relevancy','skipped','not_sampled',1);
CREATE TABLE rollup_dimension ( name TEXT NOT NULL, PRIMARY KEY (name) ) WITHOUT ROWID ;
INSERT INTO "rollup_dimension" VALUES('model');
CREATE TABLE rollup_dirty_hour ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, hour DATETIME NOT NULL );
INSERT INTO "rollup_dirty_hour" VALUES(3,'2026-02-01 12:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(4,'2026-02-01 10:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(5,'2026-02-01 09:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(6,'2026-02-01 09:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(7,'2026-02-01 10:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(8,'2026-02-01 12:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(15,'2026-02-01 10:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(16,'2026-02-01 12:00:00.000000');
CREATE TABLE rollup_proxy ( span INTEGER NOT NULL, dimension TEXT NOT NULL, start DATETIME NOT NULL, service TEXT NOT NULL, route TEXT NOT NULL, n BIGINT NOT NULL, sum_v FLOAT NOT NULL, sum_v2 FLOAT NOT NULL, sum_vx FLOAT NOT NULL, sum_vx2 FLOAT NOT NULL, sum_v2x FLOAT NOT NULL, sum_v2x2 FLOAT NOT NULL, PRIMARY KEY (span, dimension, start, service, route) ) WITHOUT ROWID ;
INSERT INTO "rollup_proxy" VALUES(3600,'','2026-02-01 02:00:00.000000','shop','',1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,3.33333333333333314829e-01,-8.88888888888888839545e-01,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'','2026-02-01 04:00:00.000000','shop','',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'route','2026-02-01 02:00:00.000000','shop','search/{id}',1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,3.33333333333333314829e-01,-8.88888888888888839545e-01,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'route','2026-02-01 04:00:00.000000','shop','search/{id}',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','',3,6.66666666666666607454e+00,16.0,6.66666666666666629659e-01,6.66666666666666629659e-01,2.66666666666666651863e+00,1.33333333333333325931e+00);
INSERT INTO "rollup_proxy" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search/{id}',2,4.0,8.88888888888889,0.0,0.5,8.88888888888888839545e-01,8.88888888888888839545e-01);
INSERT INTO "rollup_proxy" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','',3,6.66666666666666607454e+00,16.0,6.66666666666666629659e-01,6.66666666666666629659e-01,2.66666666666666651863e+00,1.33333333333333325931e+00);
INSERT INTO "rollup_proxy" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search/{id}',2,4.0,8.88888888888889,0.0,0.5,8.88888888888888839545e-01,8.88888888888888839545e-01);
CREATE TABLE saved_view ( name TEXT NOT NULL, path TEXT NOT NULL, created_at DATETIME NOT NULL, created_by TEXT, PRIMARY KEY (name) );
INSERT INTO "saved_view" VALUES('السعر 👨‍👩‍👧 üß  ','/?window=7d','2026-02-01 12:00:00.000000','ann');
CREATE TABLE score ( id INTEGER NOT NULL, exchange_id TEXT NOT NULL, scorer TEXT NOT NULL, fingerprint TEXT NOT NULL, service TEXT NOT NULL, route TEXT NOT NULL, started_at DATETIME NOT NULL, sampling_probability FLOAT, proxy FLOAT, value FLOAT NOT NULL, label TEXT, explanation TEXT, details JSON NOT NULL, judge TEXT, embedder TEXT, input_tokens BIGINT, output_tokens BIGINT, cost FLOAT, latency FLOAT, scored_at DATETIME, PRIMARY KEY (id), CONSTRAINT uq_score UNIQUE (exchange_id, scorer, fingerprint) );
INSERT INTO "score" VALUES(1,'00000000000000000000000000000009','faithfulness','f2','shop','search/{id}','2026-02-01 02:59:59.990991',0.75,-0.5,0.5625,'partly_relevant',NULL,'{"questions": [{"similarity": 0.5}], "requests": 3}','gpt-4o-mini','text-embedding-3-small',109,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(2,'00000000000000000000000000000009','relevancy','f1','shop','search/{id}','2026-02-01 02:59:59.990991',0.75,-0.5,0.5625,'partly_relevant',NULL,'{"questions": [{"similarity": 0.5}], "requests": 3}','gpt-4o-mini','text-embedding-3-small',109,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(3,'00000000000000000000000000000001','faithfulness','f2 served','shop','search/{id}','2026-02-01 10:59:59.998999',0.5,NULL,0.0625,'partly_relevant','السعر 👨‍👩‍👧 üß  ','{"questions":[{"text":"السعر 👨‍👩‍👧 üß  ","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',101,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(4,'00000000000000000000000000000001','relevancy','f1 served','shop','search/{id}','2026-02-01 10:59:59.998999',0.5,NULL,0.0625,'partly_relevant','السعر 👨‍👩‍👧 üß  ','{"questions":[{"text":"السعر 👨‍👩‍👧 üß  ","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',101,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(5,'00000000000000000000000000000000','faithfulness','f2','shop','ask','2026-02-01 12:00:00.000000',0.5,NULL,0.0,'partly_relevant','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','{"questions":[{"text":"السعر 👨‍👩‍👧 üß  ","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',100,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(6,'00000000000000000000000000000000','relevancy','f1','shop','ask','2026-02-01 12:00:00.000000',0.5,NULL,0.0,'partly_relevant','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','{"questions":[{"text":"السعر 👨‍👩‍👧 üß  ","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',100,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
CREATE TABLE scoring_task ( id INTEGER NOT NULL, exchange_id TEXT NOT NULL, scorer TEXT NOT NULL, fingerprint TEXT NOT NULL, state TEXT NOT NULL, reason TEXT, error TEXT, claims INTEGER NOT NULL, first_pending_at DATETIME NOT NULL, due_at DATETIME, lease_owner TEXT, scored_as TEXT, retries INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id), CONSTRAINT uq_scoring_task UNIQUE (exchange_id, scorer, fingerprint) );
INSERT INTO "scoring_task" VALUES(1,'00000000000000000000000000000009','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(2,'00000000000000000000000000000009','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,'f1',0);
INSERT INTO "scoring_task" VALUES(3,'00000000000000000000000000000000','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(4,'00000000000000000000000000000000','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,'f1',0);
INSERT INTO "scoring_task" VALUES(5,'00000000000000000000000000000001','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,'f2 served',0);
INSERT INTO "scoring_task" VALUES(6,'00000000000000000000000000000001','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000',NULL,'f1 served',0);
INSERT INTO "scoring_task" VALUES(7,'00000000000000000000000000000002','faithfulness','f2','failed','unparsable','the judge said: two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */',1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(8,'00000000000000000000000000000002','relevancy','f1','failed','unparsable','the judge said: two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */',1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(9,'00000000000000000000000000000003','faithfulness','f2','skipped','not_sampled',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(10,'00000000000000000000000000000003','relevancy','f1','skipped','not_sampled',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(11,'00000000000000000000000000000004','faithfulness','f2','pending','judge_timeout','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */',0,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000',NULL,NULL,1);
INSERT INTO "scoring_task" VALUES(12,'00000000000000000000000000000004','relevancy','f1','pending','judge_timeout','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */',0,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000',NULL,NULL,1);
INSERT INTO "scoring_task" VALUES(13,'00000000000000000000000000000005','faithfulness','f2','skipped','missing_input',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(14,'00000000000000000000000000000005','relevancy','f1','running',NULL,NULL,1,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000','running',NULL,0);
INSERT INTO "scoring_task" VALUES(15,'00000000000000000000000000000007','faithfulness','f2','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(16,'00000000000000000000000000000007','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(17,'00000000000000000000000000000008','faithfulness','f2','skipped','not_sampled',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(18,'00000000000000000000000000000008','relevancy','f1','skipped','not_sampled',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
CREATE TABLE silence ( id TEXT NOT NULL, matchers JSON NOT NULL, starts_at DATETIME NOT NULL, ends_at DATETIME NOT NULL, created_by TEXT, comment TEXT, PRIMARY KEY (id) );
INSERT INTO "silence" VALUES('s1','{"route": "ask*"}','2026-02-01 11:00:00.000000','2026-02-01 13:00:00.000000','ann','two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */');
CREATE TABLE tally ( minute DATETIME NOT NULL, service TEXT NOT NULL, route TEXT NOT NULL, scorer TEXT NOT NULL, process TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (minute, service, route, scorer, process, outcome, reason) ) WITHOUT ROWID ;
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','shop','search/{id}','faithfulness','process','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','shop','search/{id}','faithfulness','process','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','shop','search/{id}','faithfulness','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','shop','search/{id}','relevancy','process','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','shop','search/{id}','relevancy','process','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','shop','search/{id}','relevancy','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask','faithfulness','process','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask','faithfulness','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask','faithfulness','process','skipped','not_sampled',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask','relevancy','process','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask','relevancy','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask','relevancy','process','skipped','not_sampled',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search/{id}','faithfulness','process','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search/{id}','faithfulness','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search/{id}','relevancy','process','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search/{id}','relevancy','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','search/{id}','faithfulness','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','search/{id}','faithfulness','process','skipped','missing_input',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','search/{id}','relevancy','process','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','search/{id}','relevancy','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','ask','faithfulness','process','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','ask','faithfulness','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','ask','relevancy','process','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','ask','relevancy','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','shop','search/{id}','faithfulness','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','shop','search/{id}','faithfulness','process','skipped','not_sampled',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','shop','search/{id}','relevancy','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','shop','search/{id}','relevancy','process','skipped','not_sampled',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask','faithfulness','process','failed','unparsable',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask','faithfulness','process','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask','faithfulness','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask','relevancy','process','failed','unparsable',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask','relevancy','process','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask','relevancy','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search/{id}','faithfulness','process','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search/{id}','faithfulness','process','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search/{id}','faithfulness','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search/{id}','relevancy','process','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search/{id}','relevancy','process','scored','',0);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search/{id}','relevancy','process','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','process','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','process','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','process','seen','',8);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','process','skipped','queue_full',7);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','process','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','process','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','process','seen','',8);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','process','skipped','queue_full',7);
CREATE TABLE unreadable_trace ( trace_id TEXT NOT NULL, service TEXT NOT NULL, scope TEXT NOT NULL, reason TEXT NOT NULL, started_at DATETIME NOT NULL, sampled_at DATETIME NOT NULL, spans JSON NOT NULL, spans_omitted INTEGER NOT NULL, PRIMARY KEY (trace_id) );
INSERT INTO "unreadable_trace" VALUES('ffffffffffffffffffffffffffffffff','shop','s','no_answer','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000','[{"name": "Chain", "scope": "s", "kind": "INTERNAL", "status": "UNSET", "depth": 0, "duration": 0.5, "attributes": [{"name": "input.value", "type": "string", "length": 12, "record": ""}], "attributes_omitted": 0}]',2);
CREATE TABLE watched_trace ( hour DATETIME NOT NULL, service TEXT NOT NULL, scope TEXT NOT NULL, outcome TEXT NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (hour, service, scope, outcome) ) WITHOUT ROWID ;
INSERT INTO "watched_trace" VALUES('1970-01-01 00:00:00.000000','shop','scope','recognized',3);
CREATE TABLE worker ( id TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, service TEXT NOT NULL, version TEXT NOT NULL, scorers JSON NOT NULL, concurrency INTEGER NOT NULL, in_flight INTEGER NOT NULL, problem TEXT, started_at DATETIME NOT NULL, seen_at DATETIME NOT NULL, PRIMARY KEY (id) );
INSERT INTO "worker" VALUES('ended','a',1,'shop','0.1.0','{}',0,0,NULL,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
INSERT INTO "worker" VALUES('running','a',1,'shop','0.1.0','{"faithfulness": "f2", "relevancy": "f1"}',8,1,'two
lines, ''a'' "quote", 100 % \escaped\ /* $1 :name %s */','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
CREATE VIEW answers AS SELECT exchange.id AS exchange_id, exchange.trace_id, exchange.service, exchange.route, exchange.model, exchange.prompt_version, exchange.started_at, exchange.duration, exchange.question, exchange.answer, exchange.status, scoring_task.scorer, COALESCE(scoring_task.scored_as, scoring_task.fingerprint) AS fingerprint, scoring_task.state, scoring_task.reason, score.value, score.label, score.explanation, score.judge, score.cost, score.scored_at, 1.0 / NULLIF(COALESCE(score.sampling_probability, exchange.sampling_probability), 0) AS weight FROM scoring_task JOIN exchange ON exchange.id = scoring_task.exchange_id LEFT JOIN score ON score.exchange_id = scoring_task.exchange_id AND score.scorer = scoring_task.scorer AND score.fingerprint = COALESCE(scoring_task.scored_as, scoring_task.fingerprint);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('rollup_dirty_hour',16);
INSERT INTO "sqlite_sequence" VALUES('detector_input',4);
CREATE INDEX ix_alert_event_alert_id ON alert_event (alert_id);
CREATE INDEX ix_alert_starts_at ON alert (starts_at);
CREATE INDEX ix_baseline_status ON baseline (status);
CREATE INDEX ix_calibration_made_at ON calibration (made_at);
CREATE INDEX ix_detector_input_exchange_id ON detector_input (exchange_id);
CREATE INDEX ix_exchange_candidate ON exchange (started_at) WHERE sampling_reason = 'candidate';
CREATE INDEX ix_exchange_proxy ON exchange (started_at, service, route, proxy, proxy_probability, capture_probability) WHERE proxy IS NOT NULL;
CREATE INDEX ix_exchange_route ON exchange (route, started_at);
CREATE INDEX ix_exchange_started_at ON exchange (started_at);
CREATE INDEX ix_exchange_text ON exchange (started_at) WHERE erased_at IS NULL;
CREATE INDEX ix_exchange_unsampled ON exchange (started_at) WHERE sampling_reason IS NULL;
CREATE INDEX ix_feedback_comment ON feedback (created_at) WHERE comment IS NOT NULL;
CREATE INDEX ix_feedback_created_at ON feedback (created_at);
CREATE INDEX ix_feedback_exchange_id ON feedback (exchange_id);
CREATE INDEX ix_feedback_unconsidered ON feedback (created_at) WHERE considered_at IS NULL;
CREATE INDEX ix_forwarded_request_due_at ON forwarded_request (due_at, size);
CREATE INDEX ix_forwarded_request_exchange_id ON forwarded_request (exchange_id) WHERE exchange_id IS NOT NULL;
CREATE INDEX ix_marker_at ON marker (at);
CREATE INDEX ix_notification_created_at ON notification (created_at);
CREATE INDEX ix_notification_due ON notification (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ix_received_trace_due_at ON received_trace (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ix_received_trace_finished_at ON received_trace (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX ix_rollup_dirty_hour_hour ON rollup_dirty_hour (hour);
CREATE INDEX ix_score_started_at ON score (started_at, scorer, service, route, fingerprint, value, label, sampling_probability, proxy);
CREATE INDEX ix_score_value ON score (value, scorer, started_at, route);
CREATE INDEX ix_scoring_task_candidate ON scoring_task (scorer, fingerprint, first_pending_at) WHERE state = 'pending' AND due_at IS NULL;
CREATE INDEX ix_scoring_task_lease_owner ON scoring_task (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX ix_scoring_task_open ON scoring_task (scorer, fingerprint, due_at, first_pending_at) WHERE due_at IS NOT NULL;
CREATE INDEX ix_scoring_task_state ON scoring_task (state, reason);
CREATE INDEX ix_silence_ends_at ON silence (ends_at);
CREATE INDEX ix_unreadable_trace_reason ON unreadable_trace (service, scope, reason, sampled_at);
CREATE INDEX ix_unreadable_trace_sampled_at ON unreadable_trace (sampled_at);
CREATE INDEX ix_worker_seen_at ON worker (seen_at);
CREATE UNIQUE INDEX ix_forwarded_request_span ON forwarded_request (trace_id, span_id) WHERE trace_id IS NOT NULL;
CREATE UNIQUE INDEX uq_alert_open ON alert ("key") WHERE state <> 'resolved';
COMMIT;
