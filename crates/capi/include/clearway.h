/* Clearway's latches for C and C++. cbindgen makes this file of crates/capi; see src/lib.rs there for the rules. */

#ifndef CLEARWAY_H
#define CLEARWAY_H

#include <stdbool.h>
#include <stdint.h>

/* An idle mutex, condition variable or shared/update/exclusive latch. */
#define CLEARWAY_MUTEX_INIT { 0 }
#define CLEARWAY_CONDITION_INIT { { 0, 0 } }
#define CLEARWAY_SUX_INIT { 0 }

#if defined(__GNUC__)
#define CLEARWAY_MUST_USE __attribute__((warn_unused_result))
#else
#define CLEARWAY_MUST_USE
#endif

/**
 * The least transaction number that is handed out.
 */
#define CLEARWAY_XID_FIRST 2

/**
 * The commit log has a place for every number before this one.
 */
#define CLEARWAY_XID_LIMIT 140325171494912

/**
 * The bytes of a page of the commit log.
 */
#define CLEARWAY_COMMIT_LOG_PAGE_SIZE 8192

/**
 * The bytes at the start of each page that are the program's, for a checksum or the like; the log leaves them as they are.
 */
#define CLEARWAY_COMMIT_LOG_PAGE_HEADER 24

/**
 * The bytes of a read-biased latch.
 */
#define CLEARWAY_READ_BIASED_SIZE 2304

/**
 * The alignment of a read-biased latch.
 */
#define CLEARWAY_READ_BIASED_ALIGNMENT 128

/**
 * The end of a transaction.
 */
typedef enum {
  /**
   * It has not ended, or a crash has cut it off.
   */
  CLEARWAY_IN_PROGRESS = 0,
  /**
   * It has committed.
   */
  CLEARWAY_COMMITTED = 1,
  /**
   * It was rolled back.
   */
  CLEARWAY_ABORTED = 2,
} clearway_status_t;

/**
 * The reason why a call is refused.
 */
typedef enum {
  /**
   * None: it was done.
   */
  CLEARWAY_KNOWN_XIDS_OK = 0,
  /**
   * Transactions are added in ascending order.
   */
  CLEARWAY_KNOWN_XIDS_OUT_OF_ORDER = 1,
  /**
   * More run than the capacity.
   */
  CLEARWAY_KNOWN_XIDS_NO_ROOM = 2,
  /**
   * No record of the running transactions has been replayed.
   */
  CLEARWAY_KNOWN_XIDS_UNKNOWN = 3,
  /**
   * Running transactions may be missing, so that there is no snapshot yet.
   */
  CLEARWAY_KNOWN_XIDS_NOT_COMPLETE = 4,
  /**
   * A record contradicts itself.
   */
  CLEARWAY_KNOWN_XIDS_BAD_RECORD = 5,
  /**
   * Another reason, of a later version of the library.
   */
  CLEARWAY_KNOWN_XIDS_OTHER = 6,
} clearway_known_xids_result_t;

/**
 * A worker that finds the latch taken: its way to wait, and its turn.
 */
typedef enum {
  /**
   * Polls, then queues by one compare-and-swap. Newcomers may pass those that sleep.
   */
  CLEARWAY_LWLOCK_SINGLE_CAS = 0,
  /**
   * Queues, looks again, and leaves the queue if the latch is free by then: PostgreSQL's way.
   */
  CLEARWAY_LWLOCK_QUEUED = 1,
  /**
   * As `CLEARWAY_LWLOCK_SINGLE_CAS`, until a sleeper has waited for a millisecond: it has the next turn.
   */
  CLEARWAY_LWLOCK_HAND_OVER = 2,
  /**
   * As `CLEARWAY_LWLOCK_HAND_OVER`, and none passes a writer that claims the latch.
   */
  CLEARWAY_LWLOCK_WRITER_CLAIMS = 3,
} clearway_lwlock_variant_t;

/**
 * The mode in which a latch is held.
 */
typedef enum {
  /**
   * With others that hold it shared.
   */
  CLEARWAY_SHARED = 0,
  /**
   * Alone.
   */
  CLEARWAY_EXCLUSIVE = 1,
} clearway_mode_t;

/**
 * The result of a function of segments.
 */
typedef enum {
  /**
   * Done.
   */
  CLEARWAY_SEGMENT_OK = 0,
  /**
   * The memory is too small.
   */
  CLEARWAY_SEGMENT_TOO_SMALL = 1,
  /**
   * The memory is NULL, or does not begin at a multiple of 128 bytes.
   */
  CLEARWAY_SEGMENT_MISALIGNED = 2,
  /**
   * There is no segment in the memory, or it is being made.
   */
  CLEARWAY_SEGMENT_NOT_A_SEGMENT = 3,
  /**
   * The segment was made by another version of the library.
   */
  CLEARWAY_SEGMENT_OTHER_LAYOUT = 4,
  /**
   * The segment was made with another size.
   */
  CLEARWAY_SEGMENT_OTHER_SIZE = 5,
  /**
   * The process has a segment already.
   */
  CLEARWAY_SEGMENT_ALREADY_ATTACHED = 6,
  /**
   * The thread is a worker already.
   */
  CLEARWAY_SEGMENT_ALREADY_REGISTERED = 7,
  /**
   * The caller is not the thread that registered, or a child of `fork` of it.
   */
  CLEARWAY_SEGMENT_NOT_REGISTERED = 8,
  /**
   * All worker slots are taken.
   */
  CLEARWAY_SEGMENT_NO_SLOT = 9,
  /**
   * The segment is full.
   */
  CLEARWAY_SEGMENT_NO_ROOM = 10,
  /**
   * There is no latch at this place, or it is not in the segment.
   */
  CLEARWAY_SEGMENT_NOT_THERE = 11,
  /**
   * The worker does not hold the latch in this mode, or leaves while it holds one.
   */
  CLEARWAY_SEGMENT_NOT_HELD = 12,
  /**
   * The worker holds 200 latches.
   */
  CLEARWAY_SEGMENT_TOO_MANY_HELD = 13,
  /**
   * A worker has died while it held or changed a latch: all processes have to end, and the segment to be made anew.
   */
  CLEARWAY_SEGMENT_BROKEN = 14,
  /**
   * Another process settles deaths at this time.
   */
  CLEARWAY_SEGMENT_BUSY = 15,
  /**
   * A reason that this version has no name for.
   */
  CLEARWAY_SEGMENT_OTHER = 16,
  /**
   * The process is of another PID namespace or time namespace than the one that made the segment.
   */
  CLEARWAY_SEGMENT_OTHER_NAMESPACE = 17,
} clearway_segment_result_t;

