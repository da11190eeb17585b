"""Sends models to where they are kept and shown: the Hub, a bucket, the catalogue, ComfyDeploy."""
