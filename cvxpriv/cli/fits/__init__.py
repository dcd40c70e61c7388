"""What the commands that learn share: rows and their encoding, scores of held-out rows, files, text and page."""