/**
 * Workers that may pass those that wait for a latch in a segment.
 */
typedef enum {
  /**
   * All.
   */
  CLEARWAY_SEGMENT_BARGING = 0,
  /**
   * All, until a sleeper has waited for a millisecond: it has the next turn.
   */
  CLEARWAY_SEGMENT_HAND_OVER = 1,
  /**
   * As `CLEARWAY_SEGMENT_HAND_OVER`, and none passes a writer that claims the latch.
   */
  CLEARWAY_SEGMENT_WRITER_CLAIMS = 2,
} clearway_segment_fairness_t;

/**
 * The mode in which a worker holds a `clearway_segment_rwlock_t`, or wants it.
 */
typedef enum {
  /**
   * With others that hold it shared, and one in update mode.
   */
  CLEARWAY_SEGMENT_SHARED = 0,
  /**
   * With others that hold it shared, and as the only one that may become exclusive.
   */
  CLEARWAY_SEGMENT_UPDATE = 1,
  /**
   * Alone.
   */
  CLEARWAY_SEGMENT_EXCLUSIVE = 2,
} clearway_segment_mode_t;

/**
 * An adaptive latch. It is 2,176 bytes, on cache lines of its own.
 */
typedef struct clearway_adaptive_t clearway_adaptive_t;

/**
 * A class. It is never freed.
 */
typedef struct clearway_class_t clearway_class_t;

/**
 * A commit log.
 */
typedef struct clearway_commit_log_t clearway_commit_log_t;

/**
 * The known transactions.
 */
typedef struct clearway_known_xids_t clearway_known_xids_t;

/**
 * An array of running transactions.
 */
typedef struct clearway_proc_array_t clearway_proc_array_t;

/**
 * A read-biased latch. A reader takes one of 16 slots, which lie on cache lines of their own; a writer takes all.
 */
typedef struct clearway_read_biased_t clearway_read_biased_t;

/**
 * The operations of replay, for one thread at a time.
 */
typedef struct clearway_replayed_xids_t clearway_replayed_xids_t;

/**
 * The transactions that ran at one moment. One thread at a time uses it.
 */
typedef struct clearway_running_xids_t clearway_running_xids_t;

/**
 * Memory that processes share, with latches in it, as one process sees it. A process has one at a time.
 */
typedef struct clearway_segment_t clearway_segment_t;

/**
 * A thread as a worker of a segment.
 */
typedef struct clearway_segment_worker_t clearway_segment_worker_t;

/**
 * The transactions that had finished at one moment. One thread at a time uses it, with one array and its commit log.
 */
typedef struct clearway_snapshot_t clearway_snapshot_t;

/**
 * A holder's mark, which it gives back with the latch.
 */
typedef struct {
  uint64_t words[2];
} clearway_adaptive_held_t;

/**
 * The waits for latches of a class in one mode, since the class was made.
 */
typedef struct {
  /**
   * Acquisitions that were not granted at the first attempt.
   */
  uint64_t conflicts;
  /**
   * Looks at the latch while spinning.
   */
  uint64_t spins;
  /**
   * Sleeps.
   */
  uint64_t sleeps;
  /**
   * The median of the waits, nanoseconds; the end of its power of two. 0 if there were none.
   */
  uint64_t p50_ns;
  /**
   * The 99th percentile, likewise.
   */
  uint64_t p99_ns;
} clearway_waits_t;

/**
 * The counts of a class, by mode.
 */
typedef struct {
  /**
   * Waits for exclusive mode.
   */
  clearway_waits_t exclusive;
  /**
   * Waits for shared mode.
   */
  clearway_waits_t shared;
  /**
   * Waits until a latch is free, without wanting it.
   */
  clearway_waits_t until_free;
} clearway_class_statistics_t;

/**
 * The place where the pages of a commit log are kept. Its functions are called by any thread that uses the log, while it
 * holds latches of it, so they use neither the log nor a transaction array.
 */
typedef struct {
  /**
   * Handed to the functions.
   */
  void *context;
  /**
   * Reads page `number`: writes its bytes to `page` and returns 1; 0 if it was never written; or an error number of the
   * system as a negative number.
   */
  int (*read_page)(void *context, uint32_t number, uint8_t *page);
  /**
   * Writes page `number`, after making the program's log durable up to `lsn`; returns 0, or an error number as a negative
   * number.
   */
  int (*write_page)(void *context, uint32_t number, const uint8_t *page, uint64_t lsn);
} clearway_status_device_t;

/**
 * A transaction's number. 0 is none, 1 counts as committed; `CLEARWAY_XID_FIRST` is the least that is handed out.
 */
typedef uint64_t clearway_xid_t;

/**
 * A record of the running transactions.
 */
typedef struct {
  /**
   * The record says nothing of transactions from here on; all others that are not listed have ended.
   */
  clearway_xid_t next;
  /**
   * The oldest that runs, or `next`.
   */
  clearway_xid_t oldest_running;
  /**
   * The newest that has ended.
   */
  clearway_xid_t newest_ended;
  /**
   * The running ones with their subtransactions, in ascending order.
   */
  const clearway_xid_t *running;
  /**
   * Number of those.
   */
  uintptr_t running_count;
  /**
   * Those that are prepared, which only their own end removes.
   */
  const clearway_xid_t *prepared;
  /**
   * Number of those.
   */
  uintptr_t prepared_count;
  /**
   * True if subtransactions are missing in `running`.
   */
  bool overflowed;
} clearway_running_record_t;

/**
 * A queued reader-writer latch. Made by `clearway_lwlock_init`.
 */
typedef struct {
  uint64_t words[3];
} clearway_lwlock_t;

/**
 * A mutex. Idle when its bytes are zero. Not recursive.
 */
typedef struct {
  uint32_t word;
} clearway_mutex_t;

