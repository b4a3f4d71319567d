"""The JSON of the API: models that routes answer with, in the camel-case names that clients read."""
