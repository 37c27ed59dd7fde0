//! Bracket expressions and escapes of single characters.

use std::iter::Peekable;
use std::str::Chars;

use super::fault::invalid;
use crate::error::{EngineError, Result};

/// `\w`
pub(super) const WORD: &str = "[\\p{Alphabetic}\\p{N}_]";
/// `\W`
pub(super) const NO_WORD: &str = "[^\\p{Alphabetic}\\p{N}_]";
/// `\W` where it does not match a newline
pub(super) const NO_WORD_OR_NEWLINE: &str = "[^\\p{Alphabetic}\\p{N}_\\n]";

/// An element of a bracket expression.
enum Element {
    Character(char),
    /// A class, as `regex` writes it inside brackets.
    Class(&'static str),
}

/// Reads a bracket expression behind its `[`; the result is in the syntax of `regex`.
pub(super) fn parse(rest: &mut Peekable<Chars<'_>>, newline_stops: bool) -> Result<String> {
    let ahead: String = rest.clone().take(7).collect();
    for (written, constraint) in [("[:<:]]", "\\b{start}"), ("[:>:]]", "\\b{end}")] {
        if ahead.starts_with(written) {
            rest.nth(written.len() - 1);
            return Ok(constraint.to_owned());
        }
    }
    let negated = rest.next_if_eq(&'^').is_some();
    let mut class = String::from(if negated { "[^" } else { "[" });
    let mut first = true;
    loop {
        let element = match rest.next() {
            None => return Err(invalid("brackets [] not balanced")),
            Some(']') if !first => break,
            Some(character) => element(character, rest)?,
        };
        first = false;
        let Element::Character(low) = element else {
            if let Element::Class(text) = element {
                class.push_str(text);
            }
            continue;
        };
        // A hyphen before the closing bracket is itself.
        let mut ahead = rest.clone();
        let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|next| next != ']');
        if !is_range {
            push(&mut class, low);
            continue;
        }
        rest.next();
        let next = rest.next().ok_or_else(|| invalid("brackets [] not balanced"))?;
        let Element::Character(high) = self::element(next, rest)? else {
            return Err(invalid("invalid character range"));
        };
        if high < low {
            return Err(invalid("invalid character range"));
        }
        push(&mut class, low);
        class.push('-');
        push(&mut class, high);
    }
    if negated && newline_stops {
        class.push_str("\\n");
    }
    class.push(']');
    Ok(class)
}

fn push(class: &mut String, character: char) {
    class.push_str(&format!("\\x{{{:x}}}", u32::from(character)));
}

fn element(character: char, rest: &mut Peekable<Chars<'_>>) -> Result<Element> {
    match (character, rest.peek().copied()) {
        ('[', Some(kind @ (':' | '.' | '='))) => {
            rest.next();
            let mut name = String::new();
            loop {
                match rest.next() {
                    None => return Err(invalid("brackets [] not balanced")),
                    Some(end) if end == kind && rest.next_if_eq(&']').is_some() => break,
                    Some(character) => name.push(character),
                }
            }
            if kind == ':' {
                return class_named(&name)
                    .map(Element::Class)
                    .ok_or_else(|| invalid("invalid character class"));
            }
            let mut characters = name.chars();
            match (characters.next(), characters.next()) {
                (Some(one), None) => Ok(Element::Character(one)),
                (Some(_), Some(_)) => Err(EngineError::not_supported(
                    "a collating element of several characters in a regular expression",
                )),
                _ => Err(invalid("invalid collating element")),
            }
        }
        ('\\', Some(letter)) => {
            let class = match letter {
                'd' => "0-9",
                's' => "\\s",
                'w' => "\\p{Alphabetic}\\p{N}_",
                'D' => "[^0-9]",
                'S' => "\\S",
                'W' => NO_WORD,
                _ => return escaped_character(rest).map(Element::Character),
            };
            rest.next();
            Ok(Element::Class(class))
        }
        ('\\', None) => Err(invalid("invalid escape \\ sequence")),
        (other, _) => Ok(Element::Character(other)),
    }
}

fn class_named(name: &str) -> Option<&'static str> {
    Some(match name {
        "alnum" => "\\p{Alphabetic}\\p{N}",
        "alpha" => "\\p{Alphabetic}",
        "ascii" => "\\x00-\\x7F",
        "blank" => " \\t",
        "cntrl" => "\\p{Cc}",
        "digit" => "0-9",
        "graph" => "[^\\s\\p{C}]",
        "lower" => "\\p{Lowercase}",
        "print" => "[^\\p{C}]",
        "punct" => "\\p{P}\\p{S}",
        "space" => "\\s",
        "upper" => "\\p{Uppercase}",
        "word" => "\\p{Alphabetic}\\p{N}_",
        "xdigit" => "0-9A-Fa-f",
        _ => return None,
    })
}

/// The character that an escape means, behind its backslash.
pub(super) fn escaped_character(rest: &mut Peekable<Chars<'_>>) -> Result<char> {
    let wrong = || invalid("invalid escape \\ sequence");
    let letter = rest.next().ok_or_else(wrong)?;
    Ok(match letter {
        'a' => '\x07',
        'b' => '\x08',
        'B' => '\\',
        'e' => '\x1b',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        'c' => char::from((u32::from(rest.next().ok_or_else(wrong)?) & 31) as u8),
        'u' => number(rest, 16, 4, 4)?,
        'U' => number(rest, 16, 8, 8)?,
        'x' => number(rest, 16, 1, usize::MAX)?,
        '0' => number(rest, 8, 0, 2)?,
        letter if letter.is_ascii_alphanumeric() => return Err(wrong()),
        other => other,
    })
}

/// The character of a number of digits.
fn number(rest: &mut Peekable<Chars<'_>>, radix: u32, least: usize, most: usize) -> Result<char> {
    let mut number = 0u32;
    let mut digits = 0;
    while digits < most
        && let Some(digit) = rest.peek().and_then(|character| character.to_digit(radix))
    {
        rest.next();
        number = number.saturating_mul(radix).saturating_add(digit);
        digits += 1;
    }
    if digits < least {
        return Err(invalid("invalid escape \\ sequence"));
    }
    char::from_u32(number).ok_or_else(|| invalid("invalid escape \\ sequence"))
}