/**
 * A condition variable, whose waiters all hold the same mutex. Without waiters when its bytes are zero.
 */
typedef struct {
  uint32_t words[2];
} clearway_condition_t;

/**
 * A session's place in the array. One thread at a time uses it.
 */
typedef uint32_t clearway_session_t;

/**
 * A holder's mark, which it gives back with the latch.
 */
typedef struct {
  uint64_t words[2];
} clearway_read_biased_held_t;

/**
 * The findings of `clearway_segment_recover_dead`.
 */
typedef struct {
  /**
   * Workers that had died asleep on a latch: the wake-ups that were meant for them have gone on.
   */
  uint32_t asleep;
  /**
   * Workers that had died outside of all latches.
   */
  uint32_t outside;
  /**
   * Workers that have died asleep and wait for one that lives, which is stopped or has no CPU: call again.
   */
  uint32_t unsettled;
  /**
   * Workers that have died holding or changing a latch. Not 0: the segment is broken.
   */
  uint32_t holders;
  /**
   * The process of the first of these, or 0.
   */
  uint32_t holder_pid;
  /**
   * The offset of a latch that it held or was changing, or 0.
   */
  uint64_t holder_latch;
} clearway_segment_report_t;

/**
 * A reader-writer latch in a segment. Made by `clearway_segment_lwlock_init`, anywhere in the memory of
 * `clearway_segment_reserve`.
 */
typedef struct {
  uint32_t words[6];
} clearway_segment_lwlock_t;

/**
 * A mutex in a segment. Made by `clearway_segment_mutex_init`, anywhere in the memory of `clearway_segment_reserve`.
 */
typedef struct {
  uint32_t words[3];
} clearway_segment_mutex_t;

/**
 * A latch with shared, update and exclusive modes in a segment. Made by `clearway_segment_rwlock_init`, anywhere in the memory
 * of `clearway_segment_reserve`.
 */
typedef struct {
  uint64_t words[2];
} clearway_segment_rwlock_t;

/**
 * A latch with three modes. Idle when its bytes are zero. Not recursive.
 *
 * Any number of threads hold it shared, beside one that holds it in update mode, or one holds it exclusively.
 */
typedef struct {
  uint64_t word;
} clearway_sux_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A new latch of `class`; freed by `clearway_adaptive_free`.
 *
 * # Safety
 * `class` was made by `clearway_class_new`.
 */
CLEARWAY_MUST_USE clearway_adaptive_t *clearway_adaptive_new(const clearway_class_t *class_);

/**
 * Frees a latch.
 *
 * # Safety
 * `latch` is NULL or was made by `clearway_adaptive_new`; no thread uses it any more.
 */
void clearway_adaptive_free(clearway_adaptive_t *latch);

/**
 * Takes the latch in shared mode, and writes the mark to `held`.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold; `held` may be written.
 */
void clearway_adaptive_lock_shared(clearway_adaptive_t *latch, clearway_adaptive_held_t *held);

/**
 * Releases the latch that the thread holds in shared mode.
 *
 * # Safety
 * `held` was written by `clearway_adaptive_lock_shared` in this thread, and was not given back.
 */
void clearway_adaptive_unlock_shared(clearway_adaptive_held_t *held);

/**
 * Takes the latch in exclusive mode, and writes the mark to `held`.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold; `held` may be written.
 */
void clearway_adaptive_lock_exclusive(clearway_adaptive_t *latch, clearway_adaptive_held_t *held);

/**
 * Releases the latch that the thread holds in exclusive mode.
 *
 * # Safety
 * `held` was written by `clearway_adaptive_lock_exclusive` in this thread, and was not given back.
 */
void clearway_adaptive_unlock_exclusive(clearway_adaptive_held_t *held);

/**
 * A new class. `rank` is its place in the order in which a thread takes latches, ascending, which builds with debug
 * assertions check; 0 for a latch without a place. `spins` is the number of looks at a latch before its waiter sleeps, or
 * 0 for a number that is learned. The name is copied. Returns NULL if the name is NULL or not UTF-8. A class is never
 * freed, so a program makes each of its classes once.
 *
 * # Safety
 * `name` is NULL or a string that ends with a zero byte.
 */
const clearway_class_t *clearway_class_new(const char *name,
                                           uint16_t rank,
                                           uint32_t spins);

/**
 * Writes the counts of a class to `statistics`.
 *
 * # Safety
 * `class` was made by `clearway_class_new`; `statistics` may be written.
 */
void clearway_class_statistics(const clearway_class_t *class_, clearway_class_statistics_t *statistics);

/**
 * A new log over the pages of `device`, with none in memory; freed by `clearway_commit_log_free`.
 *
 * # Safety
 * Any thread may call the functions of `device` with its context, until the log is freed. They write and read
 * `CLEARWAY_COMMIT_LOG_PAGE_SIZE` bytes of the page and no others, and do not unwind.
 */
CLEARWAY_MUST_USE clearway_commit_log_t *clearway_commit_log_new(clearway_status_device_t device);

/**
 * Frees a log. What was not flushed is lost.
 *
 * # Safety
 * `log` is NULL or was made by `clearway_commit_log_new`; no thread uses it any more.
 */
void clearway_commit_log_free(clearway_commit_log_t *log);

/**
 * Notes how `xid`, which is at least `CLEARWAY_XID_FIRST`, has ended. The page is written to the device after the program's
 * log up to `lsn`. Returns 0, EINVAL for a number of `CLEARWAY_XID_LIMIT` or more, or an error number of the device.
 *
 * # Safety
 * `log` was made by `clearway_commit_log_new`.
 */
CLEARWAY_MUST_USE
int clearway_commit_log_set(clearway_commit_log_t *log,
                            clearway_xid_t xid,
                            clearway_status_t status,
                            uint64_t lsn);

/**
 * Writes to `status` how `xid` has ended. Returns 0, EINVAL for a number of `CLEARWAY_XID_LIMIT` or more, or an error number
 * of the device; only with 0 it writes. A caller that does not know whether it still runs asks the transaction array first.
 *
 * # Safety
 * `log` was made by `clearway_commit_log_new`; `status` may be written.
 */
CLEARWAY_MUST_USE
int clearway_commit_log_get(clearway_commit_log_t *log,
                            clearway_xid_t xid,
                            clearway_status_t *status);

