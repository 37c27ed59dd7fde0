//! PostgreSQL's advanced regular expressions, read into a tree.
//!
//! The leaves of the tree are written in the syntax of the crate `regex`; what is above them is kept, since PostgreSQL's
//! rules about the length of a match need it (see `matching`). What automata cannot do is refused: back references and
//! constraints that look ahead or behind.

use std::iter::Peekable;
use std::str::Chars;

use super::bracket;
use super::fault::invalid;
use crate::error::{EngineError, Result, SqlState};

/// The largest count of a quantifier.
const REPETITIONS_MAX: u32 = 255;
/// The most levels of parentheses.
const NESTING_MAX: usize = 100;

/// A part of a regular expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// Something without a choice of length: characters, classes, constraints.
    Piece(String),
    /// One after the other.
    Concat(Vec<Node>),
    /// One of these.
    Alternate(Vec<Node>),
    /// Parentheses that capture, by their number from 1.
    Group(usize, Box<Node>),
    /// Repetitions.
    Repeat {
        inner: Box<Node>,
        least: u32,
        most: Option<u32>,
        greedy: bool,
    },
}

/// The options of a regular expression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub ignore_case: bool,
    /// Blanks and comments are left out.
    pub expanded: bool,
    /// `.` and `[^…]` do not match a newline.
    pub newline_stops: bool,
    /// `^` and `$` match at newlines.
    pub newline_anchors: bool,
    /// The text is no expression, but what is looked for.
    pub literal: bool,
    /// All matches are meant (`g`).
    pub global: bool,
}

impl Options {
    /// The options that letters mean, added to these.
    pub(crate) fn with(mut self, letters: &str) -> Result<Options> {
        for letter in letters.chars() {
            match letter {
                'g' => self.global = true,
                'i' => self.ignore_case = true,
                'c' => self.ignore_case = false,
                'x' => self.expanded = true,
                't' => self.expanded = false,
                'n' | 'm' => (self.newline_stops, self.newline_anchors) = (true, true),
                's' => (self.newline_stops, self.newline_anchors) = (false, false),
                'p' => (self.newline_stops, self.newline_anchors) = (true, false),
                'w' => (self.newline_stops, self.newline_anchors) = (false, true),
                'q' => self.literal = true,
                'b' | 'e' => {
                    return Err(EngineError::not_supported(format!(
                        "the regular expression option \"{letter}\""
                    )));
                }
                other => {
                    return Err(EngineError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("invalid regular expression option: \"{other}\""),
                    ));
                }
            }
        }
        Ok(self)
    }

    /// The options as `regex` writes them, around an expression.
    pub(crate) fn around(self, inner: &str) -> String {
        let case = if self.ignore_case { "i" } else { "" };
        let anchors = if self.newline_anchors { "m" } else { "" };
        let dot = if self.newline_stops { "-s" } else { "s" };
        format!("(?{case}{anchors}{dot}:{inner})")
    }
}

/// An expression as it was read.
pub(crate) struct Parsed {
    pub node: Node,
    pub groups: usize,
    pub options: Options,
}

impl Node {
    /// The expression in the syntax of `regex`, without captures.
    pub(crate) fn written(&self) -> String {
        match self {
            Node::Piece(text) => text.clone(),
            Node::Concat(parts) => parts.iter().map(Node::written).collect(),
            Node::Alternate(branches) => {
                let branches: Vec<String> = branches.iter().map(Node::written).collect();
                format!("(?:{})", branches.join("|"))
            }
            Node::Group(_, inner) => format!("(?:{})", inner.written()),
            Node::Repeat {
                inner, least, most, ..
            } => repeated(inner, *least, *most),
        }
    }

    /// True if it prefers a long match, false if a short one; `None` if it has no preference.
    pub(crate) fn greedy(&self) -> Option<bool> {
        match self {
            Node::Piece(_) => None,
            Node::Concat(parts) => parts.iter().find_map(Node::greedy),
            Node::Alternate(_) => Some(true),
            Node::Group(_, inner) => inner.greedy(),
            Node::Repeat {
                inner,
                least,
                most: Some(most),
                greedy: true,
            } if least == most => inner.greedy(),
            Node::Repeat { greedy, .. } => Some(*greedy),
        }
    }

    /// True if parentheses inside capture.
    pub(crate) fn captures(&self) -> bool {
        match self {
            Node::Piece(_) => false,
            Node::Concat(parts) | Node::Alternate(parts) => parts.iter().any(Node::captures),
            Node::Group(..) => true,
            Node::Repeat { inner, .. } => inner.captures(),
        }
    }
}

