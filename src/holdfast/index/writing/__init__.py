"""How captures become rows: one fenced transaction a batch, harmless when repeated."""
