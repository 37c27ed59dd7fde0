//! `clearway cluster`: what an operator does with a cluster of nodes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use clearway_node::cluster_state::View;
use clearway_node::operator;
use clearway_storage::Lsn;

use crate::error::Result;
use crate::etcd_options::{EtcdArguments, check_name};
use crate::options::duration;
use crate::output;

/// The time that each endpoint of etcd has for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Look at a cluster of nodes, have another node lead, hold takeovers back
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway cluster status --etcd http://127.0.0.1:2379 --cluster shop\n  \
    clearway cluster switchover --to berlin --etcd http://127.0.0.1:2379 --cluster shop\n  \
    clearway cluster pause --etcd http://127.0.0.1:2379 --cluster shop       before work on etcd or the network\n  \
    clearway cluster resume --etcd http://127.0.0.1:2379 --cluster shop")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the nodes, and which of them leads
    Status {
        #[command(flatten)]
        etcd: EtcdArguments,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Have another node lead: the one that leads stops in order, and nothing that was committed is lost
    Switchover {
        #[command(flatten)]
        etcd: EtcdArguments,
        /// Node that is to lead
        #[arg(long, value_name = "NAME")]
        to: String,
        /// Longest wait for it
        #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
        timeout: Duration,
    },
    /// Hold takeovers back: whatever happens to the node that leads, no other one is promoted
    Pause {
        #[command(flatten)]
        etcd: EtcdArguments,
    },
    /// End a pause
    Resume {
        #[command(flatten)]
        etcd: EtcdArguments,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.action {
        Action::Status { etcd, json } => {
            let view = operator::status(&mut etcd.client(PATIENCE)?)?;
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = since.map_or(0, |since| since.as_secs());
            match json {
                true => output::line(format_args!("{:#}", operator::as_json(&view, now))),
                false => output::print(format_args!("{}", table(&view, now))),
            }
        }
        Action::Switchover { etcd, to, timeout } => {
            check_name("node", to)?;
            let from = operator::switchover(&mut etcd.client(PATIENCE)?, to, *timeout)?;
            output::line(format_args!("{to} leads, in place of {from}"))
        }
        Action::Pause { etcd } => {
            operator::pause(&mut etcd.client(PATIENCE)?, true)?;
            output::line(format_args!(
                "paused: no node takes over until \"clearway cluster resume\""
            ))
        }
        Action::Resume { etcd } => {
            operator::pause(&mut etcd.client(PATIENCE)?, false)?;
            output::line(format_args!("nodes take over again"))
        }
    }
}

fn table(view: &View, now: u64) -> String {
    let header = [
        "NODE",
        "ROLE",
        "TIMELINE",
        "POSITION",
        "LAG",
        "SYNCHRONOUS",
        "SEEN",
        "ADDRESS",
    ];
    let mut lines = vec![header.map(str::to_owned)];
    for row in operator::rows(view, now) {
        lines.push([
            row.name,
            row.role,
            row.timeline.to_string(),
            Lsn(row.position).to_string(),
            row.lag
                .map_or_else(|| "–".to_owned(), |lag| format!("{lag} bytes")),
            if row.synchronous { "yes" } else { "no" }.to_owned(),
            format!("{} s ago", row.age_s),
            row.conninfo,
        ]);
    }
    let mut text = String::new();
    for line in &lines {
        for (column, field) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[column].chars().count()).max();
            let padding = width.unwrap_or(0) - field.chars().count();
            text.push_str(field);
            if column + 1 < line.len() {
                text.push_str(&" ".repeat(padding + 2));
            }
        }
        text.push('\n');
    }
    if view.paused {
        text.push_str("paused: no node takes over\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_node() {
        let member = r#"{"conninfo":"host=a","checks":null,"role":"standby","timeline":2,"position":4096,
            "follows":"b","streams":true,"beats":7,"written_at":100}"#;
        let keys = [
            ("members/a", member.as_bytes(), 3),
            ("pause", b"true".as_slice(), 4),
        ];
        let text = table(&View::parse(keys).unwrap(), 103);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].starts_with("a     standby  2         0/1000    –    no           3 s ago  host=a"));
        assert!(lines[2].starts_with("paused"));
    }
}
