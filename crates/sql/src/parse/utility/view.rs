//! CREATE VIEW, ALTER VIEW and DROP VIEW.

use crate::error::{EngineError, Result, SqlState};
use crate::function::quote_identifier;
use crate::lex::Kind;
use crate::parse::utility::reader::{Name, Reader};
use crate::parse::{ParsedStatement, parse_one};
use crate::view::CheckOption;

/// CREATE VIEW as written.
#[derive(Debug, Clone)]
pub(crate) struct CreateView {
    pub name: Name,
    /// The names that it gives its first columns, each with its position.
    pub columns: Vec<(String, u32)>,
    pub options: ViewOptions,
    pub or_replace: bool,
    pub temporary: bool,
    pub query: ParsedStatement,
}

/// The options of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ViewOptions {
    pub check: Option<CheckOption>,
    pub barrier: Option<bool>,
    pub invoker: Option<bool>,
}

/// ALTER VIEW as written.
#[derive(Debug, Clone)]
pub(crate) struct AlterView {
    pub view: Name,
    pub if_exists: bool,
    pub action: AlterViewAction,
}

#[derive(Debug, Clone)]
pub(crate) enum AlterViewAction {
    Rename(String),
    RenameColumn(String, String),
    SetOptions(ViewOptions),
    /// The names of the options.
    ResetOptions(Vec<String>),
    Owner(crate::plan::Owner),
    SetSchema(Name),
    /// A column, and the text of its new default.
    Default(String, Option<String>),
}

/// True if a statement of these first words is CREATE VIEW.
pub(super) fn begins_view(words: &[&str]) -> bool {
    let mut words = words.iter().skip(1);
    let modifiers = [
        "or",
        "replace",
        "local",
        "global",
        "temp",
        "temporary",
        "recursive",
    ];
    words.find(|word| !modifiers.contains(word)) == Some(&"view")
}

