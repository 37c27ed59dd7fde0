//! Digits into the places of a template.

use super::digits::Digits;
use super::parse::{Anchor, Piece, Template};
use super::roman::numeral;
use crate::error::{EngineError, Result, SqlState};

/// The width of a Roman numeral: that of the longest, MMMDCCCLXXXVIII.
const ROMAN_WIDTH: usize = 15;

/// The template with a Roman numeral; all else that it says about a number does not count then.
pub(super) fn roman(template: &Template<'_>, number: i32) -> String {
    let numeral = numeral(number);
    let mut out = String::new();
    for piece in &template.pieces {
        match piece {
            Piece::Literal(text) => out.push_str(text),
            Piece::Currency => out.push(' '),
            // A numeral has no sign, and the text ends where one is wanted.
            Piece::EitherSign => break,
            Piece::Group | Piece::Minus | Piece::Plus if !template.fill => out.push(' '),
            Piece::Roman { upper } => match &numeral {
                None => out.push_str(&"#".repeat(ROMAN_WIDTH)),
                Some(numeral) => {
                    if !template.fill {
                        out.push_str(&" ".repeat(ROMAN_WIDTH - numeral.len()));
                    }
                    out.push_str(&if *upper {
                        numeral.clone()
                    } else {
                        numeral.to_lowercase()
                    });
                }
            },
            _ => {}
        }
    }
    out
}

/// The template with the digits of a number.
pub(super) fn number(template: &Template<'_>, digits: &Digits) -> Result<String> {
    let mut writer = Writer::new(template, digits);
    for piece in &template.pieces {
        match piece {
            Piece::Nine | Piece::Zero | Piece::Point => {
                if !writer.place(*piece == Piece::Zero) {
                    break;
                }
            }
            Piece::Group => match (writer.after_digit, template.fill) {
                (true, _) => writer.out.push(','),
                (false, false) => writer.out.push(' '),
                (false, true) => {}
            },
            Piece::Literal(text) => writer.out.push_str(text),
            Piece::Currency => writer.out.push(' '),
            Piece::Minus => writer.sign_or_blank(digits.negative, '-'),
            Piece::Plus => writer.sign_or_blank(!digits.negative, '+'),
            Piece::EitherSign => writer.out.push(writer.sign()),
            Piece::Ordinal { upper } => {
                if !digits.negative && !template.point && !digits.text.starts_with('#') {
                    let ending = ordinal(&digits.text)?;
                    writer.out.push_str(&if *upper {
                        ending.to_uppercase()
                    } else {
                        ending.to_owned()
                    });
                }
            }
            Piece::Roman { .. } | Piece::Shift | Piece::Silent => {}
        }
    }
    Ok(writer.out)
}

struct Writer<'a> {
    template: &'a Template<'a>,
    digits: &'a Digits,
    out: String,
    /// The places that are done.
    place: usize,
    /// The characters of the digits that are done.
    taken: usize,
    /// Places before the first digit.
    blanks: usize,
    /// The sign has been written, or there is none to write.
    signed: bool,
    /// A negative number has brackets.
    brackets: bool,
    /// The place done last shows a digit.
    after_digit: bool,
    /// With FM: the last character that counts; zeros behind it are left out.
    last: Option<usize>,
    /// The place behind which a sign at the end is written.
    end: usize,
}

