//! The forms of EXPLAIN's answer that programs read: one document of members, written as JSON, YAML or XML.
//!
//! | member | JSON | YAML | XML |
//! | --- | --- | --- | --- |
//! | bare, text | `"Plan Rows": 1`, `"Alias": "t"` | `Plan Rows: 1`, `Alias: "t"` | `<Plan-Rows>1</Plan-Rows>` |
//! | texts | `"Sort Key": ["a", "b"]` | a `- "a"` a line | an `<Item>` each |
//! | group | an object | lines further in | elements inside |
//! | groups | an array of objects | objects, each from a `- ` on | an element each |

use std::fmt::Write as _;

use super::ExplainFormat;
use crate::stack::checkpoint;

/// The value of a member.
#[derive(Debug)]
pub(super) enum Part {
    /// A number or a truth value, as it is written.
    Bare(String),
    Text(String),
    Texts(Vec<String>),
    Group(Vec<Member>),
    /// Several groups; the name of each is that of an element of XML.
    Groups(&'static str, Vec<Vec<Member>>),
}

/// A name with its value.
pub(super) type Member = (String, Part);

/// The document of one statement.
pub(super) fn write(format: ExplainFormat, members: &[Member]) -> String {
    let mut out = String::new();
    match format {
        ExplainFormat::Json => {
            out.push_str("[\n  ");
            json_group(members, 1, &mut out);
            out.push_str("\n]");
        }
        ExplainFormat::Yaml => {
            out.push_str("- ");
            yaml_members(members, 1, &mut out);
        }
        ExplainFormat::Xml => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n");
            xml_group("Query", members, 1, &mut out);
            out.push_str("\n</explain>");
        }
        // Its lines are made of the operators themselves.
        ExplainFormat::Text => {}
    }
    out
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

fn json_group(members: &[Member], depth: usize, out: &mut String) {
    out.push('{');
    for (at, (name, part)) in members.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(out, "{comma}\n{}{}: ", indent(depth + 1), quoted(name));
        match part {
            Part::Bare(text) => out.push_str(text),
            Part::Text(text) => out.push_str(&quoted(text)),
            Part::Texts(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
                let _ = write!(out, "[{}]", texts.join(", "));
            }
            Part::Group(members) => checkpoint(|| json_group(members, depth + 1, out)),
            Part::Groups(_, groups) => {
                out.push('[');
                for (at, members) in groups.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    let _ = write!(out, "{comma}\n{}", indent(depth + 2));
                    checkpoint(|| json_group(members, depth + 2, out));
                }
                let _ = write!(out, "\n{}]", indent(depth + 1));
            }
        }
    }
    let _ = write!(out, "\n{}}}", indent(depth));
}

/// Members, the first of them where `out` ends, the others on lines of their own.
fn yaml_members(members: &[Member], depth: usize, out: &mut String) {
    for (at, (name, part)) in members.iter().enumerate() {
        if at > 0 {
            let _ = write!(out, "\n{}", indent(depth));
        }
        let _ = write!(out, "{name}: ");
        match part {
            Part::Bare(text) => out.push_str(text),
            Part::Text(text) => out.push_str(&quoted(text)),
            Part::Texts(texts) => {
                for text in texts {
                    let _ = write!(out, "\n{}- {}", indent(depth + 1), quoted(text));
                }
            }
            Part::Group(members) => {
                let _ = write!(out, "\n{}", indent(depth + 1));
                checkpoint(|| yaml_members(members, depth + 1, out));
            }
            Part::Groups(_, groups) => {
                for members in groups {
                    let _ = write!(out, "\n{}- ", indent(depth + 1));
                    checkpoint(|| yaml_members(members, depth + 2, out));
                }
            }
        }
    }
}

fn xml_group(name: &str, members: &[Member], depth: usize, out: &mut String) {
    let _ = write!(out, "{}<{name}>", indent(depth));
    for (name, part) in members {
        let name = element(name);
        out.push('\n');
        let inside = indent(depth + 1);
        match part {
            Part::Bare(text) => {
                let _ = write!(out, "{inside}<{name}>{text}</{name}>");
            }
            Part::Text(text) => {
                let _ = write!(out, "{inside}<{name}>{}</{name}>", escaped(text));
            }
            Part::Texts(texts) => {
                let _ = write!(out, "{inside}<{name}>");
                for text in texts {
                    let _ = write!(out, "\n{inside}  <Item>{}</Item>", escaped(text));
                }
                let _ = write!(out, "\n{inside}</{name}>");
            }
            Part::Group(members) => checkpoint(|| xml_group(&name, members, depth + 1, out)),
            Part::Groups(each, groups) => {
                let _ = write!(out, "{inside}<{name}>");
                for members in groups {
                    out.push('\n');
                    checkpoint(|| xml_group(each, members, depth + 2, out));
                }
                let _ = write!(out, "\n{inside}</{name}>");
            }
        }
    }
    let _ = write!(out, "\n{}</{name}>", indent(depth));
}

