//! The tables of `pg_catalog`.

use crate::catalog::system::shape::Shape;

/// `pg_am`
pub(crate) const PG_AM: Shape = Shape::catalog(
    2601,
    "pg_am",
    "oid oid!, amname name!, amhandler regproc!, amtype char!",
);

/// `pg_aggregate`
pub(crate) const PG_AGGREGATE: Shape = Shape::catalog(
    2600,
    "pg_aggregate",
    "aggfnoid regproc!, aggkind char!, aggnumdirectargs int2!, aggtransfn regproc!, aggfinalfn regproc!, \
     aggcombinefn regproc!, aggserialfn regproc!, aggdeserialfn regproc!, aggmtransfn regproc!, aggminvtransfn \
     regproc!, aggmfinalfn regproc!, aggfinalextra bool!, aggmfinalextra bool!, aggfinalmodify char!, \
     aggmfinalmodify char!, aggsortop oid!, aggtranstype oid!, aggtransspace int4!, aggmtranstype oid!, \
     aggmtransspace int4!, agginitval text, aggminitval text",
);

/// `pg_amop`
pub(crate) const PG_AMOP: Shape = Shape::catalog(
    2602,
    "pg_amop",
    "oid oid!, amopfamily oid!, amoplefttype oid!, amoprighttype oid!, amopstrategy int2!, amoppurpose char!, \
     amopopr oid!, amopmethod oid!, amopsortfamily oid!",
);

/// `pg_amproc`
pub(crate) const PG_AMPROC: Shape = Shape::catalog(
    2603,
    "pg_amproc",
    "oid oid!, amprocfamily oid!, amproclefttype oid!, amprocrighttype oid!, amprocnum int2!, amproc regproc!",
);

/// `pg_attrdef`
pub(crate) const PG_ATTRDEF: Shape = Shape::catalog(
    2604,
    "pg_attrdef",
    "oid oid!, adrelid oid!, adnum int2!, adbin pg_node_tree!",
);

/// `pg_attribute`
pub(crate) const PG_ATTRIBUTE: Shape = Shape::catalog(
    1249,
    "pg_attribute",
    "attrelid oid!, attname name!, atttypid oid!, attstattarget int4!, attlen int2!, attnum int2!, attndims \
     int4!, attcacheoff int4!, atttypmod int4!, attbyval bool!, attalign char!, attstorage char!, \
     attcompression char!, attnotnull bool!, atthasdef bool!, atthasmissing bool!, attidentity char!, \
     attgenerated char!, attisdropped bool!, attislocal bool!, attinhcount int4!, attcollation oid!, attacl \
     _aclitem, attoptions _text, attfdwoptions _text, attmissingval anyarray",
);

/// `pg_auth_members`
pub(crate) const PG_AUTH_MEMBERS: Shape = Shape::catalog(
    1261,
    "pg_auth_members",
    "roleid oid!, member oid!, grantor oid!, admin_option bool!",
);

/// `pg_authid`
pub(crate) const PG_AUTHID: Shape = Shape::catalog(
    1260,
    "pg_authid",
    "oid oid!, rolname name!, rolsuper bool!, rolinherit bool!, rolcreaterole bool!, rolcreatedb bool!, \
     rolcanlogin bool!, rolreplication bool!, rolbypassrls bool!, rolconnlimit int4!, rolpassword text, \
     rolvaliduntil timestamptz",
);

/// `pg_cast`
pub(crate) const PG_CAST: Shape = Shape::catalog(
    2605,
    "pg_cast",
    "oid oid!, castsource oid!, casttarget oid!, castfunc oid!, castcontext char!, castmethod char!",
);

/// `pg_class`
pub(crate) const PG_CLASS: Shape = Shape::catalog(
    1259,
    "pg_class",
    "oid oid!, relname name!, relnamespace oid!, reltype oid!, reloftype oid!, relowner oid!, relam oid!, \
     relfilenode oid!, reltablespace oid!, relpages int4!, reltuples float4!, relallvisible int4!, \
     reltoastrelid oid!, relhasindex bool!, relisshared bool!, relpersistence char!, relkind char!, relnatts \
     int2!, relchecks int2!, relhasrules bool!, relhastriggers bool!, relhassubclass bool!, relrowsecurity \
     bool!, relforcerowsecurity bool!, relispopulated bool!, relreplident char!, relispartition bool!, \
     relrewrite oid!, relfrozenxid xid!, relminmxid xid!, relacl _aclitem, reloptions _text, relpartbound \
     pg_node_tree",
);

