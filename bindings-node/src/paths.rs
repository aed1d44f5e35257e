//! Paths that clients give.

use std::path::Path;

use gudgeon::error::Error;
use napi_derive::napi;

use crate::error::misuse;

#[napi]
#[derive(Debug)]
pub struct NativePath;

#[napi]
impl NativePath {
    /// Returns the real path of a file in the folder `root`, and null; or null and the problem for the model. Errors if
    /// `root` is not a folder that can be read.
    #[napi(catch_unwind)]
    pub fn resolve_inside(
        root: String,
        path: String,
    ) -> napi::Result<(Option<String>, Option<String>)> {
        let unusable = |reason: &dyn std::fmt::Display| {
            misuse(Error::misuse(format!("the folder {root:?} can't be used: {reason}")))
        };
        let resolved = gudgeon::bindings::resolve_inside(Path::new(&root), &path)
            .map_err(|error| unusable(&error))?;
        Ok(match resolved {
            Ok(path) => {
                let path = path.into_os_string().into_string();
                (Some(path.map_err(|_| unusable(&"its real path is not Unicode"))?), None)
            }
            Err(problem) => (None, Some(problem)),
        })
    }
}
