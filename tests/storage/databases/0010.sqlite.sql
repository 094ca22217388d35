BEGIN TRANSACTION;
CREATE TABLE alert (
	id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	rule TEXT NOT NULL, 
	type TEXT NOT NULL, 
	labels JSON NOT NULL, 
	state TEXT NOT NULL, 
	severity TEXT NOT NULL, 
	cause TEXT, 
	message TEXT NOT NULL, 
	fingerprint TEXT, 
	value FLOAT, 
	threshold FLOAT, 
	window FLOAT, 
	onset DATETIME, 
	body JSON NOT NULL, 
	starts_at DATETIME NOT NULL, 
	fired_at DATETIME, 
	resolved_at DATETIME, 
	evaluated_at DATETIME NOT NULL, 
	notified_at DATETIME, 
	acknowledged_at DATETIME, 
	acknowledged_by TEXT, 
	resolve_reason TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "alert" VALUES('a1','f1814fed1cfb222e7804d941eb7c7ae5','drop','drop','{"service": "shop", "scorer": "relevancy"}','firing','critical','refusals_rising','NUL �, half a pair � and "quotes"; DROP TABLE alert; 👨‍👩 üß','f1',0.5,0.7,86400.0,'2026-01-31 16:00:00.000000','{"current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "shifts": [{"dimension": "route", "name": "search", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "details": {"contributors": [], "said": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}}','2026-01-31 18:00:00.000000','2026-01-31 19:00:00.000000',NULL,'2026-01-31 20:00:00.000000','2026-01-31 19:00:00.000000','2026-02-01 11:00:00.000000','ann',NULL);
INSERT INTO "alert" VALUES('a2','17f5a8723dc7786040531aa016b8e47d','mean_threshold','mean_threshold','{"service": "caf\u00e9", "scorer": "relevancy", "route": "ask"}','resolved','warning','retrieval_worse','worse',NULL,NULL,NULL,NULL,NULL,'{"current": null, "baseline": null, "shifts": [], "exchange_ids": [], "details": {}}','2026-01-28 18:00:00.000000','2026-01-28 18:00:00.000000','2026-01-29 04:00:00.000000','2026-01-29 04:00:00.000000',NULL,NULL,NULL,'recovered');
INSERT INTO "alert" VALUES('a4','282a802bbf82c1153ab30a0dcbf87627','no_data','no_data','{"service": "shop", "scorer": "faithfulness"}','pending','warning',NULL,'',NULL,NULL,NULL,NULL,NULL,'{"current": null, "baseline": null, "shifts": [], "exchange_ids": [], "details": {}}','2026-02-01 12:00:00.000000',NULL,NULL,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL);
INSERT INTO "alert" VALUES('a3','17f5a8723dc7786040531aa016b8e47d','mean_threshold','mean_threshold','{"service": "caf\u00e9", "scorer": "relevancy", "route": "ask"}','recovering','warning','retrieval_worse','worse',NULL,NULL,NULL,NULL,NULL,'{"current": null, "baseline": null, "shifts": [], "exchange_ids": [], "details": {}}','2026-02-01 03:00:00.000000','2026-02-01 03:00:00.000000',NULL,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL);
CREATE TABLE alert_event (
	id TEXT NOT NULL, 
	alert_id TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	type TEXT NOT NULL, 
	"before" TEXT, 
	"after" TEXT NOT NULL, 
	detail JSON NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "alert_event" VALUES('a1 pending','a1','2026-01-31 18:00:00.000000','pending',NULL,'pending','{}');
INSERT INTO "alert_event" VALUES('a1 fired','a1','2026-01-31 19:00:00.000000','fired','pending','firing','{"by": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}');
INSERT INTO "alert_event" VALUES('a1 acknowledged','a1','2026-02-01 11:00:00.000000','acknowledged','firing','firing','{"by": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}');
INSERT INTO "alert_event" VALUES('a2 fired','a2','2026-01-28 18:00:00.000000','fired',NULL,'firing','{}');
INSERT INTO "alert_event" VALUES('a4 pending','a4','2026-02-01 12:00:00.000000','pending',NULL,'pending','{}');
INSERT INTO "alert_event" VALUES('a2 resolved','a2','2026-01-29 04:00:00.000000','resolved','firing','resolved','{"by": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}');
INSERT INTO "alert_event" VALUES('a3 fired','a3','2026-02-01 03:00:00.000000','fired',NULL,'firing','{}');
INSERT INTO "alert_event" VALUES('a3 recovering','a3','2026-02-01 12:00:00.000000','recovering','firing','recovering','{"by": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}');
CREATE TABLE archived_day (
	day DATETIME NOT NULL, 
	location TEXT NOT NULL, 
	state TEXT NOT NULL, 
	removed_before DATETIME NOT NULL, 
	manifest JSON NOT NULL, 
	dimensions JSON NOT NULL, 
	has_stale_files BOOLEAN NOT NULL, 
	has_lowest BOOLEAN, 
	labels BIGINT, 
	written_at DATETIME NOT NULL, 
	verified_at DATETIME, 
	removed_at DATETIME, 
	PRIMARY KEY (day)
)
 WITHOUT ROWID

;
CREATE TABLE archived_lowest (
	dimension TEXT NOT NULL, 
	day DATETIME NOT NULL, 
	service TEXT NOT NULL, 
	route TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	entries BLOB NOT NULL, 
	PRIMARY KEY (dimension, day, service, route, scorer, fingerprint)
)
 WITHOUT ROWID

;
CREATE TABLE baseline (
	id INTEGER NOT NULL, 
	service TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	since DATETIME NOT NULL, 
	until DATETIME NOT NULL, 
	n BIGINT NOT NULL, 
	mean FLOAT, 
	deviation FLOAT, 
	numbers JSON NOT NULL, 
	model TEXT, 
	prompt_version TEXT, 
	created_at DATETIME NOT NULL, 
	accepted_by TEXT, 
	PRIMARY KEY (id), 
	CONSTRAINT uq_baseline UNIQUE (service, scorer, fingerprint, scope, version)
);
INSERT INTO "baseline" VALUES(1,'shop','relevancy','f1','',1,'superseded','imported','2026-01-17 12:00:00.000000','2026-01-31 12:00:00.000000',2400,8.31249999999999933386e-01,0.25,'{"since": "2026-01-17T12:00:00+00:00", "until": "2026-01-31T12:00:00+00:00", "scores_per_day": 160.0, "committed_per_day": 152.0, "keep": 0.999, "routes": {"ask": {"n": 600, "mean": 0.8312499999999999, "deviation": 0.25, "committed": 570, "committed_mean": 0.875, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "search": {"n": 600, "mean": 0.8312499999999999, "deviation": 0.25, "committed": 570, "committed_mean": 0.875, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "ask/{id}": {"n": 600, "mean": 0.8312499999999999, "deviation": 0.25, "committed": 570, "committed_mean": 0.875, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "(other)": {"n": 600, "mean": 0.8312499999999999, "deviation": 0.25, "committed": 570, "committed_mean": 0.875, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}}, "pooled": ["about"]}',NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "baseline" VALUES(2,'shop','relevancy','f1','',2,'active','accepted','2026-01-17 12:00:00.000000','2026-01-31 12:00:00.000000',2400,7.12499999999999911182e-01,0.25,'{"since": "2026-01-17T12:00:00+00:00", "until": "2026-01-31T12:00:00+00:00", "scores_per_day": 160.0, "committed_per_day": 152.0, "keep": 0.999, "routes": {"ask": {"n": 600, "mean": 0.7124999999999999, "deviation": 0.25, "committed": 570, "committed_mean": 0.75, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "search": {"n": 600, "mean": 0.7124999999999999, "deviation": 0.25, "committed": 570, "committed_mean": 0.75, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "ask/{id}": {"n": 600, "mean": 0.7124999999999999, "deviation": 0.25, "committed": 570, "committed_mean": 0.75, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "(other)": {"n": 600, "mean": 0.7124999999999999, "deviation": 0.25, "committed": 570, "committed_mean": 0.75, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}}, "pooled": ["about"]}','gpt-4o-mini','7','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "baseline" VALUES(3,'café','relevancy','f1','',1,'active','first','2026-01-17 12:00:00.000000','2026-01-31 12:00:00.000000',2400,0.475,0.25,'{"since": "2026-01-17T12:00:00+00:00", "until": "2026-01-31T12:00:00+00:00", "scores_per_day": 160.0, "committed_per_day": 152.0, "keep": 0.999, "routes": {"ask": {"n": 600, "mean": 0.475, "deviation": 0.25, "committed": 570, "committed_mean": 0.5, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "search": {"n": 600, "mean": 0.475, "deviation": 0.25, "committed": 570, "committed_mean": 0.5, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "ask/{id}": {"n": 600, "mean": 0.475, "deviation": 0.25, "committed": 570, "committed_mean": 0.5, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}, "(other)": {"n": 600, "mean": 0.475, "deviation": 0.25, "committed": 570, "committed_mean": 0.5, "committed_deviation": 0.125, "zero_rate": 0.05, "committed_wander": 0.015625, "zero_wander": 0.0078125, "scores_per_day": 40.0, "committed_per_day": 38.0}}, "pooled": ["about"]}','gpt-4o-mini','7','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "baseline" VALUES(4,'shop','relevancy','f1','{"tenant": "acme*"}',1,'learning','first','2026-02-01 11:00:00.000000','2026-02-14 00:00:00.000000',0,NULL,NULL,'{}',NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "baseline" VALUES(5,'café','faithfulness','f2','',1,'learning','first','2026-02-01 12:00:00.000000','2026-02-15 12:00:00.000000',0,NULL,NULL,'{}',NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "baseline" VALUES(6,'shop','faithfulness','f2 served','',1,'learning','first','2026-02-01 12:00:00.000000','2026-02-15 12:00:00.000000',0,NULL,NULL,'{}',NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "baseline" VALUES(7,'shop','relevancy','f1 served','',1,'learning','judge_changed','2026-02-01 12:00:00.000000','2026-02-15 12:00:00.000000',0,NULL,NULL,'{}',NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "baseline" VALUES(8,'shop','faithfulness','f2','',1,'learning','first','2026-02-01 12:00:00.000000','2026-02-15 12:00:00.000000',0,NULL,NULL,'{}',NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
CREATE TABLE budget (
	day TEXT NOT NULL, 
	requests BIGINT NOT NULL, 
	tokens FLOAT NOT NULL, 
	usd FLOAT NOT NULL, 
	selected BIGINT NOT NULL, 
	PRIMARY KEY (day)
);
INSERT INTO "budget" VALUES('2026-02-01',4,600.0,1.0,2);
INSERT INTO "budget" VALUES('2026-01-31',7,700.0,0.25,0);
CREATE TABLE calibration (
	id INTEGER NOT NULL, 
	embedder TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	floor FLOAT NOT NULL, 
	high FLOAT NOT NULL, 
	n INTEGER NOT NULL, 
	made_at DATETIME NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "calibration" VALUES(1,'e','relevancy','f1',0.07,0.2,400,'2026-02-01 12:00:00.000000');
CREATE TABLE detector (
	rule TEXT NOT NULL, 
	service TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	parameters TEXT NOT NULL, 
	baseline_id BIGINT NOT NULL, 
	state JSON NOT NULL, 
	log_evidence FLOAT, 
	seen_at DATETIME, 
	row_version BIGINT NOT NULL, 
	PRIMARY KEY (rule, service, scorer)
);
INSERT INTO "detector" VALUES('drop','shop','relevancy','6e55169b872d2f00',2,'{"active_fingerprint": {"fingerprint": "f1", "votes": 20}, "detector": {"threshold": 10.975071168816319, "streams": [{"route": null, "numbers": "396c07aba51b4bf7", "logs": [[null, null, null, null, null, null, null, null], [3.7018710864753333, 4.374572961909647, 5.281179936844106, 6.457264066149513, 8.525208058684099, 10.358873379844663, 12.430844411508511, 14.702494599751594]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [2.462792873411605, 3.334574255425952, 4.439478837061557, 5.797762544718195, 8.072049390818604, 10.022463523895837, 12.18490807851256, 14.524876034951776]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0]]}, {"route": "(other)", "numbers": "444b7d8a3baa0b90", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}, {"route": "ask", "numbers": "444b7d8a3baa0b90", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}, {"route": "ask/{id}", "numbers": "444b7d8a3baa0b90", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}, {"route": "search", "numbers": "444b7d8a3baa0b90", "logs": [[null, null, null, null, null, null, null, null], [3.9645051951316637, 4.732175959975329, 5.750990849651401, 7.048639584497543, 8.525208058684099, 10.358873379844663, 12.430844411508511, 14.702494599751594]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [2.809807122273134, 3.77826141865797, 4.9901135213442, 6.4596295779985, 8.072049390818604, 10.022463523895837, 12.18490807851256, 14.524876034951776]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0, 1769875200.0]]}], "firing": {"onset": 1769875200.0, "contributors": [{"route": "search", "half": "zero"}, {"route": null, "half": "zero"}], "recovery": [[8.289939906827271, 3.656553058633483, 1.351442737114395], [10.442487031763273, 5.267270919864546, 2.6912459511676996]]}}, "affected": [null], "compared": ["ask/{id}"], "limiter": {"users": {"hour": 491652, "counts": {"40a56ec5": 1}}, "traffic": {"(other)": [40.0, 0.0], "ask": [40.0, 0.0], "ask/{id}": [40.0, 1769947200.0], "search": [40.0, 0.0]}}, "improvement": {"threshold": 10.975071168816319, "streams": [{"route": null, "numbers": "396c07aba51b4bf7", "logs": [[-0.10850874379723786, -0.1600138102437089, -0.23710264656142266, -0.35227777635422614, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "rises": [[-0.10850874379723786, -0.1600138102437089, -0.23710264656142266, -0.35227777635422614, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "starts": [[1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]]}, {"route": "(other)", "numbers": "98c77391dfb5a028", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}, {"route": "ask", "numbers": "98c77391dfb5a028", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}, {"route": "ask/{id}", "numbers": "98c77391dfb5a028", "logs": [[-0.19583516439479173, -0.2936945756428105, -0.4457901448515386, -0.6851499110305992, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "rises": [[-0.19583516439479173, -0.2936945756428105, -0.4457901448515386, -0.6851499110305992, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917, -0.9441890537097917], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "starts": [[1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]]}, {"route": "search", "numbers": "98c77391dfb5a028", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}], "firing": null}, "improvement_proposed": false, "new_routes": {}}',1.11258180646612476745e+01,'2026-02-01 12:00:00.000000',2);
INSERT INTO "detector" VALUES('drop','café','faithfulness','6e55169b872d2f00',5,'{"active_fingerprint": {"fingerprint": "f2", "votes": 20}, "detector": null, "affected": [], "compared": [], "limiter": null, "improvement": null, "improvement_proposed": false, "new_routes": {}}',NULL,'2026-02-01 12:00:00.000000',1);
INSERT INTO "detector" VALUES('drop','café','relevancy','6e55169b872d2f00',3,'{"active_fingerprint": {"fingerprint": "f1", "votes": 20}, "detector": {"threshold": 10.975071168816319, "streams": [{"route": null, "numbers": "3341b13415b266b8", "logs": [[null, null, null, null, null, null, null, null], [0.3078491091764507, 0.41682178192824393, 0.5549348546326947, 0.7247203180897742, 1.0090061738523255, 1.2528079404869796, 1.5231135098140698, 1.8156095043689722]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.3078491091764507, 0.41682178192824393, 0.5549348546326947, 0.7247203180897742, 1.0090061738523255, 1.2528079404869796, 1.5231135098140698, 1.8156095043689722]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]]}, {"route": "(other)", "numbers": "079750997e92a9ed", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}, {"route": "ask", "numbers": "079750997e92a9ed", "logs": [[null, null, null, null, null, null, null, null], [0.3512258902841417, 0.4722826773322464, 0.6237641901680251, 0.8074536972498126, 1.0090061738523255, 1.2528079404869796, 1.5231135098140698, 1.8156095043689722]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.3512258902841417, 0.4722826773322464, 0.6237641901680251, 0.8074536972498126, 1.0090061738523255, 1.2528079404869796, 1.5231135098140698, 1.8156095043689722]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]]}, {"route": "ask/{id}", "numbers": "079750997e92a9ed", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}, {"route": "search", "numbers": "079750997e92a9ed", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}], "firing": null}, "affected": [], "compared": [], "limiter": {"users": {"hour": 0, "counts": {}}, "traffic": {"(other)": [40.0, 0.0], "ask": [40.0, 1769947200.0], "ask/{id}": [40.0, 0.0], "search": [40.0, 0.0]}}, "improvement": {"threshold": 10.975071168816319, "streams": [{"route": null, "numbers": "3341b13415b266b8", "logs": [[-0.11637133554508351, -0.17188621762323206, -0.2552912584339207, -0.3805702148470409, -2.201363819920487, -2.3025850762942324, -2.3025850762942324, -2.3025850762942324], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "rises": [[-0.11637133554508351, -0.17188621762323206, -0.2552912584339207, -0.3805702148470409, -2.201363819920487, -2.3025850762942324, -2.3025850762942324, -2.3025850762942324], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "starts": [[1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]]}, {"route": "(other)", "numbers": "0f4ee96277e5b5fc", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}, {"route": "ask", "numbers": "0f4ee96277e5b5fc", "logs": [[-0.2050309410081861, -0.30816687311134694, -0.46945486872431025, -0.7260759696509361, -2.201363819920487, -2.3025850762942324, -2.3025850762942324, -2.3025850762942324], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "rises": [[-0.2050309410081861, -0.30816687311134694, -0.46945486872431025, -0.7260759696509361, -2.201363819920487, -2.3025850762942324, -2.3025850762942324, -2.3025850762942324], [-0.02739897418811445, -0.0395419273199608, -0.05722260388184158, -0.08314421097079516, -0.12154284676168968, -0.1793352957192333, -0.26854456510257313, -0.4122447950935432]], "starts": [[1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0], [1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0, 1769947200.0]]}, {"route": "ask/{id}", "numbers": "0f4ee96277e5b5fc", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}, {"route": "search", "numbers": "0f4ee96277e5b5fc", "logs": [[null, null, null, null, null, null, null, null], [null, null, null, null, null, null, null, null]], "rises": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "starts": [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]}], "firing": null}, "improvement_proposed": false, "new_routes": {}}',-5.15736267539208537158e-01,'2026-02-01 12:00:00.000000',1);
INSERT INTO "detector" VALUES('drop','shop','faithfulness','6e55169b872d2f00',6,'{"active_fingerprint": {"fingerprint": "f2 served", "votes": 19}, "detector": null, "affected": [], "compared": [], "limiter": null, "improvement": null, "improvement_proposed": false, "new_routes": {}}',NULL,'2026-02-01 12:00:00.000000',1);
CREATE TABLE detector_input (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	service TEXT NOT NULL, 
	route TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	exchange_id TEXT NOT NULL, 
	value FLOAT NOT NULL, 
	is_zero BOOLEAN NOT NULL, 
	arrived_at DATETIME NOT NULL
);
INSERT INTO "detector_input" VALUES(7,'café','ask','faithfulness','f2','00000000000000000000000000000004',0.5,0,'2026-02-01 12:00:00.000000');
INSERT INTO "detector_input" VALUES(8,'café','ask','relevancy','f1','00000000000000000000000000000004',0.5,0,'2026-02-01 12:00:00.000000');
CREATE TABLE exchange (
	id TEXT NOT NULL, 
	trace_id TEXT NOT NULL, 
	span_id TEXT NOT NULL, 
	service TEXT NOT NULL, 
	route TEXT NOT NULL, 
	question TEXT, 
	answer TEXT, 
	contexts JSON NOT NULL, 
	history JSON NOT NULL, 
	model TEXT, 
	prompt_version TEXT, 
	session TEXT, 
	user TEXT, 
	attributes JSON NOT NULL, 
	status TEXT NOT NULL, 
	error TEXT, 
	started_at DATETIME NOT NULL, 
	duration FLOAT NOT NULL, 
	sampling_key FLOAT NOT NULL, 
	traced BOOLEAN NOT NULL, 
	capture_probability FLOAT DEFAULT '1' NOT NULL, 
	proxy FLOAT, 
	proxy_probability FLOAT, 
	sampling_probability FLOAT, 
	sampling_reason TEXT, 
	erased_at DATETIME, 
	span_holder TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "exchange" VALUES('00000000000000000000000000000001','00000000000000000000000000000001','0000000000000001','café','ask','How do I pay?','0: How do I pay?','[]','[]','gpt-4o-mini',NULL,NULL,NULL,'{"tenant":"acme","trial":false,"seats":0,"share":0.0,"How do I pay?":"How do I pay?"}','ok',NULL,'2026-02-01 12:00:00.000000',0.0,0.03125,0,1.0,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000002','00000000000000000000000000000001','0000000000000002','shop','search','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','1: It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','[{"text":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */","id":"page 1","score":0.25}]','[{"role":"user","content":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}]',NULL,'7','s1','u1','{"tenant":"acme","trial":true,"seats":1,"share":0.125,"It''s \"quoted\", 100 %":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}','ok',NULL,'2026-02-01 10:59:59.998999',0.0625,0.0625,1,1.0,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000003','00000000000000000000000000000002','0000000000000003','shop','ask/{id}','two
lines	and   a separator','2: two
lines	and   a separator','[{"text":"two\nlines\tand   a separator","id":"page 2","score":0.25},{"text":"","id":null,"score":null}]','[]','gpt-4o-mini','7','s2','u2','{"tenant":"acme","trial":false,"seats":2,"share":0.25,"two\nlines\tand   a se":"two\nlines\tand   a separator"}','ok',NULL,'2026-02-01 09:59:59.997998',0.125,0.09375,0,1.0,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000004','00000000000000000000000000000002','0000000000000004','café','ask','السعر 👨‍👩‍👧 üß','3: السعر 👨‍👩‍👧 üß','[]','[{"role":"user","content":"السعر 👨‍👩‍👧 üß"}]',NULL,'7','s0','u3','{"tenant":"acme","trial":true,"seats":3,"share":0.375,"السعر 👨‍👩‍👧 üß":"السعر 👨‍👩‍👧 üß"}','error','ValueError: السعر 👨‍👩‍👧 üß','2026-02-01 08:59:59.996997',0.1875,0.125,1,1.0,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000005','00000000000000000000000000000003','0000000000000005','shop','search','NUL � and half a pair �','4: NUL � and half a pair �','[{"text":"NUL � and half a pair �","id":"page 4","score":0.25}]','[]','gpt-4o-mini',NULL,'s1','u0','{"tenant":"acme","trial":false,"seats":4,"share":0.5,"NUL � and half a pai":"NUL � and half a pair �"}','ok',NULL,'2026-02-01 07:59:59.995996',0.25,0.15625,0,1.0,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000006','00000000000000000000000000000003','0000000000000006','shop','ask/{id}','','5: ','[{"text":"","id":"page 5","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":""}]',NULL,'7',NULL,NULL,'{"tenant":"acme","trial":true,"seats":5,"share":0.625,"":""}','ok',NULL,'2026-02-01 06:59:59.994995',0.3125,0.1875,1,1.0,NULL,NULL,0.5,'not_sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000007','00000000000000000000000000000004','0000000000000007','café','ask','<script>alert(1)</script>','6: <script>alert(1)</script>','[]','[]','gpt-4o-mini','7','s0','u2','{"tenant":"acme","trial":false,"seats":6,"share":0.75,"<script>alert(1)</sc":"<script>alert(1)</script>"}','ok',NULL,'2026-02-01 05:59:59.993994',0.375,0.21875,0,1.0,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000008','00000000000000000000000000000004','0000000000000008','shop','search','long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','7: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','[{"text":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ","id":"page 7","score":0.25}]','[{"role":"user","content":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}]',NULL,'7','s1','u3','{"tenant":"acme","trial":true,"seats":7,"share":0.875,"long long long long ":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}','error','ValueError: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','2026-02-01 04:59:59.992993',0.4375,0.25,1,1.0,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000009','00000000000000000000000000000005','0000000000000009','shop','ask/{id}','How do I pay?','8: How do I pay?','[{"text":"How do I pay?","id":"page 8","score":0.25},{"text":"","id":null,"score":null}]','[]','gpt-4o-mini',NULL,'s2','u0','{"tenant":"acme","trial":false,"seats":8,"share":1.0,"How do I pay?":"How do I pay?"}','ok',NULL,'2026-02-01 03:59:59.991992',0.5,0.28125,0,1.0,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000a','00000000000000000000000000000005','000000000000000a','café','ask','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */',NULL,'[]','[{"role":"user","content":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}]',NULL,'7','s0','u1','{"tenant":"acme","trial":true,"seats":9,"share":1.125,"It''s \"quoted\", 100 %":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}','ok',NULL,'2026-02-01 02:59:59.990991',0.5625,0.3125,1,1.0,NULL,NULL,0.5,'sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000b','00000000000000000000000000000006','000000000000000b','shop','search','two
lines	and   a separator','10: two
lines	and   a separator','[{"text":"two\nlines\tand   a separator","id":"page 10","score":0.25}]','[]','gpt-4o-mini','7',NULL,NULL,'{"tenant":"acme","trial":false,"seats":10,"share":1.25,"two\nlines\tand   a se":"two\nlines\tand   a separator"}','ok',NULL,'2026-02-01 01:59:59.989990',0.625,0.34375,0,1.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000c','00000000000000000000000000000006','000000000000000c','shop','ask/{id}','السعر 👨‍👩‍👧 üß','11: السعر 👨‍👩‍👧 üß','[{"text":"السعر 👨‍👩‍👧 üß","id":"page 11","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","content":"السعر 👨‍👩‍👧 üß"}]',NULL,'7','s2','u3','{"tenant":"acme","trial":true,"seats":11,"share":1.375,"السعر 👨‍👩‍👧 üß":"السعر 👨‍👩‍👧 üß"}','error','ValueError: السعر 👨‍👩‍👧 üß','2026-02-01 00:59:59.988989',0.6875,0.375,1,1.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000d','00000000000000000000000000000007','000000000000000d','café','ask','NUL � and half a pair �','12: NUL � and half a pair �','[]','[]','gpt-4o-mini',NULL,'s0','u0','{"tenant":"acme","trial":false,"seats":12,"share":1.5,"NUL � and half a pai":"NUL � and half a pair �"}','ok',NULL,'2026-01-31 23:59:59.987988',0.75,0.40625,0,0.75,0.25,0.5,NULL,'candidate',NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000e','00000000000000000000000000000007','000000000000000e','shop','search','','13: ','[{"text":"","id":"page 13","score":0.25}]','[{"role":"user","content":""}]',NULL,'7','s1','u1','{"tenant":"acme","trial":true,"seats":13,"share":1.625,"":""}','ok',NULL,'2026-01-31 22:59:59.986987',0.8125,0.4375,1,0.75,0.25,0.5,0.375,'suspicion',NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000f','00000000000000000000000000000008','000000000000000f','shop','ask/{id}','<script>alert(1)</script>','14: <script>alert(1)</script>','[{"text":"<script>alert(1)</script>","id":"page 14","score":0.25},{"text":"","id":null,"score":null}]','[]','gpt-4o-mini','7','s2','u2','{"tenant":"acme","trial":false,"seats":14,"share":1.75,"<script>alert(1)</sc":"<script>alert(1)</script>"}','ok',NULL,'2026-01-31 21:59:59.985986',0.875,0.46875,0,0.75,0.25,0.5,0.125,'not_sampled',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000010','00000000000000000000000000000008','0000000000000010','café','ask','long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','15: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','[]','[{"role":"user","content":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}]',NULL,'7',NULL,NULL,'{"tenant":"acme","trial":true,"seats":15,"share":1.875,"long long long long ":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}','error','ValueError: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','2026-01-31 20:59:59.984985',0.9375,0.5,1,0.75,NULL,NULL,NULL,'budget',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000011','00000000000000000000000000000009','0000000000000011','shop','search','How do I pay?','16: How do I pay?','[{"text":"How do I pay?","id":"page 16","score":0.25}]','[]','gpt-4o-mini',NULL,'s1','u0','{"tenant":"acme","trial":false,"seats":16,"share":2.0,"How do I pay?":"How do I pay?"}','ok',NULL,'2026-01-31 19:59:59.983984',1.0,0.53125,0,0.75,NULL,NULL,0.75,'always',NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000012','00000000000000000000000000000009','0000000000000012','shop','ask/{id}',NULL,NULL,'[]','[]',NULL,'7','s2','u1','{"tenant":"acme","trial":true,"seats":17,"share":2.125,"It''s \"quoted\", 100 %":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}','ok',NULL,'2026-01-31 18:59:59.982983',1.0625,0.5625,1,0.75,-0.5,1.0,0.75,'always','2026-02-01 12:00:00.000000',NULL);
CREATE TABLE feedback (
	id TEXT NOT NULL, 
	exchange_id TEXT NOT NULL, 
	score FLOAT NOT NULL, 
	comment TEXT, 
	user TEXT, 
	created_at DATETIME NOT NULL, 
	considered_at DATETIME, 
	PRIMARY KEY (id)
);
INSERT INTO "feedback" VALUES('1','11111111111111111111111111111111',0.25,'السعر 👨‍👩‍👧 üß','u1','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "feedback" VALUES('9','99999999999999999999999999999999',0.25,'السعر 👨‍👩‍👧 üß','u1','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "feedback" VALUES('2','00000000000000000000000000000002',0.25,'السعر 👨‍👩‍👧 üß','u1','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "feedback" VALUES('16','00000000000000000000000000000011',0.0,'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','u2','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
CREATE TABLE forwarded_request (
	id INTEGER NOT NULL, 
	signal TEXT NOT NULL, 
	payload BLOB NOT NULL, 
	size INTEGER NOT NULL, 
	due_at FLOAT NOT NULL, 
	owner TEXT, 
	trace_id TEXT, 
	span_id TEXT, 
	exchange_id TEXT, 
	attributes JSON, 
	PRIMARY KEY (id)
);
CREATE TABLE germane_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT germane_version_pkc PRIMARY KEY (version_num));
INSERT INTO "germane_version" VALUES('0010');
CREATE TABLE history_run (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	since DATETIME NOT NULL, 
	until DATETIME NOT NULL, 
	selection JSON NOT NULL, 
	partition_size INTEGER NOT NULL, 
	partitions INTEGER NOT NULL, 
	exchanges BIGINT NOT NULL, 
	created_at DATETIME NOT NULL, 
	finished_at DATETIME, 
	PRIMARY KEY (id)
);
CREATE TABLE job (
	process TEXT NOT NULL, 
	name TEXT NOT NULL, 
	every FLOAT, 
	runs JSON NOT NULL, 
	PRIMARY KEY (process, name)
);
INSERT INTO "job" VALUES('idle','watch',2.0,'[[1769947198000, 250], [1769947200000, 1500, "NUL \ufffd and half a pair \ufffd"]]');
INSERT INTO "job" VALUES('idle','save',NULL,'[[1769947198000, 250]]');
CREATE TABLE lease (
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	expires_at DATETIME NOT NULL, 
	cursor TEXT, 
	renewed_at DATETIME, 
	PRIMARY KEY (name)
);
INSERT INTO "lease" VALUES('sampler','someone','2026-02-01 13:00:00.000000','the first interval','2026-02-01 12:00:00.000000');
INSERT INTO "lease" VALUES('watcher','someone','2026-02-01 13:00:00.000000',NULL,'2026-02-01 12:00:00.000000');
CREATE TABLE marker (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	service TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	attributes JSON NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "marker" VALUES('1','index v42','shop','2026-02-01 03:00:00.000000','{"by":"NUL �, half a pair � and \"quotes\"; DROP TABLE alert; 👨‍👩 üß"}');
INSERT INTO "marker" VALUES('2','NUL �, half a pair � and "quotes"; DROP TABLE alert; 👨‍👩 üß','café','2026-02-01 12:00:00.000000','{}');
CREATE TABLE notification (
	id TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	event_ids JSON NOT NULL, 
	payload JSON NOT NULL, 
	idempotency_key TEXT NOT NULL, 
	status TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	next_attempt_at DATETIME, 
	lease_owner TEXT, 
	http_status INTEGER, 
	error TEXT, 
	created_at DATETIME NOT NULL, 
	settled_at DATETIME, 
	PRIMARY KEY (id)
);
INSERT INTO "notification" VALUES('n1','oncall','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "search", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}}]}','key of n1','waiting',1,'2026-02-01 12:00:05.000000',NULL,503,'status 503','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "notification" VALUES('n2','oncall','["a1 fired"]','{"type": "escalated", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "search", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}}]}','key of n2','waiting',0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "notification" VALUES('n3','slack','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "search", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}}]}','key of n3','waiting',1,'2026-02-01 13:00:00.000000','away',NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "notification" VALUES('n4','hook','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "search", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}}]}','key of n4','sent',1,NULL,NULL,200,NULL,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
INSERT INTO "notification" VALUES('n5','pager','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "search", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}}]}','key of n5','undelivered',1,NULL,NULL,400,'NUL �, half a pair � and "quotes"; DROP TABLE alert; 👨‍👩 üß','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
INSERT INTO "notification" VALUES('n6','mail','["a1 fired"]','{"type": "firing", "alerts": [{"id": "a1", "key": "f1814fed1cfb222e7804d941eb7c7ae5", "rule": "drop", "type": "drop", "labels": {"service": "shop", "scorer": "relevancy"}, "state": "firing", "severity": "critical", "cause": "refusals_rising", "message": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df", "fingerprint": "f1", "value": 0.5, "threshold": 0.7, "current": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}, "baseline": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "window": 86400.0, "onset": "2026-01-31T16:00:00+00:00", "shifts": [{"dimension": "route", "name": "search", "before": {"mean": 0.75, "n": 2400, "interval": [0.74, 0.76]}, "since": {"mean": 0.5, "n": 200, "interval": [0.4, 0.6]}}], "exchange_ids": ["00000000000000000000000000000001", "00000000000000000000000000000002"], "starts_at": "2026-01-31T18:00:00+00:00", "fired_at": "2026-01-31T19:00:00+00:00", "resolved_at": null, "evaluated_at": "2026-01-31T20:00:00+00:00", "notified_at": "2026-01-31T19:00:00+00:00", "acknowledged_at": "2026-02-01T11:00:00+00:00", "acknowledged_by": "ann", "resolve_reason": null, "details": {"contributors": [], "said": "NUL \ufffd, half a pair \ufffd and \"quotes\"; DROP TABLE alert; \ud83d\udc68\u200d\ud83d\udc69 \u00fc\u00df"}}]}','key of n6','waiting',0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
CREATE TABLE partition (
	run_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	first_at DATETIME NOT NULL, 
	first_id TEXT NOT NULL, 
	last_at DATETIME NOT NULL, 
	last_id TEXT NOT NULL, 
	exchanges INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	lease_owner TEXT, 
	lease_until DATETIME, 
	error TEXT, 
	scored INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	skipped INTEGER NOT NULL, 
	cost FLOAT, 
	checksum TEXT NOT NULL, 
	remaining JSON, 
	PRIMARY KEY (run_id, number)
);
CREATE TABLE rate_limit (
	name TEXT NOT NULL, 
	arrival FLOAT NOT NULL, 
	waited FLOAT NOT NULL, 
	used_at DATETIME NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "rate_limit" VALUES('requests',1769947201.0,0.0,'2026-02-01 12:00:00.000000');
INSERT INTO "rate_limit" VALUES('tokens',1769947200.9,0.0,'2026-02-01 12:00:00.000000');
CREATE TABLE received_span (
	trace_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	is_log BOOLEAN NOT NULL, 
	service TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	payload BLOB NOT NULL, 
	PRIMARY KEY (trace_id, "key")
);
CREATE TABLE received_trace (
	trace_id TEXT NOT NULL, 
	due_at FLOAT, 
	deadline FLOAT NOT NULL, 
	wait FLOAT NOT NULL, 
	spans INTEGER NOT NULL, 
	size INTEGER NOT NULL, 
	dropped INTEGER NOT NULL, 
	owner TEXT, 
	finished_at FLOAT, 
	span_keys BLOB, 
	PRIMARY KEY (trace_id)
);
CREATE TABLE rollup (
	span INTEGER NOT NULL, 
	dimension TEXT NOT NULL, 
	start DATETIME NOT NULL, 
	service TEXT NOT NULL, 
	route TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	label TEXT NOT NULL, 
	n BIGINT NOT NULL, 
	n_zero BIGINT NOT NULL, 
	sum_w FLOAT NOT NULL, 
	sum_w_zero FLOAT NOT NULL, 
	sum_w2 FLOAT NOT NULL, 
	sum_w2_zero FLOAT NOT NULL, 
	sum_wy FLOAT NOT NULL, 
	sum_wy2 FLOAT NOT NULL, 
	sum_w2y FLOAT NOT NULL, 
	sum_w2y2 FLOAT NOT NULL, 
	sum_w_low FLOAT NOT NULL, 
	sum_w_noncommittal FLOAT NOT NULL, 
	n_with_x BIGINT NOT NULL, 
	sum_w_with_x FLOAT NOT NULL, 
	sum_w2_with_x FLOAT NOT NULL, 
	sum_wx FLOAT NOT NULL, 
	sum_wy_with_x FLOAT NOT NULL, 
	sum_wx2 FLOAT NOT NULL, 
	sum_wxy FLOAT NOT NULL, 
	sum_wy2_with_x FLOAT NOT NULL, 
	sum_w2x FLOAT NOT NULL, 
	sum_w2y_with_x FLOAT NOT NULL, 
	sum_w2x2 FLOAT NOT NULL, 
	sum_w2xy FLOAT NOT NULL, 
	latest DATETIME NOT NULL, 
	histogram BLOB NOT NULL, 
	PRIMARY KEY (span, dimension, start, service, route, scorer, fingerprint, label)
)
 WITHOUT ROWID

;
INSERT INTO "rollup" VALUES(3600,'','2026-01-31 18:00:00.000000','shop','','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'','2026-01-31 18:00:00.000000','shop','','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'','2026-02-01 01:00:00.000000','shop','','mine','external','',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(3600,'','2026-02-01 08:00:00.000000','café','','faithfulness','f2','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(3600,'','2026-02-01 08:00:00.000000','café','','relevancy','f1','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(3600,'attributes.trial','2026-01-31 18:00:00.000000','shop','ask/{id}','faithfulness','f2','true',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'attributes.trial','2026-01-31 18:00:00.000000','shop','ask/{id}','relevancy','f1','true',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'attributes.trial','2026-02-01 01:00:00.000000','shop','search','mine','external','false',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(3600,'attributes.trial','2026-02-01 08:00:00.000000','café','ask','faithfulness','f2','true',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(3600,'attributes.trial','2026-02-01 08:00:00.000000','café','ask','relevancy','f1','true',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(3600,'model','2026-01-31 18:00:00.000000','shop','ask/{id}','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'model','2026-01-31 18:00:00.000000','shop','ask/{id}','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'model','2026-02-01 01:00:00.000000','shop','search','mine','external','gpt-4o-mini',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(3600,'model','2026-02-01 08:00:00.000000','café','ask','faithfulness','f2','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(3600,'model','2026-02-01 08:00:00.000000','café','ask','relevancy','f1','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(3600,'route','2026-01-31 18:00:00.000000','shop','ask/{id}','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'route','2026-01-31 18:00:00.000000','shop','ask/{id}','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(3600,'route','2026-02-01 01:00:00.000000','shop','search','mine','external','',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(3600,'route','2026-02-01 08:00:00.000000','café','ask','faithfulness','f2','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(3600,'route','2026-02-01 08:00:00.000000','café','ask','relevancy','f1','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'','2026-02-01 00:00:00.000000','café','','faithfulness','f2','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(86400,'','2026-02-01 00:00:00.000000','café','','relevancy','f1','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','mine','external','',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(86400,'attributes.trial','2026-01-31 00:00:00.000000','shop','ask/{id}','faithfulness','f2','true',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'attributes.trial','2026-01-31 00:00:00.000000','shop','ask/{id}','relevancy','f1','true',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'attributes.trial','2026-02-01 00:00:00.000000','café','ask','faithfulness','f2','true',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(86400,'attributes.trial','2026-02-01 00:00:00.000000','café','ask','relevancy','f1','true',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(86400,'attributes.trial','2026-02-01 00:00:00.000000','shop','search','mine','external','false',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(86400,'model','2026-01-31 00:00:00.000000','shop','ask/{id}','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'model','2026-01-31 00:00:00.000000','shop','ask/{id}','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'model','2026-02-01 00:00:00.000000','café','ask','faithfulness','f2','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(86400,'model','2026-02-01 00:00:00.000000','café','ask','relevancy','f1','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(86400,'model','2026-02-01 00:00:00.000000','shop','search','mine','external','gpt-4o-mini',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(86400,'route','2026-02-01 00:00:00.000000','café','ask','faithfulness','f2','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(86400,'route','2026-02-01 00:00:00.000000','café','ask','relevancy','f1','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search','mine','external','',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','faithfulness','f2','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','relevancy','f1','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','mine','external','',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'attributes.trial','2026-01-29 00:00:00.000000','café','ask','faithfulness','f2','true',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(604800,'attributes.trial','2026-01-29 00:00:00.000000','café','ask','relevancy','f1','true',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(604800,'attributes.trial','2026-01-29 00:00:00.000000','shop','ask/{id}','faithfulness','f2','true',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'attributes.trial','2026-01-29 00:00:00.000000','shop','ask/{id}','relevancy','f1','true',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'attributes.trial','2026-01-29 00:00:00.000000','shop','search','mine','external','false',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(604800,'model','2026-01-29 00:00:00.000000','café','ask','faithfulness','f2','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(604800,'model','2026-01-29 00:00:00.000000','café','ask','relevancy','f1','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(604800,'model','2026-01-29 00:00:00.000000','shop','ask/{id}','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'model','2026-01-29 00:00:00.000000','shop','ask/{id}','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'model','2026-01-29 00:00:00.000000','shop','search','mine','external','gpt-4o-mini',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
INSERT INTO "rollup" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','faithfulness','f2','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','relevancy','f1','',1,0,2.0,0.0,4.0,0.0,1.0,0.5,2.0,1.0,0.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 08:59:59.996997',X'320000000000000040');
INSERT INTO "rollup" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','faithfulness','f2','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','relevancy','f1','',1,0,1.33333333333333325931e+00,0.0,1.77777777777777767909e+00,0.0,1.66666666666666651863e+00,2.08333333333333303727e+00,2.2222222222222223209e+00,2.77777777777777767909e+00,0.0,0.0,1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,1.66666666666666651863e+00,3.33333333333333314829e-01,-8.33333333333333259318e-01,2.08333333333333303727e+00,-8.88888888888888839545e-01,2.2222222222222223209e+00,4.44444444444444419772e-01,-1.11111111111111116045e+00,'2026-01-31 18:59:59.982983',X'63555555555555F53F');
INSERT INTO "rollup" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','mine','external','',1,0,1.0,0.0,1.0,0.0,-0.5,0.25,-0.5,0.25,1.0,0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,'2026-02-01 01:59:59.989990',X'00000000000000F03F');
CREATE TABLE rollup_count (
	span INTEGER NOT NULL, 
	dimension TEXT NOT NULL, 
	start DATETIME NOT NULL, 
	service TEXT NOT NULL, 
	route TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	count BIGINT NOT NULL, 
	PRIMARY KEY (span, dimension, start, service, route, scorer, outcome, reason)
)
 WITHOUT ROWID

;
INSERT INTO "rollup_count" VALUES(3600,'','1970-01-01 00:00:00.000000','shop','','','seen','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 18:00:00.000000','shop','','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 18:00:00.000000','shop','','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 18:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 18:00:00.000000','shop','','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 18:00:00.000000','shop','','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 18:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 19:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 19:00:00.000000','shop','','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 19:00:00.000000','shop','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 19:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 19:00:00.000000','shop','','relevancy','skipped','not_sampled',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 20:00:00.000000','café','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 20:00:00.000000','café','','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 20:00:00.000000','café','','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 20:00:00.000000','café','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 20:00:00.000000','café','','relevancy','skipped','budget',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 21:00:00.000000','shop','','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 21:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 21:00:00.000000','shop','','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 21:00:00.000000','shop','','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 21:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 21:00:00.000000','shop','','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 22:00:00.000000','shop','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 22:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 22:00:00.000000','shop','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 22:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 23:00:00.000000','café','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 23:00:00.000000','café','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 23:00:00.000000','café','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-01-31 23:00:00.000000','café','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 01:00:00.000000','shop','','mine','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 01:00:00.000000','shop','','mine','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','café','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','café','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','café','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 02:00:00.000000','café','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 03:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 04:00:00.000000','shop','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 04:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 04:00:00.000000','shop','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 04:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 05:00:00.000000','café','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 05:00:00.000000','café','','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 05:00:00.000000','café','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 05:00:00.000000','café','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 06:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 06:00:00.000000','shop','','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 06:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 06:00:00.000000','shop','','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','faithfulness','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','relevancy','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 07:00:00.000000','shop','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','café','','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','café','','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','café','','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','café','','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','café','','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'','2026-02-01 08:00:00.000000','café','','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','1970-01-01 00:00:00.000000','shop','never','','seen','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 18:00:00.000000','shop','ask/{id}','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 18:00:00.000000','shop','ask/{id}','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 18:00:00.000000','shop','ask/{id}','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 18:00:00.000000','shop','ask/{id}','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 18:00:00.000000','shop','ask/{id}','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 18:00:00.000000','shop','ask/{id}','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 19:00:00.000000','shop','search','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 19:00:00.000000','shop','search','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 19:00:00.000000','shop','search','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 19:00:00.000000','shop','search','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 19:00:00.000000','shop','search','relevancy','skipped','not_sampled',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 20:00:00.000000','café','ask','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 20:00:00.000000','café','ask','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 20:00:00.000000','café','ask','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 20:00:00.000000','café','ask','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 20:00:00.000000','café','ask','relevancy','skipped','budget',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 21:00:00.000000','shop','ask/{id}','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 21:00:00.000000','shop','ask/{id}','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 21:00:00.000000','shop','ask/{id}','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 21:00:00.000000','shop','ask/{id}','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 21:00:00.000000','shop','ask/{id}','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 21:00:00.000000','shop','ask/{id}','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 22:00:00.000000','shop','search','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 22:00:00.000000','shop','search','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 22:00:00.000000','shop','search','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 22:00:00.000000','shop','search','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 23:00:00.000000','café','ask','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 23:00:00.000000','café','ask','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 23:00:00.000000','café','ask','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-01-31 23:00:00.000000','café','ask','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 01:00:00.000000','shop','search','mine','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 01:00:00.000000','shop','search','mine','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','café','ask','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','café','ask','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','café','ask','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 02:00:00.000000','café','ask','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask/{id}','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask/{id}','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask/{id}','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 03:00:00.000000','shop','ask/{id}','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 04:00:00.000000','shop','search','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 04:00:00.000000','shop','search','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 04:00:00.000000','shop','search','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 04:00:00.000000','shop','search','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 05:00:00.000000','café','ask','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 05:00:00.000000','café','ask','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 05:00:00.000000','café','ask','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 05:00:00.000000','café','ask','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 06:00:00.000000','shop','ask/{id}','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 06:00:00.000000','shop','ask/{id}','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 06:00:00.000000','shop','ask/{id}','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 06:00:00.000000','shop','ask/{id}','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','search','faithfulness','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','search','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','search','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','search','relevancy','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','search','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 07:00:00.000000','shop','search','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','café','ask','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','café','ask','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','café','ask','faithfulness','seen','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','café','ask','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','café','ask','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(3600,'route','2026-02-01 08:00:00.000000','café','ask','relevancy','seen','',1);
INSERT INTO "rollup_count" VALUES(86400,'','1970-01-01 00:00:00.000000','shop','','','seen','',0);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','café','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','café','','faithfulness','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','café','','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','café','','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','café','','relevancy','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','café','','relevancy','skipped','budget',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','faithfulness','seen','',4);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','relevancy','pending','',2);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','relevancy','seen','',4);
INSERT INTO "rollup_count" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','café','','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','café','','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','café','','faithfulness','seen','',3);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','café','','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','café','','relevancy','pending','',2);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','café','','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','café','','relevancy','seen','',3);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','pending','',2);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','seen','',4);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','mine','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','mine','seen','',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','relevancy','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','relevancy','pending','',2);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','relevancy','seen','',4);
INSERT INTO "rollup_count" VALUES(86400,'','2026-02-01 00:00:00.000000','shop','','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'route','1970-01-01 00:00:00.000000','shop','never','','seen','',0);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','café','ask','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','café','ask','faithfulness','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','café','ask','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','café','ask','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','café','ask','relevancy','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','café','ask','relevancy','skipped','budget',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','faithfulness','pending','',0);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','faithfulness','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','relevancy','pending','',0);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','relevancy','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','search','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','search','faithfulness','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','search','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','search','relevancy','pending','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','search','relevancy','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','search','relevancy','skipped','not_sampled',0);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','café','ask','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','café','ask','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','café','ask','faithfulness','seen','',3);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','café','ask','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','café','ask','relevancy','pending','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','café','ask','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','café','ask','relevancy','seen','',3);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask/{id}','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask/{id}','faithfulness','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask/{id}','faithfulness','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask/{id}','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask/{id}','relevancy','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','ask/{id}','relevancy','skipped','not_sampled',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search','faithfulness','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search','faithfulness','seen','',2);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search','mine','scored','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search','mine','seen','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search','relevancy','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(86400,'route','2026-02-01 00:00:00.000000','shop','search','relevancy','seen','',2);
INSERT INTO "rollup_count" VALUES(604800,'','1970-01-01 00:00:00.000000','shop','','','seen','',0);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','faithfulness','pending','',2);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','faithfulness','seen','',5);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','relevancy','pending','',3);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','relevancy','seen','',5);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','café','','relevancy','skipped','budget',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','pending','',3);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','seen','',8);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','faithfulness','skipped','not_sampled',2);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','mine','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','mine','seen','',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','pending','',4);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','seen','',8);
INSERT INTO "rollup_count" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','','relevancy','skipped','not_sampled',2);
INSERT INTO "rollup_count" VALUES(604800,'route','1970-01-01 00:00:00.000000','shop','never','','seen','',0);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','faithfulness','pending','',2);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','faithfulness','seen','',5);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','faithfulness','skipped','missing_input',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','relevancy','pending','',3);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','relevancy','seen','',5);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask','relevancy','skipped','budget',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','faithfulness','pending','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','faithfulness','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','faithfulness','seen','',4);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','faithfulness','skipped','not_sampled',2);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','relevancy','pending','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','relevancy','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','relevancy','seen','',4);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}','relevancy','skipped','not_sampled',2);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','faithfulness','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','faithfulness','pending','',2);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','faithfulness','seen','',4);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','faithfulness','skipped','filtered',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','mine','scored','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','mine','seen','',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','relevancy','failed','unparsable',1);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','relevancy','pending','',3);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','relevancy','seen','',4);
INSERT INTO "rollup_count" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search','relevancy','skipped','not_sampled',0);
CREATE TABLE rollup_dimension (
	name TEXT NOT NULL, 
	PRIMARY KEY (name)
)
 WITHOUT ROWID

;
INSERT INTO "rollup_dimension" VALUES('attributes.trial');
INSERT INTO "rollup_dimension" VALUES('model');
CREATE TABLE rollup_dirty_hour (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	hour DATETIME NOT NULL
);
INSERT INTO "rollup_dirty_hour" VALUES(1,'2026-02-01 12:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(2,'2026-02-01 12:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(3,'2026-02-01 10:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(4,'2026-02-01 10:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(5,'2026-02-01 09:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(6,'2026-02-01 09:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(16,'2026-02-01 12:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(30,'2026-02-01 12:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(31,'2026-02-01 07:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(32,'2026-02-01 07:00:00.000000');
INSERT INTO "rollup_dirty_hour" VALUES(33,'2026-02-01 09:00:00.000000');
CREATE TABLE rollup_proxy (
	span INTEGER NOT NULL, 
	dimension TEXT NOT NULL, 
	start DATETIME NOT NULL, 
	service TEXT NOT NULL, 
	route TEXT NOT NULL, 
	n BIGINT NOT NULL, 
	sum_v FLOAT NOT NULL, 
	sum_v2 FLOAT NOT NULL, 
	sum_vx FLOAT NOT NULL, 
	sum_vx2 FLOAT NOT NULL, 
	sum_v2x FLOAT NOT NULL, 
	sum_v2x2 FLOAT NOT NULL, 
	PRIMARY KEY (span, dimension, start, service, route)
)
 WITHOUT ROWID

;
INSERT INTO "rollup_proxy" VALUES(3600,'','2026-01-31 18:00:00.000000','shop','',1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,3.33333333333333314829e-01,-8.88888888888888839545e-01,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'','2026-01-31 21:00:00.000000','shop','',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'','2026-01-31 22:00:00.000000','shop','',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'','2026-01-31 23:00:00.000000','café','',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'route','2026-01-31 18:00:00.000000','shop','ask/{id}',1,1.33333333333333325931e+00,1.77777777777777767909e+00,-6.66666666666666629659e-01,3.33333333333333314829e-01,-8.88888888888888839545e-01,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'route','2026-01-31 21:00:00.000000','shop','ask/{id}',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'route','2026-01-31 22:00:00.000000','shop','search',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(3600,'route','2026-01-31 23:00:00.000000','café','ask',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(86400,'','2026-01-31 00:00:00.000000','café','',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(86400,'','2026-01-31 00:00:00.000000','shop','',3,6.66666666666666607454e+00,16.0,6.66666666666666629659e-01,6.66666666666666629659e-01,2.66666666666666651863e+00,1.33333333333333325931e+00);
INSERT INTO "rollup_proxy" VALUES(86400,'route','2026-01-31 00:00:00.000000','café','ask',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','ask/{id}',2,4.0,8.88888888888889,0.0,0.5,8.88888888888888839545e-01,8.88888888888888839545e-01);
INSERT INTO "rollup_proxy" VALUES(86400,'route','2026-01-31 00:00:00.000000','shop','search',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(604800,'','2026-01-29 00:00:00.000000','café','',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(604800,'','2026-01-29 00:00:00.000000','shop','',3,6.66666666666666607454e+00,16.0,6.66666666666666629659e-01,6.66666666666666629659e-01,2.66666666666666651863e+00,1.33333333333333325931e+00);
INSERT INTO "rollup_proxy" VALUES(604800,'route','2026-01-29 00:00:00.000000','café','ask',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
INSERT INTO "rollup_proxy" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','ask/{id}',2,4.0,8.88888888888889,0.0,0.5,8.88888888888888839545e-01,8.88888888888888839545e-01);
INSERT INTO "rollup_proxy" VALUES(604800,'route','2026-01-29 00:00:00.000000','shop','search',1,2.66666666666666651863e+00,7.11111111111111071636e+00,6.66666666666666629659e-01,1.66666666666666657414e-01,1.77777777777777767909e+00,4.44444444444444419772e-01);
CREATE TABLE saved_view (
	name TEXT NOT NULL, 
	path TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	created_by TEXT, 
	PRIMARY KEY (name)
);
CREATE TABLE score (
	id INTEGER NOT NULL, 
	exchange_id TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	service TEXT NOT NULL, 
	route TEXT NOT NULL, 
	started_at DATETIME NOT NULL, 
	sampling_probability FLOAT, 
	proxy FLOAT, 
	value FLOAT NOT NULL, 
	label TEXT, 
	explanation TEXT, 
	details JSON NOT NULL, 
	judge TEXT, 
	embedder TEXT, 
	input_tokens BIGINT, 
	output_tokens BIGINT, 
	cost FLOAT, 
	latency FLOAT, 
	scored_at DATETIME, 
	PRIMARY KEY (id), 
	CONSTRAINT uq_score UNIQUE (exchange_id, scorer, fingerprint)
);
INSERT INTO "score" VALUES(1,'00000000000000000000000000000001','faithfulness','f2','café','ask','2026-02-01 12:00:00.000000',0.5,NULL,-0.25,'partly_relevant','How do I pay?','{"questions":[{"text":"How do I pay?","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',100,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(2,'00000000000000000000000000000001','relevancy','f1','café','ask','2026-02-01 12:00:00.000000',0.5,NULL,-0.25,'partly_relevant','How do I pay?','{"questions":[{"text":"How do I pay?","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',100,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(3,'00000000000000000000000000000002','faithfulness','f2 served','shop','search','2026-02-01 10:59:59.998999',0.5,NULL,0.0,'partly_relevant','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','{"questions":[{"text":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',101,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(4,'00000000000000000000000000000002','relevancy','f1 served','shop','search','2026-02-01 10:59:59.998999',0.5,NULL,0.0,'partly_relevant','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','{"questions":[{"text":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',101,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(5,'00000000000000000000000000000003','faithfulness','f2','shop','ask/{id}','2026-02-01 09:59:59.997998',0.5,NULL,0.25,'partly_relevant','two
lines	and   a separator','{"questions":[{"text":"two\nlines\tand   a separator","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',102,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(6,'00000000000000000000000000000003','relevancy','f1','shop','ask/{id}','2026-02-01 09:59:59.997998',0.5,NULL,0.25,'partly_relevant','two
lines	and   a separator','{"questions":[{"text":"two\nlines\tand   a separator","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',102,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(7,'00000000000000000000000000000004','faithfulness','f2','café','ask','2026-02-01 08:59:59.996997',0.5,NULL,0.5,'partly_relevant','السعر 👨‍👩‍👧 üß','{"questions":[{"text":"السعر 👨‍👩‍👧 üß","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',103,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(8,'00000000000000000000000000000004','relevancy','f1','café','ask','2026-02-01 08:59:59.996997',0.5,NULL,0.5,'partly_relevant','السعر 👨‍👩‍👧 üß','{"questions":[{"text":"السعر 👨‍👩‍👧 üß","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',103,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(9,'0000000000000000000000000000000b','mine','external','shop','search','2026-02-01 01:59:59.989990',1.0,NULL,-0.5,NULL,'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','{}',NULL,NULL,NULL,NULL,NULL,NULL,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(10,'00000000000000000000000000000012','faithfulness','f2','shop','ask/{id}','2026-01-31 18:59:59.982983',0.75,-0.5,1.25,'partly_relevant',NULL,'{"questions": [{"similarity": 0.5}], "requests": 3}','gpt-4o-mini','text-embedding-3-small',106,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
INSERT INTO "score" VALUES(11,'00000000000000000000000000000012','relevancy','f1','shop','ask/{id}','2026-01-31 18:59:59.982983',0.75,-0.5,1.25,'partly_relevant',NULL,'{"questions": [{"similarity": 0.5}], "requests": 3}','gpt-4o-mini','text-embedding-3-small',106,10,0.0001,0.5,'2026-02-01 12:00:00.000000');
CREATE TABLE scoring_task (
	id INTEGER NOT NULL, 
	exchange_id TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT, 
	error TEXT, 
	claims INTEGER NOT NULL, 
	first_pending_at DATETIME NOT NULL, 
	not_before DATETIME, 
	lease_owner TEXT, 
	lease_until DATETIME, 
	scored_as TEXT, 
	retries INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT uq_scoring_task UNIQUE (exchange_id, scorer, fingerprint)
);
INSERT INTO "scoring_task" VALUES(1,'00000000000000000000000000000001','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(2,'00000000000000000000000000000001','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f1',0);
INSERT INTO "scoring_task" VALUES(3,'00000000000000000000000000000002','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2 served',0);
INSERT INTO "scoring_task" VALUES(4,'00000000000000000000000000000002','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f1 served',0);
INSERT INTO "scoring_task" VALUES(5,'00000000000000000000000000000003','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(6,'00000000000000000000000000000003','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000',NULL,NULL,'f1',0);
INSERT INTO "scoring_task" VALUES(7,'00000000000000000000000000000004','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(8,'00000000000000000000000000000004','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f1',0);
INSERT INTO "scoring_task" VALUES(9,'00000000000000000000000000000005','faithfulness','f2','failed','unparsable','the judge said: NUL � and half a pair �',1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(10,'00000000000000000000000000000005','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000',NULL,NULL,'',0);
INSERT INTO "scoring_task" VALUES(11,'00000000000000000000000000000008','faithfulness','f2','pending','judge_timeout','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */',0,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000',NULL,NULL,NULL,1);
INSERT INTO "scoring_task" VALUES(12,'00000000000000000000000000000008','relevancy','f1','pending','judge_timeout','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */',0,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000',NULL,NULL,NULL,1);
INSERT INTO "scoring_task" VALUES(13,'00000000000000000000000000000009','faithfulness','f2','running',NULL,NULL,1,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000','running','2026-02-01 13:00:00.000000',NULL,0);
INSERT INTO "scoring_task" VALUES(14,'00000000000000000000000000000009','relevancy','f1','running',NULL,NULL,1,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000','running','2026-02-01 13:00:00.000000',NULL,0);
INSERT INTO "scoring_task" VALUES(15,'0000000000000000000000000000000a','faithfulness','f2','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 02:59:59.990991',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(16,'0000000000000000000000000000000a','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 02:59:59.990991',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(17,'00000000000000000000000000000006','faithfulness','f2','skipped','not_sampled',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(18,'00000000000000000000000000000006','relevancy','f1','skipped','not_sampled',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(19,'00000000000000000000000000000007','faithfulness','f2','skipped','missing_input',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(20,'00000000000000000000000000000007','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 05:59:59.993994',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(21,'0000000000000000000000000000000b','mine','external','done',NULL,NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(22,'0000000000000000000000000000000d','faithfulness','f2','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(23,'0000000000000000000000000000000d','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(24,'0000000000000000000000000000000e','faithfulness','f2','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(25,'0000000000000000000000000000000e','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(26,'0000000000000000000000000000000f','faithfulness','f2','skipped','not_sampled',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(27,'0000000000000000000000000000000f','relevancy','f1','skipped','not_sampled',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(28,'00000000000000000000000000000010','faithfulness','f2','skipped','filtered',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(29,'00000000000000000000000000000010','relevancy','f1','skipped','budget',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(30,'00000000000000000000000000000011','faithfulness','f2','skipped','filtered',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(31,'00000000000000000000000000000011','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(32,'00000000000000000000000000000012','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(33,'00000000000000000000000000000012','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f1',0);
CREATE TABLE silence (
	id TEXT NOT NULL, 
	matchers JSON NOT NULL, 
	starts_at DATETIME NOT NULL, 
	ends_at DATETIME NOT NULL, 
	created_by TEXT, 
	comment TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "silence" VALUES('s1','{"route": "ask*", "rule": "mean_threshold"}','2026-02-01 11:00:00.000000','2026-02-01 13:00:00.000000','ann','NUL �, half a pair � and "quotes"; DROP TABLE alert; 👨‍👩 üß');
INSERT INTO "silence" VALUES('s2','{}','2026-02-01 13:00:00.000000','2026-02-01 21:00:00.000000',NULL,NULL);
CREATE TABLE tally (
	minute DATETIME NOT NULL, 
	service TEXT NOT NULL, 
	route TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	process TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	count BIGINT NOT NULL, 
	PRIMARY KEY (minute, service, route, scorer, process, outcome, reason)
)
 WITHOUT ROWID

;
INSERT INTO "tally" VALUES('1970-01-01 00:00:00.000000','shop','never','','','seen','',0);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','skipped','filtered',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','relevancy','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','relevancy','7b3781d110c44afb','skipped','not_sampled',0);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','skipped','filtered',1);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','relevancy','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','relevancy','7b3781d110c44afb','skipped','budget',1);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','skipped','not_sampled',1);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','skipped','not_sampled',1);
INSERT INTO "tally" VALUES('2026-01-31 22:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 22:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 22:59:00.000000','shop','search','relevancy','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 22:59:00.000000','shop','search','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 23:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 23:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 23:59:00.000000','café','ask','relevancy','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 23:59:00.000000','café','ask','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 01:59:00.000000','shop','search','mine','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 01:59:00.000000','shop','search','mine','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','café','ask','relevancy','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','café','ask','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search','relevancy','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 05:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 05:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','skipped','missing_input',1);
INSERT INTO "tally" VALUES('2026-02-01 05:59:00.000000','café','ask','relevancy','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 05:59:00.000000','café','ask','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','skipped','not_sampled',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','skipped','not_sampled',1);
INSERT INTO "tally" VALUES('2026-02-01 07:00:00.000000','shop','ask','relevancy','7b3781d110c44afb','seen','',2);
INSERT INTO "tally" VALUES('2026-02-01 07:00:00.000000','shop','ask','relevancy','7b3781d110c44afb','skipped','queue_full',2);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','failed','unparsable',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','relevancy','7b3781d110c44afb','failed','unparsable',0);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','relevancy','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','relevancy','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','relevancy','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','scored','',0);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','relevancy','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','relevancy','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','faithfulness','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','faithfulness','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','faithfulness','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','relevancy','7b3781d110c44afb','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','relevancy','7b3781d110c44afb','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','relevancy','7b3781d110c44afb','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','7b3781d110c44afb','seen','',10);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','7b3781d110c44afb','skipped','exchange_limit',3);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','7b3781d110c44afb','skipped','queue_full',7);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','7b3781d110c44afb','seen','',10);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','7b3781d110c44afb','skipped','exchange_limit',3);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','7b3781d110c44afb','skipped','queue_full',7);
CREATE TABLE unreadable_trace (
	trace_id TEXT NOT NULL, 
	service TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	started_at DATETIME NOT NULL, 
	sampled_at DATETIME NOT NULL, 
	spans JSON NOT NULL, 
	spans_omitted INTEGER NOT NULL, 
	PRIMARY KEY (trace_id)
);
CREATE TABLE watched_trace (
	hour DATETIME NOT NULL, 
	service TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	count BIGINT NOT NULL, 
	PRIMARY KEY (hour, service, scope, outcome)
)
 WITHOUT ROWID

;
CREATE TABLE worker (
	id TEXT NOT NULL, 
	host TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	service TEXT NOT NULL, 
	version TEXT NOT NULL, 
	scorers JSON NOT NULL, 
	concurrency INTEGER NOT NULL, 
	in_flight INTEGER NOT NULL, 
	problem TEXT, 
	started_at DATETIME NOT NULL, 
	seen_at DATETIME NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "worker" VALUES('running','a',1,'café','0.4.0','{"faithfulness": "f2", "relevancy": "f1"}',8,1,NULL,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
INSERT INTO "worker" VALUES('idle','b',2,'café','0.6.0','{"faithfulness": "f2", "relevancy": "f1"}',0,0,'NUL � and half a pair �','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
CREATE INDEX ix_detector_input_exchange_id ON detector_input (exchange_id);
CREATE INDEX ix_baseline_status ON baseline (status);
CREATE UNIQUE INDEX uq_alert_open ON alert ("key") WHERE state <> 'resolved';
CREATE INDEX ix_alert_starts_at ON alert (starts_at);
CREATE INDEX ix_alert_event_alert_id ON alert_event (alert_id);
CREATE INDEX ix_notification_created_at ON notification (created_at);
CREATE INDEX ix_notification_due ON notification (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX ix_silence_ends_at ON silence (ends_at);
CREATE INDEX ix_rollup_dirty_hour_hour ON rollup_dirty_hour (hour);
CREATE INDEX ix_exchange_unsampled ON exchange (started_at) WHERE sampling_reason IS NULL;
CREATE INDEX ix_exchange_proxy ON exchange (started_at, service, route, proxy, proxy_probability, capture_probability) WHERE proxy IS NOT NULL;
CREATE INDEX ix_exchange_candidate ON exchange (started_at) WHERE sampling_reason = 'candidate';
CREATE INDEX ix_exchange_started_at ON exchange (started_at);
CREATE INDEX ix_exchange_text ON exchange (started_at) WHERE erased_at IS NULL;
CREATE INDEX ix_exchange_route ON exchange (route, started_at);
CREATE INDEX ix_exchange_trace_id ON exchange (trace_id);
CREATE INDEX ix_scoring_task_state ON scoring_task (state, reason);
CREATE INDEX ix_scoring_task_open ON scoring_task (scorer, fingerprint, not_before, first_pending_at) WHERE not_before IS NOT NULL;
CREATE INDEX ix_scoring_task_candidate ON scoring_task (scorer, fingerprint, first_pending_at) WHERE state = 'pending' AND not_before IS NULL;
CREATE INDEX ix_scoring_task_lease_owner ON scoring_task (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX ix_score_started_at ON score (started_at, scorer, service, route, fingerprint, value, label, sampling_probability, proxy);
CREATE INDEX ix_score_value ON score (value, scorer, started_at, route);
CREATE INDEX ix_feedback_created_at ON feedback (created_at);
CREATE INDEX ix_feedback_exchange_id ON feedback (exchange_id);
CREATE INDEX ix_feedback_unconsidered ON feedback (created_at) WHERE considered_at IS NULL;
CREATE INDEX ix_feedback_comment ON feedback (created_at) WHERE comment IS NOT NULL;
CREATE INDEX ix_marker_at ON marker (at);
CREATE INDEX ix_received_trace_finished_at ON received_trace (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX ix_received_trace_due_at ON received_trace (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ix_unreadable_trace_reason ON unreadable_trace (service, scope, reason, sampled_at);
CREATE INDEX ix_unreadable_trace_sampled_at ON unreadable_trace (sampled_at);
CREATE UNIQUE INDEX ix_forwarded_request_span ON forwarded_request (trace_id, span_id) WHERE trace_id IS NOT NULL;
CREATE INDEX ix_forwarded_request_exchange_id ON forwarded_request (exchange_id) WHERE exchange_id IS NOT NULL;
CREATE INDEX ix_forwarded_request_due_at ON forwarded_request (due_at, size);
CREATE INDEX ix_worker_seen_at ON worker (seen_at);
CREATE INDEX ix_calibration_made_at ON calibration (made_at);
CREATE VIEW answers AS
SELECT exchange.id AS exchange_id, exchange.trace_id, exchange.service, exchange.route, exchange.model,
    exchange.prompt_version, exchange.started_at, exchange.duration, exchange.question, exchange.answer,
    exchange.status, scoring_task.scorer, COALESCE(scoring_task.scored_as, scoring_task.fingerprint) AS fingerprint,
    scoring_task.state, scoring_task.reason,
    score.value, score.label, score.explanation, score.judge, score.cost, score.scored_at,
    1.0 / NULLIF(COALESCE(score.sampling_probability, exchange.sampling_probability), 0) AS weight
FROM scoring_task
JOIN exchange ON exchange.id = scoring_task.exchange_id
LEFT JOIN score ON score.exchange_id = scoring_task.exchange_id AND score.scorer = scoring_task.scorer
    AND score.fingerprint = COALESCE(scoring_task.scored_as, scoring_task.fingerprint);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('rollup_dirty_hour',33);
INSERT INTO "sqlite_sequence" VALUES('detector_input',8);
COMMIT;