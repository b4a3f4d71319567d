"""What operators and timers do around the crawls of zimit: clean up, quarantine, recover, measure."""
