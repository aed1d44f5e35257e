//! Images in terminals: the protocols of kitty, for PNG, and of iTerm2, for every format.

use std::{env, fmt::Write as _};

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// The most bytes of base64 that kitty takes at once.
const CHUNK: usize = 4096;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Returns the control sequence that shows an image; `None` if the terminal can't show it.
pub fn sequence(image: &[u8]) -> Option<String> {
    let variable = |name| env::var(name).unwrap_or_default();
    // Multiplexers do not pass images on.
    if !variable("TMUX").is_empty() || variable("TERM").starts_with("screen") {
        return None;
    }
    let program = variable("TERM_PROGRAM");
    let has_kitty = !variable("KITTY_WINDOW_ID").is_empty()
        || variable("TERM") == "xterm-kitty"
        || program == "ghostty";
    let has_iterm =
        program == "iTerm.app" || program == "WezTerm" || variable("LC_TERMINAL") == "iTerm2";
    match () {
        () if has_kitty && image.starts_with(PNG) => Some(kitty(image)),
        () if has_iterm && is_image(image) => Some(iterm(image)),
        () => None,
    }
}

fn kitty(image: &[u8]) -> String {
    let base64 = BASE64_STANDARD.encode(image);
    let mut out = String::with_capacity(base64.len() + 64);
    let mut rest = base64.as_str();
    let mut control = "f=100,a=T,";
    while !rest.is_empty() {
        let (chunk, left) = rest.split_at(rest.len().min(CHUNK));
        let more = u8::from(!left.is_empty());
        // Writing to a String never fails.
        let _ = write!(out, "\x1b_G{control}m={more};{chunk}\x1b\\");
        (rest, control) = (left, "");
    }
    out
}

fn iterm(image: &[u8]) -> String {
    let (size, base64) = (image.len(), BASE64_STANDARD.encode(image));
    format!("\x1b]1337;File=inline=1;size={size};preserveAspectRatio=1:{base64}\x07")
}

/// Returns whether the bytes begin like those of an image that iTerm2 shows; anything else it would save as a file.
fn is_image(bytes: &[u8]) -> bool {
    let beginnings = [PNG, b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*"];
    beginnings.iter().any(|beginning| bytes.starts_with(beginning))
        || (bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kitty_gets_chunks_of_4096_bytes() {
        let image = [PNG, &[0; 5000]].concat();
        let sequence = kitty(&image);
        let chunks: Vec<_> = sequence.split("\x1b\\").filter(|chunk| !chunk.is_empty()).collect();
        assert_eq!(chunks.len(), 2);
        assert!(chunks[0].starts_with("\x1b_Gf=100,a=T,m=1;"));
        assert!(chunks[1].starts_with("\x1b_Gm=0;"));
        let base64: String = chunks.iter().map(|chunk| chunk.split_once(';').unwrap().1).collect();
        assert_eq!(BASE64_STANDARD.decode(base64).unwrap(), image);
    }
}
