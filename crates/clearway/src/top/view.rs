//! The operator's place on the screen, and the keys that change it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::figures::Figures;
use super::sample::Session;

/// A table of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Page {
    #[default]
    Sessions,
    Latches,
    Standbys,
}

/// An order to a session of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// End its statement.
    Cancel(i64),
    /// End it.
    Terminate(i64),
}

impl Order {
    /// The function of SQL that gives the order.
    pub(super) fn sql(self) -> String {
        match self {
            Order::Cancel(pid) => format!("select pg_cancel_backend({pid}) as done"),
            Order::Terminate(pid) => format!("select pg_terminate_backend({pid}) as done"),
        }
    }

    /// The session.
    pub(super) fn pid(self) -> i64 {
        match self {
            Order::Cancel(pid) | Order::Terminate(pid) => pid,
        }
    }
}

/// The outcome of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Quit,
    Give(Order),
}

/// The operator's place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct View {
    pub(super) page: Page,
    /// The selected session. It stays selected wherever the next look puts it.
    pub(super) selected: Option<i64>,
    /// The selected session is shown whole.
    pub(super) is_open: bool,
    /// An order that is given if the next key is `y`.
    pub(super) asked: Option<Order>,
    /// A line about the last order.
    pub(super) message: Option<String>,
    /// The reason why the figures are old: the server does not answer.
    pub(super) no_answer: Option<String>,
}

