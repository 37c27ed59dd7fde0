//! The way of log lines to standard error: threads append, one thread writes.
//!
//! A pipe that is not read takes 64 kB, and then keeps the thread that writes to it. So no session may write, and none may
//! hold what another one needs to append a line.
//!
//! # Rules
//!
//! - R1: A line is whole in the buffer, or it is counted as lost. Once a line is lost, all are until the writer takes the
//!   buffer, so that the count stands where the lines are missing.
//! - R2: The writer holds no lock while it writes, so a thread that appends waits for no reader.
//! - R3: The buffer holds at most [`BYTES_MAX`], and the writer's copy as much.
//! - R4: [`flush`](Queue::flush) returns when all that was appended before has been written, or its time is up.

use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of lines that wait to be written.
const BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct State {
    buffer: Vec<u8>,
    /// The lines in the buffer.
    lines: u64,
    /// The lines that were lost since the writer took the buffer last.
    lost: u64,
    is_writing: bool,
}

/// Lines on their way to standard error.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// The buffer is not empty any more.
    filled: Condvar,
    /// All that was taken has been written.
    written: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Of a thread that panicked in between, half a line may be there.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a line, which ends with a newline.
    pub(super) fn append(&self, line: &str) {
        let mut state = self.lock();
        if state.lost > 0 || state.buffer.len() + line.len() > BYTES_MAX {
            state.lost += 1;
            return;
        }
        let was_empty = state.lines == 0;
        state.buffer.extend_from_slice(line.as_bytes());
        state.lines += 1;
        drop(state);
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Writes lines to `output` without end. What it does not take is lost, and told of by `told` once it takes lines again.
    pub(super) fn write_to(&self, output: &mut dyn Write, told: impl Fn(u64) -> String) -> ! {
        let mut taken = Vec::new();
        // Lines that the output has refused.
        let mut refused = 0;
        loop {
            let (lines, lost) = self.take(&mut taken);
            if lost > 0 {
                taken.extend_from_slice(told(lost).as_bytes());
            }
            let outcome = match refused {
                0 => output.write_all(&taken),
                _ => output
                    .write_all(told(refused).as_bytes())
                    .and_then(|()| output.write_all(&taken)),
            };
            refused = match outcome {
                Ok(()) => 0,
                Err(_) => refused + lines + lost,
            };
            self.lock().is_writing = false;
            self.written.notify_all();
        }
    }

    /// Waits for lines, and takes them; their number, and that of lines lost behind them.
    fn take(&self, taken: &mut Vec<u8>) -> (u64, u64) {
        let mut state = self
            .filled
            .wait_while(self.lock(), |state| state.lines == 0)
            .unwrap_or_else(PoisonError::into_inner);
        taken.clear();
        std::mem::swap(&mut state.buffer, taken);
        state.is_writing = true;
        (std::mem::take(&mut state.lines), std::mem::take(&mut state.lost))
    }

    /// Waits until all lines have been written, but no longer than `patience`; whether they have.
    pub(super) fn flush(&self, patience: Duration) -> bool {
        let waits = |state: &mut State| state.lines > 0 || state.is_writing;
        let (_state, waited) = self
            .written
            .wait_timeout_while(self.lock(), patience, waits)
            .unwrap_or_else(PoisonError::into_inner);
        !waited.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use super::*;

    /// Takes each write when the test says so, and gives it to the test; refuses it if that is what the test says.
    struct Reader {
        may: Receiver<bool>,
        wrote: Sender<String>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = self.may.recv().unwrap_or(true);
            let _ = self.wrote.send(String::from_utf8_lossy(bytes).into_owned());
            match taken {
                true => Ok(bytes.len()),
                false => Err(io::ErrorKind::StorageFull.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const LONG: Duration = Duration::from_secs(120);

    fn queue() -> (Arc<Queue>, Sender<bool>, Receiver<String>) {
        let queue = Arc::new(Queue::default());
        let ((allow, may), (wrote, written)) = (channel(), channel());
        let writing = Arc::clone(&queue);
        thread::spawn(move || {
            writing.write_to(&mut Reader { may, wrote }, |lost| format!("{lost} lost\n"));
        });
        (queue, allow, written)
    }

    #[test]
    fn lines_leave_in_their_order_and_a_flush_waits_for_them() {
        let (queue, allow, written) = queue();
        for _ in 0..2 {
            allow.send(true).unwrap();
        }
        queue.append("one\n");
        queue.append("two\n");
        assert!(queue.flush(LONG));
        let text: String = written.try_iter().collect();
        assert_eq!(text, "one\ntwo\n");
    }

    /// R1, R2 and R3: nothing is read, a hundred times as much is appended as fits, and nothing waits.
    #[test]
    fn lines_that_do_not_fit_are_counted_where_they_are_missing() {
        let (queue, allow, written) = queue();
        queue.append("first\n");
        let line = format!("{}\n", "x".repeat(999));
        let count = 100 * BYTES_MAX / line.len();
        for _ in 0..count {
            queue.append(&line);
        }
        queue.append("short\n");
        assert!(!queue.flush(Duration::from_millis(10)), "nothing was read");
        let (mut lines, mut lost, mut text) = (0, 0, String::new());
        while lines + lost < count + 2 {
            allow.send(true).unwrap();
            text = written.recv_timeout(LONG).unwrap();
            lines += text.lines().filter(|line| !line.ends_with(" lost")).count();
            let told = text.lines().filter_map(|line| line.strip_suffix(" lost"));
            lost += told.map(|number| number.parse::<usize>().unwrap()).sum::<usize>();
        }
        assert!(lines <= 2 * BYTES_MAX / line.len() + 2, "{lines}");
        // The short line, which would have fitted, is among the lost ones.
        assert!(!text.contains("short") && text.ends_with(" lost\n"));
        allow.send(true).unwrap();
        queue.append("after\n");
        assert!(queue.flush(LONG));
        assert_eq!(written.recv_timeout(LONG).unwrap(), "after\n");
    }

    #[test]
    fn what_the_output_refuses_is_told_of_when_it_takes_lines_again() {
        let (queue, allow, written) = queue();
        allow.send(false).unwrap();
        queue.append("gone\n");
        assert!(queue.flush(LONG));
        assert_eq!(written.recv_timeout(LONG).unwrap(), "gone\n");
        for _ in 0..2 {
            allow.send(true).unwrap();
        }
        queue.append("next\n");
        assert!(queue.flush(LONG));
        let text: String = written.try_iter().collect();
        assert_eq!(text, "1 lost\nnext\n");
    }
}
