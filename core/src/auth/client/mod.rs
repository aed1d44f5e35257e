//! The client's side of authorization: obtains, keeps and renews the tokens for one server.
