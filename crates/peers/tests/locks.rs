//! Each lock of the benches excludes, and has the modes that its entry says.

#[path = "../benches/locks/mod.rs"]
mod locks;

use std::time::Duration;

use clearway_peers::measure::Point;
use clearway_peers::schedule::{Cell, measure_all};
use clearway_peers::section::Section;

#[test]
fn each_lock_excludes_and_has_its_modes() {
    let subjects = locks::subjects();
    let mut names: Vec<_> = subjects.iter().map(|subject| subject.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), subjects.len());
    for reads_percent in [0, 50, 100] {
        let with_readers = subjects.iter().filter(|subject| subject.has_readers).count();
        let expected = if reads_percent == 0 {
            subjects.len()
        } else {
            with_readers
        };
        // On a busy host no thread may run in a short measurement.
        let mut durations = (0..12).map(|doublings| Duration::from_millis(5 << doublings));
        let has_all_modes = durations.any(|duration| {
            let point = Point {
                threads: 3,
                section: Section::of(Duration::from_nanos(100)),
                reads_percent,
                duration,
                seed: 1,
            };
            let cells = measure_all(&subjects, &point, 1).unwrap();
            assert_eq!(cells.len(), expected, "{reads_percent} %");
            let modes = |cell: &Cell| {
                let figures = cell.rounds[0];
                [figures.read.is_some(), figures.write.is_some()]
            };
            let wanted = [reads_percent > 0, reads_percent < 100];
            cells.iter().all(|cell| modes(cell) == wanted)
        });
        assert!(has_all_modes, "{reads_percent} %");
    }
}
