//! The figures as text of a terminal, 80 columns wide at least.

use std::collections::HashSet;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

use super::figures::Figures;
use super::sample::{RUNNING, Session};
use super::units::{bytes, number, time};
use super::view::{Order, Page, View};

/// Classes of waits that are shown.
const WAITS_MAX: usize = 6;
/// Columns of the longest bar.
const BAR: f64 = 40.0;

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, figures: &Figures, view: &View, server: &str) {
    let waits = figures.waits.len().clamp(1, WAITS_MAX) as u16;
    // The foot comes first: however low the window is, a question that a key answers is seen.
    let [rest, foot] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(Paragraph::new(foot_line(view)), foot);
    if !figures.are_there() {
        let title = title(format!("{server}; waiting for its first figures"));
        return frame.render_widget(Paragraph::new(title), rest);
    }
    let [head, bars, body] = Layout::vertical([
        Constraint::Length(5),
        Constraint::Length(waits + 1),
        Constraint::Fill(1),
    ])
    .areas(rest);
    frame.render_widget(Paragraph::new(head_lines(figures, server)), head);
    frame.render_widget(Paragraph::new(bar_lines(figures)), bars);
    match (view.page, view.session(figures)) {
        (Page::Sessions, Some(session)) if view.is_open => {
            let lines = whole(session, figures, usize::from(body.height));
            let text = Paragraph::new(lines).wrap(Wrap { trim: false });
            frame.render_widget(text, body);
        }
        (Page::Sessions, _) => {
            let mut state = TableState::default().with_selected(view.row(figures));
            frame.render_stateful_widget(sessions(figures), body, &mut state);
        }
        (Page::Latches, _) => frame.render_widget(latches(figures), body),
        (Page::Standbys, _) => frame.render_widget(standbys(figures), body),
    }
}

/// All of it as plain text, so many columns wide: every session that is active or has a transaction open, the latches and the
/// standbys.
pub(super) fn text(figures: &Figures, server: &str, width: u16) -> String {
    let mut shown = figures.clone();
    shown
        .sessions
        .retain(|session| session.is_active() || session.is_idle_in_transaction() || session.waiters > 0);
    let waits = shown.waits.len().clamp(1, WAITS_MAX) as u16;
    let mut lines = Vec::new();
    let mut render = |height: usize, part: &dyn Fn(Rect, &mut Buffer)| {
        let area = Rect::new(0, 0, width, u16::try_from(height).unwrap_or(u16::MAX).min(10_000));
        let mut buffer = Buffer::empty(area);
        part(area, &mut buffer);
        for row in buffer.content.chunks(usize::from(width)) {
            let line: String = row.iter().map(|cell| cell.symbol()).collect();
            lines.push(line.trim_end().to_owned());
        }
    };
    use ratatui::widgets::Widget;
    render(5, &|area, buffer| {
        Paragraph::new(head_lines(figures, server)).render(area, buffer)
    });
    render(usize::from(waits) + 1, &|area, buffer| {
        Paragraph::new(bar_lines(&shown)).render(area, buffer)
    });
    if !shown.sessions.is_empty() {
        render(shown.sessions.len() + 2, &|area, buffer| {
            sessions(&shown).render(area, buffer)
        });
    }
    if !shown.latches.is_empty() {
        render(shown.latches.len() + 2, &|area, buffer| {
            latches(&shown).render(area, buffer)
        });
    }
    if !shown.standbys.is_empty() {
        render(shown.standbys.len() + 2, &|area, buffer| {
            standbys(&shown).render(area, buffer)
        });
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

fn title(rest: String) -> Line<'static> {
    let name = Span::styled("clearway top", Style::new().add_modifier(Modifier::BOLD));
    Line::from(vec![name, Span::raw("   "), Span::raw(rest)])
}

fn head_lines<'f>(figures: &'f Figures, server: &'f str) -> Vec<Line<'f>> {
    let role = if figures.is_standby { "standby" } else { "primary" };
    let count =
        |wanted: fn(&Session) -> bool| figures.sessions.iter().filter(|session| wanted(session)).count();
    let (active, open) = (count(Session::is_active), count(Session::is_idle_in_transaction));
    let waiting = count(|session| !session.blockers.is_empty());
    let found = figures
        .pages_found
        .map_or("–".to_owned(), |part| format!("{:.2} %", part * 100.0));
    vec![
        title(format!("{role} at {server}, up {}", time(figures.up))),
        Line::raw(format!(
            "transactions  {} commits/s, {} rollbacks/s, {} deadlocks",
            number(figures.commits),
            number(figures.rollbacks),
            number(figures.deadlocks)
        )),
        Line::raw(format!(
            "pages         {found} found in buffers, {} read/s; temporary files {}/s",
            number(figures.pages_read),
            bytes(figures.temporary_bytes)
        )),
        Line::raw(format!(
            "log           {}/s, {} a commit; checkpoints {}, {} pages",
            bytes(figures.log_bytes),
            if figures.commits > 0.0 {
                bytes(figures.log_bytes / figures.commits)
            } else {
                "–".to_owned()
            },
            number(figures.checkpoints),
            number(figures.checkpoint_pages)
        )),
        Line::raw(format!(
            "sessions      {}: {active} active, {open} idle in transaction; {waiting} wait for locks",
            figures.sessions.len()
        )),
    ]
}

fn bar_lines(figures: &Figures) -> Vec<Line<'_>> {
    let most = figures.waits.iter().map(|(_, mean)| *mean).fold(1.0, f64::max);
    let heading = Style::new().add_modifier(Modifier::UNDERLINED);
    let mut lines = vec![Line::styled("active sessions, by what they wait for", heading)];
    for (class, mean) in figures.waits.iter().take(WAITS_MAX) {
        let length = (mean / most * BAR).round() as usize;
        let color = match class.as_str() {
            RUNNING => Color::Green,
            "Lock" | "LWLock" => Color::Red,
            _ => Color::Yellow,
        };
        lines.push(Line::from(vec![
            Span::raw(format!("{class:<12} {mean:>7.1}  ")),
            Span::styled("█".repeat(length), Style::new().fg(color)),
        ]));
    }
    if figures.waits.is_empty() {
        lines.push(Line::raw("none"));
    }
    lines
}

