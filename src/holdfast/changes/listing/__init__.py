"""What readers are told of changes: lists, feeds, the history of a page. Each question reads a bounded part."""