impl Reader<'_> {
    /// CREATE VIEW, after its CREATE.
    pub(super) fn create_view(&mut self) -> Result<CreateView> {
        let or_replace = self.eat("or replace");
        let scope = self.eat("local") || self.eat("global");
        let temporary = self.eat("temp") || self.eat("temporary");
        if scope && !temporary {
            return Err(self.syntax_error());
        }
        let recursive = self.eat("recursive");
        self.expect("view")?;
        let name = self.name()?;
        let mut columns = Vec::new();
        if self.eat_symbol('(') {
            loop {
                columns.push(self.identifier()?);
                if !self.eat_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        } else if recursive {
            return Err(self.syntax_error());
        }
        let mut options = ViewOptions::default();
        if self.eat("with") {
            self.view_options(&mut options)?;
        }
        self.expect("as")?;
        self.expect_query()?;
        if matches!(self.peek_word(), "insert" | "update" | "delete" | "merge") {
            return Err(self.syntax_error());
        }
        let (check, end) = self.check_option();
        options.check = check.or(options.check);
        let Some(start) = self.tokens.get(self.at).map(|token| token.start) else {
            return Err(self.syntax_error());
        };
        let offset = self.position_of(start) - 1;
        let query = match recursive {
            true if options.check.is_some() => {
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "WITH CHECK OPTION not supported on recursive views",
                ));
            }
            true => recursive_query(&name.name, &columns, &self.text[start..end], offset)?,
            false => parse_one(&self.text[start..end], offset)?,
        };
        self.at = self.tokens.len();
        Ok(CreateView {
            name,
            columns,
            options,
            or_replace,
            temporary,
            query,
        })
    }

    /// WITH … CHECK OPTION at the end of the statement, and where what is before it ends.
    fn check_option(&self) -> (Option<CheckOption>, usize) {
        let forms = [
            (&["with", "check", "option"][..], CheckOption::Cascaded),
            (&["with", "cascaded", "check", "option"], CheckOption::Cascaded),
            (&["with", "local", "check", "option"], CheckOption::Local),
        ];
        let rest = &self.tokens[self.at..];
        for (words, check) in forms {
            let Some(first) = rest.len().checked_sub(words.len()) else {
                continue;
            };
            let is_word = |(token, word): (&super::Token, &&str)| matches!(&token.kind, Kind::Word(found) if found == word);
            if rest[first..].iter().zip(words).all(is_word) {
                return (Some(check), rest[first].start);
            }
        }
        (None, rest.last().map_or(self.text.len(), |token| token.end))
    }

    /// The options in parentheses.
    fn view_options(&mut self, options: &mut ViewOptions) -> Result<()> {
        self.expect_symbol('(')?;
        loop {
            let (name, _) = self.identifier()?;
            let value = if self.eat_symbol('=') {
                let value = match self.peek().cloned() {
                    Some(Kind::Word(text) | Kind::Quoted(text) | Kind::Text(text) | Kind::Number(text)) => {
                        text
                    }
                    _ => return Err(self.syntax_error()),
                };
                self.at += 1;
                Some(value)
            } else {
                None
            };
            self.view_option(&name, value.as_deref(), options)?;
            if !self.eat_symbol(',') {
                break;
            }
        }
        self.expect_symbol(')')
    }

    fn view_option(&self, name: &str, value: Option<&str>, options: &mut ViewOptions) -> Result<()> {
        let truth = || match value.map(str::to_ascii_lowercase).as_deref() {
            None | Some("true" | "on" | "yes" | "1") => Ok(Some(true)),
            Some("false" | "off" | "no" | "0") => Ok(Some(false)),
            Some(other) => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for boolean option \"{name}\": {other}"),
            )),
        };
        match name {
            "security_barrier" => options.barrier = truth()?,
            "security_invoker" => options.invoker = truth()?,
            "check_option" => {
                options.check = Some(match value.map(str::to_ascii_lowercase).as_deref() {
                    Some("local") => CheckOption::Local,
                    Some("cascaded") => CheckOption::Cascaded,
                    other => {
                        return Err(EngineError::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            format!(
                                "invalid value for enum option \"check_option\": {}",
                                other.unwrap_or("true")
                            ),
                        )
                        .with_detail("Valid values are \"local\" and \"cascaded\"."));
                    }
                });
            }
            other => return Err(unknown_option(other)),
        }
        Ok(())
    }

    /// ALTER VIEW, after both words.
    pub(super) fn alter_view(&mut self) -> Result<AlterView> {
        let if_exists = self.eat("if exists");
        let view = self.name()?;
        let action = if self.eat("rename") {
            if self.eat("to") {
                AlterViewAction::Rename(self.identifier()?.0)
            } else {
                let _ = self.eat("column");
                let old = self.identifier()?.0;
                self.expect("to")?;
                AlterViewAction::RenameColumn(old, self.identifier()?.0)
            }
        } else if self.begins("set")
            && self
                .tokens
                .get(self.at + 1)
                .is_some_and(|token| token.kind == Kind::Symbol('('))
        {
            self.at += 1;
            let mut options = ViewOptions::default();
            self.view_options(&mut options)?;
            AlterViewAction::SetOptions(options)
        } else if self.eat("owner to") {
            AlterViewAction::Owner(self.role()?)
        } else if self.eat("reset") {
            AlterViewAction::ResetOptions(self.reset_options()?)
        } else if self.eat("alter") {
            let _ = self.eat("column");
            let column = self.identifier()?.0;
            let default = match self.eat("drop default") {
                true => None,
                false if self.eat("set default") => {
                    let start = self.at;
                    self.at = self.tokens.len();
                    Some(self.written_from(start)?)
                }
                false => return Err(self.syntax_error()),
            };
            AlterViewAction::Default(column, default)
        } else if self.eat("set schema") {
            let (name, position) = self.identifier()?;
            AlterViewAction::SetSchema(Name {
                schema: None,
                name,
                position,
            })
        } else {
            return Err(self.syntax_error());
        };
        Ok(AlterView {
            view,
            if_exists,
            action,
        })
    }

    fn reset_options(&mut self) -> Result<Vec<String>> {
        self.expect_symbol('(')?;
        let mut names = Vec::new();
        loop {
            let (name, _) = self.identifier()?;
            if !matches!(
                name.as_str(),
                "security_barrier" | "security_invoker" | "check_option"
            ) {
                return Err(unknown_option(&name));
            }
            names.push(name);
            if !self.eat_symbol(',') {
                break;
            }
        }
        self.expect_symbol(')')?;
        Ok(names)
    }
}

/// The query of a recursive view, which refers to the view by its name.
fn recursive_query(
    name: &str,
    columns: &[(String, u32)],
    query: &str,
    offset: u32,
) -> Result<ParsedStatement> {
    let name = quote_identifier(name);
    let columns: Vec<_> = columns
        .iter()
        .map(|(column, _)| quote_identifier(column))
        .collect();
    let columns = columns.join(", ");
    let before = format!("WITH RECURSIVE {name}({columns}) AS (");
    // Places in the query are where they were.
    let offset = offset.saturating_sub(before.chars().count() as u32);
    parse_one(&format!("{before}{query}) SELECT {columns} FROM {name}"), offset)
}

fn unknown_option(name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unrecognized parameter \"{name}\""),
    )
}