impl<'a> Writer<'a> {
    fn new(template: &'a Template<'a>, digits: &'a Digits) -> Writer<'a> {
        let blanks = template.whole - digits.whole;
        let own_sign = template.plus || template.minus;
        let signed = if own_sign {
            template.minus
        } else {
            !digits.negative && template.fill && template.anchor.is_none()
        };
        // MI or SG behind PR: PostgreSQL counts one place less.
        let places = template.whole + digits.fraction + usize::from(template.point);
        let end = places.saturating_sub(usize::from(signed && blanks == 0));
        Writer {
            template,
            digits,
            out: String::new(),
            place: 0,
            taken: 0,
            blanks,
            signed,
            brackets: template.brackets && (own_sign || digits.negative || !template.fill),
            after_digit: false,
            last: last_that_counts(template, digits, blanks),
            end,
        }
    }

    fn sign(&self) -> char {
        if self.digits.negative { '-' } else { '+' }
    }

    fn sign_or_blank(&mut self, shown: bool, sign: char) {
        if shown {
            self.out.push(sign);
        } else if !self.template.fill {
            self.out.push(' ');
        }
    }

    /// True if the digit to come is the 0 of a number below one, which only a `0` shows.
    fn is_bare_zero(&self) -> bool {
        self.taken == 0
            && self.template.first_zero.is_none()
            && self.digits.fraction > 0
            && self.digits.text.starts_with('0')
    }

    /// True if all digits after the point are left out.
    fn is_cut_at_point(&self) -> bool {
        self.last
            .is_some_and(|last| self.digits.text.as_bytes()[last] == b'.')
    }

    /// One place: the sign if it belongs here, and a blank, a zero, a digit or the point. `false` where the digits have
    /// come to their end before the places: the text ends there, as it does in PostgreSQL.
    fn place(&mut self, is_zero: bool) -> bool {
        let in_digits = self.place >= self.blanks;
        let zeros_from = self.template.first_zero.unwrap_or(usize::MAX);
        if !self.signed
            && (in_digits || self.place == zeros_from)
            && (!self.is_bare_zero() || self.is_cut_at_point())
        {
            self.write_sign();
        }
        self.after_digit = false;
        if in_digits {
            if !self.digit(is_zero) {
                return false;
            }
        } else if self.place >= zeros_from {
            self.out.push('0');
            self.after_digit = true;
        } else if !self.template.fill {
            self.out.push(' ');
        }
        self.place += 1;
        if self.place == self.end {
            if self.signed && self.brackets {
                self.out.push(if self.digits.negative { '>' } else { ' ' });
            } else if self.template.anchor == Some(Anchor::After) {
                self.out.push(self.sign());
            }
        }
        true
    }

    /// The next digit or the point; `false` if there is none, which happens to floats and behind a point at the end.
    fn digit(&mut self, is_zero: bool) -> bool {
        let left_out = self.last.is_some_and(|last| self.taken > last) && !is_zero;
        let Some(digit) = self.digits.text.as_bytes().get(self.taken) else {
            return left_out;
        };
        if *digit == b'.' {
            self.out.push('.');
        } else if !left_out && self.is_bare_zero() {
            if !self.template.fill {
                self.out.push(' ');
            } else if self.is_cut_at_point() {
                self.out.push('0');
            }
        } else if !left_out {
            self.out.push(char::from(*digit));
            self.after_digit = true;
        }
        self.taken += 1;
        true
    }

    fn write_sign(&mut self) {
        match self.template.anchor {
            Some(Anchor::After) => return,
            Some(Anchor::Before) => self.out.push(self.sign()),
            None if self.brackets => self.out.push(if self.digits.negative { '<' } else { ' ' }),
            None if self.digits.negative => self.out.push('-'),
            None if !self.template.fill => self.out.push(' '),
            None => {}
        }
        self.signed = true;
    }
}

/// With FM, the last character of the digits that is not a zero behind the point, or is in the place of a `0`.
fn last_that_counts(template: &Template<'_>, digits: &Digits, blanks: usize) -> Option<usize> {
    if !template.fill || !template.point {
        return None;
    }
    let text = digits.text.as_bytes();
    let point = text.iter().position(|byte| *byte == b'.')?;
    let not_zero = text.iter().rposition(|byte| *byte != b'0').unwrap_or(point);
    let last_zero = template.last_zero.saturating_sub(blanks).min(text.len() - 1);
    Some(not_zero.max(point).max(last_zero))
}

/// `st`, `nd`, `rd` or `th` after these digits.
fn ordinal(digits: &str) -> Result<&'static str> {
    let mut ends = digits.bytes().rev();
    let (last, before) = (ends.next().unwrap_or(b'0'), ends.next());
    if !last.is_ascii_digit() {
        return Err(EngineError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("\"{digits}\" is not a number"),
        ));
    }
    Ok(match last {
        _ if before == Some(b'1') => "th",
        b'1' => "st",
        b'2' => "nd",
        b'3' => "rd",
        _ => "th",
    })
}
