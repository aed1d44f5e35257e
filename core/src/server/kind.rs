//! Uninhabited types that distinguish handlers by purpose, so that one trait can have several implementations.

#[derive(Debug)]
pub enum ToolKind {}
#[derive(Debug)]
pub enum ResourceKind {}
#[derive(Debug)]
pub enum PromptKind {}
#[derive(Debug)]
pub enum CompletionKind {}
#[derive(Debug)]
pub enum MethodKind {}
#[derive(Debug)]
pub enum NotificationKind {}