/**
 * Writes all pages that have changed to the device. Returns 0, or an error number of the device.
 *
 * # Safety
 * `log` was made by `clearway_commit_log_new`.
 */
CLEARWAY_MUST_USE int clearway_commit_log_flush(clearway_commit_log_t *log);

/**
 * The known transactions of a server of `sessions` sessions, of which, with subtransactions, `capacity` can run at once; 0
 * for 65 a session. Nothing is known yet. Freed by `clearway_known_xids_free`.
 */
CLEARWAY_MUST_USE
clearway_known_xids_t *clearway_known_xids_new(uint32_t sessions,
                                               uint32_t capacity);

/**
 * Frees known transactions.
 *
 * # Safety
 * `known` is NULL or was made by `clearway_known_xids_new`; no thread uses it any more, and no thread replays.
 */
void clearway_known_xids_free(clearway_known_xids_t *known);

/**
 * The operations of replay; NULL while another caller has them. Given back by `clearway_replayed_xids_free`.
 *
 * # Safety
 * `known` was made by `clearway_known_xids_new`, and is freed after what is returned.
 */
CLEARWAY_MUST_USE clearway_replayed_xids_t *clearway_known_xids_replay(clearway_known_xids_t *known);

/**
 * Gives back the operations of replay.
 *
 * # Safety
 * `replay` is NULL or came from `clearway_known_xids_replay`, and is not used any more.
 */
void clearway_replayed_xids_free(clearway_replayed_xids_t *replay);

/**
 * Replays a record of the running transactions.
 *
 * # Safety
 * `replay` came from `clearway_known_xids_replay`, and one thread uses it; the record's pointers lead to as many numbers as
 * it says.
 */
CLEARWAY_MUST_USE
clearway_known_xids_result_t clearway_replayed_xids_apply(clearway_replayed_xids_t *replay,
                                                          const clearway_running_record_t *record);

/**
 * All transactions from `from` to `to` have begun.
 *
 * # Safety
 * `replay` came from `clearway_known_xids_replay`, and one thread uses it.
 */
CLEARWAY_MUST_USE
clearway_known_xids_result_t clearway_replayed_xids_add(clearway_replayed_xids_t *replay,
                                                        clearway_xid_t from,
                                                        clearway_xid_t to);

/**
 * `xid` and its `count` subtransactions have ended, at one moment. Those that are not known are ignored.
 *
 * # Safety
 * `replay` came from `clearway_known_xids_replay`, and one thread uses it; `children` leads to `count` numbers, or is NULL
 * if there are none.
 */
void clearway_replayed_xids_remove(clearway_replayed_xids_t *replay,
                                   clearway_xid_t xid,
                                   const clearway_xid_t *children,
                                   uintptr_t count);

/**
 * Replay has nothing to do at the moment.
 *
 * # Safety
 * `replay` came from `clearway_known_xids_replay`, and one thread uses it.
 */
void clearway_replayed_xids_idle(clearway_replayed_xids_t *replay);

/**
 * A list of running transactions, for `clearway_known_xids_snapshot`. Freed by `clearway_running_xids_free`.
 */
CLEARWAY_MUST_USE clearway_running_xids_t *clearway_running_xids_new(void);

/**
 * Frees a list of running transactions.
 *
 * # Safety
 * `running` is NULL or was made by `clearway_running_xids_new`; no thread uses it any more.
 */
void clearway_running_xids_free(clearway_running_xids_t *running);

/**
 * Lists in `running` what runs at one moment of the call.
 *
 * # Safety
 * `known` was made by `clearway_known_xids_new`; `running` was made by `clearway_running_xids_new`, and one thread uses it.
 */
CLEARWAY_MUST_USE
clearway_known_xids_result_t clearway_known_xids_snapshot(clearway_known_xids_t *known,
                                                          clearway_running_xids_t *running);

/**
 * True if `xid` had not ended.
 *
 * # Safety
 * `running` was made by `clearway_running_xids_new`.
 */
CLEARWAY_MUST_USE
bool clearway_running_xids_is_running(const clearway_running_xids_t *running,
                                      clearway_xid_t xid);

/**
 * The oldest that ran, or the end if none did.
 *
 * # Safety
 * `running` was made by `clearway_running_xids_new`.
 */
CLEARWAY_MUST_USE clearway_xid_t clearway_running_xids_oldest(const clearway_running_xids_t *running);

/**
 * The end: all transactions from there on count as running.
 *
 * # Safety
 * `running` was made by `clearway_running_xids_new`.
 */
CLEARWAY_MUST_USE clearway_xid_t clearway_running_xids_end(const clearway_running_xids_t *running);

/**
 * The running ones before the end, in ascending order, and their number in `count`. They stay until the next call that
 * changes or frees `running`.
 *
 * # Safety
 * `running` was made by `clearway_running_xids_new`; `count` may be written.
 */
CLEARWAY_MUST_USE
const clearway_xid_t *clearway_running_xids_list(const clearway_running_xids_t *running,
                                                 uintptr_t *count);

/**
 * Makes an idle latch of `class` at `latch`.
 *
 * # Safety
 * `latch` may be written, and no thread uses a latch there; `class` was made by `clearway_class_new`; `variant` is one of
 * the names.
 */
void clearway_lwlock_init(clearway_lwlock_t *latch,
                          const clearway_class_t *class_,
                          clearway_lwlock_variant_t variant);

/**
 * Takes the latch, and waits as long as that takes.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold; `mode` is one of the names.
 */
void clearway_lwlock_acquire(clearway_lwlock_t *latch, clearway_mode_t mode);

/**
 * Takes the latch if that needs no waiting; whether it did.
 *
 * # Safety
 * `latch` leads to a latch; `mode` is one of the names.
 */
CLEARWAY_MUST_USE bool clearway_lwlock_try_acquire(clearway_lwlock_t *latch, clearway_mode_t mode);

/**
 * Releases the latch.
 *
 * # Safety
 * The thread holds the latch in `mode`.
 */
void clearway_lwlock_release(clearway_lwlock_t *latch, clearway_mode_t mode);

/**
 * Takes the latch exclusively, or sleeps until a holder has released it and returns false without it. For work that one
 * thread does for all: the others see whether theirs is done, and call again if not.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold.
 */
