//! Exactly one scrapes, and there is always one.

use crate::fixture::{CHAT, address, chat, ms, pool, ready};
use crate::proxy::{Proxy, Server, Status, Worker};

/// How many of `workers` scraped since `since`.
fn scrapers(proxy: &Proxy, workers: &[&Worker], since: u64) -> usize {
    let scrapes = proxy.scrapes();
    let scraped = |worker: &Worker| scrapes.iter().any(|call| call.began >= since && worker.made(call));
    workers.iter().filter(|worker| scraped(worker)).count()
}

fn now(proxy: &Proxy) -> u64 {
    proxy.world().now
}

#[test]
fn workers_leave_scraping_to_the_singleton() {
    let proxy = Proxy::envoy(pool(4));
    let (first, scraper, second) = (proxy.worker(), proxy.scraper(), proxy.worker());
    proxy.run_for(ms(5_000));
    assert_eq!(scrapers(&proxy, &[&first, &second], 0), 0);
    assert_eq!(scrapers(&proxy, &[&scraper], 0), 1);
}

#[test]
fn a_worker_takes_over_within_a_second_and_a_half_of_the_singletons_death() {
    let proxy = Proxy::envoy(pool(4));
    let scraper = proxy.scraper();
    let workers = [proxy.worker(), proxy.worker(), proxy.worker()];
    let workers: Vec<_> = workers.iter().collect();
    proxy.run_for(ms(1_000));

    scraper.traps();
    let death = now(&proxy);
    proxy.run_for(ms(4_000));

    let takeover = proxy.scrapes().iter().map(|call| call.began).find(|began| *began > death).unwrap();
    assert!(takeover - death <= 1_500, "nobody scraped for {} ms", takeover - death);
    assert_eq!(scrapers(&proxy, &workers, death), 1);
    assert_eq!(proxy.metric("endpoint_picker_scraper_takeovers_total"), 1);
    assert!(proxy.logged("this worker scrapes now"));
}

#[test]
fn requests_are_served_all_through_a_takeover() {
    let (proxy, worker) = ready(pool(4));
    let scraper = proxy.scraper();
    proxy.run_for(ms(300));
    scraper.traps();
    for _ in 0..50 {
        proxy.run_for(ms(50));
        assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some());
    }
}

#[test]
fn a_singleton_that_returns_outranks_the_worker() {
    let proxy = Proxy::envoy(pool(4));
    let worker = proxy.worker();
    proxy.run_for(ms(2_000));
    assert_eq!(scrapers(&proxy, &[&worker], 0), 1);

    let scraper = proxy.scraper();
    proxy.run_for(ms(100));
    let since = now(&proxy);
    proxy.run_for(ms(3_000));
    assert_eq!(scrapers(&proxy, &[&worker], since), 0);
    assert_eq!(scrapers(&proxy, &[&scraper], since), 1);
}

#[test]
fn without_a_singleton_one_of_the_workers_scrapes() {
    let proxy = Proxy::envoy(pool(4));
    let workers = [proxy.worker(), proxy.worker(), proxy.worker()];
    proxy.run_for(ms(3_000));
    assert_eq!(scrapers(&proxy, &workers.iter().collect::<Vec<_>>(), 0), 1);
}

#[test]
fn who_lost_the_race_for_the_lease_does_not_scrape() {
    let proxy = Proxy::envoy(pool(4));
    let worker = proxy.worker();
    // Somebody always writes between its read and its write.
    proxy.world().faults.write = Some(Status::CasMismatch);
    proxy.run_for(ms(3_000));
    assert_eq!(scrapers(&proxy, &[&worker], 0), 0);

    proxy.world().faults.write = None;
    proxy.run_for(ms(200));
    assert_eq!(scrapers(&proxy, &[&worker], 0), 1);
}

