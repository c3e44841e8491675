//! What a reader that polls at 1 kHz does to the program it reads: percentiles of a whole message,
//! in turns with nobody reading. Nobody reading is measured twice a turn, as noise to compare with.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use bench_peers_trace::whylag_message;
use trace::reader::TraceFile;
use trace::{Point, Publish, Thread, Trace, now};

const TURNS: usize = 15;
const MESSAGES: usize = 200_000;
const PERCENTILES: [f64; 6] = [10.0, 50.0, 90.0, 99.0, 99.9, 99.99];
const POLL: Duration = Duration::from_millis(1);

fn main() {
    if let Some(path) = std::env::args().skip_while(|word| word != "--poll").nth(1) {
        return poll(Path::new(&path));
    }
    let folder = format!("/dev/shm/whylag-bench-{}", std::process::id());
    whylag_message::start(Path::new(&folder));
    let mut thread = whylag_message::thread();
    let fill = whylag_message::fill();
    measure(&mut thread, fill);
    let mut rounds: [Vec<Vec<f64>>; 3] = Default::default();
    for _ in 0..TURNS {
        rounds[0].push(measure(&mut thread, fill));
        rounds[1].push(measure(&mut thread, fill));
        let reader = Reader::start(&whylag_message::path());
        rounds[2].push(measure(&mut thread, fill));
        reader.stop();
    }
    println!("ns per message of 8 marks by one thread, medians of {TURNS} rounds of {MESSAGES}");
    println!("percentile   nobody reads (least .. most of both)   again   a reader at 1 kHz");
    for (at, percentile) in PERCENTILES.iter().enumerate() {
        let values = |round: usize| -> Vec<f64> {
            let mut values: Vec<f64> = rounds[round].iter().map(|round| round[at]).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let [nobody, again, read] = [0, 1, 2].map(values);
        let middle = |values: &[f64]| values[values.len() / 2];
        let least = nobody[0].min(again[0]);
        let most = nobody[TURNS - 1].max(again[TURNS - 1]);
        let within = (least..=most).contains(&middle(&read));
        println!(
            "{percentile:>9} %   {:>12.0} ({least:.0} .. {most:.0})   {:.0}   {:.0}: {} the noise",
            middle(&nobody),
            middle(&again),
            middle(&read),
            if within { "within" } else { "beyond" }
        );
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// Percentiles of the time that a message takes.
fn measure(thread: &mut Thread, fill: Publish) -> Vec<f64> {
    let mut slot = Trace::new();
    let mut took: Vec<u64> = (0..MESSAGES as u64)
        .map(|id| {
            let begin = now();
            slot.begin(whylag_message::flow(), id, begin);
            slot.mark(Point::new(0));
            slot.mark(Point::new(1));
            let mut logic = thread.logic_start(&mut slot, Some(1));
            logic.published(fill);
            logic.published(fill);
            logic.published(fill);
            logic.end();
            now() - begin
        })
        .collect();
    took.sort_unstable();
    PERCENTILES.iter().map(|p| took[(MESSAGES as f64 * p / 100.0) as usize] as f64).collect()
}

/// A process that polls until its standard input ends.
struct Reader(Child, ChildStdin);

impl Reader {
    fn start(path: &Path) -> Reader {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .arg("--poll")
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a reader");
        let mut ready = [0];
        child.stdout.as_mut().expect("piped").read_exact(&mut ready).expect("a reader that reads");
        let until = child.stdin.take().expect("piped");
        Reader(child, until)
    }

    fn stop(mut self) {
        drop(self.1);
        assert!(self.0.wait().expect("its end").success());
    }
}

fn poll(path: &Path) {
    let over = std::thread::spawn(|| std::io::stdin().read(&mut [0]));
    let mut file = TraceFile::open(path).expect("a trace");
    let mut next = Instant::now();
    let mut read = 0usize;
    for look in 0u64.. {
        read += file.reader.messages().expect("messages").recent.len();
        if look.is_multiple_of(1000) {
            file.reader.histograms().expect("histograms");
        }
        if look == 1 {
            std::io::stdout()
                .write_all(b"r")
                .and_then(|()| std::io::stdout().flush())
                .expect("room");
        }
        if over.is_finished() {
            break;
        }
        next += POLL;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    assert!(read > 0, "nothing was read");
}
