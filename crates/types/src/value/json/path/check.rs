//! The places where `@` and `last` may stand, and the depth that a path may have (P2, P3).

use super::LEVELS_MAX;
use super::tree::{Node, NodeId, Path};
use crate::error::{EngineError, Result, SqlState};
use crate::stack;

/// The surroundings of a node.
#[derive(Clone, Copy)]
struct Place {
    in_filter: bool,
    in_subscript: bool,
    level: u32,
}

/// An error if a node may not be where it is.
pub(super) fn check(path: &Path) -> Result<()> {
    let root = Place {
        in_filter: false,
        in_subscript: false,
        level: 0,
    };
    visit(path, path.first, root)
}

fn visit(path: &Path, first: NodeId, place: Place) -> Result<()> {
    let (mut id, mut level) = (first, place.level);
    loop {
        level += 1;
        if level > LEVELS_MAX {
            return Err(stack_depth_exceeded());
        }
        let node = path.node(id);
        match node {
            Node::Current if !place.in_filter => {
                return Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    "@ is not allowed in root expressions",
                ));
            }
            Node::Last if !place.in_subscript => {
                return Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    "LAST is allowed only in array subscripts",
                ));
            }
            _ => {}
        }
        let in_filter = place.in_filter || matches!(node, Node::Filter(_));
        node.each_operand(|operand, is_subscript| {
            let inside = Place {
                in_filter,
                in_subscript: place.in_subscript || is_subscript,
                level,
            };
            stack::checkpoint(|| visit(path, operand, inside))
        })?;
        match path.next(id) {
            Some(next) => id = next,
            None => return Ok(()),
        }
    }
}

/// 54001
#[cold]
pub(super) fn stack_depth_exceeded() -> EngineError {
    EngineError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").with_hint(format!(
        "A path may have {LEVELS_MAX} levels of accessors and operators."
    ))
}
