//! Tokens to a path.
//!
//! ```text
//! path        [strict | lax] any
//! any         any || any,  any && any,  !(any),  exists (sum),  comparison        a predicate, or not
//! comparison  sum [== sum | starts with … | like_regex …]
//! sum         term {+ term},   term  sign {* sign},   sign  [-] sign,   sign  chain
//! chain       primary {accessor}
//! primary     constant, $, @, last, $name, (any)
//! ```
//!
//! A parenthesis may hold a predicate or another expression, which is known at its end only. So one set of functions reads
//! both, each gives the *sort* of what it read, and an operator looks at the sorts of its operands. What does not fit is
//! an error at the token behind it, as with a table-driven parser: that is the first token that no path has there.

use super::LEVELS_MAX;
use super::check::{check, stack_depth_exceeded};
use super::lex::{Lexer, Token, error};
use super::tree::{Arithmetic, Comparison, Like, Link, Method, Node, NodeId, Path, Subscript};
use crate::error::{EngineError, Result, SqlState, shown};
use crate::memory;
use crate::stack;
use crate::value::Numeric;
use crate::value::json::bytes::{check_length, text_bytes};

/// The most levels of recursion: each level of a path, and the parentheses that its text has around it.
const OPEN_MAX: u32 = 2 * LEVELS_MAX;

/// The sort of an expression's outcome.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    /// Items.
    Items,
    /// True, false or unknown. It may have accessors only if it is in parentheses.
    Predicate,
}

type Read = Result<(NodeId, Sort)>;

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    /// The words for an error at this token.
    near: &'t str,
    nodes: Vec<Link>,
    /// About the bytes of the texts of long numbers, which may be many more than those of the path: `1e100000`.
    digits: usize,
    /// Levels of recursion that are open.
    open: u32,
}

impl Path {
    /// Reads a path; 42601 if it is none.
    pub(crate) fn parse(text: &str) -> Result<Path> {
        // A byte makes a node at most.
        memory::require(text.len().saturating_mul(size_of::<Link>()))?;
        let mut parser = Parser {
            lexer: Lexer::of(text),
            token: Token::End,
            near: "",
            nodes: Vec::new(),
            digits: 0,
            open: 0,
        };
        parser.advance()?;
        if parser.token == Token::End {
            return Err(EngineError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type jsonpath: \"{}\"", shown(text)),
            ));
        }
        let is_strict = parser.takes_word("strict")?;
        if !is_strict {
            parser.takes_word("lax")?;
        }
        let (first, _) = parser.any()?;
        if parser.token != Token::End {
            return Err(parser.unexpected());
        }
        let path = Path {
            is_strict,
            nodes: parser.nodes,
            first,
        };
        check(&path)?;
        Ok(path)
    }
}

