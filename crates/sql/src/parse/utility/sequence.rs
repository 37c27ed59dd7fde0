//! CREATE, ALTER and DROP SEQUENCE, and the identity of a column: options of sequences.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::reader::{Name, Reader};
use crate::parse::utility::schema::RoleName;
use crate::sequence::SequenceOptions;
use crate::type_name::type_of_text;

/// Options as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WrittenOptions {
    /// Those that are numbers.
    pub options: SequenceOptions,
    /// OWNED BY
    pub owned_by: Option<OwnedBy>,
    /// SEQUENCE NAME
    pub name: Option<Name>,
}

/// OWNED BY as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnedBy {
    None,
    Column { table: Name, column: String },
}

/// CREATE SEQUENCE
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateSequence {
    pub name: Name,
    pub temporary: bool,
    pub unlogged: bool,
    pub if_not_exists: bool,
    pub options: WrittenOptions,
}

/// ALTER SEQUENCE
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AlterSequence {
    pub name: Name,
    pub if_exists: bool,
    pub action: SequenceAction,
}

/// A change of a sequence as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SequenceAction {
    Options(Box<WrittenOptions>),
    Rename(String),
    Owner(RoleName),
    SetSchema(String),
    /// SET LOGGED, or SET UNLOGGED
    SetLogged(bool),
}

impl Reader<'_> {
    /// True for CREATE SEQUENCE, behind CREATE.
    pub(super) fn begins_sequence(&self) -> bool {
        let words = self.tokens[self.at..].iter().map(|token| match &token.kind {
            Kind::Word(word) => word.as_str(),
            _ => "",
        });
        let modifiers = ["local", "global", "temporary", "temp", "unlogged"];
        let mut kind = words.skip_while(|word| modifiers.contains(word));
        kind.next() == Some("sequence")
    }

    /// CREATE SEQUENCE, behind CREATE.
    pub(super) fn create_sequence(&mut self) -> Result<CreateSequence> {
        let _ = self.eat("local") || self.eat("global");
        let temporary = self.eat("temporary") || self.eat("temp");
        let unlogged = !temporary && self.eat("unlogged");
        self.expect("sequence")?;
        let if_not_exists = self.eat("if not exists");
        Ok(CreateSequence {
            name: self.name()?,
            temporary,
            unlogged,
            if_not_exists,
            options: self.sequence_options()?,
        })
    }

    /// ALTER SEQUENCE, behind both words.
    pub(super) fn alter_sequence(&mut self) -> Result<AlterSequence> {
        let if_exists = self.eat("if exists");
        let name = self.name()?;
        let action = if self.eat("rename to") {
            SequenceAction::Rename(self.identifier()?.0)
        } else if self.eat("owner to") {
            SequenceAction::Owner(self.role()?)
        } else if self.eat("set schema") {
            SequenceAction::SetSchema(self.identifier()?.0)
        } else if self.eat("set logged") {
            SequenceAction::SetLogged(true)
        } else if self.eat("set unlogged") {
            SequenceAction::SetLogged(false)
        } else {
            let options = self.sequence_options()?;
            if options == WrittenOptions::default() {
                return Err(self.syntax_error());
            }
            SequenceAction::Options(Box::new(options))
        };
        Ok(AlterSequence {
            name,
            if_exists,
            action,
        })
    }

    /// ALWAYS or BY DEFAULT
    pub(super) fn generated(&mut self) -> Result<bool> {
        let always = self.eat("always");
        if !always {
            self.expect("by default")?;
        }
        Ok(always)
    }

    pub(super) fn sequence_options(&mut self) -> Result<WrittenOptions> {
        let mut written = WrittenOptions::default();
        while self.sequence_option(&mut written)? {}
        Ok(written)
    }

    /// Reads an option, if one comes next.
    pub(super) fn sequence_option(&mut self, written: &mut WrittenOptions) -> Result<bool> {
        let options = &mut written.options;
        if self.eat("as") {
            let data_type = self.type_name()?;
            set(&mut options.data_type, data_type)?;
        } else if self.eat("increment") {
            let _ = self.eat("by");
            set(&mut options.increment, self.bigint()?)?;
        } else if self.eat("no minvalue") {
            set(&mut options.min, None)?;
        } else if self.eat("minvalue") {
            set(&mut options.min, Some(self.bigint()?))?;
        } else if self.eat("no maxvalue") {
            set(&mut options.max, None)?;
        } else if self.eat("maxvalue") {
            set(&mut options.max, Some(self.bigint()?))?;
        } else if self.eat("start") {
            let _ = self.eat("with");
            set(&mut options.start, self.bigint()?)?;
        } else if self.eat("restart") {
            let with = self.eat("with");
            let given = with || matches!(self.peek(), Some(Kind::Number(_) | Kind::Symbol('-' | '+')));
            let value = match given {
                true => Some(self.bigint()?),
                false => None,
            };
            set(&mut options.restart, value)?;
        } else if self.eat("cache") {
            set(&mut options.cache, self.bigint()?)?;
        } else if self.eat("no cycle") {
            set(&mut options.cycle, false)?;
        } else if self.eat("cycle") {
            set(&mut options.cycle, true)?;
        } else if self.eat("sequence name") {
            let name = self.name()?;
            set(&mut written.name, name)?;
        } else if self.eat("owned by") {
            let owner = self.owned_by()?;
            set(&mut written.owned_by, owner)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn owned_by(&mut self) -> Result<OwnedBy> {
        if self.eat("none") {
            return Ok(OwnedBy::None);
        }
        let mut parts = vec![self.identifier()?];
        while self.eat_symbol('.') {
            parts.push(self.identifier()?);
        }
        let mut parts = parts.into_iter().rev();
        let (Some((column, _)), Some((name, position))) = (parts.next(), parts.next()) else {
            return Err(
                EngineError::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option")
                    .with_hint("Specify OWNED BY table.column or OWNED BY NONE."),
            );
        };
        let schema = parts.next().map(|(schema, _)| schema);
        Ok(OwnedBy::Column {
            table: Name {
                schema,
                name,
                position,
            },
            column,
        })
    }

    /// A type of one or two words, without a modifier.
    fn type_name(&mut self) -> Result<crate::value::DataType> {
        let (mut name, position) = self.identifier()?;
        if name == "double" && self.eat("precision") {
            name.push_str(" precision");
        }
        let found = type_of_text(&name).map_err(|error| error.or_position(Some(position)))?;
        Ok(found.0)
    }

    /// A whole number with its sign.
    fn bigint(&mut self) -> Result<i64> {
        let negative = self.eat_symbol('-');
        let _ = !negative && self.eat_symbol('+');
        let Some(Kind::Number(digits)) = self.peek().cloned() else {
            return Err(self.syntax_error());
        };
        let text = format!("{}{digits}", if negative { "-" } else { "" });
        let value = text.parse().map_err(|_| {
            let (state, what) = match digits.bytes().all(|byte| byte.is_ascii_digit()) {
                true => (SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value"),
                false => (SqlState::SYNTAX_ERROR, "invalid input syntax for type bigint:"),
            };
            let behind = if what == "value" {
                " is out of range for type bigint"
            } else {
                ""
            };
            EngineError::new(state, format!("{what} \"{text}\"{behind}"))
        })?;
        self.at += 1;
        Ok(value)
    }
}

fn set<T>(option: &mut Option<T>, value: T) -> Result<()> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(redundant()),
    }
}

/// 42601 for an option that stands twice.
pub(crate) fn redundant() -> EngineError {
    EngineError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
}
