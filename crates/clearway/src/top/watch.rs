//! The thread that looks at the server, beside the one that reads keys.
//!
//! A server may answer late or not at all, and the operator must be able to leave meanwhile. So one thread has the connection,
//! and tells the other by a channel what it has seen:
//!
//! 1. It makes figures of each interval. An order is carried out between two looks, and its outcome is told.
//! 2. If there is no answer, it says so, and connects anew after an interval. The other thread keeps the last figures.
//! 3. An order counts for the connection whose figures the operator saw. A server that was started again numbers its sessions
//!    anew, and the order would be carried out on another one.
//! 4. It ends when the other thread has dropped its end of a channel. The stop signal ends a wait for the server.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use clearway_server::StopSignal;
use clearway_server::replication::receiver::ReceiverError;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;

use super::PATIENCE;
use super::figures::Figures;
use super::intervals::Intervals;
use super::view::Order;
use crate::error::{CommandError, Result};

/// The number of a connection; each has another.
pub(super) type ConnectionNumber = u64;

/// News of the thread that looks.
pub(super) enum News {
    /// The figures of an interval, or of the first look.
    Figures(ConnectionNumber, Box<Figures>),
    /// The outcome of an order.
    Said(String),
    /// The reason why there are no figures.
    NoAnswer(String),
}

/// The end of the channels that the thread that reads keys has. Dropped, it ends the other thread.
pub(super) struct Watch {
    news: Receiver<News>,
    orders: Sender<(ConnectionNumber, Order)>,
    stop: StopSignal,
}

impl Watch {
    /// Starts to look at the server of a connection.
    pub(super) fn start(
        client: Client,
        info: ConnInfo,
        interval: Duration,
        stop: StopSignal,
    ) -> Result<Watch> {
        let (news_sender, news) = mpsc::channel();
        let (orders, orders_receiver) = mpsc::channel();
        let watcher = Watcher {
            info,
            interval,
            stop: stop.clone(),
            news: news_sender,
            orders: orders_receiver,
            connection: 0,
        };
        thread::Builder::new()
            .name("looks".to_owned())
            .spawn(move || watcher.run(client))
            .map_err(CommandError::io("starting the thread that looks at the server"))?;
        Ok(Watch { news, orders, stop })
    }

    /// The next news, if there are any.
    pub(super) fn news(&self) -> Result<Option<News>> {
        match self.news.try_recv() {
            Ok(news) => Ok(Some(news)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                let ended = std::io::Error::other("it has ended");
                Err(CommandError::io("the thread that looks at the server")(ended))
            }
        }
    }

    /// Gives an order to a session that figures of this connection show.
    pub(super) fn give(&self, connection: ConnectionNumber, order: Order) {
        // If the thread has ended, `news` says so.
        let _ = self.orders.send((connection, order));
    }
}

impl Drop for Watch {
    /// The thread is not waited for: it may be looking up a name, which no signal ends.
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// The reason why a connection is given up.
enum GivenUp {
    /// Rule 4.
    Left,
    NoAnswer(ReceiverError),
}

impl From<ReceiverError> for GivenUp {
    fn from(error: ReceiverError) -> GivenUp {
        GivenUp::NoAnswer(error)
    }
}

impl<T> From<SendError<T>> for GivenUp {
    fn from(_: SendError<T>) -> GivenUp {
        GivenUp::Left
    }
}

/// The thread that looks.
struct Watcher {
    info: ConnInfo,
    interval: Duration,
    stop: StopSignal,
    news: Sender<News>,
    orders: Receiver<(ConnectionNumber, Order)>,
    connection: ConnectionNumber,
}

impl Watcher {
    fn run(mut self, client: Client) {
        let mut client = Some(client);
        loop {
            self.connection += 1;
            let connected = match client.take() {
                Some(client) => Ok(client),
                None => Client::connect_session(&self.info, PATIENCE, &self.stop),
            };
            let tried = connected
                .map_err(GivenUp::from)
                .and_then(|client| self.look(client));
            let error = match tried {
                Ok(never) => match never {},
                Err(GivenUp::Left | GivenUp::NoAnswer(ReceiverError::Stopped)) => return,
                Err(GivenUp::NoAnswer(error)) => error,
            };
            if self.news.send(News::NoAnswer(reason(&error))).is_err()
                || self.pause(None, Instant::now() + self.interval).is_err()
            {
                return;
            }
        }
    }

    /// Looks until there is no answer.
    fn look(&self, client: Client) -> Result<std::convert::Infallible, GivenUp> {
        let mut intervals = Intervals::begin(client, self.interval)?;
        self.tell(intervals.first())?;
        loop {
            let figures = intervals.next(|client, until| self.pause(Some(client), until))?;
            self.tell(figures)?;
        }
    }

    fn tell(&self, figures: Figures) -> Result<(), GivenUp> {
        Ok(self
            .news
            .send(News::Figures(self.connection, Box::new(figures)))?)
    }

    /// Carries out orders until a moment: the number of those that the server was sent.
    fn pause(&self, mut client: Option<&mut Client>, until: Instant) -> Result<usize, GivenUp> {
        let mut sent = 0;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let (connection, order) = match self.orders.recv_timeout(left) {
                Ok(given) => given,
                Err(RecvTimeoutError::Timeout) => return Ok(sent),
                Err(RecvTimeoutError::Disconnected) => return Err(GivenUp::Left),
            };
            let said = match client.as_deref_mut() {
                Some(client) if connection == self.connection => {
                    sent += 1;
                    give(client, order)?
                }
                _ => format!(
                    "nothing was done: the connection that showed session {} is gone",
                    order.pid()
                ),
            };
            self.news.send(News::Said(said))?;
        }
    }
}

/// Sends an order to the server: its outcome, in words for the operator.
fn give(client: &mut Client, order: Order) -> Result<String, ReceiverError> {
    let pid = order.pid();
    let done = match client.query(&order.sql()) {
        Ok(results) => results.first().and_then(|result| result.text("done")) == Some("t"),
        // A role that may not is told so, and goes on looking.
        Err(ReceiverError::Server { report, .. }) if report.severity == "ERROR" => {
            return Ok(report.to_string());
        }
        Err(error) => return Err(error),
    };
    Ok(match (done, order) {
        (true, Order::Cancel(_)) => format!("session {pid} was told to end its statement"),
        (true, Order::Terminate(_)) => format!("session {pid} was told to end"),
        (false, _) => format!("session {pid} has ended already"),
    })
}

/// An error in words for the operator, who knows which server it is.
fn reason(error: &ReceiverError) -> String {
    match error {
        ReceiverError::Connect { source, .. } | ReceiverError::Lost { source, .. } => source.to_string(),
        ReceiverError::Closed { .. } => "the connection was closed".to_owned(),
        ReceiverError::Silent { patience, .. } => format!("silent for {patience:?}"),
        ReceiverError::Server { report, .. } => report.to_string(),
        error => error.to_string(),
    }
}