CLEARWAY_MUST_USE
bool clearway_lwlock_acquire_or_wait(clearway_lwlock_t *latch);

/**
 * Waits until no thread holds the latch exclusively, or `variable` differs from `old`: then its value is written to
 * `value` and the answer is true. A variable is changed by the holder of its latch alone.
 *
 * # Safety
 * `latch` leads to a latch, `variable` to a number that is changed by `clearway_lwlock_update_var` alone; `value` may be
 * written.
 */
bool clearway_lwlock_wait_for_var(clearway_lwlock_t *latch,
                                  uint64_t *variable,
                                  uint64_t old,
                                  uint64_t *value);

/**
 * Sets `variable` and wakes the threads that wait for it.
 *
 * # Safety
 * The thread holds the latch exclusively; `variable` is as for `clearway_lwlock_wait_for_var`.
 */
void clearway_lwlock_update_var(clearway_lwlock_t *latch, uint64_t *variable, uint64_t value);

/**
 * Takes the mutex, and waits as long as that takes. What its holders before have written is visible.
 *
 * # Safety
 * `mutex` leads to a mutex, which the thread does not hold.
 */
void clearway_mutex_lock(clearway_mutex_t *mutex);

/**
 * Takes the mutex if it is free; whether it did.
 *
 * # Safety
 * `mutex` leads to a mutex.
 */
CLEARWAY_MUST_USE bool clearway_mutex_try_lock(clearway_mutex_t *mutex);

/**
 * Takes the mutex within so many nanoseconds; whether it did.
 *
 * # Safety
 * `mutex` leads to a mutex, which the thread does not hold.
 */
CLEARWAY_MUST_USE bool clearway_mutex_try_lock_for(clearway_mutex_t *mutex, uint64_t nanoseconds);

/**
 * Releases the mutex.
 *
 * # Safety
 * The thread holds the mutex.
 */
void clearway_mutex_unlock(clearway_mutex_t *mutex);

/**
 * Waits for a notification, without the mutex, which the thread holds again when this returns. May return without a
 * notification, so the caller looks at what it waits for again.
 *
 * # Safety
 * The thread holds the mutex, and all waiters of `condition` hold the same one.
 */
void clearway_condition_wait(clearway_condition_t *condition,
                             clearway_mutex_t *mutex);

/**
 * As `clearway_condition_wait`, for so many nanoseconds at most; whether it ended before the time was over.
 *
 * # Safety
 * The thread holds the mutex, and all waiters of `condition` hold the same one.
 */
bool clearway_condition_wait_for(clearway_condition_t *condition,
                                 clearway_mutex_t *mutex,
                                 uint64_t nanoseconds);

/**
 * Wakes one waiter, if there is one. The caller need not hold the mutex, but has changed what is waited for under it.
 *
 * # Safety
 * `condition` leads to a condition variable.
 */
void clearway_condition_notify_one(clearway_condition_t *condition);

/**
 * Wakes all waiters.
 *
 * # Safety
 * `condition` leads to a condition variable.
 */
void clearway_condition_notify_all(clearway_condition_t *condition);

/**
 * A new array for `sessions` sessions. `first` is the next transaction number to be handed out; all before it have ended.
 * NULL if `first` is less than `CLEARWAY_XID_FIRST` or not less than `CLEARWAY_XID_LIMIT`. Freed by `clearway_proc_array_free`.
 */
CLEARWAY_MUST_USE
clearway_proc_array_t *clearway_proc_array_new(uint32_t sessions,
                                               clearway_xid_t first);

/**
 * Frees an array.
 *
 * # Safety
 * `array` is NULL or was made by `clearway_proc_array_new`; no thread uses it any more.
 */
void clearway_proc_array_free(clearway_proc_array_t *array);

/**
 * Writes a free place to `session`; false, and nothing is written, if all are taken.
 *
 * # Safety
 * `array` was made by `clearway_proc_array_new`; `session` may be written.
 */
CLEARWAY_MUST_USE bool clearway_proc_array_attach(clearway_proc_array_t *array, clearway_session_t *session);

/**
 * Gives back a place, whose transaction has ended.
 *
 * # Safety
 * `array` was made by `clearway_proc_array_new`.
 */
void clearway_proc_array_detach(clearway_proc_array_t *array, clearway_session_t session);

/**
 * Begins a transaction of `session`, which runs none, and returns its number. No row has it before the call returns.
 *
 * # Safety
 * `array` was made by `clearway_proc_array_new`.
 */
CLEARWAY_MUST_USE
clearway_xid_t clearway_proc_array_assign_xid(clearway_proc_array_t *array,
                                              clearway_session_t session);

/**
 * Ends the transaction `xid` of `session`, after the commit log says how; with 0 the session ran none. The snapshots of the
 * session hold nothing back any more.
 *
 * # Safety
 * `array` was made by `clearway_proc_array_new`.
 */
void clearway_proc_array_end(clearway_proc_array_t *array,
                             clearway_session_t session,
                             clearway_xid_t xid);

/**
 * True if `xid` runs. One that does not run and has no status in the commit log was cut off by a crash.
 *
 * # Safety
 * `array` was made by `clearway_proc_array_new`.
 */
CLEARWAY_MUST_USE bool clearway_proc_array_is_running(clearway_proc_array_t *array, clearway_xid_t xid);

/**
 * The transaction number that is handed out next.
 *
 * # Safety
 * `array` was made by `clearway_proc_array_new`.
 */
CLEARWAY_MUST_USE clearway_xid_t clearway_proc_array_next_xid(clearway_proc_array_t *array);

/**
 * The oldest transaction that a snapshot, one in use or a later one, may regard as running. A row that a transaction before
 * it has deleted, and committed, is seen by no session.
 *
 * # Safety
 * `array` was made by `clearway_proc_array_new`.
 */
CLEARWAY_MUST_USE
clearway_xid_t clearway_proc_array_horizon(clearway_proc_array_t *array);

/**
 * A snapshot that regards every transaction as running, until one is taken into it. Freed by `clearway_snapshot_free`.
 */
CLEARWAY_MUST_USE
clearway_snapshot_t *clearway_snapshot_new(void);

