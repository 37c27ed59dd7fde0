//! EXPLAIN.

use crate::error::{EngineError, Result, SqlState};
use crate::explained::{ExplainFormat, ExplainOptions};
use crate::parse::utility::options::UtilityOption;
use crate::parse::utility::reader::Reader;
use crate::parse::{ParsedStatement, parse_one};

impl Reader<'_> {
    /// The statement that EXPLAIN is about, and the options.
    pub(super) fn explain(&mut self) -> Result<(ParsedStatement, ExplainOptions)> {
        let mut options = ExplainOptions::default();
        let listed = self.utility_options()?;
        for option in &listed {
            set(&mut options, option)?;
        }
        if listed.is_empty() {
            options.analyze = self.eat("analyze") || self.eat("analyse");
            options.verbose = self.eat("verbose");
        }
        options.check()?;
        if self.peek_word() != "execute" {
            self.expect_query()?;
        }
        let (text, offset) = self.rest();
        Ok((parse_one(&text, offset)?, options))
    }
}

/// Sets an option.
fn set(options: &mut ExplainOptions, option: &UtilityOption) -> Result<()> {
    match option.name.as_str() {
        "analyze" | "analyse" => options.analyze = option.is_on()?,
        "verbose" => options.verbose = option.is_on()?,
        "costs" => options.costs = Some(option.is_on()?),
        "buffers" => options.buffers = option.is_on()?,
        "timing" => options.timing = Some(option.is_on()?),
        "summary" => options.summary = Some(option.is_on()?),
        "wal" => options.wal = option.is_on()?,
        "settings" => options.settings = option.is_on()?,
        "format" => {
            options.format = match option.text()? {
                "text" => ExplainFormat::Text,
                "json" => ExplainFormat::Json,
                "yaml" => ExplainFormat::Yaml,
                "xml" => ExplainFormat::Xml,
                other => {
                    let text = format!("unrecognized value for EXPLAIN option \"format\": \"{other}\"");
                    let error = EngineError::new(SqlState::INVALID_PARAMETER_VALUE, text);
                    return Err(error.with_position(option.position));
                }
            };
        }
        name => {
            let text = format!("unrecognized EXPLAIN option \"{name}\"");
            return Err(EngineError::new(SqlState::SYNTAX_ERROR, text).with_position(option.position));
        }
    }
    Ok(())
}
