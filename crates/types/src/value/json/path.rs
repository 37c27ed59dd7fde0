//! SQL/JSON paths: the type `jsonpath`, and their evaluation.
//!
//! The language is that of the library `sql-json-path`; a value of the type is the path's text as the library writes it. The
//! library's parser and evaluator call themselves for what stands inside something else, so a path's length in
//! operators and brackets is bounded, and both run on a stack for so many levels. The parser also reads what stands in
//! parentheses several times over, to find out what it is: parentheses that only group may be inside one another a few
//! times only, since each more takes more than three times as long.

use sql_json_path::json::{ArrayRef, Cow, Json as PathJson, JsonRef, ObjectRef};
use sql_json_path::{EvalError, JsonPath};

use super::{DEPTH_MAX, Json, Jsonb, JsonbRef, Kind};
use crate::error::{EngineError, Result, SqlState, shown};
use crate::stack;
use crate::value::Numeric;

/// The most operators and brackets of a path.
const PARTS_MAX: usize = 2_000;

/// The most parentheses inside one another that only group.
const GROUPS_MAX: usize = 6;

/// Levels of stack for each of them.
const LEVELS_PER_PART: usize = 8;

/// A path that has been read.
#[derive(Debug)]
pub struct Path {
    path: JsonPath,
    levels: u32,
}

impl Path {
    /// Reads a path; 42601 if it is none.
    pub fn parse(text: &str) -> Result<Path> {
        let (parts, groups) = size_of_path(text);
        if parts > PARTS_MAX || groups > GROUPS_MAX {
            return Err(too_complex());
        }
        let mut levels = parts * LEVELS_PER_PART;
        if text.contains("**") {
            levels += 2 * DEPTH_MAX as usize;
        }
        let levels = levels as u32;
        stack::require_for(levels)?;
        let text = &without_quoted_variables(text);
        let path = stack::with_stack_for(levels, || JsonPath::new(text)).map_err(|_| {
            EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!("invalid jsonpath: \"{}\"", shown(text)),
            )
        })?;
        Ok(Path { path, levels })
    }

    /// Its text.
    pub fn text(&self) -> String {
        stack::with_stack_for(self.levels, || self.path.to_string())
    }

    /// The items that it finds in a value, only the first if so asked. `with_zones`: times with and without a zone are
    /// compared, the latter in UTC.
    pub fn find(
        &self,
        value: JsonbRef<'_>,
        variables: JsonbRef<'_>,
        with_zones: bool,
    ) -> std::result::Result<Vec<Jsonb>, EvalError> {
        stack::with_stack_for(self.levels, || {
            let items = match with_zones {
                true => self.path.query_with_vars_tz(value, variables, utc()),
                false => self.path.query_with_vars(value, variables),
            };
            Ok(items?.into_iter().map(Cow::into_owned).collect())
        })
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        // The tree of a path is dropped as deep as it is.
        if let Ok(empty) = JsonPath::new("$") {
            let path = std::mem::replace(&mut self.path, empty);
            stack::with_stack_for(self.levels, || drop(path));
        }
    }
}

fn utc() -> chrono::FixedOffset {
    chrono::FixedOffset::east_opt(0).expect("zero is in range")
}

/// The number of operators and brackets outside of strings, and the most parentheses inside one another that only group:
/// in front of the others is a name, `?` or `!`.
fn size_of_path(text: &str) -> (usize, usize) {
    let (mut parts, mut quoted, mut escaped) = (0, false, false);
    let mut open: Vec<bool> = Vec::new();
    let (mut groups, mut most, mut before) = (0, 0, b' ');
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' => {
                parts += 1;
                let is_group = !before.is_ascii_alphanumeric() && !matches!(before, b'?' | b'!' | b'_');
                open.push(is_group);
                groups += usize::from(is_group);
                most = most.max(groups);
            }
            b')' => groups -= usize::from(open.pop().unwrap_or(false)),
            b'[' | b'!' | b'+' | b'-' | b'*' | b'/' | b'%' | b'?' | b'&' | b'|' | b'.' => parts += 1,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    (parts, most)
}

#[cold]
fn too_complex() -> EngineError {
    EngineError::new(SqlState::STATEMENT_TOO_COMPLEX, "jsonpath is too complex").with_hint(format!(
        "A path may have {PARTS_MAX} operators and brackets, and {GROUPS_MAX} parentheses inside one another that only group."
    ))
}

/// The text with variables that are named in quotes, as the library writes them, named without, as it reads them.
fn without_quoted_variables(text: &str) -> String {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.chars().all(|part| part == '_' || part.is_alphanumeric())
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(quote) = rest.find('"') {
        let (before, quoted) = rest.split_at(quote);
        let inside = &quoted[1..];
        let end = end_of_string(inside);
        match &inside[..end] {
            name if before.ends_with('$') && end < inside.len() && is_name(name) => {
                out.extend([before, name])
            }
            _ => out.extend([before, &quoted[..(end + 2).min(quoted.len())]]),
        }
        rest = &quoted[(end + 2).min(quoted.len())..];
    }
    out.push_str(rest);
    out
}