impl View {
    /// The selected session, if it is there still.
    pub(super) fn session<'f>(&self, figures: &'f Figures) -> Option<&'f Session> {
        let pid = self.selected?;
        figures.sessions.iter().find(|session| session.pid == pid)
    }

    /// The place of the selected session in the table.
    pub(super) fn row(&self, figures: &Figures) -> Option<usize> {
        let pid = self.selected?;
        figures.sessions.iter().position(|session| session.pid == pid)
    }

    /// Takes new figures: of the connection of before, or of another one, whose sessions are others. What is open closes when
    /// its session has ended.
    pub(super) fn take_figures(&mut self, figures: &Figures, is_same_connection: bool) {
        self.no_answer = None;
        if !is_same_connection {
            (self.selected, self.message) = (None, None);
        }
        self.is_open &= self.session(figures).is_some();
    }

    /// The server does not answer. A question about one of its sessions is dropped: the next connection may number them anew.
    pub(super) fn lose(&mut self, reason: String) {
        self.asked = None;
        if self.no_answer.replace(reason).is_none() {
            self.message = None;
        }
    }

    /// Obeys a key.
    pub(super) fn press(&mut self, key: KeyEvent, figures: &Figures) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Action::Quit;
        }
        self.message = None;
        if let Some(order) = self.asked.take() {
            return match key.code {
                KeyCode::Char('y' | 'Y') => Action::Give(order),
                _ => {
                    self.message = Some("nothing was done".to_owned());
                    Action::Nothing
                }
            };
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc if self.is_open => self.is_open = false,
            KeyCode::Esc => return Action::Quit,
            KeyCode::Char('1') => self.turn_to(Page::Sessions),
            KeyCode::Char('2') => self.turn_to(Page::Latches),
            KeyCode::Char('3') => self.turn_to(Page::Standbys),
            KeyCode::Down | KeyCode::Char('j') => self.select(figures, 1),
            KeyCode::Up | KeyCode::Char('k') => self.select(figures, -1),
            KeyCode::Enter => self.is_open = !self.is_open && self.session(figures).is_some(),
            KeyCode::Char('c') => self.ask(figures, Order::Cancel),
            KeyCode::Char('x') => self.ask(figures, Order::Terminate),
            _ => {}
        }
        Action::Nothing
    }

    fn turn_to(&mut self, page: Page) {
        (self.page, self.is_open) = (page, false);
    }

    fn select(&mut self, figures: &Figures, by: isize) {
        let last = figures.sessions.len() as isize - 1;
        if self.page != Page::Sessions || last < 0 {
            return;
        }
        let row = match self.row(figures) {
            Some(row) => (row as isize + by).clamp(0, last),
            None => 0,
        };
        self.selected = Some(figures.sessions[row as usize].pid);
    }

    fn ask(&mut self, figures: &Figures, order: fn(i64) -> Order) {
        match self.session(figures) {
            _ if self.no_answer.is_some() => self.message = Some("nothing was done: no answer".to_owned()),
            Some(session) if self.page == Page::Sessions => self.asked = Some(order(session.pid)),
            _ => self.message = Some("select a session first, with the arrow keys".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(pids: &[i64]) -> Figures {
        Figures {
            sessions: pids
                .iter()
                .map(|pid| Session {
                    pid: *pid,
                    ..Session::default()
                })
                .collect(),
            ..Figures::default()
        }
    }

    fn press(view: &mut View, figures: &Figures, keys: &[KeyCode]) -> Vec<Action> {
        keys.iter()
            .map(|key| view.press(KeyEvent::from(*key), figures))
            .collect()
    }

    #[test]
    fn an_order_is_given_after_a_yes_alone() {
        let (mut view, figures) = (View::default(), figures(&[7, 9]));
        let order = [KeyCode::Char('x'), KeyCode::Char('y')];
        // None is selected.
        assert_eq!(press(&mut view, &figures, &order), [Action::Nothing; 2]);
        press(&mut view, &figures, &[KeyCode::Down, KeyCode::Down]);
        assert_eq!(
            press(&mut view, &figures, &order),
            [Action::Nothing, Action::Give(Order::Terminate(9))]
        );
        for other in [KeyCode::Enter, KeyCode::Char('n'), KeyCode::Char('x')] {
            let keys = [KeyCode::Char('c'), other, KeyCode::Char('y')];
            assert_eq!(press(&mut view, &figures, &keys), [Action::Nothing; 3]);
        }
    }

    #[test]
    fn a_selected_session_stays_selected_where_the_next_look_puts_it() {
        let mut view = View::default();
        press(&mut view, &figures(&[7, 9]), &[KeyCode::Down, KeyCode::Down]);
        assert_eq!(view.row(&figures(&[9, 7])), Some(0));
        press(&mut view, &figures(&[9, 7]), &[KeyCode::Down]);
        assert_eq!(view.selected, Some(7));
        // It has gone: an order is not given to another.
        let keys = [KeyCode::Char('c'), KeyCode::Char('y')];
        assert_eq!(press(&mut view, &figures(&[9]), &keys), [Action::Nothing; 2]);
    }

    #[test]
    fn a_session_that_has_ended_is_not_open() {
        let mut view = View::default();
        press(&mut view, &figures(&[7, 9]), &[KeyCode::Down, KeyCode::Enter]);
        view.take_figures(&figures(&[9, 7]), true);
        assert!(view.is_open);
        view.take_figures(&figures(&[9]), true);
        assert!(!view.is_open);
        assert_eq!(press(&mut view, &figures(&[9]), &[KeyCode::Esc]), [Action::Quit]);
    }

    #[test]
    fn a_lost_connection_takes_its_question_and_its_sessions_along() {
        let (mut view, figures) = (View::default(), figures(&[7]));
        press(&mut view, &figures, &[KeyCode::Down, KeyCode::Char('x')]);
        assert!(view.asked.is_some());
        view.lose("closed".to_owned());
        let keys = [KeyCode::Char('y'), KeyCode::Char('x'), KeyCode::Char('y')];
        assert_eq!(press(&mut view, &figures, &keys), [Action::Nothing; 3]);
        // Its session 7 is another.
        view.take_figures(&figures, false);
        assert_eq!((&view.no_answer, view.selected), (&None, None));
    }

    #[test]
    fn keys_end_what_is_open_first() {
        let (mut view, figures) = (View::default(), figures(&[7]));
        press(&mut view, &figures, &[KeyCode::Down, KeyCode::Enter]);
        assert!(view.is_open);
        assert_eq!(press(&mut view, &figures, &[KeyCode::Esc]), [Action::Nothing]);
        assert_eq!(press(&mut view, &figures, &[KeyCode::Esc]), [Action::Quit]);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.press(interrupt, &figures), Action::Quit);
    }
}
