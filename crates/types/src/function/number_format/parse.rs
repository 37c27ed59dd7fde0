//! Templates: from text to pieces.

use crate::error::{EngineError, Result, SqlState};

/// The most bytes of a template. The places after the point are a precision, which has 16 bits in formatting.
const TEMPLATE_BYTES_MAX: usize = u16::MAX as usize;

/// One part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// One character that is copied
    Literal(&'t str),
    /// `9`: a digit, or nothing where the number has none
    Nine,
    /// `0`: a digit, or a zero
    Zero,
    /// `.`, `D`
    Point,
    /// `,`, `G`
    Group,
    /// `MI`: a minus sign
    Minus,
    /// `PL`: a plus sign
    Plus,
    /// `SG`: either sign
    EitherSign,
    /// `L`
    Currency,
    /// `TH`, `th`
    Ordinal { upper: bool },
    /// `RN`, `rn`
    Roman { upper: bool },
    /// `V`: the places behind it multiply the number
    Shift,
    /// A pattern about the whole only (`FM`, `S`, `PR`, `EEEE`), or about nothing at all (`B`, `C`, `SP`)
    Silent,
}

/// The place at which `S` puts the sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// Before the first digit
    Before,
    /// After the last place
    After,
}

/// A template, parsed.
#[derive(Debug, Default)]
pub(super) struct Template<'t> {
    pub pieces: Vec<Piece<'t>>,
    /// Digit places before the point, those behind `V` included.
    pub whole: usize,
    /// Digit places after the point.
    pub fraction: usize,
    /// Nines behind `V`: the power of ten that the number is multiplied with.
    pub shift: usize,
    /// There is a point.
    pub point: bool,
    /// The number of the first place that is a `0`, if that is before the point.
    pub first_zero: Option<usize>,
    /// Number of digit places up to the last `0`, that one included.
    pub last_zero: usize,
    /// `FM`
    pub fill: bool,
    /// `S`, and where it puts the sign
    pub anchor: Option<Anchor>,
    /// `PR`: a negative number in angle brackets
    pub brackets: bool,
    /// `MI` or `SG`
    pub minus: bool,
    /// `PL` or `SG`
    pub plus: bool,
    /// `EEEE`
    pub scientific: bool,
    /// `RN`, `rn`
    pub roman: bool,
    /// `V`
    pub shifted: bool,
    /// `B` before all digits
    blank: bool,
    /// The digit places before an `S` that is before the point.
    places_before_sign: usize,
}

/// The patterns; of two that begin alike the longer one is first.
const PATTERNS: [(&str, Pattern); 22] = [
    (",", Pattern::Group),
    (".", Pattern::Point),
    ("0", Pattern::Zero),
    ("9", Pattern::Nine),
    ("B", Pattern::Blank),
    ("C", Pattern::Nothing),
    ("D", Pattern::Point),
    ("EEEE", Pattern::Scientific),
    ("FM", Pattern::Fill),
    ("G", Pattern::Group),
    ("L", Pattern::Currency),
    ("MI", Pattern::Minus),
    ("PL", Pattern::Plus),
    ("PR", Pattern::Brackets),
    ("RN", Pattern::Roman),
    ("SG", Pattern::EitherSign),
    ("SP", Pattern::Nothing),
    ("S", Pattern::Sign),
    ("TH", Pattern::Ordinal),
    ("V", Pattern::Shift),
    ("\\\"", Pattern::Quote),
    ("\"", Pattern::Quoted),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Group,
    Point,
    Zero,
    Nine,
    Blank,
    Nothing,
    Scientific,
    Fill,
    Currency,
    Minus,
    Plus,
    Brackets,
    Roman,
    EitherSign,
    Sign,
    Ordinal,
    Shift,
    /// `\"`: a quotation mark
    Quote,
    /// A quotation mark: text follows
    Quoted,
}

