//! The statements that are not queries, read by ourselves.
//!
//! sqlparser knows many dialects' forms of these and not all of PostgreSQL's; their grammar is small, so a lexer and a
//! page of matching give exactly what PostgreSQL accepts and a 0A000 for the rest. Nothing here looks into a catalog.
//!
//! [`Reader`] goes over a statement's tokens; a module each has the statements about transactions, settings,
//! maintenance, prepared statements, cursors, COPY, and the forms of CREATE TABLE that sqlparser does not know.

mod alter_table;
mod comment;
mod copy;
pub(crate) mod create_table;
mod cursor;
mod domain;
mod explain;
mod extension;
mod grant;
mod lock;
mod maintenance;
mod options;
mod prepared;
mod reader;
mod role;
pub(crate) mod schema;
mod schema_elements;
pub(crate) mod sequence;
mod setting;
mod storage_parameters;
mod table_mark;
mod transaction;
mod user_type;
mod view;
mod wait_for_lsn;

use std::cell::Cell;

use sqlparser::ast;

use crate::error::{EngineError, Result, SqlState};
use crate::lex::{Kind, Token, lex};
use crate::parse::unsupported;
use crate::parse::{ParsedStatement, Tree};
use crate::plan::{ControlStatement, CopyOptions, GrantPlan, OnCommit, ReindexAsRead, RoleStatement, Stage};
use crate::stack::Deep;
use reader::Reader;
use schema::RoleName;
use sequence::{AlterSequence, CreateSequence};

pub(crate) use alter_table::{AlterTable, ColumnAction, WrittenAction};
pub(crate) use comment::{Comment, CommentedName, RelationKind};
pub(crate) use copy::FORCES;
pub(crate) use reader::Name;
pub(crate) use user_type::{AttributeAction, DomainParts, TypeChange, TypeStatement};
pub(crate) use view::{AlterView, AlterViewAction, CreateView, ViewOptions};

/// The names in a control statement are as they are written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AsRead {}

impl Stage for AsRead {
    type Table = Name;
    type Column = String;
    type ParameterType = String;
    /// The list in its parentheses, if there is one.
    type Arguments = Option<Deep<Vec<ast::Expr>>>;
    type Query = Box<ParsedStatement>;
}

/// A statement that changes definitions, of those that we read, with the names as they are written.
#[derive(Debug, Clone)]
pub(crate) enum NamedDefinition {
    Truncate {
        tables: Vec<Name>,
        restart_identity: bool,
        cascade: bool,
    },
    DropTable {
        tables: Vec<Name>,
        if_exists: bool,
        cascade: bool,
    },
    CreateView(Box<CreateView>),
    AlterView(AlterView),
    DropView {
        views: Vec<Name>,
        if_exists: bool,
        cascade: bool,
    },
    CreateSequence(CreateSequence),
    AlterSequence(AlterSequence),
    DropSequence {
        sequences: Vec<Name>,
        if_exists: bool,
        cascade: bool,
    },
    AlterTable(AlterTable),
    DropIndex {
        indexes: Vec<Name>,
        if_exists: bool,
        concurrently: bool,
    },
    /// ALTER INDEX … RENAME, with IF EXISTS.
    RenameIndex {
        index: Name,
        if_exists: bool,
        to: String,
    },
    /// ALTER INDEX … ALTER COLUMN … SET STATISTICS
    IndexStatistics {
        index: Name,
        if_exists: bool,
        /// The number of the index's column, from 1.
        column: i64,
        target: i64,
    },
    Reindex(ReindexAsRead<Name>),
    SetParameters {
        table: Name,
        /// `None`: RESET.
        changes: Vec<(String, Option<String>)>,
    },
    CreateSchema {
        /// The owner's name, if there is none.
        name: Option<String>,
        owner: Option<RoleName>,
        if_not_exists: bool,
        /// The statements in it, in the order in which they run.
        elements: Vec<String>,
    },
    RenameSchema {
        name: String,
        to: String,
    },
    SchemaOwner {
        name: String,
        owner: RoleName,
    },
    DropSchema {
        names: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    Comment(Comment),
    Role(RoleStatement),
    Grant(GrantPlan<Name>),
    Type(TypeStatement),
}

/// COPY as written.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    pub from: bool,
    pub source: CopySource,
    pub options: CopyOptions,
    /// FORCE QUOTE, FORCE NOT NULL, FORCE NULL.
    pub forced: [ForceClause; 3],
    /// WHERE.
    pub condition: Option<CopyCondition>,
}

