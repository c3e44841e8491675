//! The page as one file.
//!
//! Its policy allows the one script and the one style that are in it, by their hashes, and no request
//! at all. The data are compressed (`wire.rs`) in an element that no browser executes or parses as markup:
//! base64 has no character that means something there.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::{Page, PageError, wire};

/// The script, built from `web/` (`make page`).
pub const SCRIPT: &str = include_str!("../web/dist/page.js");

/// The style, likewise.
pub const STYLE: &str = include_str!("../web/dist/page.css");

/// Writes the page.
///
/// # Errors
/// Those of `out`, or of a value that is no JSON.
pub fn write(out: &mut dyn Write, page: &Page) -> Result<(), PageError> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    wire::write(&mut packed, page)?;
    let data = STANDARD.encode(packed.finish()?);
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>whylag report</title><style>{STYLE}</style></head>\
         <body><div id=\"page\"></div>\
         <noscript>This report is drawn by a script that is in this file.</noscript>\
         <script type=\"application/octet-stream\" id=\"data\">{data}</script>\
         <script>{SCRIPT}</script></body></html>\n"
    )?;
    Ok(())
}

/// As a policy names a script or a style.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_bundle_ends_its_element_or_is_replaced_on_the_way_out() {
        let unsafe_ones = |text: &str| {
            let is = |c: &char| model::outside::is_unsafe(*c) && *c != '\n' && *c != '\t';
            text.chars().filter(is).count()
        };
        assert!(!SCRIPT.to_lowercase().contains("</script"), "it would end its own element");
        assert!(!STYLE.to_lowercase().contains("</style"));
        assert_eq!((unsafe_ones(SCRIPT), unsafe_ones(STYLE)), (0, 0));
        assert!(!SCRIPT.contains("<!--"));
    }

    #[test]
    fn the_bundle_stays_small_and_asks_for_nothing_elsewhere() {
        assert!(SCRIPT.len() + STYLE.len() < 300_000);
        for word in ["http://", "https://"] {
            let found: Vec<&str> = SCRIPT.split(word).skip(1).collect();
            // Names of XML name spaces are no addresses.
            assert!(found.iter().all(|rest| rest.starts_with("www.w3.org/")), "{word}");
        }
    }
}
