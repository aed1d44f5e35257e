"""Values of the protocol and what all other packages need to read, write and check them."""
