//! The way of log lines to standard error: threads append, one thread writes.
//!
//! A pipe that is not read takes 64 kB, and then keeps the thread that writes to it. So no session may write, and none may
//! hold what another one needs to append a line.
//!
//! # Rules
//!
//! - R1: A line is whole in the buffer, or it is counted as lost. Once a line is lost, all are until the writer takes the
//!   buffer, so that the count stands where the lines are missing. The writer takes a buffer that has nothing but a count, too.
//! - R2: The writer holds no lock while it writes, so a thread that appends waits for no reader.
//! - R3: The buffer holds at most [`BYTES_MAX`], and the writer's copy as much.
//! - R4: [`flush`](Queue::flush) returns when the writer is done with all that was appended before, or its time is up.
//!   Lines that others append meanwhile do not count.
//! - R5: What the output takes begins at a line's beginning, also behind a line of which it has taken a part.

use std::io::{ErrorKind, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of lines that wait to be written.
const BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct State {
    buffer: Vec<u8>,
    /// The ends of the lines in the buffer.
    ends: Vec<usize>,
    /// The lines that were lost since the writer took the buffer last.
    lost: u64,
    /// The lines that ever came, the lost ones too.
    appended: u64,
    /// The lines that the writer is done with.
    done: u64,
}

impl State {
    fn has_nothing(&self) -> bool {
        self.ends.is_empty() && self.lost == 0
    }
}

/// Lines that the writer has taken.
#[derive(Debug, Default)]
struct Taken {
    buffer: Vec<u8>,
    ends: Vec<usize>,
    /// Lines that were lost behind these.
    lost: u64,
    /// With these, as many lines have come.
    up_to: u64,
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
        let had_nothing = state.has_nothing();
        state.appended += 1;
        if state.lost > 0 || state.buffer.len() + line.len() > BYTES_MAX {
            state.lost += 1;
        } else {
            state.buffer.extend_from_slice(line.as_bytes());
            let end = state.buffer.len();
            state.ends.push(end);
        }
        drop(state);
        if had_nothing {
            self.filled.notify_one();
        }
    }

    /// Writes lines to `output` without end. What it does not take is lost, and told of by `told` once it takes lines again.
    pub(super) fn write_to(&self, output: &mut dyn Write, told: impl Fn(u64) -> String) -> ! {
        let mut taken = Taken::default();
        let mut writer = LineWriter {
            output,
            is_amid: false,
        };
        // Lines that the output has refused.
        let mut refused = 0;
        loop {
            self.take(&mut taken);
            if taken.lost > 0 {
                taken.buffer.extend_from_slice(told(taken.lost).as_bytes());
            }
            if refused > 0 && writer.write(told(refused).as_bytes()).is_ok() {
                refused = 0;
            }
            let written = match refused {
                0 => writer.write(&taken.buffer),
                _ => Err(0),
            };
            if let Err(bytes) = written {
                let missing = taken.ends.iter().filter(|end| **end > bytes).count();
                refused += missing as u64 + taken.lost;
            }
            self.lock().done = taken.up_to;
            self.written.notify_all();
        }
    }

    /// Waits for lines, or for the number of lost ones, and takes them.
    fn take(&self, taken: &mut Taken) {
        let mut state = self
            .filled
            .wait_while(self.lock(), |state| state.has_nothing())
            .unwrap_or_else(PoisonError::into_inner);
        taken.buffer.clear();
        taken.ends.clear();
        std::mem::swap(&mut state.buffer, &mut taken.buffer);
        std::mem::swap(&mut state.ends, &mut taken.ends);
        taken.lost = std::mem::take(&mut state.lost);
        taken.up_to = state.appended;
    }

    /// Waits until the writer is done with all lines that came before, but no longer than `patience`; whether it is (R4).
    pub(super) fn flush(&self, patience: Duration) -> bool {
        let appended = self.lock().appended;
        self.flush_first(appended, patience)
    }

    /// As [`flush`](Self::flush), for the first lines that ever came, so many of them.
    fn flush_first(&self, lines: u64, patience: Duration) -> bool {
        let (_state, waited) = self
            .written
            .wait_timeout_while(self.lock(), patience, |state| state.done < lines)
            .unwrap_or_else(PoisonError::into_inner);
        !waited.timed_out()
    }
}

