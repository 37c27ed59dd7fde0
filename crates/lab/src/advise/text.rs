//! The advice for people.

use std::fmt::Write;

use crate::advise::sensitivity::{INFLUENTIAL, Turns};
use crate::advise::verdict::{Cell, Finding, Judged, WIN_MIN};
use crate::advise::{Advice, GivenUp, Outcome, SwitchAdvice};
use crate::bench::standby_script;
use crate::layout::lines;

/// The advice: a row for each switch, and what is to be known of those that are advised to change.
pub fn advice_text(advice: &Advice) -> String {
    let machine = &advice.machine;
    let mut text = format!(
        "{}: {} ({} CPUs). By simulation, {} seeds, {} simulations.\n\n",
        machine.name,
        machine.description,
        machine.cpus(),
        advice.seeds,
        advice.simulations
    );
    text.push_str(&table(advice));
    let changed: Vec<&SwitchAdvice> = advice
        .switches
        .iter()
        .filter(|it| it.advised().is_some())
        .collect();
    if changed.is_empty() {
        text.push_str("\nThe preset clearway stays as it is.\n");
    }
    for it in &changed {
        text.push_str(&changed_text(it));
    }
    if let Some(together) = &advice.together {
        text.push_str(&together_text(together));
    }
    text.push_str(&rest_text(advice));
    let first = changed.first().map_or("SWITCH", |it| it.switch.name);
    let check = standby_script(first).map_or_else(|| format!("clearway bench --vary {first}"), str::to_owned);
    let _ = writeln!(
        text,
        "\nThis is a simulation: docs/simulator.md, \"What to believe\", says how far to trust it. To check on the machine \
         itself: {check}"
    );
    text
}