fn heading<const N: usize>(names: [&'static str; N]) -> Row<'static> {
    Row::new(names.map(Cell::from)).style(Style::new().add_modifier(Modifier::REVERSED))
}

fn sessions(figures: &Figures) -> Table<'_> {
    let rows = figures.sessions.iter().map(|session| {
        let since = match session.is_active() {
            true => time(session.statement_seconds),
            false => session.transaction_seconds.map(time).unwrap_or_default(),
        };
        let waiters = session.waiters;
        let row = Row::new([
            Cell::from(format!("{:>7}", session.pid)),
            Cell::from(session.user.as_str()),
            Cell::from(short_state(&session.state)),
            Cell::from(format!("{since:>8}")),
            Cell::from(waits_for(session)),
            Cell::from(if waiters > 0 {
                format!("{waiters:>5}")
            } else {
                String::new()
            }),
            Cell::from(one_line(&session.statement)),
        ]);
        match waiters > 0 {
            true => row.style(Style::new().fg(Color::Red)),
            false => row,
        }
    });
    let widths = [
        Constraint::Length(7),
        Constraint::Length(10),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(18),
        Constraint::Length(5),
        Constraint::Fill(1),
    ];
    let names = [
        "    PID",
        "USER",
        "STATE",
        "   SINCE",
        "WAITS FOR",
        "KEEPS",
        "STATEMENT",
    ];
    Table::new(rows, widths)
        .header(heading(names))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

fn latches(figures: &Figures) -> Table<'_> {
    let rows = figures.latches.iter().map(|latch| {
        let p99 = latch.wait_p99_ns.map_or("–".to_owned(), |ns| time(ns / 1e9));
        Row::new([
            Cell::from(latch.name.as_str()),
            Cell::from(latch.mode.as_str()),
            Cell::from(format!("{:>11}", number(latch.conflicts / figures.seconds))),
            Cell::from(format!("{:>9}", number(latch.sleeps / figures.seconds))),
            Cell::from(format!("{p99:>9}")),
        ])
    });
    let widths = [
        Constraint::Length(28),
        Constraint::Length(14),
        Constraint::Length(11),
        Constraint::Length(9),
        Constraint::Length(9),
    ];
    Table::new(rows, widths).header(heading([
        "LATCH",
        "MODE",
        "CONFLICTS/S",
        " SLEEPS/S",
        " WAIT P99",
    ]))
}

fn standbys(figures: &Figures) -> Table<'_> {
    let rows = figures.standbys.iter().map(|standby| {
        Row::new([
            Cell::from(standby.name.as_str()),
            Cell::from(standby.state.as_str()),
            Cell::from(standby.sync_state.as_str()),
            Cell::from(format!("{:>10}", standby.behind.map_or("–".to_owned(), bytes))),
            Cell::from(standby.lag.as_deref().unwrap_or("–")),
        ])
    });
    let widths = [
        Constraint::Length(24),
        Constraint::Length(12),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Fill(1),
    ];
    Table::new(rows, widths).header(heading(["STANDBY", "STATE", "SYNC", "    BEHIND", "REPLAY LAG"]))
}