/// A part so many times, in the syntax of `regex`.
pub(crate) fn repeated(inner: &Node, least: u32, most: Option<u32>) -> String {
    let most = most.map_or(String::new(), |most| most.to_string());
    format!("(?:{}){{{least},{most}}}", inner.written())
}

/// An error if a text is no regular expression.
pub(crate) fn check(text: &str, options: Options) -> Result<()> {
    parse(text, options).map(drop)
}

/// Reads an expression.
pub(crate) fn parse(text: &str, options: Options) -> Result<Parsed> {
    let mut options = options;
    let mut rest = text;
    if let Some(director) = text.strip_prefix("***") {
        match director.chars().next() {
            Some('=') => options.literal = true,
            Some(':') => options.literal = false,
            _ => return Err(invalid("quantifier operand invalid")),
        }
        rest = &director[1..];
    }
    if options.literal {
        return Ok(Parsed {
            node: Node::Piece(regex::escape(rest)),
            groups: 0,
            options,
        });
    }
    if let Some((letters, behind)) = rest.strip_prefix("(?").and_then(|rest| rest.split_once(')'))
        && letters.starts_with(|first: char| first.is_ascii_alphabetic())
    {
        let embedded = options.with(letters);
        options = embedded.map_err(|_| invalid("invalid embedded option"))?;
        rest = behind;
    }
    let mut reader = Reader {
        rest: rest.chars().peekable(),
        options,
        groups: 0,
        nesting: 0,
    };
    let node = reader.alternatives()?;
    if reader.rest.peek().is_some() {
        return Err(invalid("parentheses () not balanced"));
    }
    Ok(Parsed {
        node,
        groups: reader.groups,
        options,
    })
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    options: Options,
    groups: usize,
    nesting: usize,
}