fn table(advice: &Advice) -> String {
    let heading = [
        "switch",
        "preset's",
        "advised",
        "compared",
        "best cell",
        "± seeds",
        "1 client",
        "worst cell",
        "why",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for it in &advice.switches {
        let (Outcome::Judged { advised, .. }, Some(shown)) = (&it.outcome, it.shown()) else {
            continue;
        };
        let cell = |cell: Option<&Cell>| cell.map_or_else(|| "–".to_owned(), cell_text);
        let why = why_text(&it.outcome, shown);
        rows.push(vec![
            it.switch.name.to_owned(),
            it.preset.to_owned(),
            if advised.is_some() {
                shown.variant.clone()
            } else {
                "preset's".to_owned()
            },
            shown.variant.clone(),
            cell(shown.best()),
            shown
                .best()
                .map_or_else(|| "–".to_owned(), |best| format!("{:.3}", best.spread)),
            shown
                .alone()
                .map_or_else(|| "–".to_owned(), |alone| format!("{:.3}", alone.ratio)),
            cell(shown.worst()),
            why,
        ]);
    }
    // No blank lines between the rows of a table whose first column never repeats.
    lines(
        &rows,
        &[false, false, false, false, false, true, true, false, false],
    )
    .replace("\n\n", "\n")
}

/// The reason why the variant that is shown is advised or not, in a few words.
pub(super) fn why_text(outcome: &Outcome, shown: &Judged) -> String {
    match (outcome, shown.finding()) {
        (
            Outcome::Judged {
                given_up: Some(GivenUp::Unstable),
                turns,
                ..
            },
            _,
        ) => format!(
            "not stable: {} of {} changes turn it",
            turns.turned(),
            turns.tried
        ),
        (
            Outcome::Judged {
                given_up: Some(GivenUp::Together),
                ..
            },
            _,
        ) => "loses together with others".to_owned(),
        (_, Finding::NoWin) if shown.cells.iter().any(|cell| cell.ratio >= WIN_MIN) => {
            "wins within the spread only".to_owned()
        }
        (_, finding) => finding.text().to_owned(),
    }
}

/// `1.043 tpcb-like, 32`.
fn cell_text(cell: &Cell) -> String {
    format!("{:.3} {}, {}", cell.ratio, cell.workload, cell.clients)
}

/// A switch that is advised to change: where it wins, its price, what turns the verdict.
fn changed_text(it: &SwitchAdvice) -> String {
    let (Some(judged), Outcome::Judged { turns, .. }) = (it.advised(), &it.outcome) else {
        return String::new();
    };
    let mut wins: Vec<&Cell> = judged.cells.iter().filter(|cell| cell.wins()).collect();
    wins.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let wins: Vec<String> = wins
        .into_iter()
        .map(|cell| format!("{} ± {:.3}", cell_text(cell), cell.spread))
        .collect();
    let not_in = match judged.cells.len() - wins.len() {
        0 => String::new(),
        others => format!("; not in {others} of {} cells", judged.cells.len()),
    };
    let mut text = format!(
        "\n{} = {}, in place of {}\n    wins        {}{not_in}\n",
        it.switch.name,
        judged.variant,
        it.preset,
        wins.join("; "),
    );
    let cell = |cell: Option<&Cell>| cell.map_or_else(|| "not run".to_owned(), cell_text);
    let _ = writeln!(text, "    one client  {}", cell(judged.alone()));
    let _ = writeln!(text, "    worst       {}", cell(judged.worst()));
    let _ = writeln!(text, "    turned by   {}", turns_text(turns));
    text
}

/// The numbers that turn a verdict, in a line: by cell, since there are two at most.
pub(super) fn turns_text(turns: &Turns) -> String {
    if turns.found.is_empty() {
        return format!("none of {} changes of {}", turns.tried, INFLUENTIAL.join(", "));
    }
    let mut text = format!("{} of {} changes", turns.turned(), turns.tried);
    let mut place = None;
    for turn in &turns.found {
        let cell = &turn.cell;
        if place == Some((&cell.workload, cell.clients)) {
            text.push(',');
        } else {
            place = Some((&cell.workload, cell.clients));
            let _ = write!(text, "; {}, {}:", cell.workload, cell.clients);
        }
        let _ = write!(text, " {:.3} with {} × {}", cell.ratio, turn.number, turn.factor);
    }
    text
}

fn together_text(together: &Judged) -> String {
    let cell = |cell: Option<&Cell>| cell.map_or_else(|| "–".to_owned(), cell_text);
    let is_sound = !together.cells.iter().any(Cell::loses_too_much);
    format!(
        "\n{}\n    mean        {:.3} of {} cells\n    best        {}\n    one client  {}\n    worst       {}\n",
        if is_sound {
            "All advised variants together, to the preset"
        } else {
            "The advised variants together lost too much, and were given up until one was left; together they had"
        },
        together.mean(),
        together.cells.len(),
        cell(together.best()),
        cell(together.alone()),
        cell(together.worst())
    )
}

/// The switches that were not run, by the reason.
fn rest_text(advice: &Advice) -> String {
    let mut text = String::new();
    let mut line = |reason: &str, is_it: &dyn Fn(&Outcome) -> bool| {
        let of_it = advice.switches.iter().filter(|it| is_it(&it.outcome));
        let names: Vec<String> = of_it
            .map(|it| format!("{} = {}", it.switch.name, it.preset))
            .collect();
        if !names.is_empty() {
            let _ = writeln!(text, "\n{reason}: {}", names.join(", "));
        }
    };
    line("Not simulated, as in the preset", &|it| {
        matches!(it, Outcome::NotSimulated)
    });
    line(
        "Not obeyed beside the preset's variants of others, as in the preset",
        &|it| matches!(it, Outcome::NotObeyed { .. }),
    );
    line("Not asked, as in the preset", &|it| {
        matches!(it, Outcome::NotAsked)
    });
    text
}

/// Every cell of every variant.
pub fn cells_text(advice: &Advice) -> String {
    let heading = ["switch", "variant", "workload", "clients", "ratio", "± seeds", ""];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for it in &advice.switches {
        let Outcome::Judged { variants, .. } = &it.outcome else {
            continue;
        };
        for judged in variants {
            for cell in &judged.cells {
                let mark = match (cell.wins(), cell.loses_too_much()) {
                    (true, _) => "wins",
                    (_, true) => "loses",
                    _ => "",
                };
                rows.push(vec![
                    it.switch.name.to_owned(),
                    judged.variant.clone(),
                    cell.workload.clone(),
                    cell.clients.to_string(),
                    format!("{:.3}", cell.ratio),
                    format!("{:.3}", cell.spread),
                    mark.to_owned(),
                ]);
            }
        }
    }
    lines(&rows, &[false, false, false, true, true, true, false])
}