/// The condition of COPY FROM … WHERE.
#[derive(Debug, Clone)]
pub(crate) struct CopyCondition {
    /// It as written.
    pub text: String,
    /// Number of characters of the message before it.
    pub offset: u32,
    pub tree: Deep<ast::Expr>,
}

/// The columns of a clause of FORCE.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ForceClause {
    /// There is no such clause.
    #[default]
    Absent,
    /// `*`
    All,
    /// The columns of these names.
    Columns(Vec<String>),
}

#[derive(Debug, Clone)]
pub(crate) enum CopySource {
    Table { table: Name, columns: Option<Vec<Name>> },
    Query(Box<ParsedStatement>),
}

/// Reads a utility statement; `None` when the text is not one.
pub(crate) fn parse(text: &str, offset: u32) -> Result<Option<Tree>> {
    let head = lex(text, 8);
    let words: Vec<&str> = head
        .iter()
        .map(|token| match &token.kind {
            Kind::Word(word) => word.as_str(),
            _ => "",
        })
        .collect();
    let ours = match words.first().copied().unwrap_or("") {
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "set" | "reset" | "show" | "vacuum"
        | "analyze" | "analyse" | "checkpoint" | "truncate" | "drop" | "explain" | "prepare" | "execute"
        | "deallocate" | "discard" | "copy" | "savepoint" | "release" | "declare" | "fetch" | "move"
        | "close" | "lock" | "listen" | "notify" | "unlisten" | "grant" | "revoke" | "comment"
        | "cluster" | "reindex" | "do" | "call" | "load" | "reassign" | "security" | "refresh" | "import"
        | "wait" => true,
        // ALTER TABLE t SET (…) alone; the rest of ALTER is sqlparser's.
        "alter" => match words.get(1) {
            Some(&"table") => {
                let text = text.to_ascii_lowercase();
                [
                    "identity",
                    "expression",
                    "generated",
                    "restart",
                    "set",
                    "constraint",
                    "cluster",
                    "replica",
                    "of",
                ]
                .iter()
                .any(|word| text.contains(word))
            }
            // A new name without IF EXISTS is sqlparser's.
            Some(&"index") => words.get(2) == Some(&"if") || text.to_ascii_lowercase().contains("statistics"),
            Some(&"user") if words.get(2) == Some(&"mapping") => false,
            other => matches!(
                other,
                Some(
                    &("schema"
                        | "view"
                        | "sequence"
                        | "type"
                        | "domain"
                        | "role"
                        | "user"
                        | "group"
                        | "default"
                        | "system")
                )
            ),
        },
        "create"
            if view::begins_view(&words) || matches!(words.get(1), Some(&("schema" | "type" | "domain"))) =>
        {
            true
        }
        "create" if extension::creates_built_in(&head) => true,
        "create" if begins_sequence(&words) || role::begins_create(&words) => true,
        _ => create_table::is_create_table(&words),
    };
    if !ours {
        return Ok(None);
    }
    let tokens = lex(text, usize::MAX);
    let mut reader = Reader {
        text,
        offset,
        tokens,
        at: 0,
        counted: Cell::new((0, 0)),
    };
    if create_table::is_create_table(&words) {
        return reader.create_table();
    }
    if words.starts_with(&["alter", "table"]) {
        reader.at = 1;
        match reader.alter_table() {
            Ok(Some(alter)) => return Ok(Some(Tree::Definition(NamedDefinition::AlterTable(alter)))),
            // What is left of it is no statement.
            Err(error) if reader.at == reader.tokens.len() => return Err(error),
            // sqlparser's, or storage parameters.
            _ if !reader.alters_parameters() => return Ok(None),
            _ => reader.at = 0,
        }
    }
    let tree = reader
        .statement()
        .and_then(|tree| reader.expect_end().map(|()| tree))
        .map_err(|error| match reader.tokens.get(reader.at.saturating_sub(1)) {
            // What is not supported is the word that has just been read.
            Some(token) => error.or_position(Some(reader.position_of(token.start))),
            None => error,
        })?;
    Ok(Some(tree))
}

