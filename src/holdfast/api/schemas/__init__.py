"""JSON models of the API: responses of routes, with camel-case names."""
