"""The tables and functions of PostgreSQL's catalog that tools ask for, as data: names, types, and values."""

from typing import Any

from tacit import __version__

DATABASE = "tacit"
VERSION = "15.0"  # of PostgreSQL: clients choose their queries of the catalog by it
PUBLIC_OID, CATALOG_OID, SCHEMA_OID = 2200, 11, 13_000
NAMESPACES = ((PUBLIC_OID, "public"), (CATALOG_OID, "pg_catalog"), (SCHEMA_OID, "information_schema"))
# a column each: its name, and a letter for its type if that is not a number: s text, b yes or no, l a list of numbers,
# n a text that is NULL, t a list of texts that is NULL
PG_TABLES = {
    "pg_namespace": "oid nspname:s nspowner nspacl:t",
    "pg_class": (
        "oid relname:s relnamespace reltype reloftype relowner relam relfilenode reltablespace relpages "
        "reltuples relallvisible reltoastrelid relhasindex:b relisshared:b relpersistence:s relkind:s "
        "relnatts relchecks relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b "
        "relforcerowsecurity:b relispopulated:b relreplident:s relispartition:b relrewrite relhasoids:b "
        "relacl:t reloptions:t relpartbound:n"
    ),
    "pg_attribute": (
        "attrelid attname:s atttypid attstattarget attlen attnum attndims attcacheoff atttypmod attbyval:b "
        "attalign:s attstorage:s attcompression:s attnotnull:b atthasdef:b atthasmissing:b attidentity:s "
        "attgenerated:s attisdropped:b attislocal:b attinhcount attcollation attacl:t attoptions:t "
        "attfdwoptions:t"
    ),
    "pg_type": (
        "oid typname:s typnamespace typowner typlen typbyval:b typtype:s typcategory:s typispreferred:b "
        "typisdefined:b typdelim:s typrelid typsubscript typelem typarray typinput typoutput typreceive "
        "typsend typmodin typnotnull:b typbasetype typtypmod typndims typcollation typdefault:n shown:s"
    ),
    "pg_database": (
        "oid datname:s datdba encoding datlocprovider:s datistemplate:b datallowconn:b datconnlimit "
        "dattablespace datcollate:s datctype:s daticulocale:n datcollversion:n datacl:t"
    ),
    "pg_roles": (
        "oid rolname:s rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b "
        "rolconnlimit rolpassword:n rolvaliduntil:n rolbypassrls:b rolconfig:t"
    ),
    "pg_user": "usename:s usesysid usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:n valuntil:n useconfig:t",
    "pg_auth_members": "roleid member grantor admin_option:b",
    "pg_settings": "name:s setting:s unit:n category:s short_desc:s context:s vartype:s source:s",
    "pg_am": "oid amname:s amhandler amtype:s",
    "pg_attrdef": "oid adrelid adnum adbin:n",
    "pg_description": "objoid classoid objsubid description:s",
    "pg_shdescription": "objoid classoid description:s",
    "pg_index": (
        "indexrelid indrelid indnatts indnkeyatts indisunique:b indnullsnotdistinct:b indisprimary:b "
        "indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indisready:b indislive:b "
        "indisreplident:b indkey:l indclass:l indoption:l indexprs:n indpred:n"
    ),
    "pg_constraint": (
        "oid conname:s connamespace contype:s condeferrable:b condeferred:b convalidated:b conrelid contypid "
        "conindid conparentid confrelid confupdtype:s confdeltype:s confmatchtype:s conkey:l confkey:l "
        "conbin:n"
    ),
    "pg_proc": "oid proname:s pronamespace prokind:s prorettype proretset:b proargtypes:l pronargs proacl:t",
    "pg_collation": "oid collname:s collnamespace collprovider:s",
    "pg_inherits": "inhrelid inhparent inhseqno inhdetachpending:b",
    "pg_trigger": (
        "oid tgrelid tgname:s tgisinternal:b tgenabled:s tgparentid tgconstraint tgdeferrable:b tginitdeferred:b"
    ),
    "pg_policy": "oid polname:s polrelid polcmd:s polpermissive:b polroles:l polqual:n polwithcheck:n",
    "pg_rewrite": "oid rulename:s ev_class ev_type:s ev_enabled:s",
    "pg_statistic_ext": "oid stxrelid stxname:s stxnamespace stxkind:t stxkeys:l stxstattarget",
    "pg_publication": "oid pubname:s puballtables:b",
    "pg_publication_rel": "oid prpubid prrelid prqual:n prattrs:l",
    "pg_publication_namespace": "oid pnpubid pnnspid",
    "pg_enum": "oid enumtypid enumsortorder enumlabel:s",
    "pg_range": "rngtypid rngsubtype rngmultitypid rngcollation rngsubopc",
    "pg_extension": "oid extname:s extowner extnamespace extrelocatable:b extversion:s",
    "pg_foreign_table": "ftrelid ftserver ftoptions:t",
    "pg_foreign_server": "oid srvname:s",
    "pg_partitioned_table": "partrelid partstrat:s partnatts partattrs:l",
    "pg_sequence": "seqrelid seqtypid seqstart seqincrement seqmax seqmin seqcache seqcycle:b",
    "pg_depend": "classid objid objsubid refclassid refobjid refobjsubid deptype:s",
    "pg_tablespace": "oid spcname:s",
    "pg_opclass": "oid opcname:s opcmethod opcdefault:b",
    "pg_operator": "oid oprname:s",
    "pg_locks": "locktype:s pid",
    "pg_stat_activity": "pid datname:s usename:s state:s query:s",
    "pg_stat_user_tables": "relid schemaname:s relname:s n_live_tup",
    "pg_tables": (
        "schemaname:s tablename:s tableowner:s tablespace:n hasindexes:b hasrules:b hastriggers:b rowsecurity:b"
    ),
    "pg_views": "schemaname:s viewname:s viewowner:s definition:n",
    "pg_matviews": "schemaname:s matviewname:s matviewowner:s definition:n",
    "pg_indexes": "schemaname:s tablename:s indexname:s indexdef:s",
    "pg_sequences": "schemaname:s sequencename:s",
}
INFO_TABLES = {
    "schemata": "catalog_name:s schema_name:s schema_owner:s",
    "tables": "table_catalog:s table_schema:s table_name:s table_type:s is_insertable_into:s is_typed:s",
    "columns": (
        "table_catalog:s table_schema:s table_name:s column_name:s ordinal_position column_default:n "
        "is_nullable:s data_type:s character_maximum_length:n numeric_precision:n numeric_scale:n "
        "datetime_precision:n udt_catalog:s udt_schema:s udt_name:s is_identity:s identity_generation:n "
        "is_generated:s is_updatable:s collation_name:n domain_name:n"
    ),
    "views": "table_catalog:s table_schema:s table_name:s view_definition:n",
    "table_constraints": (
        "constraint_catalog:s constraint_schema:s constraint_name:s table_catalog:s table_schema:s "
        "table_name:s constraint_type:s"
    ),
    "key_column_usage": (
        "constraint_catalog:s constraint_schema:s constraint_name:s table_catalog:s table_schema:s "
        "table_name:s column_name:s ordinal_position position_in_unique_constraint"
    ),
    "referential_constraints": (
        "constraint_catalog:s constraint_schema:s constraint_name:s unique_constraint_name:s "
        "unique_constraint_schema:s update_rule:s delete_rule:s"
    ),
    "constraint_column_usage": "table_schema:s table_name:s column_name:s constraint_schema:s constraint_name:s",
    "character_sets": "character_set_catalog:s character_set_schema:s character_set_name:s",
    "routines": "specific_schema:s specific_name:s routine_schema:s routine_name:s routine_type:s data_type:s",
    "sequences": "sequence_catalog:s sequence_schema:s sequence_name:s",
    "triggers": "trigger_schema:s trigger_name:s event_object_table:s",
}
TYPES = {"": "BIGINT", "s": "VARCHAR", "b": "BOOLEAN", "l": "BIGINT[]", "n": "VARCHAR", "t": "VARCHAR[]"}
EMPTY: dict[str, Any] = {"": 0, "s": "", "b": False, "l": None, "n": None, "t": None}
BASE_TYPES = (
    (16, "bool", 1, "B", 1000, "boolean"),
    (17, "bytea", -1, "U", 1001, "bytea"),
    (18, "char", 1, "Z", 1002, '"char"'),
    (19, "name", 64, "S", 1003, "name"),
    (20, "int8", 8, "N", 1016, "bigint"),
    (21, "int2", 2, "N", 1005, "smallint"),
    (23, "int4", 4, "N", 1007, "integer"),
    (25, "text", -1, "S", 1009, "text"),
    (26, "oid", 4, "N", 1028, "oid"),
    (114, "json", -1, "U", 199, "json"),
    (700, "float4", 4, "N", 1021, "real"),
    (701, "float8", 8, "N", 1022, "double precision"),
    (705, "unknown", -2, "X", 0, "unknown"),
    (1042, "bpchar", -1, "S", 1014, "character"),
    (1043, "varchar", -1, "S", 1015, "character varying"),
    (1082, "date", 4, "D", 1182, "date"),
    (1083, "time", 8, "D", 1183, "time without time zone"),
    (1114, "timestamp", 8, "D", 1115, "timestamp without time zone"),
    (1184, "timestamptz", 8, "D", 1185, "timestamp with time zone"),
    (1186, "interval", 16, "T", 1187, "interval"),
    (1700, "numeric", -1, "N", 1231, "numeric"),
)
DUCKDB_TYPES = {
    "bool": "BOOLEAN",
    "int": "BIGINT",
    "float": "DOUBLE",
    "decimal": "DOUBLE",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_TRUE = (
    "pg_collation_is_visible(a) "
    "pg_table_is_visible(a) pg_type_is_visible(a) pg_function_is_visible(a) pg_opclass_is_visible(a) "
    "has_table_privilege(a,b) has_table_privilege(a,b,c) has_schema_privilege(a,b) "
    "has_schema_privilege(a,b,c) has_database_privilege(a,b) has_database_privilege(a,b,c) "
    "has_column_privilege(a,b,c) has_column_privilege(a,b,c,d) has_any_column_privilege(a,b) "
    "has_any_column_privilege(a,b,c) pg_has_role(a,b) pg_has_role(a,b,c) pg_advisory_unlock_all()"
)
_FALSE = "pg_is_in_recovery() row_security_active(a) pg_relation_is_publishable(a) pg_is_other_temp_schema(a)"
_NULL = (
    "pg_get_expr(a,b) pg_get_expr(a,b,c) obj_description(a) shobj_description(a,b) "
    "pg_get_constraintdef(a) pg_get_constraintdef(a,b) pg_get_indexdef(a) pg_get_indexdef(a,b,c) "
    "pg_get_viewdef(a) pg_get_viewdef(a,b) pg_get_partkeydef(a) pg_get_serial_sequence(a,b) "
    "pg_get_triggerdef(a) pg_get_triggerdef(a,b) pg_get_ruledef(a) pg_get_ruledef(a,b) "
    "pg_get_statisticsobjdef_columns(a) inet_server_addr() inet_client_addr() pg_tablespace_location(a) "
    "pg_get_function_result(a) pg_get_function_identity_arguments(a) pg_get_function_arguments(a) "
    "regproc_name(a) to_regproc(a) pg_get_replica_identity_index(a)"
)
_ZERO = (
    "pg_my_temp_schema() pg_relation_size(a) pg_total_relation_size(a) pg_table_size(a) pg_backend_pid() txid_current()"
)
MACROS = {
    "version()": f"'PostgreSQL {VERSION} (Tacit {__version__}: answers with noise, read only)'",
    "current_schemas(a)": "CASE WHEN a THEN ['pg_catalog', 'public'] ELSE ['public'] END",
    "format_type(a,b)": "(SELECT any_value(t.shown) FROM pg.pg_type AS t WHERE t.oid = a)",
    "pg_get_userbyid(a)": "'curator'",
    "pg_encoding_to_char(a)": "'UTF8'",
    "pg_char_to_encoding(a)": "6",
    "pg_size_pretty(a)": "'0 bytes'",
    "quote_ident(a)": "'\"' || replace(a, '\"', '\"\"') || '\"'",
    "obj_description(a,b)": "(SELECT any_value(d.description) FROM pg.pg_description AS d WHERE d.objoid = a AND"
    " d.objsubid = 0)",
    "col_description(a,b)": "(SELECT any_value(d.description) FROM pg.pg_description AS d WHERE d.objoid = a AND"
    " d.objsubid = b)",
    "set_config(a,b,c)": "b",
    "array_to_string(a,b)": "array_to_string(a, b)",
    "array_upper(a,b)": "len(a)",
    "array_lower(a,b)": "1",
    "generate_subscripts(a,b)": "unnest(range(1, len(a) + 1))",
    "_pg_expandarray(a)": "struct_pack(x := 0, n := 0)",
    "oidvectortypes(a)": "''",
    "to_regclass(a)": "(SELECT any_value(c.oid) FROM pg.pg_class AS c WHERE"
    " c.relname = split_part(replace(a, '\"', ''), '.', -1))",
    "regclass_name(a)": "(SELECT any_value(c.relname) FROM pg.pg_class AS c WHERE c.oid = CAST(a AS BIGINT))",
    "to_regtype(a)": "(SELECT any_value(t.oid) FROM pg.pg_type AS t WHERE t.typname = a OR t.shown = a)",
    "regtype_name(a)": "(SELECT any_value(t.shown) FROM pg.pg_type AS t WHERE t.oid = CAST(a AS BIGINT))",
    "to_regnamespace(a)": "(SELECT any_value(n.oid) FROM pg.pg_namespace AS n WHERE n.nspname = a)",
    "regnamespace_name(a)": "(SELECT any_value(n.nspname) FROM pg.pg_namespace AS n WHERE n.oid = CAST(a AS BIGINT))",
    **dict.fromkeys(_TRUE.split(" "), "TRUE"),
    **dict.fromkeys(_FALSE.split(" "), "FALSE"),
    **dict.fromkeys(_NULL.split(" "), "NULL"),
    **dict.fromkeys(_ZERO.split(" "), "0"),
}
FUNCTIONS = frozenset(name.partition("(")[0] for name in MACROS)
