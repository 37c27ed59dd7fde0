//! Errors in the form a PostgreSQL client acts on: a SQLSTATE, a message, and where they help a detail, a hint and a
//! position in the statement's text.

use std::borrow::Cow;
use std::fmt;

/// A result whose error can be sent to a client.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// A five-character SQLSTATE code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState([u8; 5]);

macro_rules! sqlstates {
    ($($(#[$doc:meta])* $name:ident = $code:literal),* $(,)?) => {
        impl SqlState {
            $($(#[$doc])* pub const $name: SqlState = SqlState(*$code);)*
        }
    };
}

sqlstates! {
    /// Not an error (notices, warnings without a class of their own).
    SUCCESS = b"00000",
    /// A warning: something asked for has no effect.
    WARNING = b"01000",
    /// The peer broke the protocol.
    PROTOCOL_VIOLATION = b"08P01",
    /// The statement is outside what this engine does.
    FEATURE_NOT_SUPPORTED = b"0A000",
    /// A sub-query or call gave more than one row, or similar.
    CARDINALITY_VIOLATION = b"21000",
    /// A string does not fit its declared length.
    STRING_DATA_RIGHT_TRUNCATION = b"22001",
    /// NULL where a function does not allow it.
    NULL_VALUE_NOT_ALLOWED = b"22004",
    /// A number does not fit its type.
    NUMERIC_VALUE_OUT_OF_RANGE = b"22003",
    /// A string is no date or time.
    INVALID_DATETIME_FORMAT = b"22007",
    /// A date or time has a field out of range.
    DATETIME_FIELD_OVERFLOW = b"22008",
    /// An offset from Greenwich is out of range.
    INVALID_TIME_ZONE_DISPLACEMENT = b"22009",
    /// A part of a string with a negative length.
    SUBSTRING_ERROR = b"22011",
    /// A division by zero.
    DIVISION_BY_ZERO = b"22012",
    /// A text that is no regular expression.
    INVALID_REGULAR_EXPRESSION = b"2201B",
    /// The logarithm of zero or of a negative number.
    INVALID_ARGUMENT_FOR_LOGARITHM = b"2201E",
    /// A power or a root that is no real number.
    INVALID_ARGUMENT_FOR_POWER = b"2201F",
    /// Bounds or a count that make no buckets.
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET = b"2201G",
    /// A bad row count in LIMIT.
    INVALID_ROW_COUNT_IN_LIMIT = b"2201W",
    /// A bad row count in OFFSET.
    INVALID_ROW_COUNT_IN_OFFSET = b"2201X",
    /// Bytes that are no valid text in the server's encoding.
    CHARACTER_NOT_IN_REPERTOIRE = b"22021",
    /// A parameter of a statement or function is unusable.
    INVALID_PARAMETER_VALUE = b"22023",
    /// An escape sequence is incomplete.
    INVALID_ESCAPE_SEQUENCE = b"22025",
    /// A string is not a value of the wanted type.
    INVALID_TEXT_REPRESENTATION = b"22P02",
    /// A number of elements does not fit an array.
    ARRAY_ELEMENT_ERROR = b"2202E",
    /// An array's subscript, bound or dimension does not fit.
    ARRAY_SUBSCRIPT_ERROR = b"2202E",
    /// A value is not one that an operation takes.
    DATA_EXCEPTION = b"22000",
    /// Binary data is not a value of the wanted type.
    INVALID_BINARY_REPRESENTATION = b"22P03",
    /// A line of COPY data is malformed.
    BAD_COPY_FILE_FORMAT = b"22P04",
    /// NULL where a column does not allow it.
    NOT_NULL_VIOLATION = b"23502",
    /// A CHECK constraint is false of a row.
    CHECK_VIOLATION = b"23514",
    /// A key that must be unique is there already.
    UNIQUE_VIOLATION = b"23505",
    /// A row names none of the referenced table, or is named still.
    FOREIGN_KEY_VIOLATION = b"23503",
    /// A cursor or portal is in the wrong state.
    INVALID_CURSOR_STATE = b"24000",
    /// The statement is not allowed inside (or outside) a transaction.
    ACTIVE_SQL_TRANSACTION = b"25001",
    /// A write in a read-only transaction.
    READ_ONLY_SQL_TRANSACTION = b"25006",
    /// No transaction is open.
    NO_ACTIVE_SQL_TRANSACTION = b"25P01",
    /// The transaction has failed; only its end is accepted.
    IN_FAILED_SQL_TRANSACTION = b"25P02",
    /// A transaction's client was silent for too long.
    IDLE_IN_TRANSACTION_SESSION_TIMEOUT = b"25P03",
    /// No such prepared statement.
    INVALID_SQL_STATEMENT_NAME = b"26000",
    /// The client may not connect.
    INVALID_AUTHORIZATION_SPECIFICATION = b"28000",
    /// Something still depends on the object.
    DEPENDENT_OBJECTS_STILL_EXIST = b"2BP01",
    /// No such cursor or portal.
    INVALID_CURSOR_NAME = b"34000",
    /// No such schema.
    INVALID_SCHEMA_NAME = b"3F000",
    /// Rolled back because of a concurrent change; try again.
    SERIALIZATION_FAILURE = b"40001",
    /// Rolled back as the victim of a deadlock; try again.
    DEADLOCK_DETECTED = b"40P01",
    /// The text is not SQL.
    SYNTAX_ERROR = b"42601",
    /// A window, or a call over one, is malformed.
    WINDOWING_ERROR = b"42P20",
    /// A column is used outside an aggregate and not grouped by.
    GROUPING_ERROR = b"42803",
    /// The types of an expression do not fit.
    DATATYPE_MISMATCH = b"42804",
    /// A type is no candidate for the operation.
    WRONG_OBJECT_TYPE = b"42809",
    /// A value for a column that is always generated.
    GENERATED_ALWAYS = b"428C9",
    /// A foreign key is malformed.
    INVALID_FOREIGN_KEY = b"42830",
    /// A cast that does not exist.
    CANNOT_COERCE = b"42846",
    /// No such function or operator.
    UNDEFINED_FUNCTION = b"42883",
    /// A call fits several functions or operators equally well.
    AMBIGUOUS_FUNCTION = b"42725",
    /// No such column.
    UNDEFINED_COLUMN = b"42703",
    /// No such database.
    INVALID_CATALOG_NAME = b"3D000",
    /// No such table.
    UNDEFINED_TABLE = b"42P01",
    /// No such parameter.
    UNDEFINED_PARAMETER = b"42P02",
    /// No such object.
    UNDEFINED_OBJECT = b"42704",
    /// An object is there already.
    DUPLICATE_OBJECT = b"42710",
    /// A column is named twice.
    DUPLICATE_COLUMN = b"42701",
    /// The name could mean two columns.
    AMBIGUOUS_COLUMN = b"42702",
    /// A prepared statement of that name exists.
    DUPLICATE_PREPARED_STATEMENT = b"42P05",
    /// A table or index of that name exists.
    DUPLICATE_TABLE = b"42P07",
    /// A cursor of that name exists.
    DUPLICATE_CURSOR = b"42P03",
    /// A cursor cannot be declared so.
    INVALID_CURSOR_DEFINITION = b"42P11",
    /// An ORDER BY or DISTINCT list does not fit the select list.
    INVALID_COLUMN_REFERENCE = b"42P10",
    /// An object's definition makes no sense.
    INVALID_OBJECT_DEFINITION = b"42P17",
    /// A row does not satisfy WITH CHECK OPTION.
    WITH_CHECK_OPTION_VIOLATION = b"44000",
    /// A table definition makes no sense.
    INVALID_TABLE_DEFINITION = b"42P16",
    /// A parameter is used as two types.
    AMBIGUOUS_PARAMETER = b"42P08",
    /// The type of a parameter cannot be determined.
    INDETERMINATE_DATATYPE = b"42P18",
    /// The disk is full.
    DISK_FULL = b"53100",
    /// Out of memory.
    OUT_OF_MEMORY = b"53200",
    /// All session slots are taken.
    TOO_MANY_CONNECTIONS = b"53300",
    /// A statement or row exceeds a fixed limit.
    PROGRAM_LIMIT_EXCEEDED = b"54000",
    /// A statement nests deeper than allowed.
    STATEMENT_TOO_COMPLEX = b"54001",
    /// A table has more columns than allowed.
    TOO_MANY_COLUMNS = b"54011",
    /// The server is not in the state that this needs.
    OBJECT_NOT_IN_PREREQUISITE_STATE = b"55000",
    /// The object is in use.
    OBJECT_IN_USE = b"55006",
    /// A lock is not available at once.
    LOCK_NOT_AVAILABLE = b"55P03",
    /// Cancelled by the user.
    QUERY_CANCELED = b"57014",
    /// A session's client was silent for too long.
    IDLE_SESSION_TIMEOUT = b"57P05",
    /// The server is shutting down.
    ADMIN_SHUTDOWN = b"57P01",
    /// The server is not ready to take sessions.
    CANNOT_CONNECT_NOW = b"57P03",
    /// The operating system reported an error.
    IO_ERROR = b"58030",
    /// A setting in a file is wrong.
    CONFIG_FILE_ERROR = b"F0000",
    /// A fault of ours.
    INTERNAL_ERROR = b"XX000",
    /// A file is damaged.
    DATA_CORRUPTED = b"XX001",
}

impl SqlState {
    /// The code of five characters; one of another length becomes `XX000`.
    pub fn from_code(code: &str) -> SqlState {
        match <[u8; 5]>::try_from(code.as_bytes()) {
            Ok(bytes) if bytes.is_ascii() => SqlState(bytes),
            _ => SqlState::INTERNAL_ERROR,
        }
    }

    /// The five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a SQLSTATE is ASCII")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error for the client. One pointer wide, so that a `Result` on a hot path stays small.
#[derive(Clone)]
pub struct EngineError(Box<ErrorBody>);

#[derive(Clone)]
struct ErrorBody {
    sqlstate: SqlState,
    message: Cow<'static, str>,
    detail: Option<String>,
    hint: Option<String>,
    context: Option<String>,
    /// 1-based, counted in characters, as the protocol wants it.
    position: Option<u32>,
    object: Option<Box<ErrorObject>>,
}

/// The object that an error is about, by which applications tell violated constraints apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorObject {
    /// Its schema.
    pub schema: Option<String>,
    /// The table.
    pub table: Option<String>,
    /// The column of the table.
    pub column: Option<String>,
    /// The data type.
    pub data_type: Option<String>,
    /// The constraint, or the index that stands for one.
    pub constraint: Option<String>,
}

/// A construct's text may be as long as the statement: its beginning tells enough.
fn shortened(mut construct: String) -> String {
    const CHARACTERS_MAX: usize = 200;
    if let Some((end, _)) = construct.char_indices().nth(CHARACTERS_MAX) {
        construct.truncate(end);
        construct.push('…');
    }
    construct
}

/// A value in a message: a client may have sent 256 MB of it.
pub fn shown(text: &str) -> &str {
    const BYTES_MAX: usize = 64 << 10;
    &text[..text.floor_char_boundary(BYTES_MAX)]
}

impl EngineError {
    /// An error with this code and message.
    #[cold]
    pub fn new(sqlstate: SqlState, message: impl Into<Cow<'static, str>>) -> EngineError {
        EngineError(Box::new(ErrorBody {
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            context: None,
            position: None,
            object: None,
        }))
    }

    /// 0A000: the named construct is outside what this engine does.
    #[cold]
    pub fn not_supported(construct: impl fmt::Display) -> EngineError {
        EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{} is not supported", shortened(construct.to_string())),
        )
    }

    /// 0A000 for constructs with a name in the plural.
    #[cold]
    pub fn are_not_supported(constructs: impl fmt::Display) -> EngineError {
        EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{} are not supported", shortened(constructs.to_string())),
        )
    }

    /// XX000: something that cannot happen did.
    #[cold]
    pub fn internal(message: impl Into<Cow<'static, str>>) -> EngineError {
        EngineError::new(SqlState::INTERNAL_ERROR, message)
    }

    /// Adds the detail line.
    pub fn with_detail(mut self, detail: impl Into<String>) -> EngineError {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds the hint line.
    pub fn with_hint(mut self, hint: impl Into<String>) -> EngineError {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the place where it happened that no position in a text tells: a line of data.
    pub fn with_context(mut self, context: impl Into<String>) -> EngineError {
        self.0.context = Some(context.into());
        self
    }

    /// Adds the table that it is about.
    pub fn with_table(mut self, schema: &str, table: &str) -> EngineError {
        let object = self.object_mut();
        object.schema = Some(schema.to_owned());
        object.table = Some(table.to_owned());
        self
    }

    /// Adds the column of the table that it is about.
    pub fn with_column(mut self, column: &str) -> EngineError {
        self.object_mut().column = Some(column.to_owned());
        self
    }

    /// Adds the data type that it is about.
    pub fn with_data_type(mut self, schema: &str, data_type: &str) -> EngineError {
        let object = self.object_mut();
        object.schema = Some(schema.to_owned());
        object.data_type = Some(data_type.to_owned());
        self
    }

    /// Adds the constraint that is violated.
    pub fn with_constraint(mut self, constraint: &str) -> EngineError {
        self.object_mut().constraint = Some(constraint.to_owned());
        self
    }

    fn object_mut(&mut self) -> &mut ErrorObject {
        self.0.object.get_or_insert_default()
    }

    /// Adds the position (1-based, in characters) in the text the client sent.
    pub fn with_position(mut self, position: u32) -> EngineError {
        self.0.position = Some(position);
        self
    }

    /// Adds the position unless the error has one or there is none to add.
    pub fn or_position(mut self, position: Option<u32>) -> EngineError {
        if self.0.position.is_none() {
            self.0.position = position;
        }
        self
    }

    /// Takes the position away, of an error that PostgreSQL tells none of.
    pub fn without_position(mut self) -> EngineError {
        self.0.position = None;
        self
    }

    /// The five-character code.
    pub fn sqlstate(&self) -> SqlState {
        self.0.sqlstate
    }

    /// The text of the error.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// More about it, if there is more.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// Advice on what to do about it, if there is any.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The place where it happened, if no position tells it.
    pub fn context(&self) -> Option<&str> {
        self.0.context.as_deref()
    }

    /// The position in the statement's text, 1-based, in characters.
    pub fn position(&self) -> Option<u32> {
        self.0.position
    }

    /// The object that it is about, if it names one.
    pub fn object(&self) -> Option<&ErrorObject> {
        self.0.object.as_deref()
    }

    /// True if the same transaction, run again from its start, may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.0.sqlstate,
            SqlState::SERIALIZATION_FAILURE | SqlState::DEADLOCK_DETECTED
        )
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0.message, self.0.sqlstate.as_str())?;
        if let Some(detail) = &self.0.detail {
            write!(f, "; {detail}")?;
        }
        if let Some(hint) = &self.0.hint {
            write!(f, "; hint: {hint}")?;
        }
        if let Some(context) = &self.0.context {
            write!(f, "; in {context}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineError")
            .field("sqlstate", &self.0.sqlstate)
            .field("message", &self.0.message)
            .field("detail", &self.0.detail)
            .field("hint", &self.0.hint)
            .field("context", &self.0.context)
            .field("position", &self.0.position)
            .field("object", &self.0.object)
            .finish()
    }
}

impl std::error::Error for EngineError {}
