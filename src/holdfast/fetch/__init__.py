"""One station: asks the web for one thing at a time, politely and safely. It follows, decodes and stores nothing."""
