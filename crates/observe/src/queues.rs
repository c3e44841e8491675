//! Looks at the queues of the target's sockets every 20 ms, in a thread of its own.
//!
//! A look costs what the target's sockets cost (about 0.5 us each); finding new ones costs a walk
//! over the open files of the host's processes. Both become rarer when they take long, so that
//! neither ever has more than a twentieth of a CPU.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Enum;
use libbpf_rs::{Iter, Link};
use model::{Depth, Drops, QueueSecond, Socket, SocketKind, Sockets};

use crate::Error;
use crate::bpf::{self, queue_record};

/// From one look to the next.
const LOOK: Duration = Duration::from_millis(20);
/// From one search for new sockets to the next.
const SEARCH: Duration = Duration::from_millis(100);
/// At most one part in so many of the time is spent looking, and searching.
const SHARE: u32 = 40;
/// Bursts of drops kept between two batches; what comes beyond is counted in the last one.
const BURSTS: usize = 4096;

/// The two walks, attached.
pub struct Walks {
    /// Finds sockets.
    pub search: Link,
    /// Reads their queues.
    pub look: Link,
}

/// The thread that looks.
pub struct Queues {
    state: Arc<Mutex<State>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Queues {
    /// Begins to look.
    pub fn start(walks: Walks) -> Result<Queues, Error> {
        let state = Arc::new(Mutex::new(State { reasons: drop_reasons(), ..State::default() }));
        let theirs = Arc::clone(&state);
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("queues".into())
            .spawn(move || run(&walks, &theirs, &stopped))
            .map_err(Error::io("starting the thread that looks at queues"))?;
        Ok(Queues { state, stop: Some(stop), thread: Some(thread) })
    }

    /// What was seen since the last time; intervals began at `start_ns`.
    pub fn take(&self, start_ns: u64) -> Sockets {
        lock(&self.state).take(start_ns)
    }

    /// Looks once more and ends the thread.
    pub fn finish(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; what was seen before it is still good.
            let _ = thread.join();
        }
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        self.finish();
    }
}

fn run(walks: &Walks, state: &Mutex<State>, stopped: &mpsc::Receiver<()>) {
    let mut next_search = Instant::now();
    loop {
        let began = Instant::now();
        if began >= next_search {
            // A walk that fails finds nothing new; the next one comes.
            let _ = walk(&walks.search);
            next_search = began + SEARCH.max(began.elapsed() * SHARE);
        }
        let searched = began.elapsed();
        look(walks, state);
        let looked = began.elapsed() - searched;
        let rest = LOOK.max(looked * SHARE).saturating_sub(looked + searched);
        if stopped.recv_timeout(rest) != Err(mpsc::RecvTimeoutError::Timeout) {
            look(walks, state);
            lock(state).end();
            return;
        }
    }
}

fn look(walks: &Walks, state: &Mutex<State>) {
    // A walk that fails has seen nothing; the next one comes.
    let bytes = walk(&walks.look).unwrap_or_default();
    let records = bytes.chunks_exact(size_of::<queue_record>());
    let mut state = lock(state);
    records.filter_map(bpf::read).for_each(|record| state.note(&record));
}

fn walk(link: &Link) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut iter = Iter::new(link).map_err(Error::bpf("opening an iterator"))?;
    iter.read_to_end(&mut bytes).map_err(Error::io("walking over sockets"))?;
    Ok(bytes)
}

/// A poisoned state still holds whole looks, but for one.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct State {
    /// By inode.
    known: HashMap<u64, Known>,
    drops: Vec<Drops>,
    reasons: HashMap<u32, String>,
}

/// A socket, since the last batch and before.
struct Known {
    socket: Socket,
    told: bool,
    seen: bool,
    looks: u64,
    receive: Sum,
    send: Sum,
    drops: u64,
    drops_before: u64,
    /// Last seen nearly empty.
    empty_ns: u64,
    burst: Option<Drops>,
}

#[derive(Default)]
struct Sum {
    sum: u64,
    max: u64,
    max_ns: u64,
    limit: u64,
}

impl Sum {
    fn add(&mut self, now: u64, value: u64, limit: u64) {
        self.sum = self.sum.saturating_add(value);
        self.limit = limit;
        if value > self.max {
            (self.max, self.max_ns) = (value, now);
        }
    }

    fn depth(&self, looks: u64) -> Depth {
        let mean = self.sum.checked_div(looks).unwrap_or(0);
        Depth { mean, max: self.max, max_ns: self.max_ns, limit: self.limit }
    }
}

