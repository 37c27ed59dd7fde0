//! Frames of windows: EXCLUDE, which sqlparser does not read, and bounds that begin with a string.
//!
//! So is `unbounded` as the name of a function or a relation, which gets quotes. All are mended in the list of tokens, in parentheses that have the word ROWS, RANGE or GROUPS:
//!
//! - `(order by a rows 1 preceding exclude ties)` becomes `(ties order by a rows 1 preceding)`: the words go, and what
//!   they say stands in the name of the window that is built on, behind a character that no text can have
//!   ([`exclusion`]).
//! - A string at the beginning of a bound, which sqlparser would take for an interval alone, becomes the other token
//!   for a string, with which an expression may begin.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

use crate::plan::FrameExclusion;

/// Between the name of a window and the mark of its exclusion.
const MARK: char = '\0';

/// The exclusions: words, and marks.
const EXCLUSIONS: &[(&[&str], &str, FrameExclusion)] = &[
    (&["current", "row"], "row", FrameExclusion::CurrentRow),
    (&["group"], "group", FrameExclusion::Group),
    (&["ties"], "ties", FrameExclusion::Ties),
    (&["no", "others"], "none", FrameExclusion::NoOthers),
];

/// The name of a window that another is built on, without its mark, and the exclusion that the mark means.
pub(crate) fn exclusion(name: &str) -> (Option<&str>, FrameExclusion) {
    let (name, mark) = name.split_once(MARK).unwrap_or((name, ""));
    let found = EXCLUSIONS.iter().find(|(_, known, _)| *known == mark);
    let exclusion = found.map_or(FrameExclusion::NoOthers, |(.., exclusion)| *exclusion);
    (Some(name).filter(|name| !name.is_empty()), exclusion)
}

fn is_word(token: &TokenWithSpan, text: &str) -> bool {
    matches!(&token.token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

fn is_any(token: &TokenWithSpan, words: &[&str]) -> bool {
    words.iter().any(|word| is_word(token, word))
}

/// Mends the frames in a list of tokens.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens
        .iter()
        .any(|token| is_any(token, &["rows", "range", "groups"]))
    {
        return;
    }
    // Per parenthesis that is open: its place, and whether a unit of frames has come since.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut before: Option<usize> = None;
    let mut marks: Vec<(usize, &str)> = Vec::new();
    for number in 0..tokens.len() {
        match &tokens[number].token {
            Token::Whitespace(_) => continue,
            Token::LParen => open.push((number, false)),
            Token::RParen => {
                open.pop();
            }
            Token::SingleQuotedString(text) => {
                let begins = before.is_some_and(|before| {
                    is_any(&tokens[before], &["rows", "range", "groups", "between", "and"])
                });
                if begins && matches!(open.last(), Some((_, true))) {
                    tokens[number].token = Token::EscapedStringLiteral(text.clone());
                }
            }
            Token::Word(_) => {
                if is_any(&tokens[number], &["rows", "range", "groups"])
                    && let Some((_, has_unit)) = open.last_mut()
                {
                    *has_unit = true;
                }
                if is_word(&tokens[number], "unbounded")
                    && matches!(open.last(), Some((_, true)))
                    && matches!(
                        tokens.get(number + 1).map(|next| &next.token),
                        Some(Token::LParen | Token::Period)
                    )
                    && let Token::Word(word) = &mut tokens[number].token
                {
                    word.value = "unbounded".to_owned();
                    word.quote_style = Some('"');
                    word.keyword = Keyword::NoKeyword;
                }
                if is_word(&tokens[number], "exclude")
                    && let Some((start, true)) = open.last()
                    && let Some(mark) = leave_out(tokens, number)
                {
                    marks.push((*start, mark));
                    continue;
                }
            }
            _ => {}
        }
        before = Some(number);
    }
    marks.sort_unstable_by_key(|(start, _)| std::cmp::Reverse(*start));
    for (start, mark) in marks {
        add_mark(tokens, start, mark);
    }
}

/// Leaves out an exclusion that ends its parenthesis; its mark.
fn leave_out(tokens: &mut [TokenWithSpan], exclude: usize) -> Option<&'static str> {
    let significant = |number: &usize| !matches!(tokens[*number].token, Token::Whitespace(_));
    let next: Vec<usize> = (exclude + 1..tokens.len()).filter(significant).take(3).collect();
    let (words, mark, _) = EXCLUSIONS.iter().find(|(words, ..)| {
        words.len() < next.len()
            && words
                .iter()
                .zip(&next)
                .all(|(word, at)| is_word(&tokens[*at], word))
            && tokens[next[words.len()]].token == Token::RParen
    })?;
    for number in std::iter::once(&exclude).chain(&next[..words.len()]) {
        tokens[*number].token = Token::Whitespace(Whitespace::Space);
    }
    Some(mark)
}

/// Adds a mark to the name behind a parenthesis; as a name if there is none.
fn add_mark(tokens: &mut Vec<TokenWithSpan>, start: usize, mark: &str) {
    let named =
        (start + 1..tokens.len()).find(|number| !matches!(tokens[*number].token, Token::Whitespace(_)));
    if let Some(number) = named
        && let Token::Word(word) = &mut tokens[number].token
        && word.keyword == Keyword::NoKeyword
        && !word.value.eq_ignore_ascii_case("groups")
    {
        word.value = format!("{}{MARK}{mark}", word.value);
        return;
    }
    let word = Token::Word(Word {
        value: format!("{MARK}{mark}"),
        quote_style: None,
        keyword: Keyword::NoKeyword,
    });
    let span = tokens[start].span;
    tokens.insert(start + 1, TokenWithSpan { token: word, span });
}