/// A session with all that is known of it, and the sessions that it waits for, each under one that waits for it and once;
/// about so many lines at most.
fn whole<'f>(session: &'f Session, figures: &'f Figures, lines_max: usize) -> Vec<Line<'f>> {
    let place = match session.client.as_str() {
        "" => "this machine",
        client => client,
    };
    let transaction = session
        .transaction_seconds
        .map_or("no transaction".to_owned(), |seconds| {
            format!("transaction of {}", time(seconds))
        });
    let mut lines = vec![
        Line::raw(format!(
            "session {}: {} in {}, {}, from {place}",
            session.pid,
            session.user,
            session.database,
            if session.application.is_empty() {
                "no application_name"
            } else {
                &session.application
            }
        )),
        Line::raw(format!(
            "{}, statement of {}, {transaction}",
            session.state,
            time(session.statement_seconds)
        )),
    ];
    lines.extend(session.statement.lines().map(Line::raw));
    let mut shown = HashSet::from([session.pid]);
    let mut open: Vec<(usize, i64)> = session.blockers.iter().rev().map(|pid| (1, *pid)).collect();
    if !open.is_empty() {
        lines.push(Line::raw(""));
        lines.push(Line::raw(format!(
            "{} waits for {}",
            session.pid,
            waits_for(session)
        )));
    }
    while let Some((depth, pid)) = open.pop() {
        if lines.len() >= lines_max {
            break;
        }
        if !shown.insert(pid) {
            continue;
        }
        let keeper = figures.sessions.iter().find(|session| session.pid == pid);
        let indent = "  ".repeat(depth);
        let line = match keeper {
            Some(keeper) => format!(
                "{indent}└ {pid} {} {}: {}",
                keeper.user,
                short_state(&keeper.state),
                one_line(&keeper.statement)
            ),
            None => format!("{indent}└ {pid}"),
        };
        lines.push(Line::raw(line));
        let further = keeper.into_iter().flat_map(|keeper| keeper.blockers.iter().rev());
        open.extend(further.map(|pid| (depth + 1, *pid)));
    }
    lines
}

fn foot_line(view: &View) -> Line<'_> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match (view.asked, &view.message, &view.no_answer) {
        (Some(Order::Cancel(pid)), ..) => {
            Line::styled(format!("end the statement of session {pid}? y/n"), bold)
        }
        (Some(Order::Terminate(pid)), ..) => Line::styled(format!("end session {pid}? y/n"), bold),
        (None, Some(message), _) => Line::styled(message.as_str(), bold),
        (None, None, Some(reason)) => {
            Line::styled(format!("no answer, trying again: {reason}"), bold.fg(Color::Red))
        }
        (None, None, None) => {
            Line::raw("1 sessions 2 latches 3 standbys  ↑↓ select  Enter open  c cancel  x end  q quit")
        }
    }
}

fn waits_for(session: &Session) -> String {
    match (session.is_active(), session.wait_class.as_str()) {
        (false, _) => String::new(),
        (true, "") => RUNNING.to_owned(),
        (true, class) => format!("{class}:{}", session.wait_event),
    }
}

fn short_state(state: &str) -> &str {
    match state {
        "idle in transaction" => "in xact",
        "idle in transaction (aborted)" => "aborted",
        other => other,
    }
}

