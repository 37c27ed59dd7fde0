//! The expressions that a column's DEFAULT takes in CREATE TABLE: without parentheses fewer than elsewhere, since words such
//! as NOT NULL may follow them. There is no AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL and AT TIME ZONE.

use sqlparser::ast::{self, BinaryOperator, Expr, Spanned, UnaryOperator};
use sqlparser::tokenizer::Span;

use crate::bind::Binder;
use crate::error::{EngineError, Result, SqlState};
use crate::lex::{Kind, lex};

/// The part of an expression behind which a word stands that a DEFAULT does not take; `Err` if the expression begins
/// with such a word.
fn before_refused(tree: &Expr) -> Result<Option<&Expr>, &Expr> {
    let (left, refused) = match tree {
        Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr)
        | Expr::IsUnknown(expr)
        | Expr::IsNotUnknown(expr)
        | Expr::AtTimeZone { timestamp: expr, .. } => (&**expr, true),
        Expr::BinaryOp { left, op, .. } => (&**left, matches!(op, BinaryOperator::And | BinaryOperator::Or)),
        Expr::IsDistinctFrom(left, _) | Expr::IsNotDistinctFrom(left, _) => (&**left, false),
        Expr::Cast {
            kind: ast::CastKind::DoubleColon,
            expr,
            ..
        } => (&**expr, false),
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            ..
        } => return Err(tree),
        Expr::UnaryOp { expr, .. } => (&**expr, false),
        _ => return Ok(None),
    };
    if let Some(inside) = before_refused(left)? {
        return Ok(Some(inside));
    }
    if refused {
        return Ok(Some(left));
    }
    match tree {
        Expr::BinaryOp { right, .. } | Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => {
            before_refused(right)
        }
        _ => Ok(None),
    }
}

impl Binder<'_> {
    /// 42601 for a DEFAULT of CREATE TABLE that has to stand in parentheses.
    pub(super) fn require_bare_default(&self, tree: &Expr) -> Result<()> {
        let at = match before_refused(tree) {
            Ok(None) => return Ok(()),
            Ok(Some(left)) => left.span().end,
            Err(whole) => whole.span().start,
        };
        let Some(position) = self.position(Span::new(at, at)) else {
            return Ok(());
        };
        let before = (position - self.place.offset - 1) as usize;
        let start = self.place.text.char_indices().nth(before).map_or(0, |(at, _)| at);
        let rest = &self.place.text[start..];
        let mut words = lex(rest, usize::MAX)
            .into_iter()
            .filter(|token| matches!(token.kind, Kind::Word(_)));
        let found = match words.next() {
            // NOT NULL may follow; the error is in the word behind.
            Some(not) if rest[not.start..not.end].eq_ignore_ascii_case("not") => words.next().or(Some(not)),
            other => other,
        };
        let Some(token) = found else { return Ok(()) };
        let word = &rest[token.start..token.end];
        let position = position + rest[..token.start].chars().count() as u32;
        Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!("syntax error at or near \"{word}\""),
        )
        .or_position(Some(position)))
    }
}
