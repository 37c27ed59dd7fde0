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
 * An adaptive latch. It is 2,176 bytes, on cache lines of its own.
 */
typedef struct clearway_adaptive_t clearway_adaptive_t;

/**
 * A class. It is never freed.
 */
typedef struct clearway_class_t clearway_class_t;

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