/// `pg_collation`
pub(crate) const PG_COLLATION: Shape = Shape::catalog(
    3456,
    "pg_collation",
    "oid oid!, collname name!, collnamespace oid!, collowner oid!, collprovider char!, collisdeterministic \
     bool!, collencoding int4!, collcollate text, collctype text, colliculocale text, collversion text",
);

/// `pg_constraint`
pub(crate) const PG_CONSTRAINT: Shape = Shape::catalog(
    2606,
    "pg_constraint",
    "oid oid!, conname name!, connamespace oid!, contype char!, condeferrable bool!, condeferred bool!, \
     convalidated bool!, conrelid oid!, contypid oid!, conindid oid!, conparentid oid!, confrelid oid!, \
     confupdtype char!, confdeltype char!, confmatchtype char!, conislocal bool!, coninhcount int4!, \
     connoinherit bool!, conkey _int2, confkey _int2, conpfeqop _oid, conppeqop _oid, conffeqop _oid, \
     confdelsetcols _int2, conexclop _oid, conbin pg_node_tree",
);

/// `pg_conversion`
pub(crate) const PG_CONVERSION: Shape = Shape::catalog(
    2607,
    "pg_conversion",
    "oid oid!, conname name!, connamespace oid!, conowner oid!, conforencoding int4!, contoencoding int4!, \
     conproc regproc!, condefault bool!",
);

/// `pg_database`
pub(crate) const PG_DATABASE: Shape = Shape::catalog(
    1262,
    "pg_database",
    "oid oid!, datname name!, datdba oid!, encoding int4!, datlocprovider char!, datistemplate bool!, \
     datallowconn bool!, datconnlimit int4!, datfrozenxid xid!, datminmxid xid!, dattablespace oid!, \
     datcollate text!, datctype text!, daticulocale text, datcollversion text, datacl _aclitem",
);

/// `pg_db_role_setting`
pub(crate) const PG_DB_ROLE_SETTING: Shape = Shape::catalog(
    2964,
    "pg_db_role_setting",
    "setdatabase oid!, setrole oid!, setconfig _text",
);

/// `pg_default_acl`
pub(crate) const PG_DEFAULT_ACL: Shape = Shape::catalog(
    826,
    "pg_default_acl",
    "oid oid!, defaclrole oid!, defaclnamespace oid!, defaclobjtype char!, defaclacl _aclitem!",
);

/// `pg_depend`
pub(crate) const PG_DEPEND: Shape = Shape::catalog(
    2608,
    "pg_depend",
    "classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!, refobjsubid int4!, deptype \
     char!",
);

/// `pg_description`
pub(crate) const PG_DESCRIPTION: Shape = Shape::catalog(
    2609,
    "pg_description",
    "objoid oid!, classoid oid!, objsubid int4!, description text!",
);

/// `pg_enum`
pub(crate) const PG_ENUM: Shape = Shape::catalog(
    3501,
    "pg_enum",
    "oid oid!, enumtypid oid!, enumsortorder float4!, enumlabel name!",
);

/// `pg_event_trigger`
pub(crate) const PG_EVENT_TRIGGER: Shape = Shape::catalog(
    3466,
    "pg_event_trigger",
    "oid oid!, evtname name!, evtevent name!, evtowner oid!, evtfoid oid!, evtenabled char!, evttags _text",
);

/// `pg_extension`
pub(crate) const PG_EXTENSION: Shape = Shape::catalog(
    3079,
    "pg_extension",
    "oid oid!, extname name!, extowner oid!, extnamespace oid!, extrelocatable bool!, extversion text!, \
     extconfig _oid, extcondition _text",
);

/// `pg_foreign_data_wrapper`
pub(crate) const PG_FOREIGN_DATA_WRAPPER: Shape = Shape::catalog(
    2328,
    "pg_foreign_data_wrapper",
    "oid oid!, fdwname name!, fdwowner oid!, fdwhandler oid!, fdwvalidator oid!, fdwacl _aclitem, fdwoptions \
     _text",
);