/// The place of the quote that ends a string.
fn end_of_string(inside: &str) -> usize {
    let mut escaped = false;
    let end = inside.bytes().position(|byte| match byte {
        _ if escaped => {
            escaped = false;
            false
        }
        b'\\' => {
            escaped = true;
            false
        }
        byte => byte == b'"',
    });
    end.unwrap_or(inside.len())
}

/// The error of an evaluation.
#[cold]
pub fn path_error(error: &EvalError) -> EngineError {
    use EvalError as E;
    let code = match error {
        E::NoKey(_) | E::MemberAccess | E::WildcardMemberAccess => "2203A",
        E::ArrayAccess | E::WildcardArrayAccess | E::SizeNotArray => "22039",
        E::ArrayIndexOutOfBounds | E::ArrayIndexOutOfRange | E::ArrayIndexNotNumeric => "22033",
        E::NoVariable(_) => "42704",
        E::VarsNotObject => "22023",
        E::UnaryOperandNotNumeric(_) => "2203B",
        E::LeftOperandNotNumeric(_) | E::RightOperandNotNumeric(_) | E::ExpectSingleBoolean => "22038",
        E::KeyValueNotObject => "2203C",
        E::DivisionByZero => "22012",
        E::MethodNotNumeric(_) | E::DoubleTypeError | E::NonFiniteNumber(_) | E::InvalidConversion(..) => {
            "22036"
        }
        E::DateTimeTimezoneRequired(..) => "0A000",
        _ => "22031",
    };
    let problem = EngineError::new(SqlState::from_code(code), error.to_string());
    match error {
        E::VarsNotObject => problem
            .with_detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object."),
        E::DateTimeTimezoneRequired(..) => problem.with_hint("Use *_tz() function for time zone support."),
        _ => problem,
    }
}

fn made(tree: &Json) -> Jsonb {
    // A value that the library makes is small; should it not be, it is null.
    Jsonb::of(tree).unwrap_or_else(|_| JsonbRef::null().to_owned())
}

impl PathJson for Jsonb {
    type Borrowed<'a> = JsonbRef<'a>;

    fn as_ref(&self) -> JsonbRef<'_> {
        Jsonb::as_ref(self)
    }

    fn null() -> Jsonb {
        made(&Json::Null)
    }

    fn bool(truth: bool) -> Jsonb {
        made(&Json::Bool(truth))
    }

    fn from_u64(number: u64) -> Jsonb {
        made(&Json::Number(Numeric::new(i128::from(number), 0)))
    }

    fn from_i64(number: i64) -> Jsonb {
        made(&Json::Number(Numeric::from(number)))
    }

    fn from_f64(number: f64) -> Jsonb {
        made(&Json::Number(Numeric::from_f64(number).unwrap_or(Numeric::NAN)))
    }

    fn from_number(number: serde_json::Number) -> Jsonb {
        let number = Numeric::parse(&number.to_string()).unwrap_or(Numeric::NAN);
        made(&Json::Number(number))
    }

    fn from_string(text: &str) -> Jsonb {
        made(&Json::String(text.into()))
    }

    fn object<'a, I: IntoIterator<Item = (&'a str, Jsonb)>>(members: I) -> Jsonb {
        let members = members
            .into_iter()
            .map(|(key, value)| (key.into(), value.as_ref().tree()));
        made(&Json::Object(members.collect()))
    }

    fn borrow<'b, 'a: 'b>(value: JsonbRef<'a>) -> JsonbRef<'b> {
        value
    }
}

impl<'a> JsonRef<'a> for JsonbRef<'a> {
    type Owned = Jsonb;
    type Array = JsonbRef<'a>;
    type Object = JsonbRef<'a>;

    fn to_owned(self) -> Jsonb {
        JsonbRef::to_owned(self)
    }

    fn null() -> JsonbRef<'a> {
        JsonbRef::null()
    }

    fn as_bool(self) -> Option<bool> {
        self.truth()
    }

    fn as_number(self) -> Option<serde_json::Number> {
        self.number()?.to_string().parse().ok()
    }

    fn as_str(self) -> Option<&'a str> {
        self.text()
    }

    fn as_array(self) -> Option<JsonbRef<'a>> {
        (self.kind() == Kind::Array).then_some(self)
    }

    fn as_object(self) -> Option<JsonbRef<'a>> {
        (self.kind() == Kind::Object).then_some(self)
    }

    fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }
}

impl<'a> ArrayRef<'a> for JsonbRef<'a> {
    type JsonRef = JsonbRef<'a>;

    fn len(self) -> usize {
        self.count()
    }

    fn get(self, index: usize) -> Option<JsonbRef<'a>> {
        self.at(index)
    }

    fn list(self) -> Vec<JsonbRef<'a>> {
        self.elements().collect()
    }
}

impl<'a> ObjectRef<'a> for JsonbRef<'a> {
    type JsonRef = JsonbRef<'a>;

    fn len(self) -> usize {
        self.count()
    }

    fn get(self, key: &str) -> Option<JsonbRef<'a>> {
        JsonbRef::get(self, key)
    }

    fn list(self) -> Vec<(&'a str, JsonbRef<'a>)> {
        self.members().collect()
    }

    fn list_value(self) -> Vec<JsonbRef<'a>> {
        self.elements().collect()
    }
}
