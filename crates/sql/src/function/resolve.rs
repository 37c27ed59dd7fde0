//! Functions by name and by the types of their arguments.

use crate::common_type::common_type;
use crate::function::{Function, array, math, recovery};
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
    if let Some((function, types, result)) = of_session(name, arguments.len()) {
        return fixed(function, types, result);
    }
    if let Some((function, arguments, result)) = array::resolve(name, arguments) {
        return Some(Signature {
            function: Function::Array(function),
            arguments,
            result,
        });
    }
    match name {
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
        "concat" if !arguments.is_empty() => Some(Signature {
            function: Function::Concat,
            arguments: arguments.iter().map(|argument| output_type(*argument)).collect(),
            result: Text,
        }),
        "nullif" | "coalesce" | "greatest" | "least" => choice(name, arguments),
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

/// The functions about the session and the time: that of this name, with the types of its arguments and of its result.
/// `count`: how many arguments there are.
fn of_session(name: &str, count: usize) -> Option<(Function, &'static [DataType], DataType)> {
    use DataType::*;
    Some(match name {
        "version" => (Function::Version, &[], Text),
        "now" | "transaction_timestamp" | "current_timestamp" => (Function::Now, &[], TimestampTz),
        "statement_timestamp" => (Function::StatementTimestamp, &[], TimestampTz),
        "clock_timestamp" => (Function::ClockTimestamp, &[], TimestampTz),
        "current_date" => (Function::CurrentDate, &[], Date),
        "localtimestamp" => (Function::LocalTimestamp, &[], Timestamp),
        "current_database" | "current_catalog" => (Function::CurrentDatabase, &[], Name),
        "current_schema" => (Function::CurrentSchema, &[], Name),
        "current_user" | "session_user" | "user" | "current_role" => (Function::CurrentUser, &[], Name),
        "pg_backend_pid" => (Function::BackendPid, &[], Int4),
        "current_setting" if count == 2 => (Function::CurrentSetting, &[Text, Bool], Text),
        "current_setting" => (Function::CurrentSetting, &[Text], Text),
        "set_config" => (Function::SetConfig, &[Text, Text, Bool], Text),
        "pg_advisory_unlock_all" => (Function::AdvisoryUnlockAll, &[], Text),
        "random" => (Function::Random, &[], Float8),
        "pg_sleep" => (Function::Sleep, &[Float8], Text),
        _ => return None,
    })
}

/// The functions that give one of their arguments, which are brought to one type.
fn choice(name: &str, arguments: &[DataType]) -> Option<Signature> {
    use DataType::*;
    if arguments.is_empty() {
        return None;
    }
    let kind = common_type(arguments)?;
    let function = match name {
        "coalesce" => Function::Coalesce,
        "greatest" => Function::Greatest(kind),
        "least" => Function::Least(kind),
        "nullif" if arguments.len() == 2 => {
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
            return Some(Signature {
                function: Function::NullIf(kind),
                result: converted[0],
                arguments: converted,
            });
        }
        _ => return None,
    };
    Some(Signature {
        function,
        arguments: vec![kind; arguments.len()],
        result: kind,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// EXPLAIN shows a call by the function's name: read again, it is the same function.
    #[test]
    fn a_name_leads_back_to_its_function() {
        use DataType::*;
        let calls: [(&str, &[DataType]); 56] = [
            ("version", &[]),
            ("transaction_timestamp", &[]),
            ("statement_timestamp", &[]),
            ("clock_timestamp", &[]),
            ("current_date", &[]),
            ("localtimestamp", &[]),
            ("current_catalog", &[]),
            ("current_schema", &[]),
            ("session_user", &[]),
            ("pg_backend_pid", &[]),
            ("current_setting", &[Text]),
            ("current_setting", &[Text, Bool]),
            ("set_config", &[Text, Text, Bool]),
            ("pg_advisory_unlock_all", &[]),
            ("random", &[]),
            ("pg_sleep", &[Float8]),
            ("abs", &[Int4]),
            ("mod", &[Int4, Int4]),
            ("char_length", &[Text]),
            ("lower", &[Text]),
            ("upper", &[Text]),
            ("floor", &[Float8]),
            ("ceiling", &[Numeric]),
            ("round", &[Numeric]),
            ("round", &[Numeric, Int4]),
            ("to_char", &[Int4, Text]),
            ("to_number", &[Text, Text]),
            ("repeat", &[Text, Int4]),
            ("concat", &[Text, Bool]),
            ("nullif", &[Text, Text]),
            ("coalesce", &[Int4, Int8]),
            ("greatest", &[Int4, Int4]),
            ("least", &[Int4, Int4]),
            ("pg_is_in_recovery", &[]),
            ("pg_current_wal_flush_lsn", &[]),
            ("pg_current_wal_insert_lsn", &[]),
            ("pg_last_wal_receive_lsn", &[]),
            ("pg_last_wal_replay_lsn", &[]),
            ("pg_last_xact_replay_timestamp", &[]),
            ("pg_wal_lsn_diff", &[Text, Text]),
            ("pg_promote", &[Bool]),
            ("pg_reload_conf", &[]),
            ("dsqrt", &[Float8]),
            ("exp", &[Numeric]),
            ("ln", &[Numeric]),
            ("log10", &[Numeric]),
            ("log", &[Numeric, Numeric]),
            ("pow", &[Float8, Float8]),
            ("sign", &[Numeric]),
            ("trunc", &[Numeric]),
            ("div", &[Numeric, Numeric]),
            ("gcd", &[Int4, Int4]),
            ("lcm", &[Int4, Int4]),
            ("factorial", &[Int8]),
            ("scale", &[Numeric]),
            ("width_bucket", &[Numeric, Numeric, Numeric, Int4]),
        ];
        for (written, types) in calls {
            let found = resolve(written, types).unwrap_or_else(|| panic!("{written}"));
            let shown = found.function.name();
            let again = resolve(shown, types).unwrap_or_else(|| panic!("{shown}"));
            assert_eq!(again.function, found.function, "{written} is shown as {shown}");
        }
    }
}
