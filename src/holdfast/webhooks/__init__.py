"""Webhooks: notify other systems of events, by the Standard Webhooks convention (standardwebhooks.com)."""