/**
 * Frees a snapshot.
 *
 * # Safety
 * `snapshot` is NULL or was made by `clearway_snapshot_new`; no thread uses it any more.
 */
void clearway_snapshot_free(clearway_snapshot_t *snapshot);

/**
 * Takes a snapshot into `snapshot`, and holds back the horizon for `session`, until `clearway_proc_array_clear_xmin` or
 * `clearway_proc_array_end`. A session that has several holds it back for the oldest.
 *
 * # Safety
 * `array` was made by `clearway_proc_array_new`, `snapshot` by `clearway_snapshot_new`.
 */
void clearway_proc_array_snapshot(clearway_proc_array_t *array,
                                  clearway_session_t session,
                                  clearway_snapshot_t *snapshot);

/**
 * `session` uses no snapshot any more, and holds back the horizon no longer.
 *
 * # Safety
 * `array` was made by `clearway_proc_array_new`.
 */
void clearway_proc_array_clear_xmin(clearway_proc_array_t *array, clearway_session_t session);

/**
 * Writes to `sees` whether `xid` had committed when the snapshot was taken. A session looks for its own transaction first:
 * of that the answer means nothing. Returns 0, EINVAL for a number of `CLEARWAY_XID_LIMIT` or more, or an error number of the
 * log's device; only with 0 it writes.
 *
 * # Safety
 * `snapshot` was made by `clearway_snapshot_new`, `log` by `clearway_commit_log_new`; `sees` may be written.
 */
CLEARWAY_MUST_USE
int clearway_snapshot_sees(const clearway_snapshot_t *snapshot,
                           clearway_xid_t xid,
                           clearway_commit_log_t *log,
                           bool *sees);

/**
 * Makes an idle latch of `class` at `place`, and returns it. Nothing has to be called before the memory is used again.
 *
 * # Safety
 * `place` leads to `CLEARWAY_READ_BIASED_SIZE` bytes that may be written, aligned to `CLEARWAY_READ_BIASED_ALIGNMENT`, which
 * no thread uses as a latch; `class` was made by `clearway_class_new`.
 */
CLEARWAY_MUST_USE
clearway_read_biased_t *clearway_read_biased_init(void *place,
                                                  const clearway_class_t *class_);

/**
 * Takes the latch in shared mode, and writes the mark to `held`.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold; `held` may be written.
 */
void clearway_read_biased_lock_shared(clearway_read_biased_t *latch, clearway_read_biased_held_t *held);

/**
 * As `clearway_read_biased_lock_shared`, if that needs no waiting; false, and nothing is written, otherwise.
 *
 * # Safety
 * As of `clearway_read_biased_lock_shared`.
 */
CLEARWAY_MUST_USE
bool clearway_read_biased_try_lock_shared(clearway_read_biased_t *latch,
                                          clearway_read_biased_held_t *held);

/**
 * Releases the latch that the thread holds in shared mode.
 *
 * # Safety
 * `held` was written by a function that took the latch in shared mode in this thread, and was not given back.
 */
void clearway_read_biased_unlock_shared(clearway_read_biased_held_t *held);

/**
 * Takes the latch in exclusive mode, and writes the mark to `held`.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold; `held` may be written.
 */
void clearway_read_biased_lock_exclusive(clearway_read_biased_t *latch, clearway_read_biased_held_t *held);

/**
 * As `clearway_read_biased_lock_exclusive`, if that needs no waiting; false, and nothing is written, otherwise.
 *
 * # Safety
 * As of `clearway_read_biased_lock_exclusive`.
 */
CLEARWAY_MUST_USE
bool clearway_read_biased_try_lock_exclusive(clearway_read_biased_t *latch,
                                             clearway_read_biased_held_t *held);

/**
 * Releases the latch that the thread holds in exclusive mode.
 *
 * # Safety
 * `held` was written by a function that took the latch in exclusive mode in this thread, and was not given back.
 */
void clearway_read_biased_unlock_exclusive(clearway_read_biased_held_t *held);

/**
 * The size of a segment for so many workers, which are the threads of all processes together, and so many bytes of latches
 * and data.
 */
uintptr_t clearway_segment_size(uint32_t workers,
                                uintptr_t bytes);

/**
 * Makes a segment in memory that processes share, and attaches the process to it. A child of `fork` is attached, too.
 *
 * # Safety
 * `memory` leads to `size` bytes that may be written, that no process uses, and that stay mapped until the segment is
 * detached; `segment` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_create(void *memory,
                                                  uintptr_t size,
                                                  uint32_t workers,
                                                  clearway_segment_t **segment);

/**
 * Attaches the process to a segment that another process has made, wherever it is mapped here.
 *
 * # Safety
 * As of `clearway_segment_create`, but that other processes use the memory by this library.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_attach(void *memory,
                                                  uintptr_t size,
                                                  clearway_segment_t **segment);

/**
 * Ends the process's part in the segment. The memory may be unmapped after that.
 *
 * # Safety
 * `segment` was made by `clearway_segment_create` or `_attach`; all threads of the process have left it, and use nothing of
 * it any more.
 */
void clearway_segment_detach(clearway_segment_t *segment);

/**
 * Makes the calling thread a worker.
 *
 * # Safety
 * `segment` is a segment, and `worker` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_register(const clearway_segment_t *segment,
                                                    clearway_segment_worker_t **worker);

/**
 * The thread is no worker any more. `CLEARWAY_SEGMENT_NOT_HELD` if it holds a latch: then it stays one. In a child of `fork`
 * this frees the copy of its parent's worker, and nothing else.
 *
 * # Safety
 * `worker` was made by `clearway_segment_register`, by this thread or its parent's, and is not used after it has left.
 */
clearway_segment_result_t clearway_segment_leave(clearway_segment_worker_t *worker);

/**
 * Takes `size` bytes at a multiple of `alignment` (a power of two up to 128) for latches and data, and writes their offset,
 * which means the same in every process. They are never given back.
 *
 * # Safety
 * `segment` is a segment, and `offset` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_reserve(const clearway_segment_t *segment,
                                                   uintptr_t size,
                                                   uintptr_t alignment,
                                                   uint64_t *offset);

/**
 * The address in this process of `size` bytes that were taken at `offset`, or NULL if they were not.
 *
 * # Safety
 * `segment` is a segment.
 */
