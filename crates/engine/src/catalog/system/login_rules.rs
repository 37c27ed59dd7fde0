//! `pg_hba_file_rules`: the lines of `pg_hba.conf` as it is now, with the fault of each that is not understood.

use super::Sources;
use super::rows::{NULL, Rows, int4, texts};
use clearway_sql::value::Value;

/// `pg_hba_file_rules`
pub(super) fn lines(sources: &Sources<'_>, rows: &mut Rows) {
    let text = |text: Option<String>| text.map_or(NULL, Value::text);
    for (number, line) in (sources.login_rules)() {
        let (rule, error) = match line {
            Ok(rule) => (Some(rule), None),
            Err(error) => (None, Some(error)),
        };
        let list = |words: Option<Vec<String>>| words.map_or(NULL, |words| texts(words.into_iter()));
        let (databases, users, options) = match &rule {
            Some(rule) => {
                let options = (!rule.options.is_empty()).then(|| rule.options.clone());
                (Some(rule.databases.clone()), Some(rule.users.clone()), options)
            }
            None => (None, None, None),
        };
        rows.push([
            ("line_number", int4(number.cast_signed())),
            ("type", rule.as_ref().map_or(NULL, |rule| Value::text(rule.kind))),
            ("database", list(databases)),
            ("user_name", list(users)),
            (
                "address",
                text(rule.as_ref().and_then(|rule| rule.address.clone())),
            ),
            ("netmask", text(rule.as_ref().and_then(|rule| rule.mask.clone()))),
            (
                "auth_method",
                rule.as_ref().map_or(NULL, |rule| Value::text(rule.method)),
            ),
            ("options", list(options)),
            ("error", text(error)),
        ]);
    }
}