fn one_line(statement: &str) -> String {
    statement.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::top::figures::in_order;
    use crate::top::sample::{Latch, Standby};

    fn session(pid: i64, state: &str, wait: (&str, &str), blockers: &[i64], statement: &str) -> Session {
        Session {
            pid,
            user: "alice".to_owned(),
            database: "shop".to_owned(),
            state: state.to_owned(),
            wait_class: wait.0.to_owned(),
            wait_event: wait.1.to_owned(),
            statement_seconds: 61.5,
            transaction_seconds: Some(90.0),
            blockers: blockers.to_vec(),
            statement: statement.to_owned(),
            ..Session::default()
        }
    }

    fn figures() -> Figures {
        Figures {
            seconds: 2.0,
            up: 7_200.0,
            commits: 12_345.6,
            log_bytes: 2_469_120.0,
            pages_found: Some(0.998_76),
            waits: vec![("Lock".to_owned(), 2.0), ("CPU".to_owned(), 0.5)],
            sessions: in_order(&[
                session(
                    7,
                    "idle in transaction",
                    ("Client", "ClientRead"),
                    &[],
                    "select\n  1",
                ),
                session(8, "active", ("Lock", "tuple"), &[7], "update hot"),
                session(9, "active", ("Lock", "tuple"), &[8], "update hot"),
                session(10, "idle", ("Client", "ClientRead"), &[], "commit"),
            ]),
            standbys: vec![Standby {
                name: "bob".to_owned(),
                behind: Some(1_500_000.0),
                ..Standby::default()
            }],
            latches: vec![Latch {
                name: "WALWrite".to_owned(),
                conflicts: 3_000.0,
                sleeps: 1.0,
                wait_p99_ns: Some(2_500_000.0),
                ..Latch::default()
            }],
            ..Figures::default()
        }
    }

    /// The screen's lines.
    fn drawn(view: &View) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let figures = figures();
        terminal
            .draw(|frame| draw(frame, &figures, view, "here"))
            .unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content.chunks(80);
        rows.map(|row| {
            row.iter()
                .map(|cell| cell.symbol())
                .collect::<String>()
                .trim_end()
                .to_owned()
        })
        .collect()
    }

    #[test]
    fn a_screen_of_80_columns_shows_who_keeps_whom() {
        let lines = drawn(&View::default());
        assert_eq!(lines[0], "clearway top   primary at here, up 2.0 h");
        assert_eq!(
            lines[1],
            "transactions  12,346 commits/s, 0 rollbacks/s, 0 deadlocks"
        );
        assert_eq!(
            lines[3],
            "log           2.5 MB/s, 200 B a commit; checkpoints 0, 0 pages"
        );
        assert_eq!(
            lines[4],
            "sessions      4: 2 active, 1 idle in transaction; 2 wait for locks"
        );
        assert_eq!(lines[6], format!("Lock             2.0  {}", "█".repeat(40)));
        assert_eq!(lines[7], format!("CPU              0.5  {}", "█".repeat(10)));
        assert_eq!(
            lines[9],
            "      7 alice      in xact    90.0 s                        2 select 1"
        );
        assert_eq!(
            lines[10],
            "      8 alice      active     61.5 s Lock:tuple             1 update hot"
        );
        assert!(lines[23].starts_with("1 sessions 2 latches"));
    }

    #[test]
    fn an_open_session_has_those_that_it_waits_for_in_turn() {
        let view = View {
            selected: Some(9),
            is_open: true,
            ..View::default()
        };
        let text = drawn(&view).join("\n");
        assert!(
            text.contains(
                "9 waits for Lock:tuple\n  └ 8 alice active: update hot\n    └ 7 alice in xact: select 1\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_question_is_seen_in_a_window_of_any_height() {
        let view = View {
            asked: Some(Order::Terminate(7)),
            ..View::default()
        };
        for height in 1..=14 {
            let mut terminal = Terminal::new(TestBackend::new(80, height)).unwrap();
            let figures = figures();
            terminal
                .draw(|frame| draw(frame, &figures, &view, "here"))
                .unwrap();
            let cells = &terminal.backend().buffer().content;
            let last: String = cells[cells.len() - 80..]
                .iter()
                .map(|cell| cell.symbol())
                .collect();
            assert_eq!(last.trim_end(), "end session 7? y/n", "{height} lines");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_told_of_below_its_last_figures() {
        let view = View {
            no_answer: Some("the connection was closed".to_owned()),
            ..View::default()
        };
        let lines = drawn(&view);
        assert!(lines[10].contains("update hot"), "{lines:?}");
        assert_eq!(lines[23], "no answer, trying again: the connection was closed");
    }

    /// A client chooses its statement and its names, and must not write to the operator's terminal.
    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut figures = figures();
        let hostile = "select '\u{1b}[2J\u{7}' \u{9b}31m";
        figures.sessions[1].statement = hostile.to_owned();
        figures.sessions[1].user = hostile.to_owned();
        figures.sessions[1].application = hostile.to_owned();
        let plain = text(&figures, "here", 132);
        assert!(
            plain.contains("update hot") && plain.contains("select '"),
            "{plain}"
        );
        assert!(
            !plain.contains(|c: char| c.is_control() && c != '\n'),
            "{plain:?}"
        );
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let view = View {
            selected: Some(8),
            is_open: true,
            ..View::default()
        };
        terminal
            .draw(|frame| draw(frame, &figures, &view, "here"))
            .unwrap();
        let cells = &terminal.backend().buffer().content;
        assert!(cells.iter().all(|cell| !cell.symbol().contains(char::is_control)));
    }

    #[test]
    fn plain_text_leaves_idle_sessions_out() {
        let text = text(&figures(), "here", 80);
        assert!(text.contains("WALWrite") && text.contains("bob"), "{text}");
        assert!(
            text.contains("1,500") && text.contains("2.5 ms") && text.contains("1.5 MB"),
            "{text}"
        );
        assert!(!text.contains("commit\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
