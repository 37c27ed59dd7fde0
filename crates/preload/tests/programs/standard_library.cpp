// C++'s locks, which are statically initialised pthread locks.
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex mutex;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static std::shared_mutex shared;
static std::shared_timed_mutex shared_timed;
static std::condition_variable condition;
static std::condition_variable_any condition_any;
static long count, read_count;

static void must(bool is_so, const char *what)
{
    if (!is_so) {
        std::printf("not so: %s\n", what);
        std::exit(1);
    }
}

static void adds()
{
    for (int i = 0; i < 2000; i++) {
        std::scoped_lock both(mutex, timed);
        std::lock_guard<std::recursive_mutex> once(recursive);
        std::lock_guard<std::recursive_mutex> again(recursive);
        {
            std::unique_lock<std::shared_mutex> writes(shared);
            std::unique_lock<std::shared_timed_mutex> writes_timed(shared_timed, 60s);
            must(writes_timed.owns_lock(), "a writer waits a minute");
            count++;
        }
        std::shared_lock<std::shared_mutex> reads(shared);
        read_count = count;
    }
    condition.notify_all();
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(adds);
    {
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [] { return count == 8000; });
    }
    for (auto &thread : threads)
        thread.join();
    must(count == 8000 && read_count == 8000, "every addition counts");
    std::unique_lock<std::mutex> lock(mutex);
    must(condition.wait_for(lock, 10ms) == std::cv_status::timeout || true, "a wait ends");
    must(!condition.wait_until(lock, std::chrono::system_clock::now() + 10ms, [] { return false; }), "a wait ends at its time");
    must(!condition_any.wait_for(lock, 10ms, [] { return false; }), "any wait ends at its time");
    lock.unlock();
    timed.lock();
    must(!std::async(std::launch::async, [] { return timed.try_lock_for(10ms); }).get(), "another thread has it");
    must(!std::async(std::launch::async, [] { return timed.try_lock_until(std::chrono::system_clock::now() + 10ms); }).get(),
         "another thread has it still");
    timed.unlock();
    shared_timed.lock_shared();
    must(!std::async(std::launch::async, [] { return shared_timed.try_lock_for(10ms); }).get(), "a reader is inside");
    must(std::async(std::launch::async, [] {
             bool entered = shared_timed.try_lock_shared_for(1min);
             if (entered)
                 shared_timed.unlock_shared();
             return entered;
         }).get(),
         "another reader enters");
    shared_timed.unlock_shared();
    static std::once_flag once;
    std::promise<int> promise;
    std::call_once(once, [&] { promise.set_value(7); });
    std::printf("%d, and every lock was released\n", promise.get_future().get());
    return 0;
}
