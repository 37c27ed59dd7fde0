//! Elements and slices as targets of assignments: `SET a[1] = x`, `INSERT INTO t (a[1:2])`.
//!
//! sqlparser takes names only: of a column, `c`, or of a field of it, `c.f`. So the subscripts, with what follows them,
//! become one more part of the name, quoted as no text can quote one: `a[1:2]` is `a.` and the identifier `[1:2]`, `c.f[1].g`
//! is `c.f.` and `[1].g`. The binder parses that text when it meets it.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Whitespace};

use super::Lines;

/// The quote of such a part of a name.
pub(crate) const SUBSCRIPTS_MARK: char = '`';

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// A text, and where its characters begin.
pub(super) struct Places<'t> {
    text: &'t str,
    starts: Vec<usize>,
    lines: Lines,
}

impl Places<'_> {
    pub(super) fn of(text: &str) -> Places<'_> {
        Places {
            text,
            starts: text.char_indices().map(|(at, _)| at).collect(),
            lines: Lines::default(),
        }
    }

    /// The part of the text between two places.
    pub(super) fn between(&self, start: Location, end: Location) -> Option<&str> {
        let byte = |place: Location| {
            let character = self.lines.characters_before(self.text, place)? as usize;
            Some(self.starts.get(character).copied().unwrap_or(self.text.len()))
        };
        self.text.get(byte(start)?..byte(end)?)
    }
}

/// A place of the text where targets of assignments stand.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Behind SET or a comma, at a level of parentheses: the next name is a target.
    Set {
        level: usize,
        expected: bool,
    },
    /// Behind INSERT INTO and the table's name.
    InsertInto,
    /// In the list of columns of an INSERT, or of `SET (a, b) = …`.
    Columns {
        level: usize,
        of_set: bool,
    },
    Elsewhere,
}

/// Replaces subscripts behind targets of assignments.
pub(super) fn mark(tokens: &mut [TokenWithSpan], text: &str) {
    let is_bracket = |token: &TokenWithSpan| token.token == Token::LBracket;
    if !tokens.iter().any(is_bracket) {
        return;
    }
    let text = &Places::of(text);
    let (mut place, mut level) = (Place::Elsewhere, 0_usize);
    let mut number = 0;
    while number < tokens.len() {
        match &tokens[number].token {
            Token::Whitespace(_) => {}
            Token::LParen => {
                level += 1;
                place = match place {
                    Place::InsertInto => Place::Columns { level, of_set: false },
                    Place::Set {
                        level: of,
                        expected: true,
                    } if of + 1 == level => Place::Columns { level, of_set: true },
                    other => other,
                };
            }
            Token::RParen => {
                place = match place {
                    Place::Columns {
                        level: of,
                        of_set: true,
                    } if of == level => Place::Set {
                        level: level.saturating_sub(1),
                        expected: false,
                    },
                    Place::Columns { level: of, .. } | Place::Set { level: of, .. } if of == level => {
                        Place::Elsewhere
                    }
                    other => other,
                };
                level = level.saturating_sub(1);
            }
            Token::SemiColon => place = Place::Elsewhere,
            Token::Comma => {
                if let Place::Set { level: of, .. } = place
                    && of == level
                {
                    place = Place::Set {
                        level,
                        expected: true,
                    };
                }
            }
            token => match keyword(token) {
                Some(Keyword::SET) => {
                    place = Place::Set {
                        level,
                        expected: true,
                    }
                }
                Some(Keyword::INTO) => place = Place::InsertInto,
                Some(
                    Keyword::SELECT | Keyword::VALUES | Keyword::WHERE | Keyword::FROM | Keyword::RETURNING,
                ) => place = Place::Elsewhere,
                _ => {
                    let ends: &[Token] = match place {
                        Place::Set {
                            level: of,
                            expected: true,
                        } if of == level => &[Token::Eq],
                        Place::Columns { level: of, .. } if of == level => &[Token::Comma, Token::RParen],
                        _ => &[],
                    };
                    if let Place::Set { expected, .. } = &mut place {
                        *expected = false;
                    }
                    if let Token::Word(_) = token {
                        replace(tokens, number, ends, text);
                    }
                }
            },
        }
        number += 1;
    }
}

/// Replaces the subscripts behind a name, if there are any and one of `ends` follows.
fn replace(tokens: &mut [TokenWithSpan], name: usize, ends: &[Token], text: &Places<'_>) {
    let blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let next = |from: usize| (from..tokens.len()).find(|at| !blank(&tokens[*at]));
    let is = |at: &usize, token: Token| tokens[*at].token == token;
    let is_word = |at: &usize| matches!(tokens[*at].token, Token::Word(_));
    let mut first = next(name + 1);
    while let Some(field) = first
        .filter(|at| is(at, Token::Period))
        .and_then(|at| next(at + 1))
    {
        first = next(field + 1).filter(|_| is_word(&field));
    }
    let Some(first) = first.filter(|at| is(at, Token::LBracket)) else {
        return;
    };
    let (mut open, mut last) = (0_usize, None);
    let mut behind_period = false;
    for (at, token) in tokens.iter().enumerate().skip(first) {
        match &token.token {
            Token::LBracket => open += 1,
            Token::RBracket => {
                open = open.saturating_sub(1);
                last = Some(at);
            }
            _ if open > 0 || blank(token) => {}
            Token::Period => behind_period = true,
            Token::Word(_) if behind_period => {
                last = Some(at);
                behind_period = false;
            }
            _ => break,
        }
    }
    let Some(last) = last.filter(|_| open == 0) else {
        return;
    };
    if next(last + 1).is_none_or(|at| !ends.contains(&tokens[at].token)) {
        return;
    }
    let bracket = (tokens[first].span.start, tokens[last].span.end);
    let Some(subscripts) = text.between(bracket.0, bracket.1) else {
        return;
    };
    let subscripts = Token::make_word(subscripts, Some(SUBSCRIPTS_MARK));
    tokens[first].token = Token::Period;
    tokens[first + 1] = TokenWithSpan {
        token: subscripts,
        span: tokens[first].span,
    };
    for token in &mut tokens[first + 2..=last] {
        token.token = Token::Whitespace(Whitespace::Space);
    }
}
