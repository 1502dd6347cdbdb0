"""What nodes put out: files, commits, and answers to retrieval queries."""