void *clearway_segment_address(const clearway_segment_t *segment, uint64_t offset, uintptr_t size);

/**
 * Has this process mean `class` by the number that latches in segments keep.
 *
 * # Safety
 * `class` was made by `clearway_class_new`.
 */
void clearway_segment_set_class(uint8_t number, const clearway_class_t *class_);

/**
 * Finds the workers whose processes have died, and settles what they have left; any process may call it at any time. A
 * supervisor does when a child has ended. The calling thread takes no latch of the segment: if all that call this wait for a
 * latch that a dead worker holds, none finds the death. `CLEARWAY_SEGMENT_BUSY` while another process does it. The report is
 * written in each case, as zeros without a result.
 *
 * # Safety
 * `segment` is a segment, and `report` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_recover_dead(const clearway_segment_t *segment,
                                                        clearway_segment_report_t *report);

/**
 * True once a worker was found dead that held or changed a latch.
 *
 * # Safety
 * `segment` is a segment.
 */
bool clearway_segment_is_broken(const clearway_segment_t *segment);

/**
 * Writes the numbers of the processes that have workers and live, the caller's among them, to `pids`, `room` of them at most;
 * how many there are. After a break: the processes to end. The number of one that ends meanwhile, and whose parent waits for
 * it, may become a stranger's.
 *
 * # Safety
 * `segment` is a segment, and `room` numbers may be written at `pids`.
 */
uintptr_t clearway_segment_processes(const clearway_segment_t *segment,
                                     uint32_t *pids,
                                     uintptr_t room);

/**
 * The meaning of a result, in English. Never NULL.
 */
const char *clearway_segment_result_text(clearway_segment_result_t result);

/**
 * Makes an idle latch of the class with this number.
 *
 * # Safety
 * `latch` leads into memory that `clearway_segment_reserve` has taken, and no worker uses a latch there; `fairness` is one of
 * the names.
 */
void clearway_segment_lwlock_init(clearway_segment_lwlock_t *latch,
                                  uint8_t class_number,
                                  clearway_segment_fairness_t fairness);

/**
 * Takes the latch, and waits as long as that takes.
 *
 * # Safety
 * `worker` is the calling thread's, `latch` leads to a latch that it does not hold; `mode` is one of the names.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_lwlock_acquire(const clearway_segment_worker_t *worker,
                                                          clearway_segment_lwlock_t *latch,
                                                          clearway_mode_t mode);

/**
 * Takes the latch if that needs no waiting; whether it did is written to `taken`.
 *
 * # Safety
 * As of `clearway_segment_lwlock_acquire`; `taken` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_lwlock_try_acquire(const clearway_segment_worker_t *worker,
                                                              clearway_segment_lwlock_t *latch,
                                                              clearway_mode_t mode,
                                                              bool *taken);

/**
 * Releases the latch.
 *
 * # Safety
 * `worker` is the calling thread's, and `latch` leads to a latch.
 */
clearway_segment_result_t clearway_segment_lwlock_release(const clearway_segment_worker_t *worker,
                                                          clearway_segment_lwlock_t *latch,
                                                          clearway_mode_t mode);

/**
 * Takes the latch exclusively (`acquired`), or sleeps until a wake-up reaches the caller and returns without it. For work that
 * one worker does for all: the others see whether theirs is done, and call again if not.
 *
 * # Safety
 * As of `clearway_segment_lwlock_acquire`; `acquired` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_lwlock_acquire_or_wait(const clearway_segment_worker_t *worker,
                                                                  clearway_segment_lwlock_t *latch,
                                                                  bool *acquired);

/**
 * Waits until no worker holds the latch exclusively, or `variable` differs from `old` (`changed`): then its value is written to
 * `value`. A variable is changed by the holder of its latch alone.
 *
 * # Safety
 * `worker` is the calling thread's, `latch` leads to a latch, `variable` to a number in the segment that is changed by
 * `clearway_segment_lwlock_update_var` alone; `value` and `changed` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_lwlock_wait_for_var(const clearway_segment_worker_t *worker,
                                                               clearway_segment_lwlock_t *latch,
                                                               uint64_t *variable,
                                                               uint64_t old,
                                                               uint64_t *value,
                                                               bool *changed);

/**
 * Sets `variable` and wakes the workers that wait for it. `CLEARWAY_SEGMENT_NOT_HELD` unless the caller holds the latch
 * exclusively: then nothing is set.
 *
 * # Safety
 * `worker` is the calling thread's, `latch` leads to a latch; `variable` is as for `clearway_segment_lwlock_wait_for_var`.
 */
clearway_segment_result_t clearway_segment_lwlock_update_var(const clearway_segment_worker_t *worker,
                                                             clearway_segment_lwlock_t *latch,
                                                             uint64_t *variable,
                                                             uint64_t value);

/**
 * Makes an idle mutex of the class with this number.
 *
 * # Safety
 * `mutex` leads into memory that `clearway_segment_reserve` has taken, and no worker uses a latch there.
 */
void clearway_segment_mutex_init(clearway_segment_mutex_t *mutex, uint8_t class_number);

/**
 * Takes the mutex, and waits as long as that takes.
 *
 * # Safety
 * `worker` is the calling thread's, `mutex` leads to a mutex that it does not hold.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_mutex_lock(const clearway_segment_worker_t *worker,
                                                      clearway_segment_mutex_t *mutex);

/**
 * Takes the mutex within so many nanoseconds, at once or not at all for 0; whether it did is written to `taken`.
 *
 * # Safety
 * As of `clearway_segment_mutex_lock`; `taken` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_mutex_try_lock_for(const clearway_segment_worker_t *worker,
                                                              clearway_segment_mutex_t *mutex,
                                                              uint64_t nanoseconds,
                                                              bool *taken);

/**
 * Releases the mutex.
 *
 * # Safety
 * `worker` is the calling thread's, and `mutex` leads to a mutex.
 */
clearway_segment_result_t clearway_segment_mutex_unlock(const clearway_segment_worker_t *worker,
                                                        clearway_segment_mutex_t *mutex);

/**
 * Makes an idle latch of the class with this number.
 *
 * # Safety
 * `latch` leads into memory that `clearway_segment_reserve` has taken, and no worker uses a latch there.
 */
