"""Who is at work: owners of leases, their file locks and heartbeats. In SQL alone; Redis may stand in front later."""