/// True for CREATE SEQUENCE.
fn begins_sequence(words: &[&str]) -> bool {
    let modifiers = ["local", "global", "temporary", "temp", "unlogged"];
    let kind = words.iter().skip(1).find(|word| !modifiers.contains(word));
    kind == Some(&"sequence")
}

impl Reader<'_> {
    fn statement(&mut self) -> Result<Tree> {
        let (verb, _) = self.identifier()?;
        Ok(match verb.as_str() {
            "truncate" => Tree::Definition(self.truncate()?),
            "drop" if self.eat("database") => Tree::Control(self.drop_database()?),
            "drop" => Tree::Definition(self.drop()?),
            "reindex" => Tree::Definition(NamedDefinition::Reindex(self.reindex()?)),
            "comment" => Tree::Definition(NamedDefinition::Comment(self.comment()?)),
            "create" if self.begins_role() => Tree::Definition(NamedDefinition::Role(self.create_role()?)),
            "alter" if self.begins_role() => Tree::Definition(NamedDefinition::Role(self.alter_role()?)),
            "reassign" => Tree::Definition(NamedDefinition::Role(self.reassign_owned()?)),
            "alter" if self.eat("default privileges") => {
                Tree::Definition(NamedDefinition::Grant(self.default_privileges()?))
            }
            "grant" | "revoke" if self.grants_role() => {
                Tree::Definition(NamedDefinition::Role(self.grant_role(verb == "grant")?))
            }
            "grant" | "revoke" => Tree::Definition(NamedDefinition::Grant(self.grant(verb == "grant")?)),
            "create" if self.eat("domain") => Tree::Definition(NamedDefinition::Type(self.create_domain()?)),
            "alter" if self.eat("domain") => Tree::Definition(NamedDefinition::Type(self.alter_domain()?)),
            "create" if self.eat("type") => Tree::Definition(NamedDefinition::Type(self.create_type()?)),
            "alter" if self.eat("type") => Tree::Definition(NamedDefinition::Type(self.alter_type()?)),
            "create" if self.eat("extension") => Tree::Control(self.create_extension()?),
            "create" if self.eat("schema") => Tree::Definition(self.create_schema()?),
            "create" if self.begins_sequence() => {
                Tree::Definition(NamedDefinition::CreateSequence(self.create_sequence()?))
            }
            "alter" if self.eat("sequence") => {
                Tree::Definition(NamedDefinition::AlterSequence(self.alter_sequence()?))
            }
            "create" => Tree::Definition(NamedDefinition::CreateView(Box::new(self.create_view()?))),
            "alter" if self.eat("schema") => Tree::Definition(self.alter_schema()?),
            "alter" if self.eat("index") => Tree::Definition(self.rename_index()?),
            "alter" if self.eat("view") => Tree::Definition(NamedDefinition::AlterView(self.alter_view()?)),
            "alter" if self.eat("system") => Tree::Control(self.alter_system()?),
            "alter" => Tree::Definition(self.alter_parameters()?),
            "explain" => {
                let (statement, options) = self.explain()?;
                Tree::Explain(Box::new(statement), options)
            }
            "copy" => Tree::Copy(self.copy()?),
            verb => Tree::Control(self.control(verb)?),
        })
    }

    fn control(&mut self, verb: &str) -> Result<ControlStatement<AsRead>> {
        match verb {
            "begin" => {
                let _ = self.eat("transaction") || self.eat("work");
                Ok(ControlStatement::Begin(self.transaction_modes(false)?))
            }
            "start" => {
                self.expect("transaction")?;
                Ok(ControlStatement::Begin(self.transaction_modes(true)?))
            }
            "commit" | "end" => {
                if self.peek_word() == "prepared" {
                    return Err(EngineError::not_supported("COMMIT PREPARED"));
                }
                Ok(ControlStatement::Commit { chain: self.chain()? })
            }
            "rollback" | "abort" => {
                if self.peek_word() == "prepared" {
                    return Err(EngineError::not_supported("ROLLBACK PREPARED"));
                }
                if verb == "rollback"
                    && let Some(name) = self.rollback_to()?
                {
                    return Ok(ControlStatement::RollbackTo(name));
                }
                Ok(ControlStatement::Rollback { chain: self.chain()? })
            }
            "set" => self.set(),
            "reset" => {
                if self.eat("all") {
                    return Ok(ControlStatement::Reset(None));
                }
                Ok(ControlStatement::Reset(Some(self.setting_name()?)))
            }
            "show" => {
                if self.eat("all") {
                    return Ok(ControlStatement::ShowAll);
                }
                Ok(ControlStatement::Show(self.setting_name()?))
            }
            "vacuum" => self.vacuum(),
            "analyze" | "analyse" => self.analyze(),
            "lock" => self.lock(),
            "checkpoint" => Ok(ControlStatement::Checkpoint),
            "prepare" => self.prepare(),
            "execute" => self.execute(),
            "deallocate" => {
                let _ = self.eat("prepare");
                if self.eat("all") {
                    return Ok(ControlStatement::Deallocate(None));
                }
                Ok(ControlStatement::Deallocate(Some(self.identifier()?.0)))
            }
            "discard" => self.discard(),
            "savepoint" => Ok(ControlStatement::Savepoint(self.identifier()?.0)),
            "release" => Ok(ControlStatement::Release(self.savepoint()?)),
            "listen" => Ok(ControlStatement::Listen(self.channel()?)),
            "unlisten" if self.eat_symbol('*') => Ok(ControlStatement::Unlisten(None)),
            "unlisten" => Ok(ControlStatement::Unlisten(Some(self.channel()?))),
            "notify" => Ok(ControlStatement::Notify {
                channel: self.channel()?,
                payload: match self.eat_symbol(',') {
                    true => self.string()?,
                    false => String::new(),
                },
            }),
            "declare" => self.declare(),
            "fetch" => self.fetch(false),
            "move" => self.fetch(true),
            "close" => self.close(),
            "wait" => self.wait_for_lsn(),
            other => Err(EngineError::not_supported(other.to_uppercase())),
        }
    }

    /// The name of a channel, cut to the length of a name.
    fn channel(&mut self) -> Result<String> {
        const NAME_BYTES_MAX: usize = 63;
        let (mut name, _) = self.identifier()?;
        name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
        Ok(name)
    }

    fn discard(&mut self) -> Result<ControlStatement<AsRead>> {
        if self.eat("all") {
            return Ok(ControlStatement::DiscardAll);
        }
        let (what, _) = self.identifier()?;
        match what.as_str() {
            "plans" => Ok(ControlStatement::NoOperation("DISCARD PLANS")),
            "temp" | "temporary" => Ok(ControlStatement::DiscardTemporary),
            "sequences" => Ok(ControlStatement::DiscardSequences),
            _ => Err(EngineError::not_supported(format!(
                "DISCARD {}",
                what.to_uppercase()
            ))),
        }
    }

    fn truncate(&mut self) -> Result<NamedDefinition> {
        let _ = self.eat("table");
        let _ = self.eat("only");
        let tables = self.names()?;
        let restart_identity = self.eat("restart identity");
        let _ = restart_identity || self.eat("continue identity");
        let cascade = self.eat("cascade");
        let _ = cascade || self.eat("restrict");
        Ok(NamedDefinition::Truncate {
            tables,
            restart_identity,
            cascade,
        })
    }

    /// DROP DATABASE, behind both words. FORCE ends the sessions in it: there are none.
    fn drop_database(&mut self) -> Result<ControlStatement<AsRead>> {
        let if_exists = self.eat("if exists");
        let name = self.identifier()?.0;
        if self.eat("with") || self.peek() == Some(&Kind::Symbol('(')) {
            self.expect_symbol('(')?;
            loop {
                self.expect("force")?;
                if !self.eat_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        }
        Ok(ControlStatement::DropDatabase { name, if_exists })
    }

    fn drop(&mut self) -> Result<NamedDefinition> {
        if self.begins_role() {
            return Ok(NamedDefinition::Role(self.drop_role()?));
        }
        if self.eat("owned") {
            return Ok(NamedDefinition::Role(self.drop_owned()?));
        }
        let (what, _) = self.identifier()?;
        if what == "schema" {
            return self.drop_schema();
        }
        if what == "type" || what == "domain" {
            return Ok(NamedDefinition::Type(self.drop_type(what == "domain")?));
        }
        if !matches!(what.as_str(), "table" | "index" | "view" | "sequence") {
            return Err(EngineError::not_supported(format!(
                "DROP {}",
                unsupported::object_named_by(&self.tokens[self.at - 1..]).to_uppercase()
            )));
        }
        let concurrently = what == "index" && self.eat("concurrently");
        let if_exists = self.eat("if exists");
        let names = self.names()?;
        let cascade = self.eat("cascade");
        let _ = cascade || self.eat("restrict");
        if concurrently && cascade {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "DROP INDEX CONCURRENTLY does not support CASCADE",
            ));
        }
        Ok(match what.as_str() {
            "sequence" => NamedDefinition::DropSequence {
                sequences: names,
                if_exists,
                cascade,
            },
            "view" => NamedDefinition::DropView {
                views: names,
                if_exists,
                cascade,
            },
            "table" => NamedDefinition::DropTable {
                tables: names,
                if_exists,
                cascade,
            },
            _ => NamedDefinition::DropIndex {
                indexes: names,
                if_exists,
                concurrently,
            },
        })
    }

    /// The fate of a temporary table at a commit, behind ON COMMIT.
    fn on_commit(&mut self) -> Result<OnCommit> {
        let actions = [
            ("preserve rows", OnCommit::PreserveRows),
            ("delete rows", OnCommit::DeleteRows),
            ("drop", OnCommit::Drop),
        ];
        let found = actions.into_iter().find(|(words, _)| self.eat(words));
        found.map(|(_, action)| action).ok_or_else(|| self.syntax_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::IsolationLevel;

    fn read(sql: &str) -> Tree {
        parse(sql, 0).unwrap().expect("a utility statement")
    }

    #[test]
    fn what_pgbench_sends() {
        assert!(matches!(read("vacuum analyze pgbench_accounts"),
            Tree::Control(ControlStatement::Vacuum { tables, analyze: true, .. }) if tables[0].table.name == "pgbench_accounts"));
        assert!(matches!(
            read("checkpoint"),
            Tree::Control(ControlStatement::Checkpoint)
        ));
        for sql in [
            "copy pgbench_accounts from stdin with (freeze on)",
            "copy pgbench_accounts from stdin with freeze",
        ] {
            assert!(
                matches!(read(sql), Tree::Copy(Copy { from: true, options, .. }) if options.freeze),
                "{sql}"
            );
        }
        assert!(matches!(read("copy pgbench_accounts from stdin"),
            Tree::Copy(Copy { from: true, options, .. }) if !options.freeze));
        assert!(
            matches!(read("truncate table a, b,c"), Tree::Definition(NamedDefinition::Truncate { tables, .. }) if tables.len() == 3)
        );
        assert!(
            matches!(read("drop table if exists pgbench_accounts, pgbench_branches"),
            Tree::Definition(NamedDefinition::DropTable { tables, if_exists: true, .. }) if tables.len() == 2)
        );
        assert!(matches!(
            read("END;".trim_end_matches(';')),
            Tree::Control(ControlStatement::Commit { chain: false })
        ));
    }

    #[test]
    fn savepoints() {
        for (sql, name) in [
            ("savepoint a", "a"),
            ("SAVEPOINT A", "a"),
            ("savepoint \"A b\"", "A b"),
            ("savepoint savepoint", "savepoint"),
        ] {
            assert!(matches!(read(sql), Tree::Control(ControlStatement::Savepoint(found)) if found == name));
        }
        for (sql, name) in [
            ("release a", "a"),
            ("release savepoint a", "a"),
            ("release savepoint", "savepoint"),
            ("release savepoint savepoint", "savepoint"),
        ] {
            assert!(matches!(read(sql), Tree::Control(ControlStatement::Release(found)) if found == name));
        }
        for sql in [
            "rollback to a",
            "rollback to savepoint a",
            "rollback work to savepoint a",
            "rollback transaction to a",
        ] {
            assert!(matches!(read(sql), Tree::Control(ControlStatement::RollbackTo(name)) if name == "a"));
        }
        for sql in [
            "savepoint",
            "release",
            "rollback to",
            "release a b",
            "rollback to a and chain",
        ] {
            assert!(parse(sql, 0).is_err(), "{sql}");
        }
    }

    #[test]
    fn settings() {
        assert!(matches!(read("SET synchronous_commit TO off"),
            Tree::Control(ControlStatement::Set { name, value: Some(value), local: false }) if name == "synchronous_commit" && value == "off"));
        assert!(matches!(read("set local a.b = 'x', y"),
            Tree::Control(ControlStatement::Set { name, value: Some(value), local: true }) if name == "a.b" && value == "x, y"));
        assert!(matches!(read("alter system set work_mem to '8MB'"),
                Tree::Control(ControlStatement::AlterSystem { name: Some(name), value: Some(value) }) if name == "work_mem" && value == "8MB"));
        assert!(matches!(read("alter system set mechanisms.lwlock = default"),
                Tree::Control(ControlStatement::AlterSystem { name: Some(name), value: None }) if name == "mechanisms.lwlock"));
        assert!(matches!(
            read("alter system reset all"),
            Tree::Control(ControlStatement::AlterSystem {
                name: None,
                value: None
            })
        ));
        assert!(
            matches!(read("set time zone 'UTC'"), Tree::Control(ControlStatement::Set { name, .. }) if name == "timezone")
        );
        assert!(matches!(
            read("set x = default"),
            Tree::Control(ControlStatement::Set { value: None, .. })
        ));
        assert!(
            matches!(read("set transaction isolation level repeatable read, read only"),
            Tree::Control(ControlStatement::SetTransaction { modes, session: false })
            if modes.isolation == Some(IsolationLevel::RepeatableRead) && modes.read_only == Some(true))
        );
        assert!(
            matches!(read("show transaction isolation level"), Tree::Control(ControlStatement::Show(name)) if name == "transaction_isolation")
        );
    }

    #[test]
    fn errors_name_the_place_or_the_construct() {
        let error = |sql: &str| parse(sql, 0).unwrap_err();
        assert_eq!(error("drop table").message(), "syntax error at end of input");
        assert_eq!(error("vacuum t t").position(), Some(10));
        assert_eq!(error("abort to a").message(), "syntax error at or near \"to\"");
        let explained = |options: &str| error(&format!("explain ({options}) select 1"));
        assert_eq!(
            explained("format 'none'").sqlstate(),
            SqlState::INVALID_PARAMETER_VALUE
        );
        assert_eq!(explained("timing").sqlstate(), SqlState::INVALID_PARAMETER_VALUE);
        assert_eq!(explained("speed").sqlstate(), SqlState::SYNTAX_ERROR);
        assert_eq!(
            error("copy t from '/etc/passwd'").sqlstate(),
            SqlState::FEATURE_NOT_SUPPORTED
        );
    }

    #[test]
    fn prepare_and_execute() {
        assert!(matches!(read("prepare p (int, numeric(10, 2)) as select $1"),
            Tree::Control(ControlStatement::Prepare { name, types, sql, before: 35 })
            if name == "p" && types == ["int", "numeric(10, 2)"] && sql == "select $1"));
        assert!(
            matches!(read("execute p (1, 'a')"), Tree::Control(ControlStatement::Execute { arguments: Some(row), .. }) if row.len() == 2)
        );
        assert!(
            matches!(read("execute p (1)"), Tree::Control(ControlStatement::Execute { arguments: Some(row), .. }) if row.len() == 1)
        );
        assert!(matches!(
            read("execute p"),
            Tree::Control(ControlStatement::Execute { arguments: None, .. })
        ));
    }
}
