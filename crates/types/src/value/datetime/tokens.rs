//! The text of a date, a time or an interval, cut into tokens.
//!
//! | token | is |
//! |---|---|
//! | number | digits, perhaps with a fraction: a whole date or time of six digits or more, else the next open field |
//! | date | fields with `-`, `/` or `.` between them; one may be a month's name |
//! | time | `hh:mm`, `hh:mm:ss`, `hh:mm:ss.fraction` |
//! | zone | a sign and digits |
//! | word | a name: month, weekday (passed over), `am`, `pm`, `ad`, `bc`, zone, `t`, `j`, `now`, `today`, … |

type Result<T, E = Fault> = std::result::Result<T, E>;

/// The reason why a text means nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is no date.
    Syntax,
    /// A field is out of range.
    Field,
    /// A field is out of range, and as a month or day only.
    MonthOrDay,
    /// The zone is too far from Greenwich.
    Zone,
    /// No zone has this name.
    UnknownZone(String),
}

/// More tokens than a date has are no date.
const TOKENS_MAX: usize = 25;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Number(String),
    Date(String),
    Time(String),
    Zone(String),
    Word(String),
}

/// True if the text's meaning depends on when it is read.
pub fn is_relative(text: &str) -> bool {
    tokens(text).is_ok_and(|tokens| {
        tokens.iter().any(|token| {
            matches!(token, Token::Word(word)
                if matches!(word.as_str(), "now" | "today" | "tomorrow" | "yesterday"))
        })
    })
}

pub(super) fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut rest = text;
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (length, token) = match first {
            ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' => (1, None),
            '0'..='9' => {
                let (length, token) = digits_token(rest);
                (length, Some(token))
            }
            '.' => {
                let length = 1 + run(&rest[1..], |c| c.is_ascii_digit());
                (length, Some(Token::Number(rest[..length].to_owned())))
            }
            '+' | '-' => {
                let (length, token) = sign_token(rest)?;
                (length, Some(token))
            }
            first if first.is_ascii_alphabetic() => {
                let (length, token) = word_token(rest);
                (length, Some(token))
            }
            // Other punctuation only separates.
            first if first.is_ascii_punctuation() => (1, None),
            _ => return Err(Fault::Syntax),
        };
        tokens.extend(token);
        rest = &rest[length..];
        if tokens.len() > TOKENS_MAX {
            return Err(Fault::Syntax);
        }
    }
    Ok(tokens)
}

pub(super) fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

fn digits_token(text: &str) -> (usize, Token) {
    let digits = run(text, |c| c.is_ascii_digit());
    let after = text[digits..].chars().next();
    let Some(separator @ (':' | '-' | '/' | '.')) = after else {
        return (digits, Token::Number(text[..digits].to_owned()));
    };
    if separator == ':' {
        let length = run(text, |c| c.is_ascii_digit() || c == ':' || c == '.');
        return (length, Token::Time(text[..length].to_owned()));
    }
    let second = digits + 1;
    let starts_with_digit = text[second..].starts_with(|c: char| c.is_ascii_digit());
    let length = if starts_with_digit {
        let end = second + run(&text[second..], |c| c.is_ascii_digit());
        if !text[end..].starts_with(separator) {
            let part = text[..end].to_owned();
            return (
                end,
                if separator == '.' {
                    Token::Number(part)
                } else {
                    Token::Date(part)
                },
            );
        }
        end + run(&text[end..], |c| c.is_ascii_digit() || c == separator)
    } else {
        second + run(&text[second..], |c| c.is_ascii_alphanumeric() || c == separator)
    };
    (length, Token::Date(text[..length].to_owned()))
}

fn sign_token(text: &str) -> Result<(usize, Token)> {
    let blanks = 1 + run(&text[1..], |c| c == ' ');
    let body = &text[blanks..];
    let sign = &text[..1];
    if body.starts_with(|c: char| c.is_ascii_digit()) {
        let length = run(body, |c| c.is_ascii_digit() || matches!(c, ':' | '.' | '-'));
        return Ok((blanks + length, Token::Zone(format!("{sign}{}", &body[..length]))));
    }
    let length = run(body, |c| c.is_ascii_alphabetic());
    if length == 0 {
        return Err(Fault::Syntax);
    }
    Ok((
        blanks + length,
        Token::Word(format!("{sign}{}", body[..length].to_ascii_lowercase())),
    ))
}

fn word_token(text: &str) -> (usize, Token) {
    let letters = run(text, |c| c.is_ascii_alphabetic());
    let word = text[..letters].to_ascii_lowercase();
    let after = text[letters..].chars().next();
    let is_date = match after {
        Some('-' | '/' | '.') => true,
        Some(c) if c == '+' || c.is_ascii_digit() => !is_known(&word),
        _ => false,
    };
    if !is_date {
        return (letters, Token::Word(word));
    }
    let length = run(text, |c| {
        c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '/' | '_' | '.' | ':')
    });
    (length, Token::Date(text[..length].to_ascii_lowercase()))
}

fn is_known(word: &str) -> bool {
    matches!(word, "t" | "j" | "jd" | "julian" | "am" | "pm" | "ad" | "bc")
        || month(word).is_some()
        || is_weekday(word)
}

/// The number of a month by its name or its first three letters.
pub(super) fn month(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let found = MONTHS
        .iter()
        .position(|name| word == *name || word == &name[..3] || (word == "sept" && name.starts_with(word)));
    found.map(|at| at as i64 + 1)
}

pub(super) fn is_weekday(word: &str) -> bool {
    matches!(
        word,
        "sunday"
            | "sun"
            | "monday"
            | "mon"
            | "tuesday"
            | "tue"
            | "tues"
            | "wednesday"
            | "wed"
            | "weds"
            | "thursday"
            | "thu"
            | "thur"
            | "thurs"
            | "friday"
            | "fri"
            | "saturday"
            | "sat"
    )
}

/// The digits after a point, as a number.
pub(super) fn fraction_of(digits: &str) -> Result<f64> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Syntax);
    }
    format!("0.{digits}0").parse().map_err(|_| Fault::Syntax)
}