void clearway_segment_rwlock_init(clearway_segment_rwlock_t *latch, uint8_t class_number);

/**
 * Takes the latch, and waits as long as that takes.
 *
 * # Safety
 * `worker` is the calling thread's, `latch` leads to a latch that it does not hold; `mode` is one of the names.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_rwlock_acquire(const clearway_segment_worker_t *worker,
                                                          clearway_segment_rwlock_t *latch,
                                                          clearway_segment_mode_t mode);

/**
 * Takes the latch within so many nanoseconds, at once or not at all for 0; whether it did is written to `taken`.
 *
 * # Safety
 * As of `clearway_segment_rwlock_acquire`; `taken` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_rwlock_try_acquire_for(const clearway_segment_worker_t *worker,
                                                                  clearway_segment_rwlock_t *latch,
                                                                  clearway_segment_mode_t mode,
                                                                  uint64_t nanoseconds,
                                                                  bool *taken);

/**
 * From the mode `before`, in which the worker holds the latch, to `after`; whether it did is written to `changed`. From update to
 * exclusive mode it waits until the readers inside have left. From shared to update mode it fails if another worker is the
 * owner, and from shared to exclusive mode always: two that waited so would wait for each other.
 *
 * # Safety
 * `worker` is the calling thread's, `latch` leads to a latch; the modes are of the names, and `changed` may be written.
 */
CLEARWAY_MUST_USE
clearway_segment_result_t clearway_segment_rwlock_change(const clearway_segment_worker_t *worker,
                                                         clearway_segment_rwlock_t *latch,
                                                         clearway_segment_mode_t before,
                                                         clearway_segment_mode_t after,
                                                         bool *changed);

/**
 * Releases the latch.
 *
 * # Safety
 * `worker` is the calling thread's, `latch` leads to a latch; `mode` is one of the names.
 */
clearway_segment_result_t clearway_segment_rwlock_release(const clearway_segment_worker_t *worker,
                                                          clearway_segment_rwlock_t *latch,
                                                          clearway_segment_mode_t mode);

/**
 * Takes the latch in shared mode: with other readers and one updater.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold.
 */
void clearway_sux_lock_shared(clearway_sux_t *latch);

/**
 * Takes the latch in shared mode if that needs no waiting; whether it did.
 *
 * # Safety
 * `latch` leads to a latch.
 */
CLEARWAY_MUST_USE bool clearway_sux_try_lock_shared(clearway_sux_t *latch);

/**
 * Takes the latch in shared mode within so many nanoseconds; whether it did.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold.
 */
CLEARWAY_MUST_USE bool clearway_sux_try_lock_shared_for(clearway_sux_t *latch, uint64_t nanoseconds);

/**
 * Releases the latch that the thread holds in shared mode.
 *
 * # Safety
 * The thread holds the latch in shared mode.
 */
void clearway_sux_unlock_shared(clearway_sux_t *latch);

/**
 * Takes the latch in update mode: with readers, and without another updater.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold.
 */
void clearway_sux_lock_update(clearway_sux_t *latch);

/**
 * Takes the latch in update mode if that needs no waiting; whether it did.
 *
 * # Safety
 * `latch` leads to a latch.
 */
CLEARWAY_MUST_USE bool clearway_sux_try_lock_update(clearway_sux_t *latch);

/**
 * Takes the latch in update mode within so many nanoseconds; whether it did.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold.
 */
CLEARWAY_MUST_USE bool clearway_sux_try_lock_update_for(clearway_sux_t *latch, uint64_t nanoseconds);

/**
 * Releases the latch that the thread holds in update mode.
 *
 * # Safety
 * The thread holds the latch in update mode.
 */
void clearway_sux_unlock_update(clearway_sux_t *latch);

/**
 * Takes the latch in exclusive mode: alone.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold.
 */
void clearway_sux_lock_exclusive(clearway_sux_t *latch);

/**
 * Takes the latch in exclusive mode if that needs no waiting; whether it did.
 *
 * # Safety
 * `latch` leads to a latch.
 */
CLEARWAY_MUST_USE bool clearway_sux_try_lock_exclusive(clearway_sux_t *latch);

/**
 * Takes the latch in exclusive mode within so many nanoseconds; whether it did.
 *
 * # Safety
 * `latch` leads to a latch, which the thread does not hold.
 */
CLEARWAY_MUST_USE bool clearway_sux_try_lock_exclusive_for(clearway_sux_t *latch, uint64_t nanoseconds);

/**
 * Releases the latch that the thread holds in exclusive mode.
 *
 * # Safety
 * The thread holds the latch in exclusive mode.
 */
void clearway_sux_unlock_exclusive(clearway_sux_t *latch);

/**
 * From update to exclusive mode, as soon as no thread reads any more. Readers that come after the call wait.
 *
 * # Safety
 * The thread holds the latch in update mode.
 */
void clearway_sux_update_to_exclusive(clearway_sux_t *latch);

/**
 * From update to exclusive mode if no thread reads; whether it did. If not, the latch is held in update mode.
 *
 * # Safety
 * The thread holds the latch in update mode.
 */
CLEARWAY_MUST_USE bool clearway_sux_try_update_to_exclusive(clearway_sux_t *latch);

/**
 * From update to exclusive mode within so many nanoseconds; whether it did. If not, the latch is held in update mode.
 *
 * # Safety
 * The thread holds the latch in update mode.
 */
CLEARWAY_MUST_USE
bool clearway_sux_try_update_to_exclusive_for(clearway_sux_t *latch,
                                              uint64_t nanoseconds);

/**
 * From update to shared mode. No thread writes in between.
 *
 * # Safety
 * The thread holds the latch in update mode.
 */
void clearway_sux_update_to_shared(clearway_sux_t *latch);

/**
 * From exclusive to update mode. No other thread writes in between.
 *
 * # Safety
 * The thread holds the latch in exclusive mode.
 */
void clearway_sux_exclusive_to_update(clearway_sux_t *latch);

/**
 * From exclusive to shared mode. No thread writes in between.
 *
 * # Safety
 * The thread holds the latch in exclusive mode.
 */
void clearway_sux_exclusive_to_shared(clearway_sux_t *latch);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CLEARWAY_H */
