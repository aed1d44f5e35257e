//! What a handler is for. These types are never made: they tell the implementations of one trait apart.

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
