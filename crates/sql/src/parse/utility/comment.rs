//! COMMENT ON.

use sqlparser::ast;

use crate::error::{EngineError, Result};
use crate::parse::parse_expression;
use crate::parse::utility::reader::{Name, Reader};

/// COMMENT ON as written.
#[derive(Debug, Clone)]
pub(crate) struct Comment {
    pub on: CommentedName,
    /// The comment; `None` takes it away.
    pub text: Option<String>,
}

/// The object of a comment, as written.
#[derive(Debug, Clone)]
pub(crate) enum CommentedName {
    /// A relation of this kind.
    Relation(RelationKind, Name),
    /// A column of a relation.
    Column(Name, String),
    /// A constraint of a table.
    Constraint(String, Name),
    /// A constraint of a domain.
    DomainConstraint(String, Name),
    /// A type; true for one that is said to be a domain.
    Type(Name, bool),
    Schema(String),
    Database(String),
    Role(String),
    /// An object of a kind of which there is none here, by what PostgreSQL calls it: `extension "x"`.
    Missing(String),
}

/// The kind of a relation that a statement names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelationKind {
    Table,
    View,
    MaterializedView,
    ForeignTable,
    Index,
    Sequence,
}

impl RelationKind {
    /// As errors name one of it.
    pub(crate) fn a_kind(self) -> &'static str {
        match self {
            RelationKind::Table => "a table",
            RelationKind::View => "a view",
            RelationKind::MaterializedView => "a materialized view",
            RelationKind::ForeignTable => "a foreign table",
            RelationKind::Index => "an index",
            RelationKind::Sequence => "a sequence",
        }
    }
}

impl Reader<'_> {
    /// COMMENT ON, after its COMMENT.
    pub(super) fn comment(&mut self) -> Result<Comment> {
        self.expect("on")?;
        let on = self.commented()?;
        self.expect("is")?;
        Ok(Comment {
            on,
            text: self.comment_text()?,
        })
    }

    fn commented(&mut self) -> Result<CommentedName> {
        let kinds = [
            ("table", RelationKind::Table),
            ("view", RelationKind::View),
            ("materialized view", RelationKind::MaterializedView),
            ("foreign table", RelationKind::ForeignTable),
            ("index", RelationKind::Index),
            ("sequence", RelationKind::Sequence),
        ];
        for (words, kind) in kinds {
            if self.eat(words) {
                return Ok(CommentedName::Relation(kind, self.name()?));
            }
        }
        let (kind, _) = self.identifier()?;
        Ok(match kind.as_str() {
            "column" => {
                let mut relation = self.name()?;
                if self.eat_symbol('.') {
                    let column = self.identifier()?.0;
                    return Ok(CommentedName::Column(relation, column));
                }
                // The last part is the column.
                let Some(table) = relation.schema.take() else {
                    return Err(self.syntax_error());
                };
                let column = std::mem::replace(&mut relation.name, table);
                CommentedName::Column(relation, column)
            }
            "constraint" => {
                let name = self.identifier()?.0;
                self.expect("on")?;
                // A table may be called so as well.
                if self.begins("domain") && !self.begins("domain is") {
                    self.at += 1;
                    return Ok(CommentedName::DomainConstraint(name, self.name()?));
                }
                CommentedName::Constraint(name, self.name()?)
            }
            "type" => CommentedName::Type(self.name()?, false),
            "domain" => CommentedName::Type(self.name()?, true),
            "schema" => CommentedName::Schema(self.identifier()?.0),
            "database" => CommentedName::Database(self.identifier()?.0),
            "role" => CommentedName::Role(self.identifier()?.0),
            "extension" | "publication" | "subscription" | "server" => {
                CommentedName::Missing(format!("{kind} \"{}\"", self.identifier()?.0))
            }
            other => {
                return Err(EngineError::not_supported(format!(
                    "COMMENT ON {}",
                    other.to_uppercase()
                )));
            }
        })
    }

    /// The text behind IS.
    fn comment_text(&mut self) -> Result<Option<String>> {
        if self.eat("null") {
            return Ok(None);
        }
        let wrong = self.syntax_error();
        let (text, offset) = self.rest();
        let tree = parse_expression(&text, offset)?;
        let ast::Expr::Value(literal) = &*tree else {
            return Err(wrong);
        };
        match &literal.value {
            ast::Value::SingleQuotedString(content)
            | ast::Value::EscapedStringLiteral(content)
            | ast::Value::UnicodeStringLiteral(content) => Ok(Some(content.clone())),
            ast::Value::DollarQuotedString(content) => Ok(Some(content.value.clone())),
            _ => Err(wrong),
        }
        // An empty text is no comment.
        .map(|text| text.filter(|text| !text.is_empty()))
    }
}
