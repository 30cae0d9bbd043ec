-- PostgreSQL's catalog for the questions that tools ask by themselves: the tables of a schema `pg`, which look like
-- PostgreSQL's, and of `info`, which look like the standard's. A column that is not filled has its default, and is NULL
-- only if it has none. Declared tables are added to pg_class and pg_attribute; views show them elsewhere.

CREATE SCHEMA pg;
CREATE SCHEMA info;
CREATE SCHEMA public;

CREATE TABLE pg.pg_namespace (oid BIGINT DEFAULT 0, nspname VARCHAR DEFAULT '', nspowner BIGINT DEFAULT 0, nspacl
  VARCHAR[]);
CREATE TABLE pg.pg_class (oid BIGINT DEFAULT 0, relname VARCHAR DEFAULT '', relnamespace BIGINT DEFAULT 0, reltype
  BIGINT DEFAULT 0, reloftype BIGINT DEFAULT 0, relowner BIGINT DEFAULT 0, relam BIGINT DEFAULT 0, relfilenode BIGINT
  DEFAULT 0, reltablespace BIGINT DEFAULT 0, relpages BIGINT DEFAULT 0, reltuples BIGINT DEFAULT 0, relallvisible
  BIGINT DEFAULT 0, reltoastrelid BIGINT DEFAULT 0, relhasindex BOOLEAN DEFAULT false, relisshared BOOLEAN DEFAULT
  false, relpersistence VARCHAR DEFAULT '', relkind VARCHAR DEFAULT '', relnatts BIGINT DEFAULT 0, relchecks BIGINT
  DEFAULT 0, relhasrules BOOLEAN DEFAULT false, relhastriggers BOOLEAN DEFAULT false, relhassubclass BOOLEAN DEFAULT
  false, relrowsecurity BOOLEAN DEFAULT false, relforcerowsecurity BOOLEAN DEFAULT false, relispopulated BOOLEAN
  DEFAULT false, relreplident VARCHAR DEFAULT '', relispartition BOOLEAN DEFAULT false, relrewrite BIGINT DEFAULT 0,
  relhasoids BOOLEAN DEFAULT false, relacl VARCHAR[], reloptions VARCHAR[], relpartbound VARCHAR);
CREATE TABLE pg.pg_attribute (attrelid BIGINT DEFAULT 0, attname VARCHAR DEFAULT '', atttypid BIGINT DEFAULT 0,
  attstattarget BIGINT DEFAULT 0, attlen BIGINT DEFAULT 0, attnum BIGINT DEFAULT 0, attndims BIGINT DEFAULT 0,
  attcacheoff BIGINT DEFAULT 0, atttypmod BIGINT DEFAULT 0, attbyval BOOLEAN DEFAULT false, attalign VARCHAR DEFAULT
  '', attstorage VARCHAR DEFAULT '', attcompression VARCHAR DEFAULT '', attnotnull BOOLEAN DEFAULT false, atthasdef
  BOOLEAN DEFAULT false, atthasmissing BOOLEAN DEFAULT false, attidentity VARCHAR DEFAULT '', attgenerated VARCHAR
  DEFAULT '', attisdropped BOOLEAN DEFAULT false, attislocal BOOLEAN DEFAULT false, attinhcount BIGINT DEFAULT 0,
  attcollation BIGINT DEFAULT 0, attacl VARCHAR[], attoptions VARCHAR[], attfdwoptions VARCHAR[]);
