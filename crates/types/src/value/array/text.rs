//! The text form of arrays: `{1,2,NULL,"a b"}`, `[0:1]={1,2}`; of vectors: `1 2`.

use crate::error::{EngineError, Result, SqlState, shown};
use crate::value::array::{ArrayValue, DIMENSIONS_MAX, Dimension, check_dimensions, too_many_dimensions};
use crate::value::{DataType, Value, is_space};

/// Appends a value's text form.
type Encode = fn(&Value, &mut String);

/// Appends the text form of an array.
pub(in crate::value) fn encode_array_text(array: &ArrayValue, encode_text: Encode, out: &mut String) {
    if !matches!(array.data_type(), DataType::Array(_)) {
        return encode_vector(array, encode_text, out);
    }
    let dimensions = array.dimensions();
    if dimensions.is_empty() {
        return out.push_str("{}");
    }
    if dimensions.iter().any(|dimension| dimension.lower != 1) {
        for dimension in dimensions {
            out.push_str(&format!("[{}:{}]", dimension.lower, dimension.upper()));
        }
        out.push('=');
    }
    // The numbers of elements that the parts in each dimension have.
    let mut strides = vec![1usize];
    for dimension in dimensions.iter().rev() {
        strides.push(strides[strides.len() - 1] * dimension.length as usize);
    }
    strides.remove(0);
    let quoted = may_need_quotes(array.element_type());
    let mut written = String::new();
    for (at, element) in array.elements().iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        strides
            .iter()
            .filter(|stride| at.is_multiple_of(**stride))
            .for_each(|_| out.push('{'));
        match element {
            Value::Null => out.push_str("NULL"),
            element if quoted => {
                written.clear();
                encode_text(element, &mut written);
                push_element(&written, out);
            }
            element => encode_text(element, out),
        }
        strides
            .iter()
            .filter(|stride| (at + 1).is_multiple_of(**stride))
            .for_each(|_| out.push('}'));
    }
}

/// False for types of whose values none needs quotes.
fn may_need_quotes(element_type: DataType) -> bool {
    !matches!(
        element_type,
        DataType::Bool | DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Oid
    )
}

fn encode_vector(array: &ArrayValue, encode_text: Encode, out: &mut String) {
    for (at, element) in array.elements().iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        if !element.is_null() {
            encode_text(element, out);
        }
    }
}

/// Appends an element's text, in quotes where it would be read as something else.
fn push_element(text: &str, out: &mut String) {
    let special = |character: char| matches!(character, '"' | '\\' | '{' | '}' | ',') || is_space(character);
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(special) {
        return out.push_str(text);
    }
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

/// Reads the text form of an array of this type, each of its elements by `decode`.
pub(in crate::value) fn decode_array_text(
    text: &str,
    data_type: DataType,
    decode: &mut dyn FnMut(&str) -> Result<Value>,
) -> Result<ArrayValue> {
    if !matches!(data_type, DataType::Array(_)) {
        let words = text.split(is_space).filter(|word| !word.is_empty());
        return ArrayValue::of(data_type, words.map(decode).collect::<Result<_>>()?);
    }
    let (declared, braces) = bounds(text)?;
    let mut reader = Reader::new(text, braces);
    reader.read(decode)?;
    let Reader {
        lengths, elements, ..
    } = reader;
    let lengths = if elements.is_empty() { Vec::new() } else { lengths };
    let dimensions = match declared {
        None => lengths
            .iter()
            .map(|length| Dimension {
                lower: 1,
                length: *length,
            })
            .collect(),
        Some(declared) => {
            if !declared.iter().map(|dimension| dimension.length).eq(lengths) {
                return Err(malformed(
                    text,
                    "Specified array dimensions do not match array contents.",
                ));
            }
            declared
        }
    };
    check_dimensions(&dimensions)?;
    ArrayValue::new(data_type, dimensions, elements)
}

#[cold]
fn malformed(text: &str, detail: impl Into<String>) -> EngineError {
    EngineError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed array literal: \"{}\"", shown(text)),
    )
    .with_detail(detail)
}

