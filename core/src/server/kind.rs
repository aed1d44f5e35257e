//! Uninhabited types that distinguish handlers by purpose, so that one trait can have several implementations.

/// Handlers of tools.
#[derive(Debug)]
pub enum ToolKind {}
/// Handlers of resources.
#[derive(Debug)]
pub enum ResourceKind {}
/// Handlers of prompts.
#[derive(Debug)]
pub enum PromptKind {}
/// Handlers of completions.
#[derive(Debug)]
pub enum CompletionKind {}
/// Handlers of vendor methods.
#[derive(Debug)]
pub enum MethodKind {}
/// Handlers of notifications.
#[derive(Debug)]
pub enum NotificationKind {}