CREATE TABLE pg.pg_type (oid BIGINT DEFAULT 0, typname VARCHAR DEFAULT '', typnamespace BIGINT DEFAULT 0, typowner
  BIGINT DEFAULT 0, typlen BIGINT DEFAULT 0, typbyval BOOLEAN DEFAULT false, typtype VARCHAR DEFAULT '', typcategory
  VARCHAR DEFAULT '', typispreferred BOOLEAN DEFAULT false, typisdefined BOOLEAN DEFAULT false, typdelim VARCHAR
  DEFAULT '', typrelid BIGINT DEFAULT 0, typsubscript BIGINT DEFAULT 0, typelem BIGINT DEFAULT 0, typarray BIGINT
  DEFAULT 0, typinput BIGINT DEFAULT 0, typoutput BIGINT DEFAULT 0, typreceive BIGINT DEFAULT 0, typsend BIGINT
  DEFAULT 0, typmodin BIGINT DEFAULT 0, typnotnull BOOLEAN DEFAULT false, typbasetype BIGINT DEFAULT 0, typtypmod
  BIGINT DEFAULT 0, typndims BIGINT DEFAULT 0, typcollation BIGINT DEFAULT 0, typdefault VARCHAR, shown VARCHAR
  DEFAULT '');
CREATE TABLE pg.pg_database (oid BIGINT DEFAULT 0, datname VARCHAR DEFAULT '', datdba BIGINT DEFAULT 0, encoding
  BIGINT DEFAULT 0, datlocprovider VARCHAR DEFAULT '', datistemplate BOOLEAN DEFAULT false, datallowconn BOOLEAN
  DEFAULT false, datconnlimit BIGINT DEFAULT 0, dattablespace BIGINT DEFAULT 0, datcollate VARCHAR DEFAULT '',
  datctype VARCHAR DEFAULT '', daticulocale VARCHAR, datcollversion VARCHAR, datacl VARCHAR[]);
CREATE TABLE pg.pg_roles (oid BIGINT DEFAULT 0, rolname VARCHAR DEFAULT '', rolsuper BOOLEAN DEFAULT false, rolinherit
  BOOLEAN DEFAULT false, rolcreaterole BOOLEAN DEFAULT false, rolcreatedb BOOLEAN DEFAULT false, rolcanlogin BOOLEAN
  DEFAULT false, rolreplication BOOLEAN DEFAULT false, rolconnlimit BIGINT DEFAULT 0, rolpassword VARCHAR,
  rolvaliduntil VARCHAR, rolbypassrls BOOLEAN DEFAULT false, rolconfig VARCHAR[]);
CREATE TABLE pg.pg_user (usename VARCHAR DEFAULT '', usesysid BIGINT DEFAULT 0, usecreatedb BOOLEAN DEFAULT false,
  usesuper BOOLEAN DEFAULT false, userepl BOOLEAN DEFAULT false, usebypassrls BOOLEAN DEFAULT false, passwd VARCHAR,
  valuntil VARCHAR, useconfig VARCHAR[]);
CREATE TABLE pg.pg_auth_members (roleid BIGINT DEFAULT 0, member BIGINT DEFAULT 0, grantor BIGINT DEFAULT 0,
  admin_option BOOLEAN DEFAULT false);
CREATE TABLE pg.pg_settings (name VARCHAR DEFAULT '', setting VARCHAR DEFAULT '', unit VARCHAR, category VARCHAR
  DEFAULT '', short_desc VARCHAR DEFAULT '', context VARCHAR DEFAULT '', vartype VARCHAR DEFAULT '', source VARCHAR
  DEFAULT '');
CREATE TABLE pg.pg_am (oid BIGINT DEFAULT 0, amname VARCHAR DEFAULT '', amhandler BIGINT DEFAULT 0, amtype VARCHAR
  DEFAULT '');
CREATE TABLE pg.pg_attrdef (oid BIGINT DEFAULT 0, adrelid BIGINT DEFAULT 0, adnum BIGINT DEFAULT 0, adbin VARCHAR);
CREATE TABLE pg.pg_description (objoid BIGINT DEFAULT 0, classoid BIGINT DEFAULT 0, objsubid BIGINT DEFAULT 0,
  description VARCHAR DEFAULT '');
