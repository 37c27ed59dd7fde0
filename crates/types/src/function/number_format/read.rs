//! A number out of a text, by a template.
//!
//! The template leads: each of its pieces looks at the input where the piece before has left off. A place takes a digit,
//! or passes over one character that is none; a separator and a currency pass over what looks like one; any other
//! character of the template passes over one character whatever it is.

use super::parse::{Piece, Template};
use crate::error::{EngineError, Result, SqlState};
use crate::value::Numeric;
use crate::value::datatype::numeric_typmod;

/// The greatest precision that a type can be declared with.
const PRECISION_MAX: usize = 1_000;

pub(super) fn number(input: &str, template: &Template<'_>) -> Result<Numeric> {
    for (used, name) in [(template.scientific, "EEEE"), (template.roman, "RN")] {
        if used {
            let message = format!("\"{name}\" not supported for input");
            return Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    }
    let mut reader = Reader {
        template,
        rest: input.as_bytes(),
        sign: ' ',
        digits: String::new(),
        point: false,
        whole: 0,
        fraction: 0,
    };
    for piece in &template.pieces {
        if reader.rest.is_empty() {
            break;
        }
        reader.take(piece);
    }
    reader.finish()
}

struct Reader<'a> {
    template: &'a Template<'a>,
    /// The rest of the input.
    rest: &'a [u8],
    /// The sign found, or a blank.
    sign: char,
    digits: String,
    point: bool,
    /// The digits found before the point, and after it.
    whole: usize,
    fraction: usize,
}

impl Reader<'_> {
    fn take(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Nine | Piece::Zero => {
                self.place(true);
                self.pass();
            }
            Piece::Point => {
                self.place(false);
                self.pass();
            }
            Piece::Group => {
                if !self.template.fill && self.rest.starts_with(b",") {
                    self.pass();
                }
            }
            Piece::Minus => self.sign_or_pass("-"),
            Piece::Plus => self.sign_or_pass("+"),
            Piece::EitherSign => self.sign_or_pass("+-"),
            Piece::Currency => self.pass_no_data(1),
            // Numbers with a point have no ordinals.
            Piece::Ordinal { .. } if self.template.point => {}
            Piece::Ordinal { .. } => self.pass_no_data(2),
            Piece::Literal(_) => self.pass_character(),
            Piece::Roman { .. } | Piece::Shift | Piece::Silent => {}
        }
    }

    fn next(&self) -> Option<char> {
        self.rest.first().copied().map(char::from)
    }

    /// Passes over one byte, which is all that a place takes also of a longer character.
    fn pass(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    /// Passes over one character, or over one byte of what a place has left of one.
    fn pass_character(&mut self) {
        let length = match self.rest.first() {
            Some(0xf0..) => 4,
            Some(0xe0..) => 3,
            Some(0xc0..) => 2,
            _ => 1,
        };
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    /// Passes over a number of characters that cannot belong to a number.
    fn pass_no_data(&mut self, most: usize) {
        for _ in 0..most {
            if self.next().is_some_and(|next| "0123456789.,+-".contains(next)) {
                return;
            }
            self.pass_character();
        }
    }

    fn sign_or_pass(&mut self, signs: &str) {
        match self.next() {
            Some(next) if signs.contains(next) => {
                self.sign = next;
                self.pass();
            }
            _ => self.pass_no_data(1),
        }
    }

    /// Looks for what a place stands for; leaves the character it took, for the caller to pass over.
    fn place(&mut self, is_digit: bool) {
        if self.rest.starts_with(b" ") {
            self.pass();
        }
        if is_digit && self.sign == ' ' && self.whole + self.fraction == 0 {
            self.sign_before();
        }
        let Some(next) = self.next() else { return };
        let mut found = false;
        if next.is_ascii_digit() {
            if self.point && self.fraction == self.template.fraction {
                return;
            }
            self.digits.push(next);
            *(if self.point {
                &mut self.fraction
            } else {
                &mut self.whole
            }) += 1;
            found = true;
        } else if next == '.' && self.template.point && !self.point {
            self.digits.push('.');
            self.point = true;
            found = true;
        }
        if self.sign == ' ' && self.whole + self.fraction > 0 {
            self.sign_after(found);
        }
    }

    fn sign_before(&mut self) {
        let brackets = self.template.brackets && self.template.anchor.is_none();
        match self.next() {
            Some('-') => self.sign = '-',
            Some('<') if brackets => self.sign = '-',
            Some('+') => self.sign = '+',
            _ => return,
        }
        self.pass();
    }

    /// With `S`, a sign right behind a digit; with another pattern for signs, one in place of a digit.
    fn sign_after(&mut self, found: bool) {
        let anchored = self.template.anchor.is_some();
        let at = match (found, anchored) {
            (true, true) => 1,
            (false, false) if self.template.plus || self.template.minus => 0,
            _ => return,
        };
        if let Some(sign @ (b'-' | b'+')) = self.rest.get(at) {
            self.sign = char::from(*sign);
            self.rest = &self.rest[at..];
        }
    }

    fn finish(self) -> Result<Numeric> {
        let text = format!("{}{}", self.sign, self.digits.trim_end_matches('.'));
        let number = Numeric::parse(&text)?;
        let precision = self.template.whole + self.fraction;
        let number = if precision <= PRECISION_MAX {
            number.fit(numeric_typmod(precision as i32, self.fraction as i32))?
        } else {
            number
        };
        if !self.template.shifted {
            return Ok(number);
        }
        let shift = self.template.shift as i64;
        number.multiply(&Numeric::from(10i64).power(&Numeric::from(-shift))?)
    }
}
