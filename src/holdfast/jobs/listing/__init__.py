"""Jobs and executions as they are listed, searched, counted and shown, in the words of documents 003 and 000."""