CREATE TABLE pg.pg_shdescription (objoid BIGINT DEFAULT 0, classoid BIGINT DEFAULT 0, description VARCHAR DEFAULT '');
CREATE TABLE pg.pg_index (indexrelid BIGINT DEFAULT 0, indrelid BIGINT DEFAULT 0, indnatts BIGINT DEFAULT 0,
  indnkeyatts BIGINT DEFAULT 0, indisunique BOOLEAN DEFAULT false, indnullsnotdistinct BOOLEAN DEFAULT false,
  indisprimary BOOLEAN DEFAULT false, indisexclusion BOOLEAN DEFAULT false, indimmediate BOOLEAN DEFAULT false,
  indisclustered BOOLEAN DEFAULT false, indisvalid BOOLEAN DEFAULT false, indisready BOOLEAN DEFAULT false, indislive
  BOOLEAN DEFAULT false, indisreplident BOOLEAN DEFAULT false, indkey BIGINT[], indclass BIGINT[], indoption BIGINT[],
  indexprs VARCHAR, indpred VARCHAR);
CREATE TABLE pg.pg_constraint (oid BIGINT DEFAULT 0, conname VARCHAR DEFAULT '', connamespace BIGINT DEFAULT 0,
  contype VARCHAR DEFAULT '', condeferrable BOOLEAN DEFAULT false, condeferred BOOLEAN DEFAULT false, convalidated
  BOOLEAN DEFAULT false, conrelid BIGINT DEFAULT 0, contypid BIGINT DEFAULT 0, conindid BIGINT DEFAULT 0, conparentid
  BIGINT DEFAULT 0, confrelid BIGINT DEFAULT 0, confupdtype VARCHAR DEFAULT '', confdeltype VARCHAR DEFAULT '',
  confmatchtype VARCHAR DEFAULT '', conkey BIGINT[], confkey BIGINT[], conbin VARCHAR);
CREATE TABLE pg.pg_proc (oid BIGINT DEFAULT 0, proname VARCHAR DEFAULT '', pronamespace BIGINT DEFAULT 0, prokind
  VARCHAR DEFAULT '', prorettype BIGINT DEFAULT 0, proretset BOOLEAN DEFAULT false, proargtypes BIGINT[], pronargs
  BIGINT DEFAULT 0, proacl VARCHAR[]);
CREATE TABLE pg.pg_collation (oid BIGINT DEFAULT 0, collname VARCHAR DEFAULT '', collnamespace BIGINT DEFAULT 0,
  collprovider VARCHAR DEFAULT '');
CREATE TABLE pg.pg_inherits (inhrelid BIGINT DEFAULT 0, inhparent BIGINT DEFAULT 0, inhseqno BIGINT DEFAULT 0,
  inhdetachpending BOOLEAN DEFAULT false);
CREATE TABLE pg.pg_trigger (oid BIGINT DEFAULT 0, tgrelid BIGINT DEFAULT 0, tgname VARCHAR DEFAULT '', tgisinternal
  BOOLEAN DEFAULT false, tgenabled VARCHAR DEFAULT '', tgparentid BIGINT DEFAULT 0, tgconstraint BIGINT DEFAULT 0,
  tgdeferrable BOOLEAN DEFAULT false, tginitdeferred BOOLEAN DEFAULT false);
CREATE TABLE pg.pg_policy (oid BIGINT DEFAULT 0, polname VARCHAR DEFAULT '', polrelid BIGINT DEFAULT 0, polcmd VARCHAR
  DEFAULT '', polpermissive BOOLEAN DEFAULT false, polroles BIGINT[], polqual VARCHAR, polwithcheck VARCHAR);
CREATE TABLE pg.pg_rewrite (oid BIGINT DEFAULT 0, rulename VARCHAR DEFAULT '', ev_class BIGINT DEFAULT 0, ev_type
  VARCHAR DEFAULT '', ev_enabled VARCHAR DEFAULT '');
