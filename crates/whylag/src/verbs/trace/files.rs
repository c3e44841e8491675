//! `whylag trace ls` and `whylag trace harvest`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use messages::guarded;
use model::{Batch, RunEnd, Target};
use report::trace_files::{TraceListing, TraceStanding};
use store::{Rows, Sqlite, Store};
use trace::reader::{Listed, ReadError, Standing};

use crate::failure::Failure;
use crate::output::tell;
use crate::stored::StoreOptions;
use crate::{output, stored};

pub fn list(json: bool) -> Result<ExitCode, Failure> {
    let listed: Vec<TraceListing> = guarded::list()?.iter().map(listing).collect();
    let (mut out, style) = output::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, &listed).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        report::trace_files::write(&mut out, &listed, &style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn listing(listed: &Listed) -> TraceListing {
    let path = listed.path.display().to_string();
    match &listed.what {
        Ok((identity, standing)) => TraceListing {
            path,
            pid: Some(identity.pid),
            standing: match standing {
                Standing::Live => TraceStanding::Live,
                Standing::Closed => TraceStanding::Closed,
                Standing::Crashed => TraceStanding::Crashed,
                Standing::Foreign => TraceStanding::Foreign,
            },
            language: messages::language(identity.language),
            created_unix_ns: identity.created_since_1970,
            refused: String::new(),
        },
        Err(why) => TraceListing {
            path,
            pid: None,
            standing: TraceStanding::Refused,
            language: String::new(),
            created_unix_ns: 0,
            refused: why.to_string(),
        },
    }
}

/// Harvests the files named, or all that were left behind.
pub fn harvest(named: &[PathBuf], store: &StoreOptions) -> Result<ExitCode, Failure> {
    let paths: Vec<PathBuf> = if named.is_empty() {
        let left =
            |listed: &Listed| matches!(&listed.what, Ok((_, Standing::Crashed | Standing::Closed)));
        guarded::list()?.into_iter().filter(left).map(|listed| listed.path).collect()
    } else {
        named.to_vec()
    };
    if paths.is_empty() {
        tell("no program has left a trace behind");
        return Ok(ExitCode::SUCCESS);
    }
    let mut store = store.open_to_write()?;
    let mut failures = 0;
    for path in &paths {
        match harvest_one(path, &mut store) {
            Ok(shown) => tell(shown),
            Err(failure) if named.is_empty() || paths.len() > 1 => {
                failures += 1;
                tell(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Names the file where the reader's error does not.
fn refused(path: &Path, why: ReadError) -> Failure {
    match why {
        ReadError::System { .. } | ReadError::InUse(_) => why.into(),
        other => Failure::Usage(format!("{}: {other}; it is left as it is", path.display())),
    }
}

/// Stores what one program left; the file is removed only after that.
fn harvest_one(path: &Path, store: &mut Sqlite) -> Result<String, Failure> {
    let refused = |why| refused(path, why);
    let (file, standing) = guarded::open(path).map_err(refused)?;
    match standing {
        Standing::Crashed | Standing::Closed => {}
        Standing::Live => {
            return Err(Failure::Usage(format!(
                "{}: its program runs: 'whylag trace -p {}' follows it",
                path.display(),
                file.reader.identity().pid
            )));
        }
        Standing::Foreign => {
            return Err(Failure::Usage(format!(
                "{}: of another boot or pid namespace: whether its program runs is not known here",
                path.display()
            )));
        }
    }
    let (messages, file) = messages::harvest(file).map_err(refused)?;
    let identity = file.reader.identity();
    let header = model::RunHeader {
        started_unix_ns: i64::try_from(identity.created_since_1970).unwrap_or(i64::MAX),
        started_ns: identity.created,
        ..stored::header(Target::Trace(path.display().to_string()))
    };
    let slowest = messages.slow.iter().chain(&messages.fast).map(|message| message.end_ns).max();
    let ended_ns = slowest.unwrap_or(identity.created).max(identity.created);
    let flows = messages.programs.iter().flat_map(|program| &program.flows);
    let counted = flows.fold(0u64, |sum, flow| sum.saturating_add(flow.ended));
    let unfinished = messages.programs.iter().map(|p| p.unfinished.len()).sum::<usize>();
    let id = store.begin(&header)?;
    let batch = Batch { heartbeat_ns: ended_ns, messages, ..Batch::default() };
    store.append(id, &batch)?;
    let how = match batch.messages.programs.first().map(|program| program.state) {
        Some(model::TraceState::Crashed) => "the program crashed, or made an exec",
        _ => "the program ended and left its trace",
    };
    store.finish(id, &RunEnd { ended_ns, exit_status: None, reason: how.to_owned() })?;
    let mut stored = Rows::default();
    stored.add(&batch);
    store.verify(id, &stored)?;
    guarded::remove(file)?;
    let slow = batch.messages.slow.len();
    Ok(format!(
        "{}: run {id}: {counted} messages, {slow} slow ones kept, {unfinished} unfinished; removed",
        path.display()
    ))
}
