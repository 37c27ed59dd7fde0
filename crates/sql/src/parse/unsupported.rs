//! SQL that PostgreSQL has and this engine has not, as distinct from text that is no SQL at all.
//!
//! A client that gets 42601 looks for its own mistake. So what PostgreSQL would take is 0A000 with its name, in two
//! ways:
//!
//! 1. [`statement`], before parsing: CREATE and ALTER name a kind of object, and the kinds that we have are few. The
//!    words in front decide; what follows them is not looked at.
//! 2. [`construct`], after the parser has stopped: a clause of a statement that we have otherwise. It is known by its
//!    words ([`CLAUSES`]), and the parser must have stopped at one of them or right behind. Without that, a text with a
//!    real mistake would be refused for a clause that is elsewhere in it.

use crate::error::EngineError;
use crate::lex::{Kind, Token, lex};

/// The kinds of objects of PostgreSQL that CREATE or ALTER can be about and that we do not have. The longer of two that
/// begin alike is first.
const OBJECTS: &[&str] = &[
    "access method",
    "aggregate",
    "cast",
    "collation",
    "conversion",
    "database",
    "default privileges",
    "event trigger",
    "extension",
    "foreign data wrapper",
    "foreign table",
    "function",
    "group",
    "language",
    "large object",
    "materialized view",
    "operator class",
    "operator family",
    "operator",
    "policy",
    "procedure",
    "publication",
    "role",
    "routine",
    "rule",
    "server",
    "statistics",
    "subscription",
    "system",
    "tablespace",
    "text search configuration",
    "text search dictionary",
    "text search parser",
    "text search template",
    "transform",
    "trigger",
    "user mapping",
    "user",
    "view",
];

/// Words that may be between CREATE and the kind of object.
pub(super) const MODIFIERS: &[&str] = &[
    "or",
    "replace",
    "temp",
    "temporary",
    "local",
    "global",
    "unlogged",
    "recursive",
    "constraint",
    "default",
    "trusted",
    "procedural",
];

/// True if RENAME TO is behind the kind of an object and a name, with or without its schema.
fn renames(named: &[Token]) -> bool {
    let behind = |at: usize| named.get(at..).is_some_and(|rest| begins_with(rest, "rename to"));
    behind(2) || behind(4)
}

/// A clause: the words its statement begins with, its own words, and its name if that is more than its words. `_`
/// stands for any identifier.
struct Clause {
    head: &'static str,
    words: &'static str,
    name: &'static str,
}

const fn clause(head: &'static str, words: &'static str) -> Clause {
    Clause {
        head,
        words,
        name: "",
    }
}

const fn named(head: &'static str, words: &'static str, name: &'static str) -> Clause {
    Clause { head, words, name }
}

const CLAUSES: &[Clause] = &[
    clause("", "current of"),
    clause("", "collation for"),
    named("", "xmlelement ( _", "XML"),
    named("", "xmlforest ( _", "XML"),
    named("", "xmlparse ( _", "XML"),
    named("", "xmlpi ( _", "XML"),
    named("", "xmlroot ( _", "XML"),
    named("", "xmlserialize ( _", "XML"),
    named("", "is document", "XML"),
    named("", "is not document", "XML"),
    named("create table", ") using", "CREATE TABLE … USING"),
    clause("create table", "compression"),
    clause("", "using index tablespace"),
    named("create index", "on only", "CREATE INDEX … ON ONLY"),
    clause("create index", "tablespace"),
    named("create unique index", "on only", "CREATE INDEX … ON ONLY"),
    clause("create unique index", "tablespace"),
];

/// The same for ALTER TABLE, whose parts are all named after it.
const ALTER_TABLE_ACTIONS: &[&str] = &[
    "all in tablespace",
    "attach partition",
    "cluster on",
    "detach partition",
    "inherit",
    "no inherit",
    "reset",
    "set access method",
    "set statistics",
    "set tablespace",
    "set without cluster",
    "set without oids",
    "set",
];

