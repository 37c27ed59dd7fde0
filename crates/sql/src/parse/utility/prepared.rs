//! PREPARE and EXECUTE.

use sqlparser::ast;

use crate::error::{EngineError, Result};
use crate::lex::Kind;
use crate::parse::parse_expression;
use crate::parse::utility::AsRead;
use crate::parse::utility::reader::Reader;
use crate::plan::ControlStatement;
use crate::stack::Deep;

impl Reader<'_> {
    pub(super) fn prepare(&mut self) -> Result<ControlStatement<AsRead>> {
        if self.eat("transaction") {
            return Err(EngineError::not_supported("PREPARE TRANSACTION"));
        }
        let (name, _) = self.identifier()?;
        let mut types = Vec::new();
        if self.eat_symbol('(') {
            let mut from = self
                .tokens
                .get(self.at)
                .map_or(self.text.len(), |token| token.start);
            let mut depth = 0;
            loop {
                let token = self
                    .tokens
                    .get(self.at)
                    .cloned()
                    .ok_or_else(|| self.syntax_error())?;
                self.at += 1;
                match token.kind {
                    Kind::Symbol('(') => depth += 1,
                    Kind::Symbol(')') if depth > 0 => depth -= 1,
                    Kind::Symbol(',' | ')') if depth == 0 => {
                        types.push(self.text[from..token.start].trim().to_owned());
                        from = token.end;
                        if token.kind == Kind::Symbol(')') {
                            break;
                        }
                    }
                    _ => {}
                }
            }
        }
        self.expect("as")?;
        self.expect_query()?;
        let (sql, before) = self.rest();
        Ok(ControlStatement::Prepare {
            name,
            types,
            sql,
            before,
        })
    }

    pub(super) fn execute(&mut self) -> Result<ControlStatement<AsRead>> {
        let (name, arguments) = self.executed()?;
        Ok(ControlStatement::Execute {
            name,
            arguments,
            explained: None,
        })
    }

    /// The name and the arguments behind EXECUTE.
    pub(super) fn executed(&mut self) -> Result<(String, Option<Deep<Vec<ast::Expr>>>)> {
        let (name, _) = self.identifier()?;
        let mut arguments = None;
        if self.peek() == Some(&Kind::Symbol('(')) {
            let (text, offset) = self.rest();
            // A row of expressions is itself an expression: (a), (a, b).
            let row = parse_expression(&text, offset)?.try_map(|row| match row {
                ast::Expr::Nested(one) => Ok(vec![*one]),
                ast::Expr::Tuple(all) => Ok(all),
                _ => Err(self.syntax_error()),
            })?;
            arguments = Some(row);
        }
        Ok((name, arguments))
    }
}
