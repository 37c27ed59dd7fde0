//! The session in whose name a thread writes to the server's log, and the texts of statements there.
//!
//! The log's lines are events of `tracing`; the program gives them their form. A line of a session's thread, whichever crate
//! it comes from, is one of that session: the thread knows its session from [`Session::adopt_thread`] to the session's end.
//!
//! Fields of an event with a meaning: `severity` (a word that counts more than the event's level), `sqlstate`, `detail`,
//! `hint`, `statement`. Events of checkpoints have the target [`CHECKPOINTS`].
//!
//! [`Session::adopt_thread`]: crate::Session::adopt_thread

use std::borrow::Cow;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::activity::ActivitySlot;

pub use crate::activity::LoggedSession;
pub use clearway_storage::CHECKPOINTS;

/// The most of a statement's text that a line has, in bytes.
pub const STATEMENT_BYTES_MAX: usize = 8 << 10;

/// The words behind which a syntax error quotes what it has met.
const MET: &str = "at or near \"";

/// The text in place of a quoted word that may be a password.
const MASK: &str = "********";

thread_local! {
    static SESSION: RefCell<Option<Arc<ActivitySlot>>> = const { RefCell::new(None) };
}

/// The session that the calling thread serves.
pub fn session_of_thread() -> Option<LoggedSession> {
    // A thread that ends may log behind the end of its values.
    let slot = SESSION.try_with(|slot| slot.borrow().clone()).ok().flatten()?;
    Some(slot.logged())
}

/// A client's host and port as lines of the log have them: `192.0.2.7 port=5000`, `[local]`.
pub fn host(client: Option<SocketAddr>) -> String {
    match client {
        Some(address) => format!("{} port={}", address.ip().to_canonical(), address.port()),
        None => "[local]".to_owned(),
    }
}

/// The calling thread serves this session.
pub(crate) fn thread_serves(slot: &Arc<ActivitySlot>) {
    SESSION.with(|served| served.replace(Some(Arc::clone(slot))));
}

/// The session has ended, which the calling thread may have served. True if it did.
pub(crate) fn session_ends(slot: &Arc<ActivitySlot>) -> bool {
    let ends = |served: &RefCell<Option<Arc<ActivitySlot>>>| {
        let is_served = served
            .borrow()
            .as_ref()
            .is_some_and(|served| Arc::ptr_eq(served, slot));
        if is_served {
            served.replace(None);
        }
        is_served
    };
    SESSION.try_with(ends).unwrap_or(false)
}

/// A statement's text as the log has it: its beginning, without passwords.
pub(crate) fn logged_text(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(STATEMENT_BYTES_MAX)];
    let masked = clearway_sql::masked(shown);
    match shown.len() < text.len() {
        true => format!("{masked}… ({} bytes)", text.len()),
        false => masked.into_owned(),
    }
}

/// An error's message as the log has it: of a statement with a password, without the words in double quotation marks that
/// the statement itself is not shown with. A syntax error quotes what it has met, which may be the password.
pub(crate) fn logged_message<'m>(message: &'m str, statement: &str) -> Cow<'m, str> {
    let Cow::Owned(masked) = clearway_sql::masked(statement) else {
        return Cow::Borrowed(message);
    };
    // What a syntax error has met may have quotation marks inside.
    if let Some((before, met)) = message.split_once(MET)
        && !masked.contains(met.trim_end_matches('"'))
    {
        return Cow::Owned(format!("{before}{MET}{MASK}\""));
    }
    let mut shown = String::with_capacity(message.len());
    for (at, part) in message.split('"').enumerate() {
        if at > 0 {
            shown.push('"');
        }
        let is_quoted = at % 2 == 1;
        shown.push_str(if is_quoted && !masked.contains(part) {
            MASK
        } else {
            part
        });
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_does_not_quote_a_password() {
        let statement = "alter role joe password 'secret";
        let shown = |message| logged_message(message, statement).into_owned();
        let error = r#"unterminated quoted string at or near "'secret""#;
        assert_eq!(
            shown(error),
            r#"unterminated quoted string at or near "********""#
        );
        // Quotation marks inside of the word.
        let error = r#"syntax error at or near "'a"secret""#;
        assert_eq!(shown(error), r#"syntax error at or near "********""#);
        let error = r#"syntax error at or near "joe""#;
        assert_eq!(shown(error), error);
        let error = r#"role "joe" does not exist"#;
        assert_eq!(shown(error), error);
        let error = r#"unterminated quoted string at or near "'secret""#;
        assert_eq!(logged_message(error, "select 'secret"), error);
    }

    #[test]
    fn a_long_statement_is_cut_between_characters() {
        let text = "ä".repeat(STATEMENT_BYTES_MAX);
        let logged = logged_text(&format!("x{text}"));
        assert!(logged.starts_with("xä"));
        assert!(
            logged.ends_with(&format!("ä… ({} bytes)", 1 + 2 * STATEMENT_BYTES_MAX)),
            "{}",
            &logged[logged.len() - 40..]
        );
        assert!(logged.len() <= STATEMENT_BYTES_MAX + 40);
        assert_eq!(logged_text("select 1"), "select 1");
    }

    #[test]
    fn a_password_is_not_logged_even_where_the_text_is_cut() {
        let text = "alter role joe password 'very secret'";
        assert!(!logged_text(text).contains("secret"), "{}", logged_text(text));
        let padded = format!("{} {text}", " ".repeat(STATEMENT_BYTES_MAX - 30));
        assert!(!logged_text(&padded).contains("very"), "{}", logged_text(&padded));
    }
}
