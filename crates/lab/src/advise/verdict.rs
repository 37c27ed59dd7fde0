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
    /// How many clients.
    pub clients: usize,
    /// Median throughput of the variant, to that of the preset's.
    pub ratio: f64,
    /// The margin of error: how far apart the seeds of either are, the wider of both, as a part of its median.
    pub spread: f64,
}

impl Cell {
    /// The cell of these throughputs, one of each seed; `None` if the preset's are nothing, so that there is no ratio.
    pub fn of(workload: impl Into<String>, clients: usize, preset: &[f64], variant: &[f64]) -> Option<Self> {
        let base = median(preset).filter(|base| *base > 0.0)?;
        Some(Self {
            workload: workload.into(),
            clients,
            ratio: median(variant)? / base,
            spread: spread(preset).max(spread(variant)),
        })
    }

    /// Whether the variant is better by 2 % at least, and by more than the seeds are apart.
    pub fn wins(&self) -> bool {
        self.ratio >= WIN_MIN && self.ratio - 1.0 > self.spread
    }

    /// Whether the variant loses more than it may.
    pub fn loses_too_much(&self) -> bool {
        let least = if self.clients == 1 {
            ONE_CLIENT_MIN
        } else {
            ELSEWHERE_MIN
        };
        self.ratio < least
    }
}

fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

fn spread(samples: &[f64]) -> f64 {
    let highest = samples.iter().copied().fold(f64::MIN, f64::max);
    let lowest = samples.iter().copied().fold(f64::MAX, f64::min);
    match median(samples) {
        Some(median) if median > 0.0 => (highest - lowest) / median,
        _ => 0.0,
    }
}

/// What the rule finds of one variant.
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
    /// What the rule finds.
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

/// Which of the variants is advised: of those that the rule allows, the one with the highest mean; the earlier one of
/// two that are alike. `None`: the preset's stays.
pub fn choose(variants: &[Judged]) -> Option<usize> {
    first_highest(variants, |judged| judged.finding() == Finding::Advised)
}

/// The variant to show beside a preset's that stays: the one with the highest mean of those that win somewhere, or of all.
pub fn closest(variants: &[Judged]) -> Option<usize> {
    first_highest(variants, |judged| judged.finding() != Finding::NoWin)
        .or_else(|| first_highest(variants, |_| true))
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
