BEGIN TRANSACTION;
CREATE TABLE budget (
	day TEXT NOT NULL, 
	calls BIGINT NOT NULL, 
	tokens FLOAT NOT NULL, 
	usd FLOAT NOT NULL, 
	picked BIGINT NOT NULL, 
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
	draw FLOAT NOT NULL, 
	traced BOOLEAN NOT NULL, 
	proxy FLOAT, 
	sampling_probability FLOAT, 
	sampling_reason TEXT, capture_probability FLOAT DEFAULT '1' NOT NULL, proxy_probability FLOAT, erased_at DATETIME, 
	PRIMARY KEY (id)
);
INSERT INTO "exchange" VALUES('00000000000000000000000000000001','00000000000000000000000000000001','0000000000000001','café','ask','How do I pay?','0: How do I pay?','[]','[]','gpt-4o-mini',NULL,NULL,NULL,'{"tenant":"acme","trial":false,"seats":0,"share":0.0,"How do I pay?":"How do I pay?"}','ok',NULL,'2026-02-01 12:00:00.000000',0.0,0.03125,0,NULL,0.5,'drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000002','00000000000000000000000000000001','0000000000000002','shop','search','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','1: It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','[{"text":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */","id":"page 1","score":0.25}]','[{"role":"user","text":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}]',NULL,'7','s1','u1','{"tenant":"acme","trial":true,"seats":1,"share":0.125,"It''s \"quoted\", 100 %":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}','ok',NULL,'2026-02-01 10:59:59.998999',0.0625,0.0625,1,NULL,0.5,'drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000003','00000000000000000000000000000002','0000000000000003','shop','ask/{id}','two
lines	and   a separator','2: two
lines	and   a separator','[{"text":"two\nlines\tand   a separator","id":"page 2","score":0.25},{"text":"","id":null,"score":null}]','[]','gpt-4o-mini','7','s2','u2','{"tenant":"acme","trial":false,"seats":2,"share":0.25,"two\nlines\tand   a se":"two\nlines\tand   a separator"}','ok',NULL,'2026-02-01 09:59:59.997998',0.125,0.09375,0,NULL,0.5,'drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000004','00000000000000000000000000000002','0000000000000004','café','ask','السعر 👨‍👩‍👧 üß','3: السعر 👨‍👩‍👧 üß','[]','[{"role":"user","text":"السعر 👨‍👩‍👧 üß"}]',NULL,'7','s0','u3','{"tenant":"acme","trial":true,"seats":3,"share":0.375,"السعر 👨‍👩‍👧 üß":"السعر 👨‍👩‍👧 üß"}','error','ValueError: السعر 👨‍👩‍👧 üß','2026-02-01 08:59:59.996997',0.1875,0.125,1,NULL,0.5,'drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000005','00000000000000000000000000000003','0000000000000005','shop','search','NUL � and half a pair �','4: NUL � and half a pair �','[{"text":"NUL � and half a pair �","id":"page 4","score":0.25}]','[]','gpt-4o-mini',NULL,'s1','u0','{"tenant":"acme","trial":false,"seats":4,"share":0.5,"NUL � and half a pai":"NUL � and half a pair �"}','ok',NULL,'2026-02-01 07:59:59.995996',0.25,0.15625,0,NULL,0.5,'drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000006','00000000000000000000000000000003','0000000000000006','shop','ask/{id}','','5: ','[{"text":"","id":"page 5","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","text":""}]',NULL,'7',NULL,NULL,'{"tenant":"acme","trial":true,"seats":5,"share":0.625,"":""}','ok',NULL,'2026-02-01 06:59:59.994995',0.3125,0.1875,1,NULL,0.5,'not_drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000007','00000000000000000000000000000004','0000000000000007','café','ask','<script>alert(1)</script>','6: <script>alert(1)</script>','[]','[]','gpt-4o-mini','7','s0','u2','{"tenant":"acme","trial":false,"seats":6,"share":0.75,"<script>alert(1)</sc":"<script>alert(1)</script>"}','ok',NULL,'2026-02-01 05:59:59.993994',0.375,0.21875,0,NULL,0.5,'drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000008','00000000000000000000000000000004','0000000000000008','shop','search','long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','7: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','[{"text":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ","id":"page 7","score":0.25}]','[{"role":"user","text":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}]',NULL,'7','s1','u3','{"tenant":"acme","trial":true,"seats":7,"share":0.875,"long long long long ":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}','error','ValueError: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','2026-02-01 04:59:59.992993',0.4375,0.25,1,NULL,0.5,'drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000009','00000000000000000000000000000005','0000000000000009','shop','ask/{id}','How do I pay?','8: How do I pay?','[{"text":"How do I pay?","id":"page 8","score":0.25},{"text":"","id":null,"score":null}]','[]','gpt-4o-mini',NULL,'s2','u0','{"tenant":"acme","trial":false,"seats":8,"share":1.0,"How do I pay?":"How do I pay?"}','ok',NULL,'2026-02-01 03:59:59.991992',0.5,0.28125,0,NULL,0.5,'drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000a','00000000000000000000000000000005','000000000000000a','café','ask','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */',NULL,'[]','[{"role":"user","text":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}]',NULL,'7','s0','u1','{"tenant":"acme","trial":true,"seats":9,"share":1.125,"It''s \"quoted\", 100 %":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}','ok',NULL,'2026-02-01 02:59:59.990991',0.5625,0.3125,1,NULL,0.5,'drawn',1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000b','00000000000000000000000000000006','000000000000000b','shop','search','two
lines	and   a separator','10: two
lines	and   a separator','[{"text":"two\nlines\tand   a separator","id":"page 10","score":0.25}]','[]','gpt-4o-mini','7',NULL,NULL,'{"tenant":"acme","trial":false,"seats":10,"share":1.25,"two\nlines\tand   a se":"two\nlines\tand   a separator"}','ok',NULL,'2026-02-01 01:59:59.989990',0.625,0.34375,0,NULL,NULL,NULL,1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000c','00000000000000000000000000000006','000000000000000c','shop','ask/{id}','السعر 👨‍👩‍👧 üß','11: السعر 👨‍👩‍👧 üß','[{"text":"السعر 👨‍👩‍👧 üß","id":"page 11","score":0.25},{"text":"","id":null,"score":null}]','[{"role":"user","text":"السعر 👨‍👩‍👧 üß"}]',NULL,'7','s2','u3','{"tenant":"acme","trial":true,"seats":11,"share":1.375,"السعر 👨‍👩‍👧 üß":"السعر 👨‍👩‍👧 üß"}','error','ValueError: السعر 👨‍👩‍👧 üß','2026-02-01 00:59:59.988989',0.6875,0.375,1,NULL,NULL,NULL,1.0,NULL,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000d','00000000000000000000000000000007','000000000000000d','café','ask','NUL � and half a pair �','12: NUL � and half a pair �','[]','[]','gpt-4o-mini',NULL,'s0','u0','{"tenant":"acme","trial":false,"seats":12,"share":1.5,"NUL � and half a pai":"NUL � and half a pair �"}','ok',NULL,'2026-01-31 23:59:59.987988',0.75,0.40625,0,0.25,NULL,'candidate',0.75,0.5,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000e','00000000000000000000000000000007','000000000000000e','shop','search','','13: ','[{"text":"","id":"page 13","score":0.25}]','[{"role":"user","text":""}]',NULL,'7','s1','u1','{"tenant":"acme","trial":true,"seats":13,"share":1.625,"":""}','ok',NULL,'2026-01-31 22:59:59.986987',0.8125,0.4375,1,0.25,0.375,'suspicion',0.75,0.5,NULL);
INSERT INTO "exchange" VALUES('0000000000000000000000000000000f','00000000000000000000000000000008','000000000000000f','shop','ask/{id}','<script>alert(1)</script>','14: <script>alert(1)</script>','[{"text":"<script>alert(1)</script>","id":"page 14","score":0.25},{"text":"","id":null,"score":null}]','[]','gpt-4o-mini','7','s2','u2','{"tenant":"acme","trial":false,"seats":14,"share":1.75,"<script>alert(1)</sc":"<script>alert(1)</script>"}','ok',NULL,'2026-01-31 21:59:59.985986',0.875,0.46875,0,0.25,0.125,'not_drawn',0.75,0.5,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000010','00000000000000000000000000000008','0000000000000010','café','ask','long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','15: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','[]','[{"role":"user","text":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}]',NULL,'7',NULL,NULL,'{"tenant":"acme","trial":true,"seats":15,"share":1.875,"long long long long ":"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "}','error','ValueError: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ','2026-01-31 20:59:59.984985',0.9375,0.5,1,NULL,NULL,'budget',0.75,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000011','00000000000000000000000000000009','0000000000000011','shop','search','How do I pay?','16: How do I pay?','[{"text":"How do I pay?","id":"page 16","score":0.25}]','[]','gpt-4o-mini',NULL,'s1','u0','{"tenant":"acme","trial":false,"seats":16,"share":2.0,"How do I pay?":"How do I pay?"}','ok',NULL,'2026-01-31 19:59:59.983984',1.0,0.53125,0,NULL,0.75,'always',0.75,NULL,NULL);
INSERT INTO "exchange" VALUES('00000000000000000000000000000012','00000000000000000000000000000009','0000000000000012','shop','ask/{id}',NULL,NULL,'[]','[]',NULL,'7','s2','u1','{"tenant":"acme","trial":true,"seats":17,"share":2.125,"It''s \"quoted\", 100 %":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */"}','ok',NULL,'2026-01-31 18:59:59.982983',1.0625,0.5625,1,-0.5,0.75,'always',0.75,1.0,'2026-02-01 12:00:00.000000');
CREATE TABLE feedback (
	id TEXT NOT NULL, 
	exchange_id TEXT NOT NULL, 
	score FLOAT NOT NULL, 
	comment TEXT, 
	user TEXT, 
	created_at DATETIME NOT NULL, considered_at DATETIME, 
	PRIMARY KEY (id)
);
INSERT INTO "feedback" VALUES('1','11111111111111111111111111111111',0.25,'السعر 👨‍👩‍👧 üß','u1','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "feedback" VALUES('9','99999999999999999999999999999999',0.25,'السعر 👨‍👩‍👧 üß','u1','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "feedback" VALUES('2','00000000000000000000000000000002',0.25,'السعر 👨‍👩‍👧 üß','u1','2026-02-01 12:00:00.000000',NULL);
INSERT INTO "feedback" VALUES('16','00000000000000000000000000000011',0.0,'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','u2','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
CREATE TABLE germane_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT germane_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "germane_version" VALUES('0004');
CREATE TABLE lease (
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	expires_at DATETIME NOT NULL, cursor TEXT, renewed_at DATETIME, 
	PRIMARY KEY (name)
);
INSERT INTO "lease" VALUES('sampler','someone','2026-02-01 13:00:00.000000','the first interval','2026-02-01 12:00:00.000000');
CREATE TABLE rate_limit (
	name TEXT NOT NULL, 
	arrival FLOAT NOT NULL, 
	waited FLOAT NOT NULL, 
	used_at DATETIME NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "rate_limit" VALUES('requests',1769947201.0,0.0,'2026-02-01 12:00:00.000000');
INSERT INTO "rate_limit" VALUES('tokens',1769947200.9,0.0,'2026-02-01 12:00:00.000000');
CREATE TABLE score (
	id INTEGER NOT NULL, 
	exchange_id TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	service TEXT NOT NULL, 
	route TEXT NOT NULL, 
	started_at DATETIME NOT NULL, 
	sampling_probability FLOAT, 
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
	scored_at DATETIME, proxy FLOAT, 
	PRIMARY KEY (id), 
	CONSTRAINT uq_score UNIQUE (exchange_id, scorer, fingerprint)
);
INSERT INTO "score" VALUES(1,'00000000000000000000000000000001','faithfulness','f2','café','ask','2026-02-01 12:00:00.000000',0.5,-0.25,'partly','How do I pay?','{"questions":[{"text":"How do I pay?","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',100,10,0.0001,0.5,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "score" VALUES(2,'00000000000000000000000000000001','relevancy','f1','café','ask','2026-02-01 12:00:00.000000',0.5,-0.25,'partly','How do I pay?','{"questions":[{"text":"How do I pay?","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',100,10,0.0001,0.5,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "score" VALUES(3,'00000000000000000000000000000002','faithfulness','f2 served','shop','search','2026-02-01 10:59:59.998999',0.5,0.0,'partly','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','{"questions":[{"text":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',101,10,0.0001,0.5,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "score" VALUES(4,'00000000000000000000000000000002','relevancy','f1 served','shop','search','2026-02-01 10:59:59.998999',0.5,0.0,'partly','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','{"questions":[{"text":"It''s \"quoted\", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',101,10,0.0001,0.5,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "score" VALUES(5,'00000000000000000000000000000003','faithfulness','f2','shop','ask/{id}','2026-02-01 09:59:59.997998',0.5,0.25,'partly','two
lines	and   a separator','{"questions":[{"text":"two\nlines\tand   a separator","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',102,10,0.0001,0.5,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "score" VALUES(6,'00000000000000000000000000000003','relevancy','f1','shop','ask/{id}','2026-02-01 09:59:59.997998',0.5,0.25,'partly','two
lines	and   a separator','{"questions":[{"text":"two\nlines\tand   a separator","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',102,10,0.0001,0.5,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "score" VALUES(7,'00000000000000000000000000000004','faithfulness','f2','café','ask','2026-02-01 08:59:59.996997',0.5,0.5,'partly','السعر 👨‍👩‍👧 üß','{"questions":[{"text":"السعر 👨‍👩‍👧 üß","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',103,10,0.0001,0.5,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "score" VALUES(8,'00000000000000000000000000000004','relevancy','f1','café','ask','2026-02-01 08:59:59.996997',0.5,0.5,'partly','السعر 👨‍👩‍👧 üß','{"questions":[{"text":"السعر 👨‍👩‍👧 üß","similarity":0.5}],"requests":3}','gpt-4o-mini','text-embedding-3-small',103,10,0.0001,0.5,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "score" VALUES(9,'0000000000000000000000000000000b','mine','recorded','shop','search','2026-02-01 01:59:59.989990',1.0,-0.5,NULL,'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','{}',NULL,NULL,NULL,NULL,NULL,NULL,'2026-02-01 12:00:00.000000',NULL);
INSERT INTO "score" VALUES(10,'00000000000000000000000000000012','faithfulness','f2','shop','ask/{id}','2026-01-31 18:59:59.982983',0.75,1.25,'partly',NULL,'{"questions": [{"similarity": 0.5}], "requests": 3}','gpt-4o-mini','text-embedding-3-small',106,10,0.0001,0.5,'2026-02-01 12:00:00.000000',-0.5);
INSERT INTO "score" VALUES(11,'00000000000000000000000000000012','relevancy','f1','shop','ask/{id}','2026-01-31 18:59:59.982983',0.75,1.25,'partly',NULL,'{"questions": [{"similarity": 0.5}], "requests": 3}','gpt-4o-mini','text-embedding-3-small',106,10,0.0001,0.5,'2026-02-01 12:00:00.000000',-0.5);
CREATE TABLE scoring_task (
	id INTEGER NOT NULL, 
	exchange_id TEXT NOT NULL, 
	scorer TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT, 
	error TEXT, 
	attempts INTEGER NOT NULL, 
	first_pending_at DATETIME NOT NULL, 
	not_before DATETIME, 
	lease_owner TEXT, 
	lease_until DATETIME, scored_as TEXT, tries INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT uq_scoring_task UNIQUE (exchange_id, scorer, fingerprint)
);
INSERT INTO "scoring_task" VALUES(1,'00000000000000000000000000000001','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(2,'00000000000000000000000000000001','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f1',0);
INSERT INTO "scoring_task" VALUES(3,'00000000000000000000000000000002','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2 served',0);
INSERT INTO "scoring_task" VALUES(4,'00000000000000000000000000000002','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f1 served',0);
INSERT INTO "scoring_task" VALUES(5,'00000000000000000000000000000003','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(6,'00000000000000000000000000000003','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f1',0);
INSERT INTO "scoring_task" VALUES(7,'00000000000000000000000000000004','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(8,'00000000000000000000000000000004','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f1',0);
INSERT INTO "scoring_task" VALUES(9,'00000000000000000000000000000005','faithfulness','f2','failed','unparsable','the judge said: NUL � and half a pair �',1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(10,'00000000000000000000000000000005','relevancy','f1','failed','unparsable','the judge said: NUL � and half a pair �',1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(11,'00000000000000000000000000000008','faithfulness','f2','pending','judge_timeout','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */',0,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000',NULL,NULL,NULL,1);
INSERT INTO "scoring_task" VALUES(12,'00000000000000000000000000000008','relevancy','f1','pending','judge_timeout','It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */',0,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000',NULL,NULL,NULL,1);
INSERT INTO "scoring_task" VALUES(13,'00000000000000000000000000000009','faithfulness','f2','running',NULL,NULL,1,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000','running','2026-02-01 13:00:00.000000',NULL,0);
INSERT INTO "scoring_task" VALUES(14,'00000000000000000000000000000009','relevancy','f1','running',NULL,NULL,1,'2026-02-01 12:00:00.000000','2026-02-01 13:00:00.000000','running','2026-02-01 13:00:00.000000',NULL,0);
INSERT INTO "scoring_task" VALUES(15,'0000000000000000000000000000000a','faithfulness','f2','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 02:59:59.990991',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(16,'0000000000000000000000000000000a','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 02:59:59.990991',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(17,'00000000000000000000000000000006','faithfulness','f2','skipped','not_drawn',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(18,'00000000000000000000000000000006','relevancy','f1','skipped','not_drawn',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(19,'00000000000000000000000000000007','faithfulness','f2','skipped','missing_input',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(20,'00000000000000000000000000000007','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 05:59:59.993994',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(21,'0000000000000000000000000000000b','mine','recorded','done',NULL,NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(22,'0000000000000000000000000000000d','faithfulness','f2','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(23,'0000000000000000000000000000000d','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(24,'0000000000000000000000000000000e','faithfulness','f2','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(25,'0000000000000000000000000000000e','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(26,'0000000000000000000000000000000f','faithfulness','f2','skipped','not_drawn',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(27,'0000000000000000000000000000000f','relevancy','f1','skipped','not_drawn',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(28,'00000000000000000000000000000010','faithfulness','f2','skipped','filtered',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(29,'00000000000000000000000000000010','relevancy','f1','skipped','budget',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(30,'00000000000000000000000000000011','faithfulness','f2','skipped','filtered',NULL,0,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(31,'00000000000000000000000000000011','relevancy','f1','pending',NULL,NULL,0,'2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000',NULL,NULL,NULL,0);
INSERT INTO "scoring_task" VALUES(32,'00000000000000000000000000000012','faithfulness','f2','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f2',0);
INSERT INTO "scoring_task" VALUES(33,'00000000000000000000000000000012','relevancy','f1','done',NULL,NULL,1,'2026-02-01 12:00:00.000000',NULL,NULL,NULL,'f1',0);
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
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-01-31 18:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','faithfulness','514487dd27d74542','skipped','filtered',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','relevancy','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 19:59:00.000000','shop','search','relevancy','514487dd27d74542','skipped','not_drawn',0);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','faithfulness','514487dd27d74542','skipped','filtered',1);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','relevancy','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 20:59:00.000000','café','ask','relevancy','514487dd27d74542','skipped','budget',1);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','skipped','not_drawn',1);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 21:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','skipped','not_drawn',1);
INSERT INTO "tally" VALUES('2026-01-31 22:59:00.000000','shop','search','faithfulness','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 22:59:00.000000','shop','search','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 22:59:00.000000','shop','search','relevancy','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 22:59:00.000000','shop','search','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 23:59:00.000000','café','ask','faithfulness','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 23:59:00.000000','café','ask','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-01-31 23:59:00.000000','café','ask','relevancy','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-01-31 23:59:00.000000','café','ask','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 01:59:00.000000','shop','search','mine','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 01:59:00.000000','shop','search','mine','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','café','ask','faithfulness','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','café','ask','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','café','ask','relevancy','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 02:59:00.000000','café','ask','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 03:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search','faithfulness','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search','relevancy','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 04:59:00.000000','shop','search','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 05:59:00.000000','café','ask','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 05:59:00.000000','café','ask','faithfulness','514487dd27d74542','skipped','missing_input',1);
INSERT INTO "tally" VALUES('2026-02-01 05:59:00.000000','café','ask','relevancy','514487dd27d74542','pending','',1);
INSERT INTO "tally" VALUES('2026-02-01 05:59:00.000000','café','ask','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','skipped','not_drawn',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 06:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','skipped','not_drawn',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','faithfulness','514487dd27d74542','failed','unparsable',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','faithfulness','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','relevancy','514487dd27d74542','failed','unparsable',1);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','relevancy','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 07:59:00.000000','shop','search','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','faithfulness','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','faithfulness','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','relevancy','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','relevancy','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 08:59:00.000000','café','ask','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 09:59:00.000000','shop','ask/{id}','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','faithfulness','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','faithfulness','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','relevancy','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','relevancy','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 10:59:00.000000','shop','search','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','faithfulness','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','faithfulness','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','faithfulness','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','relevancy','514487dd27d74542','pending','',0);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','relevancy','514487dd27d74542','scored','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','café','ask','relevancy','514487dd27d74542','seen','',1);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','514487dd27d74542','seen','',10);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','514487dd27d74542','skipped','capture_limit',3);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','faithfulness','514487dd27d74542','skipped','queue_full',7);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','514487dd27d74542','seen','',10);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','514487dd27d74542','skipped','capture_limit',3);
INSERT INTO "tally" VALUES('2026-02-01 12:00:00.000000','shop','ask','relevancy','514487dd27d74542','skipped','queue_full',7);
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
INSERT INTO "worker" VALUES('idle','b',2,'café','0.4.0','{"faithfulness": "f2", "relevancy": "f1"}',8,0,'It''s "quoted", 100 % \escaped\; -- DROP TABLE exchange; /* $1 :name %s */','2026-02-01 12:00:00.000000','2026-02-01 12:00:00.000000');
CREATE INDEX ix_exchange_started_at ON exchange (started_at, route);
CREATE INDEX ix_exchange_unsampled ON exchange (started_at) WHERE sampling_reason IS NULL;
CREATE INDEX ix_scoring_task_lease_owner ON scoring_task (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX ix_scoring_task_state ON scoring_task (state, reason);
CREATE INDEX ix_score_started_at ON score (started_at, scorer, service, route, fingerprint, value, label, sampling_probability);
CREATE INDEX ix_score_value ON score (value);
CREATE INDEX ix_feedback_created_at ON feedback (created_at);
CREATE INDEX ix_feedback_exchange_id ON feedback (exchange_id);
CREATE INDEX ix_calibration_made_at ON calibration (made_at);
CREATE VIEW answers AS
SELECT exchange.id AS exchange_id, exchange.trace_id, exchange.service, exchange.route, exchange.model,
    exchange.prompt_version, exchange.started_at, exchange.duration, exchange.question, exchange.answer,
    exchange.status, scoring_task.scorer, COALESCE(scoring_task.scored_as, scoring_task.fingerprint) AS fingerprint, scoring_task.state, scoring_task.reason,
    score.value, score.label, score.explanation, score.judge, score.cost, score.scored_at,
    1.0 / NULLIF(COALESCE(score.sampling_probability, exchange.sampling_probability), 0) AS weight
FROM scoring_task
JOIN exchange ON exchange.id = scoring_task.exchange_id
LEFT JOIN score ON score.exchange_id = scoring_task.exchange_id AND score.scorer = scoring_task.scorer
    AND score.fingerprint = COALESCE(scoring_task.scored_as, scoring_task.fingerprint);
CREATE INDEX ix_exchange_candidate ON exchange (started_at) WHERE sampling_reason = 'candidate';
CREATE INDEX ix_exchange_text ON exchange (started_at) WHERE erased_at IS NULL;
CREATE INDEX ix_scoring_task_open ON scoring_task (scorer, fingerprint, not_before, first_pending_at) WHERE not_before IS NOT NULL;
CREATE INDEX ix_scoring_task_candidate ON scoring_task (scorer, fingerprint, first_pending_at) WHERE state = 'pending' AND not_before IS NULL;
CREATE INDEX ix_feedback_unconsidered ON feedback (created_at) WHERE considered_at IS NULL;
CREATE INDEX ix_feedback_comment ON feedback (created_at) WHERE comment IS NOT NULL;
CREATE INDEX ix_worker_seen_at ON worker (seen_at);
COMMIT;