CREATE TABLE pg.pg_statistic_ext (oid BIGINT DEFAULT 0, stxrelid BIGINT DEFAULT 0, stxname VARCHAR DEFAULT '',
  stxnamespace BIGINT DEFAULT 0, stxkind VARCHAR[], stxkeys BIGINT[], stxstattarget BIGINT DEFAULT 0);
CREATE TABLE pg.pg_publication (oid BIGINT DEFAULT 0, pubname VARCHAR DEFAULT '', puballtables BOOLEAN DEFAULT false);
CREATE TABLE pg.pg_publication_rel (oid BIGINT DEFAULT 0, prpubid BIGINT DEFAULT 0, prrelid BIGINT DEFAULT 0, prqual
  VARCHAR, prattrs BIGINT[]);
CREATE TABLE pg.pg_publication_namespace (oid BIGINT DEFAULT 0, pnpubid BIGINT DEFAULT 0, pnnspid BIGINT DEFAULT 0);
CREATE TABLE pg.pg_enum (oid BIGINT DEFAULT 0, enumtypid BIGINT DEFAULT 0, enumsortorder BIGINT DEFAULT 0, enumlabel
  VARCHAR DEFAULT '');
CREATE TABLE pg.pg_range (rngtypid BIGINT DEFAULT 0, rngsubtype BIGINT DEFAULT 0, rngmultitypid BIGINT DEFAULT 0,
  rngcollation BIGINT DEFAULT 0, rngsubopc BIGINT DEFAULT 0);
CREATE TABLE pg.pg_extension (oid BIGINT DEFAULT 0, extname VARCHAR DEFAULT '', extowner BIGINT DEFAULT 0,
  extnamespace BIGINT DEFAULT 0, extrelocatable BOOLEAN DEFAULT false, extversion VARCHAR DEFAULT '');
CREATE TABLE pg.pg_foreign_table (ftrelid BIGINT DEFAULT 0, ftserver BIGINT DEFAULT 0, ftoptions VARCHAR[]);
CREATE TABLE pg.pg_foreign_server (oid BIGINT DEFAULT 0, srvname VARCHAR DEFAULT '');
CREATE TABLE pg.pg_partitioned_table (partrelid BIGINT DEFAULT 0, partstrat VARCHAR DEFAULT '', partnatts BIGINT
  DEFAULT 0, partattrs BIGINT[]);
CREATE TABLE pg.pg_sequence (seqrelid BIGINT DEFAULT 0, seqtypid BIGINT DEFAULT 0, seqstart BIGINT DEFAULT 0,
  seqincrement BIGINT DEFAULT 0, seqmax BIGINT DEFAULT 0, seqmin BIGINT DEFAULT 0, seqcache BIGINT DEFAULT 0, seqcycle
  BOOLEAN DEFAULT false);
CREATE TABLE pg.pg_depend (classid BIGINT DEFAULT 0, objid BIGINT DEFAULT 0, objsubid BIGINT DEFAULT 0, refclassid
  BIGINT DEFAULT 0, refobjid BIGINT DEFAULT 0, refobjsubid BIGINT DEFAULT 0, deptype VARCHAR DEFAULT '');
CREATE TABLE pg.pg_tablespace (oid BIGINT DEFAULT 0, spcname VARCHAR DEFAULT '');
CREATE TABLE pg.pg_opclass (oid BIGINT DEFAULT 0, opcname VARCHAR DEFAULT '', opcmethod BIGINT DEFAULT 0, opcdefault
  BOOLEAN DEFAULT false);
CREATE TABLE pg.pg_operator (oid BIGINT DEFAULT 0, oprname VARCHAR DEFAULT '');
CREATE TABLE pg.pg_locks (locktype VARCHAR DEFAULT '', pid BIGINT DEFAULT 0);
CREATE TABLE pg.pg_stat_activity (pid BIGINT DEFAULT 0, datname VARCHAR DEFAULT '', usename VARCHAR DEFAULT '', state
  VARCHAR DEFAULT '', query VARCHAR DEFAULT '');
