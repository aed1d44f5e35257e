"""A server's components: registrations, mounts, options, middleware, visibility and lifespan."""
