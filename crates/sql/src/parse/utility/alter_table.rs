//! The actions of ALTER TABLE that sqlparser does not read: identities, generated columns, the storage of columns, a table's
//! schema, type and log, a foreign key's time of check.
//!
//! A statement may have them beside others. Its actions stand between commas outside of parentheses; each is tried here.
//! sqlparser reads the others, from the same text with blanks in the place of what was read, so that positions in it are
//! those of the statement.

use std::ops::Range;

use crate::error::{EngineError, Result};
use crate::foreign_key::CheckTime;
use crate::lex::{Kind, Token};
use crate::parse::utility::NamedDefinition;
use crate::parse::utility::reader::{Name, Reader};
use crate::parse::utility::sequence::{WrittenOptions, redundant};
use crate::parse::{ParsedStatement, parse_one};
use crate::plan::TableMark;

/// ALTER TABLE with actions that are read here.
#[derive(Debug, Clone)]
pub(crate) struct AlterTable {
    pub table: Name,
    pub if_exists: bool,
    /// Each with its place among all actions.
    pub actions: Vec<(usize, WrittenAction)>,
    /// The statement without these actions, if it has others, and the places of those.
    pub rest: Option<(Box<ParsedStatement>, Vec<usize>)>,
}

/// An action as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrittenAction {
    /// Of a column of this name.
    Column(String, Box<ColumnAction>),
    /// SET SCHEMA, which is the only action of its statement.
    SetSchema(Name),
    /// SET LOGGED, or SET UNLOGGED
    SetLogged(bool),
    /// OF, or NOT OF
    OfType(Option<Name>),
    /// ALTER CONSTRAINT
    AlterConstraint(String, CheckTime),
    /// An action that notes something.
    Mark(TableMark),
    /// SET (…), or RESET (…), beside other actions.
    Parameters(Vec<(String, Option<String>)>),
}

/// A change of a column as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnAction {
    Add {
        always: bool,
        options: WrittenOptions,
    },
    Set {
        always: Option<bool>,
        options: WrittenOptions,
    },
    Drop {
        if_exists: bool,
    },
    DropExpression {
        if_exists: bool,
    },
    /// SET STORAGE, and the word.
    SetStorage(String),
    /// SET COMPRESSION, and the word.
    SetCompression(String),
    /// SET STATISTICS, and the number.
    SetStatistics(i64),
}

