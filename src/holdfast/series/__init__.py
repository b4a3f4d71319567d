"""The one record of crawl activity: a row for each execution and minute, written in the transaction that settles.

The time series, `/metrics`, the status display and the alerts read these rows, and count nothing themselves.
"""
