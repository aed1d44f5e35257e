"""What a server offers: registrations, mounts, options, middleware, visibility and lifespan."""
