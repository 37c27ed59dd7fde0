use super::*;
use crate::context::NoSession;
use crate::value::Jsonb;
use crate::value::json::parse;

fn jsonb(text: &str) -> Value {
    Value::Jsonb(Jsonb::of(&parse(text).unwrap()).unwrap())
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Array(array) if array.elements().is_empty() => "none".to_owned(),
        Value::Array(array) => {
            let items: Vec<String> = array.elements().iter().map(shown).collect();
            items.join(" ; ")
        }
        Value::Jsonb(json) => {
            let mut out = String::new();
            json.as_ref().write(&mut out);
            out
        }
        other => panic!("{other:?}"),
    }
}

/// The answer to a call: words that say which function, a document, a path, and variables.
fn answer(words: &str, document: &str, path: &str, variables: &str) -> Result<Value> {
    let (form, name) = words.rsplit_once(' ').unwrap_or(("", words));
    let path = Value::text(Path::parse(path)?.text());
    let mut arguments = vec![
        jsonb(document),
        path,
        jsonb(variables),
        Value::Bool(form.contains("silent")),
    ];
    let name = match name {
        name if form == "operator" => {
            arguments.truncate(2);
            format!("jsonb_path_{name}_opr")
        }
        name @ ("array" | "first") => format!("jsonb_path_query_{name}"),
        name => format!("jsonb_path_{name}"),
    };
    let name = if form.contains("tz") { name + "_tz" } else { name };
    let is_called = |row: &&FunctionRow| row.name == name && row.arguments.len() == arguments.len();
    match ROWS.iter().find(is_called).unwrap().implementation {
        Session(call) => call(&arguments, &NoSession),
        _ => panic!("{name}"),
    }
}

/// Compares the answers of a table; the number of lines.
fn check_table(table: &str) -> usize {
    let mut different = Vec::new();
    let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
    for line in &lines {
        let (call, wanted) = line.rsplit_once(" => ").unwrap();
        let mut parts = call.split(" :: ");
        let (document, path) = (parts.next().unwrap(), parts.next().unwrap());
        let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        let (words, document) = match document.split_once(": ") {
            Some((words, document)) if words.split(' ').all(is_word) => (words, document),
            _ => ("query", document),
        };
        let found = match answer(words, document, path, parts.next().unwrap_or("{}")) {
            Ok(value) => shown(&value),
            Err(error) => format!("ERROR {}", error.sqlstate().as_str()),
        };
        if found != wanted {
            different.push(format!("{line}\n    found {found}"));
        }
    }
    let (count, shown) = (different.len(), different.join("\n"));
    assert!(count == 0, "{count} of {} differ:\n{shown}", lines.len());
    lines.len()
}

#[test]
fn answers_are_those_of_postgresql() {
    assert!(check_table(include_str!("answers.txt")) > 180);
    if let Ok(more) = std::env::var("CLEARWAY_PATH_ANSWERS") {
        check_table(&std::fs::read_to_string(more).unwrap());
    }
}

#[test]
fn errors_say_what_does_not_fit() {
    for (path, message) in [
        ("strict $.\"x\"", "JSON object does not contain key \"x\""),
        (
            "strict $.a.b",
            "jsonpath member accessor can only be applied to an object",
        ),
        (
            "$.a % \"a\"",
            "right operand of jsonpath operator % is not a single numeric value",
        ),
        (
            "+$.s",
            "operand of unary jsonpath operator + is not a numeric value",
        ),
        (
            "$.s.floor()",
            "jsonpath item method .floor() can only be applied to a numeric value",
        ),
        (
            "$.s.double()",
            "string argument of jsonpath item method .double() is not a valid representation of a double precision number",
        ),
        ("$.s.datetime()", "datetime format is not recognized: \"x\""),
        (
            "$.a.datetime()",
            "jsonpath item method .datetime() can only be applied to a string",
        ),
        (
            "$.keyvalue().value.keyvalue()",
            "jsonpath item method .keyvalue() can only be applied to an object",
        ),
        ("$y", "could not find jsonpath variable \"y\""),
    ] {
        let error = answer("query", "{\"a\": 1, \"s\": \"x\"}", path, "{}").unwrap_err();
        assert_eq!(error.message(), message, "{path}");
    }
}

