//! From the values of a column in a sample to its statistics.
//!
//! The values that are not NULL are sorted by their index keys, which order as the values do; equal keys are one value.
//!
//! # Distinct values
//! With n values in the sample, d of them different and f₁ of these seen once, of a table with N values, the estimate is
//! that of Haas and Stokes (Duj1): n·d / (n − f₁ + f₁·n/N). It is N·d/n when each value was seen once, and d when none was.
//! Two cases are decided before: no value twice means that all of the table's differ; no value once means that there are
//! no others. Beyond a tenth of the rows the number is taken to grow with the table, and kept as a part of the rows.
//!
//! # Common values
//! All values, if the sample shows each more than once and they are few enough. If not, as many of the most common as are
//! surely more common than the rest: a value whose count in the sample is within two standard deviations of what the
//! values behind it have on average is left to the histogram.
//!
//! # Bounds
//! Of the values that are not among the common ones, in order, as many as the target says plus one, at equal distances.
//!
//! # Correlation
//! Pearson's, of the places of the values in the table and in their order.

use super::{ColumnStatistics, WIDTH_MAX, stored_width};
use crate::value::key::encode_value;
use crate::value::{DataType, Value};

/// The rows of a table and of its sample.
#[derive(Debug, Clone, Copy)]
pub struct SampledTable {
    /// Rows of the table, as estimated.
    pub rows: f64,
    /// Rows of the sample.
    pub sampled: usize,
    /// The statistics target: the most common values and steps of the histogram there are.
    pub target: usize,
}

/// The values of one column in a sample.
#[derive(Debug)]
pub struct ColumnSample {
    data_type: DataType,
    nulls: usize,
    bytes: usize,
    too_wide: usize,
    /// Key, and place among the values that are neither NULL nor too wide.
    keys: Vec<(Box<[u8]>, u32)>,
    values: Vec<Value>,
}

/// Values of the sample that are equal.
struct Group {
    /// The first of them among the sorted keys.
    start: usize,
    count: usize,
}

impl ColumnSample {
    /// The sample of a column, without values.
    pub fn new(data_type: DataType) -> ColumnSample {
        ColumnSample {
            data_type,
            nulls: 0,
            bytes: 0,
            too_wide: 0,
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds the value of the next row of the sample.
    pub fn add(&mut self, value: Value) {
        if value.is_null() {
            self.nulls += 1;
            return;
        }
        if let Value::Stored(form) = &value {
            // Stored apart: too wide, and not worth reading.
            self.bytes += form.len();
            self.too_wide += 1;
            return;
        }
        let width = stored_width(&value, self.data_type);
        self.bytes += width;
        if width > WIDTH_MAX {
            self.too_wide += 1;
            return;
        }
        let mut key = Vec::new();
        encode_value(&value, self.data_type, &mut key);
        self.keys.push((key.into(), self.values.len() as u32));
        self.values.push(value);
    }

    /// The statistics of the column.
    pub fn finish(mut self, table: SampledTable) -> ColumnStatistics {
        let sampled = table.sampled.max(1) as f64;
        let present = self.values.len() + self.too_wide;
        let null_fraction = self.nulls as f64 / sampled;
        let fixed = self.data_type.wire_size();
        let width = match (fixed, present) {
            (1.., _) => i32::from(fixed),
            (_, 0) => 0,
            _ => (self.bytes as f64 / present as f64) as i32,
        };
        let mut statistics = ColumnStatistics {
            data_type: self.data_type,
            null_fraction: null_fraction as f32,
            width,
            distinct: 0.0,
            common: Vec::new(),
            bounds: Vec::new(),
            correlation: None,
        };
        if self.values.is_empty() {
            if self.too_wide > 0 {
                statistics.distinct = -(1.0 - null_fraction) as f32;
            }
            return statistics;
        }
        // Equal keys stay in the order of the table.
        self.keys.sort();
        let groups = self.groups();
        let several = groups.iter().filter(|group| group.count > 1).count();
        let distinct = self.distinct(table, groups.len(), several);
        statistics.distinct = distinct as f32;
        let common = self.common(table, &groups, several, distinct, null_fraction);
        let of_common = common.iter().map(|at| &groups[*at]);
        statistics.common = of_common
            .map(|group| {
                (
                    self.value_at(group.start).clone(),
                    (group.count as f64 / sampled) as f32,
                )
            })
            .collect();
        statistics.bounds = self.bounds(&groups, &common, table.target);
        statistics.correlation = self.correlation(groups.len());
        statistics
    }

    fn value_at(&self, place: usize) -> &Value {
        &self.values[self.keys[place].1 as usize]
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (place, (key, _)) in self.keys.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if self.keys[group.start].0 == *key => group.count += 1,
                _ => groups.push(Group {
                    start: place,
                    count: 1,
                }),
            }
        }
        groups
    }

