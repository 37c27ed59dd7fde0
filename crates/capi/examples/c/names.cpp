// A table that is read far more often than written, in C++: the guards of an adaptive latch.
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "clearway.h"

class Shared {
public:
    explicit Shared(clearway_adaptive_t *latch) { clearway_adaptive_lock_shared(latch, &held); }
    ~Shared() { clearway_adaptive_unlock_shared(&held); }
    Shared(const Shared &) = delete;
    Shared &operator=(const Shared &) = delete;

private:
    clearway_adaptive_held_t held;
};

class Exclusive {
public:
    explicit Exclusive(clearway_adaptive_t *latch) { clearway_adaptive_lock_exclusive(latch, &held); }
    ~Exclusive() { clearway_adaptive_unlock_exclusive(&held); }
    Exclusive(const Exclusive &) = delete;
    Exclusive &operator=(const Exclusive &) = delete;

private:
    clearway_adaptive_held_t held;
};

int main() {
    constexpr unsigned threads = 4, rounds = 20000;
    clearway_adaptive_t *latch = clearway_adaptive_new(clearway_class_new("Names", 0, 0));
    std::map<std::string, unsigned> names;
    std::vector<std::thread> workers;
    unsigned long torn = 0;
    for (unsigned which = 0; which < threads; which++) {
        workers.emplace_back([&, which] {
            for (unsigned round = 0; round < rounds; round++) {
                if ((round + which) % 100 == 0) {
                    Exclusive guard(latch);
                    names["Alice"]++;
                    names["Bob"]++;
                } else {
                    Shared guard(latch);
                    auto alice = names.find("Alice"), bob = names.find("Bob");
                    if (alice != names.end() && (bob == names.end() || alice->second != bob->second))
                        __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
                }
            }
        });
    }
    for (auto &worker : workers)
        worker.join();
    clearway_adaptive_free(latch);
    std::printf("%u writes, %lu torn reads\n", names["Alice"], torn);
    return names["Alice"] == threads * rounds / 100 && torn == 0 ? 0 : 1;
}
