"""What the test scripts share: servers, clients' tools, builds."""