CREATE TABLE pg.pg_stat_user_tables (relid BIGINT DEFAULT 0, schemaname VARCHAR DEFAULT '', relname VARCHAR DEFAULT
  '', n_live_tup BIGINT DEFAULT 0);
CREATE TABLE pg.pg_views (schemaname VARCHAR DEFAULT '', viewname VARCHAR DEFAULT '', viewowner VARCHAR DEFAULT '',
  definition VARCHAR);
CREATE TABLE pg.pg_matviews (schemaname VARCHAR DEFAULT '', matviewname VARCHAR DEFAULT '', matviewowner VARCHAR
  DEFAULT '', definition VARCHAR);
CREATE TABLE pg.pg_indexes (schemaname VARCHAR DEFAULT '', tablename VARCHAR DEFAULT '', indexname VARCHAR DEFAULT '',
  indexdef VARCHAR DEFAULT '');
CREATE TABLE pg.pg_sequences (schemaname VARCHAR DEFAULT '', sequencename VARCHAR DEFAULT '');

CREATE TABLE info.views (table_catalog VARCHAR DEFAULT '', table_schema VARCHAR DEFAULT '', table_name VARCHAR DEFAULT
  '', view_definition VARCHAR);
CREATE TABLE info.table_constraints (constraint_catalog VARCHAR DEFAULT '', constraint_schema VARCHAR DEFAULT '',
  constraint_name VARCHAR DEFAULT '', table_catalog VARCHAR DEFAULT '', table_schema VARCHAR DEFAULT '', table_name
  VARCHAR DEFAULT '', constraint_type VARCHAR DEFAULT '');
CREATE TABLE info.key_column_usage (constraint_catalog VARCHAR DEFAULT '', constraint_schema VARCHAR DEFAULT '',
  constraint_name VARCHAR DEFAULT '', table_catalog VARCHAR DEFAULT '', table_schema VARCHAR DEFAULT '', table_name
  VARCHAR DEFAULT '', column_name VARCHAR DEFAULT '', ordinal_position BIGINT DEFAULT 0, position_in_unique_constraint
  BIGINT DEFAULT 0);
CREATE TABLE info.referential_constraints (constraint_catalog VARCHAR DEFAULT '', constraint_schema VARCHAR DEFAULT
  '', constraint_name VARCHAR DEFAULT '', unique_constraint_name VARCHAR DEFAULT '', unique_constraint_schema VARCHAR
  DEFAULT '', update_rule VARCHAR DEFAULT '', delete_rule VARCHAR DEFAULT '');
CREATE TABLE info.constraint_column_usage (table_schema VARCHAR DEFAULT '', table_name VARCHAR DEFAULT '', column_name
  VARCHAR DEFAULT '', constraint_schema VARCHAR DEFAULT '', constraint_name VARCHAR DEFAULT '');
CREATE TABLE info.character_sets (character_set_catalog VARCHAR DEFAULT '', character_set_schema VARCHAR DEFAULT '',
  character_set_name VARCHAR DEFAULT '');
CREATE TABLE info.routines (specific_schema VARCHAR DEFAULT '', specific_name VARCHAR DEFAULT '', routine_schema
  VARCHAR DEFAULT '', routine_name VARCHAR DEFAULT '', routine_type VARCHAR DEFAULT '', data_type VARCHAR DEFAULT '');
CREATE TABLE info.sequences (sequence_catalog VARCHAR DEFAULT '', sequence_schema VARCHAR DEFAULT '', sequence_name
  VARCHAR DEFAULT '');
CREATE TABLE info.triggers (trigger_schema VARCHAR DEFAULT '', trigger_name VARCHAR DEFAULT '', event_object_table
  VARCHAR DEFAULT '');