#[test]
fn deep_documents_and_paths_are_walked() {
    let deep = "[".repeat(5_900) + "7" + &"]".repeat(5_900);
    let count = |path: &str| answer("query", &deep, path, "{}").map(|value| shown(&value));
    assert_eq!(count("$.**{last}").unwrap(), "7");
    assert_eq!(count("$.**{5900 to last} ? (@ == 7)").unwrap(), "7");
    let long = format!("${}", "[0]".repeat(5_900));
    assert_eq!(count(&long).unwrap(), "7");
    let sum = format!("1{}", " + 1".repeat(5_900));
    assert_eq!(count(&sum).unwrap(), "5901");
    // Each filter begins again at the root, and waits for the one inside it at the bottom.
    let nested = format!("${}{}", ".**{5899} ? (exists($".repeat(20), "))".repeat(20));
    assert_eq!(count(&nested).unwrap_err().sqlstate().as_str(), "54001");
}

#[test]
fn items_that_are_too_long_together_are_refused() {
    let wide = format!(
        "[{}\"{}\"{}]",
        "[".repeat(1_000),
        "x".repeat(2_000_000),
        "]".repeat(1_000)
    );
    let error = answer("query", &wide, "$.**", "{}").unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "54000");
    // Behind a method that makes objects each part is copied.
    let wide = format!("{{\"a\": {wide}}}");
    for path in ["$.keyvalue().value.**", "$ ? (@.keyvalue().value.** == 1)"] {
        let error = answer("query", &wide, path, "{}").unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "54000", "{path}");
    }
}

/// A session that is told to stop.
struct Stopped;

impl SessionFacts for Stopped {
    fn check_interrupts(&self) -> Result<()> {
        Err(EngineError::new(SqlState::QUERY_CANCELED, "canceled"))
    }
    fn transaction_timestamp(&self) -> i64 {
        0
    }
    fn statement_timestamp(&self) -> i64 {
        0
    }
    fn backend_pid(&self) -> i32 {
        0
    }
    fn database(&self) -> &str {
        ""
    }
    fn user(&self) -> &str {
        ""
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn next_serial(&self, _: u32) -> Result<i64> {
        Ok(0)
    }
    fn random(&self) -> f64 {
        0.0
    }
    fn random_bytes(&self) -> Result<[u8; 16]> {
        Ok([0; 16])
    }
    fn sleep(&self, _: std::time::Duration) -> Result<()> {
        Ok(())
    }
    fn set_setting(&self, _: &str, _: Option<&str>, _: bool) -> Result<String> {
        Ok(String::new())
    }
    fn log_position(&self, _: crate::context::LogPosition) -> Option<u64> {
        None
    }
    fn is_in_recovery(&self) -> bool {
        false
    }
    fn last_replayed_commit(&self) -> Option<i64> {
        None
    }
    fn promote(&self, _: Option<std::time::Duration>) -> Result<bool> {
        Ok(false)
    }
    fn reload_configuration(&self) -> Result<bool> {
        Ok(false)
    }
    fn cursor_place(&self, _: &str, _: u32, _: &str) -> Result<Option<(u32, u16)>> {
        Ok(None)
    }
    fn catalog(&self) -> Result<&dyn crate::catalog_facts::CatalogFacts> {
        Err(EngineError::internal("no catalog"))
    }
}

#[test]
fn a_long_evaluation_ends_when_it_is_told_to() {
    let path = Value::text(
        Path::parse("$.** ? (exists($.** ? (exists($.** ? (@ == 2)))))")
            .unwrap()
            .text(),
    );
    let document = jsonb(&format!("[{}]", vec!["1"; 1_000].join(",")));
    let arguments = [document, path];
    let call = Call::operator(&arguments, &Stopped).unwrap();
    assert_eq!(exists(&call).unwrap_err().sqlstate(), SqlState::QUERY_CANCELED);
}