/// `pg_foreign_server`
pub(crate) const PG_FOREIGN_SERVER: Shape = Shape::catalog(
    1417,
    "pg_foreign_server",
    "oid oid!, srvname name!, srvowner oid!, srvfdw oid!, srvtype text, srvversion text, srvacl _aclitem, \
     srvoptions _text",
);

/// `pg_foreign_table`
pub(crate) const PG_FOREIGN_TABLE: Shape = Shape::catalog(
    3118,
    "pg_foreign_table",
    "ftrelid oid!, ftserver oid!, ftoptions _text",
);

/// `pg_index`
pub(crate) const PG_INDEX: Shape = Shape::catalog(
    2610,
    "pg_index",
    "indexrelid oid!, indrelid oid!, indnatts int2!, indnkeyatts int2!, indisunique bool!, \
     indnullsnotdistinct bool!, indisprimary bool!, indisexclusion bool!, indimmediate bool!, indisclustered \
     bool!, indisvalid bool!, indcheckxmin bool!, indisready bool!, indislive bool!, indisreplident bool!, \
     indkey int2vector!, indcollation oidvector!, indclass oidvector!, indoption int2vector!, indexprs \
     pg_node_tree, indpred pg_node_tree",
);

/// `pg_inherits`
pub(crate) const PG_INHERITS: Shape = Shape::catalog(
    2611,
    "pg_inherits",
    "inhrelid oid!, inhparent oid!, inhseqno int4!, inhdetachpending bool!",
);

/// `pg_init_privs`
pub(crate) const PG_INIT_PRIVS: Shape = Shape::catalog(
    3394,
    "pg_init_privs",
    "objoid oid!, classoid oid!, objsubid int4!, privtype char!, initprivs _aclitem!",
);

/// `pg_language`
pub(crate) const PG_LANGUAGE: Shape = Shape::catalog(
    2612,
    "pg_language",
    "oid oid!, lanname name!, lanowner oid!, lanispl bool!, lanpltrusted bool!, lanplcallfoid oid!, laninline \
     oid!, lanvalidator oid!, lanacl _aclitem",
);

/// `pg_largeobject_metadata`
pub(crate) const PG_LARGEOBJECT_METADATA: Shape = Shape::catalog(
    2995,
    "pg_largeobject_metadata",
    "oid oid!, lomowner oid!, lomacl _aclitem",
);

/// `pg_namespace`
pub(crate) const PG_NAMESPACE: Shape = Shape::catalog(
    2615,
    "pg_namespace",
    "oid oid!, nspname name!, nspowner oid!, nspacl _aclitem",
);

/// `pg_opclass`
pub(crate) const PG_OPCLASS: Shape = Shape::catalog(
    2616,
    "pg_opclass",
    "oid oid!, opcmethod oid!, opcname name!, opcnamespace oid!, opcowner oid!, opcfamily oid!, opcintype \
     oid!, opcdefault bool!, opckeytype oid!",
);

/// `pg_operator`
pub(crate) const PG_OPERATOR: Shape = Shape::catalog(
    2617,
    "pg_operator",
    "oid oid!, oprname name!, oprnamespace oid!, oprowner oid!, oprkind char!, oprcanmerge bool!, oprcanhash \
     bool!, oprleft oid!, oprright oid!, oprresult oid!, oprcom oid!, oprnegate oid!, oprcode regproc!, \
     oprrest regproc!, oprjoin regproc!",
);

/// `pg_opfamily`
pub(crate) const PG_OPFAMILY: Shape = Shape::catalog(
    2753,
    "pg_opfamily",
    "oid oid!, opfmethod oid!, opfname name!, opfnamespace oid!, opfowner oid!",
);

/// `pg_parameter_acl`
pub(crate) const PG_PARAMETER_ACL: Shape = Shape::catalog(
    6243,
    "pg_parameter_acl",
    "oid oid!, parname text!, paracl _aclitem",
);

/// `pg_partitioned_table`
pub(crate) const PG_PARTITIONED_TABLE: Shape = Shape::catalog(
    3350,
    "pg_partitioned_table",
    "partrelid oid!, partstrat char!, partnatts int2!, partdefid oid!, partattrs int2vector!, partclass \
     oidvector!, partcollation oidvector!, partexprs pg_node_tree",
);

/// `pg_policy`
pub(crate) const PG_POLICY: Shape = Shape::catalog(
    3256,
    "pg_policy",
    "oid oid!, polname name!, polrelid oid!, polcmd char!, polpermissive bool!, polroles _oid!, polqual \
     pg_node_tree, polwithcheck pg_node_tree",
);

