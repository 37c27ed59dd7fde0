//! Reads of pages that are in no frame: the real buffer pool, with far more pages than frames.
//!
//! A transaction pins one page, drawn from all pages, reads it under its shared latch, and gives it back. So the map
//! is asked three times: for the page, for the removal of the one that gives way, and to enter the new one. Between
//! them run the clock and the frame's I/O latch. The page comes from the kernel's cache: a copy that takes the CPU.
//! All pages are clean. Before, it goes down `index_levels` pages of an index, which are in frames: the root, and one of
//! [`INNER_PAGES`].
//!
//! Left out is everything beside the pool: snapshot, index, relation lock, session. `work_us` and `client_us` are
//! charged in their place.

use std::rc::Rc;

use clearway_machine::{Machine, Work};
use clearway_sim::{Simulated, Simulation, clock_ns, random_below, span};
use clearway_storage::{BufferPool, PageId, RelId};

use crate::simulate::client;
use crate::simulate::experiment::{Experiment, Variant};
use crate::simulate::meter::Meter;
use crate::simulate::pages::TablePages;

/// 128 MiB, as `shared_buffers` is by default.
const FRAMES: u32 = 16_384;
/// 256 GiB: one read in 2,048 finds its page in a frame.
const PAGES: u64 = 1 << 25;
const TABLE: RelId = RelId(16);
const INDEX: RelId = RelId(17);
/// Pages below the root of the index.
const INNER_PAGES: u64 = 256;
/// Uses of an index page before the simulation begins: the clock passes it as long as any.
const USES: u32 = 8;
/// Work on an index page, ns.
const INDEX_PAGE_NS: u64 = 200;
/// Work on the page under its latch, ns.
const READ_NS: u64 = 300;

fn page(number: u64) -> PageId {
    PageId {
        rel: TABLE,
        block: number as u32,
    }
}

/// Page 0 is the root.
fn index_page(number: u64) -> PageId {
    PageId {
        rel: INDEX,
        block: number as u32,
    }
}

pub(crate) fn spawn(
    simulation: &mut Simulation,
    experiment: &Experiment,
    variant: &Variant,
    clients: usize,
    meter: &Rc<Meter>,
) {
    let parameters = &experiment.parameters;
    let levels = parameters.index_levels as u64;
    let device = TablePages {
        read: Some(experiment.devices.page_read_us.times(parameters.device_factor)),
    };
    let pool = simulation.enter(|| {
        let options = variant.of_its_time.buffer_pool_options(&variant.mechanisms);
        let pool = BufferPool::<Simulated, _>::with_frames(FRAMES as usize, options, device);
        let mut pages = 0;
        if levels > 0 {
            pages = 1 + INNER_PAGES as u32;
            for number in 0..pages {
                for _ in 0..USES {
                    pool.pin(index_page(number.into()))
                        .expect("a frame for each of these pages");
                }
            }
        }
        for block in 0..FRAMES - pages {
            pool.pin(page(block.into()))
                .expect("a frame for each of these pages");
        }
        Rc::new(pool)
    });
    simulation.name(pool.frames(), "frames");
    let work_ns = (parameters.work_us * 1e3) as u64;
    let client_ns = (parameters.client_us * 1e3) as u64;
    for _ in 0..clients {
        let (pool, meter) = (Rc::clone(&pool), Rc::clone(meter));
        simulation.spawn(move || {
            // Clients arrive over some time.
            Simulated::charge(Work::Nanos(random_below(100_000)));
            while meter.goes_on() {
                let began = clock_ns();
                client::work(work_ns);
                {
                    let _span = span("read");
                    for level in 0..levels {
                        let number = level * (1 + random_below(INNER_PAGES));
                        let read = pool.read(index_page(number), |_| {
                            Simulated::charge(Work::Nanos(INDEX_PAGE_NS));
                            Some(())
                        });
                        read.expect("pages of the index can be read");
                    }
                    let pinned = pool.pin(page(random_below(PAGES)));
                    let _page = pinned.expect("more frames than clients").into_shared();
                    Simulated::charge(Work::Nanos(READ_NS));
                }
                meter.done(began);
                client::answer(client_ns);
            }
        });
    }
}
