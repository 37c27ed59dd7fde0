//! The names of functions' arguments, by which a call may give them: `make_date(year => 2026, month => 11, day => 29)`.

/// Functions and the names of their arguments, in order. Of functions of one name with several numbers of arguments, those
/// of the longest list, whose beginnings the others have.
#[rustfmt::skip]
static NAMES: &[(&str, &[&str])] = &[
    ("json_populate_record", &["base", "from_json", "use_json_as_text"]),
    ("json_populate_recordset", &["base", "from_json", "use_json_as_text"]),
    ("jsonb_insert", &["jsonb_in", "path", "replacement", "insert_after"]),
    ("jsonb_path_exists", &["target", "path", "vars", "silent"]),
    ("jsonb_path_exists_tz", &["target", "path", "vars", "silent"]),
    ("jsonb_path_match", &["target", "path", "vars", "silent"]),
    ("jsonb_path_match_tz", &["target", "path", "vars", "silent"]),
    ("jsonb_path_query", &["target", "path", "vars", "silent"]),
    ("jsonb_path_query_array", &["target", "path", "vars", "silent"]),
    ("jsonb_path_query_array_tz", &["target", "path", "vars", "silent"]),
    ("jsonb_path_query_first", &["target", "path", "vars", "silent"]),
    ("jsonb_path_query_first_tz", &["target", "path", "vars", "silent"]),
    ("jsonb_path_query_tz", &["target", "path", "vars", "silent"]),
    ("jsonb_set", &["jsonb_in", "path", "replacement", "create_if_missing"]),
    ("jsonb_set_lax", &["jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"]),
    ("make_date", &["year", "month", "day"]),
    ("make_time", &["hour", "min", "sec"]),
    ("make_timestamp", &["year", "month", "mday", "hour", "min", "sec"]),
    ("make_timestamptz", &["year", "month", "mday", "hour", "min", "sec", "timezone"]),
    ("parse_ident", &["str", "strict"]),
    ("pg_terminate_backend", &["pid", "timeout"]),
];

/// The names of the arguments of the function of this name; `None` if they have none.
pub fn argument_names(function: &str) -> Option<&'static [&'static str]> {
    let found = NAMES.binary_search_by_key(&function, |(name, _)| name).ok()?;
    Some(NAMES[found].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(NAMES.is_sorted_by_key(|(name, _)| name));
    }
}