/// `pg_proc`
pub(crate) const PG_PROC: Shape = Shape::catalog(
    1255,
    "pg_proc",
    "oid oid!, proname name!, pronamespace oid!, proowner oid!, prolang oid!, procost float4!, prorows \
     float4!, provariadic oid!, prosupport regproc!, prokind char!, prosecdef bool!, proleakproof bool!, \
     proisstrict bool!, proretset bool!, provolatile char!, proparallel char!, pronargs int2!, \
     pronargdefaults int2!, prorettype oid!, proargtypes oidvector!, proallargtypes _oid, proargmodes _char, \
     proargnames _text, proargdefaults pg_node_tree, protrftypes _oid, prosrc text!, probin text, prosqlbody \
     pg_node_tree, proconfig _text, proacl _aclitem",
);

/// `pg_publication`
pub(crate) const PG_PUBLICATION: Shape = Shape::catalog(
    6104,
    "pg_publication",
    "oid oid!, pubname name!, pubowner oid!, puballtables bool!, pubinsert bool!, pubupdate bool!, pubdelete \
     bool!, pubtruncate bool!, pubviaroot bool!",
);

/// `pg_publication_namespace`
pub(crate) const PG_PUBLICATION_NAMESPACE: Shape = Shape::catalog(
    6237,
    "pg_publication_namespace",
    "oid oid!, pnpubid oid!, pnnspid oid!",
);

/// `pg_publication_rel`
pub(crate) const PG_PUBLICATION_REL: Shape = Shape::catalog(
    6106,
    "pg_publication_rel",
    "oid oid!, prpubid oid!, prrelid oid!, prqual pg_node_tree, prattrs int2vector",
);

/// `pg_range`
pub(crate) const PG_RANGE: Shape = Shape::catalog(
    3541,
    "pg_range",
    "rngtypid oid!, rngsubtype oid!, rngmultitypid oid!, rngcollation oid!, rngsubopc oid!, rngcanonical \
     regproc!, rngsubdiff regproc!",
);

/// `pg_replication_origin`
pub(crate) const PG_REPLICATION_ORIGIN: Shape =
    Shape::catalog(6000, "pg_replication_origin", "roident oid!, roname text!");

/// `pg_rewrite`
pub(crate) const PG_REWRITE: Shape = Shape::catalog(
    2618,
    "pg_rewrite",
    "oid oid!, rulename name!, ev_class oid!, ev_type char!, ev_enabled char!, is_instead bool!, ev_qual \
     pg_node_tree!, ev_action pg_node_tree!",
);

/// `pg_seclabel`
pub(crate) const PG_SECLABEL: Shape = Shape::catalog(
    3596,
    "pg_seclabel",
    "objoid oid!, classoid oid!, objsubid int4!, provider text!, label text!",
);

/// `pg_sequence`
pub(crate) const PG_SEQUENCE: Shape = Shape::catalog(
    2224,
    "pg_sequence",
    "seqrelid oid!, seqtypid oid!, seqstart int8!, seqincrement int8!, seqmax int8!, seqmin int8!, seqcache \
     int8!, seqcycle bool!",
);

/// `pg_shdepend`
pub(crate) const PG_SHDEPEND: Shape = Shape::catalog(
    1214,
    "pg_shdepend",
    "dbid oid!, classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!, deptype char!",
);

/// `pg_shdescription`
pub(crate) const PG_SHDESCRIPTION: Shape = Shape::catalog(
    2396,
    "pg_shdescription",
    "objoid oid!, classoid oid!, description text!",
);

/// `pg_shseclabel`
pub(crate) const PG_SHSECLABEL: Shape = Shape::catalog(
    3592,
    "pg_shseclabel",
    "objoid oid!, classoid oid!, provider text!, label text!",
);

/// `pg_statistic_ext`
pub(crate) const PG_STATISTIC_EXT: Shape = Shape::catalog(
    3381,
    "pg_statistic_ext",
    "oid oid!, stxrelid oid!, stxname name!, stxnamespace oid!, stxowner oid!, stxstattarget int4!, stxkeys \
     int2vector!, stxkind _char!, stxexprs pg_node_tree",
);