/// Number of words at a statement's beginning that say what it is.
const HEAD_WORDS_MAX: usize = 8;

/// A clause that begins further into a text than this is not looked for: that would read the whole text once more.
const SEARCHED_BYTES_MAX: usize = 64 << 10;

/// A clause's words are shorter, blanks and comments aside.
const CLAUSE_BYTES_MAX: usize = 256;

/// 0A000 for a statement about a kind of object that we do not have, from its first words, and the byte where they
/// begin.
pub(super) fn statement(text: &str) -> Option<(EngineError, usize)> {
    let tokens = lex(text, HEAD_WORDS_MAX);
    let verb = word(tokens.first()?);
    if !matches!(verb, "create" | "alter") {
        return None;
    }
    let mut kind = 1;
    while verb == "create"
        && tokens
            .get(kind)
            .is_some_and(|token| MODIFIERS.contains(&word(token)))
    {
        kind += 1;
    }
    let named = &tokens[kind.min(tokens.len())..];
    let object = match verb {
        "alter" if begins_with(named, "index") && !renames(named) => "index",
        _ => OBJECTS.iter().find(|object| begins_with(named, object))?,
    };
    let error = EngineError::not_supported(format!("{verb} {object}").to_uppercase());
    Some((error, tokens[0].start))
}

/// The clause that PostgreSQL has and the parser stopped in: its name, and the byte where it begins. `stopped` is the
/// byte of the token that the parser did not take.
pub(super) fn construct(text: &str, stopped: usize) -> Option<(EngineError, usize)> {
    let head = lex(text, HEAD_WORDS_MAX);
    let tokens = tokens_up_to(text, stopped);
    let here = tokens
        .iter()
        .position(|token| (token.start..token.end).contains(&stopped))?;
    // Where the words occur so that the parser stopped in them or behind them.
    let found = |words: &str| {
        let length = words.split(' ').count();
        (here.saturating_sub(length)..=here)
            .find(|start| begins_with(&tokens[*start..], words))
            .map(|start| tokens[start].start)
    };
    for clause in CLAUSES {
        if (clause.head.is_empty() || begins_with(&head, clause.head))
            && let Some(start) = found(clause.words)
        {
            let error = match clause.name {
                "" => EngineError::not_supported(clause.words.to_uppercase()),
                name => EngineError::not_supported(name),
            };
            return Some((error, start));
        }
    }
    if begins_with(&head, "alter table") {
        for action in ALTER_TABLE_ACTIONS {
            if let Some(start) = found(action) {
                let name = format!("ALTER TABLE … {}", action.to_uppercase());
                return Some((EngineError::not_supported(name), start));
            }
        }
    }
    None
}

/// The tokens up to a byte and a little further; none when that is far into the text.
fn tokens_up_to(text: &str, stopped: usize) -> Vec<Token> {
    if stopped > SEARCHED_BYTES_MAX {
        return Vec::new();
    }
    let mut end = text.len().min(stopped + CLAUSE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    lex(&text[..end], usize::MAX)
}

/// The kind of object that these tokens name: of several words, if it has several; otherwise the first word.
pub(super) fn object_named_by(tokens: &[Token]) -> &str {
    let known = OBJECTS.iter().find(|object| begins_with(tokens, object));
    match known {
        Some(object) => object,
        None => tokens.first().map_or("", word),
    }
}

fn word(token: &Token) -> &str {
    match &token.kind {
        Kind::Word(word) => word,
        _ => "",
    }
}

/// True if the tokens begin with these words and signs.
pub(super) fn begins_with(tokens: &[Token], words: &str) -> bool {
    let mut tokens = tokens.iter();
    words.split(' ').all(|wanted| {
        tokens.next().is_some_and(|token| match (&token.kind, wanted) {
            (Kind::Word(_) | Kind::Quoted(_), "_") => true,
            (Kind::Symbol(symbol), sign) => sign.chars().eq([*symbol]),
            _ => word(token) == wanted,
        })
    })
}
