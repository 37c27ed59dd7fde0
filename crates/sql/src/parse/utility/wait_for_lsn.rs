//! WAIT FOR LSN.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::AsRead;
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
            self.expect_symbol('(')?;
            let mut seen: Vec<String> = Vec::new();
            loop {
                let (option, position) = self.identifier()?;
                if seen.contains(&option) {
                    return Err(
                        EngineError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
                            .with_position(position),
                    );
                }
                self.wait_option(&option, position, &mut wait)?;
                seen.push(option);
                if !self.eat_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        }
        Ok(ControlStatement::WaitForLsn(wait))
    }

    fn wait_option(&mut self, option: &str, position: u32, wait: &mut WaitForLsn) -> Result<()> {
        match option {
            "mode" => {
                let name = self.string()?;
                let found = WaitMode::NAMES
                    .iter()
                    .find(|(known, _)| known.eq_ignore_ascii_case(&name));
                wait.mode = found
                    .ok_or_else(|| {
                        EngineError::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            format!("unrecognized value for WAIT option \"mode\": \"{name}\""),
                        )
                        .with_position(position)
                    })?
                    .1;
            }
            "timeout" => {
                wait.timeout = Some(match self.peek() {
                    Some(Kind::Number(number)) => {
                        let number = number.clone();
                        self.at += 1;
                        number
                    }
                    _ => self.string()?,
                });
            }
            "no_throw" => wait.no_throw = true,
            other => {
                return Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("option \"{other}\" not recognized"),
                )
                .with_position(position));
            }
        }
        Ok(())
    }
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
            assert_eq!(
                read(&format!("wait for lsn '0/0' with (mode '{name}')")).mode,
                mode
            );
            assert_eq!(mode.name(), name);
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
                "wait for lsn '0/1' with (no_throw",
                "syntax error at end of input",
            ),
        ] {
            assert_eq!(parse(sql, 0).unwrap_err().message(), message, "{sql}");
        }
    }
}
