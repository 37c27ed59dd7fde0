//! SET, and the names of settings.

use crate::error::{EngineError, Result};
use crate::lex::Kind;
use crate::parse::utility::AsRead;
use crate::parse::utility::reader::Reader;
use crate::plan::{ConstraintName, ControlStatement};
use crate::value::datetime::{
    IntervalField, IntervalStyle, format_interval, interval_typmod, parse_interval,
};

impl Reader<'_> {
    pub(super) fn setting_name(&mut self) -> Result<String> {
        if self.eat("time zone") {
            return Ok("timezone".to_owned());
        }
        if self.eat("transaction isolation level") {
            return Ok("transaction_isolation".to_owned());
        }
        if self.eat("session authorization") {
            return Ok("session_authorization".to_owned());
        }
        if self.eat("xml option") {
            return Ok("xmloption".to_owned());
        }
        let (mut name, _) = self.identifier()?;
        while self.eat_symbol('.') {
            name = format!("{name}.{}", self.identifier()?.0);
        }
        Ok(name.to_lowercase())
    }

    pub(super) fn set(&mut self) -> Result<ControlStatement<AsRead>> {
        if self.eat("session characteristics as transaction") {
            return Ok(ControlStatement::SetTransaction {
                modes: self.transaction_modes(false)?,
                session: true,
            });
        }
        if self.eat("transaction") {
            if self.peek_word() == "snapshot" {
                return Err(EngineError::not_supported("SET TRANSACTION SNAPSHOT"));
            }
            return Ok(ControlStatement::SetTransaction {
                modes: self.transaction_modes(false)?,
                session: false,
            });
        }
        if self.eat("constraints") {
            let names = if self.eat("all") {
                Vec::new()
            } else {
                self.names()?
            };
            let deferred = self.eat("deferred");
            if !(deferred || self.eat("immediate")) {
                return Err(self.syntax_error());
            }
            let names = names.into_iter().map(|name| ConstraintName {
                schema: name.schema,
                name: name.name,
            });
            return Ok(ControlStatement::SetConstraints {
                names: names.collect(),
                deferred,
            });
        }
        let local = self.eat("local");
        let _ = local || !self.begins("session authorization") && self.eat("session");
        if self.eat("session authorization") {
            return self.set_identity("session_authorization", "default", local);
        }
        if self.begins("role")
            && !matches!(
                self.tokens.get(self.at + 1).map(|token| &token.kind),
                Some(Kind::Symbol('=')) | None
            )
            && !self.begins("role to")
        {
            self.expect("role")?;
            return self.set_identity("role", "none", local);
        }
        let zone_clause = self.begins("time zone");
        let name = if self.eat("names") {
            "client_encoding".to_owned()
        } else {
            self.setting_name()?
        };
        let bare_value = zone_clause || matches!(name.as_str(), "client_encoding" | "xmloption");
        if !(self.eat_symbol('=') || self.eat("to") || bare_value) {
            return Err(self.syntax_error());
        }
        if self.eat("default") || zone_clause && self.eat("local") {
            return Ok(ControlStatement::Set {
                name,
                value: None,
                local,
            });
        }
        if zone_clause && self.eat("interval") {
            return self.zone_by_interval(local);
        }
        Ok(ControlStatement::Set {
            name,
            value: Some(self.setting_values()?),
            local,
        })
    }

    /// ALTER SYSTEM, behind both words.
    pub(super) fn alter_system(&mut self) -> Result<ControlStatement<AsRead>> {
        if self.eat("reset") {
            let name = match self.eat("all") {
                true => None,
                false => Some(self.setting_name()?),
            };
            return Ok(ControlStatement::AlterSystem { name, value: None });
        }
        self.expect("set")?;
        let name = self.setting_name()?;
        if !(self.eat_symbol('=') || self.eat("to")) {
            return Err(self.syntax_error());
        }
        let value = match self.eat("default") {
            true => None,
            false => Some(self.setting_values()?),
        };
        Ok(ControlStatement::AlterSystem {
            name: Some(name),
            value,
        })
    }

    /// The values of a setting, as one text.
    fn setting_values(&mut self) -> Result<String> {
        let mut values = Vec::new();
        loop {
            let negative = self.eat_symbol('-');
            let signed = negative || self.eat_symbol('+');
            let Some(kind) = self.peek().cloned() else {
                return Err(self.syntax_error());
            };
            self.at += 1;
            values.push(match kind {
                Kind::Word(text) | Kind::Quoted(text) | Kind::Text(text) if !signed => text,
                Kind::Number(text) => format!("{}{text}", if negative { "-" } else { "" }),
                _ => {
                    self.at -= 1;
                    return Err(self.syntax_error());
                }
            });
            if !self.eat_symbol(',') {
                return Ok(values.join(", "));
            }
        }
    }

    /// SET ROLE and SET SESSION AUTHORIZATION, behind their words; `nothing` is the word for none.
    fn set_identity(
        &mut self,
        setting: &str,
        nothing: &str,
        local: bool,
    ) -> Result<ControlStatement<AsRead>> {
        let is_word = matches!(self.peek(), Some(Kind::Word(_)));
        let name = match self.peek().cloned() {
            Some(Kind::Word(name) | Kind::Quoted(name) | Kind::Text(name)) => name,
            _ => return Err(self.syntax_error()),
        };
        self.at += 1;
        Ok(ControlStatement::Set {
            name: setting.to_owned(),
            value: (!(is_word && name == nothing)).then_some(name),
            local,
        })
    }

    /// `SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE`, after its INTERVAL.
    pub(super) fn zone_by_interval(&mut self, local: bool) -> Result<ControlStatement<AsRead>> {
        let Some(Kind::Text(offset)) = self.peek().cloned() else {
            return Err(self.syntax_error());
        };
        self.at += 1;
        let last = match (self.eat("hour to minute"), self.eat("hour")) {
            (true, _) => Some(IntervalField::Minute),
            (_, true) => Some(IntervalField::Hour),
            _ => None,
        };
        let typmod = interval_typmod(last.map(|last| (IntervalField::Hour, last)), None);
        let interval = parse_interval(&offset, typmod, IntervalStyle::Postgres)?;
        let mut shown = String::new();
        format_interval(interval, IntervalStyle::Postgres, &mut shown);
        Ok(ControlStatement::Set {
            name: "timezone".to_owned(),
            value: Some(format!("INTERVAL '{shown}'")),
            local,
        })
    }
}