/// The dimensions in front of the braces, if they are written, and the place of the first brace.
fn bounds(text: &str) -> Result<(Option<Vec<Dimension>>, usize)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let blanks = |at: &mut usize| {
        while bytes.get(*at).is_some_and(|byte| is_space(char::from(*byte))) {
            *at += 1;
        }
    };
    let number = |at: &mut usize, missing: &str| {
        let start = *at;
        while bytes
            .get(*at)
            .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+'))
        {
            *at += 1;
        }
        if *at == start {
            return Err(malformed(text, missing));
        }
        text[start..*at].parse::<i32>().map_err(|_| {
            EngineError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "array bound is out of integer range",
            )
        })
    };
    let mut dimensions = Vec::new();
    loop {
        blanks(&mut at);
        if bytes.get(at) != Some(&b'[') {
            break;
        }
        at += 1;
        if dimensions.len() >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(dimensions.len() + 1));
        }
        let first = number(
            &mut at,
            "\"[\" must introduce explicitly-specified array dimensions.",
        )?;
        let (lower, upper) = match bytes.get(at) {
            Some(b':') => {
                at += 1;
                (first, number(&mut at, "Missing array dimension value.")?)
            }
            _ => (1, first),
        };
        if bytes.get(at) != Some(&b']') {
            return Err(malformed(text, "Missing \"]\" after array dimensions."));
        }
        at += 1;
        if upper < lower {
            return Err(EngineError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "upper bound cannot be less than lower bound",
            ));
        }
        let length = i32::try_from(i64::from(upper) - i64::from(lower) + 1);
        let length = length.map_err(|_| super::too_large())?;
        dimensions.push(Dimension { lower, length });
    }
    if dimensions.is_empty() {
        if bytes.get(at) != Some(&b'{') {
            return Err(malformed(
                text,
                "Array value must start with \"{\" or dimension information.",
            ));
        }
        return Ok((None, at));
    }
    if bytes.get(at) != Some(&b'=') {
        return Err(malformed(text, "Missing \"=\" after array dimensions."));
    }
    at += 1;
    blanks(&mut at);
    if bytes.get(at) != Some(&b'{') {
        return Err(malformed(text, "Array contents must start with \"{\"."));
    }
    Ok((Some(dimensions), at))
}

/// The place of the reader: what it has read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Nothing,
    LevelStarted,
    ElementStarted,
    QuotedStarted,
    QuotedCompleted,
    ElementDelimited,
    LevelCompleted,
    LevelDelimited,
}

