//! Each setting on the page of settings, each kind of value, and what a transaction undoes.

use super::definitions::{DEFINITIONS, Definition, Kind};
use super::values::checked;
use super::*;

/// A setting's row on the page, as far as the code knows it.
fn documented(definition: &Definition) -> String {
    let values = match definition.kind {
        Kind::Text => "text".to_owned(),
        Kind::Boolean => "on, off".to_owned(),
        Kind::Integer(least, most) if least == most => format!("{least} only"),
        Kind::Integer(least, most) => format!("{least} to {most}"),
        Kind::Real(least, f64::MAX) => format!("{least} or more"),
        Kind::Real(least, most) => format!("{least} to {most}"),
        Kind::Pages(least, most) => format!("{least} to {most} pages; a bare number is pages"),
        Kind::Milliseconds(_) => "time; a bare number is ms".to_owned(),
        Kind::Kilobytes(least, most) => format!("size, {least}kB to {most}kB; a bare number is kB"),
        Kind::LeastKilobytes => "size; a bare number is kB".to_owned(),
        Kind::Word(words) => words.join(", "),
        Kind::Only(_) => "the default only".to_owned(),
        Kind::ReadOnly => "read only".to_owned(),
    };
    format!("| `{}` | `{}` | {values} |", definition.shown, definition.default)
}

/// docs/settings.md lists every setting with its default and its values, and no others.
#[test]
fn the_page_of_settings_agrees_with_the_code() {
    let page = include_str!("../../../../docs/settings.md");
    let section = page.split("## SQL settings").nth(1).expect("the section");
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    for definition in DEFINITIONS {
        let row = documented(definition);
        let found = rows.iter().filter(|line| line.starts_with(&row)).count();
        assert_eq!(found, 1, "docs/settings.md lacks the row: {row} … |");
    }
    assert_eq!(
        rows.len(),
        DEFINITIONS.len(),
        "a row on docs/settings.md is about no setting"
    );
    let told = rows
        .iter()
        .all(|row| row.split(" | ").nth(3).is_some_and(|effect| effect.len() > 5));
    assert!(told, "each row says what the setting does");
}

/// An accepted value works; the rest is refused with PostgreSQL's codes and texts.
#[test]
fn the_message_about_a_long_value_is_short() {
    let mut settings = Settings::new();
    let long = "ä".repeat(1 << 20);
    for name in [
        "lock_timeout",
        "client_min_messages",
        "datestyle",
        "client_encoding",
        "timezone",
        "lc_monetary",
    ] {
        let Err(error) = settings.set(name, Some(&long), false, true) else {
            panic!("{name} takes it");
        };
        assert!(
            error.message().len() < 66 << 10,
            "{name}: {} bytes",
            error.message().len()
        );
    }
}

#[test]
fn values_out_of_range_or_without_effect_are_refused() {
    let mut settings = Settings::new();
    for (name, value, sqlstate, text) in [
        (
            "statement_timeout",
            "-1",
            "22023",
            "-1 ms is outside the valid range for parameter \"statement_timeout\" (0 .. 2147483647)",
        ),
        (
            "lock_timeout",
            "5parsecs",
            "22023",
            "invalid value for parameter \"lock_timeout\": \"5parsecs\"",
        ),
        (
            "idle_session_timeout",
            "100d",
            "22023",
            "invalid value for parameter \"idle_session_timeout\": \"100d\"",
        ),
        (
            "extra_float_digits",
            "9",
            "22023",
            "9 is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)",
        ),
        (
            "client_min_messages",
            "loud",
            "22023",
            "invalid value for parameter \"client_min_messages\": \"loud\"",
        ),
        (
            "jit",
            "perhaps",
            "22023",
            "parameter \"jit\" requires a Boolean value",
        ),
        (
            "synchronize_seqscans",
            "on",
            "0A000",
            "the value \"on\" of parameter \"synchronize_seqscans\" is not supported",
        ),
        (
            "default_tablespace",
            "fast",
            "0A000",
            "the value \"fast\" of parameter \"default_tablespace\" is not supported",
        ),
        (
            "client_encoding",
            "latin1",
            "0A000",
            "client encoding \"latin1\" is not supported",
        ),
        (
            "server_version",
            "17",
            "55P02",
            "parameter \"server_version\" cannot be changed",
        ),
    ] {
        let error = settings.set(name, Some(value), false, false).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), sqlstate, "{name} = {value}");
        assert_eq!(error.message(), text);
    }
    for (name, value, shown) in [
        ("statement_timeout", "1.5s", "1500ms"),
        ("statement_timeout", "1500us", "2ms"),
        ("client_encoding", "'utf-8'", "UTF8"),
        ("timezone", "+00:00", "+00:00"),
        ("lc_messages", "en_US.UTF-8", "C"),
        ("search_path", "nowhere, public", "nowhere, public"),
        ("log_min_duration_statement", "0.25s", "250ms"),
        ("log_min_duration_statement", "-1", "-1"),
        ("log_temp_files", "2048", "2MB"),
        ("log_temp_files", "-1", "-1"),
        ("log_statement", "DDL", "ddl"),
    ] {
        settings.set(name, Some(value), false, false).unwrap();
        assert_eq!(settings.show(name).unwrap(), shown);
    }
    assert!(settings.search_path.names("joe").eq(["nowhere", "public"]));
    settings.set("search_path", Some(""), false, false).unwrap();
    assert_eq!(settings.search_path.names("joe").count(), 0);
}

