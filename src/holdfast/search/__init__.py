"""Finding pages by words and by address: query language, ranking, the embedded index. Derived from SQL, never truth."""
