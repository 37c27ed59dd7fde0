//! The rule by which a variant is advised in place of the preset's; [`super`] says it in words.

/// A variant wins a cell only at this ratio to the preset's or more.
pub const WIN_MIN: f64 = 1.02;
/// With one client a variant may reach this part of the preset's throughput, and no less.
pub const ONE_CLIENT_MIN: f64 = 0.99;
/// The same in any other cell.
pub const ELSEWHERE_MIN: f64 = 0.98;

/// One workload with one number of clients: a variant held against the preset's.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The workload's name.
    pub workload: String,
    /// Number of clients.
    pub clients: usize,
    /// The variant's throughput to that of the preset's: the median of the ratios of equal seeds.
    pub ratio: f64,
    /// The margin of error: how far apart these ratios are.
    pub spread: f64,
}

impl Cell {
    /// The cell of these throughputs, one of each seed in the order of the seeds; `None` if the preset's is nothing
    /// under one of them, so that there is no ratio, or if there are none.
    pub fn of(workload: impl Into<String>, clients: usize, preset: &[f64], variant: &[f64]) -> Option<Self> {
        if preset.iter().any(|base| *base <= 0.0) {
            return None;
        }
        let mut ratios: Vec<f64> = variant.iter().zip(preset).map(|(tps, base)| tps / base).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = ratios.len() / 2;
        let ratio = if ratios.len() % 2 == 1 {
            ratios[middle]
        } else {
            (ratios.get(middle.wrapping_sub(1))? + ratios[middle]) / 2.0
        };
        Some(Self {
            workload: workload.into(),
            clients,
            ratio,
            spread: ratios.last()? - ratios.first()?,
        })
    }

    /// True if the variant is better by 2 % at least, and by more than the seeds are apart.
    pub fn wins(&self) -> bool {
        self.ratio >= WIN_MIN && self.ratio - 1.0 > self.spread
    }

    /// True if the variant loses more than it may.
    pub fn loses_too_much(&self) -> bool {
        let least = if self.clients == 1 {
            ONE_CLIENT_MIN
        } else {
            ELSEWHERE_MIN
        };
        self.ratio < least
    }
}

/// The rule's finding on one variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It is better than the preset's somewhere and nowhere worse than is allowed.
    Advised,
    /// It wins nowhere.
    NoWin,
    /// It wins somewhere, and loses too much with one client.
    LosesAlone,
    /// It wins somewhere, loses no more than is allowed with one client, and too much in another cell.
    LosesElsewhere,
}

impl Finding {
    /// In a few words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Advised => "advised",
            Self::NoWin => "wins nowhere",
            Self::LosesAlone => "loses with one client",
            Self::LosesElsewhere => "loses elsewhere",
        }
    }
}

/// A variant in all its cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The variant's name.
    pub variant: String,
    /// Its cells; one at least.
    pub cells: Vec<Cell>,
}

impl Judged {
    /// The rule's finding.
    pub fn finding(&self) -> Finding {
        if !self.cells.iter().any(Cell::wins) {
            return Finding::NoWin;
        }
        let losses: Vec<&Cell> = self.cells.iter().filter(|cell| cell.loses_too_much()).collect();
        if losses.is_empty() {
            Finding::Advised
        } else if losses.iter().any(|cell| cell.clients == 1) {
            Finding::LosesAlone
        } else {
            Finding::LosesElsewhere
        }
    }

    /// The geometric mean of the ratios.
    pub fn mean(&self) -> f64 {
        let logarithms: f64 = self.cells.iter().map(|cell| cell.ratio.max(1e-9).ln()).sum();
        (logarithms / self.cells.len().max(1) as f64).exp()
    }

    /// The cell with the largest ratio, of those that it wins if it wins any.
    pub fn best(&self) -> Option<&Cell> {
        let wins_first = |cell: &&Cell| (u8::from(cell.wins()), cell.ratio);
        let order = |a: &&Cell, b: &&Cell| {
            let (a, b) = (wins_first(a), wins_first(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        self.cells.iter().max_by(order)
    }

    /// The cell with the smallest ratio.
    pub fn worst(&self) -> Option<&Cell> {
        self.cells.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// The cell of one client with the smallest ratio.
    pub fn alone(&self) -> Option<&Cell> {
        let alone = self.cells.iter().filter(|cell| cell.clients == 1);
        alone.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }
}

/// The variants that the rule allows, the one with the highest mean first, and the earlier one of two that are alike.
pub fn allowed(variants: &[Judged]) -> Vec<usize> {
    let is_allowed = |number: &usize| variants[*number].finding() == Finding::Advised;
    let mut allowed: Vec<usize> = (0..variants.len()).filter(is_allowed).collect();
    allowed.sort_by(|a, b| variants[*b].mean().total_cmp(&variants[*a].mean()));
    allowed
}

/// The variant to show beside a preset's that stays: the one with the highest mean of those that win somewhere, or of all.
pub fn closest(variants: &[Judged]) -> Option<usize> {
    first_highest(variants, |judged| judged.finding() != Finding::NoWin)
        .or_else(|| first_highest(variants, |_| true))
}

/// True if an advice holds that this many of the changes of costs turn: a quarter of them at most.
///
/// A change that has nothing to do with the mechanism is another draw of the simulation's accidents. A win that many of
/// them end was one of these.
pub fn is_stable(turned: usize, changes: usize) -> bool {
    4 * turned <= changes
}

fn first_highest(variants: &[Judged], among: impl Fn(&Judged) -> bool) -> Option<usize> {
    let mut highest: Option<(usize, f64)> = None;
    for (number, judged) in variants.iter().enumerate().filter(|(_, judged)| among(judged)) {
        let mean = judged.mean();
        if highest.is_none_or(|(_, most)| mean > most) {
            highest = Some((number, mean));
        }
    }
    highest.map(|(number, _)| number)
}