INSERT INTO pg.pg_namespace BY NAME
  SELECT * FROM (VALUES (2200, 'public', 10), (11, 'pg_catalog', 10), (13000, 'information_schema', 10))
    AS n(oid, nspname, nspowner);
INSERT INTO pg.pg_database BY NAME SELECT 5 AS oid, '{database}' AS datname, 10 AS datdba, 6 AS encoding, 'c' AS datlocprovider,
  true AS datallowconn, 'C' AS datcollate, 'C' AS datctype;
INSERT INTO pg.pg_roles BY NAME SELECT 10 AS oid, 'curator' AS rolname, true AS rolinherit, true AS rolcanlogin;
INSERT INTO pg.pg_settings BY NAME SELECT 'max_index_keys' AS name, '32' AS setting;  -- JDBC asks for it
INSERT INTO info.character_sets BY NAME SELECT 'UTF8' AS character_set_name;  -- Power BI asks for it
INSERT INTO pg.pg_am BY NAME SELECT 2 AS oid, 'heap' AS amname, 't' AS amtype;
INSERT INTO pg.pg_type BY NAME
  SELECT t.*, 11 AS typnamespace, 'b' AS typtype, true AS typisdefined, ',' AS typdelim, -1 AS typtypmod
  FROM (VALUES
    (16, 'bool', 1, 'B', 1000, 'boolean'),
    (17, 'bytea', -1, 'U', 1001, 'bytea'),
    (18, 'char', 1, 'Z', 1002, '"char"'),
    (19, 'name', 64, 'S', 1003, 'name'),
    (20, 'int8', 8, 'N', 1016, 'bigint'),
    (21, 'int2', 2, 'N', 1005, 'smallint'),
    (23, 'int4', 4, 'N', 1007, 'integer'),
    (25, 'text', -1, 'S', 1009, 'text'),
    (26, 'oid', 4, 'N', 1028, 'oid'),
    (114, 'json', -1, 'U', 199, 'json'),
    (700, 'float4', 4, 'N', 1021, 'real'),
    (701, 'float8', 8, 'N', 1022, 'double precision'),
    (705, 'unknown', -2, 'X', 0, 'unknown'),
    (1042, 'bpchar', -1, 'S', 1014, 'character'),
    (1043, 'varchar', -1, 'S', 1015, 'character varying'),
    (1082, 'date', 4, 'D', 1182, 'date'),
    (1083, 'time', 8, 'D', 1183, 'time without time zone'),
    (1114, 'timestamp', 8, 'D', 1115, 'timestamp without time zone'),
    (1184, 'timestamptz', 8, 'D', 1185, 'timestamp with time zone'),
    (1186, 'interval', 16, 'T', 1187, 'interval'),
    (1700, 'numeric', -1, 'N', 1231, 'numeric')
  ) AS t(oid, typname, typlen, typcategory, typarray, shown);
INSERT INTO pg.pg_type BY NAME
  SELECT typarray AS oid, '_' || typname AS typname, -1 AS typlen, 'A' AS typcategory, oid AS typelem, shown || '[]' AS shown,
    typnamespace, typtype, typisdefined, typdelim, typtypmod
  FROM pg.pg_type WHERE typarray <> 0;

CREATE VIEW pg.pg_tables AS
  SELECT 'public' AS schemaname, relname AS tablename, 'curator' AS tableowner, NULL::VARCHAR AS tablespace,
    false AS hasindexes, false AS hasrules, false AS hastriggers, false AS rowsecurity
  FROM pg.pg_class ORDER BY oid;
CREATE VIEW info.schemata AS
  SELECT '{database}' AS catalog_name, nspname AS schema_name, 'curator' AS schema_owner FROM pg.pg_namespace;
CREATE VIEW info.tables AS
  SELECT '{database}' AS table_catalog, 'public' AS table_schema, relname AS table_name, 'BASE TABLE' AS table_type,
    'NO' AS is_insertable_into, 'NO' AS is_typed
  FROM pg.pg_class ORDER BY oid;