impl<'t> Parser<'t> {
    fn advance(&mut self) -> Result<Token<'t>> {
        let (token, near) = self.lexer.next()?;
        self.near = near;
        Ok(std::mem::replace(&mut self.token, token))
    }

    #[cold]
    fn unexpected(&self) -> EngineError {
        error("syntax error", self.near)
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(found) if found == symbol)
    }

    /// Goes behind a symbol if it stands there.
    fn takes(&mut self, symbol: &str) -> Result<bool> {
        let found = self.is(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        match self.takes(symbol)? {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn is_word(&self, word: &str) -> bool {
        match &self.token {
            Token::Name(name) => match word {
                "true" | "false" | "null" => name == word,
                _ => name.eq_ignore_ascii_case(word),
            },
            _ => false,
        }
    }

    fn takes_word(&mut self, word: &str) -> Result<bool> {
        let found = self.is_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        match self.takes_word(word)? {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Link { node, next: None });
        id
    }

    /// Reads something that stands inside something else.
    fn inside<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.open >= OPEN_MAX {
            return Err(stack_depth_exceeded());
        }
        self.open += 1;
        let found = stack::checkpoint(|| read(self));
        self.open -= 1;
        found
    }

    /// An error at this token unless an operand has the sort that is wanted.
    fn wanted(&self, (id, sort): (NodeId, Sort), wanted: Sort) -> Result<NodeId> {
        match sort == wanted {
            true => Ok(id),
            false => Err(self.unexpected()),
        }
    }

    fn any(&mut self) -> Read {
        let mut left = self.conjunction()?;
        while self.is("||") {
            let first = self.wanted(left, Sort::Predicate)?;
            self.advance()?;
            let right = self.conjunction()?;
            let second = self.wanted(right, Sort::Predicate)?;
            left = (self.push(Node::Or(first, second)), Sort::Predicate);
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Read {
        let mut left = self.comparison()?;
        while self.is("&&") {
            let first = self.wanted(left, Sort::Predicate)?;
            self.advance()?;
            let right = self.comparison()?;
            let second = self.wanted(right, Sort::Predicate)?;
            left = (self.push(Node::And(first, second)), Sort::Predicate);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Read {
        if self.takes("!")? {
            let inner = match self.is_word("exists") {
                true => self.exists()?,
                false => {
                    self.expect("(")?;
                    self.predicate_inside()?
                }
            };
            return Ok((self.push(Node::Not(inner)), Sort::Predicate));
        }
        if self.is_word("exists") {
            return Ok((self.exists()?, Sort::Predicate));
        }
        let left = self.sum()?;
        if left.1 == Sort::Predicate {
            return Ok(left);
        }
        let comparison = match self.token {
            Token::Symbol("==") => Comparison::Equal,
            Token::Symbol("!=" | "<>") => Comparison::NotEqual,
            Token::Symbol("<") => Comparison::Less,
            Token::Symbol("<=") => Comparison::LessOrEqual,
            Token::Symbol(">") => Comparison::Greater,
            Token::Symbol(">=") => Comparison::GreaterOrEqual,
            _ => return self.match_of_text(left),
        };
        self.advance()?;
        let right = self.sum()?;
        let right = self.wanted(right, Sort::Items)?;
        Ok((
            self.push(Node::Compare(comparison, left.0, right)),
            Sort::Predicate,
        ))
    }

    /// `starts with` or `like_regex` behind an expression, if one of them is there.
    fn match_of_text(&mut self, left: (NodeId, Sort)) -> Read {
        let node = if self.takes_word("starts")? {
            self.expect_word("with")?;
            if !matches!(self.token, Token::Text(_) | Token::Variable(_)) {
                return Err(self.unexpected());
            }
            let initial = match self.advance()? {
                Token::Text(text) => Node::Text(text.into()),
                Token::Variable(name) => Node::Variable(name.into()),
                _ => return Err(self.unexpected()),
            };
            Node::StartsWith(left.0, self.push(initial))
        } else if self.takes_word("like_regex")? {
            let pattern = self.text()?;
            let flags = match self.takes_word("flag")? {
                true => flags(&self.text()?)?,
                false => String::new(),
            };
            Node::Like(left.0, Like::new(pattern, flags)?)
        } else {
            return Ok(left);
        };
        Ok((self.push(node), Sort::Predicate))
    }

    fn text(&mut self) -> Result<String> {
        if !matches!(self.token, Token::Text(_)) {
            return Err(self.unexpected());
        }
        match self.advance()? {
            Token::Text(text) => Ok(text),
            _ => Err(self.unexpected()),
        }
    }

    /// A predicate up to its closing parenthesis.
    fn predicate_inside(&mut self) -> Result<NodeId> {
        let inner = self.inside(Self::any)?;
        let inner = self.wanted(inner, Sort::Predicate)?;
        self.expect(")")?;
        Ok(inner)
    }

    fn exists(&mut self) -> Result<NodeId> {
        self.advance()?;
        self.expect("(")?;
        let inner = self.inside(Self::sum)?;
        let inner = self.wanted(inner, Sort::Items)?;
        self.expect(")")?;
        Ok(self.push(Node::Exists(inner)))
    }

    fn sum(&mut self) -> Read {
        let mut left = self.term()?;
        loop {
            let operation = match self.token {
                Token::Symbol("+") => Arithmetic::Add,
                Token::Symbol("-") => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            left = self.operation(operation, left, Self::term)?;
        }
    }

    fn term(&mut self) -> Read {
        let mut left = self.signed()?;
        loop {
            let operation = match self.token {
                Token::Symbol("*") => Arithmetic::Multiply,
                Token::Symbol("/") => Arithmetic::Divide,
                Token::Symbol("%") => Arithmetic::Remainder,
                _ => return Ok(left),
            };
            left = self.operation(operation, left, Self::signed)?;
        }
    }

    fn operation(
        &mut self,
        operation: Arithmetic,
        left: (NodeId, Sort),
        right: impl FnOnce(&mut Self) -> Read,
    ) -> Read {
        let left = self.wanted(left, Sort::Items)?;
        self.advance()?;
        let right = right(self)?;
        let right = self.wanted(right, Sort::Items)?;
        Ok((self.push(Node::Arithmetic(operation, left, right)), Sort::Items))
    }

    fn signed(&mut self) -> Read {
        let negated = match self.token {
            Token::Symbol("-") => true,
            Token::Symbol("+") => false,
            _ => return self.chain(),
        };
        self.advance()?;
        let operand = self.inside(Self::signed)?;
        let operand = self.wanted(operand, Sort::Items)?;
        // The sign of a number is part of it.
        if let Link {
            node: Node::Number(number),
            next: None,
        } = &mut self.nodes[operand.0 as usize]
        {
            if negated {
                *number = number.negate();
            }
            return Ok((operand, Sort::Items));
        }
        Ok((self.push(Node::Sign { negated, operand }), Sort::Items))
    }

    fn chain(&mut self) -> Read {
        let (first, mut sort) = match self.takes("(")? {
            true => {
                let (inner, sort) = self.inside(Self::any)?;
                self.expect(")")?;
                if sort == Sort::Predicate && self.takes_word("is")? {
                    self.expect_word("unknown")?;
                    return Ok((self.push(Node::IsUnknown(inner)), Sort::Predicate));
                }
                (inner, sort)
            }
            false => (self.primary()?, Sort::Items),
        };
        let mut last = first;
        // Parentheses may hold a chain already.
        while let Some(next) = self.nodes[last.0 as usize].next {
            last = next;
        }
        while let Some(node) = self.accessor()? {
            let id = self.push(node);
            self.nodes[last.0 as usize].next = Some(id);
            last = id;
            sort = Sort::Items;
        }
        Ok((first, sort))
    }

    fn primary(&mut self) -> Result<NodeId> {
        let node = match &self.token {
            Token::Symbol("$") => Node::Root,
            Token::Symbol("@") => Node::Current,
            Token::Integer(digits) | Token::Number(digits) => {
                let number = Numeric::parse(digits)?;
                self.digits = self.digits.saturating_add(text_bytes(&number));
                check_length(self.digits)?;
                Node::Number(number)
            }
            Token::Text(text) => Node::Text(text.as_str().into()),
            Token::Variable(name) => Node::Variable(name.as_str().into()),
            Token::Name(_) if self.is_word("null") => Node::Null,
            Token::Name(_) if self.is_word("true") => Node::Bool(true),
            Token::Name(_) if self.is_word("false") => Node::Bool(false),
            Token::Name(_) if self.is_word("last") => Node::Last,
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        Ok(self.push(node))
    }

    /// An accessor, if one is there.
    fn accessor(&mut self) -> Result<Option<Node>> {
        if self.takes("[")? {
            return self.subscripts().map(Some);
        }
        if self.takes("?")? {
            self.expect("(")?;
            return Ok(Some(Node::Filter(self.predicate_inside()?)));
        }
        if !self.takes(".")? {
            return Ok(None);
        }
        if self.takes("*")? {
            return Ok(Some(Node::AnyMember));
        }
        if self.takes("**")? {
            return self.levels().map(Some);
        }
        let is_quoted = matches!(self.token, Token::Text(_));
        if !is_quoted && !matches!(self.token, Token::Name(_)) {
            return Err(self.unexpected());
        }
        let (Token::Text(name) | Token::Name(name)) = self.advance()? else {
            return Err(self.unexpected());
        };
        if is_quoted || !self.is("(") {
            return Ok(Some(Node::Member(name.into())));
        }
        self.method(&name).map(Some)
    }

    /// A method behind its name.
    fn method(&mut self, name: &str) -> Result<Node> {
        let is_named = |method: &Method| name.eq_ignore_ascii_case(method.name());
        let node = match Method::ALL.into_iter().find(is_named) {
            Some(method) => {
                self.advance()?;
                Node::Method(method)
            }
            None if name.eq_ignore_ascii_case("datetime") => {
                self.advance()?;
                let template = match self.token {
                    Token::Text(_) => Some(self.text()?.into()),
                    _ => None,
                };
                Node::Datetime(template)
            }
            None => return Err(self.unexpected()),
        };
        self.expect(")")?;
        Ok(node)
    }

    fn subscripts(&mut self) -> Result<Node> {
        if self.takes("*")? {
            self.expect("]")?;
            return Ok(Node::AnyElement);
        }
        let mut subscripts = Vec::new();
        loop {
            let from = self.subscript()?;
            let to = match self.takes_word("to")? {
                true => Some(self.subscript()?),
                false => None,
            };
            subscripts.push(Subscript { from, to });
            if !self.takes(",")? {
                break;
            }
        }
        self.expect("]")?;
        Ok(Node::Elements(subscripts.into()))
    }

    fn subscript(&mut self) -> Result<NodeId> {
        let found = self.inside(Self::sum)?;
        self.wanted(found, Sort::Items)
    }

    /// The levels behind `**`.
    fn levels(&mut self) -> Result<Node> {
        if !self.takes("{")? {
            return Ok(Node::AnyLevel {
                first: 0,
                last: u32::MAX,
            });
        }
        let first = self.level()?;
        let last = match self.takes_word("to")? {
            true => self.level()?,
            false => first,
        };
        self.expect("}")?;
        Ok(Node::AnyLevel { first, last })
    }

    fn level(&mut self) -> Result<u32> {
        if self.takes_word("last")? {
            return Ok(u32::MAX);
        }
        let Token::Integer(digits) = self.token else {
            return Err(self.unexpected());
        };
        let level: i32 = digits.parse().map_err(|_| {
            EngineError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value \"{}\" is out of range for type integer", shown(digits)),
            )
        })?;
        self.advance()?;
        Ok(level as u32)
    }
}

/// The flags of `like_regex`, each once.
fn flags(text: &str) -> Result<String> {
    if let Some(unknown) = text.chars().find(|letter| !Like::LETTERS.contains(*letter)) {
        return Err(
            EngineError::new(SqlState::SYNTAX_ERROR, "invalid input syntax for type jsonpath").with_detail(
                format!("Unrecognized flag character \"{unknown}\" in LIKE_REGEX predicate."),
            ),
        );
    }
    if text.contains('x') && !text.contains('q') {
        return Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "XQuery \"x\" flag (expanded regular expressions) is not implemented",
        ));
    }
    let letters = Like::LETTERS.chars();
    Ok(letters.filter(|letter| text.contains(*letter)).collect())
}