/// Writes whole lines (R5).
struct LineWriter<'w> {
    output: &'w mut dyn Write,
    /// True if the output has taken a part of a line last.
    is_amid: bool,
}

impl LineWriter<'_> {
    /// Writes lines; on an error, the number of their bytes that were written.
    fn write(&mut self, lines: &[u8]) -> Result<(), usize> {
        if lines.is_empty() {
            return Ok(());
        }
        if self.is_amid {
            self.write_some(b"\n").map_err(|_| 0_usize)?;
            self.is_amid = false;
        }
        let written = self.write_some(lines);
        let bytes = written.err().unwrap_or(lines.len());
        self.is_amid = bytes > 0 && lines[bytes - 1] != b'\n';
        written
    }

    fn write_some(&mut self, bytes: &[u8]) -> Result<(), usize> {
        let mut written = 0;
        while written < bytes.len() {
            match self.output.write(&bytes[written..]) {
                Ok(0) => return Err(written),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(written),
            }
        }
        Ok(())
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

    /// Takes as many bytes as `room` says, then nothing until there is room again.
    struct Disk {
        room: Arc<Mutex<usize>>,
        holds: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut room = self.room.lock().unwrap();
            let count = bytes.len().min(*room);
            *room -= count;
            self.holds.lock().unwrap().extend_from_slice(&bytes[..count]);
            match count {
                0 => Err(io::ErrorKind::StorageFull.into()),
                count => Ok(count),
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

    /// R1: an idle writer hears of a line that is lost since it alone is too long.
    #[test]
    fn a_line_that_can_never_fit_is_counted_and_the_next_ones_leave() {
        let (queue, allow, written) = queue();
        for _ in 0..2 {
            allow.send(true).unwrap();
        }
        queue.append(&"x".repeat(BYTES_MAX + 1));
        assert!(queue.flush(LONG));
        assert_eq!(written.try_recv().unwrap(), "1 lost\n");
        queue.append("after\n");
        assert!(queue.flush(LONG));
        assert_eq!(written.try_recv().unwrap(), "after\n");
    }

    /// R4: what is under way has not left, and what comes later is not waited for.
    #[test]
    fn a_flush_waits_for_what_came_before_it_and_for_nothing_else() {
        let (queue, allow, written) = queue();
        queue.append("one\n");
        while !queue.lock().has_nothing() {
            thread::yield_now();
        }
        assert!(
            !queue.flush(Duration::from_millis(10)),
            "the writer has taken it, and not written it"
        );
        queue.append("two\n");
        allow.send(true).unwrap();
        assert!(queue.flush_first(1, LONG));
        assert_eq!(written.try_recv().unwrap(), "one\n");
        assert!(!queue.flush(Duration::from_millis(10)), "the second line waits");
    }

    /// R5: a disk that fills amid a line.
    #[test]
    fn a_line_of_which_a_part_was_taken_ends_before_the_next_one() {
        let queue = Arc::new(Queue::default());
        let (room, holds) = (Arc::new(Mutex::new(8)), Arc::new(Mutex::new(Vec::new())));
        let mut disk = Disk {
            room: Arc::clone(&room),
            holds: Arc::clone(&holds),
        };
        let writing = Arc::clone(&queue);
        thread::spawn(move || writing.write_to(&mut disk, |lost| format!("{lost} lost\n")));
        queue.append("first\n");
        assert!(queue.flush(LONG));
        queue.append("second\n");
        assert!(queue.flush(LONG));
        *room.lock().unwrap() = usize::MAX;
        queue.append("third\n");
        assert!(queue.flush(LONG));
        assert_eq!(holds.lock().unwrap().as_slice(), b"first\nse\n1 lost\nthird\n");
    }
}
