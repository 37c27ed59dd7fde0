//! The list of options in parentheses of EXPLAIN, VACUUM, ANALYZE, REINDEX and WAIT FOR: names, each with a value or alone.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::reader::Reader;

/// An option as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UtilityOption {
    pub(super) name: String,
    pub(super) position: u32,
    /// The value: a word in lower case, a text or a number.
    pub(super) value: Option<String>,
}

impl UtilityOption {
    /// True if the option is switched on: by its name alone or by a value that says so.
    pub(super) fn is_on(&self) -> Result<bool> {
        let Some(value) = &self.value else {
            return Ok(true);
        };
        match value.to_ascii_lowercase().as_str() {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => Err(self.needs("a Boolean value")),
        }
    }

    /// The value, which has to be there.
    pub(super) fn text(&self) -> Result<&str> {
        self.value.as_deref().ok_or_else(|| self.needs("a parameter"))
    }

    fn needs(&self, what: &str) -> EngineError {
        EngineError::new(SqlState::SYNTAX_ERROR, format!("{} requires {what}", self.name))
    }
}

impl Reader<'_> {
    /// The options from a parenthesis to the one that closes it; none if there is no parenthesis.
    pub(super) fn utility_options(&mut self) -> Result<Vec<UtilityOption>> {
        let mut options = Vec::new();
        if !self.eat_symbol('(') {
            return Ok(options);
        }
        loop {
            let (name, position) = self.identifier()?;
            options.push(UtilityOption {
                name,
                position,
                value: self.utility_option_value()?,
            });
            if !self.eat_symbol(',') {
                break;
            }
        }
        self.expect_symbol(')')?;
        Ok(options)
    }

    /// A word, a name in quotes, a text or a number with or without a sign, if one comes next.
    fn utility_option_value(&mut self) -> Result<Option<String>> {
        let sign = match self.peek() {
            Some(Kind::Symbol(sign @ ('+' | '-'))) => Some(*sign),
            _ => None,
        };
        if let Some(sign) = sign {
            self.at += 1;
            let Some(Kind::Number(number)) = self.peek() else {
                return Err(self.syntax_error());
            };
            let number = if sign == '-' {
                format!("-{number}")
            } else {
                number.clone()
            };
            self.at += 1;
            return Ok(Some(number));
        }
        let value = match self.peek() {
            Some(Kind::Word(text) | Kind::Quoted(text) | Kind::Text(text) | Kind::Number(text)) => {
                Some(text.clone())
            }
            _ => None,
        };
        self.at += usize::from(value.is_some());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::utility::parse;

    #[test]
    fn a_switch_takes_the_same_values_in_each_statement() {
        for value in [
            "", "true", "on", "1", "'ON'", "\"true\"", "false", "off", "0", "'Off'",
        ] {
            for sql in [
                format!("explain (verbose {value}) select 1"),
                format!("vacuum (verbose {value})"),
                format!("analyze (verbose {value})"),
                format!("reindex (verbose {value}) table t"),
                format!("wait for lsn '0/1' with (no_throw {value})"),
            ] {
                assert!(parse(&sql, 0).is_ok(), "{sql}");
            }
        }
        for value in ["maybe", "'yes'", "2", "-1"] {
            for (sql, name) in [
                (format!("explain (verbose {value}) select 1"), "verbose"),
                (format!("vacuum (analyze {value})"), "analyze"),
                (format!("analyze (verbose {value})"), "verbose"),
                (format!("reindex (concurrently {value}) table t"), "concurrently"),
                (format!("wait for lsn '0/1' with (no_throw {value})"), "no_throw"),
            ] {
                let error = parse(&sql, 0).unwrap_err();
                assert_eq!(
                    error.message(),
                    format!("{name} requires a Boolean value"),
                    "{sql}"
                );
            }
        }
    }

    #[test]
    fn a_list_that_is_no_list_is_a_syntax_error() {
        for (list, near) in [
            ("()", "at or near \")\""),
            ("(verbose", "at end of input"),
            ("(verbose on off)", "at or near \"off\""),
            ("(verbose -)", "at or near \")\""),
            ("(verbose, )", "at or near \")\""),
        ] {
            let error = parse(&format!("vacuum {list}"), 0).unwrap_err();
            assert_eq!(error.message(), format!("syntax error {near}"), "{list}");
        }
    }
}