#[test]
fn a_race_for_a_new_lease_has_one_winner() {
    let proxy = Proxy::envoy(pool(4));
    let workers = [proxy.worker(), proxy.worker()];
    // Both find no lease, wait their second, and write: on this host the second write wins.
    proxy.run_for(ms(900));
    // The second's timer is the next to fire.
    workers[0].interrupts();
    proxy.run_for(ms(300));
    assert_eq!(scrapers(&proxy, &workers.iter().collect::<Vec<_>>(), 0), 2, "there was no race");
    let since = now(&proxy);
    proxy.run_for(ms(3_000));
    assert_eq!(scrapers(&proxy, &workers.iter().collect::<Vec<_>>(), since), 1);
}

#[test]
fn a_race_for_the_lease_of_a_dead_singleton_has_one_winner() {
    let proxy = Proxy::envoy(pool(4));
    let (scraper, workers) = (proxy.scraper(), [proxy.worker(), proxy.worker()]);
    proxy.run_for(ms(500));
    scraper.traps();
    let death = now(&proxy);
    // One finds the lease run out, and before it writes, the other has taken it.
    while proxy.metric("endpoint_picker_scraper_takeovers_total") == 0 {
        workers[1].interrupts();
        proxy.run_for(ms(1));
    }
    proxy.run_for(ms(3_000));
    assert_eq!(scrapers(&proxy, &workers.iter().collect::<Vec<_>>(), death), 1);
    assert_eq!(proxy.metric("endpoint_picker_scraper_takeovers_total"), 1);
}

#[test]
fn a_new_configuration_is_scraped_at_once_although_the_proxy_keeps_the_old_context() {
    let proxy = Proxy::envoy(pool(2));
    (1..=3).for_each(|n| proxy.server(&address(n), Server::vllm(0, 0, 0.1)));
    let old = [proxy.worker(), proxy.worker()];
    proxy.run_for(ms(3_000));

    let new = [0; 2].map(|_| proxy.start("picker", pool(3).to_string()).unwrap());
    proxy.run_for(ms(200));
    let since = now(&proxy);
    proxy.run_for(ms(30_000));
    assert_eq!(scrapers(&proxy, &old.iter().collect::<Vec<_>>(), since), 0);
    assert_eq!(scrapers(&proxy, &new.iter().collect::<Vec<_>>(), since), 1);
    assert!(proxy.scrapes().iter().any(|call| call.began <= since && call.address() == address(3)), "within 200 ms");
    assert_eq!(proxy.metric("endpoint_picker_scraper_takeovers_total"), 0, "nobody has been silent");
}

#[test]
fn a_singleton_that_was_only_slow_takes_the_lease_back() {
    let proxy = Proxy::envoy(pool(4));
    let (scraper, worker) = (proxy.scraper(), proxy.worker());
    proxy.run_for(ms(500));
    scraper.stalls_for(ms(2_000));
    let stalled = now(&proxy);
    proxy.run_for(ms(2_100));
    assert_eq!(scrapers(&proxy, &[&worker], stalled), 1, "nobody stepped in");

    let back = now(&proxy);
    proxy.run_for(ms(1_000));
    assert_eq!(scrapers(&proxy, &[&worker], back), 0);
    assert_eq!(scrapers(&proxy, &[&scraper], back), 1);
}

#[test]
fn a_plugin_in_the_singletons_own_vm_neither_scrapes_nor_stops_it() {
    let proxy = Proxy::envoy(pool(4));
    let scraper = proxy.scraper();
    let beside = proxy.worker_beside(&scraper);
    proxy.run_for(ms(3_000));
    assert_eq!(scrapers(&proxy, &[&scraper], 0), 1);
    assert_eq!(scrapers(&proxy, &[&beside], 0), 0);
}

#[test]
fn a_clock_that_is_set_does_not_stop_the_scrapes() {
    for set in [-3_600_000, 3_600_000] {
        let (proxy, worker) = ready(pool(4));
        proxy.world().clock_set = set;
        proxy.run_for(ms(500));
        let since = now(&proxy);
        proxy.run_for(ms(1_000));
        let scrapes = proxy.scrapes().iter().filter(|call| call.began >= since).count();
        assert!((36..=44).contains(&scrapes), "{scrapes} scrapes in a second, clock set by {set} ms");
        assert!(worker.post(CHAT, chat(&["hello"])).destination().is_some());
    }
}
