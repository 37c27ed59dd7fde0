//! The terminal while `clearway top` has it.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clearway_server::replication::receiver::ReceiverError;
use clearway_server::replication::receiver::client::Client;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::figures::{Figures, WaitCounts};
use super::sample::{self, Sample};
use super::screen;
use super::view::{Action, Order, View};
use crate::error::{CommandError, Result};

/// Looks at what sessions wait for, an interval.
pub(super) const MOMENTS: u32 = 10;

/// Shows the server until the operator quits.
pub(super) fn show(client: &mut Client, interval: Duration, server: &str) -> Result<()> {
    if !std::io::stdout().is_terminal() {
        return Err(CommandError::Usage(
            "standard output is no terminal; write --once for one look as text, or --json".to_owned(),
        ));
    }
    let failed = CommandError::io("drawing on the terminal");
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let shown = run(&mut terminal, client, interval, server);
    ratatui::restore();
    shown
}

fn run(
    terminal: &mut ratatui::DefaultTerminal,
    client: &mut Client,
    interval: Duration,
    server: &str,
) -> Result<()> {
    let mut view = View::default();
    let mut before = sample::look(client)?;
    let mut figures = Figures::between(&before, &before, &WaitCounts::default());
    loop {
        let mut waits = WaitCounts::default();
        let began = Instant::now();
        for moment in 1..=MOMENTS {
            waits.add(sample::waits(client)?);
            let until = began + interval * moment / MOMENTS;
            loop {
                let draws = |frame: &mut ratatui::Frame<'_>| screen::draw(frame, &figures, &view, server);
                terminal
                    .draw(draws)
                    .map_err(CommandError::io("drawing on the terminal"))?;
                match key(until)? {
                    None => break,
                    Some(key) => match view.press(key, &figures) {
                        Action::Nothing => {}
                        Action::Quit => return Ok(()),
                        Action::Give(order) => view.message = Some(give(client, order)?),
                    },
                }
            }
        }
        let after: Sample = sample::look(client)?;
        figures = Figures::between(&before, &after, &waits);
        before = after;
    }
}

/// A key that is pressed before `until`; `None` if none is. A changed size of the window is drawn as soon as it is known.
fn key(until: Instant) -> Result<Option<event::KeyEvent>> {
    let failed = || CommandError::io("reading from the terminal");
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if !event::poll(left).map_err(failed())? {
            return Ok(None);
        }
        match event::read().map_err(failed())? {
            Event::Key(key) if key.kind == KeyEventKind::Press => return Ok(Some(key)),
            Event::Resize(..) => return Ok(Some(event::KeyEvent::from(event::KeyCode::Null))),
            _ => {}
        }
    }
}

fn give(client: &mut Client, order: Order) -> Result<String> {
    let pid = order.pid();
    let said = match client.query(&order.sql()) {
        Ok(results) => results.first().and_then(|result| result.text("done")) == Some("t"),
        // A role that may not is told so, and goes on looking.
        Err(error @ ReceiverError::Server { .. }) => return Ok(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    Ok(match (said, order) {
        (true, Order::Cancel(_)) => format!("session {pid} was told to end its statement"),
        (true, Order::Terminate(_)) => format!("session {pid} was told to end"),
        (false, _) => format!("session {pid} has ended already"),
    })
}
