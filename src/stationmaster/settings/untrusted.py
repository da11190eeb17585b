"""What a file in the current folder may set before the person has trusted it.

The folder may be a repository that someone else wrote. So this is a list of what is harmless, not of what is harmful:
choices that the quote shows before anything is rented, and keys that nothing else sets. Every other setting can run
commands, redirect keys, or change what happens to the jobs of other folders, which the same worker serves.
"""

from __future__ import annotations

CHOICES = frozenset(
    {
        "provider",
        "log_level",
        "vastai.preferred_gpus",
        "vastai.max_bid_per_hour",
        "vastai.min_vram_gb",
        "vastai.preferred_regions",
        "vastai.blocked_regions",
        "vastai.blocked_machines",
        "vastai.datacenter_only",
        "vastai.verified_only",
        "vastai.min_reliability",
        "vastai.min_cuda",
        "vastai.default_disk_gb",
        "vastai.interruptible",
        "monitoring.poll_interval",
        "monitoring.watch_interval",
        "notify.quiet",
        "notify.time_zone",
        "notify.muted",
    }
)

KEYS = frozenset({"vastai.api_key", "hf_token", "hf_read_token", "comfydeploy.api_key"})
"""By value only, and only where the home's config file sets no other: a repository must not replace your account by its
own.
"""
