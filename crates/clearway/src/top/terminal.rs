//! The terminal while `clearway top` has it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::figures::Figures;
use super::screen;
use super::view::{Action, View};
use super::watch::{News, Watch};
use crate::error::{CommandError, Result};

/// The longest time from news to their drawing: a wait for keys cannot be ended by a channel.
const TICK: Duration = Duration::from_millis(50);

/// Shows the server until the operator quits, or a signal ends the process.
pub(super) fn show(watch: &Watch, server: &str) -> Result<()> {
    let signal = Arc::new(AtomicUsize::new(0));
    // SIGHUP ends the process by itself: its terminal is gone, and a wait for keys of one that is gone has no end.
    for number in [SIGTERM, SIGINT] {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
            .map_err(CommandError::io("installing a signal handler"))?;
    }
    let mut terminal = ratatui::try_init()
        .inspect_err(|_| ratatui::restore())
        .map_err(CommandError::io("drawing on the terminal"))?;
    let shown = run(&mut terminal, watch, server, &signal);
    ratatui::restore();
    // Relaxed: the handler runs on whichever thread, and publishes nothing but the number.
    match signal.load(Ordering::Relaxed) {
        0 => shown,
        // The process ends by the signal, as the one who sent it expects.
        number => signal_hook::low_level::emulate_default_handler(number as i32)
            .map_err(CommandError::io("ending by a signal")),
    }
}

/// An error if there is no terminal to draw on.
pub(super) fn check() -> Result<()> {
    match std::io::stdout().is_terminal() {
        true => Ok(()),
        false => Err(CommandError::Usage(
            "standard output is no terminal; write --once for one look as text, or --json".to_owned(),
        )),
    }
}

fn run(
    terminal: &mut ratatui::DefaultTerminal,
    watch: &Watch,
    server: &str,
    signal: &AtomicUsize,
) -> Result<()> {
    let failed = || CommandError::io("reading from the terminal");
    let (mut view, mut figures, mut connection) = (View::default(), Figures::default(), 0);
    let mut is_drawn = false;
    while signal.load(Ordering::Relaxed) == 0 {
        while let Some(news) = watch.news()? {
            match news {
                News::Figures(number, seen) => {
                    figures = *seen;
                    view.take_figures(&figures, number == connection);
                    connection = number;
                }
                News::Said(said) => view.message = Some(said),
                News::NoAnswer(reason) => view.lose(reason),
            }
            is_drawn = false;
        }
        if !is_drawn {
            terminal
                .draw(|frame| screen::draw(frame, &figures, &view, server))
                .map_err(CommandError::io("drawing on the terminal"))?;
            is_drawn = true;
        }
        if !event::poll(TICK).map_err(failed())? {
            continue;
        }
        is_drawn = false;
        match event::read().map_err(failed())? {
            Event::Key(key) if key.kind == KeyEventKind::Press => match view.press(key, &figures) {
                Action::Nothing => {}
                Action::Quit => return Ok(()),
                Action::Give(order) => {
                    view.message = Some(format!("session {}: the server was asked", order.pid()));
                    watch.give(connection, order);
                }
            },
            // A changed size of the window is drawn, and answers no question.
            _ => {}
        }
    }
    Ok(())
}
