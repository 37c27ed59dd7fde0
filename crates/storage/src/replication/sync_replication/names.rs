//! `synchronous_standby_names`: which standbys a commit waits for, in PostgreSQL's grammar.
//!
//! ```text
//! setting:  (nothing)                no commit waits for a standby
//!         | list                     as FIRST 1 (list)
//!         | number ( list )          as FIRST number (list)
//!         | FIRST number ( list )    the first `number` of the list that stream
//!         | ANY number ( list )      any `number` of the list
//! list:     name , name …            a name is a word, a number, "anything in quotes", or * for every standby
//! ```
//!
//! | text | a commit waits for |
//! | --- | --- |
//! | `berlin, paris` | berlin, or paris while berlin does not stream |
//! | `FIRST 2 (berlin, paris, *)` | berlin and paris, or what comes next on the list |
//! | `ANY 2 (berlin, paris, rome)` | whichever two are the first to have it |
//!
//! Keywords and names are compared without regard to case, as PostgreSQL does. A standby called `first` or `any` is
//! written in quotes.

use std::fmt;

/// The longest setting that is read.
const BYTES_MAX: usize = 64 << 10;

/// The way in which the standbys of the list share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandbyChoice {
    /// Those that come first on the list.
    First,
    /// Those that are the first to have a commit.
    Any,
}

/// The standbys that a commit waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandbyNames {
    choice: StandbyChoice,
    count: usize,
    names: Vec<String>,
}

/// A text that is no list of standbys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at character {position}")]
pub struct StandbyNamesError {
    /// The fault.
    pub problem: String,
    /// Its position, in characters from 1.
    pub position: usize,
}

impl StandbyNames {
    /// Reads the setting; `None` if it names no standby.
    pub fn parse(text: &str) -> Result<Option<StandbyNames>, StandbyNamesError> {
        if text.len() > BYTES_MAX {
            return Err(StandbyNamesError {
                problem: format!("the list is longer than {BYTES_MAX} bytes"),
                position: 1,
            });
        }
        let mut parser = Parser::new(text)?;
        if parser.next.token == Token::End {
            return Ok(None);
        }
        let names = parser.setting()?;
        match parser.next.token {
            Token::End => Ok(Some(names)),
            _ => Err(parser.expected("a comma or the end")),
        }
    }

    /// The way in which the standbys of the list share the work.
    pub fn choice(&self) -> StandbyChoice {
        self.choice
    }

    /// Number of standbys that must have a commit.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The place of a standby of this name on the list, from 1; 0 if it is not there. Under ANY all places are 1.
    pub fn priority(&self, name: &str) -> u32 {
        let is_meant = |listed: &String| listed == "*" || listed.eq_ignore_ascii_case(name);
        match (self.names.iter().position(is_meant), self.choice) {
            (None, _) => 0,
            (Some(_), StandbyChoice::Any) => 1,
            (Some(place), StandbyChoice::First) => place as u32 + 1,
        }
    }
}

impl fmt::Display for StandbyNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choice = match self.choice {
            StandbyChoice::First => "FIRST",
            StandbyChoice::Any => "ANY",
        };
        write!(f, "{choice} {} (", self.count)?;
        for (number, name) in self.names.iter().enumerate() {
            if number > 0 {
                f.write_str(", ")?;
            }
            match name.as_str() {
                "*" => f.write_str("*")?,
                name => write!(f, "\"{}\"", name.replace('"', "\"\""))?,
            }
        }
        f.write_str(")")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    /// A name that is no keyword, whatever it says.
    Quoted(String),
    Number(String),
    Comma,
    Open,
    Close,
    End,
}

#[derive(Debug)]
struct Placed {
    token: Token,
    /// In bytes.
    at: usize,
}

