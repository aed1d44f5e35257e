//! The table of all requests and notifications of all revisions.

use std::borrow::Cow;

use crate::error::impl_names;

macro_rules! methods {
    ($($name:ident = $wire:literal, $kind:ident from $from:ident;)*) => {
        /// A method that some revision defines. All other names belong to vendors and extensions.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum Method { $($name),* }

        impl Method {
            /// All methods of all revisions.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the method with this name, if any revision defines it.
            pub fn parse(wire: &str) -> Option<Self> {
                match wire { $($wire => Some(Self::$name),)* _ => None }
            }

            /// Returns the method's name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $wire),* }
            }

            /// Returns whether the method is a request or a notification.
            pub fn kind(self) -> MethodKind {
                match self { $(Self::$name => MethodKind::$kind),* }
            }

            /// Returns which side sends the method.
            pub fn sender(self) -> Sender {
                match self { $(Self::$name => Sender::$from),* }
            }
        }
    };
}

/// The kind of a method: a request gets a response, a notification does not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MethodKind {
    Request,
    Notification,
}

/// The side that sends a method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sender {
    Client,
    Server,
    Both,
}

methods! {
    Initialize = "initialize", Request from Client;
    Ping = "ping", Request from Both;
    Discover = "server/discover", Request from Client;
    ListTools = "tools/list", Request from Client;
    CallTool = "tools/call", Request from Client;
    ListResources = "resources/list", Request from Client;
    ListResourceTemplates = "resources/templates/list", Request from Client;
    ReadResource = "resources/read", Request from Client;
    Subscribe = "resources/subscribe", Request from Client;
    Unsubscribe = "resources/unsubscribe", Request from Client;
    Listen = "subscriptions/listen", Request from Client;
    ListPrompts = "prompts/list", Request from Client;
    GetPrompt = "prompts/get", Request from Client;
    Complete = "completion/complete", Request from Client;
    SetLevel = "logging/setLevel", Request from Client;
    GetTask = "tasks/get", Request from Both;
    GetTaskResult = "tasks/result", Request from Both;
    CancelTask = "tasks/cancel", Request from Both;
    ListTasks = "tasks/list", Request from Both;
    CreateMessage = "sampling/createMessage", Request from Server;
    ListRoots = "roots/list", Request from Server;
    Elicit = "elicitation/create", Request from Server;
    Initialized = "notifications/initialized", Notification from Client;
    Cancelled = "notifications/cancelled", Notification from Both;
    Progress = "notifications/progress", Notification from Both;
    RootsListChanged = "notifications/roots/list_changed", Notification from Client;
    ToolListChanged = "notifications/tools/list_changed", Notification from Server;
    ResourceListChanged = "notifications/resources/list_changed", Notification from Server;
    ResourceUpdated = "notifications/resources/updated", Notification from Server;
    PromptListChanged = "notifications/prompts/list_changed", Notification from Server;
    LogMessage = "notifications/message", Notification from Server;
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged", Notification from Server;
    TaskStatus = "notifications/tasks/status", Notification from Both;
    ElicitationComplete = "notifications/elicitation/complete", Notification from Server;
}

/// A method of the specification, or the name of a method that a vendor or an extension registered.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum MethodName {
    Standard(Method),
    Vendor(Box<str>),
}

impl MethodName {
    #[doc(hidden)] // For the language bindings and the tests.
    pub fn parse(wire: &str) -> Self {
        Method::parse(wire).map_or_else(|| Self::Vendor(wire.into()), Self::Standard)
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Standard(method) => method.as_str(),
            Self::Vendor(name) => name,
        }
    }
}

impl From<Method> for MethodName {
    fn from(method: Method) -> Self {
        Self::Standard(method)
    }
}

impl_names!(MethodName);

impl From<&str> for MethodName {
    fn from(wire: &str) -> Self {
        Self::parse(wire)
    }
}

impl<'a> From<&'a MethodName> for Cow<'a, str> {
    fn from(name: &'a MethodName) -> Self {
        Cow::Borrowed(name.as_str())
    }
}