impl Reader<'_> {
    fn alternatives(&mut self) -> Result<Node> {
        let mut branches = vec![self.branch()?];
        while self.rest.next_if_eq(&'|').is_some() {
            branches.push(self.branch()?);
        }
        Ok(match branches.len() {
            1 => branches.remove(0),
            _ => Node::Alternate(branches),
        })
    }

    fn branch(&mut self) -> Result<Node> {
        let mut parts: Vec<Node> = Vec::new();
        loop {
            self.skip_blanks();
            match self.rest.peek() {
                None | Some('|' | ')') => break,
                Some(_) => {}
            }
            let (atom, is_constraint) = self.atom()?;
            let part = match self.quantifier()? {
                Some(_) if is_constraint => return Err(invalid("quantifier operand invalid")),
                Some((least, most, greedy)) => Node::Repeat {
                    inner: Box::new(atom),
                    least,
                    most,
                    greedy,
                },
                None => atom,
            };
            match (parts.last_mut(), part) {
                (Some(Node::Piece(text)), Node::Piece(more)) => text.push_str(&more),
                (_, part) => parts.push(part),
            }
        }
        Ok(match parts.len() {
            0 => Node::Piece(String::new()),
            1 => parts.remove(0),
            _ => Node::Concat(parts),
        })
    }

    fn skip_blanks(&mut self) {
        while self.options.expanded {
            match self.rest.peek() {
                Some(blank) if blank.is_whitespace() => {
                    self.rest.next();
                }
                Some('#') => {
                    self.rest.by_ref().find(|character| *character == '\n');
                }
                _ => return,
            }
        }
    }

    /// An atom, and true if it is a constraint, which cannot be repeated.
    fn atom(&mut self) -> Result<(Node, bool)> {
        let piece = |text: &str| Node::Piece(text.to_owned());
        let Some(first) = self.rest.next() else {
            return Err(invalid("invalid argument to regex function"));
        };
        Ok(match first {
            '(' => (self.group()?, false),
            '[' => {
                let class = bracket::parse(&mut self.rest, self.options.newline_stops)?;
                let is_constraint = class.starts_with("\\b{");
                (Node::Piece(class), is_constraint)
            }
            '.' => (piece("."), false),
            '^' => (piece("^"), true),
            '$' => (piece("$"), true),
            '\\' => self.escape()?,
            '*' | '+' | '?' => return Err(invalid("quantifier operand invalid")),
            '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => {
                return Err(invalid("quantifier operand invalid"));
            }
            other => (Node::Piece(regex::escape(other.encode_utf8(&mut [0; 4]))), false),
        })
    }

    fn group(&mut self) -> Result<Node> {
        let mut number = None;
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next() {
                Some(':') => {}
                Some('#') => {
                    self.rest.by_ref().find(|character| *character == ')');
                    return Ok(Node::Piece(String::new()));
                }
                Some('=' | '!' | '<') => {
                    return Err(EngineError::not_supported(
                        "a regular expression that looks ahead or behind",
                    ));
                }
                _ => return Err(invalid("quantifier operand invalid")),
            }
        } else {
            self.groups += 1;
            number = Some(self.groups);
        }
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(invalid("regular expression is too complex"));
        }
        let inner = self.alternatives()?;
        self.nesting -= 1;
        if self.rest.next() != Some(')') {
            return Err(invalid("parentheses () not balanced"));
        }
        Ok(match number {
            Some(number) => Node::Group(number, Box::new(inner)),
            // One that is quantified or stands in a row must stay one.
            None => match inner {
                Node::Piece(text) => Node::Piece(format!("(?:{text})")),
                other => other,
            },
        })
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>, bool)>> {
        self.skip_blanks();
        let (least, most) = match self.rest.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let mut ahead = self.rest.clone();
                ahead.next();
                if !ahead.peek().is_some_and(char::is_ascii_digit) {
                    return Ok(None);
                }
                self.rest.next();
                let bounds = self.bounds()?;
                return self.finish_quantifier(bounds);
            }
            _ => return Ok(None),
        };
        self.rest.next();
        self.finish_quantifier((least, most))
    }

    fn finish_quantifier(
        &mut self,
        (least, most): (u32, Option<u32>),
    ) -> Result<Option<(u32, Option<u32>, bool)>> {
        let greedy = self.rest.next_if_eq(&'?').is_none();
        self.skip_blanks();
        if let Some('*' | '+' | '?') = self.rest.peek() {
            return Err(invalid("quantifier operand invalid"));
        }
        Ok(Some((least, most, greedy)))
    }

    /// The counts behind `{`.
    fn bounds(&mut self) -> Result<(u32, Option<u32>)> {
        let least = self.count()?.unwrap_or(0);
        let most = match self.rest.next_if_eq(&',') {
            Some(_) => self.count()?,
            None => Some(least),
        };
        if self.rest.next() != Some('}') {
            return Err(invalid("braces {} not balanced"));
        }
        let too_many =
            least > REPETITIONS_MAX || most.is_some_and(|most| most > REPETITIONS_MAX || most < least);
        if too_many {
            return Err(invalid("invalid repetition count(s)"));
        }
        Ok((least, most))
    }

    fn count(&mut self) -> Result<Option<u32>> {
        let mut count = None;
        while let Some(digit) = self.rest.peek().and_then(|character| character.to_digit(10)) {
            self.rest.next();
            count = Some(count.unwrap_or(0u32).saturating_mul(10).saturating_add(digit));
        }
        Ok(count)
    }

    /// The meaning of a backslash outside brackets, by what stands behind it.
    fn escape(&mut self) -> Result<(Node, bool)> {
        let constraint = |text: &str| Ok((Node::Piece(text.to_owned()), true));
        let class = |text: &str| Ok((Node::Piece(text.to_owned()), false));
        match self.rest.peek().copied() {
            Some('A') => self.then(constraint("\\A")),
            Some('Z') => self.then(constraint("\\z")),
            Some('m') => self.then(constraint("\\b{start}")),
            Some('M') => self.then(constraint("\\b{end}")),
            Some('y') => self.then(constraint("\\b")),
            Some('Y') => self.then(constraint("\\B")),
            Some('d') => self.then(class("[0-9]")),
            Some('D') => self.then(class(if self.options.newline_stops {
                "[^0-9\\n]"
            } else {
                "[^0-9]"
            })),
            Some('s') => self.then(class("\\s")),
            Some('S') => self.then(class("\\S")),
            Some('w') => self.then(class(bracket::WORD)),
            Some('W') => self.then(class(if self.options.newline_stops {
                bracket::NO_WORD_OR_NEWLINE
            } else {
                bracket::NO_WORD
            })),
            Some('1'..='9') => Err(EngineError::not_supported(
                "a back reference in a regular expression",
            )),
            _ => {
                let character = bracket::escaped_character(&mut self.rest)?;
                Ok((
                    Node::Piece(regex::escape(character.encode_utf8(&mut [0; 4]))),
                    false,
                ))
            }
        }
    }

    fn then<T>(&mut self, result: T) -> T {
        self.rest.next();
        result
    }
}
