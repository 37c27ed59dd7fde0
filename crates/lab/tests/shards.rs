//! Experiments in pieces, and what `clearway report` makes of them.
//!
//! Seen to fail: shards put together in the order in which they are given; floats read without `float_roundtrip`.

use std::alloc::System;
use std::path::{Path, PathBuf};

use clearway_lab::gather::{compare, gather};
use clearway_lab::simulate::{Experiment, Shard, SimulateOptions, html, json, run_experiment};
use clearway_sim::{LineAllocator, MachineModel};

#[global_allocator]
static ALLOCATOR: LineAllocator<System> = LineAllocator(System);

/// Runs a small experiment, or a shard of it, and writes its result as `clearway simulate` does.
fn run(directory: &Path, name: &str, shard: Option<&str>, seed: u64) -> PathBuf {
    let mut experiment = Experiment::load("latch-mix").unwrap();
    experiment.clients = vec![1, 3];
    for setting in ["warm_up_ms=1", "measure_ms=1"] {
        experiment.set(setting).unwrap();
    }
    experiment.variants.truncate(2);
    let result = run_experiment(&SimulateOptions {
        machine: MachineModel::load("laptop").unwrap(),
        experiment,
        seed,
        trace: None,
        sweep: true,
        shard: shard.map(|text| text.parse::<Shard>().unwrap()),
        progress: false,
        threads: 2,
    })
    .unwrap();
    let path = directory.join(name);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("result.json"), json(&result)).unwrap();
    if shard.is_none() {
        std::fs::write(path.join("report.html"), html(&result).unwrap()).unwrap();
    }
    path
}

fn text(path: &Path, file: &str) -> String {
    std::fs::read_to_string(path.join(file)).unwrap()
}

#[test]
fn shards_together_are_the_experiment_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let whole = run(directory.path(), "whole", None, 1);
    for of in [1, 3, 5] {
        let mut shards: Vec<PathBuf> = (1..=of)
            .map(|number| {
                run(
                    directory.path(),
                    &format!("{number}-{of}"),
                    Some(&format!("{number}/{of}")),
                    1,
                )
            })
            .collect();
        shards.reverse();
        // As on a second machine.
        for shard in &shards {
            std::fs::copy(shard.join("result.json"), shard.join("result-arm-2s.json")).unwrap();
        }
        let merged = directory.path().join(format!("merged-{of}"));
        let gathered = gather(&shards).unwrap();
        gathered.write(&merged).unwrap();
        for file in ["result.json", "report.html"] {
            assert_eq!(text(&merged, file), text(&whole, file), "{file} of {of} shards");
        }
        assert_eq!(text(&merged, "result-arm-2s.json"), text(&whole, "result.json"));
        assert!(merged.join("report-arm-2s.html").exists());
        assert!(gathered.text().contains("single-cas"));
    }
}

#[test]
fn what_is_no_part_of_the_same_whole_is_refused_with_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let of = |name: &str, shard: &str, seed| run(directory.path(), name, Some(shard), seed);
    let (one, two, three) = (of("one", "1/3", 1), of("two", "2/3", 1), of("three", "3/3", 1));
    let refused = |given: &[&PathBuf]| {
        let given: Vec<PathBuf> = given.iter().map(|path| (*path).clone()).collect();
        gather(&given).unwrap_err().to_string()
    };
    assert!(refused(&[&one, &three]).contains("shard 2/3 is not given"));
    assert!(refused(&[&one, &two, &one, &three]).contains("is shard 1/3 too"));
    let seed = refused(&[&one, &of("seed", "2/3", 2), &three]);
    assert!(
        seed.starts_with(&directory.path().join("seed").display().to_string()),
        "{seed}"
    );
    assert!(seed.contains("the seed is not that of"), "{seed}");
    assert!(refused(&[&one, &of("halves", "2/2", 1)]).contains("the number of shards"));
    assert!(refused(&[&run(directory.path(), "whole", None, 1)]).contains("no shard"));
    assert!(refused(&[&directory.path().join("absent")]).contains("absent"));
    assert!(refused(&[]).contains("name the directories"));

    // A shard from which something was cut out, and a file that is none.
    let cut = text(&two, "result.json").replacen("\"seed\": 1", "\"seed\": 1, \"more\": 2", 1);
    std::fs::write(
        two.join("result.json"),
        cut.replace("\"points\": [", "\"points\": [], \"was\": ["),
    )
    .unwrap();
    assert!(refused(&[&one, &two, &three]).contains("points are missing"));
    std::fs::write(two.join("result.json"), "{").unwrap();
    assert!(refused(&[&one, &two, &three]).contains("is no result that this version can read"));
}

#[test]
fn two_results_stand_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (
        run(directory.path(), "a", None, 1),
        run(directory.path(), "b", None, 2),
    );
    let both = compare(&a, &b).unwrap();
    let table = both.text();
    let line = table
        .lines()
        .find(|line| line.starts_with("3 clients, queued"))
        .unwrap();
    assert!(
        line.split_whitespace().count() >= 8 && !line.contains('–'),
        "{table}"
    );
    let itself = compare(&a, &a).unwrap().text();
    assert_eq!(itself.matches(" 1.00 ").count(), 4, "{itself}");
    // A point that one of them lacks.
    let less = text(&b, "result.json").replace("\"variant\": \"queued\"", "\"variant\": \"other\"");
    std::fs::write(b.join("result.json"), less).unwrap();
    assert!(compare(&a, &b).unwrap().text().contains('–'));

    let out = directory.path().join("out");
    both.write(&out).unwrap();
    let page = text(&out, "report.html");
    assert!(page.contains("<td>3 clients, queued</td>") && !page.contains("<script"));

    std::fs::write(b.join("result.json"), "{\"cells\": []}").unwrap();
    let mixed = gather(&[a.clone(), b.clone()]).unwrap_err().to_string();
    assert!(
        mixed.contains("is an experiment, and the other a bench"),
        "{mixed}"
    );
    let kinds = compare(&a, &b).unwrap_err().to_string();
    assert!(
        kinds.contains("it is a bench, and") && kinds.contains("an experiment"),
        "{kinds}"
    );
}