/// `pg_subscription`
pub(crate) const PG_SUBSCRIPTION: Shape = Shape::catalog(
    6100,
    "pg_subscription",
    "oid oid!, subdbid oid!, subskiplsn pg_lsn!, subname name!, subowner oid!, subenabled bool!, subbinary \
     bool!, substream bool!, subtwophasestate char!, subdisableonerr bool!, subconninfo text!, subslotname \
     name, subsynccommit text!, subpublications _text!",
);

/// `pg_subscription_rel`
pub(crate) const PG_SUBSCRIPTION_REL: Shape = Shape::catalog(
    6102,
    "pg_subscription_rel",
    "srsubid oid!, srrelid oid!, srsubstate char!, srsublsn pg_lsn",
);

/// `pg_tablespace`
pub(crate) const PG_TABLESPACE: Shape = Shape::catalog(
    1213,
    "pg_tablespace",
    "oid oid!, spcname name!, spcowner oid!, spcacl _aclitem, spcoptions _text",
);

/// `pg_transform`
pub(crate) const PG_TRANSFORM: Shape = Shape::catalog(
    3576,
    "pg_transform",
    "oid oid!, trftype oid!, trflang oid!, trffromsql regproc!, trftosql regproc!",
);

/// `pg_trigger`
pub(crate) const PG_TRIGGER: Shape = Shape::catalog(
    2620,
    "pg_trigger",
    "oid oid!, tgrelid oid!, tgparentid oid!, tgname name!, tgfoid oid!, tgtype int2!, tgenabled char!, \
     tgisinternal bool!, tgconstrrelid oid!, tgconstrindid oid!, tgconstraint oid!, tgdeferrable bool!, \
     tginitdeferred bool!, tgnargs int2!, tgattr int2vector!, tgargs bytea!, tgqual pg_node_tree, tgoldtable \
     name, tgnewtable name",
);

/// `pg_ts_config`
pub(crate) const PG_TS_CONFIG: Shape = Shape::catalog(
    3602,
    "pg_ts_config",
    "oid oid!, cfgname name!, cfgnamespace oid!, cfgowner oid!, cfgparser oid!",
);

/// `pg_ts_config_map`
pub(crate) const PG_TS_CONFIG_MAP: Shape = Shape::catalog(
    3603,
    "pg_ts_config_map",
    "mapcfg oid!, maptokentype int4!, mapseqno int4!, mapdict oid!",
);

/// `pg_ts_dict`
pub(crate) const PG_TS_DICT: Shape = Shape::catalog(
    3600,
    "pg_ts_dict",
    "oid oid!, dictname name!, dictnamespace oid!, dictowner oid!, dicttemplate oid!, dictinitoption text",
);

/// `pg_ts_parser`
pub(crate) const PG_TS_PARSER: Shape = Shape::catalog(
    3601,
    "pg_ts_parser",
    "oid oid!, prsname name!, prsnamespace oid!, prsstart regproc!, prstoken regproc!, prsend regproc!, \
     prsheadline regproc!, prslextype regproc!",
);

/// `pg_ts_template`
pub(crate) const PG_TS_TEMPLATE: Shape = Shape::catalog(
    3764,
    "pg_ts_template",
    "oid oid!, tmplname name!, tmplnamespace oid!, tmplinit regproc!, tmpllexize regproc!",
);

/// `pg_type`
pub(crate) const PG_TYPE: Shape = Shape::catalog(
    1247,
    "pg_type",
    "oid oid!, typname name!, typnamespace oid!, typowner oid!, typlen int2!, typbyval bool!, typtype char!, \
     typcategory char!, typispreferred bool!, typisdefined bool!, typdelim char!, typrelid oid!, typsubscript \
     regproc!, typelem oid!, typarray oid!, typinput regproc!, typoutput regproc!, typreceive regproc!, \
     typsend regproc!, typmodin regproc!, typmodout regproc!, typanalyze regproc!, typalign char!, typstorage \
     char!, typnotnull bool!, typbasetype oid!, typtypmod int4!, typndims int4!, typcollation oid!, \
     typdefaultbin pg_node_tree, typdefault text, typacl _aclitem",
);

/// `pg_user_mapping`
pub(crate) const PG_USER_MAPPING: Shape = Shape::catalog(
    1418,
    "pg_user_mapping",
    "oid oid!, umuser oid!, umserver oid!, umoptions _text",
);
