//! From an operator's title, as the text shows it, to the members that JSON has instead.

use crate::explained::tree::Shown;

/// The members of JSON that a title stands for: the kind of operator first.
pub(super) fn members(title: &str) -> Vec<(&'static str, Shown)> {
    let words = split(title);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = |text: &str| Shown::Text(text.to_owned());
    let kind = |kind: &str| ("Node Type", text(kind));
    // What is behind ON: a name, and the name it is known by.
    let named = |of: &'static str, at: usize| {
        let name = words.get(at).copied().unwrap_or_default();
        let alias = words.get(at + 1).copied().unwrap_or(name);
        // With VERBOSE the name has its schema in front.
        match name.split_once('.').filter(|_| of == "Relation Name") {
            Some((schema, name)) => vec![
                (of, text(name)),
                ("Schema", text(schema)),
                ("Alias", text(words.get(at + 1).copied().unwrap_or(name))),
            ],
            None => vec![(of, text(name)), ("Alias", text(alias))],
        }
    };
    let mut all = Vec::new();
    match words.as_slice() {
        ["Seq", "Scan", "on", ..] => {
            all.push(kind("Seq Scan"));
            all.extend(named("Relation Name", 3));
        }
        ["Index", "Scan", rest @ ..] => {
            all.push(kind("Index Scan"));
            let is_backward = rest.first() == Some(&"Backward");
            let direction = if is_backward { "Backward" } else { "Forward" };
            let at = if is_backward { 4 } else { 3 };
            all.push(("Scan Direction", text(direction)));
            all.push(("Index Name", text(words.get(at).copied().unwrap_or_default())));
            all.extend(named("Relation Name", at + 2));
        }
        ["Subquery", "Scan", "on", ..] | ["CTE", "Scan", "on", ..] | ["WorkTable", "Scan", "on", ..] => {
            all.push(kind(&words[..2].join(" ")));
            let alias = words.last().copied().unwrap_or_default();
            all.push(("Alias", text(alias)));
        }
        ["Function", "Scan", "on", ..] => {
            all.push(kind("Function Scan"));
            all.extend(named("Function Name", 3));
        }
        ["Values", "Scan", "on", name] => {
            all.push(kind("Values Scan"));
            all.push(("Alias", text(name)));
        }
        [operation @ ("Insert" | "Update" | "Delete" | "Merge"), "on", ..] => {
            all.push(kind("ModifyTable"));
            all.push(("Operation", text(operation)));
            all.extend(named("Relation Name", 2));
        }
        ["Hash", "Join"] => all.extend([kind("Hash Join"), ("Join Type", text("Inner"))]),
        ["Nested", "Loop"] => all.extend([kind("Nested Loop"), ("Join Type", text("Inner"))]),
        ["Merge", "Join"] => all.extend([kind("Merge Join"), ("Join Type", text("Inner"))]),
        ["Merge", join, "Join"] => all.extend([kind("Merge Join"), ("Join Type", text(join))]),
        ["Hash", join, "Join"] => all.extend([kind("Hash Join"), ("Join Type", text(join))]),
        ["Nested", "Loop", join, "Join"] => all.extend([kind("Nested Loop"), ("Join Type", text(join))]),
        ["Aggregate"] => all.extend([
            kind("Aggregate"),
            ("Strategy", text("Plain")),
            ("Partial Mode", text("Simple")),
        ]),
        ["HashAggregate"] => all.extend([
            kind("Aggregate"),
            ("Strategy", text("Hashed")),
            ("Partial Mode", text("Simple")),
        ]),
        ["HashSetOp", command @ ..] => all.extend([
            kind("SetOp"),
            ("Strategy", text("Hashed")),
            ("Command", text(&command.join(" "))),
        ]),
        _ => all.push(kind(title)),
    }
    all
}

/// The place of an operator's input in PostgreSQL's words.
pub(super) fn relationship(title: &str, place: usize) -> &'static str {
    if title == "Append" || title.starts_with("HashSetOp") {
        "Member"
    } else if title.starts_with("Subquery Scan") {
        "Subquery"
    } else if place == 0 {
        "Outer"
    } else {
        "Inner"
    }
}

/// The words of a title; a name in quotes is one, without them.
fn split(title: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut characters = title.chars().peekable();
    let mut is_quoted = false;
    while let Some(character) = characters.next() {
        let last = words.len() - 1;
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                words[last].push('"');
                characters.next();
            }
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            other => words[last].push(other),
        }
    }
    words
}
