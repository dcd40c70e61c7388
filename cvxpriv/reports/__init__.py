"""Facts as text, HTML pages, pictures and files."""