    /// The number of distinct values, as [`ColumnStatistics::distinct`] has it.
    fn distinct(&self, table: SampledTable, groups: usize, several: usize) -> f64 {
        let present = 1.0 - self.nulls as f64 / table.sampled.max(1) as f64;
        if several == 0 {
            return -present;
        }
        let count = if self.too_wide == 0 && several == groups {
            groups as f64
        } else {
            let once = (groups - several + self.too_wide) as f64;
            let different = once + several as f64;
            let n = (self.values.len() + self.too_wide) as f64;
            let all = table.rows * present;
            let estimated = match all > 0.0 {
                true => n * different / ((n - once) + once * n / all),
                false => 0.0,
            };
            (estimated.max(different).min(all) + 0.5).floor()
        };
        match count > 0.1 * table.rows {
            true => -(count / table.rows),
            false => count,
        }
    }

    /// The groups of the most common values, the most common first.
    fn common(
        &self,
        table: SampledTable,
        groups: &[Group],
        several: usize,
        distinct: f64,
        null_fraction: f64,
    ) -> Vec<usize> {
        let mut ranked: Vec<usize> = (0..groups.len()).filter(|at| groups[*at].count > 1).collect();
        ranked.sort_by_key(|at| std::cmp::Reverse(groups[*at].count));
        ranked.truncate(table.target);
        let is_complete =
            several == groups.len() && self.too_wide == 0 && distinct > 0.0 && groups.len() <= table.target;
        if !is_complete {
            let counts: Vec<usize> = ranked.iter().map(|at| groups[*at].count).collect();
            ranked.truncate(surely_common(table, &counts, distinct, null_fraction));
        }
        ranked
    }

    /// The steps of the histogram over the values that are not common.
    fn bounds(&self, groups: &[Group], common: &[usize], target: usize) -> Vec<Value> {
        let steps = (groups.len() - common.len()).min(target + 1);
        if steps < 2 {
            return Vec::new();
        }
        let mut is_common = vec![false; groups.len()];
        common.iter().for_each(|at| is_common[*at] = true);
        let rest = groups.iter().zip(&is_common).filter(|(_, common)| !**common);
        let places: Vec<usize> = rest
            .flat_map(|(group, _)| group.start..group.start + group.count)
            .collect();
        let last = places.len() - 1;
        (0..steps)
            .map(|step| self.value_at(places[step * last / (steps - 1)]).clone())
            .collect()
    }

    fn correlation(&self, groups: usize) -> Option<f32> {
        let n = self.keys.len() as f64;
        if self.keys.len() < 2 {
            return None;
        }
        if groups == 1 {
            return Some(1.0);
        }
        let products = self.keys.iter().enumerate();
        let products: f64 = products
            .map(|(place, (_, at))| place as f64 * f64::from(*at))
            .sum();
        let sum = n * (n - 1.0) / 2.0;
        let squares = n * (n - 1.0) * (2.0 * n - 1.0) / 6.0;
        Some(((n * products - sum * sum) / (n * squares - sum * sum)) as f32)
    }
}