/// A name as that of an element.
fn element(name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().map(|c| if is_kept(c) { c } else { '-' }).collect()
}

/// A text as XML has it between two tags. What no document may have is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#x0d;"),
            '\n' | '\t' => out.push(character),
            '\u{fffe}' | '\u{ffff}' => {}
            control if u32::from(control) < 0x20 => {}
            other => out.push(other),
        }
    }
    out
}

/// True for a character that YAML takes only by its number. JSON takes that, too.
fn is_no_part_of_yaml(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

/// A text as JSON writes it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if u32::from(control) < 0x20 || is_no_part_of_yaml(control) => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, part: Part) -> Member {
        (name.to_owned(), part)
    }

    fn document() -> Vec<Member> {
        let scan = || {
            vec![
                member("Node Type", Part::Text("Seq Scan".to_owned())),
                member("Plan Rows", Part::Bare("1".to_owned())),
            ]
        };
        let mut top = scan();
        let texts = ["a < \"b\"", "c\n\u{1}"].map(str::to_owned);
        top.push(member("Sort Key", Part::Texts(texts.into())));
        top.push(member("Plans", Part::Groups("Plan", vec![scan(), scan()])));
        vec![
            member("Plan", Part::Group(top)),
            member("Triggers", Part::Groups("Trigger", Vec::new())),
        ]
    }

    #[test]
    fn json_has_objects_and_arrays() {
        let scan = "{\n          \"Node Type\": \"Seq Scan\",\n          \"Plan Rows\": 1\n        }";
        assert_eq!(
            write(ExplainFormat::Json, &document()),
            format!(
                "[\n  {{\n    \"Plan\": {{\n      \"Node Type\": \"Seq Scan\",\n      \"Plan Rows\": 1,\n      \"Sort Key\": [\"a < \
                 \\\"b\\\"\", \"c\\n\\u0001\"],\n      \"Plans\": [\n        {scan},\n        {scan}\n      ]\n    }},\n    \
                 \"Triggers\": [\n    ]\n  }}\n]"
            )
        );
    }

    /// A control character behind those of ASCII, a mark of the order of bytes, and two numbers that are no characters.
    #[test]
    fn what_a_format_may_not_hold_is_left_out_or_numbered() {
        assert_eq!(escaped("a\u{fffe}<\u{ffff}\u{1}b"), "a&lt;b");
        assert_eq!(
            quoted("\u{7f}\u{85}\u{9f}\u{a0}\u{feff}\u{fffe}\u{ffff}ü"),
            "\"\\u007f\\u0085\\u009f\u{a0}\\ufeff\\ufffe\\uffffü\""
        );
    }

    #[test]
    fn yaml_and_xml_have_the_same_members() {
        assert_eq!(
            write(ExplainFormat::Yaml, &document()),
            "- Plan: \n    Node Type: \"Seq Scan\"\n    Plan Rows: 1\n    Sort Key: \n      - \"a < \\\"b\\\"\"\n      - \
             \"c\\n\\u0001\"\n    Plans: \n      - Node Type: \"Seq Scan\"\n        Plan Rows: 1\n      - Node Type: \
             \"Seq Scan\"\n        Plan Rows: 1\n  Triggers: "
        );
        let scan = "<Plan>\n          <Node-Type>Seq Scan</Node-Type>\n          <Plan-Rows>1</Plan-Rows>\n        </Plan>";
        assert_eq!(
            write(ExplainFormat::Xml, &document()),
            format!(
                "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n    <Plan>\n      <Node-Type>Seq \
                 Scan</Node-Type>\n      <Plan-Rows>1</Plan-Rows>\n      <Sort-Key>\n        <Item>a &lt; \"b\"</Item>\n        \
                 <Item>c\n</Item>\n      </Sort-Key>\n      <Plans>\n        {scan}\n        {scan}\n      </Plans>\n    </Plan>\n    \
                 <Triggers>\n    </Triggers>\n  </Query>\n</explain>"
            )
        );
    }
}
