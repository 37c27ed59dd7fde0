//! WAIT FOR LSN.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::AsRead;
use crate::parse::utility::options::UtilityOption;
use crate::parse::utility::reader::Reader;
use crate::plan::{ControlStatement, WaitForLsn, WaitMode};
use crate::value::lsn::parse_lsn;

impl Reader<'_> {
    /// `WAIT FOR LSN 'position' [WITH (option, …)]`, after its first word.
    pub(super) fn wait_for_lsn(&mut self) -> Result<ControlStatement<AsRead>> {
        self.expect("for lsn")?;
        let mut wait = WaitForLsn {
            target: parse_lsn(&self.string()?)?,
            mode: WaitMode::StandbyReplay,
            timeout: None,
            no_throw: false,
        };
        if self.eat("with") {
            if self.peek() != Some(&Kind::Symbol('(')) {
                return Err(self.syntax_error());
            }
            let options = self.utility_options()?;
            for (at, option) in options.iter().enumerate() {
                if options[..at].iter().any(|before| before.name == option.name) {
                    let redundant =
                        EngineError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
                    return Err(redundant.with_position(option.position));
                }
                set(&mut wait, option)?;
            }
        }
        Ok(ControlStatement::WaitForLsn(wait))
    }
}

fn set(wait: &mut WaitForLsn, option: &UtilityOption) -> Result<()> {
    match option.name.as_str() {
        "mode" => {
            let name = option.text()?;
            let found = WaitMode::NAMES
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name));
            let unknown = || {
                let text = format!("unrecognized value for WAIT option \"mode\": \"{name}\"");
                EngineError::new(SqlState::INVALID_PARAMETER_VALUE, text).with_position(option.position)
            };
            wait.mode = found.ok_or_else(unknown)?.1;
        }
        "timeout" => wait.timeout = Some(option.text()?.to_owned()),
        "no_throw" => wait.no_throw = option.is_on()?,
        other => {
            let text = format!("option \"{other}\" not recognized");
            return Err(EngineError::new(SqlState::SYNTAX_ERROR, text).with_position(option.position));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Tree;
    use crate::parse::utility::parse;

    fn read(sql: &str) -> WaitForLsn {
        match parse(sql, 0) {
            Ok(Some(Tree::Control(ControlStatement::WaitForLsn(wait)))) => wait,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn options_are_read_in_any_order() {
        let plain = read("wait for lsn '0/306EE20'");
        assert_eq!((plain.target, plain.mode), (0x306_EE20, WaitMode::StandbyReplay));
        assert_eq!((plain.timeout, plain.no_throw), (None, false));
        let full = read("WAIT FOR LSN '1/2' WITH (NO_THROW, TIMEOUT '1.5s', MODE 'Primary_Flush')");
        assert_eq!(
            full,
            WaitForLsn {
                target: 0x1_0000_0002,
                mode: WaitMode::PrimaryFlush,
                timeout: Some("1.5s".to_owned()),
                no_throw: true,
            }
        );
        assert_eq!(
            read("wait for lsn '0/0' with (timeout 250)").timeout.as_deref(),
            Some("250")
        );
        for (name, mode) in WaitMode::NAMES {
            for written in [
                name.to_owned(),
                name.to_uppercase(),
                format!("'{name}'"),
                format!("\"{name}\""),
            ] {
                let sql = format!("wait for lsn '0/0' with (mode {written})");
                assert_eq!(read(&sql).mode, mode, "{sql}");
            }
            assert_eq!(mode.name(), name);
        }
    }

    #[test]
    fn values_are_words_texts_or_numbers() {
        for (value, no_throw) in [
            ("", true),
            ("true", true),
            ("'on'", true),
            ("1", true),
            ("off", false),
            ("0", false),
        ] {
            let sql = format!("wait for lsn '0/0' with (no_throw {value}, mode primary_flush)");
            assert_eq!(read(&sql).no_throw, no_throw, "{sql}");
        }
        for (value, timeout) in [("250", "250"), ("-1", "-1"), ("+1.5", "1.5"), ("'2s'", "2s")] {
            let sql = format!("wait for lsn '0/0' with (timeout {value})");
            assert_eq!(read(&sql).timeout.as_deref(), Some(timeout), "{sql}");
        }
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (sql, message) in [
            ("wait", "syntax error at end of input"),
            ("wait for lsn 5", "syntax error at or near \"5\""),
            ("wait for lsn 'x'", "invalid input syntax for type pg_lsn: \"x\""),
            (
                "wait for lsn '0/1' with (mode 'slowly')",
                "unrecognized value for WAIT option \"mode\": \"slowly\"",
            ),
            (
                "wait for lsn '0/1' with (no_throw, no_throw)",
                "conflicting or redundant options",
            ),
            (
                "wait for lsn '0/1' with (patience 1)",
                "option \"patience\" not recognized",
            ),
            (
                "wait for lsn '0/1' with (mode slowly)",
                "unrecognized value for WAIT option \"mode\": \"slowly\"",
            ),
            ("wait for lsn '0/1' with (mode)", "mode requires a parameter"),
            (
                "wait for lsn '0/1' with (timeout)",
                "timeout requires a parameter",
            ),
            (
                "wait for lsn '0/1' with (no_throw never)",
                "no_throw requires a Boolean value",
            ),
            (
                "wait for lsn '0/1' with no_throw",
                "syntax error at or near \"no_throw\"",
            ),
            (
                "wait for lsn '0/1' with (no_throw",
                "syntax error at end of input",
            ),
        ] {
            assert_eq!(parse(sql, 0).unwrap_err().message(), message, "{sql}");
        }
    }
}