/// The number of values, of those with these counts in descending order, that are surely more common than the others.
fn surely_common(table: SampledTable, counts: &[usize], distinct: f64, null_fraction: f64) -> usize {
    let (all, sampled) = (table.rows, table.sampled as f64);
    if sampled >= all || all <= 1.0 {
        return counts.len();
    }
    let distinct = if distinct < 0.0 { -distinct * all } else { distinct };
    let mut kept = counts.len();
    let mut before: usize = counts.iter().rev().skip(1).sum();
    while kept > 0 {
        let count = counts[kept - 1] as f64;
        // The part of the rows that each value has that is neither NULL nor more common than this one.
        let rest = (1.0 - before as f64 / sampled - null_fraction).clamp(0.0, 1.0);
        let others = distinct - (kept - 1) as f64;
        let part = if others > 1.0 { rest / others } else { rest };
        // The count of a value is distributed hypergeometrically.
        let in_table = all * count / sampled;
        let variance = sampled * in_table * (all - in_table) * (all - sampled) / (all * all * (all - 1.0));
        if count > part * sampled + 2.0 * variance.sqrt() + 0.5 {
            break;
        }
        kept -= 1;
        before -= kept.checked_sub(1).map_or(0, |last| counts[last]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = Option<i32>>, rows: f64, target: usize) -> ColumnStatistics {
        let mut sample = ColumnSample::new(DataType::Int4);
        let mut sampled = 0;
        for value in values {
            sample.add(value.map_or(Value::Null, Value::Int4));
            sampled += 1;
        }
        sample.finish(SampledTable {
            rows,
            sampled,
            target,
        })
    }

    #[test]
    fn different_values_are_a_part_of_the_rows_and_a_histogram() {
        let found = of((0..1_000).map(Some), 1_000.0, 4);
        assert_eq!(found.distinct, -1.0);
        assert_eq!(found.common, []);
        assert_eq!(found.bounds, [0, 249, 499, 749, 999].map(Value::Int4));
        assert_eq!(found.correlation, Some(1.0));
        assert_eq!(of((0..9).rev().map(Some), 9.0, 4).correlation, Some(-1.0));
    }

    #[test]
    fn few_values_are_all_common() {
        let found = of((0..100).map(|n| (n % 10 != 0).then_some(n % 3)), 100.0, 10);
        assert_eq!(found.null_fraction, 0.1);
        assert_eq!(found.distinct, 3.0);
        let counts: Vec<f32> = found.common.iter().map(|(_, part)| *part).collect();
        assert_eq!(counts, [0.3, 0.3, 0.3]);
        assert_eq!(found.bounds, []);
    }

    #[test]
    fn the_estimator_scales_what_was_seen_once() {
        // 90 values once and 5 values twice in a sample of 100 of 10,000: 100 · 95 / (10 + 90 · 100 / 10,000).
        let values = (0..90).chain((0..10).map(|n| 100 + n / 2)).map(Some);
        assert_eq!(of(values.clone(), 10_000.0, 10).distinct, 872.0);
        // Of a table of 1,000 that is more than a tenth: 9,500 / (10 + 9) = 500.
        assert_eq!(of(values, 1_000.0, 10).distinct, -0.5);
    }

    #[test]
    fn a_value_is_common_if_it_surely_is_more_common_than_the_rest() {
        // 500 times one value, and 500 values about as often as each other, of a large table.
        let values = (0..1_000).map(|n| Some(if n % 2 == 0 { -1 } else { n / 4 }));
        let found = of(values, 1e6, 100);
        assert_eq!(found.common, [(Value::Int4(-1), 0.5)]);
        assert_eq!(found.bounds.len(), 101);
    }

    #[test]
    fn no_rows_and_only_nulls() {
        assert_eq!(of([], 0.0, 10).distinct, 0.0);
        let found = of([None, None], 2.0, 10);
        assert_eq!((found.null_fraction, found.distinct, found.width), (1.0, 0.0, 4));
        assert_eq!(found.correlation, None);
    }
}