impl Reader<'_> {
    /// ALTER TABLE, behind its first word; `None` if none of its actions is read here.
    pub(super) fn alter_table(&mut self) -> Result<Option<AlterTable>> {
        self.expect("table")?;
        let if_exists = self.eat("if exists");
        let _ = self.eat("only");
        let table = self.name()?;
        let pieces = pieces(&self.tokens, self.at);
        if pieces.len() > 1 {
            self.refuse_set_schema(&pieces)?;
        }
        let mut actions = Vec::new();
        let mut left = Vec::new();
        for (place, piece) in pieces.iter().enumerate() {
            self.at = piece.start;
            match self.table_action(pieces.len() == 1) {
                Ok(Some(action)) if self.at == piece.end => actions.push((place, action)),
                // An error is sqlparser's to tell, as what is wrong may be no action of ours.
                _ => left.push(place),
            }
        }
        self.at = self.tokens.len();
        if actions.is_empty() {
            return Ok(None);
        }
        let rest = match left.is_empty() {
            true => None,
            false => {
                let rest = parse_one(&self.only(&pieces, &left), self.offset)?;
                Some((Box::new(rest), left))
            }
        };
        Ok(Some(AlterTable {
            table,
            if_exists,
            actions,
            rest,
        }))
    }

    /// 42601 for SET SCHEMA beside other actions.
    fn refuse_set_schema(&mut self, pieces: &[Range<usize>]) -> Result<()> {
        for piece in pieces {
            self.at = piece.start;
            if !self.begins("set schema") {
                continue;
            }
            // The first one is a whole statement, behind which nothing may come.
            self.at = match piece.start == pieces[0].start {
                true => piece.end,
                false => piece.start + 1,
            };
            let error = self.syntax_error();
            self.at = self.tokens.len();
            return Err(error);
        }
        Ok(())
    }

    /// ALTER INDEX, behind both words.
    pub(super) fn rename_index(&mut self) -> Result<NamedDefinition> {
        let if_exists = self.eat("if exists");
        let index = self.name()?;
        if self.eat("alter") {
            return self.index_statistics(index, if_exists);
        }
        if !self.eat("rename to") {
            return Err(EngineError::not_supported("ALTER INDEX"));
        }
        let (to, _) = self.identifier()?;
        Ok(NamedDefinition::RenameIndex { index, if_exists, to })
    }

    /// The text with blanks for all actions but those `left`, which are in order.
    fn only(&self, pieces: &[Range<usize>], left: &[usize]) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut copied = 0;
        let mut left = left.iter().peekable();
        let mut any = false;
        for (place, piece) in pieces.iter().enumerate() {
            let is_left = left.next_if_eq(&&place).is_some();
            // The comma in front goes too, unless there is an action on both of its sides.
            let first = piece.start - usize::from(place > 0 && !(is_left && any));
            let tokens = match is_left {
                true => first..piece.start,
                false => first..piece.end,
            };
            any |= is_left;
            if tokens.is_empty() {
                continue;
            }
            let blanked = self.tokens[tokens.start].start..self.tokens[tokens.end - 1].end;
            text.push_str(&self.text[copied..blanked.start]);
            // One for each character, so that positions behind it stay.
            let blank = |c: char| if c == '\n' { c } else { ' ' };
            text.extend(self.text[blanked.clone()].chars().map(blank));
            copied = blanked.end;
        }
        text.push_str(&self.text[copied..]);
        text
    }

    /// An action, if one comes next that is read here; `alone`: it is the only one.
    fn table_action(&mut self, alone: bool) -> Result<Option<WrittenAction>> {
        if alone && self.eat("set schema") {
            let (name, position) = self.identifier()?;
            return Ok(Some(WrittenAction::SetSchema(Name {
                schema: None,
                name,
                position,
            })));
        }
        if self.eat("set logged") {
            return Ok(Some(WrittenAction::SetLogged(true)));
        }
        if self.eat("set unlogged") {
            return Ok(Some(WrittenAction::SetLogged(false)));
        }
        if self.eat("not of") {
            return Ok(Some(WrittenAction::OfType(None)));
        }
        if self.eat("of") {
            return Ok(Some(WrittenAction::OfType(Some(self.name()?))));
        }
        if self.eat("alter constraint") {
            let (name, _) = self.identifier()?;
            let time = self.check_time()?;
            return Ok(Some(WrittenAction::AlterConstraint(name, time)));
        }
        let has_list = self.tokens.get(self.at + 1).map(|token| &token.kind) == Some(&Kind::Symbol('('));
        if !alone && has_list && matches!(self.peek_word(), "set" | "reset") {
            return Ok(Some(WrittenAction::Parameters(self.parameter_changes()?)));
        }
        if let Some(mark) = self.table_mark()? {
            return Ok(Some(WrittenAction::Mark(mark)));
        }
        if !self.eat("alter") {
            return Ok(None);
        }
        let _ = self.eat("column");
        let (column, _) = self.identifier()?;
        let action = self.column_action()?;
        Ok(action.map(|action| WrittenAction::Column(column, Box::new(action))))
    }

    /// The words of a constraint about the time of its check, in any order. What is not said is as without them all.
    fn check_time(&mut self) -> Result<CheckTime> {
        let (mut deferrable, mut deferred) = (None, None);
        loop {
            let (said, value) = if self.eat("deferrable") {
                (&mut deferrable, true)
            } else if self.eat("not deferrable") {
                (&mut deferrable, false)
            } else if self.eat("initially deferred") {
                (&mut deferred, true)
            } else if self.eat("initially immediate") {
                (&mut deferred, false)
            } else {
                break;
            };
            if said.replace(value).is_some() {
                return Err(self.syntax_error());
            }
        }
        let deferred = deferred.unwrap_or(false);
        if deferred && deferrable == Some(false) {
            return Err(self.syntax_error());
        }
        Ok(CheckTime {
            deferrable: deferrable.unwrap_or(deferred),
            initially_deferred: deferred,
        })
    }

    fn column_action(&mut self) -> Result<Option<ColumnAction>> {
        if self.eat("add generated") {
            let always = self.generated()?;
            self.expect("as identity")?;
            let mut options = WrittenOptions::default();
            if self.eat_symbol('(') {
                options = self.sequence_options()?;
                self.expect_symbol(')')?;
            }
            return Ok(Some(ColumnAction::Add { always, options }));
        }
        if self.eat("drop expression") {
            let if_exists = self.eat("if exists");
            return Ok(Some(ColumnAction::DropExpression { if_exists }));
        }
        if self.eat("set storage") {
            return Ok(Some(ColumnAction::SetStorage(self.identifier()?.0)));
        }
        if self.eat("set statistics") {
            return Ok(Some(ColumnAction::SetStatistics(self.signed_integer()?)));
        }
        if self.eat("set compression") {
            return Ok(Some(ColumnAction::SetCompression(self.identifier()?.0)));
        }
        if self.eat("drop identity") {
            let if_exists = self.eat("if exists");
            return Ok(Some(ColumnAction::Drop { if_exists }));
        }
        let mut set = WrittenOptions::default();
        let mut always = None;
        let mut any = false;
        loop {
            if self.eat("set generated") {
                if always.is_some() {
                    return Err(redundant());
                }
                always = Some(self.generated()?);
            } else if self.begins("restart") {
                self.sequence_option(&mut set)?;
            } else if [
                "increment",
                "minvalue",
                "maxvalue",
                "start",
                "cache",
                "cycle",
                "no",
            ]
            .iter()
            .any(|word| self.begins(&format!("set {word}")))
            {
                self.expect("set")?;
                self.sequence_option(&mut set)?;
            } else {
                break;
            }
            any = true;
        }
        Ok(any.then_some(ColumnAction::Set { always, options: set }))
    }
}

/// The tokens of each action, from the first one's on.
fn pieces(tokens: &[Token], from: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut start, mut depth) = (from, 0usize);
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.kind {
            Kind::Symbol('(' | '[') => depth += 1,
            Kind::Symbol(')' | ']') => depth = depth.saturating_sub(1),
            Kind::Symbol(',') if depth == 0 => {
                pieces.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(start..tokens.len());
    pieces
}
