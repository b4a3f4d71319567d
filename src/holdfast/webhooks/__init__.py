"""Tells other systems what happens here, by the Standard Webhooks convention (standardwebhooks.com)."""