#[test]
fn definitions_are_sorted_and_their_defaults_valid() {
    assert!(DEFINITIONS.is_sorted_by(|a, b| a.name < b.name));
    for definition in DEFINITIONS.iter().filter(|d| d.kind != Kind::ReadOnly) {
        assert!(
            checked(definition, definition.default).is_ok(),
            "{}",
            definition.name
        );
    }
}

#[test]
fn a_rollback_undoes_set_and_any_end_undoes_set_local() {
    let mut settings = Settings::new();
    settings
        .set("statement_timeout", Some("5s"), false, false)
        .unwrap();
    settings
        .set("statement_timeout", Some("7s"), false, true)
        .unwrap();
    settings.end_transaction(false);
    assert_eq!(settings.statement_timeout, Some(Duration::from_secs(5)));
    settings
        .set("statement_timeout", Some("250"), true, true)
        .unwrap();
    assert_eq!(settings.show("statement_timeout").unwrap(), "250ms");
    settings.end_transaction(true);
    assert_eq!(settings.show("STATEMENT_TIMEOUT").unwrap(), "5s");
}

#[test]
fn sizes_have_units_and_a_range() {
    let mut settings = Settings::new();
    let mut set = |text: &str| {
        settings
            .set("work_mem", Some(text), false, false)
            .map(|_| (settings.show("work_mem").unwrap(), settings.work_mem))
            .map_err(|error| (error.sqlstate(), error.message().to_owned()))
    };
    assert_eq!(set("64"), Ok(("64kB".to_owned(), 64 << 10)));
    assert_eq!(set("1MB"), Ok(("1MB".to_owned(), 1 << 20)));
    assert_eq!(set(" 1500 kB "), Ok(("1500kB".to_owned(), 1500 << 10)));
    assert_eq!(set("2GB"), Ok(("2GB".to_owned(), 2 << 30)));
    assert_eq!(set("65536B"), Ok(("64kB".to_owned(), 64 << 10)));
    for wrong in ["63", "0", "3TB", "99999999999999999999999"] {
        let (sqlstate, message) = set(wrong).unwrap_err();
        assert_eq!(sqlstate, SqlState::INVALID_PARAMETER_VALUE, "{wrong}");
        assert!(message.contains("outside the valid range"), "{message}");
    }
    for wrong in ["4XB", "4mb", "MB", "-1", "much", ""] {
        let (sqlstate, message) = set(wrong).unwrap_err();
        assert_eq!(sqlstate, SqlState::INVALID_PARAMETER_VALUE, "{wrong}");
        assert!(message.contains("invalid value"), "{message}");
    }
}

#[test]
fn unknown_names_are_42704_unless_dotted() {
    let mut settings = Settings::new();
    let error = settings
        .set("no_such_thing", Some("1"), false, false)
        .unwrap_err();
    assert_eq!(error.sqlstate(), SqlState::UNDEFINED_OBJECT);
    settings.set("myapp.user", Some("alice"), false, false).unwrap();
    assert_eq!(settings.show("myapp.user").unwrap(), "alice");
}

#[test]
fn a_reset_goes_back_to_what_the_session_started_with() {
    let mut settings = Settings::new();
    settings.set_default("application_name", "psql").unwrap();
    settings
        .set("application_name", Some("other"), false, false)
        .unwrap();
    settings.set("application_name", None, false, false).unwrap();
    assert_eq!(settings.show("application_name").unwrap(), "psql");
}