/// Reads braces and what is in them, one character after the other.
struct Reader<'t> {
    text: &'t str,
    rest: std::str::Chars<'t>,
    state: State,
    /// The element that is being read, its quotes and escapes taken off.
    element: String,
    /// The end of it without the blanks behind it.
    element_end: usize,
    /// True if a quote or an escape was part of it: then it is not NULL.
    was_quoted: bool,
    /// The parts read so far of each level that is open.
    open: Vec<i32>,
    /// The parts of each level, once one of them was closed.
    lengths: Vec<i32>,
    elements: Vec<Value>,
    /// The number of levels around the elements read so far.
    depth: Option<usize>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, start: usize) -> Reader<'t> {
        Reader {
            text,
            rest: text[start..].chars(),
            state: State::Nothing,
            element: String::new(),
            element_end: 0,
            was_quoted: false,
            open: Vec::new(),
            lengths: Vec::new(),
            elements: Vec::new(),
            depth: None,
        }
    }

    fn malformed(&self, detail: impl Into<String>) -> EngineError {
        malformed(self.text, detail)
    }

    fn unexpected(&self, character: char) -> EngineError {
        self.malformed(format!("Unexpected \"{character}\" character."))
    }

    fn read(&mut self, decode: &mut dyn FnMut(&str) -> Result<Value>) -> Result<()> {
        use State::*;
        loop {
            let Some(character) = self.rest.next() else {
                return Err(self.malformed("Unexpected end of input."));
            };
            let quoted = self.state == QuotedStarted;
            match character {
                '\\' => {
                    if !matches!(
                        self.state,
                        LevelStarted | ElementStarted | QuotedStarted | ElementDelimited
                    ) {
                        return Err(self.unexpected('\\'));
                    }
                    if !quoted {
                        self.state = ElementStarted;
                    }
                    let Some(escaped) = self.rest.next() else {
                        return Err(self.malformed("Unexpected end of input."));
                    };
                    self.was_quoted = true;
                    self.element.push(escaped);
                    self.element_end = self.element.len();
                }
                '"' => {
                    if !matches!(self.state, LevelStarted | QuotedStarted | ElementDelimited) {
                        return Err(self.malformed("Unexpected array element."));
                    }
                    self.was_quoted = true;
                    self.state = if quoted { QuotedCompleted } else { QuotedStarted };
                }
                _ if quoted => {
                    self.element.push(character);
                    self.element_end = self.element.len();
                }
                '{' => self.open_level()?,
                '}' => {
                    self.close_level(decode)?;
                    if self.open.is_empty() {
                        break;
                    }
                }
                ',' => {
                    self.state = match self.state {
                        LevelCompleted => LevelDelimited,
                        ElementStarted | QuotedCompleted => {
                            self.complete(decode)?;
                            ElementDelimited
                        }
                        _ => return Err(self.unexpected(',')),
                    };
                }
                blank if is_space(blank) => {
                    if self.state == ElementStarted {
                        self.element.push(blank);
                    }
                }
                other => {
                    if !matches!(self.state, LevelStarted | ElementStarted | ElementDelimited) {
                        return Err(self.malformed("Unexpected array element."));
                    }
                    self.state = ElementStarted;
                    self.element.push(other);
                    self.element_end = self.element.len();
                }
            }
        }
        if !self.rest.as_str().chars().all(is_space) {
            return Err(self.malformed("Junk after closing right brace."));
        }
        Ok(())
    }

    fn open_level(&mut self) -> Result<()> {
        if !matches!(
            self.state,
            State::Nothing | State::LevelStarted | State::LevelDelimited
        ) {
            return Err(self.unexpected('{'));
        }
        if self.open.len() >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(self.open.len() + 1));
        }
        if let Some(parts) = self.open.last_mut() {
            *parts += 1;
        }
        self.open.push(0);
        self.state = State::LevelStarted;
        Ok(())
    }

    fn close_level(&mut self, decode: &mut dyn FnMut(&str) -> Result<Value>) -> Result<()> {
        match self.state {
            State::ElementStarted | State::QuotedCompleted => self.complete(decode)?,
            State::LevelCompleted => {}
            State::LevelStarted if self.open.len() == 1 => {}
            _ => return Err(self.unexpected('}')),
        }
        self.state = State::LevelCompleted;
        let level = self.open.len() - 1;
        let parts = self.open.pop().unwrap_or(0);
        if self.lengths.len() <= level {
            self.lengths.resize(level + 1, 0);
        }
        if self.lengths[level] != 0 && self.lengths[level] != parts {
            return Err(
                self.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
            );
        }
        self.lengths[level] = parts;
        Ok(())
    }

    /// The element that ends here.
    fn complete(&mut self, decode: &mut dyn FnMut(&str) -> Result<Value>) -> Result<()> {
        let depth = self.open.len();
        if *self.depth.get_or_insert(depth) != depth {
            return Err(
                self.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
            );
        }
        if let Some(parts) = self.open.last_mut() {
            *parts += 1;
        }
        let text = &self.element[..self.element_end];
        let value = match !self.was_quoted && text.eq_ignore_ascii_case("null") {
            true => Value::Null,
            false => decode(text)?,
        };
        self.elements.push(value);
        self.element.clear();
        self.element_end = 0;
        self.was_quoted = false;
        Ok(())
    }
}
