"""What is kept of pages whose body is not: keywords, links, language, and a hash that tells whether they changed."""
