//! An MCP server that searches a folder of Markdown: `docsearch [folder]`, by default this repository's own.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use docsearch_index::{Heading, Hit, Index};
use gudgeon::protocol::ErrorCode;
use gudgeon::{
    Completion, Context, Prompt, Resource, ResourceNotFound, Server, State, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the server: a folder, and its index, which is created when it is first needed.
struct Documents {
    folder: PathBuf,
    index: Mutex<Option<Arc<Index>>>,
}

#[derive(Deserialize, JsonSchema)]
struct SearchArgs {
    /// words to look for; any of them counts
    query: String,
    /// at most so many hits
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
}

#[derive(Deserialize, JsonSchema)]
struct PathArgs {
    /// a document's path, as search returns it
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct SearchResult {
    hits: Vec<Hit>,
}

#[derive(Serialize, JsonSchema)]
struct Outline {
    path: String,
    headings: Vec<Heading>,
}

#[derive(Serialize, JsonSchema)]
struct Indexed {
    files: usize,
    sections: usize,
}

fn ten() -> usize {
    10
}

impl Documents {
    fn new(folder: PathBuf) -> Self {
        Self { folder, index: Mutex::default() }
    }

    fn index(&self, ctx: &Context) -> Result<Arc<Index>, ToolError> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        match &*index {
            Some(made) => Ok(Arc::clone(made)),
            None => Ok(Arc::clone(index.insert(self.read_folder(ctx)?))),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "no folder holds 2^53 files")]
    fn read_folder(&self, ctx: &Context) -> Result<Arc<Index>, ToolError> {
        Ok(Arc::new(Index::new(&self.folder, |done, total, path| {
            ctx.progress(done as f64, Some(total as f64), path);
        })?))
    }
}

async fn search(
    SearchArgs { query, limit }: SearchArgs,
    ctx: Context,
    documents: State<Documents>,
) -> Result<SearchResult, ToolError> {
    Ok(SearchResult { hits: documents.index(&ctx)?.search(&query, limit)? })
}

async fn outline(
    PathArgs { path }: PathArgs,
    ctx: Context,
    documents: State<Documents>,
) -> Result<Outline, ToolError> {
    let headings = documents.index(&ctx)?.outline(&path).map_err(ToolError::new)?;
    Ok(Outline { path, headings })
}

async fn reindex(ctx: Context, documents: State<Documents>) -> Result<Indexed, ToolError> {
    let fresh = documents.read_folder(&ctx)?;
    *documents.index.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&fresh));
    Ok(Indexed { files: fresh.documents.len(), sections: fresh.sections })
}

async fn document(
    PathArgs { path }: PathArgs,
    ctx: Context,
    documents: State<Documents>,
) -> Result<String, ToolError> {
    let index = documents.index(&ctx)?;
    let text = index.read(&path).map_err(|error| ResourceNotFound {
        uri: format!("docs://{path}"),
        message: Some(error.to_string()),
    })?;
    Ok(text.to_owned())
}

async fn summarize(
    PathArgs { path }: PathArgs,
    ctx: Context,
    documents: State<Documents>,
) -> Result<String, ToolError> {
    let index = documents.index(&ctx)?;
    let text = index
        .read(&path)
        .map_err(|error| ToolError::protocol(ErrorCode::InvalidParams, error, None::<()>))?;
    Ok(format!(
        "Summarize the document {path} in five sentences, then list its sections.\n\n{text}"
    ))
}

async fn paths(
    typed: String,
    ctx: Context,
    documents: State<Documents>,
) -> Result<Completion, ToolError> {
    let mut completion = Completion::from(documents.index(&ctx)?.complete(&typed));
    let total = completion.values.len();
    completion.values.truncate(100);
    completion.has_more = Some(total > completion.values.len());
    completion.total = Some(total as u64);
    Ok(completion)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
    let folder = std::env::args_os().nth(1).map_or_else(|| own.into(), PathBuf::from);
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(format!(
            "{folder} is not a folder; give the folder that holds your Markdown files"
        )
        .into());
    }
    Server::new("docsearch")
        .version("1.0.0")
        .instructions("Search the documents first, then read what was found.")
        .with_state(Documents::new(folder))
        .add(
            Tool::new("search", search)
                .description("Search the documents. Hits are sections, best first.")
                .annotations(|annotations| annotations.read_only_hint = Some(true)),
        )
        .add(
            Tool::new("outline", outline)
                .description("List a document's headings with their levels and lines.")
                .annotations(|annotations| annotations.read_only_hint = Some(true)),
        )
        .add(
            Tool::new("reindex", reindex)
                .description("Read the folder again, after its files have changed.")
                .annotations(|annotations| annotations.read_only_hint = Some(true)),
        )
        .add(
            Resource::template("docs://{+path}", document)
                .name("document")
                .description("A document of the folder.")
                .mime_type("text/markdown"),
        )
        .add(Prompt::new("summarize", summarize).description("Summarize a document."))
        .complete("summarize", "path", paths)
        .complete("docs://{+path}", "path", paths)
        .run_stdio()
        .await?;
    Ok(())
}
