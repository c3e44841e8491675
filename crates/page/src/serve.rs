//! The page over a store, on loopback or a socket.
//!
//! Nothing can be written through it. Who asks has to know a token that is drawn for each start, and is
//! the first part of every path: a link holds it, and no cookie is sent to other ports of this host.
//! A request for another host's name is refused, which a page elsewhere makes when its name is bound
//! to this address anew (DNS rebinding), and so is one that a page from elsewhere made (Origin).

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use model::{Checkup, RunId, RunSummary, Window};
use serde::{Deserialize, Serialize};
use store::{Sqlite, Store};

use crate::connections::{self, Visitor};
use crate::html::{SCRIPT, STYLE};
use crate::listen::{Hosts, Listener};
use crate::run::not_recorded;
use crate::{Loaded, Page, PageError, checkup, overview, wire};

/// Bytes of a token.
const TOKEN: usize = 24;

/// What a browser may do with the page: its own script and style, and requests to here.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const INDEX: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
    <title>whylag</title><link rel=\"stylesheet\" href=\"page.css\"></head>\
    <body><div id=\"page\"></div><script src=\"page.js\"></script></body></html>\n";

/// A line of the list of runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunRow {
    /// Number.
    pub id: i64,
    /// What was recorded.
    pub target: String,
    /// Wall-clock start, ms since 1970-01-01 UTC.
    pub started_unix_ms: f64,
    /// Length, as people read it.
    pub length: String,
    /// Threads seen.
    pub threads: u64,
    /// The first finding's cause, if it was explained.
    pub cause: Option<String>,
    /// Names and values that the user gave it, in a line.
    pub labels: String,
}

/// What `explain --window` says of a part of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PartAnswer {
    /// The leading cause, or that there is none.
    pub headline: String,
    /// How the wall time divides.
    pub sums: String,
    /// All that is said.
    pub explanation: model::Explanation,
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    token: String,
}

struct Shared {
    hosts: Hosts,
    token: String,
    store: Mutex<Sqlite>,
    look: Look,
}

/// Looks at this host, as `whylag doctor` does; why it cannot, in words.
pub type Look = fn() -> Result<Checkup, String>;

impl Server {
    /// Draws a token for what listens.
    ///
    /// # Errors
    /// If there is no random number to be had.
    pub fn new(listener: Listener) -> Result<Server, PageError> {
        Ok(Server { listener, token: token()? })
    }

    /// Where the page is, token included.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.listener.host(), self.token)
    }

    /// Answers until the process ends, with what `look` sees of this host where that is asked for.
    ///
    /// # Errors
    /// If the listener fails.
    pub fn run(self, store: Sqlite, look: Look) -> Result<(), PageError> {
        let shared = Arc::new(Shared {
            hosts: self.listener.hosts(),
            token: self.token,
            store: Mutex::new(store),
            look,
        });
        let app = Router::new()
            .route("/{token}/", get(|| async { text("text/html", INDEX) }))
            .route("/{token}/page.js", get(|| async { text("text/javascript", SCRIPT) }))
            .route("/{token}/page.css", get(|| async { text("text/css", STYLE) }))
            .route("/{token}/runs.json", get(runs))
            .route("/{token}/grids.json", get(grids))
            .route("/{token}/trends.json", get(trends))
            .route("/{token}/checkup.json", get(checkup_now))
            .route("/{token}/run/{id}", get(run))
            .route("/{token}/explain/{id}", get(explain_part))
            .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
            .with_state(shared);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(connections::answer(self.listener, app))?)
    }
}