impl State {
    fn note(&mut self, record: &queue_record) {
        let known = self.known.entry(record.inode).or_insert_with(|| Known {
            socket: socket(record),
            told: false,
            seen: false,
            looks: 0,
            receive: Sum::default(),
            send: Sum::default(),
            drops: 0,
            drops_before: 0,
            empty_ns: record.time_ns,
            burst: None,
        });
        let (now, queued, limit) = (record.time_ns, record.receive, record.receive_limit);
        known.seen = true;
        known.looks += 1;
        known.receive.add(now, queued, limit);
        known.send.add(now, record.send, record.send_limit);
        let new = record.drops.saturating_sub(known.drops_before);
        known.drops_before = known.drops_before.max(record.drops);
        known.drops += new;
        if new > 0 {
            let told = record.drop_first != 0;
            let first_ns = if told { record.drop_first } else { now };
            let burst = known.burst.get_or_insert_with(|| Drops {
                socket: socket(record),
                reason: String::new(),
                filling_ns: known.empty_ns.min(first_ns),
                first_ns,
                last_ns: first_ns,
                count: 0,
                queued: 0,
                limit,
            });
            burst.count += new;
            burst.last_ns = if told { record.drop_last } else { now };
            burst.queued = burst.queued.max(queued);
            if told && let Some(reason) = self.reasons.get(&record.drop_reason) {
                burst.reason.clone_from(reason);
            }
        } else if let Some(burst) = known.burst.take() {
            keep(&mut self.drops, burst);
        }
        if queued <= limit / 8 {
            known.empty_ns = now;
        }
    }

    fn take(&mut self, start_ns: u64) -> Sockets {
        let mut queues = Vec::new();
        for known in self.known.values_mut() {
            let is_worth_telling =
                !known.told || known.receive.max > 0 || known.send.max > 0 || known.drops > 0;
            if known.looks > 0 && is_worth_telling {
                known.told = true;
                queues.push(QueueSecond {
                    start_ns,
                    socket: known.socket.clone(),
                    looks: known.looks,
                    receive: known.receive.depth(known.looks),
                    send: known.send.depth(known.looks),
                    drops: known.drops,
                });
            }
            if !known.seen
                && let Some(burst) = known.burst.take()
            {
                keep(&mut self.drops, burst);
            }
            (known.receive, known.send) = (Sum::default(), Sum::default());
            (known.looks, known.drops) = (0, 0);
        }
        // One that was not seen since the last batch has been closed.
        self.known.retain(|_, known| std::mem::replace(&mut known.seen, false));
        queues.sort_by_key(|second| second.socket.inode);
        Sockets { queues, drops: std::mem::take(&mut self.drops) }
    }

    /// Hands over bursts that have not ended, too.
    fn end(&mut self) {
        let bursts = self.known.values_mut().filter_map(|known| known.burst.take());
        bursts.for_each(|burst| keep(&mut self.drops, burst));
    }
}

fn keep(drops: &mut Vec<Drops>, burst: Drops) {
    if drops.len() < BURSTS {
        drops.push(burst);
    } else if let Some(last) = drops.last_mut() {
        last.count += burst.count;
    }
}

fn socket(record: &queue_record) -> Socket {
    const AF_UNIX: u16 = libc::AF_UNIX as u16;
    const TCP: u16 = libc::IPPROTO_TCP as u16;
    const UDP: u16 = libc::IPPROTO_UDP as u16;
    /// include/net/tcp_states.h
    const LISTEN: u8 = 10;
    let kind = match (record.family, record.protocol) {
        (AF_UNIX, _) => SocketKind::Unix,
        (_, TCP) if record.state == LISTEN => SocketKind::TcpListening,
        (_, TCP) => SocketKind::Tcp,
        (_, UDP) => SocketKind::Udp,
        _ => SocketKind::Other,
    };
    let local = address(record.family, record.local, record.local_port);
    let remote = address(record.family, record.remote, record.remote_port);
    let address = match (kind, record.local_port, record.remote_port) {
        (SocketKind::Unix, ..) | (_, 0, _) => String::new(),
        (_, _, 0) => local.to_string(),
        _ => format!("{local} to {remote}"),
    };
    Socket { inode: record.inode, tgid: record.tgid, fd: record.fd, kind, address }
}

fn address(family: u16, bytes: [u8; 16], port: u16) -> SocketAddr {
    let ip = match (family, bytes) {
        (family, bytes) if family == libc::AF_INET6 as u16 => IpAddr::V6(Ipv6Addr::from(bytes)),
        (_, [a, b, c, d, ..]) => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
    };
    SocketAddr::new(ip, port)
}

/// Names of enum skb_drop_reason in this kernel; the numbers change between versions.
fn drop_reasons() -> HashMap<u32, String> {
    let Ok(kernel) = Btf::from_vmlinux() else { return HashMap::new() };
    let Some(reasons) = kernel.type_by_name::<Enum<'_>>("skb_drop_reason") else {
        return HashMap::new();
    };
    let reason = |name: Option<&OsStr>, value: i64| {
        let name = name?.to_str()?;
        let short = name.strip_prefix("SKB_DROP_REASON_").unwrap_or(name);
        Some((u32::try_from(value).ok()?, short.to_owned()))
    };
    reasons.iter().filter_map(|member| reason(member.name, member.value)).collect()
}