/// A parser with one token of look-ahead.
struct Parser<'a> {
    text: &'a str,
    /// The start of the token after `next`.
    rest: usize,
    next: Placed,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, StandbyNamesError> {
        let mut parser = Parser {
            text,
            rest: 0,
            next: Placed {
                token: Token::End,
                at: 0,
            },
        };
        parser.advance()?;
        Ok(parser)
    }

    fn error(&self, at: usize, problem: String) -> StandbyNamesError {
        StandbyNamesError {
            problem,
            position: self.text[..at].chars().count() + 1,
        }
    }

    /// The error of a token that does not belong where it is.
    fn expected(&self, what: &str) -> StandbyNamesError {
        let found = match &self.next.token {
            Token::Word(word) | Token::Number(word) => format!("\"{word}\""),
            Token::Quoted(name) => format!("the name \"{name}\""),
            Token::Comma => "a comma".to_owned(),
            Token::Open => "\"(\"".to_owned(),
            Token::Close => "\")\"".to_owned(),
            Token::End => "the end".to_owned(),
        };
        self.error(
            self.next.at,
            format!("syntax error: expected {what} and found {found}"),
        )
    }

    /// Takes the next token and reads the one after it.
    fn advance(&mut self) -> Result<Placed, StandbyNamesError> {
        let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
        let spaces = self.text[self.rest..].find(|c| !is_space(c));
        let at = spaces.map_or(self.text.len(), |spaces| self.rest + spaces);
        let rest = &self.text[at..];
        let word = |belongs: fn(char) -> bool| &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
        let (token, length) = match rest.chars().next() {
            None => (Token::End, 0),
            Some(',') => (Token::Comma, 1),
            Some('(') => (Token::Open, 1),
            Some(')') => (Token::Close, 1),
            Some('*') => (Token::Quoted("*".to_owned()), 1),
            Some('"') => self.quoted(at)?,
            Some('0'..='9') => {
                let digits = word(|c| c.is_ascii_digit());
                (Token::Number(digits.to_owned()), digits.len())
            }
            Some(first) if first == '_' || first.is_ascii_alphabetic() || !first.is_ascii() => {
                let word = word(|c| matches!(c, '_' | '$') || c.is_ascii_alphanumeric() || !c.is_ascii());
                (Token::Word(word.to_owned()), word.len())
            }
            Some(other) => {
                let problem =
                    format!("syntax error: \"{other}\" begins no name; names with it stand in quotes");
                return Err(self.error(at, problem));
            }
        };
        self.rest = at + length;
        Ok(std::mem::replace(&mut self.next, Placed { token, at }))
    }

    /// The name in quotes that begins at `at`, and its length with them.
    fn quoted(&self, at: usize) -> Result<(Token, usize), StandbyNamesError> {
        let mut name = String::new();
        let mut rest = self.text[at + 1..].char_indices().peekable();
        while let Some((offset, c)) = rest.next() {
            if c != '"' {
                name.push(c);
            } else if rest.next_if(|(_, next)| *next == '"').is_some() {
                name.push('"');
            } else if name.is_empty() {
                return Err(self.error(at, "a name in quotes is empty".to_owned()));
            } else {
                return Ok((Token::Quoted(name), offset + 2));
            }
        }
        Err(self.error(at, "unterminated quoted name".to_owned()))
    }

    fn setting(&mut self) -> Result<StandbyNames, StandbyNamesError> {
        let keyword = match &self.next.token {
            Token::Word(word) if word.eq_ignore_ascii_case("first") => Some(StandbyChoice::First),
            Token::Word(word) if word.eq_ignore_ascii_case("any") => Some(StandbyChoice::Any),
            _ => None,
        };
        if let Some(choice) = keyword {
            self.advance()?;
            let Token::Number(_) = self.next.token else {
                return Err(self.expected("the number of standbys"));
            };
            let number = self.advance()?;
            return self.in_parentheses(choice, &number);
        }
        if let Token::Number(_) = self.next.token {
            let number = self.advance()?;
            if self.next.token == Token::Open {
                return self.in_parentheses(StandbyChoice::First, &number);
            }
            let Token::Number(first) = number.token else {
                return Err(self.expected("a name"));
            };
            return self.list(StandbyChoice::First, 1, vec![first]);
        }
        let first = self.name()?;
        self.list(StandbyChoice::First, 1, vec![first])
    }

    /// `( list )`, after `number`.
    fn in_parentheses(
        &mut self,
        choice: StandbyChoice,
        number: &Placed,
    ) -> Result<StandbyNames, StandbyNamesError> {
        let count = match &number.token {
            Token::Number(digits) => digits.parse::<i32>().unwrap_or(i32::MAX),
            _ => 0,
        };
        if count == 0 {
            let problem = "the number of synchronous standbys must be greater than zero".to_owned();
            return Err(self.error(number.at, problem));
        }
        if self.next.token != Token::Open {
            return Err(self.expected("\"(\""));
        }
        self.advance()?;
        let first = self.name()?;
        let names = self.list(choice, count as usize, vec![first])?;
        if self.next.token != Token::Close {
            return Err(self.expected("a comma or \")\""));
        }
        self.advance()?;
        Ok(names)
    }

    /// The rest of a list.
    fn list(
        &mut self,
        choice: StandbyChoice,
        count: usize,
        mut names: Vec<String>,
    ) -> Result<StandbyNames, StandbyNamesError> {
        while self.next.token == Token::Comma {
            self.advance()?;
            names.push(self.name()?);
        }
        Ok(StandbyNames { choice, count, names })
    }

    fn name(&mut self) -> Result<String, StandbyNamesError> {
        match &self.next.token {
            Token::Word(word) if word.eq_ignore_ascii_case("first") || word.eq_ignore_ascii_case("any") => {
                Err(self.expected("a name (a standby that is called as a keyword stands in quotes)"))
            }
            Token::Word(_) | Token::Quoted(_) | Token::Number(_) => match self.advance()?.token {
                Token::Word(name) | Token::Quoted(name) | Token::Number(name) => Ok(name),
                _ => Err(self.expected("a name")),
            },
            _ => Err(self.expected("a name")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match StandbyNames::parse(text) {
            Ok(names) => names.map_or("none".to_owned(), |names| names.to_string()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_form_is_read() {
        for (text, expected) in [
            ("", "none"),
            (" \t\n", "none"),
            ("a", "FIRST 1 (\"a\")"),
            ("a, b", "FIRST 1 (\"a\", \"b\")"),
            ("*", "FIRST 1 (*)"),
            ("2 (a,b , c)", "FIRST 2 (\"a\", \"b\", \"c\")"),
            ("first 2(a,*)", "FIRST 2 (\"a\", *)"),
            (
                "aNy 3 (\"any\",_b$1, \"x \"\"y\"\"\")",
                "ANY 3 (\"any\", \"_b$1\", \"x \"\"y\"\"\")",
            ),
            ("7, a", "FIRST 1 (\"7\", \"a\")"),
            ("ANY 1 (12)", "ANY 1 (\"12\")"),
            ("köln", "FIRST 1 (\"köln\")"),
            ("\"*\"", "FIRST 1 (*)"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
            if let Ok(Some(names)) = StandbyNames::parse(text) {
                let again = StandbyNames::parse(&names.to_string()).unwrap();
                assert_eq!(again, Some(names), "{text}");
            }
        }
    }

    #[test]
    fn errors_tell_what_and_where() {
        for (text, problem, position) in [
            ("a b", "expected a comma or the end and found \"b\"", 3),
            ("a,", "expected a name", 3),
            (", a", "expected a name and found a comma", 1),
            ("FIRST (a)", "expected the number of standbys", 7),
            ("ANY", "expected the number of standbys and found the end", 4),
            ("ANY 2 a", "expected \"(\" and found \"a\"", 7),
            ("2 (a", "expected a comma or \")\" and found the end", 5),
            ("2 (a))", "expected a comma or the end and found \")\"", 6),
            ("2 ()", "expected a name and found \")\"", 4),
            ("0 (a)", "must be greater than zero", 1),
            ("FIRST 0 (a)", "must be greater than zero", 7),
            ("a, first", "stands in quotes", 4),
            ("\"a", "unterminated quoted name", 1),
            ("b, \"\"", "a name in quotes is empty", 4),
            ("a-b", "\"-\" begins no name", 2),
            ("1a", "expected a comma or the end", 2),
        ] {
            let error = StandbyNames::parse(text).expect_err(text);
            assert!(error.problem.contains(problem), "{text}: {error}");
            assert_eq!(error.position, position, "{text}: {error}");
        }
        let umlaut = StandbyNames::parse("ä, , b").unwrap_err();
        assert_eq!(umlaut.position, 4, "in characters");
        assert!(StandbyNames::parse(&"a,".repeat(BYTES_MAX)).is_err());
        assert_eq!(shown("99999999999 (a)"), "FIRST 2147483647 (\"a\")");
    }

    #[test]
    fn names_have_places() {
        let names = StandbyNames::parse("first 2 (Berlin, \"Paris\", *, rome)")
            .unwrap()
            .unwrap();
        let places = ["berlin", "PARIS", "rome", ""].map(|name| names.priority(name));
        assert_eq!(places, [1, 2, 3, 3]);
        let names = StandbyNames::parse("ANY 2 (a, b)").unwrap().unwrap();
        assert_eq!(["a", "b", "c"].map(|name| names.priority(name)), [1, 1, 0]);
    }

    proptest::proptest! {
        /// No text makes the parser panic, and what it reads it reads again from its own spelling.
        #[test]
        fn any_text_is_read_or_refused(text in "[a-zA-Z0-9_$(),*\"\\- äFIRSTANY]{0,40}") {
            match StandbyNames::parse(&text) {
                Ok(Some(names)) => {
                    proptest::prop_assert_eq!(StandbyNames::parse(&names.to_string()), Ok(Some(names.clone())));
                }
                Ok(None) => proptest::prop_assert!(text.trim().is_empty()),
                Err(error) => proptest::prop_assert!(error.position <= text.chars().count() + 1),
            }
        }
    }
}
