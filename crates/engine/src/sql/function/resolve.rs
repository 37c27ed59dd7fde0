//! Functions by name and by the types of their arguments.

use crate::sql::common_type::common_type;
use crate::sql::function::{Function, math, recovery};
use crate::value::{Category, DataType};

/// A function found by name: what it is, what its arguments become, what it gives.
pub struct Signature {
    /// The function.
    pub function: Function,
    /// The types its arguments are converted to.
    pub arguments: Vec<DataType>,
    /// Its result's type.
    pub result: DataType,
}

/// The function of this name for arguments of these types. `None`: there is no such function.
pub fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    use DataType::*;
    let fixed = |function, wanted: &[DataType], result| {
        (wanted.len() == arguments.len()).then(|| Signature {
            function,
            arguments: wanted.to_vec(),
            result,
        })
    };
    let numeric = |function| {
        let first = *arguments.first()?;
        let kind = if first == Unknown { Float8 } else { first };
        (arguments.len() == 1 && kind.category() == Category::Numeric).then(|| Signature {
            function,
            arguments: vec![kind],
            result: kind,
        })
    };
    match name {
        "version" => fixed(Function::Version, &[], Text),
        "now" | "transaction_timestamp" | "current_timestamp" => fixed(Function::Now, &[], TimestampTz),
        "statement_timestamp" => fixed(Function::StatementTimestamp, &[], TimestampTz),
        "clock_timestamp" => fixed(Function::ClockTimestamp, &[], TimestampTz),
        "current_date" => fixed(Function::CurrentDate, &[], Date),
        "localtimestamp" => fixed(Function::LocalTimestamp, &[], Timestamp),
        "current_database" | "current_catalog" => fixed(Function::CurrentDatabase, &[], Name),
        "current_schema" => fixed(Function::CurrentSchema, &[], Name),
        "current_user" | "session_user" | "user" | "current_role" => fixed(Function::CurrentUser, &[], Name),
        "pg_backend_pid" => fixed(Function::BackendPid, &[], Int4),
        "current_setting" if arguments.len() == 2 => fixed(Function::CurrentSetting, &[Text, Bool], Text),
        "current_setting" => fixed(Function::CurrentSetting, &[Text], Text),
        "set_config" => fixed(Function::SetConfig, &[Text, Text, Bool], Text),
        "pg_advisory_unlock_all" => fixed(Function::AdvisoryUnlockAll, &[], Text),
        "random" => fixed(Function::Random, &[], Float8),
        "abs" => numeric(Function::Abs),
        "mod" if arguments.len() == 2 => {
            let kind = common_type(arguments)?;
            (kind.category() == Category::Numeric && !kind.is_float()).then(|| Signature {
                function: Function::Mod,
                arguments: vec![kind, kind],
                result: kind,
            })
        }
        "length" | "char_length" | "character_length" => fixed(Function::Length, &[Text], Int4),
        "lower" => fixed(Function::Lower, &[Text], Text),
        "upper" => fixed(Function::Upper, &[Text], Text),
        "floor" => rounding(Function::Floor, arguments),
        "ceil" | "ceiling" => rounding(Function::Ceil, arguments),
        "round" if arguments.len() == 2 => fixed(Function::Round, &[Numeric, Int4], Numeric),
        "round" => rounding(Function::Round, arguments),
        "to_char" if arguments.len() == 2 => {
            let kind = match arguments[0] {
                // As in PostgreSQL, where no to_char takes it and a double is what numbers turn into.
                Int2 => Float8,
                kind @ (Int4 | Int8 | Numeric | Float4 | Float8) => kind,
                _ => return None,
            };
            fixed(Function::ToChar, &[kind, Text], Text)
        }
        "to_number" => fixed(Function::ToNumber, &[Text, Text], Numeric),
        "repeat" => fixed(Function::Repeat, &[Text, Int4], Text),
        "pg_sleep" => fixed(Function::Sleep, &[Float8], Text),
        "concat" if !arguments.is_empty() => Some(Signature {
            function: Function::Concat,
            arguments: arguments.iter().map(|argument| output_type(*argument)).collect(),
            result: Text,
        }),
        "nullif" if arguments.len() == 2 => {
            let kind = common_type(arguments)?;
            // The result is the first argument as it was; integers need no conversion to be compared.
            let integers = arguments.iter().all(|argument| argument.is_integer());
            let (kind, converted) = match arguments {
                _ if integers => (kind, arguments.to_vec()),
                // A real stays one, and is compared with any other number as a double.
                [Float4, Float4 | Unknown] | [Unknown, Float4] => (kind, vec![Float4; 2]),
                [Float4, _] => (Float8, vec![Float4, Float8]),
                [_, Float4] => (Float8, vec![Float8; 2]),
                _ => (kind, vec![kind; 2]),
            };
            Some(Signature {
                function: Function::NullIf(kind),
                result: converted[0],
                arguments: converted,
            })
        }
        "coalesce" | "greatest" | "least" if !arguments.is_empty() => {
            let kind = common_type(arguments)?;
            let function = match name {
                "coalesce" => Function::Coalesce,
                "greatest" => Function::Greatest(kind),
                _ => Function::Least(kind),
            };
            Some(Signature {
                function,
                arguments: vec![kind; arguments.len()],
                result: kind,
            })
        }
        _ if name.starts_with("pg_") => {
            let (function, types, result) = recovery::resolve(name, arguments.len())?;
            fixed(Function::Recovery(function), types, result)
        }
        _ => {
            let (function, arguments, result) = math::resolve(name, arguments)?;
            Some(Signature {
                function: Function::Math(function),
                arguments,
                result,
            })
        }
    }
}

fn rounding(function: Function, arguments: &[DataType]) -> Option<Signature> {
    let [argument] = arguments else { return None };
    let kind = match argument {
        DataType::Numeric => DataType::Numeric,
        other if other.category() == Category::Numeric => DataType::Float8,
        DataType::Unknown => DataType::Float8,
        _ => return None,
    };
    Some(Signature {
        function,
        arguments: vec![kind],
        result: kind,
    })
}

/// The type that `concat` takes a value in: it writes values as a result is written, and two types have another text
/// there than `::text` gives.
fn output_type(argument: DataType) -> DataType {
    match argument {
        DataType::Bool | DataType::Char => argument,
        _ => DataType::Text,
    }
}
