//! DECLARE, FETCH, MOVE and CLOSE.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::parse_one;
use crate::parse::utility::AsRead;
use crate::parse::utility::reader::Reader;
use crate::plan::{ALL_ROWS, ControlStatement, DeclareCursor, FetchCursor, FetchDirection};

impl Reader<'_> {
    /// `DECLARE name [options] CURSOR [WITH HOLD | WITHOUT HOLD] FOR query`, after its first word.
    pub(super) fn declare(&mut self) -> Result<ControlStatement<AsRead>> {
        let (name, _) = self.identifier()?;
        let (mut binary, mut insensitive, mut asensitive) = (false, false, false);
        let (mut scrolls, mut scrolls_not) = (false, false);
        loop {
            match self.peek_word() {
                "binary" => binary = true,
                "insensitive" => insensitive = true,
                "asensitive" => asensitive = true,
                "scroll" => scrolls = true,
                "no" if self.begins("no scroll") => {
                    self.at += 1;
                    scrolls_not = true;
                }
                _ => break,
            }
            self.at += 1;
        }
        self.expect("cursor")?;
        let hold = self.eat("with hold");
        if !hold {
            let _ = self.eat("without hold");
        }
        self.expect("for")?;
        let both = |one: &str, other: &str| {
            let message = format!("cannot specify both {one} and {other}");
            Err(EngineError::new(SqlState::INVALID_CURSOR_DEFINITION, message))
        };
        if scrolls && scrolls_not {
            return both("SCROLL", "NO SCROLL");
        }
        if insensitive && asensitive {
            return both("INSENSITIVE", "ASENSITIVE");
        }
        let begins = matches!(self.peek_word(), "select" | "values" | "with" | "table");
        if !begins && self.peek() != Some(&Kind::Symbol('(')) {
            return Err(self.syntax_error());
        }
        let (text, offset) = self.rest();
        Ok(ControlStatement::Declare(DeclareCursor {
            name,
            binary,
            scroll: (scrolls || scrolls_not).then_some(scrolls),
            insensitive,
            hold,
            query: Box::new(parse_one(&text, offset)?),
        }))
    }

    /// The rest of FETCH and MOVE.
    pub(super) fn fetch(&mut self, is_move: bool) -> Result<ControlStatement<AsRead>> {
        use FetchDirection::{Absolute, Backward, Forward, Relative};
        // A last word is a name, whatever it means elsewhere.
        let is_name = self.at + 1 == self.tokens.len();
        let direction = match self.peek_word() {
            _ if is_name => Forward(1),
            "next" => self.past(Forward(1)),
            "prior" => self.past(Backward(1)),
            "first" => self.past(Absolute(1)),
            "last" => self.past(Absolute(-1)),
            "all" => self.past(Forward(ALL_ROWS)),
            "absolute" => {
                self.at += 1;
                Absolute(self.row_count()?.ok_or_else(|| self.syntax_error())?)
            }
            "relative" => {
                self.at += 1;
                Relative(self.row_count()?.ok_or_else(|| self.syntax_error())?)
            }
            "forward" => {
                self.at += 1;
                Forward(self.row_count_or_all()?)
            }
            "backward" => {
                self.at += 1;
                Backward(self.row_count_or_all()?)
            }
            _ => Forward(self.row_count()?.unwrap_or(1)),
        };
        let _ = self.eat("from") || self.eat("in");
        let (name, _) = self.identifier()?;
        Ok(ControlStatement::Fetch(FetchCursor {
            name,
            direction,
            is_move,
        }))
    }

    fn past(&mut self, direction: FetchDirection) -> FetchDirection {
        self.at += 1;
        direction
    }

    fn row_count_or_all(&mut self) -> Result<i64> {
        // `fetch forward all` asks for rows of a cursor that is not named.
        if self.eat("all") {
            return Ok(ALL_ROWS);
        }
        Ok(self.row_count()?.unwrap_or(1))
    }

    /// A number of rows with its sign, if one comes next; it is an integer.
    fn row_count(&mut self) -> Result<Option<i64>> {
        let start = self.at;
        let negative = self.eat_symbol('-');
        let signed = negative || self.eat_symbol('+');
        let Some(Kind::Number(number)) = self.peek() else {
            return match signed {
                true => Err(self.syntax_error()),
                false => Ok(None),
            };
        };
        let Ok(count) = number.parse::<i32>() else {
            self.at = start + usize::from(signed);
            return Err(self.syntax_error());
        };
        self.at += 1;
        let count = i64::from(count);
        Ok(Some(if negative { -count } else { count }))
    }

    /// The rest of CLOSE.
    pub(super) fn close(&mut self) -> Result<ControlStatement<AsRead>> {
        if self.eat("all") {
            return Ok(ControlStatement::Close(None));
        }
        Ok(ControlStatement::Close(Some(self.identifier()?.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Tree;
    use crate::parse::utility::parse;

    #[test]
    fn directions_of_fetch() {
        use FetchDirection::*;
        let cases = [
            ("c", Forward(1)),
            ("next", Forward(1)),
            ("from c", Forward(1)),
            ("next from c", Forward(1)),
            ("prior in c", Backward(1)),
            ("first c", Absolute(1)),
            ("last c", Absolute(-1)),
            ("absolute -3 c", Absolute(-3)),
            ("relative +2 from c", Relative(2)),
            ("5 c", Forward(5)),
            ("-5 in c", Forward(-5)),
            ("all c", Forward(ALL_ROWS)),
            ("forward c", Forward(1)),
            ("forward 0 c", Forward(0)),
            ("forward all from c", Forward(ALL_ROWS)),
            ("backward from c", Backward(1)),
            ("backward all c", Backward(ALL_ROWS)),
        ];
        for (text, wanted) in cases {
            match parse(&format!("fetch {text}"), 0) {
                Ok(Some(Tree::Control(ControlStatement::Fetch(fetch)))) => {
                    assert_eq!(fetch.direction, wanted, "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        for text in [
            "absolute c",
            "5",
            "- c",
            "9999999999 c",
            "all from",
            "forward 1.5 c",
        ] {
            assert!(parse(&format!("move {text}"), 0).is_err(), "{text}");
        }
    }

    #[test]
    fn options_of_declare() {
        let read = |text: &str| parse(&format!("declare c {text} for select 1"), 0);
        match read("no scroll binary insensitive cursor with hold") {
            Ok(Some(Tree::Control(ControlStatement::Declare(declare)))) => {
                assert_eq!(declare.scroll, Some(false));
                assert!(declare.binary && declare.insensitive && declare.hold);
            }
            other => panic!("{other:?}"),
        }
        let error = read("scroll no scroll cursor").unwrap_err();
        assert_eq!(error.message(), "cannot specify both SCROLL and NO SCROLL");
        assert_eq!(error.sqlstate().as_str(), "42P11");
        assert!(parse("declare c cursor for insert into t values (1)", 0).is_err());
    }
}