CREATE VIEW info.columns AS
  SELECT '{database}' AS table_catalog, 'public' AS table_schema, c.relname AS table_name, a.attname AS column_name,
    a.attnum AS ordinal_position, NULL::VARCHAR AS column_default, 'YES' AS is_nullable, t.shown AS data_type,
    NULL::VARCHAR AS character_maximum_length, NULL::VARCHAR AS numeric_precision, NULL::VARCHAR AS numeric_scale,
    NULL::VARCHAR AS datetime_precision, '{database}' AS udt_catalog, 'pg_catalog' AS udt_schema, t.typname AS udt_name,
    'NO' AS is_identity, NULL::VARCHAR AS identity_generation, 'NEVER' AS is_generated, 'NO' AS is_updatable,
    NULL::VARCHAR AS collation_name, NULL::VARCHAR AS domain_name
  FROM pg.pg_attribute AS a JOIN pg.pg_class AS c ON c.oid = a.attrelid JOIN pg.pg_type AS t ON t.oid = a.atttypid
  ORDER BY a.attrelid, a.attnum;

CREATE MACRO pg.version() AS ('PostgreSQL {postgres} (Tacit {version}: answers with noise, read only)');
CREATE MACRO pg.current_schemas(a) AS (CASE WHEN a THEN ['pg_catalog', 'public'] ELSE ['public'] END);
CREATE MACRO pg.format_type(a,b) AS ((SELECT any_value(t.shown) FROM pg.pg_type AS t WHERE t.oid = a));
CREATE MACRO pg.pg_get_userbyid(a) AS ('curator');
CREATE MACRO pg.pg_encoding_to_char(a) AS ('UTF8');
CREATE MACRO pg.pg_char_to_encoding(a) AS (6);
CREATE MACRO pg.pg_size_pretty(a) AS ('0 bytes');
CREATE MACRO pg.quote_ident(a) AS ('"' || replace(a, '"', '""') || '"');
CREATE MACRO pg.obj_description(a,b) AS ((SELECT any_value(d.description) FROM pg.pg_description AS d WHERE d.objoid =
  a AND d.objsubid = 0)), (a) AS (NULL);
CREATE MACRO pg.col_description(a,b) AS ((SELECT any_value(d.description) FROM pg.pg_description AS d WHERE d.objoid =
  a AND d.objsubid = b));
CREATE MACRO pg.set_config(a,b,c) AS (b);
CREATE MACRO pg.array_to_string(a,b) AS (array_to_string(a, b));
CREATE MACRO pg.array_upper(a,b) AS (len(a));
CREATE MACRO pg.array_lower(a,b) AS (1);
CREATE MACRO pg.generate_subscripts(a,b) AS (unnest(range(1, len(a) + 1)));
CREATE MACRO pg._pg_expandarray(a) AS (struct_pack(x := 0, n := 0));
CREATE MACRO pg.oidvectortypes(a) AS ('');
CREATE MACRO pg.to_regclass(a) AS ((SELECT any_value(c.oid) FROM pg.pg_class AS c WHERE c.relname =
  split_part(replace(a, '"', ''), '.', -1)));
CREATE MACRO pg.regclass_name(a) AS ((SELECT any_value(c.relname) FROM pg.pg_class AS c WHERE c.oid = CAST(a AS
  BIGINT)));
CREATE MACRO pg.to_regtype(a) AS ((SELECT any_value(t.oid) FROM pg.pg_type AS t WHERE t.typname = a OR t.shown = a));
CREATE MACRO pg.regtype_name(a) AS ((SELECT any_value(t.shown) FROM pg.pg_type AS t WHERE t.oid = CAST(a AS BIGINT)));
CREATE MACRO pg.to_regnamespace(a) AS ((SELECT any_value(n.oid) FROM pg.pg_namespace AS n WHERE n.nspname = a));
CREATE MACRO pg.regnamespace_name(a) AS ((SELECT any_value(n.nspname) FROM pg.pg_namespace AS n WHERE n.oid = CAST(a
  AS BIGINT)));
