"""What a file in the current folder may set before the person has trusted it.

The folder may be a repository that someone else wrote. So this is a list of what is harmless, not of what is harmful:
choices that only narrow what is offered, and keys where there are no others. Every other setting can run commands,
redirect keys, or change what happens to the jobs of other folders, which the same worker serves.
"""

from __future__ import annotations

CHOICES = frozenset(
    {
        "provider",
        "log_level",
        "vastai.preferred_gpus",
        "vastai.min_vram_gb",
        "vastai.preferred_regions",
        "vastai.blocked_regions",
        "vastai.blocked_machines",
        "vastai.min_cuda",
        "vastai.default_disk_gb",
    }
)

KEYS = frozenset({"vastai.api_key", "hf_token", "hf_read_token", "comfydeploy.api_key"})
"""By value only, and only in a home whose config file sets no other and that trusts no file yet: a repository must not
replace your account by its own.
"""