/// Random, in hexadecimal digits.
fn token() -> Result<String, PageError> {
    let mut bytes = [0u8; TOKEN];
    let flags = rustix::rand::GetRandomFlags::empty();
    let got = rustix::rand::getrandom(&mut bytes, flags).map_err(std::io::Error::from)?;
    debug_assert_eq!(got, TOKEN, "so few bytes come at once");
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn text(kind: &'static str, text: &'static str) -> Response {
    let kind = format!("{kind}; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Refuses what is not from here, and tells the browser what the page may do.
async fn guard(
    State(shared): State<Arc<Shared>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match refusal(&shared, &request) {
        Some(refusal) => refusal.into_response(),
        None => {
            visitor.is_welcome();
            next.run(request).await
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, header::HeaderValue::from_static(value));
    }
    response
}

fn refusal(shared: &Shared, request: &Request) -> Option<(StatusCode, &'static str)> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "nothing can be written here\n"));
    }
    if !is_own(shared, request.headers()) {
        return Some((StatusCode::FORBIDDEN, "asked for by another name, or by another page\n"));
    }
    let token = request.uri().path().split('/').nth(1).unwrap_or_default();
    let wrong = "no token, or a wrong one: open the address that 'whylag serve' printed\n";
    (!is_same(token, &shared.token)).then_some((StatusCode::FORBIDDEN, wrong))
}

/// True if the request names this host, and no page of another origin made it.
fn is_own(shared: &Shared, headers: &HeaderMap) -> bool {
    let one = |name: HeaderName| {
        let mut values = headers.get_all(name).iter();
        (values.next().and_then(|value| value.to_str().ok()), values.next().is_none())
    };
    let (Some(host), true) = one(header::HOST) else { return false };
    if !shared.hosts.has(host) {
        return false;
    }
    match one(header::ORIGIN) {
        (None, _) => !headers.contains_key(header::ORIGIN),
        (Some(origin), alone) => alone && origin == format!("http://{host}"),
    }
}

/// Compares all of both, so that the time says nothing of where they differ.
fn is_same(given: &str, token: &str) -> bool {
    let differing = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differing == 0
}

/// Does something with the store where it holds up no other request.
async fn with_store(
    shared: Arc<Shared>,
    kind: &'static str,
    read: impl FnOnce(&Sqlite) -> Result<Vec<u8>, Refused> + Send + 'static,
) -> Response {
    let made = tokio::task::spawn_blocking(move || {
        let store = shared.store.lock().unwrap_or_else(PoisonError::into_inner);
        read(&store)
    });
    match made.await {
        Ok(Ok(bytes)) => ([(header::CONTENT_TYPE, kind)], bytes).into_response(),
        Ok(Err(Refused(status, why))) => (status, why).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "cannot answer\n").into_response(),
    }
}

const JSON: &str = "application/json";

fn json(value: &impl Serialize) -> Result<Vec<u8>, Refused> {
    serde_json::to_vec(value).map_err(|error| Refused::failed(&error))
}

struct Refused(StatusCode, String);

impl Refused {
    fn failed(error: &dyn std::fmt::Display) -> Refused {
        Refused(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
    }

    fn missing(error: &dyn std::fmt::Display) -> Refused {
        Refused(StatusCode::NOT_FOUND, format!("{error}\n"))
    }
}

async fn runs(State(shared): State<Arc<Shared>>) -> Response {
    with_store(shared, JSON, |store| {
        let runs = store.runs().map_err(|error| Refused::failed(&error))?;
        json(&runs.into_iter().rev().map(row).collect::<Vec<_>>())
    })
    .await
}

async fn grids(State(shared): State<Arc<Shared>>) -> Response {
    with_store(shared, JSON, |store| {
        json(&overview::grids(store).map_err(|error| Refused::failed(&error))?)
    })
    .await
}

async fn trends(State(shared): State<Arc<Shared>>) -> Response {
    with_store(shared, JSON, |store| {
        json(&overview::trends(store).map_err(|error| Refused::failed(&error))?)
    })
    .await
}

/// This host now, beside a run if one is named.
async fn checkup_now(
    State(shared): State<Arc<Shared>>,
    Query(With { with }): Query<With>,
) -> Response {
    let look = shared.look;
    with_store(shared, JSON, move |store| {
        let run = with.map(|id| store.load(RunId(id))).transpose();
        let run = run.map_err(|error| Refused::missing(&error))?;
        let now = look().map_err(|why| Refused::failed(&why))?;
        json(&checkup::page(now, run.as_ref()))
    })
    .await
}

fn row(run: RunSummary) -> RunRow {
    let labels = run.header.labels.iter().map(|(name, value)| format!("{name}={value}"));
    RunRow {
        id: run.id.0,
        target: run.header.target.to_string(),
        started_unix_ms: run.header.started_unix_ns as f64 / 1e6,
        length: model::units::duration(run.length_ns),
        threads: run.threads,
        cause: run.leading_cause,
        labels: labels.collect::<Vec<_>>().join(", "),
    }
}

#[derive(Deserialize)]
struct With {
    with: Option<i64>,
}

async fn run(
    State(shared): State<Arc<Shared>>,
    Path((_, id)): Path<(String, i64)>,
    Query(With { with }): Query<With>,
) -> Response {
    let kind = "application/octet-stream";
    with_store(shared, kind, move |store| {
        let ids: Vec<RunId> = [id].into_iter().chain(with).map(RunId).collect();
        let load = |id: &RunId| Loaded::from_store(store, *id, id.to_string());
        let loaded: Result<Vec<Loaded>, _> = ids.iter().map(load).collect();
        let loaded = loaded.map_err(|error| Refused::missing(&error))?;
        if let Some(why) = loaded.iter().find_map(|one| not_recorded(&one.run, &one.name)) {
            return Err(Refused(StatusCode::NOT_FOUND, format!("{why}\n")));
        }
        let proof = store.proof_of(&ids).map_err(|error| Refused::failed(&error))?;
        let page = Page::of(&loaded, proof.as_ref());
        let mut bytes = Vec::new();
        wire::write(&mut bytes, &page).map_err(|error| Refused::failed(&error))?;
        Ok(bytes)
    })
    .await
}

#[derive(Deserialize)]
struct Part {
    from: u64,
    to: u64,
}

/// What `explain --window` says.
async fn explain_part(
    State(shared): State<Arc<Shared>>,
    Path((_, id)): Path<(String, i64)>,
    Query(Part { from, to }): Query<Part>,
) -> Response {
    with_store(shared, JSON, move |store| {
        let question = explain::Question::Window(from, to);
        let missing = |error: &dyn std::fmt::Display| Refused::missing(error);
        let run = store.load(RunId(id)).map_err(|error| missing(&error))?;
        let part: Window = question.part(&run).map_err(|error| missing(&error))?;
        let (run, stored) = store.load_part(RunId(id), &part).map_err(|error| missing(&error))?;
        let partial = explain::PartialRun::new(&run, &question).map_err(|error| missing(&error))?;
        let explanation = explain::explain_part(&partial.stored(stored));
        json(&PartAnswer {
            headline: report::explanation::leading(&explanation, &run),
            sums: report::explanation::sums(&explanation, &run),
            explanation,
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_same_only_if_all_of_it_is() {
        assert!(is_same("abc", "abc"));
        for given in ["", "ab", "abd", "abcd", "ABC"] {
            assert!(!is_same(given, "abc"), "{given}");
        }
        assert_ne!(token().unwrap(), token().unwrap());
        assert_eq!(token().unwrap().len(), 2 * TOKEN);
    }
}