CREATE MACRO pg.pg_collation_is_visible(a) AS (TRUE);
CREATE MACRO pg.pg_table_is_visible(a) AS (TRUE);
CREATE MACRO pg.pg_type_is_visible(a) AS (TRUE);
CREATE MACRO pg.pg_function_is_visible(a) AS (TRUE);
CREATE MACRO pg.pg_opclass_is_visible(a) AS (TRUE);
CREATE MACRO pg.has_table_privilege(a,b) AS (TRUE), (a,b,c) AS (TRUE);
CREATE MACRO pg.has_schema_privilege(a,b) AS (TRUE), (a,b,c) AS (TRUE);
CREATE MACRO pg.has_database_privilege(a,b) AS (TRUE), (a,b,c) AS (TRUE);
CREATE MACRO pg.has_column_privilege(a,b,c) AS (TRUE), (a,b,c,d) AS (TRUE);
CREATE MACRO pg.has_any_column_privilege(a,b) AS (TRUE), (a,b,c) AS (TRUE);
CREATE MACRO pg.pg_has_role(a,b) AS (TRUE), (a,b,c) AS (TRUE);
CREATE MACRO pg.pg_advisory_unlock_all() AS (TRUE);
CREATE MACRO pg.pg_is_in_recovery() AS (FALSE);
CREATE MACRO pg.row_security_active(a) AS (FALSE);
CREATE MACRO pg.pg_relation_is_publishable(a) AS (FALSE);
CREATE MACRO pg.pg_is_other_temp_schema(a) AS (FALSE);
CREATE MACRO pg.pg_get_expr(a,b) AS (NULL), (a,b,c) AS (NULL);
CREATE MACRO pg.shobj_description(a,b) AS (NULL);
CREATE MACRO pg.pg_get_constraintdef(a) AS (NULL), (a,b) AS (NULL);
CREATE MACRO pg.pg_get_indexdef(a) AS (NULL), (a,b,c) AS (NULL);
CREATE MACRO pg.pg_get_viewdef(a) AS (NULL), (a,b) AS (NULL);
CREATE MACRO pg.pg_get_partkeydef(a) AS (NULL);
CREATE MACRO pg.pg_get_serial_sequence(a,b) AS (NULL);
CREATE MACRO pg.pg_get_triggerdef(a) AS (NULL), (a,b) AS (NULL);
CREATE MACRO pg.pg_get_ruledef(a) AS (NULL), (a,b) AS (NULL);
CREATE MACRO pg.pg_get_statisticsobjdef_columns(a) AS (NULL);
CREATE MACRO pg.inet_server_addr() AS (NULL);
CREATE MACRO pg.inet_client_addr() AS (NULL);
CREATE MACRO pg.pg_tablespace_location(a) AS (NULL);
CREATE MACRO pg.pg_get_function_result(a) AS (NULL);
CREATE MACRO pg.pg_get_function_identity_arguments(a) AS (NULL);
CREATE MACRO pg.pg_get_function_arguments(a) AS (NULL);
CREATE MACRO pg.regproc_name(a) AS (NULL);
CREATE MACRO pg.to_regproc(a) AS (NULL);
CREATE MACRO pg.pg_get_replica_identity_index(a) AS (NULL);
CREATE MACRO pg.pg_my_temp_schema() AS (0);
CREATE MACRO pg.pg_relation_size(a) AS (0);
CREATE MACRO pg.pg_total_relation_size(a) AS (0);
CREATE MACRO pg.pg_table_size(a) AS (0);
CREATE MACRO pg.pg_backend_pid() AS (0);
CREATE MACRO pg.txid_current() AS (0);