impl<'t> Template<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Template<'t>> {
        if text.len() > TEMPLATE_BYTES_MAX {
            return Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("a number template may have {TEMPLATE_BYTES_MAX} bytes"),
            ));
        }
        let mut template = Template::default();
        let mut rest = text;
        while !rest.is_empty() {
            match pattern_at(rest) {
                Some((written, Pattern::Quoted)) => rest = template.take_quoted(&rest[written.len()..]),
                Some((written, Pattern::Quote)) => {
                    template.pieces.push(Piece::Literal(&written[1..]));
                    rest = &rest[written.len()..];
                }
                Some((written, pattern)) => {
                    let piece = template.take(pattern, written.as_bytes()[0].is_ascii_uppercase())?;
                    template.pieces.push(piece);
                    rest = &rest[written.len()..];
                }
                None => rest = template.take_literal(rest),
            }
        }
        template.whole += template.shift;
        if template.anchor == Some(Anchor::Before)
            && template.places_before_sign == template.whole
            && !template.plus
            && !template.minus
        {
            template.anchor = Some(Anchor::After);
        }
        Ok(template)
    }

    /// Takes the first character as it is; what follows it.
    fn take_literal(&mut self, text: &'t str) -> &'t str {
        let length = text.chars().next().map_or(0, char::len_utf8);
        let (literal, rest) = text.split_at(length);
        self.pieces.push(Piece::Literal(literal));
        rest
    }

    /// Takes text up to the next quotation mark, in which a backslash makes the next character plain; what follows it.
    fn take_quoted(&mut self, text: &'t str) -> &'t str {
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('"') {
                return after;
            }
            if rest.len() > 1 && rest.starts_with('\\') {
                rest = &rest[1..];
            }
            rest = self.take_literal(rest);
        }
        rest
    }

    /// Takes a pattern: what it says about the whole, and its piece.
    fn take(&mut self, pattern: Pattern, upper: bool) -> Result<Piece<'t>> {
        if self.scientific && pattern != Pattern::Scientific {
            return Err(conflict("\"EEEE\" must be the last pattern used"));
        }
        Ok(match pattern {
            Pattern::Group => Piece::Group,
            Pattern::Point => {
                if self.point {
                    return Err(conflict("multiple decimal points"));
                }
                if self.shifted {
                    return Err(conflict("cannot use \"V\" and decimal point together"));
                }
                self.point = true;
                Piece::Point
            }
            Pattern::Nine => {
                if self.brackets {
                    return Err(conflict("\"9\" must be ahead of \"PR\""));
                }
                match (self.shifted, self.point) {
                    (true, _) => self.shift += 1,
                    (false, true) => self.fraction += 1,
                    (false, false) => self.whole += 1,
                }
                Piece::Nine
            }
            Pattern::Zero => {
                if self.brackets {
                    return Err(conflict("\"0\" must be ahead of \"PR\""));
                }
                if self.point {
                    self.fraction += 1;
                } else {
                    self.first_zero.get_or_insert(self.whole);
                    self.whole += 1;
                }
                self.last_zero = self.whole + self.fraction;
                Piece::Zero
            }
            Pattern::Blank => {
                self.blank |= self.whole == 0 && self.fraction == 0 && self.first_zero.is_none();
                Piece::Silent
            }
            Pattern::Nothing => Piece::Silent,
            Pattern::Fill => {
                self.fill = true;
                Piece::Silent
            }
            Pattern::Currency => Piece::Currency,
            Pattern::Ordinal => Piece::Ordinal { upper },
            Pattern::Roman => {
                self.roman = true;
                Piece::Roman { upper }
            }
            Pattern::Shift => {
                if self.point {
                    return Err(conflict("cannot use \"V\" and decimal point together"));
                }
                self.shifted = true;
                Piece::Shift
            }
            Pattern::Sign | Pattern::Minus | Pattern::Plus | Pattern::EitherSign | Pattern::Brackets => {
                self.take_sign(pattern)?
            }
            Pattern::Scientific => {
                self.take_scientific()?;
                Piece::Silent
            }
            Pattern::Quote | Pattern::Quoted => Piece::Silent,
        })
    }

    fn take_sign(&mut self, pattern: Pattern) -> Result<Piece<'t>> {
        let anchored = self.anchor.is_some();
        Ok(match pattern {
            Pattern::Sign => {
                if anchored {
                    return Err(conflict("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.brackets {
                    return Err(conflict(
                        "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together",
                    ));
                }
                self.places_before_sign = self.whole;
                self.anchor = Some(if self.point { Anchor::After } else { Anchor::Before });
                Piece::Silent
            }
            Pattern::Minus if anchored => return Err(conflict("cannot use \"S\" and \"MI\" together")),
            Pattern::Minus => {
                self.minus = true;
                Piece::Minus
            }
            Pattern::Plus if anchored => return Err(conflict("cannot use \"S\" and \"PL\" together")),
            Pattern::Plus => {
                self.plus = true;
                Piece::Plus
            }
            Pattern::EitherSign if anchored => {
                return Err(conflict("cannot use \"S\" and \"SG\" together"));
            }
            Pattern::EitherSign => {
                (self.minus, self.plus) = (true, true);
                Piece::EitherSign
            }
            _ => {
                if anchored || self.plus || self.minus {
                    return Err(conflict(
                        "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together",
                    ));
                }
                self.brackets = true;
                Piece::Silent
            }
        })
    }

    fn take_scientific(&mut self) -> Result<()> {
        if self.scientific {
            return Err(conflict("cannot use \"EEEE\" twice"));
        }
        let signed = self.anchor.is_some() || self.brackets || self.minus || self.plus;
        if signed || self.blank || self.fill || self.roman || self.shifted {
            return Err(conflict("\"EEEE\" is incompatible with other formats")
                .with_detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
        }
        self.scientific = true;
        Ok(())
    }
}

/// The pattern that a text begins with, as it is written there. A pattern is all capitals or all small letters.
fn pattern_at(text: &str) -> Option<(&str, Pattern)> {
    PATTERNS.iter().find_map(|(name, pattern)| {
        let written = text.get(..name.len())?;
        let small = || {
            name.bytes()
                .map(|byte| byte.to_ascii_lowercase())
                .eq(written.bytes())
        };
        (*name == written || small()).then_some((written, *pattern))
    })
}

#[cold]
fn conflict(message: &'static str) -> EngineError {
    EngineError::new(SqlState::SYNTAX_ERROR, message)
}
